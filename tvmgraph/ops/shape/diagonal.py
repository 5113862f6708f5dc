"""Diagonals: diag, diagonal, diag_embed, block_diag, trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Attrs
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits, equation, letters
from tvmgraph.core.types import Dim, TensorType
from tvmgraph.errors import ArgumentError, NoTensorError, OutOfRangeError, ShapeError
from tvmgraph.ops.common.arguments import as_int, bad, describe, named, require, wrap_axis
from tvmgraph.ops.common.rows import on_diagonal

__all__ = [
    "block_diag", "diag", "diag_embed", "diagflat", "diagonal", "diagonal_scatter", "matrix_diag",
    "matrix_diag_part", "matrix_set_diag", "place_diagonal", "trace",
]  # fmt: skip


# ---- take a diagonal out ------------------------------------------------------------------------


def _infer_diagonal(input: TensorType, *, offset: int, dim1: int, dim2: int) -> TensorType:
    if input.ndim < 2:
        raise ShapeError(f"input must have at least 2 axes, not {input.ndim}")
    a, b = (rules.normalize_axis(d, input.ndim, n) for d, n in ((dim1, "dim1"), (dim2, "dim2")))
    if a == b:
        raise ArgumentError(f"dim1 and dim2 are the same axis ({a})")
    rows, cols = input.shape[a], input.shape[b]
    if isinstance(rows, Dim) or isinstance(cols, Dim):
        raise ShapeError("the diagonal of symbolic axes has no static size")
    rest = [d for i, d in enumerate(input.shape) if i not in (a, b)]
    return input.with_shape((*rest, diagonal_size(rows, cols, offset)))


def diagonal_size(rows: int, cols: int, offset: int) -> int:
    """Returns the number of elements of a diagonal.

    Args:
        rows: Rows of the matrix.
        cols: Its columns.
        offset: Which diagonal: that many columns to the right of the main one.
    """
    return max(min(rows + min(offset, 0), cols - max(offset, 0)), 0)


def _lower_diagonal(R: Builder, x: Expr, *, offset: int, dim1: int, dim2: int) -> Expr:
    shape = _infer_diagonal(R.type(x), offset=offset, dim1=dim1, dim2=dim2).shape

    def diagonal(a: Expr) -> Expr:
        def element(*index: Expr) -> Expr:
            *rest, k = index
            lead = iter(rest)
            at = {dim1: k - min(offset, 0), dim2: k + max(offset, 0)}
            return a(*[at[i] if i in at else next(lead) for i in range(len(a.shape))])

        return R.te.compute(R.shape(shape), element, name="diagonal")

    return R.emit_te(diagonal, x)


def _vjp_diagonal(
    g: Tensor, y: Tensor, x: Tensor, *, offset: int, dim1: int, dim2: int
) -> tuple[Tensor]:
    rows, cols = x.shape[dim1], x.shape[dim2]
    return (F.place_diagonal(g, offset, dim1, dim2, rows, cols),)


def _onnx_diagonal(O: OnnxOps, x: OnnxNamed, *, offset: int, dim1: int, dim2: int) -> OnnxNamed:
    shape = x.type.static_shape
    rest = [i for i in range(len(shape)) if i not in (dim1, dim2)]
    moved = O.Transpose(x, perm=[*rest, dim1, dim2])
    flat = O.Reshape(moved, np.array([*(shape[i] for i in rest), shape[dim1] * shape[dim2]]))
    k = np.arange(diagonal_size(shape[dim1], shape[dim2], offset))
    index = (k - min(offset, 0)) * shape[dim2] + k + max(offset, 0)
    return O.Gather(flat, index, axis=len(rest))


def _diagonal_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """All axes but those of the matrices."""
    names, axes = letters(types[0].ndim), {attrs[d] % types[0].ndim for d in ("dim1", "dim2")}
    rest = [n for i, n in enumerate(names) if i not in axes]
    return equation([["." if i in axes else n for i, n in enumerate(names)]], [[*rest, "."]])


@primitive(
    infer=_infer_diagonal,
    traits=Traits(Pattern.GATHER, _diagonal_factors),
    eager=lambda x, *, offset, dim1, dim2: x.diagonal(offset, dim1, dim2),
    lower=_lower_diagonal,
    vjp=_vjp_diagonal,
    onnx=_onnx_diagonal,
    samples=[
        sample((3, 4), offset=0, dim1=0, dim2=1),
        sample((3, 4), offset=2, dim1=0, dim2=1),
        sample((17, 3), offset=-1, dim1=0, dim2=1, dtype="int32"),
        sample((2, 3, 5), offset=1, dim1=2, dim2=0),
        sample((3, 3), offset=5, dim1=0, dim2=1, grad=False),
        sample((0, 3), offset=0, dim1=0, dim2=1, grad=False),
        sample((3,), offset=0, dim1=0, dim2=1, raises=ShapeError),
        sample((3, 3), offset=0, dim1=1, dim2=1, raises=ArgumentError),
        sample((3, 3), offset=0, dim1=0, dim2=2, raises=OutOfRangeError),
    ],
)
@named("diagonal")
def _diagonal(input: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """Takes the diagonal of two axes out of a tensor.

    Args:
        input: Tensor with at least two axes.
        offset: Which diagonal.
        dim1: Non-negative row axis.
        dim2: Non-negative column axis.

    Returns:
        Tensor without the two axes and with the diagonal as its last axis.
    """
    ...


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Returns the diagonal of two axes: the elements where column minus row is ``offset``.

    Args:
        input: Tensor with at least two axes.
        offset: Which diagonal; positive lies above the main one.
        dim1: The row axis.
        dim2: The column axis.

    Returns:
        Tensor without the two axes and with the diagonal as its last axis.

    Raises:
        ShapeError: if ``input`` has fewer than two axes.
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.diagonal(Tensor([[1, 2], [3, 4]]))
        Tensor(shape=[2], dtype=Int64, value= [1, 4])
    """
    ndim = input.ndim
    return _diagonal(input, offset, wrap_axis(dim1, ndim), wrap_axis(dim2, ndim))


def trace(input: Tensor) -> Tensor:
    r"""Sum of the main diagonal: :math:`\sum_i input_{ii}`.

    Args:
        input: Matrix of shape :math:`(n, m)`.

    Returns:
        0-d tensor of ``input``'s dtype.

    Raises:
        ShapeError: if ``input`` is not a matrix.

    Example:
        >>> ops.trace(Tensor([[1.0, 2.0], [3.0, 4.0]]))
        Tensor(shape=[], dtype=Float32, value= 5)
    """
    if input.ndim != 2:
        raise bad(ShapeError, f"input must have 2 axes, not {input.ndim}", "trace",
                  describe(input=input))  # fmt: skip
    diagonal = _diagonal(input, 0, 0, 1)
    if diagonal.dtype is dtypes.bool_:
        return F.any(diagonal)
    return F.reduce_sum(diagonal, axis=(0,), keep_dims=False)


# ---- put a diagonal in --------------------------------------------------------------------------


def _infer_place(
    input: TensorType, *, offset: int, dim1: int, dim2: int, rows: int, cols: int
) -> TensorType:
    if input.ndim == 0:
        raise ShapeError("a 0-d tensor holds no diagonal")
    ndim = input.ndim + 1
    a, b = (rules.normalize_axis(d, ndim, n) for d, n in ((dim1, "dim1"), (dim2, "dim2")))
    if a == b:
        raise ArgumentError(f"dim1 and dim2 are the same axis ({a})")
    if input.shape[-1] != diagonal_size(rows, cols, offset):
        raise ShapeError(
            f"{input.shape[-1]} elements do not fit diagonal {offset} of a {rows}x{cols} matrix"
        )
    rest = iter(input.shape[:-1])
    sizes = {a: rows, b: cols}
    return input.with_shape(sizes[i] if i in sizes else next(rest) for i in range(ndim))


def _eager_place(
    x: np.ndarray, *, offset: int, dim1: int, dim2: int, rows: int, cols: int
) -> np.ndarray:
    out = np.zeros((*x.shape[:-1], rows, cols), x.dtype)
    k = np.arange(x.shape[-1])
    out[..., k - min(offset, 0), k + max(offset, 0)] = x
    first, second = (dim1, dim2)
    return np.moveaxis(out, (-2, -1), (first, second))


def _lower_place(
    R: Builder, x: Expr, *, offset: int, dim1: int, dim2: int, rows: int, cols: int
) -> Expr:
    t = R.type(x)
    out = _infer_place(t, offset=offset, dim1=dim1, dim2=dim2, rows=rows, cols=cols)
    if 0 in t.shape:
        return R.op.full(R.shape(out.shape), R.const(0, t.dtype.name), t.dtype.name)

    zero = R.tir.const(0, t.dtype.name)

    def place(a: Expr) -> Expr:
        def element(*index: Expr) -> Expr:
            lead = [v for i, v in enumerate(index) if i not in (dim1, dim2)]
            row, col = index[dim1], index[dim2]
            # the address must exist off the diagonal too, and be one for all of an inner row
            k = row + min(offset, 0) if dim1 < dim2 else col - max(offset, 0)
            k = R.te.max(R.te.min(k, a.shape[-1] - 1), 0)
            return R.tir.Select(on_diagonal(R, row, col, offset), a(*lead, k), zero)

        return R.te.compute(R.shape(out.shape), element, name="place_diagonal")

    return R.emit_te(place, x)


def _onnx_place(
    O: OnnxOps, x: OnnxNamed, *, offset: int, dim1: int, dim2: int, rows: int, cols: int
) -> OnnxNamed:
    *rest, n = x.type.static_shape
    amounts = np.array([0] * (2 * len(rest) + 1) + [1], np.int64)
    is_bool = x.type.dtype.kind == "b"
    source = O.Cast(x, to=3) if is_bool else x
    extended = O.Pad(source, amounts, O.const(0, "int8" if is_bool else x.type.dtype))
    index = np.full((rows, cols), n)  # the element that was added is a zero
    k = np.arange(n)
    index[k - min(offset, 0), k + max(offset, 0)] = k
    square = O.Gather(extended, index, axis=len(rest))
    order = list(range(len(rest)))
    for axis, source_axis in sorted(((dim1, len(rest)), (dim2, len(rest) + 1))):
        order.insert(axis, source_axis)
    y = O.Transpose(square, perm=order)
    return O.Cast(y, to=9) if is_bool else y


def _place_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """All axes but that of the diagonals."""
    ndim = types[0].ndim + 1
    axes, names = {attrs[d] % ndim for d in ("dim1", "dim2")}, iter(letters(ndim - 2))
    result = ["." if i in axes else next(names) for i in range(ndim)]
    return equation([[*letters(ndim - 2), "."]], [result])


@primitive(
    infer=_infer_place,
    traits=Traits(Pattern.GATHER, _place_factors),
    eager=_eager_place,
    lower=_lower_place,
    vjp=lambda g, y, x, *, offset, dim1, dim2, rows, cols: (F.diagonal(g, offset, dim1, dim2),),
    onnx=_onnx_place,
    samples=[
        sample((3,), offset=0, dim1=0, dim2=1, rows=3, cols=3),
        sample((3,), offset=1, dim1=0, dim2=1, rows=3, cols=5),
        sample((2, 3), offset=-2, dim1=2, dim2=0, rows=5, cols=17),
        sample((2, 3), offset=0, dim1=0, dim2=2, rows=3, cols=3, dtype="int64"),
        sample((0,), offset=3, dim1=0, dim2=1, rows=2, cols=2, grad=False),
        sample((3,), offset=0, dim1=0, dim2=1, rows=2, cols=2, raises=ShapeError),
        sample((3,), offset=0, dim1=1, dim2=1, rows=3, cols=3, raises=ArgumentError),
    ],
)
def place_diagonal(
    input: Tensor, offset: int, dim1: int, dim2: int, rows: int, cols: int
) -> Tensor:
    """Puts the last axis on a diagonal of new axes; all other elements are zero.

    Args:
        input: Tensor with at least one axis.
        offset: Which diagonal.
        dim1: Position of the row axis in the result.
        dim2: Position of the column axis in the result.
        rows: Number of rows.
        cols: Number of columns.

    Returns:
        Tensor with one more axis.
    """
    ...


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Makes every last-axis vector the diagonal of a square matrix.

    Args:
        input: Tensor of shape :math:`(..., n)`.
        offset: Which diagonal; positive lies above the main one.
        dim1: Position of the row axis in the result.
        dim2: Position of the column axis in the result.

    Returns:
        Tensor with one more axis; the matrices have :math:`n + |offset|` rows and columns.

    Raises:
        ArgumentError: if the two positions are equal.
        OutOfRangeError: if a position does not exist.

    Example:
        >>> ops.diag_embed(Tensor([1, 2]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 0],
         [0, 2]])
    """
    require(input.ndim != 0, "input must have at least 1 axis", "diag_embed", input=input)
    size = input.shape[-1] + abs(as_int(offset, "diag_embed", "offset"))
    ndim = input.ndim + 1
    return place_diagonal(input, offset, wrap_axis(dim1, ndim), wrap_axis(dim2, ndim), size, size)


def diag(input: Tensor) -> Tensor:
    """Puts the elements on the diagonal of a tensor with twice as many axes.

    Args:
        input: Tensor of shape :math:`(d_1, ..., d_k)` with at least one axis.

    Returns:
        Tensor of shape :math:`(d_1, ..., d_k, d_1, ..., d_k)`.

    Raises:
        ShapeError: if ``input`` is 0-d.

    Example:
        >>> ops.diag(Tensor([1, 2]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 0],
         [0, 2]])
    """
    require(input.ndim != 0, "input must have at least 1 axis", "diag", input=input)
    shape = input.shape
    return F.reshape(diag_embed(F.ravel(input)), (*shape, *shape))


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Puts all elements, flattened, on a diagonal of a square matrix.

    Args:
        input: Tensor of any shape.
        offset: Which diagonal; positive lies above the main one.

    Returns:
        Square matrix.

    Example:
        >>> ops.diagflat(Tensor([[1, 2]]), 1)
        Tensor(shape=[3, 3], dtype=Int64, value=
        [[0, 1, 0],
         [0, 0, 2],
         [0, 0, 0]])
    """
    return diag_embed(F.ravel(input), offset)


def block_diag(*inputs: Tensor) -> Tensor:
    """Arranges matrices along the diagonal of one matrix; all other elements are zero.

    Args:
        inputs: Tensors with at most two axes; a vector counts as one row.

    Returns:
        Matrix whose sizes are the sums of the sizes.

    Raises:
        ShapeError: if an input has more than two axes.

    Example:
        >>> ops.block_diag(Tensor([[1, 2]]), Tensor([[3], [4]]))
        Tensor(shape=[3, 3], dtype=Int64, value=
        [[1, 2, 0],
         [0, 0, 3],
         [0, 0, 4]])
    """
    require(inputs, "there is nothing to arrange", "block_diag", ArgumentError)
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor):
            raise bad(NoTensorError, f"inputs[{i}] must be a Tensor", "block_diag", repr(x)[:80])
        require(x.ndim <= 2, f"inputs[{i}] must have at most 2 axes", "block_diag", x=x)
    blocks = [F.atleast_2d(x) for x in inputs]
    width = sum(b.shape[1] for b in blocks)
    rows, left = [], 0
    for b in blocks:
        rows.append(F.pad_constant(b, ((0, 0), (left, width - left - b.shape[1])), 0))
        left += b.shape[1]
    return F.concat(rows, 0)


# ---- replace a diagonal -------------------------------------------------------------------------


def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Replaces the diagonal of two axes.

    Args:
        input: Tensor with at least two axes.
        src: The new diagonal, of the shape that :func:`diagonal` returns.
        offset: Which diagonal.
        dim1: The row axis.
        dim2: The column axis.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if ``src`` has another shape.

    Example:
        >>> ops.diagonal_scatter(ops.zeros((2, 2)), ops.ones(2))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 1.00000000e+00,  0.00000000e+00],
         [ 0.00000000e+00,  1.00000000e+00]])
    """
    a, b = wrap_axis(dim1, input.ndim), wrap_axis(dim2, input.ndim)
    expected = diagonal(input, offset, a, b)
    if src.aval.shape != expected.aval.shape:
        raise bad(ShapeError, f"src must have shape {expected.shape}", "diagonal_scatter",
                  describe(input=input, src=src, offset=offset))  # fmt: skip
    rows, cols = input.shape[a], input.shape[b]
    mask = place_diagonal(F.ones_like(src, dtype="bool"), offset, a, b, rows, cols)
    return F.where(mask, place_diagonal(src, offset, a, b, rows, cols), input)


# ---- bands of diagonals: matrix_diag, matrix_diag_part, matrix_set_diag --------------------------
# A single diagonal is a vector. Several are the rows of a matrix, the uppermost first; shorter ones
# are padded on the side that ``align`` names for those above and those below the main diagonal.

_ALIGNED = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


def _diagonals(k: Any, op: str) -> tuple[int, int]:
    """Returns the lowest and the highest diagonal."""
    items = k.tolist() if isinstance(k, Tensor) else k
    items = items if isinstance(items, (tuple, list)) else [items]
    if len(items) not in (1, 2) or items[0] > items[-1]:
        raise bad(ArgumentError, "k must be an int or two, the lower first", op, f"k={k}")
    return as_int(items[0], op, "k"), as_int(items[-1], op, "k")


class _Band(NamedTuple):
    """Where the elements of a band are.

    Attributes:
        shape: Of the packed band: diagonals, and elements of the longest.
        places: For every element of the packed band its place in the flattened matrix; -1 for
            padding.
        sources: For every element of the matrix its place in the flattened packed band; -1 outside.
    """

    shape: tuple[int, int]
    places: np.ndarray
    sources: np.ndarray


def _band(rows: int, cols: int, low: int, high: int, align: str, op: str) -> _Band:
    if align not in _ALIGNED:
        raise bad(ArgumentError, f"align must be one of {', '.join(_ALIGNED)}", op,
                  f"align={align!r}")  # fmt: skip
    above, below = align.split("_")
    sizes = {d: diagonal_size(rows, cols, d) for d in range(high, low - 1, -1)}
    longest = max(sizes.values())
    places = np.full((len(sizes), longest), -1, np.int64)
    for row, (d, size) in zip(places, sizes.items()):
        left = (d >= 0 and above == "LEFT") or (d <= 0 and below == "LEFT")
        i = np.arange(size)
        row[i + (0 if left else longest - size)] = (i + max(-d, 0)) * cols + i + max(d, 0)
    sources = np.full(rows * cols, -1, np.int64)
    flat = places.reshape(-1)
    sources[flat[flat >= 0]] = np.flatnonzero(flat >= 0)
    return _Band(places.shape, flat, sources)


def _taken(x: Tensor, indices: np.ndarray, shape: tuple[int, ...], other: object) -> Tensor:
    """Takes elements of the last axis; ``other`` where the index is -1."""
    y = F.gather(x, Tensor(np.maximum(indices, 0)), -1)
    y = F.where(Tensor(indices >= 0), y, other)
    return F.reshape(y, (*x.shape[:-1], *shape))


def _padding(value: object, x: Tensor) -> Tensor:
    return F.cast(value if isinstance(value, Tensor) else Tensor(value), x.dtype)


def matrix_diag(
    x: Tensor, k: object = 0, num_rows: int = -1, num_cols: int = -1, padding_value: object = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:  # fmt: skip
    """Puts vectors on diagonals of matrices filled with ``padding_value``.

    Args:
        x: Tensor of shape :math:`(..., n)`, for several diagonals :math:`(..., d, n)`.
        k: Which diagonal, an int; or the lowest and the highest of several.
        num_rows: Number of rows; -1 for as many as needed.
        num_cols: Number of columns; -1 for as many as needed.
        padding_value: The other elements.
        align: Which side shorter diagonals of ``x`` keep to, above and below the main diagonal.

    Returns:
        Tensor of shape :math:`(..., rows, cols)`.

    Raises:
        ArgumentError: if ``k`` or ``align`` is something else.
        ShapeError: if ``x`` has other sizes than the diagonals.

    Example:
        >>> ops.matrix_diag(Tensor([1, 2]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 0],
         [0, 2]])
    """
    low, high = _diagonals(k, "matrix_diag")
    n = x.shape[-1]
    rows, cols = n - min(high, 0), n + max(low, 0)
    given = as_int(num_rows, "matrix_diag", "num_rows"), as_int(num_cols, "matrix_diag", "num_cols")
    if given == (-1, -1):
        rows = cols = max(rows, cols)
    rows, cols = (g if g != -1 else s for g, s in zip(given, (rows, cols)))
    if low < high:
        band = _band(rows, cols, low, high, align, "matrix_diag")
        if x.ndim < 2 or x.shape[-2:] != band.shape:
            raise bad(ShapeError, f"x must end in {band.shape}, the diagonals of a {rows} x {cols} "
                      "matrix", "matrix_diag", describe(x=x, k=k))  # fmt: skip
        flat = F.reshape(x, (*x.shape[:-2], -1))
        return _taken(flat, band.sources, (rows, cols), _padding(padding_value, x))
    axes = (x.ndim - 1, x.ndim)
    y = place_diagonal(x, low, *axes, rows, cols)
    if not isinstance(padding_value, Tensor) and padding_value == 0:
        return y
    mask = place_diagonal(F.ones_like(x, dtype="bool"), low, *axes, rows, cols)
    return F.where(mask, y, _padding(padding_value, x))


def matrix_diag_part(
    x: Tensor, k: object, padding_value: object = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Returns diagonals of the last two axes.

    Args:
        x: Tensor of shape :math:`(..., n, m)`.
        k: Which diagonal, an int; or the lowest and the highest of several.
        padding_value: What shorter ones of several diagonals are padded with.
        align: Which side these keep to, above and below the main diagonal.

    Returns:
        Tensor of shape :math:`(..., size)`, for several diagonals :math:`(..., d, size)`.

    Raises:
        ArgumentError: if ``k`` or ``align`` is something else.

    Example:
        >>> ops.matrix_diag_part(Tensor([[1, 2], [3, 4]]), 0)
        Tensor(shape=[2], dtype=Int64, value= [1, 4])
    """
    low, high = _diagonals(k, "matrix_diag_part")
    if low == high:
        return diagonal(x, low, -2, -1)
    *outer, rows, cols = x.shape
    band = _band(rows, cols, low, high, align, "matrix_diag_part")
    flat = F.reshape(x, (*outer, -1))
    return _taken(flat, band.places, band.shape, _padding(padding_value, x))


def matrix_set_diag(
    x: Tensor, diagonal: Tensor, k: object = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Replaces diagonals of the last two axes.

    Args:
        x: Tensor of shape :math:`(..., n, m)`.
        diagonal: The new diagonal, of shape :math:`(..., size)`, or several, as
            :func:`matrix_diag_part` returns them.
        k: Which diagonal, an int; or the lowest and the highest of several.
        align: Which side shorter ones keep to, above and below the main diagonal.

    Returns:
        Tensor of ``x``'s type.

    Raises:
        ArgumentError: if ``k`` or ``align`` is something else.
        ShapeError: if ``diagonal`` has another shape.

    Example:
        >>> ops.matrix_set_diag(ops.zeros((2, 2)), ops.ones(2))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 1.00000000e+00,  0.00000000e+00],
         [ 0.00000000e+00,  1.00000000e+00]])
    """
    low, high = _diagonals(k, "matrix_set_diag")
    if low == high:
        return diagonal_scatter(x, diagonal, low, -2, -1)
    *outer, rows, cols = x.shape
    band = _band(rows, cols, low, high, align, "matrix_set_diag")
    if tuple(diagonal.shape) != (*outer, *band.shape):
        raise bad(ShapeError, f"diagonal must have shape {(*outer, *band.shape)}",
                  "matrix_set_diag", describe(x=x, diagonal=diagonal, k=k))  # fmt: skip
    flat = F.reshape(diagonal, (*outer, -1))
    inside = Tensor((band.sources >= 0).reshape(rows, cols))
    zero = Tensor(0, x.dtype)
    return F.where(inside, _taken(flat, band.sources, (rows, cols), zero), x)
