"""Vectors of elements that do not lie side by side: every second one, as in pooling with stride 2.

Two whole vectors hold the even and the odd elements that neighbouring lanes need; shuffles take
them apart. Reading element after element into the lanes of a vector would take as many loads as
there are lanes.
"""

from __future__ import annotations

from collections.abc import Callable

import tvm_ffi
from tvm import ir, sym, tirx

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import variables_in
from tvmgraph.backend.loop_ir.point import Bound
from tvmgraph.backend.loop_ir.program import Axis, Stage, is_choice, map_body, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load
from tvmgraph.backend.walks import walk

#: A read, the even one of the two neighbours it belongs to, and whether it is the odd one.
StridedLoad = tuple[Load, Load, bool]


def strided_loads(stage: Stage, axis: Axis) -> list[StridedLoad]:
    """The reads of ``stage`` that go up by 2 with ``axis`` and have a neighbour.

    Reads behind a condition are none, because both neighbours are read ahead of it.

    Args:
        stage: An elementwise stage.
        axis: The loop that becomes vectors.

    Returns:
        Per read: itself, the read that its vectors start at, and whether it is the odd one of the
        two.
    """
    loads = reads_ahead(stage, lambda load: _steps_by_two(load, axis))
    strided: list[StridedLoad] = []
    for load in loads:
        after = any(_distance(load, other) == 1 for other in loads)
        before = next((other for other in loads if _distance(other, load) == 1), None)
        if after:
            strided.append((load, load, False))
        elif before is not None:
            strided.append((load, before, True))
    return strided


def reads_ahead(stage: Stage, wanted: Callable[[Load], bool]) -> list[Load]:
    """The wanted reads of a stage, equal ones once; none where one is behind a condition.

    Args:
        stage: An elementwise stage.
        wanted: Tells which reads count.
    """
    if any(map(_has_condition, stage.exprs)):
        return []
    found: list[Load] = []
    for load in stage.loads:
        if wanted(load) and not any(tvm_ffi.structural_equal(load, other) for other in found):
            found.append(load)
    return found


def with_shuffles(
    stage: Stage, strided: list[StridedLoad], axis: Axis, bound: Bound, start: Expr, lanes: int
) -> Stage:
    """Writes the vectors that strided loads are taken from, and returns the stage reading those.

    Args:
        stage: The stage.
        strided: What :func:`strided_loads` found.
        axis: The loop along the lanes.
        bound: Values of the other loops.
        start: The value of ``axis`` in the first lane.
        lanes: Number of lanes.
    """
    registers: list[tuple[Load, Buffer]] = []
    for load, base, odd in strided:
        at = [substitute(index, bound | {axis.var: start}) for index in base.indices]
        halves = [
            base.source[(*at[:-1], emit.ramp(at[-1] + offset, lanes))] for offset in (0, lanes)
        ]
        register = emit.stack(lanes, str(base.source.dtype))
        order = [2 * lane + odd for lane in range(lanes)]
        emit.store(register, emit.shuffle(halves, order), [emit.ramp(0, lanes)])
        registers.append((load, register))

    return read_from(stage, registers, axis, start)


def read_from(stage: Stage, registers: list[tuple[Load, Buffer]], axis: Axis, start: Expr) -> Stage:
    """The stage with reads from vectors, whose first lane is ``axis`` at ``start``.

    Args:
        stage: An elementwise stage.
        registers: The reads that are replaced, each with the buffer that holds its vector.
        axis: The loop that becomes vectors.
        start: Index of the first lane.
    """

    def visit(load: Load) -> Expr:
        for seen, register in registers:
            if tvm_ffi.structural_equal(load, seen):
                return register[axis.var - start]
        return load

    return map_body(stage, visit)


def _has_condition(expr: Expr) -> bool:
    """Whether an expression evaluates a part of it only under a condition."""
    found: list[Expr] = []

    def visit(call: ir.Call) -> None:
        if is_choice(call):
            found.append(call)

    walk(expr, (ir.Call, visit))
    return bool(found)


def _steps_by_two(load: Load, axis: Axis) -> bool:
    if not load.indices:
        return False
    *outer, last = load.indices
    return steps(last, axis) == 2 and not any(uses(index, axis) for index in outer)


def steps(index: Expr, axis: Axis) -> int | None:
    """By how much an index goes up with an axis, None if by no fixed number.

    Args:
        index: An index expression.
        axis: A loop.
    """
    terms = list(sym.detect_linear_equation(index, [axis.var]))
    return int(terms[0]) if terms and isinstance(terms[0], tirx.IntImm) else None


def uses(index: Expr, axis: Axis) -> bool:
    """Whether an index depends on an axis.

    Args:
        index: An index expression.
        axis: A loop.
    """
    return variables_in([index], [axis.var])[0]


def _distance(first: Load, second: Load) -> int | None:
    """How many elements ``second`` lies after ``first`` on the same row, or None."""
    if not first.source.same_as(second.source):
        return None
    rows = zip(first.indices[:-1], second.indices[:-1])
    if not all(tvm_ffi.structural_equal(a, b) for a, b in rows):
        return None
    step = sym.Analyzer().simplify(second.indices[-1] - first.indices[-1])
    return int(step) if isinstance(step, tirx.IntImm) else None


# ---- reads of every element several times in a row, as in repeating and enlarging ----------------
# A short vector holds the elements that neighbouring lanes need; a shuffle spreads them.


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
