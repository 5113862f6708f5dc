"""Matrices as the products of attention read and write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvmgraph.backend.loop_ir.types import Buffer, Expr, Index


@dataclass(frozen=True)
class Rows:
    """Rows of whole vectors: element (r, c) is ``buffer[base + r * width + c]``."""

    buffer: Buffer
    width: int
    base: Expr

    def at(self, row: Expr, column: Index) -> Expr:
        """Index of an element.

        Args:
            row: The row, counted from ``base``.
            column: The column.
        """
        return self.base + row * self.width + column

    def from_row(self, row: Expr) -> Rows:
        """The rows from ``row`` on.

        Args:
            row: The row of this matrix that is row 0 of the result.
        """
        return Rows(self.buffer, self.width, self.base + row * self.width)


@dataclass(frozen=True)
class Pair:
    """Two matrices for which the same is done: of queries and keys, of cotangents and values."""

    rows: tuple[Rows, Rows]

    def __getitem__(self, which: Index) -> Rows:
        """One of the matrices; which one may be known only at run time if they are of one size."""
        if isinstance(which, int):
            return self.rows[which]
        first, second = self.rows
        return Rows(first.buffer, first.width, first.base + which * (second.base - first.base))


def matrix_element(rows: Rows) -> Callable[[Expr, Expr], Expr]:
    """Elements of a matrix as it lies there.

    Args:
        rows: The matrix: a buffer with the address of an element by row and column.

    Returns:
        ``(row, k) -> element``.
    """
    return lambda row, k: rows.buffer[rows.at(row, k)]


def transposed_element(rows: Rows) -> Callable[[Expr, Expr], Expr]:
    """Elements of the transpose of a matrix.

    Args:
        rows: The matrix: a buffer with the address of an element by row and column.

    Returns:
        ``(row, k) -> element``, of row ``k`` and column ``row`` there.
    """
    return lambda row, k: rows.buffer[rows.at(k, row)]
