"""Conditions on loop indices: where they change, and what they are in between."""

from __future__ import annotations

import itertools
from dataclasses import replace

from tvm import ir, sym, tirx

from tvmgraph.backend.loop_ir.program import Axis, Stage, integers, is_choice
from tvmgraph.backend.loop_ir.types import Comparison, Expr, Load, dtype_of
from tvmgraph.backend.walks import rewrite, walk

_COMPARISONS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE)


def breakpoints(stage: Stage, axis: Axis) -> list[int]:
    """Indices of ``axis`` at which a comparison in the body may change, in increasing order.

    Comparisons that depend on other axes as well, or not linearly, are not considered.

    Args:
        stage: The loop nest.
        axis: One of its loops.

    Returns:
        Indices inside of the loop where it may be cut into loops without the condition: the borders
        of padding most often.
    """
    found: set[int] = set()

    def visit(node: Comparison) -> None:
        if not _is_integral(node.a):
            return
        terms = integers(list(sym.detect_linear_equation(node.a - node.b, [axis.var])))
        if not terms:
            return
        step, base = terms
        if step in (1, -1):
            zero = -base * step
            found.update(cut for cut in (zero, zero + 1) if 0 < cut < axis.extent)

    walk(stage.exprs, (_COMPARISONS, visit))
    return _merged(stage, axis, sorted(found))


def resolve(stage: Stage, axis: Axis, start: int, end: int) -> Stage:
    """The stage for ``start <= axis < end``, with the conditions that this decides removed.

    Args:
        stage: The loop nest.
        axis: One of its loops.
        start: The first index of the part that is written.
        end: One behind its last index.
    """
    analyzer = sym.Analyzer()
    for other in stage.axes:
        low, extent = (start, end - start) if other is axis else (0, other.extent)
        bounds = ir.Range.from_min_extent(tirx.IntImm("int64", low), tirx.IntImm("int64", extent))
        analyzer.bind(other.var, bounds)
    return replace(
        stage,
        values=tuple(_decide(value, analyzer) for value in stage.values),
        lets=tuple((var, _decide(value, analyzer)) for var, value in stage.lets),
    )


def _decide(value: Expr, analyzer: sym.Analyzer) -> Expr:
    """``value`` without the conditions on indices that ``analyzer`` can decide.

    The analyzer itself must not see floats: it takes them for reals, where ``x - x`` is 0.
    """

    def compare(node: Comparison) -> Expr:
        return analyzer.simplify(node) if _is_integral(node.a) else node

    def both(node: tirx.And) -> Expr:
        a, b = _truth(node.a), _truth(node.b)
        if a is False or b is True:
            return node.a
        return node.b if a is True or b is False else node

    def either(node: tirx.Or) -> Expr:
        a, b = _truth(node.a), _truth(node.b)
        if a is True or b is False:
            return node.a
        return node.b if a is False or b is True else node

    def negate(node: tirx.Not) -> Expr:
        a = _truth(node.a)
        return node if a is None else tirx.IntImm("bool", int(not a))

    def select(node: tirx.Select) -> Expr:
        chosen = _truth(node.condition)
        return node if chosen is None else node.true_value if chosen else node.false_value

    def choose(node: ir.Call) -> Expr:
        chosen = _truth(node.args[0]) if is_choice(node) else None
        return node if chosen is None else node.args[1 if chosen else 2]

    def load(node: Load) -> Expr:
        if all(isinstance(index, tirx.IntImm) for index in node.indices):
            return node
        return node.source[tuple(analyzer.simplify(index) for index in node.indices)]

    return rewrite(
        value, (_COMPARISONS, compare), (tirx.And, both), (tirx.Or, either), (tirx.Not, negate),
        (tirx.Select, select), (ir.Call, choose), (Load, load),
    )  # fmt: skip


def _truth(condition: Expr) -> bool | None:
    """What a condition is, if that is known."""
    return bool(int(condition)) if isinstance(condition, tirx.IntImm) else None


def _merged(stage: Stage, axis: Axis, cuts: list[int]) -> list[int]:
    """Drops the cuts without which just as many conditions are decided."""
    kept: list[int] = []
    first, bounds = 0, [0, *cuts, axis.extent]
    for start, end in itertools.pairwise(bounds):
        if start == first:
            continue
        split = max(_undecided(stage, axis, first, start), _undecided(stage, axis, start, end))
        if _undecided(stage, axis, first, end) > split:
            kept.append(start)
            first = start
    return kept


def _undecided(stage: Stage, axis: Axis, start: int, end: int) -> int:
    """The number of comparisons left within a range."""
    found: list[Expr] = []
    walk(resolve(stage, axis, start, end).exprs, (_COMPARISONS, found.append))
    return len(found)


def _is_integral(expr: Expr) -> bool:
    return dtype_of(expr) in ("int32", "int64")
