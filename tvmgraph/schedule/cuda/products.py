"""Which kernel multiplies: tensor cores where the types allow it, and who prepares the operands."""

from __future__ import annotations

from dataclasses import replace

from tvmgraph.schedule import emit
from tvmgraph.schedule.contraction import Contraction, match_contraction, prepare_first
from tvmgraph.schedule.cuda.factor import factor_of
from tvmgraph.schedule.cuda.gemm import Gemm, extents_of
from tvmgraph.schedule.cuda.product_plan import plan_product, tensor_cores, threads
from tvmgraph.schedule.inline import has_identity_store, inline, inline_into
from tvmgraph.schedule.program import Program, parse
from tvmgraph.schedule.target import GpuModel
from tvmgraph.schedule.types import Func, dtype_of

#: Types that tensor cores multiply, by the type of their sums.
_TENSOR_CORES = {"float32": ("float16", "bfloat16"), "int32": ("int8", "uint8")}


def product_rule(func: Func, model: GpuModel) -> Func | None:
    """The kernel of a function that is one matrix product or convolution, else None."""
    parsed = parse(func)
    if parsed is None:
        return None
    contraction = contraction_of(prepare_first(inline(parsed)))
    if contraction is None or not contraction.columns:
        return None
    dtype = _factor_type(contraction)
    left, right = (
        factor_of(contraction, side, dtype) for side in (contraction.left, contraction.right)
    )
    engine = threads(dtype, model)
    if dtype != contraction.dtype or _rounds_to_tf32(dtype, model):
        engine = tensor_cores(left.itemsize, model)
    plan = plan_product(extents_of(contraction), engine, model)
    return emit.kernel(func, lambda: Gemm(contraction, left, right, plan).write())


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


def _factor_type(contraction: Contraction) -> str:
    """The type that is multiplied: that of the elements in memory if tensor cores take it."""
    sides = (contraction.left, contraction.right)
    kinds = {dtype_of(side.load) for side in sides}
    dtype = kinds.pop() if len(kinds) == 1 else contraction.dtype
    return dtype if dtype in _TENSOR_CORES.get(contraction.dtype, ()) else contraction.dtype


def _rounds_to_tf32(dtype: str, model: GpuModel) -> bool:
    return dtype == "float32" and model.tf32


__all__ = ["contraction_of", "product_rule"]
