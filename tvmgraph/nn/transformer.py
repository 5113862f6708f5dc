"""Multi-head attention and the layers of transformers."""

from __future__ import annotations

import math

from tvmgraph import dtypes
from tvmgraph.compat.paths import as_package
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.nn._checks import boolean, float_dtype, positive, real, reject
from tvmgraph.nn._parameters import new_parameter
from tvmgraph.nn.basic import Dense
from tvmgraph.nn.cell import Cell


class MultiheadAttention(Cell):
    r"""Attention with several heads: :math:`softmax(Q K^T / \sqrt{d}) V` for each, joined by a
    dense layer.

    Args:
        embed_dim: Size of queries and outputs, :math:`E`.
        num_heads: Number of heads; it divides ``embed_dim``.
        dropout: Probability of a zero attention weight in training.
        has_bias: Whether the projections have biases.
        add_bias_kv: Whether a learned row is appended to keys and values.
        add_zero_attn: Whether a row of zeros is appended to keys and values.
        kdim: Size of a key; ``embed_dim`` by default.
        vdim: Size of a value; ``embed_dim`` by default.
        batch_first: Whether inputs are (batch, time, size).
        dtype: Type of the parameters.

    Inputs:
        - **query** (Tensor) - Shape :math:`(L, N, E)` or :math:`(L, E)`.
        - **key** (Tensor) - Shape :math:`(S, N, kdim)` or :math:`(S, kdim)`.
        - **value** (Tensor) - Shape :math:`(S, N, vdim)` or :math:`(S, vdim)`.
        - **key_padding_mask** (Tensor) - Shape :math:`(N, S)` or :math:`(S,)`: True (or a float
          that is added) where a key does not count.
        - **need_weights** (bool) - Whether the attention weights are returned.
        - **attn_mask** (Tensor) - Shape :math:`(L, S)` or :math:`(N \cdot heads, L, S)`: True (or a
          float that is added) where a query must not see a key.
        - **average_attn_weights** (bool) - Whether the weights are averaged over the heads.

    Outputs:
        Tuple of the result, shaped as the query, and (with ``need_weights``) the weights
        :math:`(N, L, S)`, or :math:`(N, heads, L, S)` when not averaged.

    Raises:
        ArgumentError: if ``num_heads`` does not divide ``embed_dim``.
        ShapeError: if the inputs do not fit.

    Example:
        >>> x = ops.ones((5, 2, 8))
        >>> y, weights = nn.MultiheadAttention(8, 2)(x, x, x)
        >>> y.shape, weights.shape
        ((5, 2, 8), (2, 5, 5))
    """

    in_proj_weight: Parameter  # or None, where sizes differ

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        has_bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        self.embed_dim = positive(op, "embed_dim", embed_dim)
        self.num_heads = positive(op, "num_heads", num_heads)
        if embed_dim % num_heads:
            reject(ArgumentError, op, f"num_heads={num_heads} must divide embed_dim={embed_dim}")
        self.head_dim = embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else positive(op, "kdim", kdim)
        self.vdim = embed_dim if vdim is None else positive(op, "vdim", vdim)
        self.dropout = float(real(op, "dropout", dropout, 0, 1, "[)"))
        self.has_bias = boolean(op, "has_bias", has_bias)
        self.add_zero_attn = boolean(op, "add_zero_attn", add_zero_attn)
        self.batch_first = boolean(op, "batch_first", batch_first)
        self.dtype = float_dtype(op, dtype)
        self._build(boolean(op, "add_bias_kv", add_bias_kv), self.dtype)

    def _build(self, add_bias_kv: bool, dtype: dtypes.DType) -> None:
        op, e = type(self).__name__, self.embed_dim
        self.in_proj_weight = None  # pyright: ignore[reportAttributeAccessIssue]
        self.q_proj_weight = self.k_proj_weight = self.v_proj_weight = None
        shapes = {"in_proj_weight": (3 * e, e)}
        if (self.kdim, self.vdim) != (e, e):
            shapes = {
                "q_proj_weight": (e, e),
                "k_proj_weight": (e, self.kdim),
                "v_proj_weight": (e, self.vdim),
            }
        for name, shape in shapes.items():
            setattr(self, name, new_parameter(op, name, "xavier_uniform", shape, dtype))
        self.in_proj_bias = self.bias_k = self.bias_v = None
        if self.has_bias:
            self.in_proj_bias = new_parameter(op, "in_proj_bias", "zeros", (3 * e,), dtype)
        if add_bias_kv:
            self.bias_k = new_parameter(op, "bias_k", "xavier_normal", (1, 1, e), dtype)
            self.bias_v = new_parameter(op, "bias_v", "xavier_normal", (1, 1, e), dtype)
        self.out_proj = Dense(e, e, has_bias=self.has_bias, dtype=dtype)

    def construct(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
    ) -> tuple[Tensor, ...]:
        self._check_inputs(query, key, value)
        single = query.ndim == 2
        axis = 0 if self.batch_first else 1
        q, k, v = (F.expand_dims(t, axis) if single else t for t in (query, key, value))
        if single and key_padding_mask is not None and key_padding_mask.ndim == 1:
            key_padding_mask = F.expand_dims(key_padding_mask, 0)
        if self.batch_first:
            q, k, v = (F.transpose(t, (1, 0, 2)) for t in (q, k, v))
        q, k, v = self._project(q, k, v)
        self._check_masks(attn_mask, key_padding_mask, q, k)
        rows = None
        if self.bias_k is not None and self.bias_v is not None:
            rows = self.compute(self.bias_k), self.compute(self.bias_v)
        k, v = appended((k, v), rows, self.add_zero_attn)
        mask = summed_masks(attn_mask, key_padding_mask, q, self.num_heads, k.shape[0])
        out, weights = self._attend(q, k, v, mask)
        if self.batch_first:
            out = F.transpose(out, (1, 0, 2))
        out = F.squeeze(out, axis) if single else out
        if not need_weights:
            return (out,)
        if average_attn_weights:
            weights = F.mean(weights, (1,), False)
        return out, F.squeeze(weights, 0) if single else weights

    def _check_inputs(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        op = type(self).__name__
        got = f"query={query.aval}, key={key.aval}, value={value.aval}"
        if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
            reject(ShapeError, op, "query, key and value must all have 3 axes (or all 2)", got)
        for name, t, size in (("query", query, self.embed_dim), ("key", key, self.kdim),
                              ("value", value, self.vdim)):  # fmt: skip
            if t.shape[-1] != size:
                reject(ShapeError, op, f"the last axis of {name} must have {size} elements, "
                       f"not {t.shape[-1]}", got)  # fmt: skip
        if key.shape[:-1] != value.shape[:-1]:
            reject(ShapeError, op, "key and value must have the same length and batch", got)
        batch = 0 if self.batch_first else 1
        if query.ndim == 3 and query.shape[batch] != key.shape[batch]:
            reject(ShapeError, op, "query and key must have the same batch", got)

    def _project(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Applies the three input projections, as one product when all inputs are one tensor."""
        bias = None if self.in_proj_bias is None else self.compute(self.in_proj_bias)
        e = self.embed_dim
        if self.in_proj_weight is None:
            weights = [self.compute(getattr(self, f"{n}_proj_weight")) for n in "qkv"]
        else:
            return project_packed(
                (q, k, v), self.compute(self.in_proj_weight), bias, q is k and k is v
            )
        biases = (None, None, None) if bias is None else F.split(bias, e, axis=0)
        q, k, v = (F.dense(t, w, b) for t, w, b in zip((q, k, v), weights, biases))
        return q, k, v

    def _check_masks(
        self, attn: Tensor | None, padding: Tensor | None, q: Tensor, k: Tensor
    ) -> None:
        op, n, size = type(self).__name__, q.shape[1], k.shape[0]
        square = (q.shape[0], size)
        shapes = [square, (n * self.num_heads, *square)]
        if attn is not None and attn.shape not in shapes:
            reject(ShapeError, op, f"attn_mask must have one of the shapes {shapes}",
                   f"attn_mask={attn.aval}")  # fmt: skip
        if padding is not None and padding.shape != (n, size):
            reject(ShapeError, op, f"key_padding_mask must have the shape {(n, size)}",
                   f"key_padding_mask={padding.aval}")  # fmt: skip
        for name, mask in (("attn_mask", attn), ("key_padding_mask", padding)):
            if mask is not None and mask.dtype.kind == "c":
                reject(DTypeError, op, f"{name} must be bool or float", f"{name}={mask.aval}")

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        dropout = self.dropout if self.training else 0.0
        out, weights = attend(q, k, v, mask, self.num_heads, dropout)
        return self.out_proj(out), weights


def project_packed(
    inputs: tuple[Tensor, Tensor, Tensor], weight: Tensor, bias: Tensor | None, same: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns query, key and value times the thirds of one matrix.

    Args:
        inputs: Tensors (..., E).
        weight: Shape (3 E, E).
        bias: Shape (3 E,).
        same: Whether all inputs are one tensor, which one product serves.
    """
    if same:
        return tuple(F.chunk(F.dense(inputs[0], weight, bias), 3, -1))
    biases = (None, None, None) if bias is None else F.chunk(bias, 3, 0)
    q, k, v = (F.dense(t, w, b) for t, w, b in zip(inputs, F.chunk(weight, 3, 0), biases))
    return q, k, v


def appended(
    pair: tuple[Tensor, Tensor], rows: tuple[Tensor, Tensor] | None, zeros: bool
) -> tuple[Tensor, Tensor]:
    """Returns keys and values with their learned rows and a row of zeros, which no mask hides.

    Args:
        pair: Keys and values (S, N, E).
        rows: What is appended to keys and to values, shapes that broadcast to (1, N, E).
        zeros: Whether a row of zeros is appended, too.
    """
    k, v = pair
    shape = (1, *k.shape[1:])
    if rows is not None:
        k, v = (F.concat((t, F.broadcast_to(row, shape))) for t, row in zip(pair, rows))
    if zeros:
        k, v = (F.concat((t, F.zeros(shape, t.dtype))) for t in (k, v))
    return k, v


def summed_masks(
    attn: Tensor | None, padding: Tensor | None, q: Tensor, heads: int, keys: int
) -> Tensor | None:
    """Returns what both masks add to the scores, of a shape that broadcasts to (N, heads, L, S).

    Args:
        attn: Where queries see no key, (L, S) or (N * heads, L, S), or None.
        padding: Which keys nobody sees, (N, S), or None.
        q: Queries (L, N, E).
        heads: Number of heads.
        keys: Number of keys, S and those that were appended, which are seen.
    """
    length, batch = q.shape[:2]
    total = None
    for mask, shape in ((attn, (-1, heads, length)), (padding, (batch, 1, 1))):
        if mask is None:
            continue
        if mask is attn and mask.ndim == 2:
            shape = (1, 1, length)
        part = additive_mask(F.reshape(mask, (*shape, mask.shape[-1])), q.dtype)
        part = F.pad(part, (0, keys - part.shape[-1])) if keys > part.shape[-1] else part
        total = part if total is None else total + part
    return total


def additive_mask(mask: Tensor, dtype: dtypes.DType) -> Tensor:
    """Returns what is added to scores: minus infinity where a mask is not zero.

    Args:
        mask: bool or integers; floats are added as they are.
        dtype: dtype of the result.
    """
    if mask.dtype.is_float:
        return F.cast(mask, dtype)
    blocked = mask if mask.dtype is dtypes.bool_ else F.not_equal(mask, 0)
    return F.cast(F.where(blocked, float("-inf"), 0.0), dtype)


def attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, heads: int, dropout: float
) -> tuple[Tensor, Tensor]:
    """Attention of several heads, without projections.

    Args:
        q: Queries (L, N, E).
        k: Keys (S, N, E).
        v: Values (S, N, E).
        mask: What is added to the scores; broadcasts to (N, heads, L, S).
        heads: Number of heads, a divisor of E.
        dropout: Share of the weights that is dropped.

    Returns:
        The result (L, N, E), and the weights (N, heads, L, S).
    """
    length, n, width = q.shape
    size = width // heads

    def split(t: Tensor, order: tuple[int, ...]) -> Tensor:
        return F.transpose(F.reshape(t, (t.shape[0], n, heads, size)), order)

    scaled = split(q, (1, 2, 0, 3)) * (1.0 / math.sqrt(size))
    scores = F.matmul(scaled, split(k, (1, 2, 3, 0)))  # (N, heads, L, S)
    if mask is not None:
        scores = scores + mask
    weights = F.softmax(scores, -1)
    if dropout:
        weights = F.dropout(weights, p=dropout, training=True)
    mixed = F.matmul(weights, split(v, (1, 2, 0, 3)))
    return F.reshape(F.transpose(mixed, (2, 0, 1, 3)), (length, n, width)), weights


__all__ = ["MultiheadAttention"]

__path__, __getattr__ = as_package(__name__)  # a package in MindSpore
