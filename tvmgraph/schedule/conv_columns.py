"""Convolutions of narrow images, and the gradient of their weights, as matrix products.

A row of a narrow image fills no vector. All windows are copied side by side, one line per (input
channel, tap) with the positions of all images in it, and a matrix product runs over the lines, so
that vectors run on from row to row and from image to image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tvm import tirx

from tvmgraph.schedule import emit
from tvmgraph.schedule.access import access, dtype_bytes
from tvmgraph.schedule.columns import Columns, gemm_shape, split_columns
from tvmgraph.schedule.contraction import Contraction, Operand
from tvmgraph.schedule.dot import emit_dot_products
from tvmgraph.schedule.gemm import emit_gemm
from tvmgraph.schedule.injective import emit_injective
from tvmgraph.schedule.inline import inline_into
from tvmgraph.schedule.program import Axis, Stage, product, substitute
from tvmgraph.schedule.target import CpuModel
from tvmgraph.schedule.types import Expr, Var

#: The copy stays below this many bytes, and pays from this many rows of the product on.
_MAX_BYTES, _MIN_ROWS = 32 << 20, 8
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
    turned = replace(copied, rows=copied.columns, columns=copied.rows)
    left, right = (_again(turned, operand) for operand in (copied.right, copied.left))
    turned = replace(turned, left=left, right=right)
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


def _again(contraction: Contraction, operand: Operand) -> Operand:
    """The operand with its access in terms of the axes of ``contraction``."""
    load = operand.load
    return replace(operand, access=access(load.source, list(load.indices), contraction.axes))
