"""What softmax and its like compute of ``exp(x - max x)``, done with less.

The exponent is at most 0. Softmax divides a whole row by one sum of such terms, which is at least 1
or NaN, so that its reciprocal cannot overflow: one division per row, and products that differ from
the quotients by one rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import tvm_ffi
from tvm import ir, tirx

from tvmgraph.backend.cpu.intrinsics import exp_nonpositive
from tvmgraph.backend.loop_ir.program import Stage, static_shape, substitute
from tvmgraph.backend.loop_ir.reducer import match_reducer
from tvmgraph.backend.loop_ir.rows import RowPlan, RowStage
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load
from tvmgraph.backend.walks import rewrite


def simplify_softmax(plan: RowPlan) -> RowPlan:
    """The plan with cheaper divisions and exponentials where a row's largest score was subtracted.

    Args:
        plan: The stages of a function row by row; other divisions and exponentials stay.
    """
    plan = _with_reciprocals(plan)
    return replace(plan, stages=tuple(_with_nonpositive(plan.stages, row) for row in plan.stages))


def _with_nonpositive(stages: Sequence[RowStage], row: RowStage) -> RowStage:
    found: list[ir.Call] = []

    def visit(call: ir.Call) -> Expr:
        if not _is_softmax_term(stages, row, call):
            return call
        found.append(call)
        return exp_nonpositive(call.args[0])

    values = [rewrite(value, (ir.Call, visit)) for value in row.stage.values]
    return replace(row, stage=replace(row.stage, values=tuple(values))) if found else row


def _with_reciprocals(plan: RowPlan) -> RowPlan:
    stages: list[RowStage] = []
    for row in plan.stages:
        made: list[RowStage] = []

        def visit(quotient: tirx.Div, made: list[RowStage] = made) -> Expr:
            divisor = quotient.b
            if not isinstance(divisor, Load):
                return quotient
            total = _writer(plan.stages, divisor.source)
            if total is None or not _sums_softmax(plan.stages, total):
                return quotient
            inverse = _inverse(total)
            made.append(inverse)
            return quotient.a * inverse.stage.buffer[tuple(divisor.indices)]

        stage = row.stage
        if not stage.is_reduction:
            values = [rewrite(value, (tirx.Div, visit)) for value in stage.values]
            row = replace(row, stage=replace(stage, values=tuple(values))) if made else row
        stages += [*made, row]
    return replace(plan, stages=tuple(stages))


def _writer(stages: Sequence[RowStage], buffer: Buffer) -> RowStage | None:
    return next((row for row in stages if row.stage.buffer.same_as(buffer)), None)


def _inverse(total: RowStage) -> RowStage:
    """The stage that computes 1 / sum."""
    old = total.stage
    dtype = str(old.buffer.dtype)
    shape = [tirx.IntImm("int64", extent) for extent in static_shape(old.buffer) or ()]
    buffer = tirx.decl_buffer(shape, dtype, "inverse")
    value = tirx.const(1.0, dtype) / old.buffer[tuple(old.indices)]
    stage = Stage("inverse", old.axes, (), (buffer,), old.indices, (value,), None)
    return RowStage(stage, total.outer, ())


def _sums_softmax(stages: Sequence[RowStage], total: RowStage) -> bool:
    """Whether a stage sums exp(x - m), with m the maximum of the same x."""
    exponential = _term_writer(stages, total, tirx.Add)
    if exponential is None or exponential.stage.is_reduction or exponential.stage.lets:
        return False
    return _is_softmax_term(stages, exponential, exponential.stage.value)


def _is_softmax_term(stages: Sequence[RowStage], row: RowStage, value: Expr) -> bool:
    """Whether a value of a stage is exp(x - m), with m the maximum of the same x."""
    if not (isinstance(value, ir.Call) and str(getattr(value.op, "name", "")) == "tirx.exp"):
        return False
    difference = value.args[0]
    if not isinstance(difference, tirx.Sub) or not isinstance(difference.b, Load):
        return False
    top = _writer(stages, difference.b.source)
    reducer = None if top is None else match_reducer(top.stage)
    if top is None or reducer is None or not isinstance(top.stage.value, tirx.Max):
        return False
    axes = zip((*top.outer, *top.inner), (*row.outer, *row.inner))
    term = substitute(reducer.term, {mine.var: theirs.var for mine, theirs in axes})
    return tvm_ffi.structural_equal(term, difference.a)


def _term_writer(stages: Sequence[RowStage], row: RowStage, kind: type) -> RowStage | None:
    """The stage whose results a reduction takes as they are."""
    reducer = match_reducer(row.stage)
    if reducer is None or not isinstance(row.stage.value, kind):
        return None
    return _writer(stages, reducer.term.source) if isinstance(reducer.term, Load) else None
