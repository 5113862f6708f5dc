"""Grouped convolutions: an output channel reads the input channels of its group only.

Legalization writes the group of channel ``f`` as ``f // size``. Splitting the loop over channels
into one over groups and one within a group makes all indices linear again, and groups a batch axis.
"""

from __future__ import annotations

from dataclasses import replace

import tvm_ffi
from tvm import ir, sym, tirx

from tvmgraph.backend.loop_ir.program import Axis, Stage, loads_of, substitute
from tvmgraph.backend.loop_ir.types import Expr, Var


def split_groups(anchor: Stage, epilogue: Stage) -> tuple[Stage, Stage]:
    """Splits the spatial axis that ``anchor`` divides in an index, in both stages; if there is one.

    Args:
        anchor: A reduction.
        epilogue: A stage over the same spatial axes.
    """
    for load in loads_of(*anchor.values):
        for index in load.indices:
            found = _quotient(index, anchor.axes)
            if found is not None:
                return _split(anchor, *found), _split(epilogue, *found)
    return anchor, epilogue


def _quotient(index: Expr, axes: tuple[Axis, ...]) -> tuple[Axis, Axis, Axis] | None:
    """The axis divided within an index, and the axes over groups and within a group."""
    found: list[tuple[Axis, int]] = []

    def visit(node: tirx.FloorDiv) -> None:
        dividend: Expr = node.a
        divisor: Expr = node.b
        axis = next((axis for axis in axes if axis.var.same_as(dividend)), None)
        if axis is not None and isinstance(divisor, tirx.IntImm):
            found.append((axis, int(divisor)))

    tvm_ffi.structural_walk(index, (tirx.FloorDiv, visit))
    if not found or found[0][0].extent % found[0][1]:
        return None
    axis, size = found[0]
    group, member = (tirx.Var(name, "int64") for name in ("group", "member"))
    return axis, Axis(group, axis.extent // size), Axis(member, size)


def _split(stage: Stage, axis: Axis, group: Axis, member: Axis) -> Stage:
    position = stage.axes.index(axis)
    parts = (group, member) if group.extent > 1 else (member,)
    axes = (*stage.axes[:position], *parts, *stage.axes[position + 1 :])
    analyzer = sym.Analyzer()
    for each in (*axes, *stage.reduce):
        low, extent = (tirx.IntImm("int64", value) for value in (0, each.extent))
        analyzer.bind(each.var, ir.Range.from_min_extent(low, extent))
    whole = group.var * member.extent + member.var if len(parts) > 1 else member.var
    mapping: dict[Var, Expr] = {axis.var: whole}

    def rewrite(expr: Expr) -> Expr:
        return analyzer.simplify(substitute(expr, mapping))

    return replace(
        stage,
        axes=axes,
        indices=tuple(rewrite(index) for index in stage.indices),
        values=tuple(rewrite(value) for value in stage.values),
        lets=tuple((var, rewrite(value)) for var, value in stage.lets),
    )
