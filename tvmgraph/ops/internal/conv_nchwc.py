"""Convolutions on NCHWc tensors, the form in which frozen graphs keep images.

An NCHWc image has shape :math:`(N, C / b, H, W, b)`: the ``b`` channels of a block are neighbours
in memory, so that vectors run along channels whatever the size of the image is. Weights come
packed in the order in which the kernels read them.

The weight of a 3 x 3 convolution may also be there in Winograd's form.
"""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.descriptors import Convolution
from tvmgraph.core.op import OPS, Sample, sample
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ShapeError
from tvmgraph.numerics.winograd import transform_weight
from tvmgraph.ops.common.rows import LOW_PRECISION, wide_dtype
from tvmgraph.ops.common.window import Ints, Pairs, Sliding, in_order, out_sizes
from tvmgraph.ops.internal.rows import internal_row

__all__ = ["conv_nchwc", "conv_nchwc_weight_grad", "conv_winograd", "depthwise_nchwc"]

#: Channels of a block, widest first. Kernels divide blocks into vectors, and take several as a tile
#: as registers allow: with AVX2's 8 lanes, blocks of 8 take 0.98 to 1.09 of the time of blocks of
#: 16.
_BLOCKS = (16, 8)
#: Axes of a packed weight in VNNI layout.
_VNNI_AXES = 7


def block_of(channels: object) -> int | None:
    """Returns the channels per block of a tensor with this many, or None if they make no blocks.

    Args:
        channels: Their number; one that is symbolic makes no blocks.
    """
    return next((b for b in _BLOCKS if isinstance(channels, int) and channels % b == 0), None)


def to_nchwc(x: np.ndarray, block: int) -> np.ndarray:
    """Rearranges (N, C, ...) to (N, C / block, ..., block).

    Args:
        x: Array of shape (N, C, ...).
        block: Channels of a block, which divide C.
    """
    split = x.reshape(x.shape[0], x.shape[1] // block, block, *x.shape[2:])
    return np.ascontiguousarray(np.moveaxis(split, 2, -1))


def from_nchwc(x: np.ndarray) -> np.ndarray:
    """Rearranges (N, C / block, ..., block) to (N, C, ...).

    Args:
        x: Array of shape (N, C / block, ..., block).
    """
    split = np.moveaxis(x, -1, 2)
    return split.reshape(split.shape[0], -1, *split.shape[3:])


def pack_weight(weight: np.ndarray, inputs: int, outputs: int) -> np.ndarray:
    """Rearranges a weight (O, I, KH, KW) to (O / outputs, I / inputs, KH, KW, inputs, outputs).

    Args:
        weight: Array of shape (O, I, KH, KW).
        inputs: Input channels of a block.
        outputs: Output channels of a block.
    """
    o, i, *kernel = weight.shape
    split = weight.reshape(o // outputs, outputs, i // inputs, inputs, *kernel)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 3, 1))


def pack_vnni(weight: np.ndarray, vnni_size: int, plain: bool) -> np.ndarray:
    """Puts ``vnni_size`` factors of one sum side by side, along a last axis of a packed weight.

    Args:
        weight: A packed weight.
        vnni_size: Factors that one instruction multiplies and sums.
        plain: Whether the image has no blocks. They then lie along the rows of the window, which
            is made longer by zeros (which NaN and infinite pixels beside the window turn into
            NaN), else along the input channels of a block.
    """
    if plain:
        wide = np.pad(
            weight, [(0, -weight.shape[3] % vnni_size if axis == 3 else 0) for axis in range(6)]
        )
        split = wide.reshape(*wide.shape[:3], -1, vnni_size, *wide.shape[4:])
        return np.ascontiguousarray(np.moveaxis(split, 4, -1))
    split = weight.reshape(*weight.shape[:4], -1, vnni_size, weight.shape[5])
    return np.ascontiguousarray(np.moveaxis(split, 5, -1))


def vnni_shape(shape: tuple[int, ...], vnni_size: int, plain: bool) -> tuple[int, ...]:
    """The shape that :func:`pack_vnni` gives a packed weight.

    Args:
        shape: Shape of the weight that :func:`pack_weight` packed.
        vnni_size: Elements of a word.
        plain: Whether the image has no blocks.
    """
    *outer, width, inputs, outputs = shape
    parts = (-(-width // vnni_size), inputs) if plain else (width, inputs // vnni_size)
    return (*outer, *parts, outputs, vnni_size)


def _whole_weight(weight: np.ndarray, plain: bool) -> np.ndarray:
    """The inverse of :func:`pack_vnni` and :func:`pack_weight`."""
    if weight.ndim == _VNNI_AXES:
        weight = np.moveaxis(weight, -1, 4 if plain else 5)
        axis = 3 if plain else 4
        weight = weight.reshape(*weight.shape[:axis], -1, *weight.shape[axis + 2 :])
    ob, ib, kh, kw, inputs, outputs = weight.shape
    return weight.transpose(0, 5, 1, 4, 2, 3).reshape(ob * outputs, ib * inputs, kh, kw)


def _require_weight(input: TensorType, weight: TensorType, ndim: int | tuple[int, ...]) -> None:
    rules.require_dtype(input, dtypes.FLOATS)
    rules.require_ndim(weight, ndim, "weight")
    kinds = (input.dtype, wide_dtype(input.dtype))
    rules.require_dtype(weight, tuple(k for k in kinds if k is not None), "weight")


# ---- convolution ------------------------------------------------------------------------------


def _infer(
    input: TensorType, weight: TensorType, *, stride: Ints, padding: Pairs, dilation: Ints
) -> TensorType:
    _require_weight(input, weight, (6, _VNNI_AXES))
    rules.require_ndim(input, (4, 5))
    outer, blocks, kh, kw, inputs, outputs, *packed = weight.static_shape
    if packed and input.ndim == 5:
        inputs *= packed[0]
    elif packed:
        kw *= packed[0]
    block = input.shape[4] if input.ndim == 5 else 1
    groups, rest = divmod(input.static_shape[1], blocks)
    if block != inputs or rest or not groups or outer % groups:
        raise ShapeError(
            f"input has {input.shape[1]} blocks of {block} channels, but the weight takes"
            f" {blocks} of {inputs}"
        )
    out = out_sizes(input.shape[2:4], (kh, kw), stride, padding, dilation)
    return input.with_shape((input.shape[0], outer, *out, outputs))


def _eager(
    input: np.ndarray, weight: np.ndarray, *, stride: Ints, padding: Pairs, dilation: Ints
) -> np.ndarray:
    x = from_nchwc(input) if input.ndim == 5 else input
    y = OPS["convolution"].eager(
        x, _whole_weight(weight, input.ndim == 4).astype(x.dtype, copy=False), stride=stride,
        padding=padding, dilation=dilation, groups=input.shape[1] // weight.shape[1],
    )  # fmt: skip
    return to_nchwc(y, weight.shape[5])


def _padded(R: Builder, x: Expr, padding: Pairs, dtype: str) -> Expr:
    """TE: ``x`` in the accumulator's type with a border of zeros along its axes 2 and 3."""
    if x.dtype == dtype and not any(lo or hi for lo, hi in padding):
        return x
    (top, bottom), (left, right) = padding
    _, _, height, width, *_ = x.shape

    def element(*at: Expr) -> Expr:
        row, column = at[2] - top, at[3] - left
        inside = [row >= 0] * bool(top) + [row < height] * bool(bottom)
        inside += [column >= 0] * bool(left) + [column < width] * bool(right)
        value = x[(*at[:2], row, column, *at[4:])].astype(dtype)
        zero = R.tir.const(0, dtype)
        return R.tir.if_then_else(R.tir.all(*inside), value, zero) if inside else value

    shape = (*x.shape[:2], height + top + bottom, width + left + right, *x.shape[4:])
    return R.te.compute(shape, element, name="pad")


def nchwc_sums(
    R: Builder, x: Expr, w: Expr, out: object, padding: Pairs, stride: Ints, dilation: Ints,
    winograd: int = 0,
) -> Expr:  # fmt: skip
    """TE: the sums of a convolution of an NCHWc or plain image with a packed weight.

    Args:
        R: The builder.
        x: The image, with 5 or 4 axes.
        w: The weight; half precision accumulates in float32.
        out: Shape of the result.
        padding: Zeros around the image.
        stride: Step of the window.
        dilation: Distance between taps.
        winograd: Size of the tiles by Winograd's method; 0 for plain sums.
    """
    padded = _padded(R, x, padding, w.dtype)
    wide = "float32" if str(w.dtype) in ("float16", "bfloat16") else w.dtype
    outer, blocks, kh, kw, inputs, _, *packed = map(int, w.shape)
    groups = int(x.shape[1]) // blocks
    ib, ky, kx, ic, *member = taps = [
        R.te.reduce_axis((0, extent), name=name)
        for name, extent in zip(
            ("ib", "ky", "kx", "ic", "member"), (blocks, kh, kw, inputs, *packed)
        )
    ]
    is_nchwc = len(padded.shape) == 5
    column, channel = kx, ic
    if packed and is_nchwc:
        channel = ic * packed[0] + member[0]
    elif packed:
        column = kx * packed[0] + member[0]

    def element(n: Expr, ob: Expr, y: Expr, x: Expr, oc: Expr) -> Expr:
        place = [y * stride[0] + ky * dilation[0], x * stride[1] + column * dilation[1]]
        read = ib if groups == 1 else ib + R.te.floordiv(ob, outer // groups) * blocks
        pixel = padded[(n, read, *place, channel) if is_nchwc else (n, read, *place)]
        tap = w[(ob, ib, ky, kx, ic, oc, *member)]
        return R.te.sum(pixel.astype(wide) * tap.astype(wide), axis=taps)

    known = Convolution(
        "NCHWc" if is_nchwc else "NCHW", stride, padding, dilation, groups,
        packed[0] if packed else 1, winograd,
    )  # fmt: skip
    return R.te.compute(out, element, name="conv_nchwc", attrs=known.annotation())


def _cast_back(R: Builder, y: Expr, t: TensorType) -> Expr:
    return R.op.astype(y, t.dtype.name) if t.dtype in LOW_PRECISION else y


def _lower(
    R: Builder, input: Expr, weight: Expr, *, stride: Ints, padding: Pairs, dilation: Ints
) -> Expr:
    t = R.type(input)
    out = _infer(t, R.type(weight), stride=stride, padding=padding, dilation=dilation).shape

    def convolve(x: Expr, w: Expr) -> Expr:
        return nchwc_sums(R, x, w, out, padding, stride, dilation)

    return _cast_back(R, R.emit_te(convolve, input, weight, primfunc_name_hint="conv_nchwc"), t)


def _sample(*shapes: object, stride: Ints = (1, 1), padding: Pairs = ((0, 0), (0, 0)),
            dilation: Ints = (1, 1), **kwargs: Any) -> Sample:  # fmt: skip
    return sample(*shapes, stride=stride, padding=padding, dilation=dilation, grad=False, **kwargs)


@internal_row(
    _infer,
    _eager,
    _lower,
    samples=[
        _sample((2, 2, 5, 6, 8), (3, 2, 3, 2, 8, 8), padding=((1, 0), (1, 1))),
        _sample((1, 3, 9, 7), (2, 3, 3, 3, 1, 16), stride=(2, 1), padding=((1, 1), (0, 1))),
        _sample((1, 1, 7, 7, 16), (1, 1, 3, 3, 16, 8), dilation=(2, 1), dtype="float64"),
        _sample((2, 1, 1, 1, 16), (9, 1, 1, 1, 16, 16)),
        _sample((1, 1, 4, 5, 8), (1, 1, 1, 1, 8, 8), dtype=("float16", "float32")),
        _sample((1, 1, 4, 5, 24), (1, 1, 3, 3, 24, 8), dtype="float16"),
        _sample((2, 3, 5, 6, 8), (3, 1, 3, 3, 8, 8), padding=((1, 0), (1, 1))),
        _sample((1, 4, 6, 5, 8), (6, 2, 3, 2, 8, 8), stride=(2, 1)),
        _sample((2, 4, 6, 5, 8), (6, 2, 3, 2, 4, 8, 2), padding=((1, 0), (1, 1)), dtype="bfloat16"),
        _sample((1, 1, 9, 7, 16), (2, 1, 3, 3, 8, 16, 2), stride=(2, 1), dtype="bfloat16"),
        _sample((1, 3, 9, 8), (2, 3, 3, 2, 1, 16, 2), padding=((1, 1), (1, 2)), dtype="bfloat16"),
        _sample((1, 2, 4, 5, 8), (1, 1, 1, 1, 8, 8), raises=ShapeError),
        _sample((1, 1, 4, 5, 8), (1, 1, 1, 1, 3, 8, 2), dtype="bfloat16", raises=ShapeError),
    ],
)
def conv_nchwc(
    input: Tensor, weight: Tensor, stride: Ints, padding: Pairs, dilation: Ints
) -> Tensor:
    r"""Convolution of an image with a weight that is packed by blocks of channels.

    :math:`y_{n,o,p,c} = \sum_{i,k,j} x_{n,i,p s + k d,j} \, w_{o,i,k,j,c}` with output channel
    :math:`o b + c`; half precision accumulates in float32. An image of g I blocks makes g groups,
    each with its I blocks and its share of the outputs.

    Args:
        input: NCHWc, shape :math:`(N, g I, H, W, j)`, or plain, shape (N, g I, H, W) with j = 1.
        weight: Shape (O, I, KH, KW, j, b), in the type of the sums or of the image. With a last
            axis for words of g factors (of bfloat16, which processors sum in pairs) the shape is
            (O, I, KH, KW, j / g, b, g), and (O, I, KH, KW / g, 1, b, g) for a plain image.
        stride: Step of the window, per spatial axis.
        padding: Zeros ``(before, after)``, per spatial axis.
        dilation: Distance between kernel taps, per spatial axis.

    Returns:
        Tensor of shape (N, O, OH, OW, b).

    Raises:
        ShapeError: if the extents do not fit.

    Example:
        >>> x, w = ops.ones((1, 2, 4, 4, 8)), ops.ones((3, 2, 1, 1, 8, 8))
        >>> ops.conv_nchwc(x, w, (1, 1), ((0, 0), (0, 0)), (1, 1)).shape
        (1, 3, 4, 4, 8)
    """
    ...


# ---- its weight's gradient --------------------------------------------------------------------


def _infer_weight_grad(input: TensorType, grad: TensorType, **attrs: Unpack[Sliding]) -> TensorType:
    kernel, stride, padding, dilation = in_order(attrs)
    rules.require_dtype(input, dtypes.FLOATS)
    rules.require_same_dtype(input, grad)
    rules.require_ndim(input, (4, 5))
    rules.require_ndim(grad, 5, "grad")
    out = out_sizes(input.shape[2:4], kernel, stride, padding, dilation)
    if (grad.shape[0], *grad.shape[2:4]) != (input.shape[0], *out):
        raise ShapeError(f"grad must have batch {input.shape[0]} and window positions {list(out)}")
    block = input.shape[4] if input.ndim == 5 else 1
    return input.with_shape((grad.shape[1], input.shape[1], *kernel, block, grad.shape[4]))


def _eager_weight_grad(input: np.ndarray, grad: np.ndarray, **attrs: Unpack[Sliding]) -> np.ndarray:
    x, block = (from_nchwc(input), input.shape[4]) if input.ndim == 5 else (input, 1)
    whole = OPS["conv_weight_grad"].eager(x, from_nchwc(grad), groups=1, **attrs)
    return pack_weight(whole, block, grad.shape[4])


def _lower_weight_grad(R: Builder, input: Expr, grad: Expr, **attrs: Unpack[Sliding]) -> Expr:
    _, stride, padding, dilation = in_order(attrs)
    t, wide = R.type(input), wide_dtype(R.type(input).dtype).name
    shape = _infer_weight_grad(t, R.type(grad), **attrs).shape

    def sums(x: Expr, g: Expr) -> Expr:
        padded = _padded(R, x, padding, x.dtype)
        n, y, z = (
            R.te.reduce_axis((0, g.shape[axis]), name=name)
            for axis, name in ((0, "n"), (2, "y"), (3, "x"))
        )

        def element(ob: Expr, ib: Expr, ky: Expr, kx: Expr, ic: Expr, oc: Expr) -> Expr:
            place = (y * stride[0] + ky * dilation[0], z * stride[1] + kx * dilation[1])
            pixel = padded[(n, ib, *place, ic) if len(x.shape) == 5 else (n, ib, *place)]
            product = pixel.astype(wide) * g[n, ob, y, z, oc].astype(wide)
            return R.te.sum(product, axis=[n, y, z])

        return R.te.compute(shape, element, name="conv_nchwc_weight_grad")

    hint = "conv_nchwc_weight_grad"
    return _cast_back(R, R.emit_te(sums, input, grad, primfunc_name_hint=hint), t)


@internal_row(
    _infer_weight_grad, _eager_weight_grad, _lower_weight_grad,
    samples=[
        _sample((2, 2, 5, 6, 8), (2, 1, 4, 7, 8), kernel=(3, 2), padding=((1, 0), (1, 1))),
        _sample((2, 3, 9, 7), (2, 1, 5, 6, 16), kernel=(3, 3), stride=(2, 1),
                padding=((1, 1), (0, 1))),
        _sample((3, 1, 7, 7, 16), (3, 1, 3, 5, 8), kernel=(3, 3), dilation=(2, 1),
                dtype="float64"),
        _sample((2, 1, 4, 5, 24), (2, 1, 4, 5, 8), kernel=(1, 1), dtype="float16"),
        _sample((2, 1, 4, 5, 8), (2, 1, 4, 4, 8), kernel=(1, 1), raises=ShapeError),
    ],
)  # fmt: skip
def conv_nchwc_weight_grad(
    input: Tensor, grad: Tensor, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
) -> Tensor:
    r"""Gradient of :func:`conv_nchwc`, without groups, with respect to its weight.

    :math:`\bar w_{o,i,k,j,c} = \sum_{n,p} x_{n,i,p s + k d,j} \, \bar y_{n,o,p,c}`; half
    precision accumulates in float32.

    Args:
        input: NCHWc, shape :math:`(N, I, H, W, j)`, or plain, shape (N, I, H, W) with j = 1.
        grad: Cotangent of the result, shape (N, O, OH, OW, b).
        kernel: Size of the window, per spatial axis.
        stride: Step of the window, per spatial axis.
        padding: Zeros ``(before, after)``, per spatial axis.
        dilation: Distance between kernel taps, per spatial axis.

    Returns:
        Tensor of shape (O, I, KH, KW, j, b), in the type of the image.

    Raises:
        ShapeError: if the extents do not fit.

    Example:
        >>> x, g = ops.ones((1, 2, 4, 4, 8)), ops.ones((1, 3, 4, 4, 8))
        >>> ops.conv_nchwc_weight_grad(x, g, (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1)).shape
        (3, 2, 1, 1, 8, 8)
    """
    ...


# ---- depthwise convolution --------------------------------------------------------------------


def _infer_depthwise(
    input: TensorType, weight: TensorType, *, stride: Ints, padding: Pairs, dilation: Ints
) -> TensorType:
    _require_weight(input, weight, 4)
    rules.require_ndim(input, 5)
    blocks, kh, kw, block = weight.static_shape
    if (input.shape[1], input.shape[4]) != (blocks, block):
        raise ShapeError("the weight must have one block of channels per block of the input")
    out = out_sizes(input.shape[2:4], (kh, kw), stride, padding, dilation)
    return input.with_shape((*input.shape[:2], *out, block))


def _eager_depthwise(
    input: np.ndarray, weight: np.ndarray, *, stride: Ints, padding: Pairs, dilation: Ints
) -> np.ndarray:
    x = from_nchwc(input)
    whole = from_nchwc(weight[None])[0][:, None].astype(x.dtype, copy=False)
    y = OPS["convolution"].eager(
        x, whole, stride=stride, padding=padding, dilation=dilation, groups=x.shape[1]
    )
    return to_nchwc(y, weight.shape[-1])


def _lower_depthwise(
    R: Builder, input: Expr, weight: Expr, *, stride: Ints, padding: Pairs, dilation: Ints
) -> Expr:
    t = R.type(input)
    out = _infer_depthwise(
        t, R.type(weight), stride=stride, padding=padding, dilation=dilation
    ).shape

    def convolve(x: Expr, w: Expr) -> Expr:
        padded = _padded(R, x, padding, wide_dtype(t.dtype).name)
        ky, kx = (
            R.te.reduce_axis((0, w.shape[i]), name=name) for i, name in ((1, "ky"), (2, "kx"))
        )

        def element(n: Expr, block: Expr, y: Expr, x: Expr, c: Expr) -> Expr:
            place = (y * stride[0] + ky * dilation[0], x * stride[1] + kx * dilation[1])
            return R.te.sum(padded[(n, block, *place, c)] * w[block, ky, kx, c], axis=[ky, kx])

        return R.te.compute(out, element, name="depthwise_nchwc")

    y = R.emit_te(convolve, input, weight, primfunc_name_hint="depthwise_nchwc")
    return _cast_back(R, y, t)


@internal_row(
    _infer_depthwise,
    _eager_depthwise,
    _lower_depthwise,
    samples=[
        _sample((2, 2, 5, 6, 8), (2, 3, 2, 8), padding=((1, 0), (1, 1))),
        _sample((1, 3, 9, 40, 16), (3, 3, 3, 16), stride=(2, 2), padding=((1, 1), (0, 1))),
        _sample((1, 1, 7, 7, 16), (1, 3, 3, 16), dilation=(2, 1), dtype="float64"),
        _sample((1, 1, 4, 5, 8), (1, 1, 1, 8)),
        _sample((1, 1, 4, 5, 8), (1, 2, 2, 8), dtype=("float16", "float32")),
        _sample((1, 2, 4, 5, 8), (1, 1, 1, 8), raises=ShapeError),
    ],
)
def depthwise_nchwc(
    input: Tensor, weight: Tensor, stride: Ints, padding: Pairs, dilation: Ints
) -> Tensor:
    r"""Convolution of every channel of an NCHWc image with a window of its own.

    :math:`y_{n,i,p,c} = \sum_k x_{n,i,p s + k d,c} \, w_{i,k,c}`; half precision accumulates in
    float32.

    Args:
        input: Shape :math:`(N, I, H, W, b)`.
        weight: Shape (I, KH, KW, b), in the type of the sums.
        stride: Step of the window, per spatial axis.
        padding: Zeros ``(before, after)``, per spatial axis.
        dilation: Distance between kernel taps, per spatial axis.

    Returns:
        Tensor of shape (N, I, OH, OW, b).

    Raises:
        ShapeError: if the extents do not fit.

    Example:
        >>> x, w = ops.ones((1, 2, 4, 4, 8)), ops.ones((2, 3, 3, 8))
        >>> ops.depthwise_nchwc(x, w, (1, 1), ((1, 1), (1, 1)), (1, 1)).shape
        (1, 2, 4, 4, 8)
    """
    ...


# ---- by Winograd's transforms -------------------------------------------------------------------


_PLAIN = {"stride": (1, 1), "dilation": (1, 1)}


def _infer_winograd(
    input: TensorType, weight: TensorType, transformed: TensorType, *, padding: Pairs
) -> TensorType:
    rules.require_same_dtype(input, weight, transformed)
    rules.require_ndim(input, 5)
    result = OPS["conv_nchwc"].infer(input, weight, padding=padding, **_PLAIN)
    assert isinstance(result, TensorType)
    outer, blocks, kh, kw, inputs, outputs = weight.static_shape
    products, *rest = transformed.static_shape
    if (kh, kw) != (3, 3) or rest != [outer, blocks * inputs, outputs]:
        raise ShapeError(f"the transformed weight {transformed} does not belong to {weight}")
    if math.isqrt(products) ** 2 != products or products < 16:
        raise ShapeError(f"{products} products per window are none of a square of tiles")
    return result


def _eager_winograd(
    input: np.ndarray, weight: np.ndarray, transformed: np.ndarray, *, padding: Pairs
) -> np.ndarray:
    return OPS["conv_nchwc"].eager(input, weight, padding=padding, **_PLAIN)


def _lower_winograd(
    R: Builder, input: Expr, weight: Expr, transformed: Expr, *, padding: Pairs
) -> Expr:
    t = R.type(input)
    out = _infer_winograd(t, R.type(weight), R.type(transformed), padding=padding).shape
    tile = math.isqrt(R.type(transformed).static_shape[0]) - 2
    # whole tiles: the kernel reads, and then drops, what lies beyond the last row and column
    whole = tuple((lo, hi + -o % tile) for (lo, hi), o in zip(padding, out[2:4]))

    def convolve(x: Expr, w: Expr, _transformed: Expr) -> Expr:
        return nchwc_sums(R, x, w, out, whole, **_PLAIN, winograd=tile)

    return R.emit_te(
        convolve, input, weight, transformed, declared=(2,), primfunc_name_hint="conv_winograd"
    )


def _sample_winograd(*shapes: object, padding: Pairs = ((1, 1), (1, 1)), **kwargs: Any) -> Sample:
    return sample(*shapes, padding=padding, grad=False, **kwargs)


def _matching(outputs: int, inputs: int, block: int, tile: int) -> tuple[np.ndarray, np.ndarray]:
    """A packed weight, and the transform of the same weight."""
    rng = np.random.default_rng(outputs)
    weight = rng.standard_normal((outputs, inputs, 3, 3)).astype(np.float32)
    return pack_weight(weight, block, block), transform_weight(weight, tile, block)


@internal_row(
    _infer_winograd,
    _eager_winograd,
    _lower_winograd,
    samples=[
        _sample_winograd((2, 2, 5, 6, 8), *_matching(24, 16, 8, 2)),
        _sample_winograd((1, 1, 9, 7, 16), *_matching(32, 16, 16, 4), padding=((0, 1), (2, 0))),
        _sample_winograd((2, 3, 6, 9, 16), *_matching(96, 16, 16, 4)),
        _sample_winograd((1, 4, 7, 5, 8), *_matching(48, 16, 8, 2)),
        _sample_winograd((1, 2, 4, 5, 8), (1, 2, 3, 3, 8, 8), (20, 1, 16, 8), raises=ShapeError),
        _sample_winograd((1, 2, 4, 5, 8), (1, 2, 3, 3, 8, 8), (16, 1, 8, 8), raises=ShapeError),
    ],
)
def conv_winograd(input: Tensor, weight: Tensor, transformed: Tensor, padding: Pairs) -> Tensor:
    r"""Convolution with stride 1 and a 3 x 3 window, by fewer products.

    The sums are those of :func:`conv_nchwc`, computed with
    :math:`A^T [(G g G^T) \odot (B^T d B)] A`. In float32 they differ from plain sums by no more
    than plain sums differ from the true ones; where one of them is not finite the plain sum counts.

    Args:
        input: NCHWc, shape :math:`(N, g I, H, W, j)`, with g groups as in :func:`conv_nchwc`.
        weight: Shape (O, I, 3, 3, j, b).
        transformed: Shape :math:`((m + 2)^2, O, I j, b)`: :math:`G g G^T` of every window g.
        padding: Zeros ``(before, after)``, per spatial axis.

    Returns:
        Tensor of shape (N, O, OH, OW, b).

    Raises:
        ShapeError: if the extents do not fit.

    Example:
        >>> x, w = ops.ones((1, 2, 4, 4, 8)), ops.ones((3, 2, 3, 3, 8, 8))
        >>> u = ops.ones((16, 3, 16, 8))
        >>> ops.conv_winograd(x, w, u, ((0, 0), (0, 0))).shape
        (1, 3, 2, 2, 8)
    """
    ...
