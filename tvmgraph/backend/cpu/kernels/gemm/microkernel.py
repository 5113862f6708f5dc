"""The register tile of matrix products and convolutions, and small vector transposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tvmgraph.backend.cpu.kernels.gemm.bf16_dot import accumulate_dot
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Index

#: Multiply-adds per iteration that hide what the loop itself costs.
_LOOP_FMAS = 16
#: Bytes of the shortest vectors; within stretches of as many elements move at the least cost.
_BLOCK_BYTES = 16


@dataclass(frozen=True)
class Tile:
    """Accumulators of ``rows`` x ``vectors`` vectors: one flat buffer that becomes registers.

    Attributes:
        rows: Rows.
        vectors: Vectors of a row.
        lanes: Elements of a vector.
        dtype: Their type.
        adjacent: Whether the vectors of a row of the column operand lie side by side.
    """

    rows: int
    vectors: int
    lanes: int
    dtype: str
    adjacent: bool = False

    @property
    def size(self) -> int:
        """Number of accumulators."""
        return self.rows * self.vectors * self.lanes

    @property
    def strips(self) -> list[tuple[int, int]]:
        """First vector, and number of elements, of what is handled by one expression.

        LLVM takes a vector of any power of two of lanes apart into registers, late: until then
        four vectors side by side are as much code as one.
        """
        found, first = [], 0
        while first < self.vectors:
            rest = self.vectors - first
            count = 1 << (rest.bit_length() - 1) if self.adjacent and _is_power(self.lanes) else 1
            found.append((first, count * self.lanes))
            first += count
        return found

    @property
    def unroll(self) -> int:
        """Steps per iteration that keep a small tile busy."""
        return max(1, _LOOP_FMAS // (self.rows * self.vectors))

    def at(self, row: int, vector: int, lanes: int | None = None) -> Expr:
        """Index of an accumulator vector, or of a strip of ``lanes`` elements.

        Args:
            row: The row.
            vector: The vector in the row; the first one of a strip.
            lanes: Elements of a strip; by default those of one vector.
        """
        return emit.ramp((row * self.vectors + vector) * self.lanes, lanes or self.lanes)


def multiply_tile(
    tile: Tile,
    k_extents: Sequence[Index],
    unroll: int,
    left: Callable[[int, Sequence[Expr]], Expr],
    right: Callable[[Sequence[Expr], int, int], Expr],
    initial: Callable[[int, int, int], Expr] | None = None,
    bf16_dot: bool = False,
) -> Buffer:
    """Accumulates outer products over K.

    Args:
        tile: The shape.
        k_extents: Extents of the nested loops over k-steps, outermost first.
        unroll: Steps written out per iteration of the innermost loop; 1 if its extent is known
            only at run time.
        left: Element of a row at a step; broadcast to all lanes.
        right: Columns at a step: so many elements from a vector on, as in ``Tile.strips``.
        initial: Starting values of a row, likewise; zero if absent.
        bf16_dot: Whether elements are pairs of bfloat16, of which the products of both are added;
            the kernel imports :func:`.bf16_dot.dot_functions`.

    Returns:
        The accumulators, laid out as in ``tile``.
    """
    total = emit.stack(tile.size, tile.dtype)
    for row in range(tile.rows):
        for vector, lanes in tile.strips:
            zero = emit.broadcast(emit.zero(tile.dtype), lanes)
            start = initial(row, vector, lanes) if initial else zero
            emit.store(total, start, [tile.at(row, vector, lanes)])

    def step(at: Sequence[Expr]) -> None:
        _add_products(
            tile, total, lambda row: left(row, at), lambda *strip: right(at, *strip), bf16_dot
        )

    def loops(outer: list[Expr], extents: Sequence[Index]) -> None:
        if len(extents) > 1:
            with emit.serial(extents[0]) as k:
                loops([*outer, k], extents[1:])
            return
        if not isinstance(extents[0], int):
            with emit.serial(extents[0]) as k:
                step([*outer, k])
            return
        full, rest = divmod(extents[0], unroll)
        if full:
            with emit.serial(full) as block:
                for position in range(unroll):
                    step([*outer, block * unroll + position])
        for position in range(rest):
            step([*outer, emit.i64(full * unroll + position)])

    loops([], k_extents)
    return total


def _add_products(
    tile: Tile,
    total: Buffer,
    left: Callable[[int], Expr],
    right: Callable[[int, int], Expr],
    bf16_dot: bool,
) -> None:
    """Adds one outer product."""
    dtype = "int32" if bf16_dot else tile.dtype
    columns = [right(*strip) for strip in tile.strips]
    if tile.rows > 1 and tile.lanes * dtype_bytes(dtype) > _BLOCK_BYTES:
        # named once, not in every row; with NEON's instructions a register too many
        columns = [kept(value, lanes, dtype) for value, (_, lanes) in zip(columns, tile.strips)]
    for row in range(tile.rows):
        factor = left(row)
        have = 1
        if len(columns) > 1:
            have = tile.lanes if emit.is_converted_half(factor) else 1
            factor = kept(emit.broadcast(factor, have), have, dtype)
        for (vector, lanes), column in zip(tile.strips, columns):
            place = tile.at(row, vector, lanes)
            factors = _repeated(factor, have, lanes)
            value = (
                accumulate_dot(total[place], column, factors, lanes)
                if bf16_dot
                else total[place] + factors * column
            )
            emit.store(total, value, [place])


def multiply_panel(
    tile: Tile,
    part: int,
    k_extents: Sequence[Index],
    unroll: int,
    left: Callable[[int, Sequence[Expr]], Expr],
    right: Callable[[Sequence[Expr], int, int], Expr],
    to: Buffer,
) -> None:
    """Stores the sums of a tile that has more vectors than registers hold, part by part.

    Args:
        tile: The shape; ``to`` is laid out like it.
        part: Vectors that are multiplied at a time.
        k_extents: As for :func:`multiply_tile`, and so are ``unroll``, ``left`` and ``right``.
        unroll: See there.
        left: See there.
        right: See there.
        to: Where the sums go.
    """
    for first in range(0, tile.vectors, part):

        def columns(at: Sequence[Expr], vector: int, lanes: int, first: int = first) -> Expr:
            return right(at, first + vector, lanes)

        def place(row: int, vector: int, lanes: int, first: int = first) -> Expr:
            return tile.at(row, first + vector, lanes)

        piece = replace(tile, vectors=min(part, tile.vectors - first))
        store_tile(piece, multiply_tile(piece, k_extents, unroll, left, columns), to, place)


def store_tile(
    tile: Tile, total: Buffer, to: Buffer, place: Callable[[int, int, int], Expr]
) -> None:
    """Stores accumulators: a row's elements from a vector on at ``place(row, vector, lanes)``.

    Args:
        tile: Rows and vectors of the register tile.
        total: Its accumulators.
        to: The result.
        place: Index in ``to``, given row, first vector and lanes.
    """
    for row in range(tile.rows):
        for vector, lanes in tile.strips:
            emit.store(to, total[tile.at(row, vector, lanes)], [place(row, vector, lanes)])


def kept(value: Expr, lanes: int, dtype: str) -> Expr:
    """A value that is used several times; written out each time its address would be, too.

    Args:
        value: A vector, or a scalar where ``lanes`` is 1.
        lanes: Its lanes.
        dtype: TVM's name of the element type.
    """
    place = emit.stack(lanes, dtype)
    emit.store(place, value, [emit.ramp(0, lanes)])
    return place[emit.ramp(0, lanes)]


def _repeated(value: Expr, have: int, lanes: int) -> Expr:
    """A vector of ``have`` equal elements in so many lanes."""
    if have == 1:
        return emit.broadcast(value, lanes)
    return value if have == lanes else emit.shuffle([value] * (lanes // have), range(lanes))


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0


def transpose(square: Buffer, lanes: int, dtype: str) -> Buffer:
    """Transposes ``lanes`` vectors of ``lanes`` elements in registers.

    One shuffle per vector and round, log2(lanes) rounds, all of the cheap kind: they interleave two
    vectors within blocks of 128 bits, which transposes the elements of each block, or move blocks.

    Args:
        square: Flat buffer of ``lanes * lanes`` elements on the stack, overwritten.
        lanes: Lanes of a vector, a power of two.
        dtype: TVM's name of the element type.

    Returns:
        The buffer that holds the result: ``square`` or another one.
    """
    block = max(1, min(lanes, _BLOCK_BYTES // dtype_bytes(dtype)))
    other = emit.stack(lanes * lanes, dtype)
    size = 1
    while size < block:  # pairs of rows that are ``size`` apart
        first = [start + row for start in range(0, lanes, 2 * size) for row in range(size)]
        pairs = [(row, row + size) for row in first]
        orders = [_interleaved(lanes, block, size, half) for half in (0, 1)]
        places = [2 * n for n in range(lanes // 2)]
        _round(square, other, lanes, pairs, orders, [(at, at + 1) for at in places])
        square, other = other, square
        size *= 2
    while size < lanes:
        first = [row for row in range(lanes) if not row & size]
        pairs = [(row, row + size) for row in first]
        blocks = range(0, 2 * lanes, block)
        orders = [[at + i for at in blocks[odd::2] for i in range(block)] for odd in (0, 1)]
        _round(square, other, lanes, pairs, orders, pairs)
        square, other = other, square
        size *= 2
    return square


def _interleaved(lanes: int, block: int, size: int, half: int) -> list[int]:
    """Stretches of ``size`` lanes of two vectors in turn, from one half of each of their blocks."""
    first = [b + at for b in range(0, lanes, block) for at in range(0, block // 2, size)]
    starts = [at + half * block // 2 for at in first]
    return [at + i for start in starts for at in (start, lanes + start) for i in range(size)]


def _round(
    square: Buffer,
    shuffled: Buffer,
    lanes: int,
    pairs: Sequence[tuple[int, int]],
    orders: Sequence[Sequence[int]],
    places: Sequence[tuple[int, int]],
) -> None:
    """Shuffles pairs of vectors by two orders, and puts the results at ``places``."""
    for pair, targets in zip(pairs, places):
        vectors = [square[emit.ramp(row * lanes, lanes)] for row in pair]
        for order, target in zip(orders, targets):
            emit.store(shuffled, emit.shuffle(vectors, order), [emit.ramp(target * lanes, lanes)])


def sum_each(sums: Sequence[Buffer], lanes: int, dtype: str) -> Buffer:
    """Sums the lanes of each of several vectors, all at once.

    Two vectors are halved and joined to one per addition, so that n vectors take about n additions
    instead of n log2(lanes).

    Args:
        sums: Up to ``lanes`` vectors are handled at a time.
        lanes: Their length, a power of two.
        dtype: Their type.

    Returns:
        A buffer that starts with the sums, in order.
    """
    results = emit.stack(-(-len(sums) // lanes) * lanes, dtype)
    for start in range(0, len(sums), lanes):
        parts = [buffer[emit.ramp(0, lanes)] for buffer in sums[start : start + lanes]]
        missing = (1 << (len(parts) - 1).bit_length()) - len(parts)
        parts += [parts[-1]] * missing
        count, width, length = len(parts), lanes, lanes
        held = 1  # vectors whose partial sums share one vector, in stretches of ``width`` lanes
        while width > 1:
            joined = len(parts) > 1
            step = 2 if joined else 1
            length = lanes if joined else held * width // 2
            parts = [
                _fold(parts[at : at + step], held, width, length, dtype)
                for at in range(0, len(parts), step)
            ]
            held, width = held * step, width // 2
        emit.store(results, parts[0], [emit.ramp(start, count)])
    return results


def _fold(pair: Sequence[Expr], held: int, width: int, length: int, dtype: str) -> Expr:
    """Adds the upper to the lower half of every stretch of ``width`` lanes and packs the sums."""
    half, size = width // 2, held * width
    stretches = [v * size + s * width for v in range(len(pair)) for s in range(held)]
    halves = [
        emit.shuffle(pair, [base + offset + i for base in stretches for i in range(half)])
        for offset in (0, half)
    ]
    folded = emit.stack(length, dtype)
    emit.store(folded, halves[0] + halves[1], [emit.ramp(0, length)])
    return folded[emit.ramp(0, length)]
