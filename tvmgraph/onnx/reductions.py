"""ONNX operators that reduce, sort, accumulate and multiply matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import AxisLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.onnx.shapes import is_chosen
from tvmgraph.onnx.table import CONVERTERS, NodeCall, converter

_AXES_AS_INPUT = {"ReduceSum": 13}


def _reduce(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def convert(n: NodeCall, x: Tensor, axes: AxisLike | None = None) -> Tensor:
        as_input = n.opset >= _AXES_AS_INPUT.get(n.node.op_type, 18)
        chosen = n.ints(1) if as_input else n.get("axes")
        if not chosen and n.get("noop_with_empty_axes", 0):
            return function(x, (), True)
        chosen = chosen or range(x.ndim)
        return function(x, tuple(sorted(a % x.ndim for a in chosen)), bool(n.get("keepdims")))

    return convert


def _same(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Keeps the dtype, and leaves a tensor alone when there is no axis."""

    def reduce(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
        return F.cast(function(x, axes, keep), x.dtype)

    return reduce


def _sum(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    return F.reduce_sum(x, axes, keep) if axes else x


def _prod(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    for axis in reversed(axes):
        x = F.prod(x, axis, True)
    return x if keep else _dropped(x, axes)


def _dropped(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return F.reshape(x, tuple(d for i, d in enumerate(x.shape) if i not in axes))


def _extreme(name: str) -> Callable[..., Tensor]:
    def reduce(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
        if not axes:
            return x
        if any(x.shape[a] == 0 for a in axes):
            shape = tuple(
                1 if i in axes else d for i, d in enumerate(x.shape) if keep or i not in axes
            )
            return F.full(shape, worst(name, x.dtype), dtype=x.dtype)
        if x.dtype is dtypes.bool_:
            return (F.any if name == "amax" else F.all)(x, axes, keep)
        return getattr(F, name)(x, axes, keep)

    return reduce


def worst(name: str, kind: dtypes.DType) -> float:
    """The element that any other beats.

    Args:
        name: ``"amax"`` or ``"amin"``.
        kind: The element type.
    """
    if kind is dtypes.bool_:
        return name == "amin"
    if kind.is_float:
        return -np.inf if name == "amax" else np.inf
    info = np.iinfo(kind.numpy)
    return int(info.min if name == "amax" else info.max)


def _log_sum_exp(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    if not axes:
        return x
    if any(x.shape[a] == 0 for a in axes):
        return F.log(_sum(x, axes, keep))
    top = F.stop_gradient(F.amax(x, axes, True))
    top = F.where(F.isfinite(top), top, F.zeros_like(top))
    result = F.log(F.reduce_sum(F.exp(x - top), axes, True)) + top
    return result if keep else _dropped(result, axes)


for _name, _function in {
    "ReduceSum": _sum,
    "ReduceMean": lambda x, axes, keep: F.mean(x, axes, keep) if axes else x,
    "ReduceProd": _prod,
    "ReduceMax": _extreme("amax"),
    "ReduceMin": _extreme("amin"),
    "ReduceL1": lambda x, axes, keep: _sum(F.abs(x), axes, keep),
    "ReduceL2": lambda x, axes, keep: (
        F.sqrt(F.cast(_sum(x * x, axes, keep), dtypes.float32))
        if not x.dtype.is_float
        else F.sqrt(_sum(x * x, axes, keep))
    ),
    "ReduceSumSquare": lambda x, axes, keep: _sum(x * x, axes, keep),
    "ReduceLogSum": lambda x, axes, keep: F.log(_sum(x, axes, keep)),
    "ReduceLogSumExp": _log_sum_exp,
}.items():
    CONVERTERS[_name] = _reduce(_same(_function))


@converter("ArgMax", "ArgMin")
def _arg(n: NodeCall, x: Tensor) -> Tensor:
    axis = n.get("axis") % x.ndim
    size = x.shape[axis]
    last = bool(n.get("select_last_index", 0))
    x = F.flip(x, (axis,)) if last else x
    # float64 would be exact for every type, but the operators keep the type themselves
    function = F.argmax if n.node.op_type == "ArgMax" else F.argmin
    found = F.cast(function(x, axis, bool(n.get("keepdims"))), dtypes.int64)
    return size - 1 - found if last else found


@converter("TopK")
def _top_k(n: NodeCall, x: Tensor, k: object = None) -> tuple[Tensor, Tensor]:
    count = n.number(1) if n.opset >= 10 else n.get("k")
    largest = bool(n.get("largest", 1))
    values, places = F.topk(x, int(count), n.get("axis", -1) % x.ndim, largest, True)
    return values, F.cast(places, dtypes.int64)


@converter("CumSum", "CumProd")
def _cumulate(n: NodeCall, x: Tensor, axis: AxisLike) -> Tensor:
    along = n.number(1) % x.ndim
    backwards, exclusive = bool(n.get("reverse")), bool(n.get("exclusive"))
    total = n.node.op_type == "CumSum"
    x = F.flip(x, (along,)) if backwards else x
    y = F.cast(F.cumsum(x, along) if total else F.cumprod(x, along), x.dtype)
    if exclusive:
        pairs = [(0, 0)] * x.ndim
        pairs[along] = (1, 0)
        cut = (slice(None),) * along + (slice(0, x.shape[along]),)
        y = F.pad_constant(y, tuple(pairs), 0 if total else 1)[cut]
    return F.flip(y, (along,)) if backwards else y


@converter("Gemm")
def _gemm(n: NodeCall, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    a = F.transpose(a, (1, 0)) if n.get("transA") else a
    y = F.dense(a, b) if n.get("transB") else F.matmul(a, b)
    if n.get("alpha") != 1:
        y = F.cast(y * n.get("alpha"), y.dtype)
    if c is None:
        return y
    return F.cast(y + (c if n.get("beta") == 1 else c * n.get("beta")), y.dtype)


CONVERTERS["Einsum"] = lambda n, *xs: F.einsum(n.get("equation").replace(" ", ""), *xs)


@converter("MatMulInteger")
def _mat_mul_integer(
    n: NodeCall, a: Tensor, b: Tensor, za: Any = None, zb: object = None
) -> Tensor:
    wide_a, wide_b = F.cast(a, dtypes.int32), F.cast(b, dtypes.int32)
    if za is not None:
        za = F.cast(za, dtypes.int32)
        wide_a = wide_a - (F.expand_dims(za, -1) if za.ndim else za)
    if zb is not None:
        wide_b = wide_b - F.cast(zb, dtypes.int32)
    return F.matmul(wide_a, wide_b)


@converter("Softmax", "LogSoftmax", "Hardmax")
def _softmax(n: NodeCall, x: Tensor) -> Tensor:
    kind, shape = n.node.op_type, x.shape
    axis = n.get("axis", -1 if n.opset >= 13 else 1) % x.ndim
    if n.opset < 13:  # all axes from there on count as one
        rows = int(np.prod(shape[:axis], dtype=np.int64))
        x, axis = F.reshape(x, (rows, -1)), 1
    if kind == "Hardmax":
        y = F.cast(is_chosen(F.argmax(x, axis), x.shape[axis], axis), x.dtype)
    else:
        y = (F.softmax if kind == "Softmax" else F.log_softmax)(x, axis)
    return F.reshape(y, shape)
