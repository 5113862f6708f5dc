"""Padding by a constant, by reflection, by the edge and cyclically."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import Attrs
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.conversion import converted
from tvmgraph.core.op import F, sample
from tvmgraph.core.primitive import primitive, without_warnings
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Layout, Pattern, Traits, equation, letters
from tvmgraph.core.types import Dim, Shape, TensorType
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.ops.common.arguments import as_int, bad, describe, int_tuple, require

__all__ = ["mirror_pad", "pad", "pad_constant", "pad_index", "padding"]

Pads = tuple[tuple[int, int], ...]


def _padded(input: TensorType, pads: Pads) -> TensorType:
    if len(pads) != input.ndim:
        raise ShapeError(f"{len(pads)} pairs do not fit {input.ndim} axes")
    shape: list[Any] = []
    for d, (l, r) in zip(input.shape, pads):
        if l < 0 or r < 0:
            raise ArgumentError(f"padding ({l}, {r}) is negative")
        shape.append(d if l + r == 0 else d + l + r)  # pyright: ignore[reportOperatorIssue]
    return input.with_shape(shape)


# ---- a constant ---------------------------------------------------------------------------------


def _stored(value: object, dtype: dtypes.DType) -> np.ndarray:
    """The constant as a tensor of the dtype holds it: infinity is the largest integer there."""
    return converted(np.asarray(value), dtype)


@without_warnings
def _eager_constant(x: np.ndarray, *, pads: Pads, value: object) -> np.ndarray:
    if not pads:
        return x
    return np.pad(x, pads, constant_values=_stored(value, dtypes.dtype_of(x.dtype)))


def _lower_constant(R: Builder, x: Expr, *, pads: Pads, value: object) -> Expr:
    t = R.type(x)
    value = _stored(value, t.dtype).item()
    if 0 in t.shape:
        return _full(R, _padded(t, pads), value)
    if not any(l or r for l, r in pads):
        return x

    def pad(a: Expr) -> Expr:
        def element(*index: Expr) -> Expr:
            inside, at = [], []
            for i, v in enumerate(index):
                l, r = pads[i]
                inside += [v >= l] if l else []
                inside += [v < a.shape[i] + l] if r else []
                at.append(v - l)
            return R.tir.if_then_else(R.tir.all(*inside), a(*at), R.tir.const(value, t.dtype.name))

        shape = [d + l + r for d, (l, r) in zip(a.shape, pads)]
        return R.te.compute(shape, element, name="pad")

    return R.emit_te(pad, x)


def _full(R: Builder, t: TensorType, value: object) -> Expr:
    """Lowers a constant of type ``t``."""
    return R.op.broadcast_to(R.const(value, t.dtype.name), R.shape(t.shape))


def _inner(g: Tensor, pads: Pads, shape: Shape) -> Tensor:
    """Cuts the padding off."""
    for axis, ((l, r), d) in enumerate(zip(pads, shape)):
        if l or r:
            g = F.split_at(g, (l, l + d), axis)[1]
    return g


def _onnx_constant(O: OnnxOps, x: OnnxNamed, *, pads: Pads, value: object) -> OnnxNamed:
    if not pads:
        return O.Identity(x)
    amounts = np.array([p[0] for p in pads] + [p[1] for p in pads], np.int64)
    dtype = x.type.dtype
    if dtype.kind == "b":  # ONNX Runtime pads no bool
        as_int8 = O.Pad(O.Cast(x, to=3), amounts, O.const(int(_stored(value, dtype)), "int8"))
        return O.Cast(as_int8, to=9)
    return O.Pad(x, amounts, O.const(_stored(value, dtype)))


def pad_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """The dimensions that are not padded.

    Args:
        types: Type of the operand.
        attrs: ``pads``: elements before and after every axis.
    """
    words = [n if p == (0, 0) else "." for n, p in zip(letters(types[0].ndim), attrs["pads"])]
    return equation([words], [words])


@primitive(
    infer=lambda input, *, pads, value: _padded(input, pads),
    traits=Traits(Pattern.GATHER, pad_factors, layout=Layout.PADDING),
    eager=_eager_constant,
    lower=_lower_constant,
    vjp=lambda g, y, x, *, pads, value: (_inner(g, pads, x.shape),),
    onnx=_onnx_constant,
    samples=[
        sample((3, 4), pads=((1, 2), (0, 3)), value=0),
        sample((17,), pads=((0, 1),), value=-1.5),
        sample((2, 1, 3), pads=((0, 0), (2, 0), (0, 0)), value=float("-inf"), grad=False),
        sample((), pads=(), value=0),
        sample((2, 0), pads=((0, 0), (1, 1)), value=2.0, grad=False),
        sample((2, 2), pads=((0, 0), (0, 0)), value=0),
        sample((3,), pads=((1, 1),), value=7, dtype="int64"),
        sample((3,), pads=((1, 1),), value=1, dtype="bool"),
        sample((3,), pads=((1, 1),), value=float("-inf"), dtype="uint32", low=0),
        sample((3,), pads=((1, 1),), value=float("inf"), dtype="int8"),
        sample((3,), pads=((-1, 1),), value=7, raises=ArgumentError),
        sample((3, 2), pads=((1, 1),), value=7, raises=ShapeError),
    ],
)
def pad_constant(input: Tensor, pads: Pads, value: object) -> Tensor:
    """Surrounds a tensor with a constant.

    Args:
        input: Tensor of any shape.
        pads: Elements to add before and after, one pair per axis.
        value: The constant.

    Returns:
        The padded tensor.
    """
    ...


# ---- by index -----------------------------------------------------------------------------------

_NUMPY_MODES = {
    "reflect": "reflect", "symmetric": "symmetric", "replicate": "edge", "circular": "wrap"
}  # fmt: skip


def _infer_index(input: TensorType, *, pads: Pads, mode: str) -> TensorType:
    result = _padded(input, pads)
    for axis, (d, (l, r)) in enumerate(zip(input.shape, pads)):
        if l == 0 == r:
            continue
        limit = {"reflect": d - 1, "replicate": l + r if d else 0}.get(mode, d)
        if max(l, r) > limit:
            raise ArgumentError(
                f"padding ({l}, {r}) is too large for axis {axis} of size {d} in mode {mode!r}",
                fix=f"pad by at most {limit}",
            )
    return result


def _source(R: Builder, i: Expr, size: Expr, mode: str) -> Expr:
    """The index an element comes from, ``i`` counting from the first original element."""
    if mode == "replicate":
        below, above = R.tir.const(0, "int64"), size - 1
    elif mode == "circular":
        below, above = i + size, i - size
    else:
        shift = 1 if mode == "symmetric" else 0
        below, above = -i - shift, 2 * size - 2 + shift - i
    return R.tir.Select(i < 0, below, R.tir.Select(i >= size, above, i))


def _lower_index(R: Builder, x: Expr, *, pads: Pads, mode: str) -> Expr:
    def pad(a: Expr) -> Expr:
        def element(*index: Expr) -> Expr:
            return a(*[
                _source(R, v - l, a.shape[i], mode) if l or r else v
                for i, (v, (l, r)) in enumerate(zip(index, pads))
            ])  # fmt: skip

        shape = [d + l + r for d, (l, r) in zip(a.shape, pads)]
        return R.te.compute(shape, element, name="pad")

    return R.emit_te(pad, x) if pads else x


def _vjp_index(g: Tensor, y: Tensor, x: Tensor, *, pads: Pads, mode: str) -> tuple[Tensor]:
    for axis, (l, r) in enumerate(pads):
        if l or r:
            g = _fold(g, axis, l, r, x.shape[axis], mode)
    return (g,)


def _fold(g: Tensor, axis: int, l: int, r: int, n: int, mode: str) -> Tensor:
    """Adds the cotangents of copied elements to those of the elements they come from."""
    before, center, after = F.split_at(g, (l, l + n), axis)
    if mode == "replicate":
        before, after = (F.reduce_sum(p, axis=(axis,), keep_dims=True) for p in (before, after))
        spots = ((0, n - 1), (n - 1, 0))
    elif mode == "circular":
        spots = ((n - l, 0), (0, n - r))
    else:
        before, after = F.flip(before, (axis,)), F.flip(after, (axis,))
        edge = 1 if mode == "reflect" else 0
        spots = ((edge, n - edge - l), (n - edge - r, edge))
    for part, width, spot in ((before, l, spots[0]), (after, r, spots[1])):
        if width:
            pads = tuple(spot if a == axis else (0, 0) for a in range(g.ndim))
            center = center + pad_constant(part, pads, 0)
    return center


def _onnx_index(O: OnnxOps, x: OnnxNamed, *, pads: Pads, mode: str) -> OnnxNamed:
    y = O.Identity(x)
    for axis, (l, r) in enumerate(pads):
        if l or r:
            size = x.type.shape[axis]
            index = (
                _onnx_source(O, size, l, r, mode) if isinstance(size, Dim)
                else np.pad(np.arange(size), (l, r), mode=_NUMPY_MODES[mode])  # pyright: ignore
            )  # fmt: skip
            y = O.Gather(y, index, axis=axis)
    return y


def _onnx_source(O: OnnxOps, size: Dim, before: int, after: int, mode: str) -> OnnxNamed:
    """The indices that elements of an axis of variable size come from."""
    i = O.Range(*(O.size(d) for d in (-before, size + after, 1)))
    if mode == "replicate":
        return O.Clip(i, O.size(0), O.size(size - 1))
    if mode == "circular":
        return O.Mod(i, O.size(size))
    shift = 1 if mode == "symmetric" else 0
    i = O.Where(O.Less(i, O.size(0)), O.Sub(O.size(-shift), i), i)
    turned = O.Sub(O.size(2 * size - 2 + shift), i)
    return O.Where(O.GreaterOrEqual(i, O.size(size)), turned, i)


@primitive(
    infer=_infer_index,
    traits=Traits(Pattern.GATHER, pad_factors),
    eager=lambda x, *, pads, mode: np.pad(x, pads, mode=_NUMPY_MODES[mode]) if pads else x,  # pyright: ignore
    lower=_lower_index,
    vjp=_vjp_index,
    onnx=_onnx_index,
    samples=[
        sample((4, 5), pads=((0, 0), (2, 3)), mode="reflect"),
        sample((4, 5), pads=((3, 1), (0, 2)), mode="reflect"),
        sample((4, 5), pads=((4, 1), (0, 5)), mode="symmetric"),
        sample((4, 1), pads=((1, 3), (5, 2)), mode="replicate"),
        sample((4, 5), pads=((4, 1), (2, 5)), mode="circular"),
        sample((2, 17), pads=((0, 0), (0, 0)), mode="circular", dtype="int32"),
        sample((0, 3), pads=((0, 0), (1, 1)), mode="reflect", grad=False),
        sample((3,), pads=((1, 2),), mode="replicate", dtype="float16", grad=False),
        sample((3,), pads=((3, 0),), mode="reflect", raises=ArgumentError),
        sample((3,), pads=((4, 0),), mode="circular", raises=ArgumentError),
        sample((0,), pads=((1, 0),), mode="replicate", raises=ArgumentError),
    ],
)
def pad_index(input: Tensor, pads: Pads, mode: str) -> Tensor:
    """Surrounds a tensor with copies of its own elements.

    Args:
        input: Tensor of any shape.
        pads: Elements to add before and after, one pair per axis.
        mode: ``"reflect"`` (mirrored at the edge element), ``"symmetric"`` (mirrored at the
            edge), ``"replicate"`` or ``"circular"``.

    Returns:
        The padded tensor.
    """
    ...


def pad(input_x: Tensor, padding: object, mode: str = "constant", value: object = None) -> Tensor:
    """Pads the last axes of a tensor.

    Args:
        input_x: Tensor of any shape.
        padding: Elements to add before and after: first the pair of the last axis, then that of
            the axis before, and so on. In mode ``"constant"`` a negative number cuts off.
        mode: ``"constant"``, ``"reflect"``, ``"replicate"`` (also ``"edge"``) or ``"circular"``.
        value: The constant, 0 by default; only in mode ``"constant"``.

    Returns:
        The padded tensor.

    Raises:
        ArgumentError: if the mode is unknown or the padding does not fit.

    Example:
        >>> ops.pad(Tensor([[1, 2]]), (1, 1))
        Tensor(shape=[1, 4], dtype=Int64, value=
        [[0, 1, 2, 0]])
    """
    amounts = int_tuple(padding, "pad", "padding")
    got = describe(input_x=input_x, padding=padding, mode=mode, value=value)
    mode = "replicate" if mode == "edge" else mode
    if len(amounts) % 2 or len(amounts) > 2 * input_x.ndim:
        raise bad(ArgumentError, "padding must hold one pair per padded axis", "pad", got)
    pairs = tuple(zip(amounts[::2], amounts[1::2]))
    pads = ((0, 0),) * (input_x.ndim - len(pairs)) + pairs[::-1]
    if mode == "constant":
        return _pad_or_crop(input_x, pads, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise bad(ArgumentError, f"mode {mode!r} is not one of 'constant', 'reflect', 'replicate' "
                  "and 'circular'", "pad", got)  # fmt: skip
    if value is not None:
        raise bad(ArgumentError, "value needs mode 'constant'", "pad", got)
    return pad_index(*_cropped(input_x, pads), mode)


def _cropped(x: Tensor, pads: Pads) -> tuple[Tensor, Pads]:
    """Cuts off what negative padding says; returns what is left of the padding as well."""
    if all(l >= 0 and r >= 0 for l, r in pads):
        return x, pads
    for axis, (l, r) in enumerate(pads):
        if l < 0 or r < 0:
            start, end = max(-l, 0), x.shape[axis] - max(-r, 0)
            require(start <= end, f"padding ({l}, {r}) cuts more than axis {axis} has", "pad",
                    ArgumentError, input_x=x, padding=pads)  # fmt: skip
            x = F.split_at(x, (start, end), axis)[1]
    return x, tuple((max(l, 0), max(r, 0)) for l, r in pads)


def _pad_or_crop(x: Tensor, pads: Pads, value: Any) -> Tensor:
    x, pads = _cropped(x, pads)
    if x.dtype.is_integer or x.dtype.kind == "b":
        require(math.isfinite(value), f"{x.dtype.name} does not hold {value}", "pad", ArgumentError,
                input_x=x, value=value, fix="pad floats, or by a number of the dtype")  # fmt: skip
        value = bool(value) if x.dtype.kind == "b" else int(value)
    return pad_constant(x, pads, value)


def mirror_pad(input_x: Tensor, paddings: Tensor | Sequence[Sequence[int]], mode: str) -> Tensor:
    """Pads by mirroring the tensor.

    Args:
        input_x: Tensor with :math:`N` axes.
        paddings: Elements to add before and after every axis, of shape :math:`(N, 2)`.
        mode: ``"REFLECT"`` mirrors at the edge element, ``"SYMMETRIC"`` repeats it.

    Returns:
        The padded tensor.

    Raises:
        ArgumentError: if the mode is unknown or the padding does not fit.

    Example:
        >>> ops.mirror_pad(Tensor([1, 2, 3]), ((1, 1),), "REFLECT")
        Tensor(shape=[5], dtype=Int64, value= [2, 1, 2, 3, 2])
    """
    got = describe(input_x=input_x, paddings=paddings, mode=mode)
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise bad(ArgumentError, "mode must be 'REFLECT' or 'SYMMETRIC'", "mirror_pad", got)
    rows = paddings.tolist() if isinstance(paddings, Tensor) else paddings
    pads = tuple(int_tuple(tuple(row), "mirror_pad", "paddings") for row in rows)
    if len(pads) != input_x.ndim or any(len(p) != 2 for p in pads):
        raise bad(ArgumentError, "paddings must hold one pair per axis", "mirror_pad", got)
    return pad_index(input_x, pads, mode.lower())


def padding(x: Tensor, pad_dim_size: int = 8) -> Tensor:
    """Extends the last axis from size 1 to ``pad_dim_size`` with zeros.

    Args:
        x: Tensor of shape :math:`(..., 1)` with at least two axes.
        pad_dim_size: The new size.

    Returns:
        Tensor of shape :math:`(..., pad\\_dim\\_size)`.

    Raises:
        ShapeError: if the last axis does not have size 1.
        ArgumentError: if ``pad_dim_size`` is not positive.

    Example:
        >>> ops.padding(Tensor([[1.0], [2.0]]), 3)
        Tensor(shape=[2, 3], dtype=Float32, value=
        [[ 1.00000000e+00,  0.00000000e+00,  0.00000000e+00],
         [ 2.00000000e+00,  0.00000000e+00,  0.00000000e+00]])
    """
    got = describe(x=x, pad_dim_size=pad_dim_size)
    if as_int(pad_dim_size, "padding", "pad_dim_size") < 1:
        raise bad(ArgumentError, "pad_dim_size must be positive", "padding", got)
    if x.ndim < 2 or x.aval.shape[-1] != 1:
        raise bad(ShapeError, "x must have at least 2 axes, the last of size 1", "padding", got)
    pads = ((0, 0),) * (x.ndim - 1) + ((0, pad_dim_size - 1),)
    return pad_constant(x, pads, 0)
