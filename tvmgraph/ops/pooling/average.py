"""Rows of average pooling and its way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, Unpack

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Sample, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Batch, Layout, Pattern, Traits
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ShapeError
from tvmgraph.ops.common.rows import wide_dtype, widen
from tvmgraph.ops.common.window import (
    Ints,
    Pairs,
    Point,
    Tap,
    flat_padding,
    onnx_padding,
    out_sizes,
    output_padding,
    pad_array,
    require_spatial,
    tap,
    te_fold,
    te_pad,
    te_transposed,
)
from tvmgraph.ops.pooling.maximum import infer_pool

__all__ = ["avg_pool", "avg_pool_grad"]


class _Window(TypedDict):
    """Attributes of a row."""

    kernel: Ints
    stride: Ints
    padding: Pairs
    counted: Pairs
    divisor: int


def _counts(
    size: int, out: int, kernel: int, stride: int, padding: tuple[int, int],
    counted: tuple[int, int],
) -> np.ndarray:  # fmt: skip
    """Number of elements each window divides by, along one axis."""
    start = np.arange(out) * stride - padding[0]
    stop = np.minimum(start + kernel, size + counted[1])
    return np.maximum(stop - np.maximum(start, -counted[0]), 1)


def _divisors(spatial: Ints, out: Ints, attrs: _Window) -> int | np.ndarray:
    if attrs["divisor"]:
        return attrs["divisor"]
    total = np.ones((1,) * len(spatial))
    windows = (attrs["kernel"], attrs["stride"], attrs["padding"], attrs["counted"])
    for i, axis in enumerate(zip(spatial, out, *windows)):
        shape = [1] * len(spatial)
        shape[i] = out[i]
        total = total * _counts(*axis).reshape(shape)
    return total


def _infer_avg_pool(input: TensorType, **attrs: Unpack[_Window]) -> TensorType:
    kernel, stride, padding = attrs["kernel"], attrs["stride"], attrs["padding"]
    rules.require_dtype(input, dtypes.FLOATS)
    apart = (1,) * len(kernel)
    return infer_pool(input, kernel=kernel, stride=stride, padding=padding, dilation=apart)


def _numpy_avg_pool(x: np.ndarray, **attrs: Unpack[_Window]) -> np.ndarray:
    kernel, stride, padding = attrs["kernel"], attrs["stride"], attrs["padding"]
    spatial = x.shape[2:]
    out = out_sizes(spatial, kernel, stride, padding, (1,) * len(kernel))
    y = pad_array(widen(x), padding)
    for axis, (k, s, o) in enumerate(zip(kernel, stride, out), start=2):
        # the sum over a box is the sum over its axes in turn
        lead = (slice(None),) * axis
        parts = [y[(*lead, *tap((i,), (o,), (s,), (1,))[1:])] for i in range(k)]
        y = parts[0].copy()
        for part in parts[1:]:
            y += part
    y /= _divisors(spatial, out, attrs)
    return y.astype(x.dtype, copy=False)


def _te_divide(
    R: Builder, wide: str, spatial: Ints, attrs: _Window
) -> Callable[[Expr, Point], Expr]:
    """TE: ``(value, window) -> value / elements of the window``."""
    kernel, stride = attrs["kernel"], attrs["stride"]
    padding, counted, constant = attrs["padding"], attrs["counted"], attrs["divisor"]
    if not constant and padding == counted:
        constant = int(np.prod(kernel))

    def divide(value: Expr, window: Point) -> Expr:
        if constant:
            return value / R.tir.const(constant, wide)
        count: Expr | None = None
        for w, n, k, s, (lo, _), (clo, chi) in zip(
            window, spatial, kernel, stride, padding, counted
        ):
            start = w * s - lo
            length = R.tir.min(start + k, n + chi) - R.tir.max(start, -clo)
            length = R.tir.max(length, 1)
            count = length if count is None else count * length
        return value if count is None else value / count.astype(wide)

    return divide


def _lower_avg_pool(R: Builder, x: Expr, **attrs: Unpack[_Window]) -> Expr:
    t = R.type(x)
    y = _infer_avg_pool(t, **attrs)
    if 0 in y.shape:
        return R.op.zeros(R.shape(y.shape), y.dtype.name)
    wide = wide_dtype(t.dtype).name
    spatial = tuple(int(v) for v in t.shape[2:])
    divide = _te_divide(R, wide, spatial, attrs)

    def compute(data: Expr) -> Expr:
        padded = te_pad(R, data, attrs["padding"], R.tir.const(0, data.dtype))

        def term(point: Point, at: Tap) -> Expr:
            place = [p * s + v for p, s, v in zip(point[2:], attrs["stride"], at)]
            return padded[(*point[:2], *place)].astype(wide)

        total = te_fold(
            R, tuple(data.shape[:2]), y.shape[2:], attrs["kernel"], term, lambda a, b: a + b,  # pyright: ignore[reportArgumentType]
            lambda d: R.tir.const(0, d), "window_sum",
        )  # fmt: skip
        return R.te.compute(
            total.shape, lambda *i: divide(total[i], i[2:]).astype(data.dtype), name="avg_pool"
        )

    return R.emit_te(compute, x, primfunc_name_hint="avg_pool")


def _onnx_avg_pool(O: OnnxOps, x: OnnxNamed, **attrs: Unpack[_Window]) -> OnnxNamed:
    """An average over all taps, scaled where the window divides by another number."""
    kernel, stride, padding = attrs["kernel"], attrs["stride"], attrs["padding"]
    inside = not attrs["divisor"] and attrs["counted"] == ((0, 0),) * len(kernel)
    pads = onnx_padding(x.type.shape[2:], kernel, stride, padding, (1,) * len(kernel))
    y = O.AveragePool(x, kernel_shape=list(kernel), strides=list(stride),
                      count_include_pad=int(not inside), **pads)  # fmt: skip
    if inside or (not attrs["divisor"] and padding == attrs["counted"]):
        return y
    spatial = tuple(int(v) for v in x.type.shape[2:])
    out = out_sizes(spatial, kernel, stride, padding, (1,) * len(kernel))
    taps = float(np.prod(kernel))
    scale = taps / _divisors(spatial, out, attrs)
    return O.Mul(y, np.asarray(scale).astype(x.type.dtype.numpy))


def _avg_sample(
    *shapes: object,
    kernel: Ints,
    stride: Ints,
    padding: Pairs | None = None,
    counted: Pairs | None = None,
    divisor: int = 0,
    **kwargs: Any,
) -> Sample:
    padding = padding or ((0, 0),) * len(kernel)
    counted = padding if counted is None else counted
    return sample(*shapes, kernel=kernel, stride=stride, padding=padding, counted=counted,
                  divisor=divisor, **kwargs)  # fmt: skip


@primitive(
    infer=_infer_avg_pool,
    traits=Traits(Pattern.OPAQUE, "n c * -> n c *", batch=Batch.IMAGES, layout=Layout.POOLING),
    eager=_numpy_avg_pool,
    lower=_lower_avg_pool,
    vjp=lambda g, y, x, **attrs: (F.avg_pool_grad(g, spatial=x.shape[2:], **attrs),),
    onnx=_onnx_avg_pool,
    samples=[
        _avg_sample((2, 3, 6, 4), kernel=(2, 2), stride=(2, 2)),
        _avg_sample((1, 2, 7, 5), kernel=(3, 2), stride=(2, 1), padding=((1, 1), (0, 1))),
        _avg_sample((1, 2, 7, 5), kernel=(3, 3), stride=(2, 1), padding=((1, 2), (1, 1)),
                    counted=((1, 1), (0, 0))),
        _avg_sample((1, 1, 9, 9), kernel=(5, 5), stride=(3, 2), padding=((2, 1), (2, 2)),
                    counted=((0, 0), (0, 0))),
        _avg_sample((1, 1, 5, 5), kernel=(2, 3), stride=(2, 3), divisor=5),
        _avg_sample((2, 3, 9), kernel=(3,), stride=(2,), padding=((1, 0),)),
        _avg_sample((1, 2, 4, 4, 3), kernel=(2, 2, 2), stride=(2, 1, 1)),
        _avg_sample((0, 2, 4, 4), kernel=(2, 2), stride=(2, 2), grad=False),
        _avg_sample((1, 2, 4, 4), kernel=(2, 2), stride=(2, 2), dtype="float64"),
        _avg_sample((1, 1, 8, 8), kernel=(8, 8), stride=(1, 1), dtype="float16", low=3e4, high=5e4,
                    grad=False),
        _avg_sample((1, 2, 3, 4), kernel=(2, 2), stride=(1, 1), padding=((2, 0), (0, 0)),
                    raises=ShapeError),
        _avg_sample((1, 2, 3, 4), kernel=(4, 2), stride=(1, 1), raises=ShapeError),
    ],
)  # fmt: skip
def avg_pool(
    input: Tensor, kernel: Ints, stride: Ints, padding: Pairs, counted: Pairs, divisor: int
) -> Tensor:
    r"""Mean of every window, computed in at least float32.

    Args:
        input: Tensor of shape :math:`(N, C, *spatial)`, a float dtype.
        kernel: Window size per spatial axis.
        stride: Step of the window.
        padding: Zeros ``(before, after)`` per spatial axis, at most half a window before.
        counted: How much of that padding counts as elements in the mean.
        divisor: What sums are divided by; 0 for the number of counted elements.

    Returns:
        Tensor of shape :math:`(N, C, *out)` with
        :math:`out = \lfloor (size + before + after - kernel) / stride \rfloor + 1`.

    Raises:
        ShapeError: if a window does not fit the padded input.

    Example:
        >>> ops.avg_pool(ops.ones((1, 1, 4)), (2,), (2,), ((0, 0),), ((0, 0),), 0).shape
        (1, 1, 2)
    """
    ...


# ---- the way back -----------------------------------------------------------------------------


def _infer_avg_pool_grad(
    grad: TensorType, *, spatial: Ints, **attrs: Unpack[_Window]
) -> TensorType:
    kernel, stride, padding = attrs["kernel"], attrs["stride"], attrs["padding"]
    rules.require_dtype(grad, dtypes.FLOATS)
    require_spatial(grad, len(kernel), "grad")
    out = out_sizes(spatial, kernel, stride, padding, (1,) * len(kernel))
    if grad.shape[2:] != out:
        raise ShapeError(f"grad must have the window positions {list(out)}")
    return grad.with_shape((*grad.shape[:2], *spatial))


def _numpy_avg_pool_grad(g: np.ndarray, *, spatial: Ints, **attrs: Unpack[_Window]) -> np.ndarray:
    kernel, stride, padding = attrs["kernel"], attrs["stride"], attrs["padding"]
    divisors = _divisors(spatial, g.shape[2:], attrs)
    y = (widen(g) / divisors).astype(widen(g).dtype)
    for axis, (k, s, n, (lo, hi)) in enumerate(zip(kernel, stride, spatial, padding), start=2):
        lead = (slice(None),) * axis
        full = np.zeros((*y.shape[:axis], n + lo + hi, *y.shape[axis + 1 :]), y.dtype)
        for i in range(k):
            place = (*lead, *tap((i,), (y.shape[axis],), (s,), (1,))[1:])
            full[place] = y if k <= s else full[place] + y  # a sum of one term keeps its sign
        y = full[(*lead, slice(lo, lo + n))]
    return np.ascontiguousarray(y, g.dtype)


def _lower_avg_pool_grad(R: Builder, g: Expr, *, spatial: Ints, **attrs: Unpack[_Window]) -> Expr:
    t = R.type(g)
    if t.is_static and t.size == 0:
        return R.op.zeros(R.shape((*t.shape[:2], *spatial)), t.dtype.name)
    wide = wide_dtype(t.dtype).name
    divide = _te_divide(R, wide, spatial, attrs)
    out = tuple(int(v) for v in t.shape[2:])

    def compute(grad: Expr) -> Expr:
        def term(point: Point, window: Point, offset: Point) -> Expr:
            return divide(grad[(*point[:2], *window)].astype(wide), window)

        y = te_transposed(
            R, tuple(grad.shape[:2]), spatial, out, attrs["kernel"], attrs["stride"],
            attrs["padding"], term, wide, "avg_pool_grad",
        )  # fmt: skip
        if wide == grad.dtype:
            return y
        return R.te.compute(y.shape, lambda *i: y[i].astype(grad.dtype), name="narrow")

    return R.emit_te(compute, g, primfunc_name_hint="avg_pool_grad")


def _onnx_avg_pool_grad(
    O: OnnxOps, g: OnnxNamed, *, spatial: Ints, **attrs: Unpack[_Window]
) -> OnnxNamed:
    """A transposed convolution with ones, on the channels as a batch."""
    kernel, stride, padding = attrs["kernel"], attrs["stride"], attrs["padding"]
    out, dtype = tuple(int(v) for v in g.type.shape[2:]), g.type.dtype.numpy
    scale = 1 / _divisors(spatial, out, attrs)
    lead = O.Shape(g, start=0, end=2)
    scaled = O.Mul(g, np.asarray(scale).astype(dtype))
    # not -1 for the merged axis: it may be empty
    planes = O.ReduceProd(lead, keepdims=1)
    flat = O.Concat(planes, np.array([1, *out], np.int64), axis=0)
    extra = output_padding(spatial, out, kernel, stride, padding, (1,) * len(kernel))
    y = O.ConvTranspose(
        O.Reshape(scaled, flat, allowzero=1), np.ones((1, 1, *kernel), dtype),
        strides=list(stride), pads=flat_padding(padding), output_padding=list(extra),
    )  # fmt: skip
    return O.Reshape(y, O.Concat(lead, np.array(spatial, np.int64), axis=0), allowzero=1)


@primitive(
    infer=_infer_avg_pool_grad,
    traits=Traits(Pattern.OPAQUE, "n c * -> n c *"),
    eager=_numpy_avg_pool_grad,
    lower=_lower_avg_pool_grad,
    vjp=lambda g, y, x, *, spatial, **attrs: (F.avg_pool(g, **attrs),),
    onnx=_onnx_avg_pool_grad,
    samples=[
        _avg_sample((2, 3, 3, 2), spatial=(6, 4), kernel=(2, 2), stride=(2, 2)),
        _avg_sample((1, 2, 4, 5), spatial=(7, 5), kernel=(3, 2), stride=(2, 1),
                    padding=((1, 1), (0, 1))),
        _avg_sample((1, 2, 4, 5), spatial=(7, 5), kernel=(3, 3), stride=(2, 1),
                    padding=((1, 2), (1, 1)), counted=((1, 1), (0, 0))),
        _avg_sample((1, 1, 3, 5), spatial=(9, 9), kernel=(5, 5), stride=(3, 2),
                    padding=((2, 1), (2, 2)), counted=((0, 0), (0, 0))),
        _avg_sample((1, 1, 5, 5), spatial=(9, 9), kernel=(5, 5), stride=(1, 1)),
        _avg_sample((1, 1, 2, 1), spatial=(5, 5), kernel=(2, 3), stride=(2, 3), divisor=5),
        _avg_sample((2, 3, 4), spatial=(9,), kernel=(3,), stride=(2,), padding=((1, 0),)),
        _avg_sample((0, 2, 2), spatial=(4,), kernel=(2,), stride=(2,), grad=False),
        _avg_sample((1, 2, 2), spatial=(4,), kernel=(2,), stride=(2,), dtype="float16",
                    grad=False),
        _avg_sample((1, 2, 3), spatial=(4,), kernel=(2,), stride=(2,), raises=ShapeError),
    ],
)  # fmt: skip
def avg_pool_grad(
    grad: Tensor, spatial: Ints, kernel: Ints, stride: Ints, padding: Pairs, counted: Pairs,
    divisor: int,
) -> Tensor:  # fmt: skip
    r"""Spreads the cotangent of an average pooling over the elements of its windows.

    Args:
        grad: Cotangent of the output, :math:`(N, C, *out)`.
        spatial: Spatial sizes of the pooling's input.
        kernel: As in :func:`avg_pool`.
        stride: As in :func:`avg_pool`.
        padding: As in :func:`avg_pool`.
        counted: As in :func:`avg_pool`.
        divisor: As in :func:`avg_pool`.

    Returns:
        Tensor of shape :math:`(N, C, *spatial)`.

    Raises:
        ShapeError: if ``grad`` does not have the shape of such a pooling's output.
    """
    ...
