"""Writing TensorIR: the few building blocks that all kernels are put together from.

A kernel keeps the parameters of the function it replaces and gets a new body. Bodies are written in
the order they run, with the context managers of TVM's IR builder.
"""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func, Index, dtype_of, scalar_of

#: TVM's annotations admit less than its constructors do.
_any: Any = tirx

#: A loop being written; entering it gives the loop variable.
Frame = AbstractContextManager[Any]

#: Without it TVM turns a small buffer into a heap allocation inside the innermost loop. With it the
#: buffer is a stack slot, which LLVM promotes to registers when all its indices are constant.
_STACK = {"disable_lower_builtin": True}


class _BeingWritten(threading.local):
    """The temporaries of the kernel that a thread writes."""

    def __init__(self) -> None:
        self.workspaces: list[Buffer] = []


_being_written = _BeingWritten()


def kernel(func: Func, body: Callable[[], None]) -> Func:
    """``func`` with the body that ``body()`` writes."""
    _being_written.workspaces = []
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("kernel")
        with T.sblock("root"):  # Relax's passes expect every PrimFunc to have a root block
            T.reads()
            T.writes()
            body()
    written: Any = builder.get()
    return tirx.PrimFunc(func.params, written.body, func.ret_type, func.attrs)


def i64(value: int) -> Expr:
    """An index constant. Relax's shapes are int64, and TVM does not mix index types."""
    return tirx.IntImm("int64", value)


def index(value: Index) -> Expr:
    """An index expression from a number or an expression."""
    return i64(value) if isinstance(value, int) else value


def serial(extent: Index) -> Frame:
    """A loop."""
    return T.serial(index(extent))


def parallel(extent: Index, enabled: bool = True) -> Frame:
    """A loop whose iterations are divided among the workers, or a plain one."""
    return T.parallel(index(extent)) if enabled else T.serial(index(extent))


def vectorized(lanes: int) -> Frame:
    """A loop of ``lanes`` iterations that become the lanes of vector instructions."""
    return T.vectorized(i64(lanes))


def lanes_loop(lanes: int) -> Frame:
    """A vectorized loop, or a loop of one iteration when there is a single lane."""
    return vectorized(lanes) if lanes > 1 else serial(1)


def stack(size: int, dtype: str) -> Buffer:
    """A flat scratch buffer of the running thread: registers when small and statically indexed."""
    return T.alloc_buffer((i64(size),), dtype, scope="global", annotations=_STACK)


def workspace(shape: Sequence[Index], dtype: str) -> Buffer:
    """A temporary from TVM's workspace pool."""
    buffer = T.alloc_buffer(tuple(index(extent) for extent in shape), dtype, scope="global")
    _being_written.workspaces.append(buffer)
    return buffer


def is_workspace(buffer: Buffer) -> bool:
    """Whether a buffer of the kernel being written is a temporary."""
    return any(buffer.same_as(other) for other in _being_written.workspaces)


def flat(buffer: Buffer) -> Buffer:
    """The same memory with a single axis."""
    return T.decl_buffer((size_of(buffer),), buffer.dtype, data=buffer.data)


def size_of(buffer: Buffer) -> Expr:
    """Number of elements, which the shape may tell only when the kernel is called."""
    return functools.reduce(operator.mul, buffer.shape, i64(1))


def store(buffer: Buffer, value: Expr, indices: Sequence[Index]) -> None:
    """``buffer[indices] = value``."""
    places: list[Any] = list(indices)
    T.buffer_store(buffer, value, places)


def prefetch(buffer: Buffer, indices: Sequence[Index]) -> None:
    """Asks for the line of an element in the second-level cache; it need not exist."""
    address = T.address_of(buffer[tuple(indices)])
    read, second_level, data = 0, 2, 1
    T.evaluate(_any.call_intrin("void", "tirx.prefetch", address, read, second_level, data))


def chunks_of_vectors(
    count: Expr, lanes: int, chunk: int, enabled: bool, body: Callable[[Expr, int], None]
) -> None:
    """Goes through elements in vectors, and one by one through what is left of a chunk.

    Args:
        count: How many elements there are; may be known only when the kernel is called.
        lanes: Elements of a vector.
        chunk: Elements of one piece of what the workers divide.
        enabled: Whether they do.
        body: Takes the first element, and how many.
    """
    with parallel(tirx.floordiv(count + (chunk - 1), i64(chunk)), enabled) as number:
        start = number * chunk
        length = tirx.min(count - start, i64(chunk))
        full = tirx.floordiv(length, i64(lanes))
        with serial(full) as position:
            body(start + position * lanes, lanes)
        with serial(length - full * lanes) as rest:
            body(start + full * lanes + rest, 1)


def ramp(base: Index, lanes: int) -> Expr:
    """The indices base, base + 1, ...; with one lane the base itself."""
    return _any.Ramp(index(base), i64(1), lanes) if lanes > 1 else index(base)


def is_converted_half(value: Expr) -> bool:
    """Whether a value was float16 before."""
    return isinstance(value, tirx.Cast) and scalar_of(value.value) == "float16"


def broadcast(value: Expr, lanes: int) -> Expr:
    """The same value in every lane.

    A converted half is repeated before it is converted: alone, LLVM puts it into a register beside
    what was there, and waits for that.
    """
    if lanes == 1:
        return value
    if is_converted_half(value):
        return tirx.Cast(f"{dtype_of(value)}x{lanes}", broadcast(value.value, lanes))
    return _any.Broadcast(value, lanes)


def shuffle(vectors: Sequence[Expr], order: Sequence[int]) -> Expr:
    """A vector of the lanes ``order`` of the concatenated ``vectors``."""
    return _any.Shuffle(list(vectors), [tirx.IntImm("int32", lane) for lane in order])


def zero(dtype: str) -> Expr:
    """0 of any type."""
    return tirx.const(0, dtype)


def when(condition: Expr, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """Runs one of two bodies."""
    with T.If(condition):
        with T.Then():
            then()
        with T.Else():
            otherwise()


def only_if(condition: Expr, then: Callable[[], None]) -> None:
    """Runs a body or nothing."""
    with T.If(condition), T.Then():
        then()


def peel_last(split: tuple[Expr, int, int, int], body: Callable[[int], None]) -> None:
    """Calls ``body(size)`` for a piece of a loop; the last piece may be smaller.

    Args:
        split: Index of the piece, number of pieces, size of each, and extent of the loop.
        body: Writes the code of a piece.
    """
    index, count, size, extent = split
    rest = extent - (count - 1) * size
    if rest == size:
        body(size)
    elif count == 1:
        body(rest)
    else:
        when(index < count - 1, lambda: body(size), lambda: body(rest))


def unfuse(fused: Expr, extents: Sequence[Index]) -> list[Expr]:
    """The loop indices of a fused loop, outermost first."""
    indices: list[Expr] = []
    for position, extent in enumerate(reversed(extents)):
        last = position == len(extents) - 1
        if isinstance(extent, int) and extent == 1 and not last:
            indices.append(i64(0))
            continue
        indices.append(fused if last else tirx.floormod(fused, index(extent)))
        fused = fused if last else tirx.floordiv(fused, index(extent))
    return indices[::-1]
