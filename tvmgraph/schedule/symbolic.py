"""Functions whose leading dimension, typically the batch, is known only at run time.

Where all rows of that dimension are computed alike, the function is compiled for a few fixed
numbers of rows, and runs them one after the other: as many of the largest as fit, then of the next
one. The fixed kernels are those of the static case, and divide their rows among the workers
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tvm_ffi
from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.schedule import emit
from tvmgraph.schedule.access import direct_uses
from tvmgraph.schedule.program import Program, Stage, loads_of, parse, product
from tvmgraph.schedule.types import Buffer, Expr, Func, Load, Var

#: Rows of the fixed kernels, largest first; the last one must be 1.
_SIZES = (64, 8, 1)
#: Rows with fewer elements than this are not worth a kernel call of their own.
_MIN_ROW = 16

Scheduler = Callable[[Func], Func]


def schedule_rows(func: Func, schedule: Scheduler) -> Func | None:
    """The function in terms of fixed numbers of rows, or None where rows depend on each other.

    Args:
        func: A function with a symbolic shape.
        schedule: Gives the kernel of a function of static shape.
    """
    count = _leading_symbol(func)
    if count is None or not _is_row_wise(func, count):
        return None
    kernels = [(size, _fix(func, count, size)) for size in _SIZES]
    if any(parse(kernel) is None for _, kernel in kernels):
        return None
    done = [(size, schedule(kernel)) for size, kernel in kernels]
    return emit.kernel(func, lambda: _write(func, count, done))


def _write(func: Func, count: Var, kernels: Sequence[tuple[int, Func]]) -> None:
    start: Expr = emit.i64(0)
    for size, kernel in kernels:
        chunks = tirx.floordiv(count - start, emit.i64(size))
        with emit.serial(chunks) as chunk:
            first = start + chunk * size
            T.add_to_parent(_shift(kernel, func, first))
        start = start + chunks * size


def _shift(kernel: Func, func: Func, first: Expr) -> tirx.Stmt:
    """The kernel's body on rows ``first`` and following of the function's parameters."""
    moved = [
        (mine, theirs)
        for mine, theirs in zip(kernel.params, func.params)
        if not mine.same_as(theirs)
    ]

    def target(buffer: Buffer) -> Buffer | None:
        return next((theirs for mine, theirs in moved if buffer.same_as(mine)), None)

    def load(node: Load) -> Expr:
        buffer = target(node.source)
        return node if buffer is None else buffer[(node.indices[0] + first, *node.indices[1:])]

    def store(node: tirx.BufferStore) -> tirx.Stmt:
        buffer = target(node.buffer)
        if buffer is None:
            return node
        indices = [node.indices[0] + first, *node.indices[1:]]
        return tirx.BufferStore(buffer, node.value, indices)

    body = kernel.body.block.body
    return tvm_ffi.structural_map(body, [(Load, load), (tirx.BufferStore, store)])


def _leading_symbol(func: Func) -> Var | None:
    """The symbol that is the first extent of some parameters, if there is no other one."""
    count: Var | None = None
    for buffer in _buffers(func):
        for position, extent in enumerate(buffer.shape):
            if isinstance(extent, tirx.IntImm):
                continue
            if position or not isinstance(extent, tirx.Var):
                return None
            if count is not None and not extent.same_as(count):
                return None
            count = extent
    return count


def _buffers(func: Func) -> list[Buffer]:
    params = [param for param in func.params if tirx.is_buffer_var(param)]
    return [*params, *getattr(func.body, "block", func.body).alloc_buffers]


def _fix(func: Func, count: Var, size: int) -> Func:
    """The function for ``size`` rows."""
    fixed = {
        param: tirx.decl_buffer(
            (emit.i64(size), *param.shape[1:]), str(param.dtype), str(param.name)
        )
        for param in func.params
        if len(param.shape) and count.same_as(param.shape[0])
    }
    return func.specialize(fixed)


def _is_row_wise(func: Func, count: Var) -> bool:
    """Whether every stage computes row i from rows i only, by the same expression for all i."""
    if not all(tirx.is_buffer_var(param) for param in func.params):
        return False
    static = _fix(func, count, _SIZES[0])
    program = parse(static)
    if program is None or _computes_with(func, count):
        return False
    pairs = list(zip(_buffers(static), _buffers(func)))
    rowed = [mine for mine, theirs in pairs if len(theirs.shape) and count.same_as(theirs.shape[0])]
    wide = [product(int(extent) for extent in buffer.shape[1:]) for buffer in rowed]
    return max(wide) >= _MIN_ROW and all(
        _stage_is_row_wise(s, program, rowed) for s in program.stages
    )


def _stage_is_row_wise(stage: Stage, program: Program, rowed: Sequence[Buffer]) -> bool:
    def has_rows(buffer: Buffer) -> bool:
        return any(buffer.same_as(other) for other in rowed)

    axis = next((axis for axis in stage.axes if axis.var.same_as(stage.indices[0])), None)
    if axis is None or not all(has_rows(buffer) for buffer in stage.buffers):
        return False
    uses = 1  # by the store
    for load in loads_of(*stage.exprs):
        if has_rows(load.source):
            if not axis.var.same_as(load.indices[0]):
                return False
            uses += 1
    found = [var for expr in (*stage.indices, *stage.exprs) for var in _variables(expr)]
    occurrences = sum(var.same_as(axis.var) for var in found)
    return occurrences == uses and not direct_uses(stage, [axis])[0]


def _computes_with(func: Func, count: Var) -> bool:
    """Whether the number of rows is used in an expression, such as the divisor of a mean."""
    found: list[Var] = []

    def visit(store: tirx.BufferStore) -> None:
        for expr in (store.value, *store.indices):
            found.extend(_variables(expr))

    tvm_ffi.structural_walk(func.body, (tirx.BufferStore, visit))
    return any(var.same_as(count) for var in found)


def _variables(expr: Expr) -> list[Var]:
    """The variables an expression computes with, those in the shapes of its buffers left out."""
    found: list[Var] = []

    def visit(load: Load) -> tvm_ffi.WalkResult:
        for index in load.indices:
            found.extend(_variables(index))
        return tvm_ffi.WalkResult.SKIP

    tvm_ffi.structural_walk(expr, [(Load, visit), (tirx.Var, found.append)], order="pre")
    return found
