"""Conditions on loop indices: where they change, and what they are in between."""

from __future__ import annotations

import itertools
from dataclasses import replace

import tvm_ffi
from tvm import ir, sym, tirx

from tvmgraph.schedule.program import Axis, Stage
from tvmgraph.schedule.types import Expr, dtype_of

_COMPARISONS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE)


def breakpoints(stage: Stage, axis: Axis) -> list[int]:
    """Indices of ``axis`` at which a comparison in the body may change, in increasing order.

    Comparisons that depend on other axes as well, or not linearly, are not considered.
    """
    found: set[int] = set()

    def visit(node: Expr) -> None:
        if not _is_integral(node.a):
            return
        terms = list(sym.detect_linear_equation(node.a - node.b, [axis.var]))
        if not terms or not all(isinstance(term, tirx.IntImm) for term in terms):
            return
        step, base = (int(term) for term in terms)
        if step in (1, -1):
            zero = -base * step
            found.update(cut for cut in (zero, zero + 1) if 0 < cut < axis.extent)

    for expr in stage.exprs:
        tvm_ffi.structural_walk(expr, (_COMPARISONS, visit))
    return _merged(stage, axis, sorted(found))


def resolve(stage: Stage, axis: Axis, start: int, end: int) -> Stage:
    """The stage for ``start <= axis < end``, with the conditions that this decides removed."""
    analyzer = sym.Analyzer()
    for other in stage.axes:
        low, extent = (start, end - start) if other is axis else (0, other.extent)
        bounds = ir.Range.from_min_extent(tirx.IntImm("int64", low), tirx.IntImm("int64", extent))
        analyzer.bind(other.var, bounds)
    return replace(
        stage,
        values=tuple(analyzer.simplify(value) for value in stage.values),
        lets=tuple((var, analyzer.simplify(value)) for var, value in stage.lets),
    )


def _merged(stage: Stage, axis: Axis, cuts: list[int]) -> list[int]:
    """Drops the cuts on both sides of which the body is the same."""
    kept: list[int] = []
    bounds = [0, *cuts, axis.extent]
    previous: Stage | None = None
    for start, end in itertools.pairwise(bounds):
        current = resolve(stage, axis, start, end)
        if previous is not None and not _same(previous, current):
            kept.append(start)
        previous = current
    return kept


def _same(left: Stage, right: Stage) -> bool:
    return all(tvm_ffi.structural_equal(a, b) for a, b in zip(left.exprs, right.exprs))


def _is_integral(expr: Expr) -> bool:
    return dtype_of(expr) in ("int32", "int64")
