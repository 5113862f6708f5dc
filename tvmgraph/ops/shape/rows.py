"""Shape movement: reshape, axes of size one, broadcast."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvmgraph.core import rules
from tvmgraph.core.arguments import Attrs, AxisLike
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps, ShapeLike
from tvmgraph.core.op import F, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Batch, Layout, Pattern, Traits, equation, letters
from tvmgraph.core.types import Dim, Shape, TensorType
from tvmgraph.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from tvmgraph.ops.common.arguments import (
    as_int,
    bad,
    describe,
    has_unknown,
    int_tuple,
    named,
    wrap_axis,
)
from tvmgraph.ops.common.rows import sum_to
from tvmgraph.ops.shape import computed

__all__ = [
    "broadcast_to", "expand", "expand_as", "expand_dims", "flatten", "ravel", "reshape",
    "squeeze", "unsqueeze", "view_as",
]  # fmt: skip


def shape_text(shape: Shape) -> str:
    """Formats a shape for messages.

    Args:
        shape: Ints and symbolic sizes.
    """
    return f"[{','.join(map(str, shape))}]"


# ---- reshape ------------------------------------------------------------------------------------


def resolve_shape(old: Shape, new: Shape) -> Shape:
    """Returns ``new`` with its -1 computed from ``old``.

    Args:
        old: The shape of the tensor.
        new: The shape that is asked for.

    Raises:
        ShapeError: if the number of elements differs.
    """
    if any(d < -1 for d in new) or sum(_is_open(d) for d in new) > 1:
        raise ShapeError(f"shape {shape_text(new)} has a negative size or more than one -1")
    size, rest = math.prod(old), math.prod(d for d in new if not _is_open(d))
    unknown: Any = None
    if any(map(_is_open, new)):
        if rest == 0 or size % rest != 0:
            raise _wrong_count(size, new)
        unknown = size // rest
    elif not rules.same_size(size, rest):
        raise _wrong_count(size, new)
    return tuple(unknown if _is_open(d) else d for d in new)


def _is_open(d: int | Dim) -> bool:
    return d.__class__ is int and d == -1


def _wrong_count(size: object, new: Shape) -> ShapeError:
    return ShapeError(
        f"{size} elements do not fit shape {shape_text(new)}",
        fix="make the product of the new shape equal to the number of elements",
    )


def _infer_reshape(input: TensorType, *, shape: Shape) -> TensorType:
    return input.with_shape(resolve_shape(input.shape, shape))


def _lower_reshape(R: Builder, x: Expr, *, shape: Shape) -> Expr:
    t = _infer_reshape(R.type(x), shape=shape)
    return R.op.reshape(x, R.shape(t.shape))


def _onnx_reshape(O: OnnxOps, x: OnnxNamed, *, shape: Shape) -> OnnxNamed:
    sizes = [-1 if isinstance(d, Dim) else d for d in shape]
    if sizes.count(-1) > 1:
        return O.Reshape(x, O.shape(resolve_shape(x.type.shape, shape)), allowzero=1)
    return O.Reshape(x, np.array(sizes, np.int64), allowzero=None if -1 in sizes else 1)


def _reshape_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """The first dimensions of the smallest groups of dimensions that have one size together."""
    shapes = types[0].shape, _infer_reshape(types[0], shape=attrs["shape"]).shape
    if not (rules.known(shapes[0]) and rules.known(shapes[1])) or 0 in shapes[0]:
        return equation(*([["."] * len(s)] for s in shapes))
    words: list[list[str]] = [[], []]
    for name in letters(min(map(len, shapes))):
        if any(len(w) == len(s) for w, s in zip(words, shapes)):
            break
        counts = [1, 1]
        sides, word = (0, 1), name
        while sides:
            for i in sides:
                counts[i] *= shapes[i][len(words[i])]  # pyright: ignore[reportOperatorIssue]
                words[i].append(word)
            lesser = int(counts[1] < counts[0])
            sides, word = () if counts[0] == counts[1] else (lesser,), "."
    return equation(*([[*w, *["."] * (len(s) - len(w))]] for w, s in zip(words, shapes)))


@primitive(
    infer=_infer_reshape,
    traits=Traits(
        Pattern.VIEW,
        _reshape_factors,
        sized="shape",
        batch=Batch.SIZED,
        layout=Layout.RESHAPE,
        alias=True,
    ),
    eager=lambda x, *, shape: x.reshape(shape),
    lower=_lower_reshape,
    vjp=lambda g, y, x, *, shape: (F.reshape(g, x.aval.shape),),
    onnx=_onnx_reshape,
    samples=[
        sample((3, 4), shape=(2, 6)),
        sample((2, 3, 4), shape=(-1, 4)),
        sample((1,), shape=()),
        sample((), shape=(1, 1)),
        sample((0, 3), shape=(3, 0), grad=False),
        sample((2, 0), shape=(0,), dtype="int32"),
        sample((6,), shape=(3, 2), dtype="bool"),
        sample((3, 4), shape=(5, -1), raises=ShapeError),
        sample((3, 4), shape=(3, 5), raises=ShapeError),
        sample((3, 4), shape=(-1, -1), raises=ShapeError),
    ],
)
@named("reshape")
def _reshape(input: Tensor, shape: object) -> Tensor:
    r"""Gives the elements, in row-major order, another shape.

    Args:
        input: Tensor of any shape.
        shape: The new shape; one entry may be -1 and is computed.

    Returns:
        Tensor of shape ``shape``.
    """
    ...


def reshape(input: Tensor, shape: ShapeLike) -> Tensor:
    r"""Gives the elements, in row-major order, another shape.

    Args:
        input: Tensor of any shape.
        shape: The new shape as ints, 0-d tensors or an integer tensor; one entry may be -1 and is
            computed.

    Returns:
        Tensor of shape ``shape``.

    Raises:
        ShapeError: if the number of elements differs.

    Example:
        >>> ops.reshape(Tensor([[1, 2], [3, 4]]), (4,))
        Tensor(shape=[4], dtype=Int64, value= [1, 2, 3, 4])
    """
    if has_unknown(shape):
        return computed.reshape(input, shape)
    return _reshape(input, int_tuple(shape, "reshape"))


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Gives ``input`` the shape of ``other``.

    Args:
        input: Tensor of any shape.
        other: Tensor with as many elements.

    Returns:
        Tensor of ``other``'s shape and ``input``'s dtype.

    Example:
        >>> ops.view_as(Tensor([1, 2, 3, 4]), Tensor([[0, 0], [0, 0]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [3, 4]])
    """
    return _reshape(input, other.aval.shape)


def ravel(input: Tensor) -> Tensor:
    """Flattens all axes into one, in row-major order.

    Args:
        input: Tensor of any shape.

    Returns:
        Tensor with one axis.

    Example:
        >>> ops.ravel(Tensor([[1, 2], [3, 4]]))
        Tensor(shape=[4], dtype=Int64, value= [1, 2, 3, 4])
    """
    return _reshape(input, (-1,)) if input.aval.shape.count(0) == 0 else _reshape(input, (0,))


def flatten(input: Tensor, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Merges the axes ``start_dim`` to ``end_dim`` into one.

    Args:
        input: Tensor of any shape; one with fewer than two axes gives one axis.
        order: ``"C"`` for row-major, ``"F"`` to reverse the axes first.
        start_dim: First axis to merge.
        end_dim: Last axis to merge.

    Returns:
        Tensor of shape :math:`(d_0, ..., d_{start} \\cdots d_{end}, ..., d_n)`.

    Raises:
        ArgumentError: if ``order`` is unknown or ``start_dim`` lies behind ``end_dim``.
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.flatten(Tensor([[[1, 2], [3, 4]]]))
        Tensor(shape=[1, 4], dtype=Int64, value=
        [[1, 2, 3, 4]])
    """
    got = describe(input=input, order=order, start_dim=start_dim, end_dim=end_dim)
    if order not in ("C", "F"):
        raise bad(ArgumentError, "order must be 'C' or 'F'", "flatten", got)
    if order == "F" and input.ndim > 1:
        input = F.transpose(input, tuple(reversed(range(input.ndim))))
    ndim = input.ndim
    if ndim < 2 and start_dim in (0, 1, -1) and end_dim in (0, -1):
        return ravel(input)
    first, last = (as_int(d, "flatten", "dim") for d in (start_dim, end_dim))
    if not (-ndim <= first < ndim and -ndim <= last < ndim):
        raise bad(rules.AxisError, f"dims must be in [{-ndim}, {ndim})", "flatten", got)
    first, last = first % ndim, last % ndim
    if first > last:
        raise bad(ArgumentError, "start_dim lies behind end_dim", "flatten", got)
    if first == last:
        return input
    shape = input.aval.shape
    merged = shape[first : last + 1]
    return _reshape(input, (*shape[:first], math.prod(merged), *shape[last + 1 :]))


# ---- axes of size one ---------------------------------------------------------------------------


def _infer_expand_dims(input: TensorType, *, axis: int) -> TensorType:
    axis = rules.normalize_axis(axis, input.ndim + 1)
    return input.with_shape((*input.shape[:axis], 1, *input.shape[axis:]))


def _expand_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """Every dimension."""
    names, axis = letters(types[0].ndim), attrs["axis"] % (types[0].ndim + 1)
    return equation([names], [[*names[:axis], ".", *names[axis:]]])


@primitive(
    infer=_infer_expand_dims,
    traits=Traits(Pattern.VIEW, _expand_factors, alias=True),
    eager=lambda x, *, axis: np.expand_dims(x, axis),
    lower=lambda R, x, *, axis: R.op.expand_dims(x, axis),
    vjp=lambda g, y, x, *, axis: (F.squeeze(g, axis),),
    onnx=lambda O, x, *, axis: O.Unsqueeze(x, np.array([axis])),
    samples=[
        sample((3, 4), axis=1),
        sample((3, 4), axis=2),
        sample((), axis=0),
        sample((0, 2), axis=0, grad=False),
        sample((2,), axis=3, raises=OutOfRangeError),
    ],
)
@named("expand_dims")
def _expand_dims(input: Tensor, axis: int) -> Tensor:
    """Inserts an axis of size 1 at ``axis``.

    Args:
        input: Tensor of any shape.
        axis: Position of the new axis in the result.

    Returns:
        Tensor with one more axis.
    """
    ...


def expand_dims(input_x: Tensor, axis: int) -> Tensor:
    """Inserts an axis of size 1.

    Args:
        input_x: Tensor with :math:`n` axes.
        axis: Position of the new axis in the result, in :math:`[-n-1, n]`.

    Returns:
        Tensor of shape :math:`(..., d_{axis-1}, 1, d_{axis}, ...)`.

    Raises:
        OutOfRangeError: if ``axis`` lies outside its range.

    Example:
        >>> ops.expand_dims(Tensor([1, 2]), 0)
        Tensor(shape=[1, 2], dtype=Int64, value=
        [[1, 2]])
    """
    return _expand_dims(input_x, wrap_axis(axis, input_x.ndim + 1))


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Inserts an axis of size 1 at ``dim``; another name of :func:`expand_dims`.

    Args:
        input: Tensor with :math:`n` axes.
        dim: Position of the new axis in the result, in :math:`[-n-1, n]`.

    Returns:
        Tensor with one more axis.

    Example:
        >>> ops.unsqueeze(Tensor([1, 2]), -1)
        Tensor(shape=[2, 1], dtype=Int64, value=
        [[1],
         [2]])
    """
    return _expand_dims(input, wrap_axis(dim, input.ndim + 1))


def _infer_squeeze(input: TensorType, *, axis: tuple[int, ...]) -> TensorType:
    axes = rules.normalize_axes(axis, input.ndim) if axis and input.ndim else ()
    for a in axes:
        if input.shape[a] != 1:
            raise ShapeError(
                f"axis {a} has size {input.shape[a]}, only axes of size 1 can be removed"
            )
    return input.with_shape(d for i, d in enumerate(input.shape) if i not in axes)


def _squeeze_factors(types: Sequence[TensorType], attrs: Mapping[str, object]) -> str:
    """Every dimension."""
    names, axes = letters(types[0].ndim), rules.normalize_axes(attrs["axis"], types[0].ndim)
    kept = names if not attrs["axis"] else [n for i, n in enumerate(names) if i not in axes]
    return equation([names], [kept])


@primitive(
    infer=_infer_squeeze,
    traits=Traits(Pattern.VIEW, _squeeze_factors, alias=True),
    eager=lambda x, *, axis: x.squeeze(axis),
    lower=lambda R, x, *, axis: R.op.squeeze(x, list(axis)) if axis else x,
    vjp=lambda g, y, x, *, axis: (F.reshape(g, x.aval.shape),),
    onnx=lambda O, x, *, axis: O.Squeeze(x, np.array(axis, np.int64)) if axis else O.Identity(x),
    samples=[
        sample((3, 1, 4, 1), axis=(1, 3)),
        sample((1, 2), axis=(0,)),
        sample((1,), axis=(0,)),
        sample((2, 3), axis=()),
        sample((), axis=()),
        sample((1, 0), axis=(0,), grad=False),
        sample((3, 4), axis=(0,), raises=ShapeError),
    ],
)
@named("squeeze")
def _squeeze(input: Tensor, axis: tuple[int, ...]) -> Tensor:
    """Removes the axes ``axis``, which have size 1.

    Args:
        input: Tensor of any shape.
        axis: Sorted non-negative axes.

    Returns:
        Tensor without those axes.
    """
    ...


def squeeze(input: Tensor, axis: AxisLike | None = None) -> Tensor:
    """Removes axes of size 1.

    Args:
        input: Tensor of any shape.
        axis: The axis or axes to remove, those of another size stay; ``None`` means all.

    Returns:
        Tensor without those axes.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.squeeze(Tensor([[[1], [2]]]))
        Tensor(shape=[2], dtype=Int64, value= [1, 2])
    """
    shape = input.aval.shape
    axes: Any = range(len(shape))
    if axis is not None:
        given = int_tuple(axis, "squeeze", "axis")
        axes = sorted({rules.normalize_axis(a, len(shape)) for a in given}) if shape else []
    return _squeeze(input, tuple([i for i in axes if shape[i] == 1]))


# ---- broadcast ----------------------------------------------------------------------------------


def _infer_broadcast(input: TensorType, *, shape: Shape) -> TensorType:
    full = _filled(input.shape, shape)
    if len(full) < input.ndim:
        raise ShapeError(f"shape {shape_text(shape)} has fewer axes than the input")
    if rules.broadcast_shapes(input.shape, full) != full:
        raise ShapeError(
            f"{shape_text(input.shape)} does not broadcast to {shape_text(shape)}",
            fix="every axis must have the new size, or size 1",
        )
    return input.with_shape(full)


def _filled(old: Shape, shape: Shape) -> Shape:
    """Replaces -1 by the size the axis has."""
    lead = len(shape) - len(old)
    return tuple(old[i - lead] if d == -1 and i >= lead else d for i, d in enumerate(shape))


def _lower_broadcast(R: Builder, x: Expr, *, shape: Shape) -> Expr:
    t = _infer_broadcast(R.type(x), shape=shape)
    return R.op.broadcast_to(x, R.shape(t.shape))


def _onnx_broadcast(O: OnnxOps, x: OnnxNamed, *, shape: Shape) -> OnnxNamed:
    return O.Expand(x, O.shape([1 if isinstance(d, int) and d == -1 else d for d in shape]))


def _broadcast_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """Every dimension of the result, repeated ones included."""
    x, shape = types[0].shape, _infer_broadcast(types[0], shape=attrs["shape"]).shape
    names, lead = letters(len(shape)), len(shape) - len(x)
    pairs = zip(names[lead:], x, shape[lead:])
    return equation([[n if rules.same_size(a, b) else "." for n, a, b in pairs]], [names])


@primitive(
    infer=_infer_broadcast,
    traits=Traits(
        Pattern.BROADCAST, _broadcast_factors, sized="shape", batch=Batch.SIZED, cheap=True
    ),
    eager=lambda x, *, shape: np.broadcast_to(x, _filled(x.shape, shape)),  # pyright: ignore[reportArgumentType, reportCallIssue]
    lower=_lower_broadcast,
    vjp=lambda g, y, x, *, shape: (sum_to(g, x),),
    onnx=_onnx_broadcast,
    samples=[
        sample((3, 1), shape=(2, 3, 4)),
        sample((3, 1), shape=(-1, 5)),
        sample((), shape=(2, 2)),
        sample((), shape=()),
        sample((1, 2), shape=(0, 2), grad=False),
        sample((1, 3), shape=(4, 3), dtype="bool"),
        sample((3,), shape=(4,), raises=ShapeError),
        sample((3, 1), shape=(3,), raises=ShapeError),
    ],
)
@named("broadcast_to")
def _broadcast_to(input: Tensor, shape: object) -> Tensor:
    """Repeats axes of size 1 (and leading ones) to reach ``shape``.

    Args:
        input: Tensor whose shape broadcasts to ``shape``.
        shape: The new shape; -1 keeps the size of an existing axis.

    Returns:
        Tensor of shape ``shape``.
    """
    ...


def broadcast_to(input: Tensor, shape: object) -> Tensor:
    r"""Repeats axes of size 1 (and leading ones) to reach ``shape``.

    Args:
        input: Tensor whose shape broadcasts to ``shape``.
        shape: The new shape; -1 keeps the size of an existing axis.

    Returns:
        Tensor of shape ``shape``.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.broadcast_to(Tensor([[1], [2]]), (2, 3))
        Tensor(shape=[2, 3], dtype=Int64, value=
        [[1, 1, 1],
         [2, 2, 2]])
    """
    if has_unknown(shape):
        return computed.broadcast_to(input, shape)
    return _broadcast_to(input, int_tuple(shape, "broadcast_to"))


def expand(input_x: Tensor, size: object) -> Tensor:
    """Repeats axes of size 1 to reach ``size``; another name of :func:`broadcast_to`.

    Args:
        input_x: Tensor whose shape broadcasts to ``size``.
        size: The new shape as ints or an integer tensor; -1 keeps a size.

    Returns:
        Tensor of shape ``size``.

    Example:
        >>> ops.expand(Tensor([[1], [2]]), (2, 3))
        Tensor(shape=[2, 3], dtype=Int64, value=
        [[1, 1, 1],
         [2, 2, 2]])
    """
    return broadcast_to(input_x, size)


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Repeats axes of size 1 to reach the shape of ``other``.

    Args:
        input: Tensor whose shape broadcasts to that of ``other``.
        other: Tensor that gives the shape.

    Returns:
        Tensor of ``other``'s shape and ``input``'s dtype.

    Example:
        >>> ops.expand_as(Tensor([1, 2]), Tensor([[0, 0], [0, 0]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [1, 2]])
    """
    if not isinstance(other, Tensor):
        raise bad(DTypeError, "other must be a Tensor", "expand_as", describe(other=other))
    return _broadcast_to(input, other.aval.shape)
