"""Rectangular regions by begin, end and size, as users call it."""

from __future__ import annotations

import builtins

from tvmgraph.core.arguments import PerAxis, is_sequence
from tvmgraph.core.sizes import Dim
from tvmgraph.core.symbols import narrowing
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import (
    ArgumentError,
    OutOfRangeError,
    ShapeError,
    TvmgraphError,
    TypeOrValueError,
    either,
)
from tvmgraph.ops.common.arguments import (
    as_int,
    bad,
    describe,
    has_unknown,
    require_tensor,
    resolve_axis,
    split_up,
)
from tvmgraph.ops.indexing.basic import WHOLE, basic_index
from tvmgraph.ops.indexing.getitem import getitem, setitem

__all__ = ["narrow", "select_scatter", "slice", "slice_scatter", "strided_slice"]


def _ints(name: str, values: object, argument: str) -> list[int | Dim]:
    parts = split_up(values)
    if is_sequence(parts) and has_unknown(parts):
        return list(parts)  # pyright: ignore[reportReturnType]
    if isinstance(values, Tensor):
        values = values.tolist()
    if not isinstance(values, (list, tuple)):
        raise bad(
            TypeOrValueError, f"{argument} must be a tuple of ints", name, f"{argument}={values!r}"
        )
    return [v if isinstance(v, Dim) else as_int(v, name, argument) for v in values]


def slice(input_x: Tensor, begin: object, size: object) -> Tensor:
    r"""Takes ``size[i]`` elements from ``begin[i]`` on along every axis.

    Args:
        input_x: Tensor of any shape.
        begin: Non-negative start of every axis.
        size: Number of elements of every axis; -1 takes all that follow.

    Returns:
        Tensor of shape ``size``.

    Raises:
        ShapeError: if there is not one entry per axis.
        OutOfRangeError: if the region leaves the tensor.

    Example:
        >>> ops.slice(Tensor([[1, 2, 3], [4, 5, 6]]), (0, 1), (2, 1))
        Tensor(shape=[2, 1], dtype=Int64, value=
        [[2],
         [5]])
    """
    require_tensor("slice", input_x, "input_x")
    begins, sizes = _ints("slice", begin, "begin"), _ints("slice", size, "size")
    got = describe(input_x=input_x, begin=begins, size=sizes)
    if not len(begins) == len(sizes) == input_x.ndim:
        raise bad(ShapeError, f"begin and size need one entry for each of {input_x.ndim} axes",
                  "slice", got)  # fmt: skip
    if has_unknown(begins) or has_unknown(sizes):
        ends = [None if n.__class__ is int and n == -1 else b + n for b, n in zip(begins, sizes)]
        return getitem(input_x, tuple(map(builtins.slice, begins, ends)))
    entries = []
    for axis, (b, n, d) in enumerate(zip(begins, sizes, input_x.aval.shape)):
        n = d - b if n.__class__ is int and n == -1 else n
        with narrowing():
            leaves = b < 0 or n < 0 or b + n > d
        if leaves:
            raise bad(either(OutOfRangeError, ValueError),
                      f"[{b}, {b + n}) leaves axis {axis} of size {d}", "slice", got,
                      "keep begin + size within the axis")  # fmt: skip
        entries.append((b, b + n, 1))
    return basic_index(input_x, tuple(entries))


def _is_set(mask: int, bit: int) -> bool:
    return bool(mask >> bit & 1)


def strided_slice(
    input_x: Tensor,
    begin: object,
    end: object,
    strides: PerAxis,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:
    r"""Takes ``input_x[begin[0]:end[0]:strides[0], ...]``.

    Args:
        input_x: Tensor of any shape.
        begin: Start of every entry.
        end: End of every entry, exclusive.
        strides: Step of every entry; not zero.
        begin_mask: Bit ``i`` ignores ``begin[i]``: the range starts at the axis' end.
        end_mask: Bit ``i`` ignores ``end[i]``: the range runs to the axis' end.
        ellipsis_mask: One bit: entry ``i`` stands for all axes that are not mentioned.
        new_axis_mask: Bit ``i`` inserts an axis of size 1 instead.
        shrink_axis_mask: Bit ``i`` takes position ``begin[i]`` alone and drops the axis.

    Returns:
        Tensor of ``input_x``'s dtype.

    Raises:
        ArgumentError: if the lengths differ, a stride is zero, or two ellipsis bits are set.
        OutOfRangeError: if a position to shrink to lies outside its axis.

    Example:
        >>> ops.strided_slice(Tensor([[1, 2, 3], [4, 5, 6]]), (0, 0), (2, 3), (1, 2))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 3],
         [4, 6]])
    """
    name = "strided_slice"
    require_tensor(name, input_x, "input_x")
    b, e, s = (_ints(name, v, n) for v, n in ((begin, "begin"), (end, "end"), (strides, "strides")))
    got = describe(input_x=input_x, begin=b, end=e, strides=s)
    if not len(b) == len(e) == len(s):
        raise bad(ArgumentError, "begin, end and strides must have one length", name, got)
    if bin(ellipsis_mask).count("1") > 1:
        raise bad(ArgumentError, "ellipsis_mask can have one bit only", name, got)
    if any(step.__class__ is int and step == 0 for step in s):
        raise bad(ArgumentError, "a stride cannot be zero", name, got)
    index: list[object] = []
    for i in range(len(b)):
        if _is_set(ellipsis_mask, i):
            index.append(Ellipsis)
        elif _is_set(new_axis_mask, i):
            index.append(None)
        elif _is_set(shrink_axis_mask, i):
            index.append(b[i])
        else:
            start = None if _is_set(begin_mask, i) else b[i]
            stop = None if _is_set(end_mask, i) else e[i]
            index.append(builtins.slice(start, stop, s[i]))
    try:
        return getitem(input_x, tuple(index))
    except TvmgraphError as error:
        error.op, error.got = f"ops.{name}", str(got)
        raise


def narrow(input: Tensor, axis: int, start: int, length: int) -> Tensor:
    r"""Takes ``length`` elements from ``start`` on along one axis.

    Args:
        input: Tensor of at least one axis.
        axis: Axis.
        start: First position; a negative one counts from the end.
        length: Number of elements.

    Returns:
        Tensor of ``input``'s shape with ``length`` on ``axis``.

    Raises:
        OutOfRangeError: if the axis does not exist, or the region leaves it.

    Example:
        >>> ops.narrow(Tensor([[1, 2, 3], [4, 5, 6]]), 1, 1, 2)
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[2, 3],
         [5, 6]])
    """
    axis = resolve_axis("narrow", input, axis)
    size = input.aval.shape[axis] if input.ndim else 0
    first = start + size if start < 0 else start
    with narrowing():
        fits = first >= 0 and length >= 0 and first + length <= size
    if not fits:
        raise bad(either(OutOfRangeError, ValueError),
                  f"{length} elements from {start} on exceed {size}", "narrow",
                  f"input={input.aval}, axis={axis}, start={start}, length={length}")  # fmt: skip
    return basic_index(input, (*[WHOLE] * axis, (first, first + length, 1)))


def slice_scatter(
    input: Tensor,
    src: Tensor,
    axis: int = 0,
    start: object = None,
    end: object = None,
    step: int = 1,
) -> Tensor:
    r"""Returns ``input`` with ``src`` in ``start:end:step`` of an axis.

    Args:
        input: Tensor of at least one axis.
        src: Tensor that broadcasts to that region; converted to ``input``'s dtype.
        axis: Axis.
        start: First position; ``None`` for 0.
        end: Position after the last one; ``None`` for the end.
        step: Positive step.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if ``src`` does not fit.
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.slice_scatter(Tensor([1, 2, 3, 4]), Tensor([8, 9]), 0, 1, 3)
        Tensor(shape=[4], dtype=Int64, value= [1, 8, 9, 4])
    """
    axis = resolve_axis("slice_scatter", input, axis)
    region = builtins.slice(start, end, step)
    return setitem(input, (*[builtins.slice(None)] * axis, region), src)


def select_scatter(input: Tensor, src: Tensor, axis: int, index: int) -> Tensor:
    r"""Returns ``input`` with ``src`` at one position of an axis.

    Args:
        input: Tensor of at least one axis.
        src: Tensor that broadcasts to that region; converted to ``input``'s dtype.
        axis: Axis.
        index: Position; a negative one counts from the end.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if ``src`` does not fit.
        OutOfRangeError: if the axis or the position does not exist.

    Example:
        >>> ops.select_scatter(Tensor([[1, 2], [3, 4]]), Tensor([8, 9]), 0, 1)
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [8, 9]])
    """
    axis = resolve_axis("select_scatter", input, axis)
    return setitem(input, (*[builtins.slice(None)] * axis, int(index)), src)
