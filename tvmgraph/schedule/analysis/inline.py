"""Merges elementwise stages into the stages that read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import tvm_ffi
from tvm import ir, tirx

from tvmgraph.schedule.analysis.program import (
    Program,
    Stage,
    is_choice,
    loads_of,
    map_loads,
    substitute,
)
from tvmgraph.schedule.types import Expr, Load, Var

#: Calls cheap enough to be evaluated again at every use.
_LIGHT_CALLS = frozenset({"prim.likely", "tirx.isnan", "tirx.fabs"})
#: A stage larger than this many expression nodes becomes a buffer instead of being merged again,
#: which bounds the code size (and the compile time) of long chains.
_MAX_NODES = 400
#: A reduction that reads an element more often than this is given it from memory.
_MAX_REREADS = 4


def inline(program: Program) -> Program:
    """The program with every stage merged whose recomputation costs nothing or next to nothing."""
    stages = list(program.stages)
    for producer in reversed(program.stages):
        current = next(stage for stage in stages if stage.buffers[0].same_as(producer.buffer))
        if not _is_inlinable(replace(program, stages=tuple(stages)), current):
            continue
        stages = [
            _merge(stage, current) if stage.reads(current.buffer) else stage
            for stage in stages
            if stage is not current
        ]
    return replace(program, stages=tuple(stages))


def inline_into(consumer: Stage, producer: Stage) -> Stage:
    """``consumer`` computing the elements of ``producer`` that it reads."""
    return _merge(consumer, producer)


def has_identity_store(stage: Stage) -> bool:
    """Whether the stage stores element (i, j, ...) in iteration (i, j, ...)."""
    remaining = list(stage.axes)
    for index in stage.indices:
        if remaining and index.same_as(remaining[0].var):
            remaining.pop(0)
        elif not (isinstance(index, tirx.IntImm) and int(index) == 0):
            return False
    return not remaining


def _is_inlinable(program: Program, stage: Stage) -> bool:
    if stage.is_reduction or program.is_parameter(stage.buffer) or not has_identity_store(stage):
        return False
    consumers = program.consumers(stage.buffer)
    size = sum(map(_nodes, stage.exprs))
    if not consumers or size > _MAX_NODES:
        return False
    if any(_written_out(c, stage, size) > _MAX_NODES for c in consumers):
        return False
    runs = sum(consumer.work for consumer in consumers) / max(1, stage.points)
    if runs <= 1 or _is_copy(stage):
        return True
    rereads = max(c.work / max(1, stage.points) if c.is_reduction else 0 for c in consumers)
    return all(map(_is_light, stage.exprs)) and rereads <= _MAX_REREADS


def _is_copy(stage: Stage) -> bool:
    """Whether the stage stores elements as they lie: padding of width 0, for example."""
    value = stage.value
    same_type = isinstance(value, Load) and value.source.dtype == stage.buffer.dtype
    return same_type and tvm_ffi.structural_equal(list(value.indices), list(stage.indices))


def _is_light(value: Expr) -> bool:
    heavy: list[Expr] = []

    def visit(node: Expr) -> None:
        if isinstance(node, tirx.Div) or (
            isinstance(node, ir.Call) and getattr(node.op, "name", "") not in _LIGHT_CALLS
        ):
            heavy.append(node)

    tvm_ffi.structural_walk(value, ((tirx.Div, ir.Call), visit))
    return not heavy


def _nodes(value: Expr) -> int:
    count = 0

    def visit(_node: Expr) -> None:
        nonlocal count
        count += 1

    tvm_ffi.structural_walk(value, (ir.Expr, visit))
    return count


def _merge(consumer: Stage, producer: Stage) -> Stage:
    """Replaces reads of the producer; an element read several times is computed once, by name.

    Where a condition guards a read (padding, concatenation) nothing is computed ahead of it, as
    that would read outside of buffers; nor where what the consumer has named says which element
    is read, as names of its own come later.
    """
    guarded = any(_has_guard(expr) for expr in consumer.exprs)
    elements = _distinct(consumer, producer)
    lets: list[tuple[Var, Expr]] = []
    known: list[tuple[Load, Expr]] = []
    for load, count in elements:
        expand = guarded or _mentions(load.indices, [var for var, _ in consumer.lets])
        extra, value = _element(load, producer, expand=expand)
        lets += extra
        if count > 1 and not expand and not _is_atom(value):
            var = tirx.Var("t", ir.PrimType(str(producer.buffer.dtype)))
            lets.append((var, value))
            value = var
        known.append((load, value))

    def visit(load: Load) -> Expr:
        if not load.source.same_as(producer.buffer):
            return load
        return next(value for seen, value in known if _same_element(seen, load))

    own = tuple((var, map_loads(value, visit)) for var, value in consumer.lets)
    values = tuple(map_loads(value, visit) for value in consumer.values)
    return replace(consumer, lets=(*lets, *own), values=values)


def _written_out(consumer: Stage, producer: Stage, size: int) -> int:
    """Nodes of a consumer that may not name what it reads twice, with the producer's written out.

    Args:
        consumer: Reads the producer; one without guards names its values, and counts as nothing.
        producer: The stage to merge.
        size: Nodes of the producer.
    """
    if not any(_has_guard(expr) for expr in consumer.exprs):
        return 0
    reads = sum(load.source.same_as(producer.buffer) for load in loads_of(*consumer.exprs))
    return reads * size + sum(map(_nodes, consumer.exprs)) if reads > 1 else 0


def _mentions(exprs: Sequence[Expr], names: Sequence[Var]) -> bool:
    found: list[Var] = []
    for expr in exprs:
        tvm_ffi.structural_walk(expr, (tirx.Var, found.append))
    return any(var.same_as(name) for var in found for name in names)


def _distinct(consumer: Stage, producer: Stage) -> list[tuple[Load, int]]:
    """The different elements of the producer that are read, and how often each."""
    counted: list[tuple[Load, int]] = []
    for load in loads_of(*consumer.exprs):
        if not load.source.same_as(producer.buffer):
            continue
        for position, (seen, count) in enumerate(counted):
            if _same_element(seen, load):
                counted[position] = (seen, count + 1)
                break
        else:
            counted.append((load, 1))
    return counted


def _is_atom(value: Expr) -> bool:
    """Whether a value costs nothing to use twice."""
    return isinstance(value, (tirx.Var, tirx.IntImm, ir.TensorLoad))


def _same_element(left: Load, right: Load) -> bool:
    return tvm_ffi.structural_equal(left.indices, right.indices)


def _element(load: Load, producer: Stage, *, expand: bool) -> tuple[list[tuple[Var, Expr]], Expr]:
    """The names and the value of one element; without names when ``expand``."""
    mapping: dict[Var, Expr] = {}
    for index, at in zip(producer.indices, load.indices):
        if isinstance(index, Var):
            mapping[index] = at
    lets: list[tuple[Var, Expr]] = []
    for var, value in producer.lets:
        bound = substitute(value, mapping)
        if expand:
            mapping[var] = bound
        else:
            mapping[var] = tirx.Var("t", var.ty)
            lets.append((mapping[var], bound))
    return lets, substitute(producer.value, mapping)


def _has_guard(value: Expr) -> bool:
    guards: list[Expr] = []

    def visit(call: ir.Call) -> None:
        if is_choice(call):
            guards.append(call)

    tvm_ffi.structural_walk(value, (ir.Call, visit))
    return bool(guards)
