"""Which kernel multiplies: tensor cores where the types allow it, and who prepares the operands."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tvmgraph.backend.cuda.kernels.device import device_memory
from tvmgraph.backend.cuda.kernels.gemm import Gemm, extents_of
from tvmgraph.backend.cuda.kernels.gemm_operand import GemmOperand, gemm_operand_of
from tvmgraph.backend.cuda.kernels.gemm_plan import GemmPlan, plan_gemm, tensor_cores, threads
from tvmgraph.backend.cuda.kernels.gemv import Gemv, gemv_of
from tvmgraph.backend.loop_ir.choice import choose
from tvmgraph.backend.loop_ir.contraction import Contraction, match_contraction
from tvmgraph.backend.loop_ir.fuse import materialize
from tvmgraph.backend.loop_ir.inline import has_identity_store, inline_into
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import Program
from tvmgraph.backend.loop_ir.types import dtype_of
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.backend.target import GpuModel

#: Types that tensor cores multiply, by the type of their sums.
_TENSOR_CORES = {"float32": ("float16", "bfloat16"), "int32": ("int8", "uint8")}


@dataclass(frozen=True)
class _Product:
    """A sum of products, and how its operands are multiplied."""

    contraction: Contraction
    left: GemmOperand
    right: GemmOperand
    dtype: str


def _program(nest: Nest) -> Program | None:
    """The stages of a nest with what prepares the operands of a product inside of it."""
    if not nest.contracts or nest.ordered is None:
        return None
    axes = (axis for stage in nest.ordered.stages for axis in (*stage.axes, *stage.reduce))
    if any(axis.extent == 0 for axis in axes):
        return None
    return with_operands_inside(nest.ordered)


def _find(nest: Nest) -> _Product | Refused:
    program = nest.once(_program)
    if program is None:
        return Refused("its loops are not known, empty, or a part of a nest")
    found = match_contraction(program)
    if found is None or not found.columns or found.before:
        return Refused("no single sum of products with an elementwise end")
    dtype = _factor_type(found)
    left, right = (gemm_operand_of(found, side, dtype) for side in (found.left, found.right))
    return _Product(found, left, right, dtype)


def _match_gemv(nest: Nest, model: GpuModel) -> Gemv | Refused:
    found = nest.once(_find)
    if isinstance(found, Refused):
        return found
    gemv = gemv_of(found.contraction, found.left, found.right, model)
    if gemv is None:
        return Refused("neither operand is a few vectors")
    if not choose("few vectors without tiles", True, (True, False)):
        return Refused("a search found tiles to be faster")
    return gemv


def _plan(found: _Product, model: GpuModel) -> GemmPlan:
    engine = threads(found.dtype, model)
    if found.dtype != found.contraction.dtype or _rounds_to_tf32(found.dtype, model):
        engine = tensor_cores(found.left.itemsize, model)
    return plan_gemm(extents_of(found.contraction), engine, model)


def _emit(found: _Product, plan: GemmPlan, _writer: Writer[GpuModel]) -> None:
    Gemm(found.contraction, found.left, found.right, plan).write()


def _match_unfused(nest: Nest, _model: GpuModel) -> tuple[Nest, Program] | Refused:
    program = nest.once(_program)
    if program is None or len(program.stages) < 2 or not program.stages[0].is_reduction:
        return Refused("no stages after a reduction")
    if isinstance(nest.subnest(program.stages[:1], contracts=True).once(_find), Refused):
        return Refused("the reduction sums no products")
    return nest, program


def _emit_unfused(found: tuple[Nest, Program], _plan: None, writer: Writer[GpuModel]) -> None:
    nest, program = found
    first, *rest = materialize(program.stages, 0, device_memory)
    writer.write(nest.subnest([first], contracts=True))
    writer.write(nest.subnest(rest))


GEMV = Kernel(
    "gemv", _match_gemv, lambda gemv, _plan, _writer: gemv.write(),
    "a few vectors times a matrix, which is read once", knobs=("few vectors without tiles",),
)  # fmt: skip
GEMM = Kernel(
    "gemm", lambda nest, _model: nest.once(_find), _emit,
    "matrix product or convolution in tiles of shared memory, on tensor cores where types allow",
    _plan, ("product tile",),
)  # fmt: skip
UNFUSED_EPILOGUE = Kernel(
    "unfused_epilogue", _match_unfused, _emit_unfused,
    "writes a product into memory and then what uses it, where that is no elementwise end",
)  # fmt: skip


def with_operands_inside(program: Program) -> Program:
    """The program with padding and conversions of its only reduction's operands inside of it.

    Args:
        program: A function with one reduction; others are returned as they are.
    """
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
