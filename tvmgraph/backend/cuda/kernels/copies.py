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
from tvmgraph.backend.cuda.kernels.device import both, div, i32, mod, split
from tvmgraph.backend.cuda.kernels.gemm_operand import GemmOperand
from tvmgraph.backend.cuda.kernels.shared_tile import SharedTile
from tvmgraph.backend.loop_ir.program import product
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Var

_MIN_ASYNC, _MAX_ASYNC = 4, 16


@dataclass(frozen=True)
class Route:
    """How the chunks of a tile are divided among the threads.

    Attributes:
        lanes: Elements of a chunk.
        by_line: Whether the elements of a chunk are steps of one line.
        is_async: Whether copies bypass the registers.
    """

    lanes: int
    by_line: bool
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
    runs = {True: factor.run(factor.steps), False: factor.run(factor.lines)}
    by_line = runs[True] >= runs[False]
    if not factor.is_plain or factor.linear is None:
        return Route(1, by_line, False)
    lanes = min(runs[by_line], _MAX_ASYNC // factor.itemsize)
    if by_line != tile.by_line:
        lanes = 1
    lanes = min(lanes, tile.k_size if by_line else tile.lines)
    if lanes * factor.itemsize < _MIN_ASYNC:
        return Route(1, by_line, False)
    return Route(lanes, by_line, True)


def preferred_orientation(factor: GemmOperand) -> bool:
    """``by_line`` of the tile that takes the widest copies.

    Args:
        factor: An operand of a matrix product in device memory.
    """
    return factor.run(factor.steps) >= factor.run(factor.lines)


@dataclass
class Copier:
    """Copies the tiles of one factor, step by step along K.

    Attributes:
        factor: The factor.
        tile: Shape of a tile.
        memory: Shared memory, as bytes.
        threads: Threads that share the work.
        thread: Index of this one.
        batch: Values of the batch axes.
        first: First line of the block.
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
    def _lines(self) -> int:
        return product(axis.extent for axis in self.factor.lines)

    @cached_property
    def _steps(self) -> int:
        return product(axis.extent for axis in self.factor.steps)

    @cached_property
    def _along(self) -> int:
        """Chunks side by side in the direction in which memory runs."""
        extent = self.tile.k_size if self.route.by_line else self.tile.lines
        return extent // self.route.lanes

    @cached_property
    def _count(self) -> int:
        """Chunks per thread; the last ones may not exist."""
        if self._rows:
            return -(-self._across // self._rows)
        return self._across * (self._along // self.threads)

    @property
    def _across(self) -> int:
        """Rows of chunks."""
        return self.tile.lines if self.route.by_line else self.tile.k_size

    @property
    def _rows(self) -> int:
        """Whole rows of chunks that the threads copy at once; 0 where one has more than those."""
        return self.threads // self._along

    def _place(self, number: int) -> tuple[Expr, Expr]:
        """Line and step within the tile of this thread's chunk ``number``."""
        lanes, along = self.route.lanes, self._along
        if self._rows:
            inner = mod(self.thread, along)
            outer = div(self.thread, along) + i32(number * self._rows)
        else:
            sweeps = along // self.threads
            inner = self.thread + i32(number % sweeps * self.threads)
            outer = i32(number // sweeps)
        inner = inner * i32(lanes)
        return (outer, inner) if self.route.by_line else (inner, outer)

    def _exists(self, number: int) -> Expr | None:
        """Whether this thread has a chunk ``number``."""
        exists: Expr | None = None
        if self._rows and self.threads % self._along:  # the last threads have no row
            exists = self.thread < i32(self._rows * self._along)
        if self._rows and self._across % self._rows:
            line, step = self._place(number)
            row = line if self.route.by_line else step
            exists = both(exists, row < i32(self._across))
        return exists

    def prepare(self) -> None:
        """Computes what does not depend on K."""
        if not self.route.is_async:
            self._held = device.registers(self._count, self.factor.dtype)
        if self.factor.linear is None:
            return
        constant = self.factor.linear[1]
        shared_part = self.factor.part(self.factor.batch, self.batch) + i32(constant)
        for number in range(self._count):
            line = self._line_values(number)
            offset = shared_part + self.factor.part(self.factor.lines, line)
            self._offsets.append(device.let(offset))

    def _line_values(self, number: int) -> dict[Var, Expr]:
        line, _ = self._place(number)
        return split(self.first + line, self.factor.lines)

    def start(self, k: Expr, slot: Expr) -> None:
        """Asks for the tile whose sums start at step ``k``.

        Args:
            k: The first step.
            slot: Byte of the shared memory where the tile begins.
        """
        for number in range(self._count):
            device.only_if(self._exists(number), lambda number=number: self._start(number, k, slot))

    def _start(self, number: int, k: Expr, slot: Expr) -> None:
        line, step = self._place(number)
        values = self.batch | self._line_values(number) | split(k + step, self.factor.steps)
        valid = both(self.factor.guard(values), self._inside(line, k + step))
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
        steps = self.factor.part(self.factor.steps, values)
        return device.flat(self.factor.load.source, self._offsets[number] + steps)

    def _inside(self, line: Expr, step: Expr) -> Expr | None:
        """Whether the chunk is part of the matrix."""
        short = self._lines % self.tile.lines
        inside = (self.first + line < i32(self._lines)) if short else None
        partial = self._steps % self.tile.k_size
        return both(inside, (step < i32(self._steps)) if partial else None)

    def _target(self, number: int) -> Expr:
        line, step = self._place(number)
        row, column = (line, step) if self.tile.by_line else (step, line)
        return self.tile.offset(row, column * i32(self.tile.itemsize))

    def finish(self, slot: Expr) -> None:
        """Stores what came through registers; nothing is left to do for asynchronous copies."""
        if self._held is None:
            return
        for number in range(self._count):
            to = self.memory[slot + self._target(number)]
            value = self._held[i32(number)]
            device.only_if(self._exists(number), lambda to=to, value=value: device.put(to, [value]))


__all__ = ["Copier", "Route", "plan_route", "preferred_orientation"]
