"""``ops.operations._grad_ops``: MindSpore's operators of gradients, by the derivative of others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tvmgraph.compat import primitives
from tvmgraph.compat.absent import not_found
from tvmgraph.compat.primitives import helpers
from tvmgraph.compat.primitives.base import build_class, parse_rows
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import float64, int64
from tvmgraph.ops.compositions_images import pool_windows

PATH = "tvmgraph.ops.operations._grad_ops"
#: Operators that get the cotangent and the operand; ``dx`` is ``F.vjp(...)[1](dy)[0]``.
_OF_OPERAND = {
    "AbsGrad": "x, dy: F.abs", "ACosGrad": "x, dy: F.acos", "AsinGrad": "x, dy: F.asin",
    "AtanGrad": "x, dy: F.atan", "FastGeLUGrad": "dy, x: F.fast_gelu", "ReluGrad": "dy, x: F.relu",
    "ReLU6Grad": "dy, x: F.relu6", "HSigmoidGrad": "dy, x: F.hardsigmoid",
    "HSwishGrad": "dy, x: F.hardswish", "SiLUGrad": "dy, x: F.silu",
    "SoftplusGrad": "dy, x: F.softplus",
}  # fmt: skip
_ROWS = (
    "\n".join(
        f"{name} | | {row.partition(': ')[0]} | F.vjp({row.partition(': ')[2]}, x)[1](dy)[0]"
        for name, row in _OF_OPERAND.items()
    )
    + """
AcoshGrad | | y, dy | dy / F.sinh(y)
AsinhGrad | | y, dy | dy / F.cosh(y)
AvgPoolGrad | kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW" | x, out, grad |
  F.vjp(P.AvgPool(kernel_size, strides, pad_mode, data_format), x)[1](grad)[0]
MaxPoolGrad | kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW" | x, out, grad |
  F.vjp(P.MaxPool(kernel_size, strides, pad_mode, data_format), x)[1](grad)[0]
BatchNormGrad | is_training=False, epsilon=1e-05, data_format="NCHW" | dout, x, scale, saved_mean,
  saved_variance, reserve | H.batch_norm(dout, x, scale, saved_mean, saved_variance, is_training,
  epsilon, data_format)
BiasAddGrad | data_format="NCHW" | dy
  | F.sum(dy, (0, *range(2, dy.ndim)) if data_format == "NCHW" else tuple(range(dy.ndim - 1)))
CdistGrad | p=2.0 | grad, x, y, cdist | H.back(lambda t: F.cdist(t, y, p), x, grad)
ConcatOffset | N: int = 2, axis: int = 0 | inputs | H.concat_offset(inputs, axis)
Conv2DBackpropFilter | out_channel: int, kernel_size: ints, pad_mode="valid", pad: ints = 0,
  pad_list: ints = (0, 0, 0, 0), mode: int = 1, stride: ints = (1, 1), dilation: ints =
  (1, 1, 1, 1), group: int = 1, data_format="NCHW" | out_backprop, input, filter_sizes
  | H.back(lambda w: P.Conv2D(filter_sizes[0], filter_sizes[2:], mode, pad_mode, pad, stride[-1],
  dilation[-1], group, data_format)(input, w), F.zeros(filter_sizes, input.dtype), out_backprop)
DeformableOffsetsGrad | strides, pads, kernel_size, dilations=(1, 1, 1, 1), data_format="NCHW",
  deformable_groups=1, modulated=True | out_backprop, input, offsets
  | F.vjp(P.DeformableOffsets(strides, pads, kernel_size, dilations, data_format, deformable_groups,
  modulated), input, offsets)[1](out_backprop)
DropoutGrad | keep_prob=0.5 | dy, mask | dy * mask / keep_prob
EluGrad | | dy, y | F.where(y > 0, dy, dy * (y + 1))
FractionalAvgPoolGrad | overlapping=False | orig_input_tensor_shape, out_backprop,
  row_pooling_sequence, col_pooling_sequence | H.windowed(F.zeros(H.ints(orig_input_tensor_shape),
  out_backprop.dtype), out_backprop, row_pooling_sequence, col_pooling_sequence, overlapping, True)
FractionalMaxPoolGrad | overlapping=False | orig_input, orig_output, out_backprop,
  row_pooling_sequence, col_pooling_sequence | H.windowed(orig_input, out_backprop,
  row_pooling_sequence, col_pooling_sequence, overlapping, False)
FractionalMaxPool3DGradWithFixedKsize | data_format="NCDHW" | x, dy, argmax | H.scattered(...)
GridSampler2DGrad | interpolation_mode="bilinear", padding_mode="zeros", align_corners=False,
  output_mask: ints = (1, 1) | grad, x, grid | F.vjp(lambda t, g: F.grid_sample(t, g,
  interpolation_mode, padding_mode, align_corners), x, grid)[1](grad)
GridSampler3DGrad | interpolation_mode="bilinear", padding_mode="zeros", align_corners=False,
  output_mask: ints = (1, 1) | grad, x, grid | F.vjp(lambda t, g: F.grid_sample(t, g,
  interpolation_mode, padding_mode, align_corners), x, grid)[1](grad)
GeLUGrad | | dy, x, y | F.vjp(lambda t: F.gelu(t, "tanh"), x)[1](dy)[0]
HShrinkGrad | lambd=0.5 | dy, x | F.vjp(lambda t: F.hardshrink(t, lambd), x)[1](dy)[0]
InvGrad | | y, dy | F.neg(dy * y * y)
KLDivLossGrad | reduction="mean" | grad, x, target
  | grad * F.neg(target) / {"mean": x.size, "batchmean": x.shape[0]}.get(reduction, 1)
L2NormalizeGrad | axis: ints = 0, epsilon=1e-4 | x, out, dout
  | H.back(P.L2Normalize(axis, epsilon), x, dout)
LRNGrad | depth_radius: int = 5, bias=1.0, alpha=1.0, beta=0.5 | grads, x, y
  | H.back(P.LRN(depth_radius, bias, alpha, beta), x, grads)
LayerNormGrad | begin_norm_axis: int = 1, begin_params_axis: int = 1 | x, dy, variance, mean, gamma
  | H.layer_norm(x, dy, gamma, begin_norm_axis, begin_params_axis)
LayerNormGradGrad | begin_norm_axis: int = 1, begin_params_axis: int = 1 | x, dy, variance, mean,
  gamma, d_dx, d_dg, d_db | F.vjp(lambda *t: H.layer_norm(*t, begin_norm_axis, begin_params_axis),
  x, dy, gamma)[1](d_dx, d_dg, d_db)
LogSoftmaxGrad | axis=-1 | y, dy | dy - F.exp(y) * F.sum(dy, axis, keepdim=True)
MaxPool3DGradGrad | kernel_size: ints = (1, 1, 1, 1, 1), strides: ints = (1, 1, 1, 1, 1),
  pad_mode="VALID", data_format="NCDHW" | x, out, grad
  | F.jvp(P.MaxPool3D(H.spatial(kernel_size), H.spatial(strides), pad_mode), x, grad)[1]
MaxPoolGradGrad | kernel_size: ints = 1, strides: ints = 1, pad_mode="VALID", data_format="NCHW"
  | x, out, grad | F.jvp(P.MaxPool(kernel_size, strides, pad_mode, data_format), x, grad)[1]
MaxPoolGradGradWithArgmax | kernel_size: ints = 1, strides: ints = 1, pad_mode="VALID",
  data_format="NCHW" | x, grad, argmax | H.gathered(grad, argmax)
MaxPoolGradWithArgmax | kernel_size: ints = 1, strides: ints = 1, pad_mode="VALID",
  data_format="NCHW" | x, grad, argmax | H.scattered(x, grad, argmax)
MaxPoolGradWithArgmaxV2 | kernel_size: ints, strides=None, pads: ints = 0, dilation: ints = (1, 1),
  ceil_mode=False, argmax_type=int64 | x, grad, argmax | H.scattered(x, grad, argmax)
MaximumGradGrad | grad_x=True, grad_y=True | x, y, dx, dy
  | (F.zeros_like(x), F.zeros_like(y), F.where(x >= y, dx, dy))
MaximumGrad | grad_x=True, grad_y=True | x, y, dout | F.vjp(F.maximum, x, y)[1](dout)
MinimumGrad | grad_x=True, grad_y=True | x, y, dout | F.vjp(F.minimum, x, y)[1](dout)
NLLLossGrad | reduction="mean", ignore_index: int = -100 | logits, loss_grad, labels, weight,
  total_weight | H.back(lambda t: P.NLLLoss(reduction, ignore_index)(t, labels, weight)[0],
  logits, loss_grad)
PadV3Grad | mode="reflect", paddings_contiguous=True | dy, paddings
  | H.padded(dy, paddings, mode, paddings_contiguous)
PReLUGrad | | dy, x, weight | F.vjp(F.prelu, x, weight)[1](dy)
ReciprocalGrad | | y, dy | F.neg(dy * y * y)
ResizeBilinearGrad | align_corners=False, half_pixel_centers=False | grads, image
  | H.resized(P.ResizeBilinearV2(align_corners, half_pixel_centers), grads, image.shape[2:])
ResizeNearestNeighborGrad | align_corners=False, half_pixel_centers=False | grads, size
  | H.resized(P.ResizeNearestNeighborV2(align_corners, half_pixel_centers), grads, size)
ResizeNearestNeighborV2Grad | align_corners=False, half_pixel_centers=False | grads, size
  | H.resized(P.ResizeNearestNeighborV2(align_corners, half_pixel_centers), grads, size)
PSROIPoolingGrad | input_size: ints, spatial_scale: float, group_size: int, output_dim: int
  | dx, rois | H.back(lambda t: P.PSROIPooling(spatial_scale, group_size, output_dim)(t, rois),
  F.zeros((rois.shape[0], output_dim * group_size**2, *H.ints(input_size)), dx.dtype), dx)
ROIAlignGrad | pooled_height: int, pooled_width: int, spatial_scale, sample_num: int = 2
  | dy, rois, xdiff_shape | H.back(lambda t: P.ROIAlign(pooled_height, pooled_width, spatial_scale,
  sample_num)(t, rois), F.zeros(H.ints(xdiff_shape), dy.dtype), dy)
RsqrtGrad | | y, dy | dy * y * y * y * -0.5
SigmoidCrossEntropyWithLogitsGrad | | x, y, dout | dout * (F.sigmoid(x) - y)
SigmoidGrad | | y, dy | dy * y * (1 - y)
SmoothL1LossGrad | beta=1.0, reduction="none" | x, y, dy |
  F.vjp(lambda t: F.smooth_l1_loss(t, y, beta, reduction), x)[1](dy)[0]
SoftShrinkGrad | lambd=0.5 | dy, x | F.vjp(lambda t: F.softshrink(t, lambd), x)[1](dy)[0]
SliceGrad | | dy, x, begin, size | H.back(lambda t: F.slice(t, begin, size), x, dy)
SoftmaxBackward | | dout, out, dim=-1 | out * (dout - F.sum(dout * out, dim, keepdim=True))
StridedSliceGrad | begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0,
  new_axis_mask: int = 0, shrink_axis_mask: int = 0 | dy, shape, begin, end, strides
  | H.back(lambda t: P.StridedSlice(begin_mask, end_mask, ellipsis_mask, new_axis_mask,
  shrink_axis_mask)(t, begin, end, strides), F.zeros(H.ints(shape), dy.dtype), dy)
SoftmaxGrad | | y, dy | y * (dy - F.sum(dy * y, -1, keepdim=True))
SqrtGrad | | y, dy | dy / y * 0.5
TanhGrad | | y, dy | dy * (1 - y * y)
UpsampleNearest3DGrad | | dy, input_size, output_size=None, scales=None
  | H.resized(lambda t, _: P.UpsampleNearest3D()(t, output_size, scales), dy, input_size[2:])
UpsampleTrilinear3DGrad | align_corners=False | dy, input_size, output_size=None, scales=None
  | H.resized(lambda t, _: P.UpsampleTrilinear3D(align_corners)(t, output_size, scales), dy,
  input_size[2:])
"""
)
ROWS = parse_rows(_ROWS)


class _Helpers:
    """Gradients that are no single expression."""

    ints = staticmethod(helpers.ints)

    @staticmethod
    def back(function: object, x: object, dy: object) -> Any:
        """The gradient of the operand; ``dy`` may have another shape of as many elements."""
        y, pullback = F.vjp(function, x)
        return pullback(F.reshape(dy, y.shape))[0]

    @staticmethod
    def spatial(sizes: Sequence[int]) -> Any:
        """Sizes of the last three axes; one int stands for three."""
        return sizes if isinstance(sizes, int) else sizes[-3:]

    @staticmethod
    def windowed(
        x: Tensor, dy: Tensor, rows: Any, columns: Any, overlapping: bool, mean: bool
    ) -> Tensor:
        """The gradient of what was pooled by windows between edges; integers have one, too."""
        wide = float64 if x.dtype.is_integer else x.dtype
        pool = functools.partial(pool_windows, rows=rows, columns=columns,
                                 overlapping=overlapping, mean=mean)  # fmt: skip
        return F.cast(_Helpers.back(pool, F.cast(x, wide), F.cast(dy, wide)), x.dtype)

    @staticmethod
    def scattered(x: Tensor, grad: object, argmax: object) -> Tensor:
        """Adds what came through a pool to the elements that it chose, numbered per channel."""
        flat = (*x.shape[:2], -1)
        zeros = F.zeros_like(F.reshape(x, flat))
        places, grad = F.reshape(argmax, flat), F.reshape(grad, flat)
        return F.reshape(F.tensor_scatter_elements(zeros, places, grad, 2, "add"), x.shape)

    @staticmethod
    def gathered(grad: Tensor, argmax: Tensor) -> Tensor:
        """The elements that a pool chose, numbered per image."""
        flat = (grad.shape[0], -1)
        found = F.gather_elements(F.reshape(grad, flat), 1, F.reshape(argmax, flat))
        return F.reshape(found, argmax.shape)

    @staticmethod
    def resized(resize: Callable[..., Tensor], grads: Tensor, size: object) -> Tensor:
        """The gradient of images of a size; ``resize(images, size)`` made the larger ones."""
        before = F.zeros((*grads.shape[:2], *helpers.ints(size)), grads.dtype)
        return _Helpers.back(lambda t: resize(t, tuple(grads.shape[2:])), before, grads)

    @staticmethod
    def padded(dy: Tensor, paddings: object, mode: str, contiguous: bool) -> Any:
        """The gradient of what was padded."""
        pads = helpers.ints(paddings)
        half = len(pads) // 2
        pairs = zip(pads[::2], pads[1::2]) if contiguous else zip(pads[:half], pads[half:])
        sums = [a + b for a, b in pairs][::-1]
        kept = (*dy.shape[: dy.ndim - half], *(n - s for n, s in zip(dy.shape[-half:], sums)))
        pad = primitives.PadV3(mode, contiguous)
        return _Helpers.back(lambda t: pad(t, pads), F.zeros(kept, dy.dtype), dy)

    @staticmethod
    def layer_norm(
        x: object, dy: object, gamma: object, norm_axis: int, params_axis: int
    ) -> tuple[Tensor, ...]:
        """Gradients of the operand, the scale and the shift."""
        norm = primitives.LayerNorm(norm_axis, params_axis)
        return F.vjp(lambda *t: norm(*t)[0], x, gamma, F.zeros_like(gamma))[1](dy)

    @staticmethod
    def batch_norm(
        dout: Tensor,
        x: Tensor,
        scale: object,
        mean: NumberLike,
        variance: Tensor,
        training: bool,
        epsilon: float,
        data_format: str,
    ) -> tuple[Tensor, ...]:
        """Gradients of the operand, the scale and the shift, from the statistics kept."""
        channels = 1 if data_format == "NCHW" else x.ndim - 1
        axes = tuple(a for a in range(x.ndim) if a != channels)
        shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
        scale, mean, variance = (F.reshape(t, shape) for t in (scale, mean, variance))
        inverse = F.rsqrt(variance + epsilon)
        normal = (x - mean) * inverse
        dscale, dbias = F.sum(dout * normal, axes, True), F.sum(dout, axes, True)
        if training:
            dout = dout - (dbias + normal * dscale) * (dscale.size / x.size)
        return dout * scale * inverse, F.reshape(dscale, (-1,)), F.reshape(dbias, (-1,))

    @staticmethod
    def concat_offset(inputs: Sequence[Tensor], axis: int) -> Tensor:
        """Where every operand of ``concat`` begins in the result, one row each."""
        rows, start = [], 0
        for x in inputs:
            rows.append([start if a == axis % x.ndim else 0 for a in range(x.ndim)])
            start += x.shape[axis]
        return Tensor(rows, int64)


def __getattr__(name: str) -> Any:
    if name not in ROWS:
        raise not_found(PATH, name, [*ROWS, *primitives.ROWS])
    built = build_class(ROWS[name], PATH, {"P": primitives, "H": _Helpers})
    globals()[name] = built
    return built


def __dir__() -> list[str]:
    return sorted(ROWS)


__all__ = [*ROWS]  # pyright: ignore[reportUnsupportedDunderAll]
