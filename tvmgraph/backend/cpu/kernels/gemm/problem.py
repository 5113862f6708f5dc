"""What the kernels for matrix products ask of a nest."""

from __future__ import annotations

from dataclasses import dataclass

from tvmgraph.backend.cpu.kernels.gemm.dot import vnni_operands_in_place
from tvmgraph.backend.cpu.kernels.gemm.plan import LANES, wants_dot_products
from tvmgraph.backend.cpu.kernels.gemm.vnni_packing import VNNI_SIZES, PackedOperands, dot_type
from tvmgraph.backend.cpu.kernels.operands import contraction_of
from tvmgraph.backend.loop_ir.columns import (
    MatrixProduct,
    runs_on,
    split_columns,
    stored_panel,
)
from tvmgraph.backend.loop_ir.contraction import Contraction, is_window
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.table import Refused
from tvmgraph.machine.processor import CpuModel


@dataclass(frozen=True)
class GemmProblem(MatrixProduct):
    """A matrix product and what is known of its operands.

    Attributes:
        is_direct: Whether neighbouring columns of the column operand are neighbours in memory.
        wants_dots: Whether vectors along K pay.
        dots_in_place: Whether an instruction sums several products of these operands as they lie.
    """

    is_direct: bool
    wants_dots: bool
    dots_in_place: bool


def product_of(nest: Nest) -> Contraction | Refused:
    """A sum of products whose result has columns, whatever comes before it.

    Args:
        nest: The loops of a function.
    """
    if nest.contraction is not None:
        return nest.contraction
    found = contraction_of(nest)
    if isinstance(found, Refused):
        return found
    if not found.columns or (is_window(found) and not found.rows):
        return Refused("a depthwise convolution is no matrix product")
    return found


def gemm_of(nest: Nest, model: CpuModel) -> GemmProblem | Refused:
    """The matrix product that a nest is, if nothing comes before it.

    Args:
        nest: The loops of a function.
        model: The processor, which decides whether few rows are dot products.
    """
    contraction = product_of(nest)
    if isinstance(contraction, Refused):
        return contraction
    if contraction.before:
        return Refused("stages come before the sums")
    columns = nest.columns or split_columns(contraction)
    product = MatrixProduct(contraction, columns)
    strides = contraction.strides(contraction.right)
    packed = vnni_operands_in_place(product, model)
    dots = product.is_transposed and wants_dot_products(
        product.shape, model, packed and packed.dtype
    )
    direct = contraction.right.is_direct and strides is not None and runs_on(columns.inner, strides)
    in_place = bool(packed and dots and not (model.tile_types and _fills_tiles(packed)))
    return GemmProblem(contraction, columns, direct, dots, in_place)


def _fills_tiles(packed: PackedOperands) -> bool:
    """Whether there are rows enough for tiles, or a matrix that is read as tiles where it lies."""
    shape = packed.shape
    whole = shape.k_size % (LANES * packed.vnni_size) == 0 and shape.columns % LANES == 0
    return whole or shape.rows >= LANES


def vnni_operands_of(nest: Nest, model: CpuModel) -> PackedOperands | Refused:
    """The operands of a matrix product of bfloat16 or int8 in VNNI layout.

    Args:
        nest: The loops of a function.
        model: The processor and its dot-product instructions.
    """
    found = nest.once(gemm_of, model)
    if isinstance(found, Refused):
        return found
    if found.dots_in_place:
        return Refused("few rows: dot products read the operands as they lie")
    dtype = dot_type(found.contraction)
    if dtype is None:
        return Refused("operands are not bfloat16 or int8")
    if len(found.contraction.reduce) != 1 or found.shape.columns < LANES:
        return Refused("several axes are summed, or columns fill no vector")
    stored = stored_panel(found, VNNI_SIZES[dtype])
    operands = PackedOperands(found.contraction, found.columns, dtype, stored=stored)
    right = found.contraction.right
    if not (stored or operands.runs_along_k(right) or operands.runs_along_mn(right)):
        return Refused("the column operand lies neither along K nor along the columns")
    return operands
