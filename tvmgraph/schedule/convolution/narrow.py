"""Convolutions of narrow images, and the gradient of their weights, as matrix products.

A row of a narrow image fills no vector. All windows are copied side by side, one line per (input
channel, tap) with the positions of all images in it, and a matrix product runs over the lines, so
that vectors run on from row to row and from image to image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tvm import tirx

from tvmgraph.processor import CpuModel
from tvmgraph.schedule import emit
from tvmgraph.schedule.analysis.access import access, dtype_bytes
from tvmgraph.schedule.analysis.columns import Columns, gemm_shape, split_columns
from tvmgraph.schedule.analysis.contraction import Contraction, Operand
from tvmgraph.schedule.analysis.inline import inline_into
from tvmgraph.schedule.analysis.program import Axis, Stage, product, substitute
from tvmgraph.schedule.elementwise.injective import emit_injective
from tvmgraph.schedule.products.dot import emit_dot_products
from tvmgraph.schedule.products.gemm import emit_gemm
from tvmgraph.schedule.types import Expr, Var

#: The copy stays below this many bytes, and pays from this many rows of the product on.
_MAX_BYTES, _MIN_ROWS = 32 << 20, 8
#: Length of the sums, in columns, from which the operands are exchanged.
_MIN_TURNED = 8
#: Columns up to which, and length of the sums from which, vectors run along the sums.
_MAX_DOT_COLUMNS, _MIN_DOT_DEPTH = 64, 256


def wants_columns(contraction: Contraction, width: int, most: int, model: CpuModel) -> bool:
    """Whether a convolution whose image is ``width`` wide should be a matrix product.

    Args:
        contraction: The convolution, or the gradient of its weights.
        width: Positions of a row of the image.
        most: Widest row for which the copy pays, in eighths of a vector.
        model: The processor.
    """
    size = dtype_bytes(contraction.dtype)
    copied = product(axis.extent for axis in (*contraction.columns, *contraction.reduce))
    rows = product(axis.extent for axis in contraction.rows)
    small = not contraction.batch and copied * size <= _MAX_BYTES and rows >= _MIN_ROWS
    return small and 8 * width <= most * model.lanes_of(size)


def is_wide_and_deep(contraction: Contraction) -> bool:
    """Whether sums are so long, and rows so few, that packing the column operand takes longer than
    storing the result the other way around, as in the gradient of a 1 x 1 window's weights."""
    strides = contraction.strides(contraction.right)
    if contraction.batch or strides is None or not contraction.rows:
        return False
    rows, columns, depth = (
        product(axis.extent for axis in axes)
        for axes in (contraction.rows, contraction.columns, contraction.reduce)
    )
    along = strides[contraction.reduce[-1].var] == 1 and _runs_along_sums(contraction)
    return along and columns >= 2 * rows >= 2 * _MIN_ROWS and depth >= _MIN_TURNED * columns


def emit_turned(contraction: Contraction, model: CpuModel) -> None:
    """Writes a matrix product whose vectors run along the rows of the result."""
    turned = _turned(contraction)
    emit_gemm(turned, model, Columns((), turned.columns))


def emit_conv_columns(contraction: Contraction, padding: Stage | None, model: CpuModel) -> None:
    """Writes a convolution: lines of positions, vectors along positions."""
    if _is_deep(contraction):
        _emit_sums(contraction, padding, model)
        return
    copied = _with_copy(contraction, contraction.reduce, contraction.columns, padding, model)
    emit_gemm(copied, model, Columns((), contraction.columns))


def emit_weight_columns(contraction: Contraction, padding: Stage | None, model: CpuModel) -> None:
    """Writes the gradient of the weights: the same lines, sums along positions."""
    if _is_deep(contraction):
        _emit_sums(contraction, padding, model)
        return
    copied = _with_copy(contraction, contraction.columns, contraction.reduce, padding, model)
    emit_gemm(copied, model, split_columns(copied))


def _is_deep(contraction: Contraction) -> bool:
    """Whether there are few columns, so that the other operand is most of what is read."""
    columns, depth = (
        product(axis.extent for axis in axes) for axes in (contraction.columns, contraction.reduce)
    )
    return columns <= _MAX_DOT_COLUMNS and depth >= _MIN_DOT_DEPTH and _runs_along_sums(contraction)


def _runs_along_sums(contraction: Contraction) -> bool:
    strides = contraction.strides(contraction.left)
    return strides is not None and strides[contraction.reduce[-1].var] == 1


def _emit_sums(contraction: Contraction, padding: Stage | None, model: CpuModel) -> None:
    """Writes dot products: vectors run along the sums, the left operand is read as it lies."""
    copied = _with_copy(contraction, contraction.columns, contraction.reduce, padding, model)
    turned = _turned(copied)
    columns = Columns((), turned.columns)
    emit_dot_products(turned, columns, gemm_shape(turned, columns), model)


def _with_copy(
    contraction: Contraction,
    lines: Sequence[Axis],
    positions: Sequence[Axis],
    padding: Stage | None,
    model: CpuModel,
) -> Contraction:
    """Writes the copy, and returns the contraction reading it."""
    axes = (*lines, *positions)
    fresh = tuple(Axis(tirx.Var("at", "int64"), axis.extent) for axis in axes)
    mapping: dict[Var, Expr] = {old.var: new.var for old, new in zip(axes, fresh)}
    buffer = emit.workspace([axis.extent for axis in axes], contraction.dtype)
    value = substitute(contraction.right.expr, mapping)
    indices = tuple(axis.var for axis in fresh)
    stage = Stage("windows", fresh, (), (buffer,), indices, (value,), None)
    emit_injective(inline_into(stage, padding) if padding else stage, model)
    load = buffer[tuple(axis.var for axis in axes)]
    operand = Operand(load, load, contraction.right.access)
    return replace(contraction, right=_again(contraction, operand))


def _turned(contraction: Contraction) -> Contraction:
    """The contraction with its operands exchanged."""
    turned = replace(contraction, rows=contraction.columns, columns=contraction.rows)
    left, right = (_again(turned, operand) for operand in (contraction.right, contraction.left))
    return replace(turned, left=left, right=right)


def _again(contraction: Contraction, operand: Operand) -> Operand:
    """The operand with its access in terms of the axes of ``contraction``."""
    load = operand.load
    return replace(operand, access=access(load.source, list(load.indices), contraction.axes))
