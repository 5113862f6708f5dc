"""Attention of one token over the tokens before it, whose keys and values are kept."""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import Reason, Sample, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, ShapeError

__all__ = ["cached_attention"]


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


def _eager(
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


def _lower(
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


def _sample(batch: int, heads: tuple[int, int], size: int, span: object, layer: int = 0) -> Sample:
    new = (batch, heads[1], size)
    span = np.array(span, np.int32)
    cache = (2, 2, int(span.max()) + 3, *new)
    return sample(
        (batch, heads[0], size), new, new, cache, span, layer=layer, scale=0.4, grad=False
    )


@primitive(
    infer=_infer,
    traits=Traits(Pattern.OPAQUE, "n . ., n . ., n . ., . . . n . ., n . -> n . ."),
    eager=_eager,
    lower=_lower,
    vjp=Reason("text is made without derivatives; the network without a cache is trained"),
    onnx=Reason("ONNX has no operator that stops at the last token; export the network itself"),
    samples=[
        _sample(1, (4, 4), 16, [[0, 5]]),
        _sample(2, (4, 2), 32, [[1, 70], [0, 70]], layer=1),
        _sample(3, (2, 2), 6, [[0, 0], [0, 64], [5, 6]]),
        _sample(1, (6, 1), 20, [[3, 129]]),
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
