"""Helpers of MindSpore's file of attention and resizing that zoos build their own layers from."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.nn.transformer import appended, attend, project_packed, summed_masks

_OP = "multi_head_attention"


def _inner_dropout(x: Tensor, p: float, training: bool) -> Tensor:
    return F.dropout(x, p) if training and p > 0 else x


def _inner_pad(x: Tensor, padding: Sequence[int], value: float | None = None) -> Tensor:
    """Pads a mask; one of bools as numbers."""
    kind = x.dtype
    whole = x.astype(dtypes.int32) if kind == dtypes.bool_ else x
    return F.pad(whole, padding, "constant", value).astype(kind)


def _expect(what: str, found: tuple[int, ...], want: tuple[int, ...]) -> None:
    if tuple(found) != want:
        raise ShapeError(f"{what} must be of shape {want}", op=_OP, got=f"{tuple(found)}")


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Returns query, key and value, each times its own weights."""
    width = q.shape[-1]
    found: list[Tensor] = []
    for name, x, weight, bias in (
        ("query", q, w_q, b_q), ("key", k, w_k, b_k), ("value", v, w_v, b_v),
    ):  # fmt: skip
        _expect(f"weights of the {name}", weight.shape, (width, x.shape[-1]))
        if bias is not None:
            _expect(f"the bias of the {name}", bias.shape, (width,))
        found.append(F.dense(x, weight, bias))
    return tuple(found)


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None, k_is_v: bool, q_is_k: bool
) -> tuple[Tensor, ...]:
    """Returns query, key and value times the thirds of one matrix."""
    return project_packed((q, k, v), w, b, k_is_v and q_is_k)


def _check_qkv_shape(query_ndim: int, key_ndim: int, value_ndim: int) -> bool:
    """Returns whether query, key and value, all of two or all of three axes, are batches."""
    if query_ndim not in (2, 3) or (key_ndim, value_ndim) != (query_ndim, query_ndim):
        ranks = f"{query_ndim}, {key_ndim} and {value_ndim} axes"
        raise ShapeError(
            "query, key and value must all have 2 axes or all 3, those of batches",
            op=_OP, got=ranks,
        )  # fmt: skip
    return query_ndim == 3


def _check_kpm_shape(query_ndim: int, kmp_ndim: int) -> None:
    if kmp_ndim != query_ndim - 1:
        rule = f"key_padding_mask must have {query_ndim - 1} axes"
        raise ShapeError(rule, op=_OP, got=f"{kmp_ndim} axes")


def _check_attn_mask_shape(
    query_ndim: int,
    query_shape: Sequence[int],
    key_shape: Sequence[int],
    attn_mask_ndim: int,
    attn_mask_shape: Sequence[int],
    num_heads: int,
) -> None:
    if attn_mask_ndim not in (2, 3):
        raise ShapeError("attn_mask must have 2 or 3 axes", op=_OP, got=f"{attn_mask_ndim} axes")
    if (query_ndim, attn_mask_ndim) == (2, 3):
        _expect("attn_mask", tuple(attn_mask_shape), (num_heads, query_shape[0], key_shape[0]))


def _interploate_ext_make_tuple(input: Tensor, value: object) -> Sequence[object]:
    """Returns a size or factor for each axis of space; the misspelling is MindSpore's."""
    return value if isinstance(value, (list, tuple)) else (value,) * (input.ndim - 2)


def _interpolate_ext_scale_factor_convert_size(
    input: Tensor,
    scale_factor: Sequence[float],
) -> tuple[int, ...]:
    """Returns the sizes of space times their factors."""
    return tuple(math.floor(size * by) for size, by in zip(input.shape[2:], scale_factor))


def _projected(
    inputs: tuple[Tensor, Tensor, Tensor],
    weights: Sequence[Tensor | None],
    bias: Tensor | None,
    same: tuple[bool, bool],
) -> tuple[Tensor, ...]:
    """Returns query, key and value times their weights: one matrix, or one each."""
    given = [w for w in weights if w is not None]
    if len(given) < len(weights):
        raise ArgumentError("weights of the projections are missing", op=_OP)
    if len(given) == 1:
        return _in_projection_packed(*inputs, given[0], bias, *same)
    w_q, w_k, w_v = given
    biases = (None,) * 3 if bias is None else F.chunk(bias, 3, 0)
    return _in_projection(*inputs, w_q, w_k, w_v, *biases)


def _without_heads(t: Tensor, batch: int) -> Tensor:
    """Turns (N * heads, S, E / heads) into (S, N, E)."""
    return F.reshape(F.transpose(t, (1, 0, 2)), (t.shape[1], batch, -1))


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    k_is_v: bool = False,
    q_is_k: bool = False,
    dtype: dtypes.DType = dtypes.float32,
) -> tuple[Tensor, Tensor]:
    """Returns what :class:`nn.MultiheadAttention` returns, of weights that are given.

    Args:
        query: Shape (L, N, E) or (L, E); ``key`` and ``value`` alike, of S instead of L.
        embed_dim_to_check: What E must be, a multiple of ``num_heads``.
        in_proj_weight: Shape (3 E, E), or with ``use_separate_proj_weight`` those of their own.
        bias_k: A row that is appended to keys; ``bias_v`` to values, ``add_zero_attn`` to both.
        static_k: Keys (N * heads, S, E / heads) instead of those of ``key``; ``static_v`` alike.
        attn_mask: Where queries see no key; ``key_padding_mask`` where nobody does.
        k_is_v: Whether key and value are one tensor; ``q_is_k`` alike.

    Raises:
        ShapeError: if what is given does not fit.
        ArgumentError: if weights are missing.
    """
    single = not _check_qkv_shape(query.ndim, key.ndim, value.ndim)
    if single:
        query, key, value = (F.expand_dims(t, 1) for t in (query, key, value))
    _expect("each query", (query.shape[-1],), (embed_dim_to_check,))
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    weights = separate if use_separate_proj_weight else (in_proj_weight,)
    q, k, v = _projected((query, key, value), weights, in_proj_bias, (k_is_v, q_is_k))
    rows = None if bias_k is None or bias_v is None else (bias_k, bias_v)
    k, v = appended((k, v), rows, add_zero_attn)
    k, v = (
        t if f is None else _without_heads(f, q.shape[1]) for t, f in ((k, static_k), (v, static_v))
    )
    causal = ~F.tril(F.ones((q.shape[0], k.shape[0]), dtypes.bool_)) if is_causal else attn_mask
    mask = summed_masks(causal, key_padding_mask, q, num_heads, k.shape[0])
    out, shares = attend(q, k, v, mask, num_heads, dropout_p if training else 0.0)
    out = F.dense(out, out_proj_weight, out_proj_bias)
    shares = F.mean(shares, (1,), False) if average_attn_weights else shares
    return (F.squeeze(out, 1), F.squeeze(shares, 0)) if single else (out, shares)
