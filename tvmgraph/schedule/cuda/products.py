"""Which kernel multiplies: tensor cores where the types allow it, and who prepares the operands."""

from __future__ import annotations

from dataclasses import replace

from tvmgraph.schedule import emit
from tvmgraph.schedule.analysis.contraction import Contraction, match_contraction, prepare_first
from tvmgraph.schedule.analysis.inline import has_identity_store, inline, inline_into
from tvmgraph.schedule.analysis.program import Program, parse
from tvmgraph.schedule.choice import choose
from tvmgraph.schedule.cuda.factor import factor_of
from tvmgraph.schedule.cuda.gemm import Gemm, extents_of
from tvmgraph.schedule.cuda.product_plan import plan_product, tensor_cores, threads
from tvmgraph.schedule.cuda.simt import emit_program, materialize
from tvmgraph.schedule.cuda.skinny import Skinny, skinny_of
from tvmgraph.schedule.target import GpuModel
from tvmgraph.schedule.types import Func, dtype_of

#: Types that tensor cores multiply, by the type of their sums.
_TENSOR_CORES = {"float32": ("float16", "bfloat16"), "int32": ("int8", "uint8")}


def product_rule(func: Func, model: GpuModel) -> Func | None:
    """The kernels of a function around one matrix product or convolution, else None.

    What follows the product is part of its kernel where it is elementwise and visits all results
    once; slices of them, for example, are kernels of their own.
    """
    parsed = parse(func)
    if parsed is None or _is_empty(parsed):
        return None
    program = with_operands_inside(prepare_first(inline(parsed)))
    found = _product_of(program)
    if found is not None:
        return emit.kernel(func, lambda: _kernel(found, model).write())
    head = replace(program, stages=program.stages[:1])
    if len(program.stages) < 2 or not program.stages[0].is_reduction or _product_of(head) is None:
        return None
    return emit.kernel(func, lambda: _write_apart(program, model))


def _write_apart(program: Program, model: GpuModel) -> None:
    """Writes a product into memory first, then what uses it."""
    first, *rest = materialize(program.stages, 0)
    found = _product_of(replace(program, stages=(first,)))
    assert found is not None
    _kernel(found, model).write()
    emit_program(replace(program, stages=tuple(rest)), model)


def _product_of(program: Program) -> Contraction | None:
    found = match_contraction(program)
    return found if found is not None and found.columns and not found.before else None


def _kernel(contraction: Contraction, model: GpuModel) -> Gemm | Skinny:
    """What writes the kernels of a product."""
    dtype = _factor_type(contraction)
    left, right = (
        factor_of(contraction, side, dtype) for side in (contraction.left, contraction.right)
    )
    skinny = skinny_of(contraction, left, right, model)
    if skinny is not None and choose("few vectors without tiles", True, (True, False)):
        return skinny
    engine = threads(dtype, model)
    if dtype != contraction.dtype or _rounds_to_tf32(dtype, model):
        engine = tensor_cores(left.itemsize, model)
    plan = plan_product(extents_of(contraction), engine, model)
    return Gemm(contraction, left, right, plan)


def _is_empty(program: Program) -> bool:
    axes = [axis for stage in program.stages for axis in (*stage.axes, *stage.reduce)]
    return any(axis.extent == 0 for axis in axes)


def with_operands_inside(program: Program) -> Program:
    """The program with padding and conversions of its only reduction's operands inside of it."""
    stages = list(program.stages)
    anchors = [stage for stage in stages if stage.is_reduction]
    if len(anchors) != 1:
        return program
    for before in reversed(stages[: stages.index(anchors[0])]):
        position = next(i for i, stage in enumerate(stages) if stage.is_reduction)
        readers = [stage for stage in stages if stage.reads(before.buffer)]
        if len(readers) != 1 or readers[0] is not stages[position]:
            continue
        if not has_identity_store(before) or before.lets or program.is_parameter(before.buffer):
            continue
        stages[position] = inline_into(stages[position], before)
        stages = [stage for stage in stages if stage is not before]
    return replace(program, stages=tuple(stages))


def _factor_type(contraction: Contraction) -> str:
    """The type that is multiplied: that of the elements in memory if tensor cores take it."""
    sides = (contraction.left, contraction.right)
    kinds = {dtype_of(side.load) for side in sides}
    dtype = kinds.pop() if len(kinds) == 1 else contraction.dtype
    return dtype if dtype in _TENSOR_CORES.get(contraction.dtype, ()) else contraction.dtype


def _rounds_to_tf32(dtype: str, model: GpuModel) -> bool:
    return dtype == "float32" and model.tf32


__all__ = ["product_rule", "with_operands_inside"]
