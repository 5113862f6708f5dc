"""Other loops over the same elements, along which addresses run on.

A stage may visit its elements in any order and write its index as it likes. Tiles that repeat read
at ``i % n``: two loops over ``i = n * a + b`` read at ``b``. What is read from its end to its start
in an outer loop is read forwards by the loop that runs backwards.
"""

from __future__ import annotations

from dataclasses import replace

from tvm import tirx

from tvmgraph.backend.loop_ir.access import access, bounded
from tvmgraph.backend.loop_ir.program import Axis, Stage, map_loads, substitute
from tvmgraph.backend.loop_ir.types import Expr, Load
from tvmgraph.backend.walks import elements, walk

#: Loops shorter than this are not worth a loop of their own inside of another.
_MIN_INNER = 16
_DIVISIONS = (tirx.FloorDiv, tirx.FloorMod)


def along_addresses(stage: Stage) -> Stage:
    """The same elements in loops that follow what is read.

    Args:
        stage: The loop nest. It is returned as it is where all its addresses are linear in the
            loops.
    """
    if not _computed(stage):  # as in most stages: what follows takes time
        return stage
    for axis in stage.axes:
        inner = _period(stage, axis)
        if inner is not None:
            stage = _split(stage, axis, inner)
    for axis in _backwards(stage):
        stage = _with_axes(stage, stage.axes, axis, axis.extent - 1 - axis.var)
    return stage


def _computed(stage: Stage) -> list[Load]:
    """The reads at indices that are neither loop variables nor numbers."""
    plain = (tirx.Var, tirx.IntImm)
    return [
        load for load in stage.loads if not all(isinstance(index, plain) for index in load.indices)
    ]


def _period(stage: Stage, axis: Axis) -> int | None:
    """The number that an axis is divided by wherever it is, if all reads divide it by the same."""
    divisors: set[int] = set()

    def visit(node: tirx.FloorDiv | tirx.FloorMod) -> None:
        if isinstance(node.b, tirx.IntImm) and node.a.same_as(axis.var):
            divisors.add(int(node.b))

    for load in _computed(stage):
        walk(load.indices, (_DIVISIONS, visit))
    if len(divisors) != 1:
        return None
    (inner,) = divisors
    return inner if inner >= _MIN_INNER and axis.extent % inner == 0 < axis.extent - inner else None


def _backwards(stage: Stage) -> list[Axis]:
    """The outer axes along which an input is contiguous, but from its end to its start."""
    found = [access(load.source, elements(load.indices), stage.axes) for load in _computed(stage)]
    strided = [item.strides for item in found if item.strides and abs(item.strides[-1]) > 1]
    return [
        axis
        for position, axis in enumerate(stage.axes[:-1])
        if any(strides[position] == -1 for strides in strided)
    ]


def _split(stage: Stage, axis: Axis, inner: int) -> Stage:
    """``axis`` as two loops, the inner one over ``inner`` iterations."""
    outer = Axis(tirx.Var(f"{axis.var.name}_o", "int64"), axis.extent // inner)
    within = Axis(tirx.Var(f"{axis.var.name}_i", "int64"), inner)
    position = stage.axes.index(axis)
    axes = (*stage.axes[:position], outer, within, *stage.axes[position + 1 :])
    return _with_axes(stage, axes, axis, outer.var * inner + within.var)


def _with_axes(stage: Stage, axes: tuple[Axis, ...], old: Axis, index: Expr) -> Stage:
    """The stage in other loops, with ``index`` for the variable of one it had."""
    analyzer = bounded(axes)

    def simplify(load: Load) -> Expr:
        return load.source[tuple(analyzer.simplify(index) for index in load.indices)]

    def renamed(expr: Expr) -> Expr:
        return map_loads(substitute(expr, {old.var: index}), simplify)

    return replace(
        stage,
        axes=axes,
        indices=tuple(analyzer.simplify(renamed(i)) for i in stage.indices),
        values=tuple(map(renamed, stage.values)),
        lets=tuple((var, renamed(value)) for var, value in stage.lets),
    )
