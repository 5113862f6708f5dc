"""Reads of every element several times in a row, as in repeating and enlarging.

A short vector holds the elements that neighbouring lanes need; a shuffle spreads them. Reading lane
by lane would take as many loads as there are lanes.
"""

from __future__ import annotations

from tvm import sym, tirx

from tvmgraph.backend.cpu.kernels.elementwise.strided import read_from, reads_ahead, steps, uses
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.point import Bound
from tvmgraph.backend.loop_ir.program import Axis, Stage, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load


def spread_loads(stage: Stage, axis: Axis) -> list[Load]:
    """The reads whose last index goes up by 1 every so many steps of ``axis``.

    Reads behind a condition are none, because they are read ahead of it.

    Args:
        stage: An elementwise stage.
        axis: The loop that becomes vectors.
    """
    return reads_ahead(stage, lambda load: _is_spread(load, axis))


def with_spreads(
    stage: Stage, loads: list[Load], axis: Axis, bound: Bound, start: Expr, lanes: int
) -> Stage:
    """Writes the vectors of ``loads`` where they begin with the first of equal lanes.

    Args:
        stage: The stage.
        loads: What :func:`spread_loads` found.
        axis: The loop along the lanes.
        bound: Values of the other loops.
        start: The value of ``axis`` in the first lane.
        lanes: Number of lanes.

    Returns:
        The stage reading those vectors.
    """
    analyzer, registers = sym.Analyzer(), list[tuple[Load, Buffer]]()
    for load in loads:
        quotient, here = _quotient(load.indices[-1], axis), bound | {axis.var: start}
        assert quotient is not None
        times = int(quotient.b)
        if lanes % times or not analyzer.can_prove(substitute(quotient.a, here) % times == 0):
            continue
        *outer, last = (substitute(index, here) for index in load.indices)
        few = load.source[(*outer, emit.ramp(analyzer.simplify(last), lanes // times))]
        if lanes == times:
            vector = emit.broadcast(few, lanes)
        else:
            vector = emit.shuffle([few] * times, [lane // times for lane in range(lanes)])
        register = emit.stack(lanes, str(load.source.dtype))
        emit.store(register, vector, [emit.ramp(0, lanes)])
        registers.append((load, register))
    return read_from(stage, registers, axis, start)


def _is_spread(load: Load, axis: Axis) -> bool:
    if not load.indices or any(uses(index, axis) for index in load.indices[:-1]):
        return False
    quotient = _quotient(load.indices[-1], axis)
    return quotient is not None and steps(quotient.a, axis) == 1


def _quotient(index: Expr, axis: Axis) -> tirx.FloorDiv | None:
    """The division by a number that is all of an index that depends on ``axis``."""
    if isinstance(index, tirx.Add):
        left, right = (uses(part, axis) for part in (index.a, index.b))
        return None if left == right else _quotient(index.a if left else index.b, axis)
    if isinstance(index, tirx.FloorDiv) and isinstance(index.b, tirx.IntImm):
        return index
    return None
