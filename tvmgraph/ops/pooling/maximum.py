"""Rows of maximum pooling: the maximum, where it lies, and the way back."""

from __future__ import annotations

from math import prod
from typing import Any, Unpack

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Reason
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Batch, Layout, Pattern, Traits
from tvmgraph.core.types import TensorType
from tvmgraph.errors import DTypeError, ExportError, ShapeError
from tvmgraph.ops.common.rows import LOW_PRECISION, wide_dtype
from tvmgraph.ops.common.window import (
    Ints,
    Pairs,
    Point,
    Sliding,
    Tap,
    in_order,
    onnx_padding,
    out_sizes,
    pad_array,
    require_spatial,
    tap,
    te_fold,
    te_isnan,
    te_max,
    te_pad,
    te_transposed,
    window_sample,
)

__all__ = ["max_pool", "max_pool_grad", "max_pool_index"]

_NUMBERS = dtypes.INTEGERS + dtypes.FLOATS


def _lowest(dtype: np.dtype) -> float:
    return -np.inf if dtypes.dtype_of(dtype).is_float else np.iinfo(dtype).min


def infer_pool(input: TensorType, **attrs: Unpack[Sliding]) -> TensorType:
    """Rule of a pooling: window positions per spatial axis, at most half a window of padding.

    Args:
        input: Type ``[N, C, *spatial]``.
        **attrs: Sizes of the window, distances of neighbouring windows, elements before and after
            every spatial axis, and distances of neighbouring taps.

    Raises:
        ShapeError: if the padding is more than that, or a window does not fit.
    """
    kernel, stride, padding, dilation = in_order(attrs)
    rules.require_dtype(input, _NUMBERS)
    require_spatial(input, len(kernel))
    for k, d, (lo, _) in zip(kernel, dilation, padding):
        if 2 * lo > d * (k - 1) + 1:
            raise ShapeError(
                f"padding {lo} is more than half of the window of {d * (k - 1) + 1}",
                fix="use less padding or a larger kernel_size",
            )
    out = out_sizes(input.shape[2:], kernel, stride, padding, dilation)
    return input.with_shape((*input.shape[:2], *out))


# ---- maximum ----------------------------------------------------------------------------------


def _numpy_max_pool(x: np.ndarray, **attrs: Unpack[Sliding]) -> np.ndarray:
    kernel, stride, padding, dilation = in_order(attrs)
    out = out_sizes(x.shape[2:], kernel, stride, padding, dilation)
    y = pad_array(x, padding, _lowest(x.dtype))
    for axis, (k, s, d, o) in enumerate(zip(kernel, stride, dilation, out), start=2):
        # the maximum over a box is the maximum over its axes in turn
        lead = (slice(None),) * axis
        parts = [y[(*lead, *tap((i,), (o,), (s,), (d,))[1:])] for i in range(k)]
        y = parts[0].copy() if k > 1 else parts[0]
        for part in parts[1:]:
            np.maximum(y, part, out=y)
    return np.ascontiguousarray(y)


def _te_max_pool(R: Builder, data: Expr, y: TensorType, attrs: Sliding) -> Expr:
    """TE: the largest element of every window."""
    combine, identity, fold = te_max(R, y.dtype.name)
    padded = te_pad(R, data, attrs["padding"], identity(data.dtype))

    def term(point: Point, at: Tap) -> Expr:
        steps = zip(point[2:], attrs["stride"], at, attrs["dilation"])
        return padded[(*point[:2], *(p * s + v * d for p, s, v, d in steps))]

    return te_fold(R, tuple(data.shape[:2]), y.shape[2:], attrs["kernel"], term, combine, identity,  # pyright: ignore[reportArgumentType]
                   "max_pool", fold)  # fmt: skip


def _lower_max_pool(R: Builder, x: Expr, **attrs: Unpack[Sliding]) -> Expr:
    y = infer_pool(R.type(x), **attrs)
    if 0 in y.shape:
        return R.op.zeros(R.shape(y.shape), y.dtype.name)
    return R.emit_te(lambda data: _te_max_pool(R, data, y, attrs), x, primfunc_name_hint="max_pool")


#: What ONNX's MaxPool accepts, and what holds every value of the other dtypes.
_ONNX_DTYPES = (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int8, dtypes.uint8)
_ONNX_WIDER = {dtypes.bfloat16: dtypes.float32} | {
    d: dtypes.float64 for d in (dtypes.int16, dtypes.int32, dtypes.uint16, dtypes.uint32)
}


def _onnx_node(O: OnnxOps, x: OnnxNamed, outputs: int, **attrs: Unpack[Sliding]) -> Any:
    kernel, stride, padding, dilation = in_order(attrs)
    y, dtype = x, x.type.dtype
    if dtype not in _ONNX_DTYPES:
        if dtype not in _ONNX_WIDER:
            raise ExportError(f"MaxPool of ONNX has no {dtype.name}",
                              fix="cast the input to int32 or float64")  # fmt: skip
        y = O.Cast(x, to=O.dtype(_ONNX_WIDER[dtype]))
    pads = onnx_padding(x.type.shape[2:], kernel, stride, padding, dilation)
    return O.MaxPool(y, kernel_shape=list(kernel), strides=list(stride), outputs=outputs,
                     dilations=list(dilation), **pads)  # fmt: skip


def _onnx_max_pool(O: OnnxOps, x: OnnxNamed, **attrs: Unpack[Sliding]) -> OnnxNamed:
    y, dtype = _onnx_node(O, x, 1, **attrs), x.type.dtype
    return y if dtype in _ONNX_DTYPES else O.Cast(y, to=O.dtype(dtype))


def _extremes() -> np.ndarray:
    x = np.arange(32, dtype=np.float32).reshape(1, 1, 4, 8) % 5
    x[0, 0, 1, 2], x[0, 0, 2:, 4:6] = np.inf, -np.inf
    return x


_SAMPLES = [
    window_sample((2, 3, 6, 4), kernel=(2, 2), stride=(2, 2)),
    window_sample((1, 2, 7, 5), kernel=(3, 2), stride=(2, 1), padding=((1, 1), (0, 1))),
    window_sample((1, 2, 8, 7), kernel=(3, 2), stride=(1, 2), dilation=(2, 3)),
    window_sample((1, 1, 9, 9), kernel=(5, 5), stride=(2, 2), padding=((2, 1), (2, 2))),
    window_sample((1, 1, 5, 5), kernel=(1, 1), stride=(2, 3)),
    window_sample((2, 3, 9), kernel=(3,), stride=(2,), padding=((1, 0),)),
    window_sample((1, 2, 4, 4, 3), kernel=(2, 2, 2), stride=(2, 1, 1)),
    window_sample((0, 2, 4, 4), kernel=(2, 2), stride=(2, 2), grad=False),
    window_sample((1, 2, 4, 4), kernel=(2, 2), stride=(2, 2), dtype="float64"),
    window_sample((1, 2, 4, 4), kernel=(2, 2), stride=(1, 1), dtype="float16", grad=False),
    window_sample((1, 2, 5, 5), kernel=(3, 3), stride=(1, 1), padding=((1, 1), (1, 1)),
                dtype="int8", low=-9, high=9),
    window_sample((1, 2, 6, 5), kernel=(5, 5), stride=(1, 1), dtype="int32", low=-9, high=9),
    window_sample(_extremes(), kernel=(2, 2), stride=(2, 2), grad=False),
    window_sample((1, 2, 3, 4), kernel=(2, 2), stride=(1, 1), padding=((2, 0), (0, 0)),
                raises=ShapeError),
    window_sample((1, 2, 3, 4), kernel=(4, 2), stride=(1, 1), raises=ShapeError),
]  # fmt: skip


@primitive(
    infer=infer_pool,
    traits=Traits(Pattern.OPAQUE, "n c * -> n c *", batch=Batch.IMAGES, layout=Layout.POOLING),
    eager=_numpy_max_pool,
    lower=_lower_max_pool,
    vjp=lambda g, y, x, **attrs: (F.max_pool_grad(g, x, **attrs),),
    onnx=_onnx_max_pool,
    samples=_SAMPLES,
)
def max_pool(input: Tensor, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints) -> Tensor:
    r"""Largest element of every window; padding never wins, NaN always does.

    Args:
        input: Tensor of shape :math:`(N, C, *spatial)`, a number dtype.
        kernel: Window size per spatial axis.
        stride: Step of the window.
        padding: ``(before, after)`` per spatial axis, at most half a window before.
        dilation: Distance between window elements.

    Returns:
        Tensor of shape :math:`(N, C, *out)` with
        :math:`out = \lfloor (size + before + after - dilation (kernel - 1) - 1) / stride \rfloor
        + 1`.

    Raises:
        ShapeError: if a window does not fit the padded input.

    Example:
        >>> ops.max_pool(ops.ones((1, 1, 4)), (2,), (2,), ((0, 0),), (1,)).shape
        (1, 1, 2)
    """
    ...


# ---- where the maximum lies -------------------------------------------------------------------


def _numpy_index(x: np.ndarray, **attrs: Unpack[Sliding]) -> np.ndarray:
    kernel, stride, padding, dilation = in_order(attrs)
    spatial = x.shape[2:]
    out = out_sizes(spatial, kernel, stride, padding, dilation)
    best = _numpy_max_pool(x, **attrs)
    spoiled = x.dtype.kind not in "iu" and bool(np.isnan(best).any())
    values = pad_array(x, padding, _lowest(x.dtype))
    places = pad_array(np.arange(prod(spatial)).reshape(1, 1, *spatial), padding, -1)
    index = np.zeros(best.shape, np.int64)
    # from the last tap to the first, so that of equal elements the first stays
    for position in reversed(list(np.ndindex(*kernel))):
        at = tap(position, out, stride, dilation)
        value, place = values[at], places[at]
        wins = value == best
        if spoiled:
            wins |= np.isnan(value)
        if values is not x:
            wins &= place >= 0
        np.copyto(index, place, where=wins)
    return index


def _te_places(R: Builder, data: Expr, t: TensorType, attrs: Sliding) -> Expr:
    """TE: the smallest place among those whose element equals the maximum of the window."""
    best = _te_max_pool(R, data, infer_pool(t, **attrs), attrs)
    kernel, stride, padding, dilation = in_order(attrs)
    spatial = tuple(int(v) for v in t.shape[2:])
    number = "int32" if prod(spatial) < 2**31 else "int64"
    none = R.tir.max_value(number)

    def term(point: Point, taps: Tap) -> Expr:
        at = [
            p * s + r * d - lo
            for p, s, r, d, (lo, _) in zip(point[2:], stride, taps, dilation, padding)
        ]
        place = R.tir.const(0, "int64")
        for v, n in zip(at, spatial):
            place = place * n + v
        inside = [
            c for v, n, (lo, hi) in zip(at, spatial, padding) if lo or hi for c in (v >= 0, v < n)
        ]
        value = data[(*point[:2], *at)]
        wins = value == best[point]
        if t.dtype.is_float:  # where the element is NaN, so is the maximum
            wins = R.tir.any(wins, te_isnan(R, value, t.dtype.name))
        found = R.tir.Select(wins, place.astype(number), none)
        return R.tir.if_then_else(R.tir.all(*inside), found, none) if inside else found

    return te_fold(R, tuple(data.shape[:2]), tuple(best.shape[2:]), kernel, term, R.tir.min,  # pyright: ignore[reportArgumentType]
                   R.tir.max_value, "first_maximum")  # fmt: skip


def _te_index(R: Builder, data: Expr, t: TensorType, attrs: Sliding) -> Expr:
    """TE: the places as int64."""
    found = _te_places(R, data, t, attrs)
    none = R.tir.max_value(found.dtype)
    return R.te.compute(
        found.shape,
        lambda *i: R.tir.Select(found[i] == none, R.tir.const(0, "int64"),
                                found[i].astype("int64")),
        name="index",
    )  # fmt: skip


def _lower_index(R: Builder, x: Expr, **attrs: Unpack[Sliding]) -> Expr:
    t = R.type(x)
    y = infer_pool(t, **attrs)
    if 0 in y.shape:
        return R.op.zeros(R.shape(y.shape), "int64")
    return R.emit_te(
        lambda data: _te_index(R, data, t, attrs), x, primfunc_name_hint="max_pool_index"
    )


def _onnx_index(O: OnnxOps, x: OnnxNamed, **attrs: Unpack[Sliding]) -> OnnxNamed:
    _, index = _onnx_node(O, x, 2, **attrs)
    # ONNX counts through the whole tensor
    return O.Mod(index, O.size(prod(x.type.shape[2:])))


@primitive(
    infer=lambda input, **attrs: infer_pool(input, **attrs).with_dtype(dtypes.int64),
    traits=Traits(Pattern.OPAQUE, "n c * -> n c *"),
    eager=_numpy_index,
    lower=_lower_index,
    vjp=Reason("positions are integers, which have no derivative"),
    onnx=_onnx_index,
    samples=_SAMPLES,
)
def max_pool_index(
    input: Tensor, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
) -> Tensor:
    r"""Where the maximum of every window lies, counted through the spatial axes of ``input``.

    Args:
        input: Tensor of shape :math:`(N, C, *spatial)`.
        kernel: Window size per spatial axis.
        stride: Step of the window.
        padding: ``(before, after)`` per spatial axis.
        dilation: Distance between window elements.

    Returns:
        int64 Tensor of shape :math:`(N, C, *out)`; of equal elements the first, of NaNs the first.

    Raises:
        ShapeError: if a window does not fit the padded input.
    """
    ...


# ---- the way back -----------------------------------------------------------------------------

#: Types that ``tvmgraph/backend/cpu/kernels/elementwise/pool_grad.py`` takes: one
#: pass over memory. Narrow floats need a wider sum, which the tensor expression has.
_WRITTEN_FOR = (dtypes.float32, dtypes.float64)
_MOST_TAPS = 64  # it has code for every tap


def _infer_max_pool_grad(
    grad: TensorType, input: TensorType, **attrs: Unpack[Sliding]
) -> TensorType:
    y = infer_pool(input, **attrs)
    if grad.shape != y.shape:
        raise ShapeError(f"grad must have the shape of the output, {list(y.shape)}")
    if grad.dtype is not input.dtype:
        raise DTypeError(f"grad and input differ in dtype ({grad.dtype} and {input.dtype})")
    return input


def _numpy_max_pool_grad(g: np.ndarray, x: np.ndarray, **attrs: Unpack[Sliding]) -> np.ndarray:
    kernel, stride, _, dilation = in_order(attrs)
    index = _numpy_index(x, **attrs)
    planes, size = g.shape[0] * g.shape[1], prod(x.shape[2:])
    at = index.reshape(planes, prod(g.shape[2:])) + np.arange(planes)[:, None] * size
    apart = all(s > d * (k - 1) for s, d, k in zip(stride, dilation, kernel))
    if apart:  # no two windows share an element
        total = np.zeros(planes * size, g.dtype)
        total[at.ravel()] = g.ravel()
    elif g.dtype.kind in "iu":
        total = np.zeros(planes * size, g.dtype)
        np.add.at(total, at.ravel(), g.ravel())
    else:  # bincount sums in float64 and is several times faster
        total = np.bincount(at.ravel(), g.ravel().astype(np.float64), minlength=planes * size)
    return total.astype(g.dtype, copy=False).reshape(x.shape)


def _te_max_pool_grad(
    R: Builder, grad: Expr, where: Expr, spatial: Ints, wide: str, attrs: Sliding
) -> Expr:
    """TE: every element asks its windows whether it is their maximum."""
    reach = tuple(d * (k - 1) + 1 for k, d in zip(attrs["kernel"], attrs["dilation"]))

    def term(point: Point, window: Point, offset: Point) -> Expr:
        place = R.tir.const(0, "int64")
        for p, n in zip(point[2:], spatial):
            place = place * n + p
        at = (*point[:2], *window)
        zero = R.tir.const(0, wide)
        return R.tir.Select(where[at] == place.astype(where.dtype), grad[at].astype(wide), zero)

    y = te_transposed(
        R, tuple(grad.shape[:2]), spatial, tuple(int(n) for n in grad.shape[2:]), reach,
        attrs["stride"], attrs["padding"], term, wide, "max_pool_grad",
    )  # fmt: skip
    if wide == grad.dtype:
        return y
    return R.te.compute(y.shape, lambda *i: y[i].astype(grad.dtype), name="narrow")


def _lower_max_pool_grad(R: Builder, g: Expr, x: Expr, **attrs: Unpack[Sliding]) -> Expr:
    t = R.type(x)
    if t.is_static and (t.size == 0 or R.type(g).size == 0):
        return R.op.zeros(R.shape(t.shape), t.dtype.name)
    wide = wide_dtype(t.dtype).name
    spatial = tuple(int(v) for v in t.shape[2:])

    def compute(grad: Expr, data: Expr) -> Expr:
        where = _te_places(R, data, t, attrs)
        return _te_max_pool_grad(R, grad, where, spatial, wide, attrs)

    written = t.dtype in _WRITTEN_FOR and prod(attrs["kernel"]) <= _MOST_TAPS and t.is_static
    window = [list(attrs["kernel"]), list(attrs["stride"]), [lo for lo, _ in attrs["padding"]],
              list(attrs["dilation"])]  # fmt: skip
    return R.emit_te(
        compute, g, x, primfunc_name_hint="max_pool_grad",
        written_as=("max_pool_grad", window) if written else None,
    )  # fmt: skip


def _vjp_max_pool_grad(
    gg: Tensor, y: Tensor, g: Tensor, x: Tensor, **attrs: object
) -> tuple[Tensor, None]:
    """The way back is linear in the cotangent: its own cotangent is read at the maxima."""
    index = F.max_pool_index(x, **attrs)
    flat = F.reshape(gg, (*gg.shape[:2], prod(x.shape[2:])))
    at = F.reshape(index, (*index.shape[:2], prod(index.shape[2:])))
    return F.reshape(F.gather_elements(flat, 2, at), g.shape), None


def _onnx_max_pool_grad(
    O: OnnxOps, g: OnnxNamed, x: OnnxNamed, **attrs: Unpack[Sliding]
) -> OnnxNamed:
    spatial = tuple(int(n) for n in x.type.shape[2:])
    low = g.type.dtype in LOW_PRECISION
    wide = dtypes.float32 if low else g.type.dtype
    dtype, points, lead = g.type.dtype, prod(g.type.shape[2:]), O.Shape(g, start=0, end=2)
    flat = O.Concat(lead, np.array([points], np.int64), axis=0)
    size = O.Concat(lead, np.array([prod(spatial)], np.int64), axis=0)
    index = _onnx_index(O, x, **attrs)
    g = O.Cast(g, to=O.dtype(wide)) if low else g
    g, index = O.Reshape(g, flat, allowzero=1), O.Reshape(index, flat, allowzero=1)
    zeros = O.Expand(O.const(0, wide), size)
    y = O.ScatterElements(zeros, index, g, axis=2, reduction="add")
    y = O.Cast(y, to=O.dtype(dtype)) if low else y
    return O.Reshape(y, O.Concat(lead, np.array(spatial, np.int64), axis=0), allowzero=1)


@primitive(
    infer=_infer_max_pool_grad,
    traits=Traits(Pattern.OPAQUE, "n c *, n c * -> n c *"),
    eager=_numpy_max_pool_grad,
    lower=_lower_max_pool_grad,
    vjp=_vjp_max_pool_grad,
    onnx=_onnx_max_pool_grad,
    samples=[
        window_sample((2, 3, 3, 2), (2, 3, 6, 4), kernel=(2, 2), stride=(2, 2)),
        window_sample((2, 40, 8, 9), (2, 40, 17, 18), kernel=(3, 2), stride=(2, 2), grad=False),
        window_sample((1, 2, 3, 4), (1, 2, 6, 5), kernel=(3, 3), stride=(2, 1),
                      padding=((1, 0), (1, 0))),
        window_sample((1, 2, 3), (1, 2, 7), kernel=(2,), stride=(2,), dilation=(2,),
                      dtype="float64"),
        window_sample((1, 1, 2, 2, 2), (1, 1, 4, 5, 4), kernel=(2, 3, 2), stride=(2, 2, 2)),
        window_sample((1, 1, 2, 4), _extremes(), kernel=(2, 2), stride=(2, 2), grad=False),
        window_sample((1, 2, 4, 4), (1, 2, 8, 8), kernel=(5, 5), grad=False),
        window_sample((1, 1, 2), (1, 1, 4), kernel=(2,), stride=(2,), dtype="float16", grad=False),
        window_sample((0, 2, 3), (0, 2, 6), kernel=(2,), stride=(2,), grad=False),
        window_sample((1, 1, 3), (1, 1, 4), kernel=(2,), stride=(2,), raises=ShapeError),
    ],
)  # fmt: skip
def max_pool_grad(
    grad: Tensor, input: Tensor, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
) -> Tensor:
    r"""Sends the cotangent of a maximum pooling back to where the maxima lie.

    Args:
        grad: Cotangent of the output, :math:`(N, C, *out)`.
        input: The pooling's input, :math:`(N, C, *spatial)`.
        kernel: As in :func:`max_pool`.
        stride: As in :func:`max_pool`.
        padding: As in :func:`max_pool`.
        dilation: As in :func:`max_pool`.

    Returns:
        Tensor of shape :math:`(N, C, *spatial)`; of equal elements the first has it all.

    Raises:
        ShapeError: if ``grad`` does not have the shape of the pooling's output.
        DTypeError: if ``grad`` and ``input`` differ in dtype.
    """
    ...
