"""Bands of diagonals: matrix_diag, matrix_diag_part, matrix_set_diag.

A single diagonal is a vector. Several are the rows of a matrix, the uppermost first; shorter ones
are padded on the side that ``align`` names for those above and those below the main diagonal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.ops.common.arguments import as_int, bad, describe
from tvmgraph.ops.shape.diagonal import diagonal, diagonal_scatter, diagonal_size, place_diagonal

__all__ = ["matrix_diag", "matrix_diag_part", "matrix_set_diag"]

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
