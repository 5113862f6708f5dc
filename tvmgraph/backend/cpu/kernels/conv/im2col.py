"""Convolutions of narrow images, and the gradient of their weights, as matrix products.

A row of a narrow image fills no vector. All windows are copied side by side, one line per (input
channel, tap) with the positions of all images in it, and a matrix product runs over the lines, so
that vectors run on from row to row and from image to image.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from tvm import ir, tirx

from tvmgraph.backend.cpu.kernels.conv.window import Window
from tvmgraph.backend.cpu.kernels.gemm.dot import emit_dot_products
from tvmgraph.backend.cpu.kernels.operands import contraction_of, emit_copy, with_left, with_right
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.columns import Columns, MatrixProduct, split_columns
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import product, substitute
from tvmgraph.backend.loop_ir.types import Expr, Var
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

#: The copy stays below this many bytes, and pays from this many rows of the product on.
_MAX_BYTES, _MIN_ROWS = 64 << 20, 8
#: Rows from which on it may pay where rows of the image are no whole vectors, cycles that copying a
#: vector takes (twice that where L2 does not hold the copy), and time of a product beside that of a
#: convolution whose vectors are full.
_MIN_FULLER_ROWS, _COPY_CYCLES, _PRODUCT_COST = 32, 4, 1.05
#: Length of the sums, in columns, from which the operands are exchanged.
_MIN_SWAPPED = 8
#: Rows of the left operand that are copied at once.
_BLOCKS = (16, 8, 4)
_AHEAD = 8  # steps of the sum
#: Columns up to which, and length of the sums from which, vectors run along the sums.
_MAX_DOT_COLUMNS, _MIN_DOT_K = 64, 256


def im2col_kernels(
    name: str,
    what: str,
    find: Callable[[Nest], Window | Refused],
    most: int,
    wants: Callable[[Window, CpuModel], Refused | None] = lambda _found, _model: None,
    fuller: bool = False,
) -> tuple[Kernel[CpuModel], Kernel[CpuModel]]:
    """The kernels for few columns, of which vectors run along the sums, and for others.

    Args:
        name: What their names begin with.
        what: What they are for.
        find: Finds the convolution, or the gradient of weights.
        most: Widest row of an image for which the copy pays, in eighths of a vector.
        wants: Why some are refused.
        fuller: Whether the copy pays for wider rows, too, that fill vectors badly.
    """

    def match(nest: Nest, model: CpuModel) -> Window | Refused:
        found = nest.once(find)
        if isinstance(found, Refused):
            return found
        narrow = 8 * found.column.extent <= most * model.lanes_of(
            dtype_bytes(found.contraction.dtype)
        )
        wide = fuller and not narrow and _is_fuller_as_product(found, model)
        if not (narrow and _may_copy(found.contraction)) and not wide:
            return Refused("rows of the image fill vectors, or their windows are too many to copy")
        return wants(found, model) or found

    def match_deep(nest: Nest, model: CpuModel) -> Window | Refused:
        found = match(nest, model)
        if isinstance(found, Refused) or _is_deep(found.contraction):
            return found
        return Refused("columns are many, or sums short or not along memory")

    deep = "with long sums and few columns: windows are copied, vectors along the sums"
    narrow = "of a narrow image: windows are copied, and a matrix product runs over them"
    return (
        Kernel(f"{name}_dot", match_deep, _emit_dot, f"{what} {deep}"),
        Kernel(name, match, _emit_narrow, f"{what} {narrow}"),
    )


def _may_copy(contraction: Contraction) -> bool:
    _, rows, _, _ = contraction.extents
    small = _copied_bytes(contraction) <= _MAX_BYTES
    return small and rows >= _MIN_ROWS and not contraction.batch


def _copied_bytes(contraction: Contraction) -> int:
    _, _, columns, k_size = contraction.extents
    return columns * k_size * dtype_bytes(contraction.dtype)


def _is_fuller_as_product(found: Window, model: CpuModel) -> bool:
    """Whether rows of the image fill vectors so badly that copying windows takes less."""
    contraction, width = found.contraction, found.column.extent
    _, rows, columns, _ = contraction.extents
    lanes = model.lanes_of(dtype_bytes(contraction.dtype))

    def padded(extent: int) -> float:
        return -(-extent // lanes) * lanes / extent

    copy = _COPY_CYCLES * (1 if _copied_bytes(contraction) <= model.l2_bytes else 2)
    copy *= padded(width) * model.fma_per_cycle / rows
    better = _PRODUCT_COST * padded(columns) + copy < padded(width)
    plain = contraction.right.is_plain  # others have instructions of their own
    return better and plain and rows >= _MIN_FULLER_ROWS and _may_copy(contraction)


def _emit_narrow(found: Window, _plan: None, writer: Writer[CpuModel]) -> None:
    """Copies the windows, and hands the matrix product back."""
    by_taps = found.by_taps
    copied = _copied(found, writer.model, by_taps)
    if by_taps:
        copied = _with_rows_together(copied, writer.model)
    columns = Columns((), copied.columns) if by_taps else split_columns(copied)
    writer.write(found.nest.product(copied, columns))


def _emit_dot(found: Window, _plan: None, writer: Writer[CpuModel]) -> None:
    """Copies the windows, and writes dot products that read the left operand as it lies."""
    swapped = _copied(found, writer.model, by_taps=False).swapped()
    emit_dot_products(MatrixProduct(swapped, Columns((), swapped.columns)), writer.model)


def _is_deep(contraction: Contraction) -> bool:
    """Whether there are few columns, so that the other operand is most of what is read."""
    _, _, columns, k_size = contraction.extents
    return columns <= _MAX_DOT_COLUMNS and k_size >= _MIN_DOT_K and _runs_along_sums(contraction)


def _runs_along_sums(contraction: Contraction) -> bool:
    strides = contraction.strides(contraction.left)
    return strides is not None and strides[contraction.reduce[-1].var] == 1


def _copied(found: Window, model: CpuModel, by_taps: bool) -> Contraction:
    """Writes the windows, and returns the contraction that reads them.

    Args:
        found: The convolution, or the gradient of its weights.
        model: The processor.
        by_taps: Whether positions of a tap are neighbours in the copy, or taps of a position.
    """
    if not found.by_taps:
        found = found.widened(model)
    contraction, padding = found.contraction, found.padding
    axes = (*contraction.columns, *contraction.reduce)
    if by_taps:
        axes = (*contraction.reduce, *contraction.columns)
    expr = contraction.right.expr
    return with_right(
        contraction, emit_copy(lambda at: substitute(expr, at), axes, model, padding=padding)
    )


def _fits(size: int, model: CpuModel) -> bool:
    return size <= model.l2_bytes


def _with_rows_together(contraction: Contraction, model: CpuModel) -> Contraction:
    """Copies a left operand whose rows are not along memory, if it is more than a cache holds.

    The weights of the gradient of a convolution's image are: what a tile of rows reads of one step
    lies pages away from the next, and no prefetcher follows. The copy reads blocks of rows.
    """
    left, (outer, *inner) = contraction.left, contraction.reduce
    strides = contraction.strides(left)
    count = product(axis.extent for axis in (*contraction.rows, *contraction.reduce))
    block = next((b for b in _BLOCKS if contraction.rows[-1].extent % b == 0), 0)
    near = strides is None or strides[contraction.rows[-1].var] >= strides[outer.var]
    if near or not block or _fits(count * dtype_bytes(contraction.dtype), model):
        return contraction
    axes = (*contraction.rows, *contraction.reduce)
    buffer = emit.workspace([axis.extent for axis in axes], contraction.dtype)
    *blocks, last = contraction.rows
    extents = [*(axis.extent for axis in blocks), last.extent // block]
    with emit.parallel(product(extents), model.threads > 1) as item:
        *positions, chunk = emit.unfuse(item, extents)
        with emit.serial(outer.extent) as step, emit.serial(block) as row:
            ahead = tirx.min(step + _AHEAD, emit.i64(outer.extent - 1))
            first = [*positions, chunk * block + row, ahead, *(emit.i64(0) for _ in inner)]
            asked = substitute(left.load, {axis.var: i for axis, i in zip(axes, first)})
            assert isinstance(asked, ir.TensorLoad)
            emit.prefetch(left.load.source, list(asked.indices))
            with contextlib.ExitStack() as loops:
                rest = [loops.enter_context(emit.serial(axis.extent)) for axis in inner]
                at = [*positions, chunk * block + row, step, *rest]
                mapping: dict[Var, Expr] = {axis.var: i for axis, i in zip(axes, at)}
                emit.store(buffer, substitute(left.expr, mapping), at)
    return with_left(contraction, buffer[tuple(axis.var for axis in axes)])


def _match(nest: Nest, _model: CpuModel) -> tuple[Nest, Contraction] | Refused:
    """Sums so long, and rows so few, that packing the column operand takes longer than storing the
    result the other way around, as in the gradient of a 1 x 1 window's weights."""
    contraction = contraction_of(nest)
    if isinstance(contraction, Refused):
        return contraction
    strides = contraction.strides(contraction.right)
    if contraction.batch or strides is None or not contraction.rows or not contraction.columns:
        return Refused("a batch of products, or an operand whose address is not linear")
    _, rows, columns, k_size = contraction.extents
    along = strides[contraction.reduce[-1].var] == 1 and _runs_along_sums(contraction)
    if not along or columns < 2 * rows or rows < _MIN_ROWS or k_size < _MIN_SWAPPED * columns:
        return Refused("sums are not along memory, or rows not few beside columns and K")
    return nest, contraction


def _emit(found: tuple[Nest, Contraction], _plan: None, writer: Writer[CpuModel]) -> None:
    swapped = found[1].swapped()
    writer.write(found[0].product(swapped, Columns((), swapped.columns)))


SWAPPED = Kernel(
    "gemm_swapped", _match, _emit,
    "matrix product with long sums and few rows: operands exchanged, vectors along the rows",
)  # fmt: skip
