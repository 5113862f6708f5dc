"""Repeating and reordering elements: tile, repeat, flip, roll, rot90."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Attrs, AxisLike
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.sizes import same_size
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits, along_axis, equation, letters
from tvmgraph.core.types import Dim, Shape, TensorType, tensor_type
from tvmgraph.errors import ArgumentError, OutOfRangeError, ShapeError, either
from tvmgraph.ops.common.arguments import (
    as_int,
    bad,
    describe,
    has_unknown,
    int_tuple,
    named,
    wrap_axes,
)
from tvmgraph.ops.common.rows import NOT_DIFFERENTIABLE, composed
from tvmgraph.ops.shape import computed

__all__ = [
    "flip", "fliplr", "flipud", "repeat_elements", "repeat_interleave", "reverse", "roll", "rot90",
    "tile",
]  # fmt: skip


# ---- tile ---------------------------------------------------------------------------------------


def _aligned(shape: Shape, dims: tuple[int, ...]) -> tuple[Shape, tuple[int, ...]]:
    """Gives shape and repetitions one length, with leading ones."""
    ndim = max(len(shape), len(dims))
    return (1,) * (ndim - len(shape)) + tuple(shape), (1,) * (ndim - len(dims)) + dims


def _infer_tile(input: TensorType, *, dims: tuple[int, ...]) -> TensorType:
    if any(n < 0 for n in dims):
        raise ShapeError(f"dims {list(dims)} has a negative entry")
    sizes, counts = _aligned(input.shape, dims)
    return input.with_shape(d if n == 1 else d * n for d, n in zip(sizes, counts))


def _vjp_tile(g: Tensor, y: Tensor, x: Tensor, *, dims: tuple[int, ...]) -> tuple[Tensor]:
    sizes, counts = _aligned(x.aval.shape, dims)
    split = tuple(itertools.chain.from_iterable(zip(counts, sizes)))
    axes = tuple(2 * i for i, n in enumerate(counts) if n != 1)
    if axes:
        g = F.reduce_sum(F.reshape(g, split), axis=axes, keep_dims=False)
    return (F.reshape(g, x.aval.shape),)


def _onnx_tile(O: OnnxOps, x: OnnxNamed, *, dims: tuple[int, ...]) -> OnnxNamed:
    sizes, counts = _aligned(x.type.shape, dims)
    if len(sizes) > x.type.ndim:
        x = O.Unsqueeze(x, np.arange(len(sizes) - x.type.ndim))
    return O.Tile(x, np.array(counts, np.int64))


def _tile_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """The dimensions that are not repeated."""
    sizes, counts = _aligned(types[0].shape, attrs["dims"])
    words = [n if c == 1 else "." for n, c in zip(letters(len(sizes)), counts)]
    return equation([words[len(sizes) - types[0].ndim :]], [words])


@primitive(
    infer=_infer_tile,
    traits=Traits(Pattern.GATHER, _tile_factors),
    eager=lambda x, *, dims: np.tile(x, dims),
    lower=lambda R, x, *, dims: R.op.tile(x, list(dims)) if dims else x,
    vjp=_vjp_tile,
    onnx=_onnx_tile,
    samples=[
        sample((2, 3), dims=(2, 1)),
        sample((3,), dims=(2, 2)),
        sample((2, 1, 3), dims=(3,)),
        sample((), dims=(4,)),
        sample((2,), dims=()),
        sample((2, 3), dims=(0, 1), grad=False),
        sample((2, 3), dims=(2, 2), dtype="int32"),
        sample((2, 3), dims=(-1, 2), raises=ShapeError),
    ],
)
@named("tile")
def _tile(input: Tensor, dims: AxisLike) -> Tensor:
    """Repeats the whole tensor ``dims[i]`` times along axis ``i``.

    Args:
        input: Tensor of any shape.
        dims: Repetitions, aligned with the last axes.

    Returns:
        Tensor of shape ``input.shape * dims``.
    """
    ...


def tile(input: Tensor, dims: object) -> Tensor:
    r"""Repeats the whole tensor: :math:`out.shape_i = input.shape_i \cdot dims_i`.

    Args:
        input: Tensor of any shape.
        dims: Repetitions per axis, aligned with the last axes.

    Returns:
        The repeated tensor.

    Raises:
        ShapeError: if a repetition is negative.

    Example:
        >>> ops.tile(Tensor([1, 2]), (2, 2))
        Tensor(shape=[2, 4], dtype=Int64, value=
        [[1, 2, 1, 2],
         [1, 2, 1, 2]])
    """
    if has_unknown(dims):
        return computed.tile(input, dims)
    if isinstance(dims, int) and dims < 0:  # MindSpore has no single number
        raise bad(either(ShapeError, TypeError), f"dims {dims} is negative", "tile",
                  f"input={input.aval}, dims={dims}")  # fmt: skip
    return _tile(input, int_tuple(dims, "tile", "dims"))


# ---- repeat -------------------------------------------------------------------------------------


def repeat_elements(x: Tensor, rep: int, axis: int = 0) -> Tensor:
    """Repeats every element along an axis.

    Args:
        x: Tensor with at least one axis.
        rep: Number of repetitions, positive.
        axis: The axis.

    Returns:
        Tensor ``rep`` times as long along ``axis``.

    Raises:
        ArgumentError: if ``rep`` is not positive.
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.repeat_elements(Tensor([1, 2]), 2)
        Tensor(shape=[4], dtype=Int64, value= [1, 1, 2, 2])
    """
    if as_int(rep, "repeat_elements", "rep") < 1:
        raise bad(ArgumentError, "rep must be positive", "repeat_elements", describe(x=x, rep=rep))
    return _repeat(x, rep, axis, "repeat_elements")


def _repeat(x: Tensor, count: int, axis: int | None, op: str) -> Tensor:
    axis = as_int(axis, op, "axis")
    if not -x.ndim <= axis < x.ndim:
        raise bad(rules.AxisError, f"axis {axis} is outside [{-x.ndim}, {x.ndim})", op,
                  describe(x=x, axis=axis))  # fmt: skip
    axis %= x.ndim
    shape = x.aval.shape
    wide = F.broadcast_to(
        F.expand_dims(x, axis + 1), (*shape[: axis + 1], count, *shape[axis + 1 :])
    )
    return F.reshape(wide, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


def repeat_interleave(input: Tensor, repeats: object, axis: int | None = None) -> Tensor:
    """Repeats every element along an axis, by one count or by one count per element.

    Args:
        input: Tensor of any shape.
        repeats: An int, one int per element, or an integer tensor.
        axis: The axis; ``None`` flattens the tensor first.

    Returns:
        Tensor that is longer along ``axis``.

    Raises:
        ArgumentError: if a count is negative or their number does not fit.

    Example:
        >>> ops.repeat_interleave(Tensor([1, 2]), (1, 3))
        Tensor(shape=[4], dtype=Int64, value= [1, 2, 2, 2])
    """
    if axis is None:
        input, axis = F.ravel(input), 0
    got = describe(input=input, repeats=repeats, axis=axis)
    if isinstance(repeats, Tensor):
        if not -input.ndim <= axis < input.ndim:
            raise bad(rules.AxisError, f"axis {axis} does not exist", "repeat_interleave", got)
        axis, counts = axis % input.ndim, F.reshape(repeats, (-1,))
        if counts.shape == (1,):
            counts = F.broadcast_to(counts, (input.shape[axis],))
        elif not same_size(counts.shape[0], input.shape[axis]):
            text = f"{counts.shape[0]} counts do not fit axis {axis} of {input.aval}"
            raise bad(ShapeError, text, "repeat_interleave", got)
        return F.index_get(input, repeated_positions(counts), axes=(axis,))
    counts = int_tuple(repeats, "repeat_interleave", "repeats")
    if not counts or any(c < 0 for c in counts):
        raise bad(either(ArgumentError, RuntimeError), "repeats must not be negative or empty",
                  "repeat_interleave", got)  # fmt: skip
    if len(counts) == 1:
        return _repeat(input, counts[0], axis, "repeat_interleave")
    if not -input.ndim <= axis < input.ndim or input.shape[axis] != len(counts):
        raise bad(
            either(ArgumentError, RuntimeError), "repeats needs one count per element of the axis",
            "repeat_interleave", got,
        )  # fmt: skip
    index = np.repeat(np.arange(len(counts)), counts)
    return F.gather(input, Tensor(index), axis)


def _infer_repeats(repeats: TensorType, *, size: str) -> TensorType:
    rules.require_dtype(repeats, dtypes.INTEGERS, "repeats")
    if repeats.ndim != 1:
        raise ShapeError(f"repeats must be 1-d, not of shape {list(repeats.shape)}")
    return tensor_type((Dim(size),), dtypes.int64, repeats.device)


def _eager_repeats(repeats: np.ndarray, *, size: str) -> np.ndarray:
    if np.any(repeats < 0):
        raise OutOfRangeError("repeats must not be negative")
    return np.repeat(np.arange(len(repeats), dtype=np.int64), repeats)


def _repeats(repeats: Tensor, size: str) -> Tensor:
    """The k-th repetition is of the first element up to which there are more than k."""
    counts = F.cast(repeats, dtypes.int64)
    taken = F.count_up(F.reduce_sum(counts, axis=(0,), keep_dims=False), size)
    return F.search_sorted(F.cumsum(counts, 0), taken, True)


def _onnx_repeats(O: OnnxOps, repeats: OnnxNamed, *, size: str) -> OnnxNamed:
    counts = O.Cast(repeats, to=O.dtype(dtypes.int64))
    zero, one = (O.const(np.asarray(v, np.int64)) for v in (0, 1))
    last = np.array([-1], np.int64)
    ends = O.Unsqueeze(O.CumSum(counts, zero), np.array([0], np.int64))
    taken = O.Range(zero, O.ReduceSum(counts, keepdims=0), one)
    before = O.LessOrEqual(ends, O.Unsqueeze(taken, last))
    return O.ReduceSum(O.Cast(before, to=O.dtype(dtypes.int64)), last, keepdims=0)


@primitive(
    infer=_infer_repeats,
    traits=Traits(Pattern.OPAQUE, Reason("the values decide how many there are"), binds="size"),
    eager=_eager_repeats,
    lower=composed(_repeats),
    vjp=Reason(NOT_DIFFERENTIABLE),
    onnx=_onnx_repeats,
    samples=[
        sample(np.array([1, 0, 2])),
        sample(np.array([0], np.int32)),
        sample(np.zeros(0, np.int64)),
        sample((2, 2), dtype="int64", raises=ShapeError),
        sample(np.array([1, -2]), raises=OutOfRangeError),
    ],
)
@named("repeat_interleave")
def repeated_positions(repeats: Tensor, size: str = "repeated") -> Tensor:
    """Returns every position k as often as ``repeats[k]`` says.

    Args:
        repeats: 1-d integer tensor.
        size: What the sum of the counts is called in a graph.

    Returns:
        int64 tensor of shape ``(size,)``.
    """
    ...


# ---- flip and roll ------------------------------------------------------------------------------


def _infer_flip(input: TensorType, *, dims: tuple[int, ...]) -> TensorType:
    for d in dims:
        rules.normalize_axis(d, input.ndim)
    if len(set(dims)) < len(dims):
        raise ArgumentError(f"dims {list(dims)} names an axis twice")
    return input


def _lower_flip(R: Builder, x: Expr, *, dims: tuple[int, ...]) -> Expr:
    def flip(a: Expr) -> Expr:
        def element(*index: Expr) -> Expr:
            return a(*[a.shape[i] - 1 - v if i in dims else v for i, v in enumerate(index)])

        return R.te.compute(a.shape, element, name="flip")

    return R.emit_te(flip, x) if dims and R.type(x).ndim else x


def _onnx_flip(O: OnnxOps, x: OnnxNamed, *, dims: tuple[int, ...]) -> OnnxNamed:
    if not dims or not x.type.ndim:
        return O.Identity(x)
    count = len(dims)
    before = np.full(count, np.iinfo(np.int64).min)
    return O.Slice(x, np.full(count, -1), before, np.array(dims), np.full(count, -1))


@primitive(
    infer=_infer_flip,
    traits=along_axis(Pattern.GATHER),
    eager=lambda x, *, dims: np.flip(x, dims if x.ndim else ()),
    lower=_lower_flip,
    vjp=lambda g, y, x, *, dims: (F.flip(g, dims),),
    onnx=_onnx_flip,
    samples=[
        sample((3, 4), dims=(1,)),
        sample((2, 1, 17), dims=(0, 2)),
        sample((3,), dims=()),
        sample((), dims=()),
        sample((0, 2), dims=(0,), grad=False),
        sample((5,), dims=(0,), dtype="int64"),
        sample((3, 4), dims=(2,), raises=OutOfRangeError),
        sample((3, 4), dims=(1, 1), raises=ArgumentError),
    ],
)
@named("flip")
def _flip(input: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Reverses the order of elements along axes.

    Args:
        input: Tensor of any shape.
        dims: Non-negative axes.

    Returns:
        Tensor of ``input``'s shape.
    """
    ...


def flip(input: Tensor, dims: AxisLike) -> Tensor:
    """Reverses the order of elements along axes.

    Args:
        input: Tensor of any shape.
        dims: The axis or axes to reverse.

    Returns:
        Tensor of ``input``'s shape.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.flip(Tensor([1, 2, 3]), (0,))
        Tensor(shape=[3], dtype=Int64, value= [3, 2, 1])
    """
    return _flip(input, wrap_axes(int_tuple(dims, "flip", "dims"), input.ndim))


def reverse(x: Tensor, axis: AxisLike) -> Tensor:
    """Reverses the order of elements along axes; another name of :func:`flip`.

    Args:
        x: Tensor of any shape.
        axis: The axis or axes to reverse.

    Returns:
        Tensor of ``x``'s shape.

    Example:
        >>> ops.reverse(Tensor([1, 2, 3]), (0,))
        Tensor(shape=[3], dtype=Int64, value= [3, 2, 1])
    """
    return flip(x, axis)


def fliplr(input: Tensor) -> Tensor:
    """Reverses the columns (axis 1).

    Args:
        input: Tensor with at least two axes.

    Returns:
        Tensor of ``input``'s shape.

    Example:
        >>> ops.fliplr(Tensor([[1, 2], [3, 4]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[2, 1],
         [4, 3]])
    """
    return flip(input, (1,))


def flipud(input: Tensor) -> Tensor:
    """Reverses the rows (axis 0).

    Args:
        input: Tensor with at least one axis.

    Returns:
        Tensor of ``input``'s shape.

    Example:
        >>> ops.flipud(Tensor([[1, 2], [3, 4]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[3, 4],
         [1, 2]])
    """
    return flip(input, (0,))


def rot90(input: Tensor, k: int = 1, dims: AxisLike = (0, 1)) -> Tensor:
    """Rotates by 90 degrees, ``k`` times, from the first axis of ``dims`` towards the second.

    Args:
        input: Tensor with at least two axes.
        k: Number of quarter turns; negative turns the other way.
        dims: The two axes of the plane.

    Returns:
        The rotated tensor.

    Raises:
        ArgumentError: if ``dims`` are not two different axes.

    Example:
        >>> ops.rot90(Tensor([[1, 2], [3, 4]]), 1, (0, 1))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[2, 4],
         [1, 3]])
    """
    axes = wrap_axes(int_tuple(dims, "rot90", "dims"), input.ndim)
    if len(axes) != 2 or axes[0] == axes[1] or not all(0 <= a < input.ndim for a in axes):
        raise bad(
            either(ArgumentError, RuntimeError), "dims must name two different axes of the input",
            "rot90", describe(input=input, k=k, dims=dims),
        )  # fmt: skip
    turns = as_int(k, "rot90", "k") % 4
    if turns == 0:
        return input
    if turns == 2:
        return _flip(input, axes)
    if turns == 1:
        return F.swapaxes(_flip(input, (axes[1],)), *axes)
    return _flip(F.swapaxes(input, *axes), (axes[1],))


def _infer_roll(input: TensorType, *, shifts: tuple[int, ...], dims: tuple[int, ...]) -> TensorType:
    if len(shifts) != len(dims):
        raise ArgumentError(f"{len(shifts)} shifts do not fit {len(dims)} dims")
    for d in dims:
        if rules.normalize_axis(d, input.ndim) is None or input.ndim == 0:
            raise OutOfRangeError("a 0-d tensor has no axis to roll along")
    return input


def _lower_roll(R: Builder, x: Expr, *, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Expr:
    total = {d: sum(s for s, e in zip(shifts, dims) if e == d) for d in dims}

    def source(i: Expr, size: Expr, shift: int) -> Expr:
        number = getattr(size, "value", None)
        if number is None:  # a size that is known when the code runs
            moved: Expr | int = R.tir.floormod(R.tir.const(shift, "int64"), R.tir.max(size, 1))
        else:
            moved = shift % int(number) if number else 0
        if number is not None and not moved:
            return i
        return R.tir.Select(i < moved, i - moved + size, i - moved)

    def roll(a: Expr) -> Expr:
        def element(*index: Expr) -> Expr:
            moved = [
                source(v, a.shape[i], total[i]) if i in total else v for i, v in enumerate(index)
            ]
            return a(*moved)

        return R.te.compute(a.shape, element, name="roll")

    return R.emit_te(roll, x) if dims else x


def _onnx_roll(
    O: OnnxOps, x: OnnxNamed, *, shifts: tuple[int, ...], dims: tuple[int, ...]
) -> OnnxNamed:
    y = O.Identity(x)
    for s, d in zip(shifts, dims):
        size = x.type.shape[d]
        if isinstance(size, Dim):
            index = O.Mod(O.Sub(O.positions(size), np.asarray(s, np.int64)), O.size(size))
        else:
            index = (np.arange(size) - s) % max(size, 1)
        y = O.Gather(y, index, axis=d)
    return y


@primitive(
    infer=_infer_roll,
    traits=along_axis(Pattern.GATHER),
    eager=lambda x, *, shifts, dims: np.roll(x, shifts, dims),
    lower=_lower_roll,
    vjp=lambda g, y, x, *, shifts, dims: (F.roll(g, tuple(-s for s in shifts), dims),),
    onnx=_onnx_roll,
    samples=[
        sample((5,), shifts=(2,), dims=(0,)),
        sample((3, 4), shifts=(-1, 9), dims=(0, 1)),
        sample((3, 4), shifts=(1, 1), dims=(1, 1)),
        sample((1, 17), shifts=(3,), dims=(0,)),
        sample((0, 2), shifts=(1,), dims=(1,), grad=False),
        sample((3,), shifts=(), dims=(), dtype="int32"),
        sample((3,), shifts=(1,), dims=(1,), raises=OutOfRangeError),
        sample((3,), shifts=(1, 2), dims=(0,), raises=ArgumentError),
    ],
)
@named("roll")
def _roll(input: Tensor, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Tensor:
    """Shifts elements along axes; what leaves at the end comes back at the start.

    Args:
        input: Tensor with at least one axis.
        shifts: One shift per axis of ``dims``.
        dims: Non-negative axes.

    Returns:
        Tensor of ``input``'s shape.
    """
    ...


def roll(input: Tensor, shifts: object, dims: AxisLike | None = None) -> Tensor:
    r"""Shifts elements cyclically: :math:`out_i = input_{(i - shift) \bmod d}`.

    Args:
        input: Tensor of any shape.
        shifts: The shift, or one per axis of ``dims``.
        dims: The axis or axes; ``None`` shifts the flattened tensor.

    Returns:
        Tensor of ``input``'s shape.

    Raises:
        ArgumentError: if the numbers of shifts and axes differ.
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.roll(Tensor([1, 2, 3]), 1, 0)
        Tensor(shape=[3], dtype=Int64, value= [3, 1, 2])
    """
    offsets = int_tuple(shifts, "roll", "shifts")
    if dims is None:
        flat = _roll(F.ravel(input), (sum(offsets),), (0,))
        return F.reshape(flat, input.aval.shape)
    axes = wrap_axes(int_tuple(dims, "roll", "dims"), input.ndim)
    if len(offsets) == 1 and len(axes) > 1:
        offsets = offsets * len(axes)
    return _roll(input, offsets, axes)
