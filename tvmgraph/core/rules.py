"""Shared inference rules and shape arithmetic for operator rows.

A rule takes the :class:`TensorType` of every input and the attributes, and returns the output
type, or raises :class:`ShapeError`, :class:`DTypeError` or :class:`ArgumentError` with the rule in
one line. The dispatch point adds what was called, with what and where.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeGuard

from tvmgraph import dtypes
from tvmgraph.core.arguments import is_sequence
from tvmgraph.core.sizes import is_one, same_size
from tvmgraph.core.symbols import described
from tvmgraph.core.traits import ELEMENTWISE
from tvmgraph.core.types import Dim, Shape, TensorType, tensor_type
from tvmgraph.dtypes import DType
from tvmgraph.errors import (
    ArgumentError,
    DTypeError,
    OutOfRangeError,
    ShapeError,
    TypeOrValueError,
    either,
)

OutDType = DType | Callable[[DType], DType] | None


def require_dtype(t: TensorType, allowed: Collection[DType], name: str = "input") -> None:
    """Makes sure that an operand has one of some dtypes.

    Args:
        t: Type of the operand.
        allowed: The dtypes.
        name: What the message calls the operand.

    Raises:
        DTypeError: if it has another one.
    """
    if t.dtype not in allowed:
        valid = ", ".join(d.name for d in dtypes.ALL if d in allowed)
        raise DTypeError(f"{name} cannot be {t.dtype.name}", fix=f"cast it to one of {valid}")


def require_same_dtype(*types: TensorType) -> None:
    """Makes sure that operands have one dtype.

    Args:
        *types: Types of the operands.

    Raises:
        DTypeError: if they have several.
    """
    names = [t.dtype.name for t in types]
    if len(set(names)) > 1:
        raise DTypeError(f"dtypes differ ({' and '.join(dict.fromkeys(names))})", fix="cast one")


def require_ndim(t: TensorType, allowed: int | Collection[int], name: str = "input") -> None:
    """Makes sure that an operand has one of some numbers of axes.

    Args:
        t: Type of the operand.
        allowed: The number or numbers.
        name: What the message calls the operand.

    Raises:
        ShapeError: if it has another one.
    """
    allowed = (allowed,) if isinstance(allowed, int) else tuple(allowed)
    if t.ndim not in allowed:
        raise ShapeError(f"{name} must have {' or '.join(map(str, allowed))} axes, not {t.ndim}")


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Returns the NumPy broadcast of shapes; a symbolic dim matches itself and 1.

    Args:
        *shapes: The shapes; none give the shape of a number.

    Raises:
        ShapeError: naming the axis that does not broadcast.
    """
    ndim = max(map(len, shapes), default=0)
    result: list[int | Dim] = []
    for axis in range(-ndim, 0):
        size: int | Dim = 1
        given = [s[axis] for s in shapes if len(s) >= -axis]
        sizes = {d.text if isinstance(d, Dim) else d: d for d in given}
        for d in sizes.values():
            if len(sizes) > 1 and is_one(d):  # it is not asked whether the only one is 1
                continue
            if not is_one(size) and not same_size(size, d):
                text = " and ".join(f"[{','.join(map(str, s))}]" for s in shapes)
                raise ShapeError(
                    f"shapes {text} do not broadcast (axis {axis}: {sorted({str(size), str(d)})})",
                    fix="make the sizes of that axis equal, or 1",
                )
            size = d
        result.append(size)
    return tuple(result)


def same_shape(a: Shape, b: Shape) -> bool:
    """Whether two shapes are equal, see :func:`same_size`.

    Args:
        a: A shape.
        b: Another one.
    """
    return len(a) == len(b) and all(map(same_size, a, b))


def normalize_axis(axis: object, ndim: int, name: str = "axis") -> int:
    """Returns ``axis`` as a non-negative integer.

    Args:
        axis: The axis; negative ones count from the last.
        ndim: Number of axes; a tensor without axes is taken as one with one.
        name: What the message calls it.

    Raises:
        OutOfRangeError: if it lies outside ``[-ndim, ndim)``.
        DTypeError: if it is not an integer.
    """
    if not _is_integer(axis):
        raise DTypeError(f"{name} must be an int, not {type(axis).__name__}")
    axis = int(axis)
    if not -max(ndim, 1) <= axis < max(ndim, 1):
        raise AxisError(f"{name} {axis} is outside [{-ndim}, {ndim})")
    return axis + ndim if axis < 0 else axis


class AxisError(OutOfRangeError, ArgumentError):
    """An axis lies outside the tensor's axes (both an IndexError and a ValueError)."""


def normalize_axes(axis: object, ndim: int) -> tuple[int, ...]:
    """Returns an axis, a sequence of axes, or ``None``/``()`` (all axes) as sorted unique ints.

    Args:
        axis: The axis or axes; negative ones count from the last.
        ndim: Number of axes.

    Raises:
        ArgumentError: if an axis occurs twice.
    """
    if axis is None or (is_sequence(axis) and not axis):
        return tuple(range(ndim))
    items = axis if is_sequence(axis) else (axis,)
    axes = sorted(normalize_axis(a, ndim) for a in items)
    if len(set(axes)) != len(axes):
        raise either(ArgumentError, RuntimeError)(f"axis {tuple(items)} names an axis twice")
    return tuple(axes) if ndim else ()


def _out_dtype(out: OutDType, d: DType) -> DType:
    if out is None:
        return d
    return out if isinstance(out, DType) else out(d)


def elementwise(
    allowed: Collection[DType] = dtypes.ALL, out: OutDType = None
) -> Callable[..., TensorType]:
    """Rule of an operator that broadcasts all inputs of one dtype; it brings the traits with it.

    Args:
        allowed: Accepted dtypes.
        out: Output dtype, a function of the input dtype, or ``None`` for the input dtype.
    """

    def infer(*types: TensorType, **attrs: object) -> TensorType:
        require_dtype(types[0], allowed)
        require_same_dtype(*types)
        first = types[0]
        shape = first.shape
        if len(types) > 1:
            shape = broadcast_shapes(*[t.shape for t in types])
        return tensor_type(shape, _out_dtype(out, first.dtype), first.device)

    infer.traits = ELEMENTWISE  # pyright: ignore[reportFunctionMemberAccess]
    return infer


def same_as_first(first: TensorType, *_rest: TensorType, **_attrs: object) -> TensorType:
    """Rule of an operator whose output has the type of its first input.

    Args:
        first: Type of the first operand.
    """
    require_dtype(first, dtypes.ALL)
    return first


def reduced_shape(shape: Shape, axes: Sequence[int], keep_dims: bool) -> Shape:
    """Returns ``shape`` with ``axes`` removed, or set to 1.

    Args:
        shape: Shape of the operand.
        axes: Axes that are reduced, none of them negative.
        keep_dims: Whether they stay with size 1.
    """
    if keep_dims:
        return tuple(1 if i in axes else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axes)


def reduction(
    allowed: Collection[DType] = dtypes.ALL, out: OutDType = None
) -> Callable[..., TensorType]:
    """Rule of a reduction over ``axis`` (a sorted tuple) with ``keep_dims``.

    Args:
        allowed: dtypes of the operand.
        out: dtype of the result, or a function of the operand's; ``None`` for the operand's own.

    Returns:
        Infers the type of the result from that of the operand.
    """

    def infer(x: TensorType, *, axis: tuple[int, ...], keep_dims: bool) -> TensorType:
        require_dtype(x, allowed)
        axes = normalize_axes(axis, x.ndim) if axis else ()
        shape = reduced_shape(x.shape, axes, keep_dims)
        return tensor_type(shape, _out_dtype(out, x.dtype), x.device)

    return infer


def known(values: Sequence[object]) -> bool:
    """Whether all dimensions are integers.

    Args:
        values: Sizes of axes.
    """
    return all(isinstance(v, int) for v in values)


def positive_ints(value: object, count: int, name: str, minimum: int = 1) -> tuple[int, ...]:
    """Returns an int or a sequence of ``count`` ints as a tuple.

    Args:
        value: The int, or the sequence.
        count: How many ints are wanted; one stands for all of them.
        name: What the message calls it.
        minimum: The least number that is allowed.

    Raises:
        DTypeError: if it is neither.
        ArgumentError: if the count is wrong or an entry is below ``minimum``.
    """
    given = value if is_sequence(value) else (value,) * count
    items = [v for v in given if _is_integer(v)]
    if len(items) != len(given):
        raise TypeOrValueError(f"{name} must be an int or {count} ints, not {value!r}")
    if len(items) != count:
        raise ArgumentError(f"{name} must have {count} entries, not {len(items)}")
    if any(v < minimum for v in items):
        raise ArgumentError(f"{name} must be at least {minimum}, not {value!r}")
    return tuple(v if isinstance(v, Dim) and described() else int(v) for v in items)


def kernel_sizes(x: TensorType, first: int, end: int | None = None) -> Shape:
    """Returns sizes of some axes, which kernels must know; those of a graph without may vary.

    Args:
        x: A type.
        first: The first of the axes.
        end: The axis after the last one.

    Raises:
        ShapeError: if one is symbolic, see :attr:`TensorType.static_shape`.
    """
    part = x.with_shape(x.shape[first:end])
    return part.shape if described() else part.static_shape


def _is_integer(value: object) -> TypeGuard[int]:
    """Whether a value can be an index; a bool is none, a size such as ``s0`` is one."""
    return not isinstance(value, bool) and hasattr(value, "__index__")


def flat(g: object, y: object, *inputs: object, **_attrs: object) -> tuple[None, ...]:
    """The derivative of a step function: cotangents go to no input.

    Args:
        g: Cotangent of the result.
        y: The result.
        *inputs: The operands.
    """
    return (None,) * len(inputs)
