"""Attention as one operator, which compiled graphs use in place of product, softmax, product.

So it is of one token over the tokens before it, whose keys and values are kept. By MindSpore's name
it is a function of basic operators, which compiled inference runs as one kernel.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Attrs
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import F, Reason, Sample, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits, equation
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.ops.common.arguments import bad, require, require_tensor
from tvmgraph.ops.common.window import Point
from tvmgraph.ops.internal.rows import NO_DERIVATIVE, NO_ONNX

__all__ = ["cached_attention", "flash_attention_score", "fused_attention"]

#: The order in which every operand is described: batch, heads, sequence, size of a head.
_AXES = "BNSD"


def extents(shape: tuple[object, ...], layout: str) -> tuple[Any, ...]:
    """The extents of a tensor in the order batch, heads, sequence, size.

    Args:
        shape: Sizes of the axes in ``layout``'s order.
        layout: The order of the axes, four letters.
    """
    return tuple(shape[layout.index(axis)] for axis in _AXES)


def in_layout(extents: tuple[object, ...], layout: str) -> tuple[Any, ...]:
    """Extents in the order batch, heads, sequence, size as the shape of a tensor.

    Args:
        extents: The four sizes.
        layout: The order of the axes, four letters.
    """
    named = dict(zip(_AXES, extents))
    return tuple(named[axis] for axis in layout)


class Settings(TypedDict):
    """Attributes of an attention.

    Attributes:
        scale: Factor of the scores.
        diagonal: Keys that come later than a query by more than this are hidden; ``None`` hides
            none.
        fill: What replaces the scores where a bool mask holds; ``None`` if the mask is added.
        layouts: Orders of the axes of query, key, value and result.
    """

    scale: float
    diagonal: int | None
    fill: float | None
    layouts: tuple[str, ...]


def infer_attention(*inputs: TensorType, **attrs: Unpack[Settings]) -> TensorType:
    """The type of the result; checks that query, key, value and mask fit together.

    Args:
        *inputs: Types of query, key, value and possibly a mask.
        **attrs: See :class:`Settings`.

    Raises:
        ShapeError: if shapes do not fit together.
        DTypeError: if dtypes do not.
        ArgumentError: if there are too many operands, or a layout is none.
    """
    if len(inputs) not in (3, 4):
        raise ArgumentError("query, key, value and at most one mask are needed")
    layouts = attrs["layouts"]
    check_layouts(layouts, 4)
    rules.require_same_dtype(*inputs[:3])
    rules.require_dtype(inputs[0], dtypes.FLOATS)
    if any(t.ndim != 4 for t in inputs):
        raise ShapeError("all operands must have 4 axes")
    q, k, v = (extents(t.shape, order) for t, order in zip(inputs[:3], layouts))
    if k[:3] != v[:3] or q[0] != k[0] or q[3] != k[3] or q[1] % k[1]:
        raise ShapeError("batches, heads, lengths of key and value, or sizes of a head differ")
    if len(inputs) == 4:
        _check_mask(inputs[3], (*q[:3], k[2]), attrs["fill"])
    return inputs[0].with_shape(in_layout((*q[:3], v[3]), layouts[3]))


def check_layouts(layouts: tuple[str, ...], count: int) -> None:
    """Makes sure that there are some number of orders of the axes.

    Args:
        layouts: The orders.
        count: How many there must be.

    Raises:
        ArgumentError: if there are more or less, or one is no order.
    """
    if len(layouts) != count or any(sorted(layout) != sorted(_AXES) for layout in layouts):
        raise ArgumentError(f"layouts must be {count} orders of the letters {_AXES}")


def _check_mask(mask: TensorType, scores: tuple[object, ...], fill: float | None) -> None:
    if any(m not in (1, extent) for m, extent in zip(mask.shape, scores)):
        raise ShapeError(f"the mask must broadcast to {scores}")
    if (mask.dtype is dtypes.bool_) != (fill is not None):
        raise ArgumentError("fill belongs to a bool mask, and only to one")
    if fill is None:
        rules.require_dtype(mask, dtypes.FLOATS)


def _eager(*inputs: np.ndarray, **attrs: Unpack[Settings]) -> np.ndarray:
    dtype, layouts = inputs[0].dtype, attrs["layouts"]
    scores, _ = numpy_scores(*inputs, **attrs)
    v = in_order(inputs[2], layouts[2], scores.shape[1])
    e = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = np.matmul(e / e.sum(-1, keepdims=True), v)
    return mixed.transpose([_AXES.index(axis) for axis in layouts[3]]).astype(dtype)


def in_order(x: np.ndarray, layout: str, heads: int = 0) -> np.ndarray:
    """An operand in the type of the sums and the order batch, heads, sequence, size.

    Args:
        x: The operand.
        layout: The order of its axes.
        heads: How many heads to repeat its heads to; 0 leaves them.
    """
    wide = np.float32 if x.dtype.itemsize == 2 else x.dtype.type
    x = x.transpose([layout.index(axis) for axis in _AXES]).astype(wide)
    return np.repeat(x, heads // x.shape[1], axis=1) if heads else x


def numpy_scores(*inputs: np.ndarray, **attrs: Unpack[Settings]) -> tuple[np.ndarray, np.ndarray]:
    """The masked scores, and where they do not depend on query and key.

    Args:
        *inputs: Query, key, value and possibly a mask.
        **attrs: See :class:`Settings`.

    Returns:
        Both of shape (batch, heads, queries, keys).
    """
    layouts, fill, diagonal = attrs["layouts"], attrs["fill"], attrs["diagonal"]
    q = in_order(inputs[0], layouts[0])
    k = in_order(inputs[1], layouts[1], q.shape[1])
    scores = np.matmul(q, k.swapaxes(2, 3)) * q.dtype.type(attrs["scale"])
    fixed = np.zeros(scores.shape, bool)
    if len(inputs) == 4:
        mask = inputs[3]
        if fill is None:
            scores = scores + mask
        else:
            fixed = fixed | mask
            scores = np.where(mask, q.dtype.type(fill), scores)
    if diagonal is not None:
        hidden = np.triu(np.ones(scores.shape[2:], bool), diagonal + 1)
        fixed = fixed | hidden
        scores = np.where(hidden, q.dtype.type(-np.inf), scores)
    return scores, fixed


def _lower(R: Builder, *inputs: Expr, **attrs: Unpack[Settings]) -> Expr:
    """A kernel of plain loops, which says what it computes so that a schedule can do better."""
    kinds = [dict(zip(order, R.type(x).shape)) for x, order in zip(inputs[:3], attrs["layouts"])]
    known = all(isinstance(kind[axis], int) for kind in kinds for axis in "ND")
    written_as = ("attention", json.dumps(attrs)) if known else None
    return R.emit_te(_Loops(R, attrs).attention, *inputs, written_as=written_as)


class _Loops:
    """The operator as tensor expressions, one stage after the other."""

    def __init__(self, R: Builder, said: Settings) -> None:
        self.te, self.tir = R.te, R.tir
        self.said = said

    def attention(self, q: Expr, k: Expr, v: Expr, *mask: Expr) -> Expr:
        """softmax(scale q k^T + mask) v."""
        te, layouts = self.te, self.said["layouts"]
        b, n, s, d = extents(tuple(q.shape), layouts[0])
        _, kv_heads, length, _ = extents(tuple(k.shape), layouts[1])
        size = extents(tuple(v.shape), layouts[2])[3]
        dtype = str(q.dtype)
        wide = dtype if dtype == "float64" else "float32"
        share = self.tir.floordiv(n, kv_heads)

        def at(x: Expr, layout: str, *index: object) -> Expr:
            named = dict(zip(_AXES, index))
            return x[tuple(named[axis] for axis in layout)].astype(wide)

        r = te.reduce_axis((0, d), name="r")
        scores = te.compute(
            (b, n, s, length),
            lambda i, h, row, col: te.sum(
                at(q, layouts[0], i, h, row, r)
                * at(k, layouts[1], i, self.tir.floordiv(h, share), col, r),
                axis=r,
            ),
        )
        hidden = te.compute((b, n, s, length), lambda *i: self._hide(scores[i], i, mask, wide))
        e, total = self._softmax(hidden)
        j = te.reduce_axis((0, length), name="j")
        mixed = te.compute(
            (b, n, s, size),
            lambda i, h, row, col: te.sum(
                e[i, h, row, j] * at(v, layouts[2], i, self.tir.floordiv(h, share), j, col), axis=j
            ),
        )
        result = in_layout((b, n, s, size), layouts[3])

        def element(*index: Expr) -> Expr:
            named = dict(zip(layouts[3], index))
            place = tuple(named[axis] for axis in _AXES)
            return (mixed[place] / total[place[:3]]).astype(dtype)

        return te.compute(result, element, name="attention")

    def _softmax(self, scores: Expr) -> tuple[Expr, Expr]:
        """The exponentials of the scores less their maximum, and the sum of those of a query."""
        te, rows, keys = self.te, tuple(scores.shape[:3]), scores.shape[3]
        j1, j2 = (te.reduce_axis((0, keys), name=f"j{x}") for x in (1, 2))
        top = te.compute(rows, lambda *i: te.max(scores[(*i, j1)], axis=j1))
        e = te.compute(scores.shape, lambda *i: te.exp(scores[i] - top[i[:3]]))
        return e, te.compute(rows, lambda *i: te.sum(e[(*i, j2)], axis=j2))

    def _hide(self, score: Expr, index: Point, mask: tuple[Expr, ...], wide: str) -> Expr:
        score = score * self.tir.const(self.said["scale"], wide)
        for m in mask:
            place = (
                0 if isinstance(extent, self.tir.IntImm) and int(extent) == 1 else i
                for i, extent in zip(index, m.shape)
            )
            value = m[tuple(place)]
            if self.said["fill"] is None:
                score = score + value.astype(wide)
            else:
                score = self.te.if_then_else(value, self.tir.const(self.said["fill"], wide), score)
        if self.said["diagonal"] is None:
            return score
        seen = index[3] <= index[2] + self.said["diagonal"]
        return self.te.if_then_else(seen, score, self.tir.const(float("-inf"), wide))


_PLAIN = ("BNSD",) * 4


def _sample(*shapes: object, **attrs: Any) -> Sample:
    defaults = {"scale": 0.5, "diagonal": None, "fill": None, "layouts": _PLAIN}
    dtype = attrs.pop("dtype", "float32")
    return sample(*shapes, attrs=defaults | attrs, dtype=dtype, grad=False)


def _attention_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """Batches, heads where key and value have as many, and the size of a value."""
    layouts = attrs["layouts"]
    heads = [extents(t.shape, order)[1] for t, order in zip(types, layouts)]
    head = "h" if heads[0] == heads[1] else "."
    words = [[{"B": "b", "N": head}.get(axis, ".") for axis in order] for order in layouts]
    for place in (2, 3):
        words[place][layouts[place].index("D")] = "v"
    return equation([*words[:3], *[["b", head, ".", "."]] * (len(types) - 3)], [words[3]])


@primitive(
    infer=infer_attention,
    traits=Traits(Pattern.OPAQUE, _attention_factors),
    eager=_eager,
    lower=_lower,
    vjp=NO_DERIVATIVE,
    onnx=NO_ONNX,
    samples=[
        _sample((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8)),
        _sample((1, 4, 33, 16), (1, 2, 70, 16), (1, 2, 70, 20), diagonal=37),
        _sample((1, 2, 1, 64), (1, 2, 77, 64), (1, 2, 77, 64), (1, 1, 1, 77)),
        _sample(
            (2, 50, 3, 16), (2, 50, 3, 16), (2, 50, 3, 16), (1, 3, 50, 50),
            fill=-1e9, layouts=("BSND",) * 4, dtype=("float32",) * 3 + ("bool",),
        ),
        _sample((1, 2, 9, 8), (1, 2, 9, 8), (1, 2, 9, 8), dtype="float16", diagonal=0),
        _sample((1, 2, 9, 8), (1, 2, 9, 8), (1, 2, 9, 8), dtype="bfloat16"),
        _sample((1, 2, 20, 8), (1, 2, 20, 8), (1, 2, 20, 8), dtype="float64", diagonal=0),
    ],
)  # fmt: skip
def fused_attention(
    *inputs: Tensor,
    scale: float,
    diagonal: int | None,
    fill: float | None,
    layouts: tuple[str, ...],
) -> Tensor:
    r"""Attention :math:`softmax(scale \cdot Q K^T + mask) V` in one pass.

    Compiled code never holds the scores of all queries and keys: memory grows linearly with the
    lengths (Milakov and Gimelshein 2018, Dao et al. 2022). Sums are float32 for float16 and
    bfloat16.

    Args:
        *inputs: Query, key, value, and at most one mask that broadcasts to (batch, heads, queries,
            keys): a float, which is added, or a bool, True where a score is replaced by ``fill``.
            Several heads of the query may share one of key and value.
        scale: Factor of the scores.
        diagonal: Query i sees the keys up to i + ``diagonal``; None for all.
        fill: What replaces the scores under a bool mask.
        layouts: Order of the axes B (batch), N (heads), S (sequence) and D (size of a head) in
            query, key, value and result, such as ``"BNSD"``.

    Returns:
        Tensor in the last layout, with the lengths of the query and the head size of the value.

    Raises:
        ShapeError: if the extents do not fit.

    Example:
        >>> x = ops.ones((1, 2, 3, 4))
        >>> ops.fused_attention(x, x, x, scale=0.5, diagonal=0, fill=None,
        ...                     layouts=("BNSD",) * 4).shape
        (1, 2, 3, 4)
    """
    ...


# ---- attention to a cache -----------------------------------------------------------------------


def _infer(
    query: TensorType, key: TensorType, value: TensorType, cache: TensorType, span: TensorType,
    *, layer: int, scale: float,
) -> TensorType:  # fmt: skip
    for t in (query, key, value):
        rules.require_ndim(t, (3,))
    rules.require_ndim(cache, (6,))
    rules.require_dtype(query, (dtypes.float32,))
    rules.require_same_dtype(query, key, value, cache)
    rules.require_dtype(span, (dtypes.int32,))
    batch, heads, size = query.shape
    kept = key.shape[1]
    if key.shape != value.shape or key.shape != (batch, kept, size):
        raise ShapeError("key and value must have the batch and the size of a head of query")
    if not (isinstance(heads, int) and isinstance(kept, int)) or heads % kept:
        raise ShapeError("heads of key and value must divide those of query")
    if (cache.shape[1], *cache.shape[3:]) != (2, *key.shape):
        raise ShapeError(f"the cache must have the axes (layers, 2, tokens) before {key.shape}")
    if span.shape != (batch, 2):
        raise ShapeError(f"span must be of shape {(batch, 2)}")
    if not 0 <= layer < cache.shape[0]:  # pyright: ignore[reportOperatorIssue]
        raise ArgumentError(f"the cache has {cache.shape[0]} layers", got=f"layer={layer}")
    return query


def _eager_cached(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, cache: np.ndarray, span: np.ndarray,
    *, layer: int, scale: float,
) -> np.ndarray:  # fmt: skip
    result, share = np.empty_like(query), query.shape[1] // key.shape[1]
    for n, (first, end) in enumerate(span):
        keys = np.concatenate([cache[layer, 0, first:end, n], key[n : n + 1]])
        values = np.concatenate([cache[layer, 1, first:end, n], value[n : n + 1]])
        keys, values = (np.repeat(x, share, 1) for x in (keys, values))
        scores = np.einsum("hd,shd->hs", query[n], keys) * np.float32(scale)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        result[n] = np.einsum("hs,shd->hd", e / e.sum(-1, keepdims=True), values)
    return result


def _lower_cached(
    R: Builder,
    query: Expr,
    key: Expr,
    value: Expr,
    cache: Expr,
    span: Expr,
    *,
    layer: int,
    scale: float,
) -> Expr:
    """Loops over all that the cache has room for, where there is no kernel that stops earlier."""
    te, tir = R.te, R.tir

    def attention(q: Expr, k: Expr, v: Expr, kept: Expr, at: Expr) -> Expr:
        share, length, size = tir.floordiv(q.shape[1], k.shape[1]), kept.shape[2], q.shape[2]
        rows = tuple(q.shape[:2])
        last = length + 1  # the token itself

        def either(which: int, new: Expr, n: Expr, h: Expr, s: Expr, d: Expr) -> Expr:
            h, place = tir.floordiv(h, share), tir.min(s, length - 1)
            return tir.Select(s < length, kept[layer, which, place, n, h, d], new[n, h, d])

        d = te.reduce_axis((0, size), name="d")
        scores = te.compute(
            (*rows, last), lambda n, h, s: te.sum(q[n, h, d] * either(0, k, n, h, s, d), axis=d)
        )

        def shown(n: Expr, h: Expr, s: Expr) -> Expr:
            inside = tir.all(s >= at[n, 0].astype("int64"), s < at[n, 1].astype("int64"))
            least = tir.const(-np.inf, "float32")
            score = scores[n, h, s] * tir.const(scale, "float32")
            return tir.Select(tir.any(inside, s >= length), score, least)

        seen = te.compute((*rows, last), shown)
        j = [te.reduce_axis((0, last), name=f"j{i}") for i in range(3)]
        top = te.compute(rows, lambda n, h: te.max(seen[n, h, j[0]], axis=j[0]))
        e = te.compute((*rows, last), lambda n, h, s: te.exp(seen[n, h, s] - top[n, h]))
        total = te.compute(rows, lambda n, h: te.sum(e[n, h, j[1]], axis=j[1]))
        mixed = te.compute(
            (*rows, size),
            lambda n, h, d: te.sum(e[n, h, j[2]] * either(1, v, n, h, j[2], d), axis=j[2]),
        )
        return te.compute(
            (*rows, size), lambda n, h, d: mixed[n, h, d] / total[n, h], name="cached_attention"
        )

    operands = (query, key, value, cache, span)
    return R.emit_te(attention, *operands, written_as=("cached_attention", f"{layer} {scale!r}"))


def _sample_cached(
    batch: int, heads: tuple[int, int], size: int, span: object, layer: int = 0
) -> Sample:
    new = (batch, heads[1], size)
    span = np.array(span, np.int32)
    cache = (2, 2, int(span.max()) + 3, *new)
    return sample(
        (batch, heads[0], size), new, new, cache, span, layer=layer, scale=0.4, grad=False
    )


@primitive(
    infer=_infer,
    traits=Traits(Pattern.OPAQUE, "n . ., n . ., n . ., . . . n . ., n . -> n . ."),
    eager=_eager_cached,
    lower=_lower_cached,
    vjp=Reason("text is made without derivatives; the network without a cache is trained"),
    onnx=Reason("ONNX has no operator that stops at the last token; export the network itself"),
    samples=[
        _sample_cached(1, (4, 4), 16, [[0, 5]]),
        _sample_cached(2, (4, 2), 32, [[1, 70], [0, 70]], layer=1),
        _sample_cached(3, (2, 2), 6, [[0, 0], [0, 64], [5, 6]]),
        _sample_cached(1, (6, 1), 20, [[3, 129]]),
    ],
)
def cached_attention(
    query: Tensor, key: Tensor, value: Tensor, cache: Tensor, span: Tensor,
    *, layer: int, scale: float,
) -> Tensor:  # fmt: skip
    r"""Attention of the newest token of every text over itself and the ones before it.

    Args:
        query: float32 of shape (N, heads, D).
        key: Key of the newest token, (N, kept heads, D); so many divide the heads.
        value: Its value, likewise.
        cache: Keys and values of the tokens before it, (layers, 2, room, N, kept heads, D).
        span: int32 of shape (N, 2): the first token of a text that counts, and the end.
        layer: Which layer of the cache is read.
        scale: Factor of the scores.

    Returns:
        Tensor of the query's shape.

    Raises:
        ShapeError: if the extents do not fit.
        ArgumentError: if there is no such layer.

    Example:
        >>> x, cache = ops.ones((1, 2, 4)), ops.zeros((3, 2, 8, 1, 2, 4))
        >>> span = Tensor([[0, 5]], ms.int32)
        >>> ops.cached_attention(x, x, x, cache, span, layer=0, scale=0.5).shape
        (1, 2, 4)
    """
    ...


# ---- functions ----------------------------------------------------------------------------------


_NAME = "flash_attention_score"
#: How each layout becomes (batch, heads, sequence, size), given with its heads apart.
_TO_BNSD = {"BSH": (0, 2, 1, 3), "SBH": (1, 2, 0, 3), "BSND": (0, 2, 1, 3), "BNSD": (0, 1, 2, 3)}
_ALL = 2147483647


def flash_attention_score(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    real_shift: Tensor | None = None,
    drop_mask: Tensor | None = None,
    padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    prefix: object = None,
    actual_seq_qlen: object = None,
    actual_seq_kvlen: object = None,
    keep_prob: float = 1.0,
    scalar_value: float = 1.0,
    pre_tokens: int = _ALL,
    next_tokens: int = _ALL,
    inner_precise: int = 0,
    input_layout: str = "BSH",
    sparse_mode: int = 0,
) -> Tensor:
    r"""Attention :math:`softmax(scale \cdot Q K^T + shift) V` over several heads.

    Args:
        query: Queries in ``input_layout``.
        key: Keys, likewise; as many heads as the query has, or a divisor of that number.
        value: Values, likewise.
        head_num: Heads of the query, N.
        real_shift: What is added to the scores; broadcasts to (B, N, S, S').
        drop_mask: Not supported, with ``keep_prob`` below 1.
        padding_mask: Not supported, as in MindSpore.
        attn_mask: bool or integers, True where a key is hidden; broadcasts to (B, N, S, S').
        prefix: Not supported.
        actual_seq_qlen: Not supported.
        actual_seq_kvlen: Not supported.
        keep_prob: 1.
        scalar_value: The scale.
        pre_tokens: Query i sees keys from i - ``pre_tokens`` on (``sparse_mode`` 0).
        next_tokens: Query i sees keys up to i + ``next_tokens`` (``sparse_mode`` 0).
        inner_precise: Ignored: float16 and bfloat16 are always summed in float32.
        input_layout: ``"BSH"``, ``"SBH"``, ``"BSND"`` or ``"BNSD"``, with H = N D.
        sparse_mode: 0: the mask and the tokens as given; 2: query i sees keys up to i; 3: the last
            query sees all keys, and each one before it one less.

    Returns:
        Tensor of the query's layout.

    Raises:
        ArgumentError: if an argument has a value that is not supported.
        ShapeError: if the extents do not fit.

    Example:
        >>> x = ops.ones((1, 3, 8))
        >>> ops.flash_attention_score(x, x, x, 2, scalar_value=0.5, sparse_mode=2).shape
        (1, 3, 8)
    """
    given = {
        "drop_mask": drop_mask, "padding_mask": padding_mask, "prefix": prefix,
        "actual_seq_qlen": actual_seq_qlen, "actual_seq_kvlen": actual_seq_kvlen,
    }  # fmt: skip
    for name, argument in given.items():
        if argument is not None:
            raise bad(ArgumentError, f"{name} is not supported", _NAME, name, f"leave {name} out")
    require(keep_prob == 1.0, "keep_prob must be 1", _NAME, ArgumentError, keep_prob=keep_prob)
    if input_layout not in _TO_BNSD or sparse_mode not in (0, 2, 3):
        raise bad(ArgumentError, "this input_layout or sparse_mode is not supported", _NAME,
                  f"input_layout={input_layout!r}, sparse_mode={sparse_mode}",
                  f"use one of {', '.join(_TO_BNSD)} and 0, 2 or 3")  # fmt: skip
    q, k, v = (_heads(t, n, input_layout, head_num, query)
               for n, t in (("query", query), ("key", key), ("value", value)))  # fmt: skip
    scores = F.matmul(q, F.swapaxes(k, -1, -2)) * scalar_value
    if real_shift is not None:
        scores = scores + F.cast(real_shift, scores.dtype)
    hidden = _hidden(scores, attn_mask, pre_tokens, next_tokens, sparse_mode)
    if hidden is not None:
        scores = F.masked_fill(scores, hidden, float("-inf"))
    mixed = F.matmul(F.softmax(scores, -1), v)
    order = _TO_BNSD[input_layout]
    mixed = F.transpose(mixed, tuple(order.index(axis) for axis in range(4)))
    return F.reshape(mixed, (*mixed.shape[:2], -1)) if input_layout[-1] == "H" else mixed


def _heads(x: Tensor, name: str, layout: str, heads: int, query: Tensor) -> Tensor:
    """Takes the heads apart and brings the axes into the order batch, heads, sequence, size."""
    require_tensor(_NAME, x, name)
    if x.ndim != len(layout):
        raise bad(ShapeError, f"{name} must have the axes {layout}", _NAME, f"{name}={x.aval}")
    if layout[-1] == "H":
        size, rest = divmod(query.shape[-1], heads)
        if rest or x.shape[-1] % size:
            raise bad(ShapeError, f"{heads} heads do not divide the axis H of query and {name}",
                      _NAME, f"query={query.aval}, {name}={x.aval}, head_num={heads}")  # fmt: skip
        x = F.reshape(x, (*x.shape[:2], x.shape[-1] // size, size))
    x = F.transpose(x, _TO_BNSD[layout])
    share, rest = divmod(heads, x.shape[1])
    if rest or (name == "query" and share != 1):
        raise bad(ShapeError, f"{name} has {x.shape[1]} heads", _NAME, f"{name}={x.aval}",
                  f"head_num={heads} must be a multiple")  # fmt: skip
    return F.repeat_interleave(x, share, 1) if share > 1 else x


def _hidden(
    scores: Tensor, mask: Tensor | None, before: int, after: int, mode: int
) -> Tensor | None:
    """Where a query must not see a key, or None."""
    queries, keys = scores.shape[-2:]
    if mode:
        mask, before, after = None, _ALL, keys - queries if mode == 3 else 0
    hidden = None if mask is None else F.cast(mask, dtypes.bool_)
    rows = F.reshape(F.arange(queries), (queries, 1))
    columns = F.reshape(F.arange(keys), (1, keys))
    for limit, wrong in (
        (after < keys, lambda: columns > rows + after),
        (before < queries, lambda: columns < rows - before),
    ):
        if limit:
            hidden = wrong() if hidden is None else F.logical_or(hidden, wrong())
    return hidden
