"""The loops of convolutions whose register tile is output channels times positions of an image.

What is a vector, how operands are packed and which loop runs first are a plan's: vectors hold
neighbouring positions of a row, and one weight per channel is broadcast (:mod:`.direct`), or output
channels, and one pixel per position is broadcast (:mod:`.nchwc`); elements are numbers or pairs of
bfloat16. Work items are divided among the workers; one may hold several tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvmgraph.backend.cpu.kernels.gemm.bf16_dot import load_bf16_pairs
from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue, Place
from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile, multiply_tile, store_tile, sum_each
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.items import Range, Split, write_items
from tvmgraph.backend.loop_ir.point import Bound, vectors
from tvmgraph.backend.loop_ir.program import Axis, product, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Index, Load


@dataclass(frozen=True)
class ConvPlan:
    """Shape of the kernel.

    Attributes:
        lanes: Elements of a vector.
        channels: Output channels; vectors of them where these are vectors.
        rows: Rows of the image.
        columns: Positions of a row.
        parallel: Whether workers share the convolution.
        weights_outside: Whether work items run over the image first and over channels last.
        convolution: What is known of the convolution, as text.
        flat: Whether columns are the positions of a whole image, row after row.
        k_blocks: How often the positions of a work item are gone through, each time with a part of
            the input channels, whose weights L1 holds; their sums are in memory meanwhile.
    """

    lanes: int
    channels: Split
    rows: Split
    columns: Split
    parallel: bool
    weights_outside: bool = False
    convolution: str = ""
    flat: bool = False
    k_blocks: int = 1


@dataclass(frozen=True)
class _Item:
    """A work item: values of the loops around it, and what it takes of those that are divided."""

    outer: Bound
    channels: Range
    rows: Range
    columns: Range


@dataclass(frozen=True)
class ConvTiles:
    """The kernel.

    Attributes:
        contraction: The convolution; its left operand is broadcast, of its right one vectors lie in
            memory.
        plan: Shape of the kernel.
        row: The loop down the image, if there is one.
        column: The loop along its rows, if there is one.
        dot: Whether the last axis of the sums is a pair of bfloat16 in memory.
        words: Whether elements are such pairs already.
    """

    contraction: Contraction
    plan: ConvPlan
    row: Axis | None
    column: Axis | None
    dot: bool = False
    words: bool = False

    @property
    def _by_channels(self) -> bool:
        """Whether vectors hold channels."""
        return not any(axis is self.column for axis in self.contraction.columns)

    def write(self) -> None:
        """Writes the loops over work items, and over the tiles of one."""
        contraction, plan = self.contraction, self.plan
        own = (self.row, self.column, *self._channels)
        spatial = (*contraction.batch, *contraction.rows, *contraction.columns)
        outer = [axis for axis in spatial if not any(axis is each for each in own)]
        loops: list[Axis | Split] = [*outer, plan.rows, plan.columns]
        place = 0 if plan.weights_outside else len(loops) if self._by_channels else len(outer)
        loops.insert(place, plan.channels)

        def item(bound: Bound, ranges: list[Range]) -> None:
            channels = ranges.pop(-1 if place > len(outer) else 0)
            rows, columns = ranges
            if plan.k_blocks > 1:
                self._blocked(bound, channels, rows, columns)
                return
            vectors(*columns, plan.columns.tile, lambda *column: vectors(
                *channels, plan.channels.tile,
                lambda *channel: self._tile(bound, channel[:2], rows, column[:2]),
            ))  # fmt: skip

        write_items(loops, plan.parallel, item)

    @property
    def _channels(self) -> Sequence[Axis]:
        return self.contraction.columns if self._by_channels else self.contraction.rows

    def _tile(self, outer: Bound, channels: Range, rows: Range, columns: Range) -> None:
        contraction, lanes = self.contraction, self.plan.lanes
        step = 1 if self._by_channels else lanes
        size = rows[1], -(-columns[1] // step)

        def position(number: Expr | int) -> Bound:
            down, right = emit.unfuse(emit.index(number), size)
            return outer | self._position(rows[0] + down, columns[0] + right * step)

        def channel(number: Expr | int) -> Bound:
            return outer | self._channel(channels[0] + number)

        kept, moving = (position, channel) if self._by_channels else (channel, position)
        tile_rows, tile_vectors = channels[1], product(size)
        if self._by_channels:
            tile_rows, tile_vectors = tile_vectors, tile_rows
        tile = Tile(tile_rows, tile_vectors, lanes, contraction.dtype)
        total = multiply_tile(
            tile, self._k_extents, 1,
            lambda number, taps: self._factor(kept(number) | self._taps(taps)),
            lambda taps, vector, lanes: self._vector(moving(vector) | self._taps(taps), lanes),
            bf16_dot=self.dot or self.words,
        )  # fmt: skip
        left = [lanes] * tile.vectors
        if not self._by_channels:
            left = [min(lanes, columns[1] - v % size[1] * lanes) for v in range(tile.vectors)]
        places = self._places([moving(vector) for vector in range(tile.vectors)], left)
        self._epilogue.write_vectors(tile, total, kept, places, self._are_adjacent)

    def _blocked(self, outer: Bound, channels: Range, rows: Range, columns: Range) -> None:
        """Writes a work item of one tile of channels, block by block of the input channels."""
        plan, size = self.plan, (rows[1], columns[1])
        item = _Item(outer, channels, rows, columns)
        tile = Tile(product(size), channels[1], plan.lanes, self.contraction.dtype)
        sums = emit.workspace([tile.size], tile.dtype)
        Vectors(sums, plan.lanes).clear(tile.rows * tile.vectors)
        zero = emit.i64(0)
        with emit.serial(plan.k_blocks) as block:
            vectors(zero, rows[1], plan.rows.tile, lambda *down: vectors(
                zero, columns[1], plan.columns.tile,
                lambda *right: self._add_block(item, sums, block, down[:2], right[:2]),
            ))  # fmt: skip
        places = self._places([self._in_item(item, vector) for vector in range(tile.vectors)])
        self._epilogue.write_rows(
            tile, sums, tile.rows,
            lambda number: self._pixel(item, *emit.unfuse(number, size)), places,
            self._are_adjacent,
        )  # fmt: skip

    def _add_block(self, item: _Item, sums: Buffer, block: Expr, down: Range, right: Range) -> None:
        """Adds one block of the input channels to the sums of a tile of positions."""
        vectors, lanes = item.channels[1], self.plan.lanes
        tile = Tile(down[1] * right[1], vectors, lanes, self.contraction.dtype)
        blocks, *inner = self._k_extents
        blocks //= self.plan.k_blocks

        def taps(at: Sequence[Expr]) -> Bound:
            return self._taps([block * blocks + at[0], *at[1:]])

        def at(row: int) -> tuple[Expr, Expr]:
            return down[0] + row // right[1], right[0] + row % right[1]

        def place(row: int, vector: int, count: int) -> Expr:
            below, beside = at(row)
            number = (below * item.columns[1] + beside) * vectors + vector
            return emit.ramp(number * lanes, count)

        total = multiply_tile(
            tile, [blocks, *inner], 1,
            lambda row, step: self._factor(self._pixel(item, *at(row)) | taps(step)),
            lambda step, vector, lanes: self._vector(
                self._in_item(item, vector) | taps(step), lanes
            ),
            lambda row, vector, count: sums[place(row, vector, count)],
        )  # fmt: skip
        store_tile(tile, total, sums, place)

    def _pixel(self, item: _Item, down: Expr, right: Expr) -> Bound:
        """Where a position of a work item is."""
        return item.outer | self._position(item.rows[0] + down, item.columns[0] + right)

    def _in_item(self, item: _Item, vector: Expr | int) -> Bound:
        """Where a vector of channels of a work item is."""
        return item.outer | self._channel(item.channels[0] + vector)

    @property
    def _k_extents(self) -> list[int]:
        axes = self.contraction.reduce[: -1 if self.dot else None]
        return [axis.extent for axis in axes] or [1]

    @property
    def _inner(self) -> Axis:
        """The axis along which vectors are stored."""
        inner = self.contraction.columns[-1] if self._by_channels else self.column
        assert inner is not None
        return inner

    @property
    def _epilogue(self) -> Epilogue:
        return Epilogue(self.contraction, (self._inner,))

    def _places(self, bounds: Sequence[Bound], lanes: Sequence[int] = ()) -> list[Place]:
        """Where vectors are stored, whole ones if nothing else is said."""
        var, counts = self._inner.var, lanes or [self.plan.lanes] * len(bounds)
        return [Place(at, at[var], n, 0, v) for v, (at, n) in enumerate(zip(bounds, counts))]

    @property
    def _are_adjacent(self) -> bool:
        """Whether pairs of vectors are blocks of channels."""
        pairs = self._inner.extent == 2 * self.plan.lanes and self.plan.channels.tile % 2 == 0
        return self._by_channels and pairs

    def _factor(self, bound: Bound) -> Expr:
        """The element that is broadcast."""
        if self.dot:
            return load_bf16_pairs(_element(self.contraction.left.load, bound))
        return substitute(self.contraction.left.expr, bound)

    def _vector(self, bound: Bound, lanes: int) -> Expr:
        load = self.contraction.right.load
        if self.dot:
            return load_bf16_pairs(_element(load, bound), lanes)
        return vector_at(load, bound, lanes)

    def _position(self, row: Expr, column: Expr) -> Bound:
        if self.plan.flat:
            assert self.row and self.column
            row, column = emit.unfuse(column, [self.row.extent, self.column.extent])
        return {a.var: at for a, at in ((self.row, row), (self.column, column)) if a}

    def _channel(self, number: Expr) -> Bound:
        """Where a channel, or a vector of channels, is."""
        *outer, last = self._channels
        step = self.plan.lanes if self._by_channels else 1
        *values, part = emit.unfuse(number, [*(a.extent for a in outer), last.extent // step])
        return {a.var: value for a, value in zip(outer, values)} | {last.var: part * step}

    def _taps(self, values: Sequence[Expr]) -> Bound:
        at = [*values, emit.i64(0)] if self.dot else values
        return {axis.var: value for axis, value in zip(self.contraction.reduce, at)}


def _element(load: Load, bound: Bound) -> Load:
    return load.source[tuple(substitute(index, bound) for index in load.indices)]


@dataclass(frozen=True)
class Vectors:
    """Numbered vectors in a flat buffer.

    Attributes:
        buffer: The buffer; one from :func:`~tvmgraph.backend.loop_ir.emit.stack` becomes registers.
        lanes: Elements of a vector.
    """

    buffer: Buffer
    lanes: int

    def at(self, number: Index) -> Expr:
        """Where a vector is.

        Args:
            number: Number of the vector.
        """
        return emit.ramp(number * self.lanes, self.lanes)

    def get(self, number: Index) -> Expr:
        """Reads a vector.

        Args:
            number: Number of the vector.
        """
        return self.buffer[self.at(number)]

    def put(self, number: Index, value: Expr) -> None:
        """Writes a vector.

        Args:
            number: Number of the vector.
            value: A vector of the buffer's type.
        """
        emit.store(self.buffer, value, [self.at(number)])

    def clear(self, count: int) -> None:
        """Sets the first ones to zero.

        Args:
            count: How many vectors.
        """
        with emit.serial(count) as number:
            self.put(number, emit.broadcast(emit.zero(str(self.buffer.dtype)), self.lanes))

    def load(self, first: Index, count: int) -> list[Buffer]:
        """Some of them in registers, where tiles add to them.

        Args:
            first: Number of the first vector.
            count: How many vectors.

        Returns:
            A buffer in registers for each of them.
        """
        tile = [emit.stack(self.lanes, str(self.buffer.dtype)) for _ in range(count)]
        for number, register in enumerate(tile):
            emit.store(register, self.get(first + number), [self.at(0)])
        return tile

    def store(self, tile: Sequence[Buffer], first: Index) -> None:
        """Puts them back.

        Args:
            tile: What :meth:`load` returned.
            first: Number of the first vector.
        """
        for number, register in enumerate(tile):
            self.put(first + number, register[self.at(0)])

    def totals(self, first: Index, count: int) -> Buffer:
        """The sums over the lanes of some of them.

        Args:
            first: Number of the first vector.
            count: How many vectors.

        Returns:
            A buffer with one sum per vector.
        """
        return sum_each(self.load(first, count), self.lanes, str(self.buffer.dtype))


def vector_at(load: Load, bound: Bound, lanes: int) -> Expr:
    """The vector that begins where ``load`` is.

    Args:
        load: An element, in terms of loops.
        bound: Values of the loops.
        lanes: Elements of the vector.
    """
    *outer, last = (substitute(index, bound) for index in load.indices)
    return load.source[(*outer, emit.ramp(last, lanes))]
