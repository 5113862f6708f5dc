"""The extents of a matrix product; without TVM, which frozen weights are laid out before."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GemmShape:
    """Extents of a contraction.

    Attributes:
        rows: M.
        columns: N, the columns that are contiguous in the result.
        k_size: K.
        outer: Number of independent products (batch, and columns that are not contiguous).
        itemsize: Bytes of an element of the accumulators.
        row_bytes: Bytes from one row of the row operand to the next, 0 if they vary.
    """

    rows: int
    columns: int
    k_size: int
    outer: int
    itemsize: int
    row_bytes: int = 0

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.rows * self.columns * self.k_size * self.outer
