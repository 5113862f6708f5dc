"""Merges elementwise stages into the stages that read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import tvm_ffi
from tvm import ir, tirx

from tvmgraph.backend.loop_ir.access import bounded
from tvmgraph.backend.loop_ir.addresses import divisions
from tvmgraph.backend.loop_ir.program import Program, Stage, map_body, node_count, substitute
from tvmgraph.backend.loop_ir.types import Expr, Load, Var
from tvmgraph.backend.walks import elements, walk

#: Calls cheap enough to be evaluated again at every use.
_LIGHT_CALLS = frozenset({"prim.likely", "tirx.isnan", "tirx.fabs"})
#: A stage larger than this many expression nodes becomes a buffer instead of being merged again,
#: and so does one whose copies at several places would have more than this together.
_MAX_NODES = 400
#: No stage is merged into one that this makes larger: the time to merge a chain of stages grows
#: with the square of its length.
_MAX_MERGED = 1500
#: A stage that several others read becomes a buffer when it, and all that would be merged into it,
#: has more nodes than this: a chain of such stages would be computed as often as it has links.
_MAX_AGAIN = 150
#: A reduction that reads an element more often than this is given it from memory.
_MAX_REREADS = 4


def inline(program: Program) -> Program:
    """The program with every stage merged whose recomputation costs nothing or next to nothing.

    Args:
        program: The function, one stage per operator.

    Returns:
        The program without the stages that were merged; those of long chains of operations that
        several read are kept, because they would be computed again for each.
    """
    program = replace(program, stages=tuple(map(_undivided, program.stages)))
    stages, kept = list(program.stages), _long_chains(program)
    for producer in reversed(program.stages):
        current = next(stage for stage in stages if stage.buffers[0].same_as(producer.buffer))
        if hash(producer.buffer) in kept:
            continue
        if not _is_inlinable(replace(program, stages=tuple(stages)), current):
            continue
        stages = [
            _merge(stage, current) if stage.reads(current.buffer) else stage
            for stage in stages
            if stage is not current
        ]
    return replace(program, stages=tuple(stages))


def inline_into(consumer: Stage, producer: Stage) -> Stage:
    """``consumer`` computing the elements of ``producer`` that it reads.

    Args:
        consumer: The stage that reads.
        producer: An elementwise stage. It is not checked whether computing it again is cheap.
    """
    return _merge(consumer, producer)


def has_identity_store(stage: Stage) -> bool:
    """Whether the stage stores element (i, j, ...) in iteration (i, j, ...).

    Args:
        stage: The loop nest. Dimensions of extent 1 may be stored at index 0 instead.
    """
    remaining = list(stage.axes)
    for index in stage.indices:
        if remaining and index.same_as(remaining[0].var):
            remaining.pop(0)
        elif not (isinstance(index, tirx.IntImm) and int(index) == 0):
            return False
    return not remaining


def _undivided(stage: Stage) -> Stage:
    """A stage without the divisions of a reshape that say nothing within its loops.

    Those of a reduction stay: a product knows packed weights by them, even where one panel is all.
    """
    if stage.is_reduction or not divisions(stage.exprs):
        return stage
    analyzer = bounded(stage.axes)

    def visit(load: Load) -> Expr:
        if not divisions(load.indices):
            return load
        return tirx.BufferLoad(load.source, [analyzer.simplify(i) for i in elements(load.indices)])

    return map_body(stage, visit)


def _long_chains(program: Program) -> set[int]:
    """The buffers of stages that take too much to be computed again by each of their readers."""

    def found(is_merged: Callable[[Stage], bool]) -> set[int]:
        nodes: dict[int, int] = {}  # of a stage with all that would be merged into it
        kept: set[int] = set()
        for stage in filter(is_merged, program.stages):
            buffer = hash(stage.buffer)
            total = stage.size + sum(nodes.get(source, 0) for source in stage.sources)
            if total > _MAX_AGAIN and len(program.consumers(stage.buffer)) > 1:
                kept.add(buffer)
            else:
                nodes[buffer] = total
        return kept

    if not found(lambda _: True):  # which stages can be merged takes long to tell
        return set()
    return found(lambda stage: _is_inlinable(program, stage))


def _is_inlinable(program: Program, stage: Stage) -> bool:
    if stage.is_reduction or program.is_parameter(stage.buffer) or not has_identity_store(stage):
        return False
    consumers = program.consumers(stage.buffer)
    if not consumers or stage.size > _MAX_NODES:
        return False
    if any(_is_too_large(consumer, stage) for consumer in consumers):
        return False
    runs = sum(consumer.work for consumer in consumers) / max(1, stage.points)
    if runs <= 1 or _is_copy(stage):
        return True
    rereads = max(c.work / max(1, stage.points) if c.is_reduction else 0 for c in consumers)
    return all(map(_is_light, stage.exprs)) and rereads <= _MAX_REREADS


def _is_copy(stage: Stage) -> bool:
    """Whether the stage stores elements as they lie: padding of width 0, for example."""
    value = stage.value
    if not isinstance(value, Load) or value.source.dtype != stage.buffer.dtype:
        return False
    return tvm_ffi.structural_equal(list(value.indices), list(stage.indices))


def _is_light(value: Expr) -> bool:
    heavy: list[Expr] = []

    def visit(node: Expr) -> None:
        if isinstance(node, tirx.Div) or (
            isinstance(node, ir.Call) and getattr(node.op, "name", "") not in _LIGHT_CALLS
        ):
            heavy.append(node)

    walk(value, ((tirx.Div, ir.Call), visit))
    return not heavy


@dataclass(frozen=True)
class _Element:
    """An element of a producer that a consumer reads.

    Attributes:
        load: The first read of it.
        count: How often it is read.
        expand: Whether every read is replaced by the whole expression: a name stands for the value
            otherwise, if there are several.
    """

    load: Load
    count: int
    expand: bool


def _merge(consumer: Stage, producer: Stage) -> Stage:
    """Replaces reads of the producer; an element read several times is computed once, by name."""
    lets: list[tuple[Var, Expr]] = []
    known: list[tuple[Load, Expr]] = []
    for element in _elements(consumer, producer):
        extra, value = _element(element.load, producer, expand=element.expand)
        lets += extra
        if element.count > 1 and not element.expand and not _is_atom(value):
            var = tirx.Var("t", ir.PrimType(str(producer.buffer.dtype)))
            lets.append((var, value))
            value = var
        known.append((element.load, value))

    def visit(load: Load) -> Expr:
        if not load.source.same_as(producer.buffer):
            return load
        return next(value for seen, value in known if _same_element(seen, load))

    merged = map_body(consumer, visit)
    return replace(merged, lets=(*lets, *merged.lets))


def _is_too_large(consumer: Stage, producer: Stage) -> bool:
    """Whether a merge would make a stage that takes long to compile.

    Without this limit stages double from merge to merge where they read a producer at several
    places, and so do indices where each is computed from another's elements.
    """
    added = copies = written_out = 0
    for element in _elements(consumer, producer):
        times = element.count if element.expand else 1
        added += times * _size_at(element.load, producer)
        copies += times
        written_out += times * element.expand
    doubles = copies > 1 and not isinstance(producer.value, Load)  # a view has but its indices
    if doubles and added + (consumer.size if written_out > 1 else 0) > _MAX_NODES:
        return True
    return added + consumer.size > _MAX_MERGED


def _size_at(load: Load, producer: Stage) -> int:
    """The nodes of an element of a producer, with its indices in place of the loop variables."""
    indices = {
        hash(at): node_count(index) - 1
        for at, index in zip(producer.indices, load.indices)
        if isinstance(at, Var) and not isinstance(index, (Var, tirx.IntImm))
    }
    found: list[Var] = []
    if indices:
        walk(producer.exprs, (Var, found.append))
    uses = Counter(map(hash, found))
    return producer.size + sum(uses[var] * extra for var, extra in indices.items())


def _mentions_name(load: Load, stage: Stage) -> bool:
    """Whether values that a stage has named say which element is read."""
    found: list[Var] = []
    if stage.lets:
        walk(load.indices, (Var, found.append))
    names = {hash(var) for var, _ in stage.lets}
    return any(hash(var) in names for var in found)


def _elements(consumer: Stage, producer: Stage) -> list[_Element]:
    """The different elements of the producer that are read.

    Where a condition guards a read (padding, concatenation) nothing is computed ahead of it, as
    that would read outside of buffers; nor where what the consumer has named says which element
    is read, as names of its own come later.
    """
    counted: list[tuple[Load, int]] = []
    for load in consumer.loads:
        if not load.source.same_as(producer.buffer):
            continue
        for position, (seen, count) in enumerate(counted):
            if _same_element(seen, load):
                counted[position] = (seen, count + 1)
                break
        else:
            counted.append((load, 1))
    guarded = consumer.has_choice
    return [_Element(load, n, guarded or _mentions_name(load, consumer)) for load, n in counted]


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
            mapping[var] = name = tirx.Var("t", var.ty)
            lets.append((name, bound))
    return lets, substitute(producer.value, mapping)
