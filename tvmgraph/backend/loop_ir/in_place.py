"""Elementwise kernels that write a result over one of their operands.

Every element is read before it is written and nothing else reads it, so the operand's memory can
take the result. The two are one parameter of the kernel: nothing is said to LLVM about memory that
is not so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import tvm_ffi
from tvm import ir, tirx

from tvmgraph.backend.loop_ir import emit, types
from tvmgraph.backend.loop_ir.fuse import fuse_points
from tvmgraph.backend.loop_ir.inline import has_identity_store, inline
from tvmgraph.backend.loop_ir.program import Program, Stage, loads_of, parse, static_shape

Pair = tuple[int, int]  # positions of an operand and of a result among the parameters


def overwritable(func: types.Func, pairs: Sequence[Pair]) -> list[Pair]:
    """Returns those of ``pairs`` whose result may be written over its operand.

    Args:
        func: A function that is not scheduled yet.
        pairs: Positions of operand and result.
    """
    if func.attrs and (types.SCHEDULED in func.attrs or types.NAMED in func.attrs):
        return []
    stage = _elementwise(parse(func))
    if stage is None:
        return []
    return [
        (i, o) for i, o in pairs if _is_overwritable(stage, func.params[i], func.params[o])
    ]  # fmt: skip


def write_in_place(func: types.Func, write: Callable[[Stage], None]) -> types.Func:
    """The kernel of a function that carries the pairs of :func:`overwritable` as ``IN_PLACE``.

    Args:
        func: The function.
        write: Writes the loops of an elementwise stage.
    """
    pairs = [(int(i), int(o)) for i, o in func.attrs[types.IN_PLACE]]
    stage = _elementwise(parse(func))
    assert stage is not None
    merged = {func.params[o]: func.params[i] for i, o in pairs}
    stage = replace(_values_first(stage), buffers=tuple(merged.get(b, b) for b in stage.buffers))
    written = emit.kernel(func, lambda: write(stage))
    params = [p for p in written.params if p not in merged]
    kernel = tirx.PrimFunc(params, written.body, written.ret_type, written.attrs)
    return kernel.with_attr(types.SCHEDULED, True)


def merged(func: types.Func, pairs: Sequence[Pair]) -> types.Func | None:
    """A scheduled kernel that writes results over its operands, or None if it must not.

    It may if it reads every element of the operand only for storing the same element of the
    result, and never reads the result. All schedules store an element once, or at a place that
    stops at the last vector of a row (``min``), which shows that some are stored again.

    Args:
        func: A scheduled kernel with parameters of its own for operands and results.
        pairs: Positions of operand and result.
    """
    if not func.attrs or types.SCHEDULED not in func.attrs or types.IN_PLACE in func.attrs:
        return None
    use = _Use(func.body)
    allowed = [(i, o) for i, o in pairs if use.allows(func.params[i], func.params[o])]
    if not allowed:
        return None
    same = {func.params[o]: func.params[i] for i, o in allowed}
    body = tvm_ffi.structural_map(func.body, (tirx.Var, lambda v: same.get(v, v)))
    params = [p for p in func.params if p not in same]
    kernel = tirx.PrimFunc(params, body, func.ret_type, func.attrs)
    return kernel.with_attr(types.IN_PLACE, [list(pair) for pair in allowed])


class _Use:
    """How the body of a kernel uses its buffers."""

    def __init__(self, body: object) -> None:
        self.loads: list[types.Load] = []
        self.stores: list[tirx.BufferStore] = []
        self.calls: list[ir.Call] = []
        tvm_ffi.structural_walk(
            body,
            [
                (types.Load, self.loads.append),
                (tirx.BufferStore, self.stores.append),
                (ir.Call, self.calls.append),
            ],
        )

    def allows(self, operand: types.Buffer, result: types.Buffer) -> bool:
        """Whether the result may be written over the operand."""
        if static_shape(operand) != static_shape(result) or operand.dtype != result.dtype:
            return False
        if any(a.same_as(b) for c in self.calls for a in c.args for b in (operand, result)):
            return False  # memory that is handed on
        if any(load.source.same_as(result) for load in self.loads):
            return False
        at_store = 0
        for store in self.stores:
            if not store.buffer.same_as(result):
                continue
            if _stops(store):
                return False
            for load in loads_of(store.value):
                if load.source.same_as(operand):
                    at_store += 1
                    if not _same_indices(load, store):
                        return False
        return at_store == sum(load.source.same_as(operand) for load in self.loads)


def _stops(store: tirx.BufferStore) -> bool:
    """Whether the place of a store does not move on with its loop at the end."""
    found: list[tirx.Min] = []
    tvm_ffi.structural_walk(store.indices, (tirx.Min, found.append))
    return bool(found)


def _same_indices(a: types.Load, b: tirx.BufferStore | Stage) -> bool:
    return tvm_ffi.structural_equal(list(a.indices), list(b.indices), map_free_vars=False)


def _elementwise(program: Program | None) -> Stage | None:
    """The only stage of an elementwise program."""
    if program is None or any(stage.is_reduction for stage in program.stages):
        return None
    program = inline(program)
    stage = program.stages[0] if len(program.stages) == 1 else fuse_points(program)
    return stage if stage is not None and has_identity_store(stage) else None


def _is_overwritable(stage: Stage, operand: types.Buffer, result: types.Buffer) -> bool:
    if not any(b.same_as(result) for b in stage.buffers):
        return False
    if static_shape(operand) != static_shape(result) or operand.dtype != result.dtype:
        return False
    return all(
        _same_indices(load, stage) for load in stage.loads if load.source.same_as(operand)
    )  # fmt: skip


def _values_first(stage: Stage) -> Stage:
    """Names every value, so that all of them are known before the first one is stored."""
    if len(stage.buffers) == 1:
        return stage
    lets: list[tuple[tirx.Var, types.Expr]] = []
    values: list[types.Expr] = []
    for i, value in enumerate(stage.values):
        is_bool = types.dtype_of(value) == "bool"  # TVM cannot bind vectors of bool
        var = tirx.Var(f"value{i}", "int8" if is_bool else types.dtype_of(value))
        lets.append((var, tirx.Cast("int8", value) if is_bool else value))
        values.append(var != tirx.IntImm("int8", 0) if is_bool else var)
    return replace(stage, values=tuple(values), lets=(*stage.lets, *lets))
