"""Attention in training: the result with what its derivative needs, and that derivative."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import Sample, sample
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.ops.attention import rows
from tvmgraph.ops.internal.rows import internal_row

__all__ = ["attention_gradient", "attention_with_statistics"]

_AXES = "BNSD"


def _statistics(query: TensorType, layout: str) -> TensorType:
    """The type of the statistics: two figures per query."""
    wide = dtypes.float64 if query.dtype is dtypes.float64 else dtypes.float32
    return tensor_type((*rows.extents(query.shape, layout)[:3], 2), wide)


def _infer_forward(*inputs: TensorType, **attrs: Any) -> tuple[TensorType, TensorType]:
    return rows.infer_attention(*inputs, **attrs), _statistics(inputs[0], attrs["layouts"][0])


def _numpy_statistics(scores: np.ndarray) -> np.ndarray:
    top = scores.max(-1)
    with np.errstate(all="ignore"):
        factor = 1 / np.exp(scores - top[..., None]).sum(-1)
    return np.stack([top, factor], -1)


def _eager_forward(*inputs: np.ndarray, **attrs: Any) -> tuple[np.ndarray, np.ndarray]:
    layouts = attrs["layouts"]
    scores, _ = rows.numpy_scores(*inputs, **attrs)
    statistics = _numpy_statistics(scores)
    weights = np.exp(scores - statistics[..., :1]) * statistics[..., 1:]
    mixed = np.matmul(weights, rows.in_order(inputs[2], layouts[2], scores.shape[1]))
    return _in_layout(mixed, layouts[3], inputs[0].dtype), statistics


def _in_layout(x: np.ndarray, layout: str, dtype: np.dtype) -> np.ndarray:
    return x.transpose([_AXES.index(axis) for axis in layout]).astype(dtype)


def _lower_forward(R: Builder, *inputs: Expr, **attrs: object) -> Sequence[Expr]:
    types = _infer_forward(*[R.type(x) for x in inputs], **attrs)
    said = json.dumps(attrs | {"statistics": True})
    return R.unpack(R.write("attention", said, inputs, types, symbolic=True), 2)


def _split(inputs: tuple[object, ...]) -> tuple[tuple[Any, ...], Any, Any, Any]:
    """Query, key, value and mask; result; statistics; cotangent."""
    return (*inputs[:-3],), inputs[-3], inputs[-2], inputs[-1]


def _infer_gradient(*inputs: TensorType, **attrs: Unpack[rows.Settings]) -> tuple[TensorType, ...]:
    layouts = attrs["layouts"]
    if len(inputs) not in (6, 7):
        raise ArgumentError(
            "query, key, value, at most one mask, result, statistics and cotangent are needed"
        )
    rows.check_layouts(layouts, 8)
    operands, out, statistics, cotangent = _split(inputs)
    forward: rows.Settings = {**attrs, "layouts": layouts[:4]}
    result = rows.infer_attention(*operands, **forward)
    rules.require_same_dtype(out, cotangent, result)
    if out.shape != result.shape or statistics != _statistics(operands[0], layouts[0]):
        raise ShapeError("the result or its statistics do not belong to the operands")
    if rows.extents(cotangent.shape, layouts[4]) != rows.extents(result.shape, layouts[3]):
        raise ShapeError("the cotangent must have the extents of the result")
    return tuple(
        t.with_shape(rows.in_layout(rows.extents(t.shape, order), wanted))
        for t, order, wanted in zip(operands, layouts, layouts[5:])
    )


def _eager_gradient(*inputs: np.ndarray, **attrs: Any) -> tuple[np.ndarray, ...]:
    operands, out, statistics, cotangent = _split(inputs)
    layouts, dtype = attrs["layouts"], out.dtype
    scores, fixed = rows.numpy_scores(*operands, **attrs | {"layouts": layouts[:4]})
    heads = scores.shape[1]
    weights = np.exp(scores - statistics[..., :1]) * statistics[..., 1:]
    q, g = rows.in_order(operands[0], layouts[0]), rows.in_order(cotangent, layouts[4])
    k, v = (rows.in_order(x, order, heads) for x, order in zip(operands[1:3], layouts[1:3]))
    mean = (g * rows.in_order(out, layouts[3])).sum(-1, keepdims=True)
    slopes = weights * (np.matmul(g, v.swapaxes(2, 3)) - mean) * q.dtype.type(attrs["scale"])
    slopes = np.where(fixed, q.dtype.type(0), slopes)
    own = operands[1].shape[layouts[1].index("N")]
    found = (
        np.matmul(slopes, k),
        _per_head(np.matmul(slopes.swapaxes(2, 3), q), own),
        _per_head(np.matmul(weights.swapaxes(2, 3), g), own),
    )
    return tuple(_in_layout(x, layout, dtype) for x, layout in zip(found, layouts[5:]))


def _per_head(x: np.ndarray, heads: int) -> np.ndarray:
    """The sum over the heads of the query that share one of key and value."""
    return x.reshape(x.shape[0], heads, -1, *x.shape[2:]).sum(2)


def _lower_gradient(R: Any, *inputs: Any, **attrs: Any) -> Sequence[Expr]:
    types = _infer_gradient(*[R.type(x) for x in inputs], **attrs)
    made = R.write("attention_gradient", json.dumps(attrs), inputs, types, symbolic=True)
    return R.unpack(made, 3)


_DEFAULTS = {"scale": 0.5, "diagonal": None, "fill": None}


def _sample(
    layout: str, *shapes: object, dtype: str | tuple[str, ...] = "float32", **attrs: Any
) -> Sample:
    attrs = _DEFAULTS | attrs | {"layouts": (layout,) * 4}
    return sample(*shapes, attrs=attrs, dtype=dtype, grad=False)


def _gradient_sample(layout: str, *shapes: Any, dtype: Any = "float32", **attrs: Any) -> Sample:
    """Operands whose statistics are true ones, so that the weights are weights."""
    *operands, out = shapes
    kinds = dtype if isinstance(dtype, tuple) else (dtype,) * len(operands)
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, 2, shape).astype(bool) if kind == "bool"
        else rng.uniform(-2, 2, shape).astype(dtypes.dtype_of(kind).numpy)
        for shape, kind in zip(operands, kinds)
    ]  # fmt: skip
    attrs = _DEFAULTS | attrs
    result, statistics = _eager_forward(*arrays, **attrs, layouts=(layout,) * 4)
    cotangent = rng.uniform(-2, 2, out).astype(result.dtype)
    return sample(*arrays, result, statistics, cotangent,
                  attrs=attrs | {"layouts": (layout,) * 8}, grad=False)  # fmt: skip


@internal_row(
    _infer_forward,
    _eager_forward,
    _lower_forward,
    multi=True,
    samples=[
        _sample("BNSD", (2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 12)),
        _sample("BSND", (1, 33, 2, 16), (1, 33, 2, 16), (1, 33, 2, 16), diagonal=0),
        _sample("BNSD", (1, 2, 9, 8), (1, 2, 9, 8), (1, 2, 9, 8), dtype="float64"),
    ],
)
def attention_with_statistics(
    *inputs: Tensor,
    scale: float,
    diagonal: int | None,
    fill: float | None,
    layouts: tuple[str, ...],
) -> tuple[Tensor, Tensor]:
    r"""Attention as :func:`fused_attention`, with what :func:`attention_gradient` needs.

    Args:
        *inputs: As for ``fused_attention``.
        scale: Likewise.
        diagonal: Likewise.
        fill: Likewise.
        layouts: Likewise.

    Returns:
        The result, and per query the largest score and one over the sum of the exponentials of
        all scores less that one, shape (batch, heads, queries, 2).

    Raises:
        ShapeError: if the extents do not fit.

    Example:
        >>> x = ops.ones((1, 2, 3, 4))
        >>> ops.attention_with_statistics(x, x, x, scale=0.5, diagonal=None, fill=None,
        ...                               layouts=("BNSD",) * 4)[1].shape
        (1, 2, 3, 2)
    """
    ...


@internal_row(
    _infer_gradient, _eager_gradient, _lower_gradient,
    multi=True,
    samples=[
        _gradient_sample("BNSD", (2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8), (2, 3, 5, 8)),
        _gradient_sample("BNSD", (1, 4, 70, 16), (1, 2, 150, 16), (1, 2, 150, 20),
                         (1, 4, 70, 20), diagonal=80),
        _gradient_sample("BSND", (2, 50, 3, 17), (2, 50, 3, 17), (2, 50, 3, 17), (1, 3, 50, 50),
                         (2, 50, 3, 17), fill=-1e9, dtype=("float32",) * 3 + ("bool",)),
        _gradient_sample("BNSD", (1, 1, 9, 8), (1, 1, 9, 8), (1, 1, 9, 8), (1, 1, 1, 9),
                         (1, 1, 9, 8), dtype="float64"),
    ],
)  # fmt: skip
def attention_gradient(
    *inputs: Tensor,
    scale: float,
    diagonal: int | None,
    fill: float | None,
    layouts: tuple[str, ...],
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Cotangents of query, key and value of an attention, in memory linear in the lengths.

    With the weights :math:`P`, computed again from the statistics, and the cotangent :math:`G`:
    :math:`dV = P^T G`, :math:`dS = scale \cdot P \circ (G V^T - \sum_d G \circ O)`,
    :math:`dQ = dS K`, :math:`dK = dS^T Q` (Dao et al. 2022). Sums are float32 for float16 and
    bfloat16.

    Args:
        *inputs: Query, key, value and mask as for ``fused_attention``; result and statistics of
            :func:`attention_with_statistics`; the cotangent of the result.
        scale: As for ``fused_attention``.
        diagonal: Likewise.
        fill: Likewise.
        layouts: Order of the axes in query, key, value, result, cotangent and the three results.

    Returns:
        The cotangents of query, key and value. Heads of the query that share one of key and value
        are summed.

    Raises:
        ShapeError: if the extents do not fit.

    Example:
        >>> x = ops.ones((1, 2, 3, 4))
        >>> said = {"scale": 0.5, "diagonal": None, "fill": None}
        >>> y, s = ops.attention_with_statistics(x, x, x, **said, layouts=("BNSD",) * 4)
        >>> ops.attention_gradient(x, x, x, y, s, x, **said, layouts=("BNSD",) * 8)[0].shape
        (1, 2, 3, 4)
    """
    ...
