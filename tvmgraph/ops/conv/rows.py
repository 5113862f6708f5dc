"""Convolution, its transpose and the gradient of its weight in one to three spatial dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.sizes import Dim
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Batch, Pattern, Traits
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.errors import ShapeError
from tvmgraph.ops.common.rows import LOW_PRECISION, wide_dtype, widen
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
    onnx_padding,
    out_sizes,
    output_padding,
    require_spatial,
    scatter_columns,
)
from tvmgraph.ops.conv.phases import Axes, join_residues, phases_of, pixel_weight, residue_weight

__all__ = ["conv_transpose", "conv_weight_grad", "convolution"]


def _require_groups(
    channels: object, per_group: int | Dim, outputs: int | Dim, groups: int
) -> None:
    if outputs % groups:
        raise ShapeError(f"{outputs} output channels are not divisible by groups {groups}")
    if channels != per_group * groups:
        raise ShapeError(
            f"input has {channels} channels, but the weight takes {per_group} in {groups} groups",
            fix=f"make the input's channels {per_group * groups}, or change weight or groups",
        )


# ---- convolution ------------------------------------------------------------------------------


def _infer_conv(input: TensorType, weight: TensorType, **attrs: Unpack[Grouped]) -> TensorType:
    stride = attrs["stride"]
    rules.require_dtype(input, dtypes.FLOATS)
    rules.require_same_dtype(input, weight)
    require_spatial(input, len(stride))
    require_spatial(weight, len(stride), "weight")
    outputs, per_group, *kernel = weight.static_shape
    _require_groups(input.shape[1], per_group, outputs, attrs["groups"])
    out = out_sizes(input.shape[2:], tuple(kernel), stride, attrs["padding"], attrs["dilation"])
    return input.with_shape((input.shape[0], outputs, *out))


def _numpy_conv(
    x: np.ndarray, w: np.ndarray, *, stride: Ints, padding: Pairs, dilation: Ints, groups: int
) -> np.ndarray:
    wide, kernel, dtype = widen(x), w.shape[2:], x.dtype
    out = out_sizes(x.shape[2:], kernel, stride, padding, dilation)
    weights = widen(w).reshape(groups, w.shape[0] // groups, -1)
    depth, points = weights.shape[2], int(np.prod(out))
    y = np.empty((x.shape[0], groups, weights.shape[1], points), wide.dtype)
    for part in batches(x.shape[0], groups * depth * points):
        cols = columns(wide[part], kernel, stride, padding, dilation, out)
        np.matmul(weights, cols.reshape(-1, groups, depth, points), out=y[part])
    return y.reshape(x.shape[0], w.shape[0], *out).astype(dtype, copy=False)


def _onnx_attrs(attrs: Grouped) -> dict[str, object]:
    """What ONNX calls the attributes, but for the padding."""
    return {
        "strides": list(attrs["stride"]), "dilations": list(attrs["dilation"]),
        "group": attrs["groups"],
    }  # fmt: skip


def _lower_conv(R: Builder, x: Expr, w: Expr, **attrs: Unpack[Grouped]) -> Expr:
    t, stride = R.type(x), attrs["stride"]
    if (t.is_static and t.size == 0) or R.type(w).size == 0:
        y = _infer_conv(t, R.type(w), **attrs)
        return R.op.zeros(R.shape(y.shape), y.dtype.name)
    low = t.dtype in LOW_PRECISION
    y = getattr(R.nn, f"conv{len(stride)}d")(
        x, w, strides=list(stride), padding=flat_padding(attrs["padding"]),
        dilation=list(attrs["dilation"]), groups=attrs["groups"],
        out_dtype="float32" if low else None,
    )  # fmt: skip
    return R.op.astype(R.emit(y), t.dtype.name) if low else y


def _vjp_conv(
    g: Tensor, y: Tensor, x: Tensor, w: Tensor, **attrs: Unpack[Grouped]
) -> tuple[Tensor, Tensor]:
    window = (w.shape[2:], attrs["stride"], attrs["padding"], attrs["dilation"])
    extra = output_padding(x.shape[2:], y.shape[2:], *window)
    return (
        F.conv_transpose(g, w, output_padding=extra, **attrs),
        F.conv_weight_grad(x, g, kernel=w.shape[2:], **attrs),
    )


def _onnx_conv(O: OnnxOps, x: OnnxNamed, w: OnnxNamed, **attrs: Unpack[Grouped]) -> OnnxNamed:
    window = w.type.static_shape[2:], attrs["stride"], attrs["padding"], attrs["dilation"]
    return O.Conv(x, w, **onnx_padding(x.type.shape[2:], *window), **_onnx_attrs(attrs))


def _conv_factors(types: Sequence[TensorType], attrs: Mapping[str, object]) -> str:
    """Images and channels of the result; sums over channels unless they are in groups."""
    return "n c *, o c * -> n o *" if attrs["groups"] == 1 else "n . *, . . * -> n . *"


@primitive(
    infer=_infer_conv,
    traits=Traits(Pattern.CONTRACTION, _conv_factors, batch=Batch.IMAGES),
    eager=_numpy_conv,
    lower=_lower_conv,
    vjp=_vjp_conv,
    onnx=_onnx_conv,
    samples=[
        conv_sample((2, 3, 5, 6), (4, 3, 3, 2)),
        conv_sample((1, 2, 7, 5), (3, 2, 3, 3), stride=(2, 1), padding=((0, 1), (1, 1))),
        conv_sample((2, 4, 6, 6), (6, 2, 2, 2), stride=(1, 2), padding=((1, 0), (0, 0)),
                    dilation=(2, 1), groups=2),
        conv_sample((2, 3, 5, 5), (6, 1, 3, 3), padding=((1, 1), (1, 1)), groups=3),
        conv_sample((2, 3, 4, 4), (5, 3, 1, 1)),
        conv_sample((1, 2, 4, 4), (3, 2, 1, 1), stride=(2, 2), padding=((1, 1), (0, 2))),
        conv_sample((2, 3, 9), (4, 3, 3), stride=(2,), padding=((1, 0),), dilation=(2,)),
        conv_sample((1, 2, 3, 4, 5), (3, 2, 2, 2, 2), stride=(1, 2, 1),
                    padding=((0, 1), (0, 0), (1, 0))),
        conv_sample((0, 3, 5, 5), (4, 3, 3, 3), grad=False),
        conv_sample((1, 300, 5, 5), (2, 300, 3, 3), dtype="float16", grad=False),
        conv_sample((1, 3, 5, 5), (2, 3, 3, 3), dtype="float64", grad=False),
        conv_sample((2, 4, 5, 5), (4, 3, 3, 3), raises=ShapeError),
        conv_sample((2, 3, 2, 5), (4, 3, 3, 3), raises=ShapeError),
    ],
)  # fmt: skip
def convolution(input: Tensor, weight: Tensor, stride: Ints, padding: Pairs, dilation: Ints,
                groups: int) -> Tensor:  # fmt: skip
    r"""Cross-correlates the input with the weight in 1, 2 or 3 spatial dimensions.

    :math:`out_{n,o,p} = \sum_{c,k} weight_{o,c,k} \cdot padded_{n,c,p \cdot stride + k \cdot
    dilation}`; half precision accumulates in float32.

    Args:
        input: Tensor of shape :math:`(N, C_{in}, *spatial)`, a float dtype.
        weight: Tensor of shape :math:`(C_{out}, C_{in} / groups, *kernel)`, ``input``'s dtype.
        stride: Step of the window, per spatial axis.
        padding: Zeros ``(before, after)``, per spatial axis.
        dilation: Distance between kernel taps, per spatial axis.
        groups: Number of blocks into which the channels are split.

    Returns:
        Tensor of shape :math:`(N, C_{out}, *out)` with
        :math:`out = \lfloor (size + before + after - dilation (kernel - 1) - 1) / stride \rfloor
        + 1`.

    Raises:
        ShapeError: if channels do not fit, or a window does not fit the padded input.

    Example:
        >>> ops.convolution(ops.ones((1, 1, 3)), ops.ones((1, 1, 2)), (1,), ((0, 0),), (1,), 1)
        Tensor(shape=[1, 1, 2], dtype=Float32, value=
        [[[ 2.00000000e+00,  2.00000000e+00]]])
    """
    ...


# ---- transposed convolution -------------------------------------------------------------------


def _infer_conv_transpose(
    input: TensorType, weight: TensorType, *, output_padding: Ints, **attrs: Unpack[Grouped]
) -> TensorType:
    stride, groups = attrs["stride"], attrs["groups"]
    rules.require_dtype(input, dtypes.FLOATS)
    rules.require_same_dtype(input, weight)
    require_spatial(input, len(stride))
    require_spatial(weight, len(stride), "weight")
    channels, per_group, *kernel = weight.static_shape
    if channels % groups or input.shape[1] != channels:
        raise ShapeError(
            f"input has {input.shape[1]} channels, but the weight takes {channels}"
            f" in {groups} groups",
            fix="make the input's channels equal to weight.shape[0], a multiple of groups",
        )
    out = tuple(
        (n - 1) * s - lo - hi + d * (k - 1) + 1 + extra
        for n, s, (lo, hi), d, k, extra in zip(
            rules.kernel_sizes(input, 2),
            stride,
            attrs["padding"],
            attrs["dilation"],
            kernel,
            output_padding,
        )
    )
    if any(o < 1 for o in out):
        raise ShapeError(f"the output size {list(out)} is not positive", fix="use less padding")
    return input.with_shape((input.shape[0], per_group * groups, *out))


def _numpy_conv_transpose(
    x: np.ndarray, w: np.ndarray, *, output_padding: Ints, **attrs: Unpack[Grouped]
) -> np.ndarray:
    wide, kernel, dtype, groups = widen(x), w.shape[2:], x.dtype, attrs["groups"]
    types = tensor_type(x.shape, dtype), tensor_type(w.shape, dtype)
    t = _infer_conv_transpose(*types, output_padding=output_padding, **attrs)
    window = (kernel, attrs["stride"], attrs["padding"], attrs["dilation"])
    weights = widen(w).reshape(groups, w.shape[0] // groups, -1).swapaxes(-1, -2)
    points = int(np.prod(x.shape[2:]))
    y = np.zeros(t.static_shape, wide.dtype)
    for part in batches(x.shape[0], groups * weights.shape[1] * points):
        piece = wide[part].reshape(-1, groups, weights.shape[2], points)
        cols = np.matmul(weights, piece)
        cols = cols.reshape(cols.shape[0], y.shape[1], *kernel, *x.shape[2:])
        y[part] = scatter_columns(cols, y.shape[2:], *window)
    return y.astype(dtype, copy=False)


def _spread(R: Builder, stride: Ints, before: Ints, sizes: Ints) -> Callable[..., Expr]:
    """TE: inserts ``stride - 1`` zeros between elements and moves them ``before`` places."""

    def compute(x: Expr) -> Expr:
        def element(n: Expr, c: Expr, *at: Expr) -> Expr:
            moved = [a - b for a, b in zip(at, before)]
            inside = [v >= 0 for v in moved]
            inside += [v < (m - 1) * s + 1 for v, m, s in zip(moved, x.shape[2:], stride)]
            inside += [R.tir.truncmod(v, s) == 0 for v, s in zip(moved, stride) if s > 1]
            source = [R.tir.truncdiv(v, s) if s > 1 else v for v, s in zip(moved, stride)]
            return R.tir.if_then_else(
                R.tir.all(*inside), x[(n, c, *source)], R.tir.const(0, x.dtype)
            )

        return R.te.compute((*x.shape[:2], *sizes), element, name="spread")

    return compute


def _turned_conv(
    R: Builder, padding: Pairs, dilation: Ints, groups: int, acc: str
) -> Callable[..., Expr]:
    """TE: convolution of stride 1 with a weight whose channels are swapped, group by group, and
    whose taps are reversed, with sums of type ``acc``. The weight is read where it lies."""

    def compute(x: Expr, w: Expr) -> Expr:
        if any(lo or hi for lo, hi in padding):
            before = [0, 0, *(lo for lo, _ in padding)]
            x = R.topi.nn.pad(x, before, [0, 0, *(hi for _, hi in padding)], 0.0)
        inputs, outputs, *kernel = [int(v) for v in w.shape]
        per_group = inputs // groups
        channels = R.te.reduce_axis((0, per_group), name="i")
        taps = [R.te.reduce_axis((0, k), name=f"k{axis}") for axis, k in enumerate(kernel)]
        out = [n - d * (k - 1) for n, k, d in zip(x.shape[2:], kernel, dilation)]

        def element(n: Expr, o: Expr, *at: Expr) -> Expr:
            channel = channels if groups == 1 else o // outputs * per_group + channels
            member = o if groups == 1 else o % outputs
            pixel = x[(n, channel, *(a + t * d for a, t, d in zip(at, taps, dilation)))]
            reverse = [k - 1 - t for k, t in zip(kernel, taps)]
            weight = w[(channel, member, *reverse)]
            product = pixel.astype(acc) * weight.astype(acc)
            return R.te.sum(product, axis=[channels, *taps])

        shape = (x.shape[0], groups * outputs, *out)
        return R.te.compute(shape, element, name="conv_transpose")

    return compute


def _lower_conv_transpose(
    R: Builder, x: Expr, w: Expr, *, output_padding: Ints, **attrs: Unpack[Grouped]
) -> Expr:
    tx, tw = R.type(x), R.type(w)
    result = _infer_conv_transpose(tx, tw, output_padding=output_padding, **attrs)
    stride, padding, dilation = attrs["stride"], attrs["padding"], attrs["dilation"]
    groups = attrs["groups"]
    if (tx.is_static and tx.size == 0) or tw.size == 0:
        return R.op.zeros(R.shape(result.shape), result.dtype.name)
    reach = [d * (k - 1) for d, k in zip(dilation, tw.static_shape[2:])]
    before = tuple(r - lo for r, (lo, _) in zip(reach, padding))
    after = tuple(r - hi + e for r, (_, hi), e in zip(reach, padding, output_padding))
    pads = tuple(zip(before, after))
    low = tx.dtype in LOW_PRECISION

    def wide(value: Expr) -> Expr:  # TVM has no bfloat16 selects
        return R.emit(R.op.astype(value, "float32")) if low else value

    out = result.with_shape(result.shape[2:]).static_shape
    spatial = tx.with_shape(tx.shape[2:]).static_shape
    kernel, cut = tw.static_shape[2:], tuple(lo for lo, _ in padding)
    fits = all(lo + o <= k for lo, o, k in zip(cut, out, kernel))
    if set(spatial) == {1} and set(dilation) == {1} and fits:
        weighted = pixel_weight(R, out, cut, groups)
        y = R.emit_te(weighted, wide(x), wide(w), primfunc_name_hint="conv_transpose")
        return R.op.astype(y, tx.dtype.name) if low else y
    pairs = int(np.prod(spatial)) * tw.static_shape[0]
    phases = phases_of(spatial, out, kernel, stride, padding, dilation, (pairs, tw.static_shape[1]))
    if phases is not None and any(s > 1 for s in stride):
        y = _by_phases(R, wide(x), wide(w), phases, out, groups)
        return R.op.astype(R.emit(y), tx.dtype.name) if low else y
    if any(s > 1 for s in stride) or min(*before, *after) < 0:
        sizes = tuple(int(n) + r for n, r in zip(result.shape[2:], reach))  # pyright: ignore[reportArgumentType]
        x = R.emit_te(_spread(R, stride, before, sizes), wide(x), primfunc_name_hint="spread")
        pads = ((0, 0),) * len(stride)
    acc = "float32" if low else tx.dtype.name
    y = R.emit_te(_turned_conv(R, pads, dilation, groups, acc), x, w,
                  primfunc_name_hint="conv_transpose")  # fmt: skip
    return R.op.astype(y, tx.dtype.name) if low else y


def _by_phases(R: Builder, x: Expr, w: Expr, axes: Axes, out: Ints, groups: int) -> Expr:
    """The residues of a strided transposed convolution by plain convolutions."""
    parts: list[object] = []
    for phases in itertools.product(*axes):
        hint = "residue_weight"
        flipped = R.emit_te(residue_weight(R, phases, groups), w, primfunc_name_hint=hint)
        y = _lower_conv(
            R, x, flipped, stride=(1,) * len(phases), padding=tuple(p.padding for p in phases),
            dilation=tuple(p.dilation for p in phases), groups=groups,
        )  # fmt: skip
        parts.append(R.emit(y))
    return R.emit_te(join_residues(R, axes, out), *parts, primfunc_name_hint="join_residues")


def _vjp_conv_transpose(
    g: Tensor, y: Tensor, x: Tensor, w: Tensor, *, output_padding: Ints, **attrs: Unpack[Grouped]
) -> tuple[Tensor, Tensor]:
    stride, padding, dilation = attrs["stride"], attrs["padding"], attrs["dilation"]
    # positions of the output that only output_padding created see no window
    size = [
        (n - 1) * s + d * (k - 1) + 1
        for n, s, d, k in zip(x.shape[2:], stride, dilation, w.shape[2:])
    ]
    cut = tuple(min(o, f - lo) for o, f, (lo, _) in zip(y.shape[2:], size, padding))
    if cut != tuple(y.shape[2:]):
        g = g[(slice(None), slice(None), *(slice(0, c) for c in cut))]
    pads = tuple((lo, f - lo - c) for f, (lo, _), c in zip(size, padding, cut))
    attrs["padding"] = pads
    return F.convolution(g, w, **attrs), F.conv_weight_grad(g, x, kernel=w.shape[2:], **attrs)


def _onnx_conv_transpose(
    O: OnnxOps, x: OnnxNamed, w: OnnxNamed, *, output_padding: Ints, **attrs: Unpack[Grouped]
) -> OnnxNamed:
    return O.ConvTranspose(
        x, w, output_padding=list(output_padding), pads=flat_padding(attrs["padding"]),
        **_onnx_attrs(attrs),
    )  # fmt: skip


def _transposed(images: Ints, *more: object, output_padding: Ints = (), **kwargs: Any) -> Sample:
    extra = output_padding or (0,) * len(images[2:])
    return conv_sample(images, *more, output_padding=extra, **kwargs)


def _transposed_factors(types: Sequence[TensorType], attrs: Mapping[str, object]) -> str:
    """As of a convolution, whose weight has the other order of channels."""
    return "n c *, c o * -> n o *" if attrs["groups"] == 1 else "n . *, . . * -> n . *"


@primitive(
    infer=_infer_conv_transpose,
    traits=Traits(Pattern.CONTRACTION, _transposed_factors),
    eager=_numpy_conv_transpose,
    lower=_lower_conv_transpose,
    vjp=_vjp_conv_transpose,
    onnx=_onnx_conv_transpose,
    samples=[
        _transposed((2, 3, 4, 3), (3, 2, 3, 2)),
        _transposed((1, 2, 3, 4), (2, 3, 3, 3), stride=(2, 3), padding=((1, 0), (1, 1)),
                    output_padding=(1, 2)),
        _transposed((2, 4, 3, 3), (4, 3, 2, 2), stride=(1, 2), padding=((1, 1), (0, 1)),
                    dilation=(2, 3), groups=2),
        _transposed((1, 3, 4, 4), (3, 1, 3, 3), padding=((1, 1), (1, 1)), groups=3),
        _transposed((1, 2, 4, 4), (2, 3, 1, 1), stride=(2, 2), padding=((1, 1), (0, 2)),
                    output_padding=(1, 1)),
        _transposed((2, 3, 5), (3, 2, 3), stride=(2,), padding=((1, 0),), dilation=(2,)),
        _transposed((1, 2, 2, 3, 2), (2, 2, 2, 2, 3), stride=(1, 2, 1),
                    padding=((0, 1), (0, 0), (1, 0))),
        _transposed((0, 3, 5, 5), (3, 4, 3, 3), grad=False),
        _transposed((1, 3, 5, 5), (3, 2, 3, 3), dtype="float16", grad=False),
        _transposed((2, 4, 5, 5), (3, 3, 3, 3), raises=ShapeError),
    ],
)  # fmt: skip
def conv_transpose(input: Tensor, weight: Tensor, stride: Ints, padding: Pairs,
                   output_padding: Ints, dilation: Ints, groups: int) -> Tensor:  # fmt: skip
    r"""Transposed convolution: the map that carries a convolution's output cotangent to its input.

    Args:
        input: Tensor of shape :math:`(N, C_{in}, *spatial)`, a float dtype.
        weight: Tensor of shape :math:`(C_{in}, C_{out} / groups, *kernel)`, ``input``'s dtype.
        stride: Distance between the windows in the output, per spatial axis.
        padding: How much is cut ``(before, after)``, per spatial axis.
        output_padding: Size added after every axis.
        dilation: Distance between kernel taps, per spatial axis.
        groups: Number of blocks into which the channels are split.

    Returns:
        Tensor of shape :math:`(N, C_{out}, *out)` with :math:`out = (size - 1) \cdot stride -
        before - after + dilation (kernel - 1) + 1 + output\_padding`.

    Raises:
        ShapeError: if channels do not fit, or the output would be empty.

    Example:
        >>> ops.conv_transpose(
        ...     ops.ones((1, 1, 2)), ops.ones((1, 1, 2)), (2,), ((0, 0),), (0,), (1,), 1)
        Tensor(shape=[1, 1, 4], dtype=Float32, value=
        [[[ 1.00000000e+00,  1.00000000e+00,  1.00000000e+00,  1.00000000e+00]]])
    """
    ...


# ---- the gradient of the weight -----------------------------------------------------------------


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
