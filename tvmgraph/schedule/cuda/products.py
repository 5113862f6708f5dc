"""Which kernel multiplies: tensor cores where the types allow it, and who prepares the operands."""

from __future__ import annotations

from dataclasses import replace

from tvmgraph.schedule import emit
from tvmgraph.schedule.contraction import Contraction, match_contraction, prepare_first
from tvmgraph.schedule.cuda.factor import factor_of
from tvmgraph.schedule.cuda.gemm import TensorCoreGemm, extents_of
from tvmgraph.schedule.cuda.product_plan import plan_product
from tvmgraph.schedule.inline import has_identity_store, inline, inline_into
from tvmgraph.schedule.program import Program, loads_of, parse
from tvmgraph.schedule.target import GpuModel
from tvmgraph.schedule.types import Func, Load, dtype_of


def product_rule(func: Func, model: GpuModel) -> Func | None:
    """The kernel of a function that is one matrix product or convolution, else None."""
    parsed = parse(func)
    if parsed is None:
        return None
    contraction = contraction_of(prepare_first(inline(parsed)))
    if contraction is None or not contraction.rows or not contraction.columns:
        return None
    dtype = _narrow_type(contraction)
    factors = [factor_of(contraction, side, dtype) for side in (contraction.left, contraction.right)]
    left, right = factors
    if left is None or right is None or dtype not in ("float16", "bfloat16"):
        return None
    extents = extents_of(contraction)
    plan = plan_product(extents, left.itemsize, model)
    return emit.kernel(func, lambda: TensorCoreGemm(contraction, left, right, plan).write())


def contraction_of(program: Program) -> Contraction | None:
    """The contraction that a program is, with padding and conversions inside of its operands."""
    stages = list(program.stages)
    anchors = [stage for stage in stages if stage.is_reduction]
    if len(anchors) != 1:
        return None
    for before in reversed(stages[: stages.index(anchors[0])]):
        position = next(i for i, stage in enumerate(stages) if stage.is_reduction)
        readers = [stage for stage in stages if stage.reads(before.buffer)]
        if len(readers) != 1 or readers[0] is not stages[position]:
            continue
        if not has_identity_store(before) or before.lets or program.is_parameter(before.buffer):
            continue
        stages[position] = inline_into(stages[position], before)
        stages = [stage for stage in stages if stage is not before]
    found = match_contraction(replace(program, stages=tuple(stages)))
    return None if found is None or found.before else found


def _narrow_type(contraction: Contraction) -> str:
    """The type in which both factors lie in memory, else that of the sums."""
    kinds = {dtype_of(_element(side.expr)) for side in (contraction.left, contraction.right)}
    return kinds.pop() if len(kinds) == 1 else contraction.dtype


def _element(expr: object) -> Load:
    return loads_of(expr)[0]


__all__ = ["contraction_of", "product_rule"]
