"""What running sums, products, extremes and log-sum-exps combine, and what they start from."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from tvm import tirx

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.reducer import accumulator_dtype
from tvmgraph.backend.loop_ir.types import Expr

Combine = Callable[[Expr, Expr], Expr]


def running(name: str, dtype: str) -> tuple[Combine, Expr]:
    """The function of a scan and its identity, in the type that elements are combined in.

    Args:
        name: ``sum``, ``prod``, ``max``, ``min`` or ``logsumexp``. The extremes and the last one
            are NaN from the first NaN on.
        dtype: TVM's name of the element type; ``logsumexp`` is of floats.

    Returns:
        What combines two elements, or two vectors of them, and a scalar that changes none.
    """
    wide = accumulator_dtype(dtype)
    if name == "sum":
        return (lambda a, b: a + b), tirx.const(0, wide)
    if name == "prod":
        return (lambda a, b: a * b), tirx.const(1, wide)
    if name == "logsumexp":
        return _bound(_log_sum), tirx.const(-math.inf, wide)
    larger = name == "max"
    start = tirx.min_value(wide) if larger else tirx.max_value(wide)
    if not wide.startswith("float"):
        return (tirx.max if larger else tirx.min), start
    return _bound(_extreme(operator.gt if larger else operator.lt)), tirx.const(
        -math.inf if larger else math.inf, wide
    )


def _bound(combine: Combine) -> Combine:
    """The function of two names: it uses its operands several times."""

    def named(a: Expr, b: Expr) -> Expr:
        left, right = (tirx.Var(name, v.ty) for name, v in (("a", a), ("b", b)))
        return tirx.Let(left, a, tirx.Let(right, b, combine(left, right)))

    return named


def _extreme(is_better: Combine) -> Combine:
    """The better of two, or the first NaN."""

    def better(a: Expr, b: Expr) -> Expr:
        best = tirx.Select(is_better(a, b), a, b)
        return tirx.Select(tirx.isnan(a), a, tirx.Select(tirx.isnan(b), b, best))

    return better


def _log_sum(a: Expr, b: Expr) -> Expr:
    """log(e^a + e^b), NaN if either is; the difference of equal infinities would be, too."""
    gap = tirx.Var("gap", a.ty)
    value = tirx.Select(a > b, a, b) + tirx.log(emit.number_like(1, a) + tirx.exp(-tirx.abs(gap)))
    return tirx.Let(
        gap, a - b, tirx.Select(tirx.EQ(a, b), a + emit.number_like(math.log(2), a), value)
    )
