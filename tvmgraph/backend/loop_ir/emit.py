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
from typing import Any, TypeGuard

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

#: The annotation of loops that stay loops.
ROLLED = "tvmgraph.rolled"


class _BeingWritten(threading.local):
    """The temporaries of the kernel that a thread writes."""

    def __init__(self) -> None:
        self.workspaces: list[Buffer] = []


_being_written = _BeingWritten()


def kernel(func: Func, body: Callable[[], None]) -> Func:
    """``func`` with the body that ``body()`` writes.

    Args:
        func: The function that is replaced; parameters, result type and attributes stay.
        body: Writes the statements in the order they run, with the functions of this module.
    """
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
    """An index constant. Relax's shapes are int64, and TVM does not mix index types.

    Args:
        value: The number.
    """
    return tirx.IntImm("int64", value)


def index(value: Index) -> Expr:
    """An index expression from a number or an expression.

    Args:
        value: A number, or an int64 expression, which stays.
    """
    return i64(value) if isinstance(value, int) else value


def serial(extent: Index) -> Frame:
    """A loop.

    Args:
        extent: Its iterations.

    Returns:
        A context manager that gives the loop variable.
    """
    return T.serial(index(extent))


def rolled(extent: int) -> Frame:
    """A loop that LLVM shall not write out: what it runs is long, and rare beside the rest.

    Args:
        extent: Its iterations.
    """
    return T.serial(i64(extent), annotations={ROLLED: True})


def parallel(extent: Index, enabled: bool = True) -> Frame:
    """A loop whose iterations are divided among the workers, or a plain one.

    Args:
        extent: Its iterations.
        enabled: Whether it is worth waking the workers.
    """
    return T.parallel(index(extent)) if enabled else T.serial(index(extent))


def vectorized(lanes: int) -> Frame:
    """A loop of ``lanes`` iterations that become the lanes of vector instructions.

    Args:
        lanes: Iterations; vector widths that the processor lacks are split or padded by LLVM.
    """
    return T.vectorized(i64(lanes))


def lanes_loop(lanes: int) -> Frame:
    """A vectorized loop, or a loop of one iteration when there is a single lane.

    Args:
        lanes: Iterations.
    """
    return vectorized(lanes) if lanes > 1 else serial(1)


def stack(size: int, dtype: str) -> Buffer:
    """A flat scratch buffer of the running thread: registers when small and statically indexed.

    Args:
        size: Its elements; LLVM keeps it in registers if they fit and all indices are constants.
        dtype: TVM's name of the element type.
    """
    return T.alloc_buffer((i64(size),), dtype, scope="global", annotations=_STACK)


def workspace(shape: Sequence[Index], dtype: str) -> Buffer:
    """A temporary from TVM's workspace pool.

    Args:
        shape: Extents; expressions where they are known at the call only.
        dtype: TVM's name of the element type.
    """
    buffer = T.alloc_buffer(tuple(index(extent) for extent in shape), dtype, scope="global")
    _being_written.workspaces.append(buffer)
    return buffer


def is_workspace(buffer: Buffer) -> bool:
    """Whether a buffer of the kernel being written is a temporary.

    Args:
        buffer: A buffer; parameters of the kernel and those on the stack are none.
    """
    return any(buffer.same_as(other) for other in _being_written.workspaces)


def flat(buffer: Buffer) -> Buffer:
    """The same memory with a single axis.

    Args:
        buffer: A buffer in row-major order without gaps.
    """
    found = T.decl_buffer((size_of(buffer),), buffer.dtype, data=buffer.data)
    if is_workspace(buffer):
        _being_written.workspaces.append(found)
    return found


def size_of(buffer: Buffer) -> Expr:
    """Number of elements, which the shape may tell only when the kernel is called.

    Args:
        buffer: A buffer, also one of symbolic extents.
    """
    return functools.reduce(operator.mul, buffer.shape, i64(1))


def store(buffer: Buffer, value: Expr, indices: Sequence[Index]) -> None:
    """``buffer[indices] = value``.

    Args:
        buffer: Where to.
        value: An element, or a vector where the last index is a :func:`ramp`.
        indices: One index per dimension.
    """
    T.buffer_store(buffer, value, list(indices))


def prefetch(buffer: Buffer, indices: Sequence[Index]) -> None:
    """Asks for the line of an element in the second-level cache; it need not exist.

    Args:
        buffer: What will be read.
        indices: One index per dimension; addresses outside of the buffer do no harm.
    """
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
        chunk: Elements of one chunk of what the workers divide.
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
    """The indices base, base + 1, ...; with one lane the base itself.

    Args:
        base: The first index.
        lanes: How many.
    """
    return _any.Ramp(index(base), i64(1), lanes) if lanes > 1 else index(base)


def is_converted_half(value: Expr) -> TypeGuard[tirx.Cast]:
    """Whether a value was float16 before.

    Args:
        value: An expression.
    """
    return isinstance(value, tirx.Cast) and scalar_of(value.value) == "float16"


def broadcast(value: Expr, lanes: int) -> Expr:
    """The same value in every lane.

    A converted half is repeated before it is converted: alone, LLVM puts it into a register beside
    what was there, and waits for that.

    Args:
        value: A scalar.
        lanes: Lanes of the vector.
    """
    if lanes == 1:
        return value
    if is_converted_half(value):
        return tirx.Cast(f"{dtype_of(value)}x{lanes}", broadcast(value.value, lanes))
    return _any.Broadcast(value, lanes)


def number_like(number: float, x: Expr) -> Expr:
    """A number in every lane, of the type of another expression.

    Args:
        number: The number.
        x: A scalar or a vector.
    """
    scalar, _, lanes = dtype_of(x).partition("x")
    return broadcast(tirx.const(number, scalar), int(lanes or 1))


def shuffle(vectors: Sequence[Expr], order: Sequence[int]) -> Expr:
    """A vector of the lanes ``order`` of the concatenated ``vectors``.

    Args:
        vectors: Vectors of one element type.
        order: One lane number per lane of the result, counted over all vectors.
    """
    return _any.Shuffle(list(vectors), [tirx.IntImm("int32", lane) for lane in order])


def zero(dtype: str) -> Expr:
    """0 of any type.

    Args:
        dtype: TVM's name of the type.
    """
    return tirx.const(0, dtype)


def clear(buffer: Buffer, first: Index, lanes: int) -> None:
    """Sets neighbouring elements of a flat buffer to 0.

    Args:
        buffer: Where.
        first: The first of them.
        lanes: How many: a vector.
    """
    store(buffer, broadcast(zero(str(buffer.dtype)), lanes), [ramp(first, lanes)])


def when(condition: Expr, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """Runs one of two bodies.

    Args:
        condition: A bool that is known at run time only.
        then: Writes what runs if it holds.
        otherwise: Writes what runs if not.
    """
    with T.If(condition):
        with T.Then():
            then()
        with T.Else():
            otherwise()


def only_if(condition: Expr, then: Callable[[], None]) -> None:
    """Runs a body or nothing.

    Args:
        condition: A bool that is known at run time only.
        then: Writes what runs if it holds.
    """
    with T.If(condition), T.Then():
        then()


def peel_last(split: tuple[Expr, int, int, int], body: Callable[[int], None]) -> None:
    """Calls ``body(size)`` for a chunk of a loop; the last chunk may be smaller.

    Args:
        split: Index of the chunk, number of chunks, size of each, and extent of the loop.
        body: Writes the code of a chunk.
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
    """The loop indices of a fused loop, outermost first.

    Args:
        fused: The index of the one loop, smaller than the product of the extents.
        extents: Extents of the loops that it stands for, outermost first.
    """
    indices: list[Expr] = []
    for position, extent in enumerate(reversed(extents)):
        last = position == len(extents) - 1
        if isinstance(extent, int) and extent == 1 and not last:
            indices.append(i64(0))
            continue
        indices.append(fused if last else tirx.floormod(fused, index(extent)))
        fused = fused if last else tirx.floordiv(fused, index(extent))
    return indices[::-1]
