"""The gradient of a convolution with respect to its weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ShapeError
from tvmgraph.ops.common.rows import wide_dtype, widen
from tvmgraph.ops.common.window import (
    Grouped,
    Ints,
    Pairs,
    Sliding,
    batches,
    columns,
    conv_sample,
    flat_padding,
    in_order,
    out_sizes,
    output_padding,
    require_spatial,
)

__all__ = ["conv_weight_grad"]


def _infer_weight_grad(
    input: TensorType, grad: TensorType, *, groups: int, **attrs: Unpack[Sliding]
) -> TensorType:
    kernel, stride, padding, dilation = in_order(attrs)
    rules.require_dtype(input, dtypes.FLOATS)
    rules.require_same_dtype(input, grad)
    require_spatial(input, len(kernel))
    channels, outputs = input.shape[1], grad.shape[1]
    out = out_sizes(input.shape[2:], kernel, stride, padding, dilation)
    if grad.shape[2:] != out or grad.shape[0] != input.shape[0]:
        raise ShapeError(f"grad must have batch {input.shape[0]} and window positions {list(out)}")
    if channels % groups or outputs % groups:  # pyright: ignore[reportOperatorIssue]
        raise ShapeError(f"{channels} and {outputs} channels are not divisible by groups {groups}")
    return input.with_shape((outputs, channels // groups, *kernel))  # pyright: ignore


def _numpy_weight_grad(
    x: np.ndarray, g: np.ndarray, *, groups: int, **attrs: Unpack[Sliding]
) -> np.ndarray:
    kernel, stride, padding, dilation = in_order(attrs)
    wide, out, per_group = widen(x), g.shape[2:], x.shape[1] // groups
    depth, points = per_group * int(np.prod(kernel)), int(np.prod(out))
    grads = widen(g).reshape(g.shape[0], groups, g.shape[1] // groups, points)
    total = np.zeros((groups, grads.shape[2], depth), wide.dtype)
    for part in batches(x.shape[0], groups * depth * (points + grads.shape[2])):
        cols = columns(wide[part], kernel, stride, padding, dilation, out)
        cols = cols.reshape(-1, groups, depth, points)
        total += np.matmul(grads[part], cols.swapaxes(-1, -2)).sum(axis=0)
    return total.reshape(g.shape[1], per_group, *kernel).astype(x.dtype, copy=False)


def _lower_weight_grad(
    R: Builder, x: Expr, g: Expr, *, groups: int, **attrs: Unpack[Sliding]
) -> Expr:
    kernel, stride, padding, dilation = in_order(attrs)
    t = R.type(x)
    per_group = int(t.shape[1]) // groups
    outputs = int(R.type(g).shape[1])
    acc = wide_dtype(t.dtype).name
    if t.is_static and t.size == 0:
        return R.op.zeros(R.shape((outputs, per_group, *kernel)), t.dtype.name)

    def compute(data: Expr, grad: Expr) -> Expr:
        if any(lo or hi for lo, hi in padding):
            before = [0, 0, *(lo for lo, _ in padding)]
            data = R.topi.nn.pad(data, before, [0, 0, *(hi for _, hi in padding)], 0.0)
        axes = [R.te.reduce_axis((0, v), name=f"r{i}")
                for i, v in enumerate((grad.shape[0], *grad.shape[2:]))]  # fmt: skip

        def element(o: Expr, c: Expr, *k: Expr) -> Expr:
            at = [p * s + v * d for p, s, v, d in zip(axes[1:], stride, k, dilation)]
            channel = c if groups == 1 else o // (outputs // groups) * per_group + c
            product = grad[(axes[0], o, *axes[1:])].astype(acc) * data[
                (axes[0], channel, *at)
            ].astype(acc)
            return R.te.sum(product, axis=axes)

        return R.te.compute((outputs, per_group, *kernel), element, name="conv_weight_grad")

    y = R.emit_te(compute, x, g, primfunc_name_hint="conv_weight_grad")
    return R.op.astype(y, t.dtype.name) if acc != t.dtype.name else y


def _vjp_weight_grad(
    gw: Tensor, y: Tensor, x: Tensor, g: Tensor, *, kernel: Ints, **common: Unpack[Grouped]
) -> tuple[Tensor, Tensor]:
    window = (kernel, common["stride"], common["padding"], common["dilation"])
    extra = output_padding(x.shape[2:], g.shape[2:], *window)
    return (F.conv_transpose(g, gw, output_padding=extra, **common), F.convolution(x, gw, **common))


def _onnx_weight_grad(
    O: OnnxOps, x: OnnxNamed, g: OnnxNamed, *, groups: int, **attrs: Unpack[Sliding]
) -> OnnxNamed:
    """A convolution over the batch: strides and dilations trade places, windows are cropped."""
    kernel, stride, padding, dilation = in_order(attrs)
    spatial = list(range(2, 2 + len(kernel)))
    channels, sizes = x.type.shape[1], x.type.shape[2:]
    if groups > 1:
        x = O.Reshape(x, np.array([0, groups, channels // groups, *sizes], np.int64))
        x = O.Transpose(x, perm=[2, 1, 0, *(a + 1 for a in spatial)])
        x = O.Reshape(x, np.array([channels // groups, -1, *sizes], np.int64))
    else:
        x = O.Transpose(x, perm=[1, 0, *spatial])
    g = O.Transpose(g, perm=[1, 0, *spatial])
    y = O.Conv(x, g, strides=list(dilation), dilations=list(stride), pads=flat_padding(padding),
               group=groups)  # fmt: skip
    y = O.Transpose(y, perm=[1, 0, *spatial])
    starts, ends = np.zeros(len(kernel), np.int64), np.array(kernel, np.int64)
    return O.Slice(y, starts, ends, np.array(spatial, np.int64))


def _weight_factors(types: Sequence[TensorType], attrs: Mapping[str, object]) -> str:
    """Channels of both operands, and sums over images."""
    return "n c *, n o * -> o c *" if attrs["groups"] == 1 else "n . *, n . * -> . . *"


@primitive(
    infer=_infer_weight_grad,
    traits=Traits(Pattern.CONTRACTION, _weight_factors),
    eager=_numpy_weight_grad,
    lower=_lower_weight_grad,
    vjp=_vjp_weight_grad,
    onnx=_onnx_weight_grad,
    samples=[
        conv_sample((2, 3, 5, 6), (2, 4, 3, 5), kernel=(3, 2)),
        conv_sample((2, 2, 7, 6), (2, 3, 3, 3), kernel=(3, 2), stride=(2, 2),
                    padding=((0, 1), (1, 0))),
        conv_sample((2, 4, 6, 6), (2, 6, 5, 3), kernel=(2, 2), stride=(1, 2),
                    padding=((1, 0), (0, 0)), dilation=(2, 1), groups=2),
        conv_sample((2, 3, 9), (2, 4, 3), kernel=(3,), stride=(2,), padding=((1, 0),),
                    dilation=(2,)),
        conv_sample((1, 2, 3, 4, 5), (1, 3, 3, 2, 5), kernel=(2, 2, 2), stride=(1, 2, 1),
                    padding=((0, 1), (0, 0), (1, 0))),
        conv_sample((0, 3, 5, 5), (0, 4, 3, 3), kernel=(3, 3), grad=False),
        conv_sample((3, 2, 9, 9), (3, 4, 7, 7), kernel=(3, 3), dtype="float16", grad=False),
        conv_sample((1, 3, 5, 5), (1, 4, 4, 3), kernel=(3, 3), raises=ShapeError),
    ],
)  # fmt: skip
def conv_weight_grad(input: Tensor, grad: Tensor, kernel: Ints, stride: Ints, padding: Pairs,
                     dilation: Ints, groups: int) -> Tensor:  # fmt: skip
    r"""Correlates a convolution's input with its output cotangent: the cotangent of the weight.

    Args:
        input: The convolution's input, :math:`(N, C_{in}, *spatial)`.
        grad: Cotangent of its output, :math:`(N, C_{out}, *out)`.
        kernel: Sizes of the kernel.
        stride: As in :func:`convolution`.
        padding: As in :func:`convolution`.
        dilation: As in :func:`convolution`.
        groups: As in :func:`convolution`.

    Returns:
        Tensor of shape :math:`(C_{out}, C_{in} / groups, *kernel)`.

    Raises:
        ShapeError: if ``grad`` does not have the shape of the convolution's output.
    """
    ...
