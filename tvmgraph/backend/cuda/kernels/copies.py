"""Copying tiles of a factor from device memory to shared memory.

Where neighbouring elements of a tile are neighbours in memory, copies are asynchronous and 16 bytes
wide, or 8 or 4 where alignment allows no more. Everything else (odd widths of 2-byte types,
conversions, gathers) goes through registers: elements are asked for before the products of the
current tile and stored after them, so that the latency of memory is hidden all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from tvm import tirx

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import VECTOR_BYTES, both, div, i32, mod, split
from tvmgraph.backend.cuda.kernels.gemm_operand import GemmOperand
from tvmgraph.backend.loop_ir.program import product
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Index, Var

_MIN_ASYNC, _MAX_ASYNC = 4, 16


@dataclass(frozen=True)
class Route:
    """How the chunks of a tile are divided among the threads.

    Attributes:
        lanes: Elements of a chunk.
        k_major: Whether the elements of a chunk are steps row_chunks K.
        is_async: Whether copies bypass the registers.
    """

    lanes: int
    k_major: bool
    is_async: bool


def plan_route(factor: GemmOperand, tile: SharedTile) -> Route:
    """The widest copies from where ``factor`` lies to where ``tile`` wants it.

    Args:
        factor: An operand of a matrix product in device memory.
        tile: Where its elements go in shared memory.

    Returns:
        Elements per copy, the direction of neighbours, and whether the copies are asynchronous (4
        to 16 bytes).
    """
    runs = {True: factor.run(factor.k_axes), False: factor.run(factor.mn_axes)}
    k_major = runs[True] >= runs[False]
    if not factor.is_plain or factor.linear is None:
        return Route(1, k_major, False)
    lanes = min(runs[k_major], _MAX_ASYNC // factor.itemsize)
    if k_major != tile.k_major:
        lanes = 1
    lanes = min(lanes, tile.k_size if k_major else tile.mn_size)
    if lanes * factor.itemsize < _MIN_ASYNC:
        return Route(1, k_major, False)
    return Route(lanes, k_major, True)


def preferred_orientation(factor: GemmOperand) -> bool:
    """``k_major`` of the tile that takes the widest copies.

    Args:
        factor: An operand of a matrix product in device memory.
    """
    return factor.run(factor.k_axes) >= factor.run(factor.mn_axes)


@dataclass
class Copier:
    """Copies the tiles of one factor, step by step row_chunks K.

    Attributes:
        factor: The factor.
        tile: Shape of a tile.
        memory: Shared memory, as bytes.
        threads: Threads that share the work.
        thread: Index of this one.
        batch: Values of the batch axes.
        first: First row of A, or column of B, of the block.
    """

    factor: GemmOperand
    tile: SharedTile
    memory: Buffer
    threads: int
    thread: Expr
    batch: dict[Var, Expr]
    first: Expr
    _offsets: list[Expr] = field(default_factory=list)
    _held: Buffer | None = None

    @cached_property
    def route(self) -> Route:
        """How the work is divided."""
        return plan_route(self.factor, self.tile)

    @cached_property
    def _mn_extent(self) -> int:
        return product(axis.extent for axis in self.factor.mn_axes)

    @cached_property
    def _k_extent(self) -> int:
        return product(axis.extent for axis in self.factor.k_axes)

    @cached_property
    def _row_chunks(self) -> int:
        """Chunks side by side in the direction in which memory runs."""
        extent = self.tile.k_size if self.route.k_major else self.tile.mn_size
        return extent // self.route.lanes

    @cached_property
    def _count(self) -> int:
        """Chunks per thread; the last ones may not exist."""
        if self._rows:
            return -(-self._chunk_rows // self._rows)
        return self._chunk_rows * (self._row_chunks // self.threads)

    @property
    def _chunk_rows(self) -> int:
        """Rows of chunks."""
        return self.tile.mn_size if self.route.k_major else self.tile.k_size

    @property
    def _rows(self) -> int:
        """Whole rows of chunks that the threads copy at once; 0 where one has more than those."""
        return self.threads // self._row_chunks

    def _place(self, number: int) -> tuple[Expr, Expr]:
        """Row of A, or column of B, and step of K in the tile of this thread's chunk."""
        lanes, row_chunks = self.route.lanes, self._row_chunks
        if self._rows:
            inner = mod(self.thread, row_chunks)
            outer = div(self.thread, row_chunks) + i32(number * self._rows)
        else:
            sweeps = row_chunks // self.threads
            inner = self.thread + i32(number % sweeps * self.threads)
            outer = i32(number // sweeps)
        inner = inner * i32(lanes)
        return (outer, inner) if self.route.k_major else (inner, outer)

    def _exists(self, number: int) -> Expr | None:
        """Whether this thread has a chunk ``number``."""
        exists: Expr | None = None
        if self._rows and self.threads % self._row_chunks:  # the last threads have no row
            exists = self.thread < i32(self._rows * self._row_chunks)
        if self._rows and self._chunk_rows % self._rows:
            mn, step = self._place(number)
            row = mn if self.route.k_major else step
            exists = both(exists, row < i32(self._chunk_rows))
        return exists

    def prepare(self) -> None:
        """Computes what does not depend on K."""
        if not self.route.is_async:
            self._held = device.registers(self._count, self.factor.dtype)
        if self.factor.linear is None:
            return
        constant = self.factor.linear[1]
        shared_offset = self.factor.offset(self.factor.batch, self.batch) + i32(constant)
        for number in range(self._count):
            mn = self._mn_values(number)
            offset = shared_offset + self.factor.offset(self.factor.mn_axes, mn)
            self._offsets.append(device.let(offset))

    def _mn_values(self, number: int) -> dict[Var, Expr]:
        mn, _ = self._place(number)
        return split(self.first + mn, self.factor.mn_axes)

    def start(self, k: Expr, slot: Expr) -> None:
        """Asks for the tile whose sums start at step ``k``.

        Args:
            k: The first step.
            slot: Byte of the shared memory where the tile begins.
        """
        for number in range(self._count):
            device.only_if(self._exists(number), lambda number=number: self._start(number, k, slot))

    def _start(self, number: int, k: Expr, slot: Expr) -> None:
        mn, step = self._place(number)
        values = self.batch | self._mn_values(number) | split(k + step, self.factor.k_axes)
        valid = both(self.factor.guard(values), self._inside(mn, k + step))
        if self.route.is_async:
            to = self.memory[slot + self._target(number)]
            size = self.route.lanes * self.factor.itemsize
            device.copy_async(to, self._element(number, values), size, valid)
            return
        if self.factor.linear is None:
            value = self.factor.element(values)
        else:
            value = self.factor.converted(self._element(number, values))
        if valid is not None:
            zero = tirx.const(0, self.factor.dtype)
            value = tirx.if_then_else(valid, value, zero)
        assert self._held is not None
        device.store(self._held, value, [number])

    def _element(self, number: int, values: dict[Var, Expr]) -> Expr:
        steps = self.factor.offset(self.factor.k_axes, values)
        return device.flat(self.factor.load.source, self._offsets[number] + steps)

    def _inside(self, mn: Expr, step: Expr) -> Expr | None:
        """Whether the chunk is part of the matrix."""
        short = self._mn_extent % self.tile.mn_size
        inside = (self.first + mn < i32(self._mn_extent)) if short else None
        partial = self._k_extent % self.tile.k_size
        return both(inside, (step < i32(self._k_extent)) if partial else None)

    def _target(self, number: int) -> Expr:
        mn, step = self._place(number)
        row, column = (mn, step) if self.tile.k_major else (step, mn)
        return self.tile.offset(row, column * i32(self.tile.itemsize))

    def finish(self, slot: Expr) -> None:
        """Stores what came through registers; nothing is left to do for asynchronous copies.

        Args:
            slot: The stage of the pipeline's buffer.
        """
        if self._held is None:
            return
        for number in range(self._count):
            to = self.memory[slot + self._target(number)]
            value = self._held[i32(number)]
            device.only_if(self._exists(number), lambda to=to, value=value: device.put(to, [value]))


# ---- tiles of matrices in shared memory, laid out so that no access meets a bank twice -----------
# Shared memory has 32 banks of 4 bytes. A tile is kept in panels of rows of at most 128 bytes, that
# is all banks once, and the 16-byte chunks of row ``r`` are exchanged by ``chunk ^ r``. The eight
# rows that ``ldmatrix`` reads at one column, and the eight neighbouring chunks that a quarter of a
# warp writes, then lie in different banks. It is the layout that ``wgmma`` calls 128-byte swizzle
# (PTX ISA, 9.7.15.5.1), so that both kinds of tensor core instructions read the same tiles.

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
