"""Tiles of matrices in shared memory, laid out so that no access meets a bank twice.

Shared memory has 32 banks of 4 bytes. A tile is kept in panels of rows of at most 128 bytes, that
is all banks once, and the 16-byte chunks of row ``r`` are exchanged by ``chunk ^ r``. The eight
rows that ``ldmatrix`` reads at one column, and the eight neighbouring chunks that a quarter of a
warp writes, then lie in different banks. It is the layout that ``wgmma`` calls 128-byte swizzle
(PTX ISA, 9.7.15.5.1), so that both kinds of tensor core instructions read the same tiles.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvmgraph.backend.cuda.kernels.device import VECTOR_BYTES, i32
from tvmgraph.backend.loop_ir.types import Expr, Index

_PANEL_BYTES = 128


@dataclass(frozen=True)
class SharedTile:
    """A tile of an operand: M (rows of A) or N (columns of B), by K.

    Attributes:
        mn_size: Rows of A, or columns of B, in the tile.
        k_size: Extent along K.
        itemsize: Bytes of an element.
        k_major: Whether neighbours along K lie side by side in memory; else those along M or N do.
    """

    mn_size: int
    k_size: int
    itemsize: int
    k_major: bool

    @property
    def rows(self) -> int:
        """Rows as they lie in memory."""
        return self.mn_size if self.k_major else self.k_size

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, over all panels."""
        return (self.k_size if self.k_major else self.mn_size) * self.itemsize

    @property
    def pitch(self) -> int:
        """Bytes from one row of a panel to the next."""
        return min(self.row_bytes, _PANEL_BYTES)

    @property
    def size(self) -> int:
        """Bytes of the tile."""
        return self.rows * self.row_bytes

    def phase(self, row: Index) -> Expr:
        """What the chunks of a row are exchanged by; rows that differ by 8 have the same.

        Args:
            row: The row, as it lies in memory.
        """
        chunks = self.pitch // VECTOR_BYTES
        rows_per_pass = _PANEL_BYTES // self.pitch  # rows that fill all banks once
        return (i32(row) >> i32(rows_per_pass.bit_length() - 1)) & i32(min(chunks, 8) - 1)

    def offset(self, row: Index, byte: Index, phase: Expr | None = None) -> Expr:
        """Where a byte of a row lies in the tile.

        Args:
            row: The row.
            byte: The byte in it.
            phase: :meth:`phase` of the row, where it is known more cheaply.
        """
        row, byte = i32(row), i32(byte)
        phase = self.phase(row) if phase is None else phase
        shift = self.pitch.bit_length() - 1
        panel = (byte >> i32(shift)) * i32(self.rows << shift) if self._has_panels else i32(0)
        inner = byte & i32(self.pitch - 1) if self._has_panels else byte
        return panel + row * i32(self.pitch) + (inner ^ (phase << i32(4)))

    @property
    def _has_panels(self) -> bool:
        return self.row_bytes > self.pitch
