"""Addresses without divisions: reshapes that were merged into the stages that read through them.

A reshape that is merged leaves divisions and remainders of loop variables in the indices of what it
reads. Seen dimension by dimension they say nothing; the address they add up to most often just
runs on, which vectors are loaded from in one instruction instead of lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tvm import sym, tirx

from tvmgraph.backend.loop_ir.access import address_of, bounded
from tvmgraph.backend.loop_ir.program import Program, Stage, map_body, static_shape
from tvmgraph.backend.loop_ir.types import Expr, Load
from tvmgraph.backend.walks import walk

_DIVISIONS = (tirx.FloorDiv, tirx.FloorMod)


def straighten(program: Program) -> Program:
    """The program with the addresses written out of whatever is read by way of divisions.

    Only what the function is given is read by its address, as the last index of several: TVM may
    give intermediates other shapes, and what the function itself writes must be seen to be read
    after it was written.

    Args:
        program: The function, after what can be merged was merged: that is where divisions come
            from.
    """
    stages = tuple(_straightened(stage, program) for stage in program.stages)
    return replace(program, stages=stages)


def _straightened(stage: Stage, program: Program) -> Stage:
    winding = [load for load in stage.loads if _is_winding(load, program)]
    if not winding:
        return stage
    analyzer = bounded((*stage.axes, *stage.reduce))

    def visit(load: Load) -> Expr:
        return _by_address(load, analyzer) if _is_winding(load, program) else load

    return map_body(stage, visit)


def _by_address(load: Load, analyzer: sym.Analyzer) -> Expr:
    """The load at its address, if that takes fewer divisions than its indices."""
    shape = static_shape(load.source) or ()
    address = analyzer.simplify(address_of(shape, load.indices))
    if divisions(address) >= divisions(load.indices):
        return load
    return load.source[(*[tirx.IntImm("int64", 0)] * (len(shape) - 1), address)]


def _is_winding(load: Load, program: Program) -> bool:
    if not divisions(load.indices) or not program.is_parameter(load.source):
        return False
    return not any(load.source.same_as(b) for stage in program.stages for b in stage.buffers)


def divisions(root: Expr | Sequence[Expr]) -> int:
    """How many divisions and remainders expressions have.

    Args:
        root: An index, or several.
    """
    found: list[Expr] = []
    walk(root, (_DIVISIONS, found.append))
    return len(found)
