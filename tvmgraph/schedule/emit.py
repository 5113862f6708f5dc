"""Writing TensorIR: the few building blocks that all kernels are put together from.

A kernel keeps the parameters of the function it replaces and gets a new body. Bodies are written in
the order they run, with the context managers of TVM's IR builder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import ir, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

Expr = ir.Expr
Index = Expr | int

#: Without it TVM turns a small buffer into a heap allocation inside the innermost loop. With it the
#: buffer is a stack slot, which LLVM promotes to registers when all its indices are constant.
_STACK = {"disable_lower_builtin": True}


def kernel(func: tirx.PrimFunc, body: Callable[[], None]) -> tirx.PrimFunc:
    """``func`` with the body that ``body()`` writes."""
    with IRBuilder() as builder:
        with T.prim_func(s_tir=True):
            T.func_name("kernel")
            with T.sblock("root"):  # Relax's passes expect every PrimFunc to have a root block
                T.reads()
                T.writes()
                body()
    written = builder.get()
    return tirx.PrimFunc(func.params, written.body, func.ret_type, func.attrs)


def i64(value: int) -> Expr:
    """An index constant. Relax's shapes are int64, and TVM does not mix index types."""
    return tirx.IntImm("int64", value)


def index(value: Index) -> Expr:
    """An index expression from a number or an expression."""
    return i64(value) if isinstance(value, int) else value


def serial(extent: Index):  # noqa: ANN201 - a frame of TVM's builder
    """A loop."""
    return T.serial(index(extent))


def parallel(extent: Index, enabled: bool = True):  # noqa: ANN201
    """A loop whose iterations are divided among the workers, or a plain one."""
    return T.parallel(index(extent)) if enabled else T.serial(index(extent))


def vectorized(lanes: int):  # noqa: ANN201
    """A loop of ``lanes`` iterations that become the lanes of vector instructions."""
    return T.vectorized(i64(lanes))


def lanes_loop(lanes: int):  # noqa: ANN201
    """A vectorized loop, or a loop of one iteration when there is a single lane."""
    return vectorized(lanes) if lanes > 1 else serial(1)


def stack(size: int, dtype: str) -> tirx.Buffer:
    """A flat scratch buffer of the running thread: registers when small and statically indexed."""
    return T.alloc_buffer((i64(size),), dtype, scope="global", annotations=_STACK)


def workspace(shape: Sequence[int], dtype: str) -> tirx.Buffer:
    """A temporary from TVM's workspace pool."""
    return T.alloc_buffer(tuple(i64(extent) for extent in shape), dtype, scope="global")


def store(buffer: tirx.Buffer, value: Expr, indices: Sequence[Index]) -> None:
    """``buffer[indices] = value``."""
    T.buffer_store(buffer, value, list(indices))


def ramp(base: Index, lanes: int) -> Expr:
    """The indices base, base + 1, ...; with one lane the base itself."""
    return tirx.Ramp(index(base), i64(1), lanes) if lanes > 1 else index(base)


def broadcast(value: Expr, lanes: int) -> Expr:
    """The same value in every lane."""
    return tirx.Broadcast(value, lanes) if lanes > 1 else value


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


def unfuse(fused: Expr, extents: Sequence[int]) -> list[Expr]:
    """The loop indices of a fused loop, outermost first."""
    indices: list[Expr] = []
    for position, extent in enumerate(reversed(extents)):
        last = position == len(extents) - 1
        indices.append(fused if last else tirx.floormod(fused, i64(extent)))
        fused = tirx.floordiv(fused, i64(extent))
    return indices[::-1]
