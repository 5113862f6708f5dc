"""The accumulators of reductions along one contiguous row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.point import vectors
from tvmgraph.backend.loop_ir.reducer import Reducer, horizontal
from tvmgraph.backend.loop_ir.types import Buffer, Expr

#: Vectors of accumulators of one row, which hide the latency of an addition.
_ACCUMULATORS = 4
#: Elements per accumulator after which it is added to another one and starts afresh: rounding
#: errors grow with the number of additions in a row.
_BLOCK = 128


class RowSum:
    """Vectors of accumulators, and in long rows those that take them in block by block.

    Args:
        reducer: What combines.
        extent: Length of the row.
        lanes: Elements of a vector.
    """

    def __init__(self, reducer: Reducer, extent: int, lanes: int) -> None:
        self.count = min(_ACCUMULATORS, max(1, extent // lanes))
        self.is_long = extent >= 2 * _BLOCK * self.count * lanes
        self._reducer, self.lanes = reducer, lanes
        self._total = emit.stack(self.count * lanes, reducer.dtype)
        self._fill(self._total)
        if self.is_long:
            self._whole = emit.stack(self.count * lanes, reducer.dtype)
            self._fill(self._whole)

    def add(self, term: Expr, part: int, lane: Expr) -> None:
        """Combines a term into an accumulator of vector ``part``.

        Args:
            term: What is combined, before the reducer casts it.
            part: Number of the vector of accumulators.
            lane: The lane in it.
        """
        place = emit.i64(part * self.lanes) + lane
        value = self._reducer.contribution(term)
        emit.store(self._total, self._reducer.combine(self._total[place], value), [place])

    def start_block(self) -> None:
        """Empties the accumulators of a block."""
        self._fill(self._total)

    def end_block(self) -> None:
        """Takes the accumulators of a block in."""
        for at in self._places():
            value = self._reducer.combine(self._whole[at], self._total[at])
            emit.store(self._whole, value, [at])

    def result(self) -> Buffer:
        """Combines all accumulators to one."""
        total, size = self._whole if self.is_long else self._total, self.count * self.lanes
        reducer = self._reducer
        result = emit.stack(1, reducer.dtype)
        value = horizontal(reducer.combine, total, size, self.lanes, reducer.dtype)
        emit.store(result, value, [0])
        return result

    def _fill(self, buffer: Buffer) -> None:
        for at in self._places():
            emit.store(buffer, emit.broadcast(self._reducer.identity, self.lanes), [at])

    def _places(self) -> list[Expr]:
        return [emit.ramp(part * self.lanes, self.lanes) for part in range(self.count)]


def reduce_blocks(
    sums: Sequence[RowSum], first: Expr, extent: int, vector: Callable[[Expr, int, int], None]
) -> None:
    """Writes the pass over ``extent`` elements from ``first`` on; ``vector`` adds some of them.

    Args:
        sums: The accumulators, of the same vectors and lanes.
        first: Index of the first element.
        extent: Elements of the row.
        vector: Adds some of them: their first index, how many, and the number of the accumulator.
    """
    lanes, count = sums[0].lanes, sums[0].count
    if not sums[0].is_long:
        vectors(first, extent, lanes, vector, count)
        return

    def reduce(start: Expr, length: int) -> None:
        for total in sums:
            total.start_block()
        vectors(start, length, lanes, vector, count)
        for total in sums:
            total.end_block()

    block = _block_size(extent, count * lanes)
    with emit.serial(extent // block) as part:
        reduce(first + part * block, block)
    if extent % block:
        reduce(first + (extent - extent % block), extent % block)


def _block_size(extent: int, step: int) -> int:
    """Elements of a block: of equal blocks, if the row has some, so that the pass is written once.

    Args:
        extent: Elements of the row.
        step: How many are taken at once.
    """
    fewest = -(-extent // (_BLOCK * step))
    equal = (extent // count for count in range(fewest, 2 * fewest) if not extent % (count * step))
    return next(equal, _BLOCK * step)
