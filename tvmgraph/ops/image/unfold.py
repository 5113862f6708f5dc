"""Sliding blocks as columns, and back: ``unfold`` and ``fold``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Unpack

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Attrs, PerAxis, is_sequence
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits, equation
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.ops.common.arguments import bad, require
from tvmgraph.ops.common.rows import wide_dtype, widen
from tvmgraph.ops.common.window import (
    Ints,
    Pairs,
    Point,
    Sliding,
    columns,
    flat_padding,
    in_order,
    ints,
    out_sizes,
    output_padding,
    require_spatial,
    scatter_columns,
    te_pad,
    te_transposed,
    window_sample,
)

__all__ = ["col2im", "columns_to_image", "fold", "image_to_columns", "unfold"]


def _infer_columns(input: TensorType, **attrs: Unpack[Sliding]) -> TensorType:
    kernel, stride, padding, dilation = in_order(attrs)
    rules.require_dtype(input, dtypes.FLOATS)
    require_spatial(input, len(kernel))
    out = out_sizes(input.shape[2:], kernel, stride, padding, dilation)
    channels = input.with_shape(input.shape[1:2]).static_shape[0]
    return input.with_shape((input.shape[0], channels * prod(kernel), prod(out)))


def _numpy_columns(x: np.ndarray, **attrs: Unpack[Sliding]) -> np.ndarray:
    kernel, stride, padding, dilation = in_order(attrs)
    out = out_sizes(x.shape[2:], kernel, stride, padding, dilation)
    cols = columns(x, kernel, stride, padding, dilation, out)
    return cols.reshape(x.shape[0], x.shape[1] * prod(kernel), prod(out))


def _unravel(index: Expr, sizes: Ints) -> list[Expr]:
    """Splits a flat TE index into one index per axis."""
    parts = []
    for size in reversed(sizes):
        parts.append(index % size)
        index = index // size
    return parts[::-1]


def _lower_columns(R: Builder, x: Expr, **attrs: Unpack[Sliding]) -> Expr:
    kernel, stride, padding, dilation = in_order(attrs)
    t = R.type(x)
    y = _infer_columns(t, **attrs)
    if 0 in y.shape:
        return R.op.zeros(R.shape(y.shape), y.dtype.name)
    out = out_sizes(t.shape[2:], kernel, stride, padding, dilation)

    def compute(data: Expr) -> Expr:
        padded = te_pad(R, data, padding, R.tir.const(0, data.dtype))

        def element(n: Expr, row: Expr, point: Expr) -> Expr:
            taps = _unravel(row % prod(kernel), kernel)
            at = [p * s + k * d for p, s, k, d in zip(_unravel(point, out), stride, taps, dilation)]
            return padded[(n, row // prod(kernel), *at)]

        return R.te.compute((data.shape[0], *y.shape[1:]), element, name="image_to_columns")

    return R.emit_te(compute, x, primfunc_name_hint="image_to_columns")


def _eye(channels: int, kernel: Ints, dtype: np.dtype) -> np.ndarray:
    """Weight of the grouped convolution whose channels are the taps of a window."""
    taps = prod(kernel)
    one = np.eye(taps, dtype=dtype).reshape(taps, 1, *kernel)
    return np.tile(one, (channels, *(1,) * (one.ndim - 1)))


def _onnx_columns(O: OnnxOps, x: OnnxNamed, **attrs: Unpack[Sliding]) -> OnnxNamed:
    kernel, stride, padding, dilation = in_order(attrs)
    t = x.type
    channels, spatial = int(t.shape[1]), t.with_shape(t.shape[2:])
    y = O.Conv(
        x, _eye(channels, kernel, t.dtype.numpy), strides=list(stride), pads=flat_padding(padding),
        dilations=list(dilation), group=channels,
    )  # fmt: skip
    # not -1 where the number of windows is known: it may be 0
    windows = -1
    if spatial.is_static:
        windows = prod(out_sizes(spatial.shape, kernel, stride, padding, dilation))
    shape = O.Concat(
        O.Shape(x, start=0, end=1), np.array([channels * prod(kernel), windows]), axis=0
    )
    return O.Reshape(y, shape, allowzero=1)


@primitive(
    infer=_infer_columns,
    traits=Traits(Pattern.GATHER, "n . * -> n . ."),
    eager=_numpy_columns,
    lower=_lower_columns,
    vjp=lambda g, y, x, **attrs: (F.columns_to_image(g, spatial=x.shape[2:], **attrs),),
    onnx=_onnx_columns,
    samples=[
        window_sample((2, 3, 4, 5), kernel=(2, 3), stride=(1, 2)),
        window_sample((1, 2, 5, 4), kernel=(2, 2), stride=(2, 1), padding=((1, 0), (1, 1)),
                      dilation=(2, 1)),
        window_sample((1, 2, 5), kernel=(3,)),
        window_sample((1, 2, 3, 3), kernel=(1, 1)),
        window_sample((0, 2, 3, 3), kernel=(2, 2), grad=False),
        window_sample((1, 2, 3, 3), kernel=(2, 2), dtype="float16", grad=False),
        window_sample((1, 2, 3, 3), kernel=(4, 2), raises=ShapeError),
    ],
)  # fmt: skip
def image_to_columns(
    input: Tensor, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
) -> Tensor:
    r"""Copies every window into a column.

    Args:
        input: Tensor of shape :math:`(N, C, *spatial)`, a float dtype.
        kernel: Window size per spatial axis.
        stride: Step of the window.
        padding: Zeros ``(before, after)`` per spatial axis.
        dilation: Distance between window elements.

    Returns:
        Tensor of shape :math:`(N, C \prod kernel, L)` with one column per window position.

    Raises:
        ShapeError: if a window does not fit the padded input.

    Example:
        >>> ops.image_to_columns(ops.ones((1, 2, 3)), (2,), (1,), ((0, 0),), (1,)).shape
        (1, 4, 2)
    """
    ...


def _infer_image(input: TensorType, *, spatial: Ints, **attrs: Unpack[Sliding]) -> TensorType:
    kernel, stride, padding, dilation = in_order(attrs)
    rules.require_dtype(input, dtypes.FLOATS)
    rules.require_ndim(input, 3)
    _, rows, points = input.shape
    out = out_sizes(spatial, kernel, stride, padding, dilation)
    if rows % prod(kernel):  # pyright: ignore[reportOperatorIssue]
        raise ShapeError(f"axis 1 has {rows} rows, which is no multiple of {prod(kernel)} taps")
    if points != prod(out):
        raise ShapeError(
            f"axis 2 has {points} columns, but there are {prod(out)} window positions",
            fix="check output_size, kernel_size, dilation, padding and stride",
        )
    return input.with_shape((input.shape[0], rows // prod(kernel), *spatial))  # pyright: ignore


def _numpy_image(x: np.ndarray, *, spatial: Ints, **attrs: Unpack[Sliding]) -> np.ndarray:
    kernel, stride, padding, dilation = in_order(attrs)
    out = out_sizes(spatial, kernel, stride, padding, dilation)
    cols = widen(x).reshape(x.shape[0], x.shape[1] // prod(kernel), *kernel, *out)
    y = scatter_columns(cols, spatial, kernel, stride, padding, dilation)
    return np.ascontiguousarray(y, x.dtype)


def _lower_image(R: Builder, x: Expr, *, spatial: Ints, **attrs: Unpack[Sliding]) -> Expr:
    kernel, stride, padding, dilation = in_order(attrs)
    t = R.type(x)
    result = _infer_image(t, spatial=spatial, **attrs)
    if 0 in result.shape:
        return R.op.zeros(R.shape(result.shape), result.dtype.name)
    wide = wide_dtype(t.dtype).name
    out = out_sizes(spatial, kernel, stride, padding, dilation)
    reach = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation))

    def compute(cols: Expr) -> Expr:
        def term(point: Point, window: Point, offset: Point) -> Expr:
            row, column = point[1], R.tir.const(0, "int64")
            for f, k, d in zip(offset, kernel, dilation):
                row = row * k + f // d
            for w, o in zip(window, out):
                column = column * o + w
            value = cols[point[0], row, column].astype(wide)
            on_tap = [f % d == 0 for f, d in zip(offset, dilation) if d > 1]
            if not on_tap:
                return value
            return R.tir.if_then_else(R.tir.all(*on_tap), value, R.tir.const(0, wide))

        lead = (cols.shape[0], result.shape[1])
        y = te_transposed(R, lead, spatial, out, reach, stride, padding, term, wide, "image")
        return R.te.compute(y.shape, lambda *i: y[i].astype(cols.dtype), name="columns_to_image")

    return R.emit_te(compute, x, primfunc_name_hint="columns_to_image")


def _onnx_image(O: OnnxOps, x: OnnxNamed, *, spatial: Ints, **attrs: Unpack[Sliding]) -> OnnxNamed:
    kernel, stride, padding, dilation = in_order(attrs)
    t = x.type
    rows = int(t.shape[1])
    channels = rows // prod(kernel)
    out = out_sizes(spatial, kernel, stride, padding, dilation)
    extra = output_padding(spatial, out, kernel, stride, padding, dilation)
    shape = O.Concat(O.Shape(x, start=0, end=1), np.array([rows, *out], np.int64), axis=0)
    return O.ConvTranspose(
        O.Reshape(x, shape, allowzero=1), _eye(channels, kernel, t.dtype.numpy),
        strides=list(stride), pads=flat_padding(padding), dilations=list(dilation),
        output_padding=list(extra), group=channels,
    )  # fmt: skip


def _image_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """The images."""
    return equation([["n", ".", "."]], [["n", "."] + ["."] * len(attrs["spatial"])])


@primitive(
    infer=_infer_image,
    traits=Traits(Pattern.OPAQUE, _image_factors),
    eager=_numpy_image,
    lower=_lower_image,
    vjp=lambda g, y, x, *, spatial, **attrs: (F.image_to_columns(g, **attrs),),
    onnx=_onnx_image,
    samples=[
        window_sample((2, 18, 6), spatial=(4, 5), kernel=(2, 3), stride=(1, 2)),
        window_sample((1, 8, 10), spatial=(5, 4), kernel=(2, 2), stride=(2, 1),
                      padding=((1, 0), (1, 1)), dilation=(2, 1)),
        window_sample((1, 6, 3), spatial=(5,), kernel=(3,)),
        window_sample((0, 8, 4), spatial=(3, 3), kernel=(2, 2), grad=False),
        window_sample((1, 8, 4), spatial=(3, 3), kernel=(2, 2), dtype="float16", grad=False),
        window_sample((1, 7, 4), spatial=(3, 3), kernel=(2, 2), raises=ShapeError),
        window_sample((1, 8, 5), spatial=(3, 3), kernel=(2, 2), raises=ShapeError),
    ],
)  # fmt: skip
def columns_to_image(
    input: Tensor, spatial: Ints, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
) -> Tensor:
    r"""Adds every column to the window it belongs to: the transpose of :func:`image_to_columns`.

    Args:
        input: Tensor of shape :math:`(N, C \prod kernel, L)`, a float dtype.
        spatial: Spatial sizes of the result.
        kernel: As in :func:`image_to_columns`.
        stride: As in :func:`image_to_columns`.
        padding: As in :func:`image_to_columns`.
        dilation: As in :func:`image_to_columns`.

    Returns:
        Tensor of shape :math:`(N, C, *spatial)`.

    Raises:
        ShapeError: if the rows or columns do not fit.
    """
    ...


# ---- MindSpore's functions --------------------------------------------------------------------


def _settings(
    op: str, kernel_size: PerAxis, dilation: PerAxis, padding: object, stride: PerAxis
) -> Attrs:
    pads = ints(padding, 2, "padding", op, 0)
    return {
        "kernel": ints(kernel_size, 2, "kernel_size", op),
        "stride": ints(stride, 2, "stride", op),
        "padding": tuple((p, p) for p in pads),
        "dilation": ints(dilation, 2, "dilation", op),
    }


def _sizes(value: object, op: str) -> Ints:
    if isinstance(value, Tensor):
        value = value.tolist()
    return ints(value, 2, "output_size", op)


def unfold(
    input: Tensor,
    kernel_size: PerAxis,
    dilation: PerAxis = 1,
    padding: object = 0,
    stride: PerAxis = 1,
) -> Tensor:
    r"""Extracts sliding blocks of an image as columns.

    Args:
        input: Tensor of shape :math:`(N, C, H, W)`, a float dtype.
        kernel_size: Size of a block: an int or ``(h, w)``.
        dilation: Distance between elements of a block.
        padding: Zeros on both sides of every axis.
        stride: Distance between blocks.

    Returns:
        Tensor of shape :math:`(N, C \cdot K_h \cdot K_w, L)` with :math:`L` blocks.

    Raises:
        ShapeError: if ``input`` does not have 4 axes, or a block does not fit.

    Example:
        >>> ops.unfold(ops.ones((1, 2, 4, 4)), 2, stride=2).shape
        (1, 8, 4)
    """
    settings = _settings(
        "unfold", _single(kernel_size), _single(dilation), _single(padding), _single(stride)
    )
    return F.image_to_columns(input, **settings)


def _single(value: object) -> PerAxis:
    """Returns the one number of a sequence, which stands for both axes; else what was given."""
    return value[0] if is_sequence(value) and len(value) == 1 else value  # pyright: ignore[reportReturnType]


def fold(
    input: Tensor,
    output_size: object,
    kernel_size: PerAxis,
    dilation: PerAxis = 1,
    padding: object = 0,
    stride: PerAxis = 1,
) -> Tensor:
    r"""Sums columns of sliding blocks into an image: the transpose of :func:`unfold`.

    Args:
        input: Tensor of shape :math:`(N, C \cdot K_h \cdot K_w, L)`, a float dtype.
        output_size: Size of the image: ``(h, w)`` or a Tensor of two ints.
        kernel_size: Size of a block: an int or ``(h, w)``.
        dilation: Distance between elements of a block.
        padding: Zeros on both sides of every axis.
        stride: Distance between blocks.

    Returns:
        Tensor of shape :math:`(N, C, H, W)`.

    Raises:
        ShapeError: if the blocks do not fit the image.

    Example:
        >>> ops.fold(ops.ones((1, 8, 4)), (4, 4), 2, stride=2).shape
        (1, 2, 4, 4)
    """
    settings = _settings("fold", kernel_size, dilation, padding, stride)
    return F.columns_to_image(input, spatial=_sizes(output_size, "fold"), **settings)


def col2im(
    input_x: Tensor,
    output_size: object,
    kernel_size: PerAxis,
    dilation: PerAxis,
    padding_value: object,
    stride: PerAxis,
) -> Tensor:
    r"""Sums sliding blocks into an image.

    Args:
        input_x: Tensor of shape :math:`(N, C, K_h \cdot K_w, L)`, a float dtype.
        output_size: Size of the image: ``(h, w)`` or a Tensor of two ints.
        kernel_size: Size of a block: an int or ``(h, w)``.
        dilation: Distance between elements of a block.
        padding_value: Zeros on both sides of every axis.
        stride: Distance between blocks.

    Returns:
        Tensor of shape :math:`(N, C, H, W)`.

    Raises:
        ShapeError: if ``input_x`` does not have 4 axes, or the blocks do not fit the image.
        ArgumentError: if an argument is out of range.

    Example:
        >>> ops.col2im(ops.ones((1, 2, 4, 4)), (4, 4), 2, 1, 0, 2).shape
        (1, 2, 4, 4)
    """
    op = "col2im"
    require(input_x.ndim == 4, "input_x must have 4 axes", op, input_x=input_x)
    settings = _settings(op, kernel_size, dilation, padding_value, stride)
    if input_x.shape[2] != prod(settings["kernel"]):
        raise bad(ArgumentError, f"axis 2 must have {prod(settings['kernel'])} taps", op,
                   f"input_x={input_x.aval}")  # fmt: skip
    n, c, k, points = input_x.aval.shape
    flat = F.reshape(input_x, (n, c * k, points))  # pyright: ignore[reportOperatorIssue]
    return F.columns_to_image(flat, spatial=_sizes(output_size, op), **settings)
