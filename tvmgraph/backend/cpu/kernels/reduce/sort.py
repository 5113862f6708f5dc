"""The positions that sort every row, equal keys in their order.

Short rows are ranked: the place of a key is the number of keys before it in sorted order, which is
counted a vector of keys at a time, without a branch. Longer ones are sorted by their digits, least
significant first, a byte at a time: count the digits, sum up the counts, move every key to its
place. A digit in which all keys agree, as in small integers, moves nothing. The time is linear in
the length, and no comparison is ever mispredicted.

Rows are divided among the workers. A row that all workers share is cut into one part for each, with
counts of its own; parts with equal digits keep their order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx import op

from tvmgraph.backend.cpu.kernels.reduce.kernel import MIN_PARALLEL_WORK
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.program import static_shape
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func
from tvmgraph.machine.processor import CpuModel

#: Rows up to this long are ranked: the work grows with the square of the length.
_MAX_RANKED = 160
_DIGIT_BITS = 8
_DIGITS = 1 << _DIGIT_BITS
#: Work per key, in elements of a simple kernel, for deciding what is worth several workers.
_KEY_WORK = 8


def emit_sort(func: Func, settings: str, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes integer keys (rows, n) and the int32 positions (rows, n).
        settings: 1 if the largest key comes first, else 0.
        model: The processor.
    """
    keys, positions = func.params
    rows, size = static_shape(keys) or (0, 0)
    descending = bool(int(str(settings)))
    threads = model.threads if rows * size * _KEY_WORK >= MIN_PARALLEL_WORK else 1
    if size <= _MAX_RANKED:
        lanes = min(model.lanes_of(dtype_bytes(str(keys.dtype))), 1 << (size - 1).bit_length())
        with emit.parallel(rows, threads > 1 and rows > 1) as row:
            _Ranks(keys, positions, row, size, descending, lanes).write()
    elif rows >= threads:
        with emit.parallel(rows, threads > 1) as row:
            _Digits(keys, positions, row, size, descending, 1).write()
    else:
        with emit.serial(rows) as row:
            _Digits(keys, positions, row, size, descending, threads).write()


@dataclass(frozen=True)
class _Ranks:
    keys: Buffer
    positions: Buffer
    row: Expr
    size: int
    descending: bool
    lanes: int

    def write(self) -> None:
        """Counts for every key the keys before it, and puts its position there."""
        padded = -(-self.size // self.lanes) * self.lanes
        dtype = str(self.keys.dtype)
        key, rank = emit.workspace([padded], dtype), emit.workspace([padded], dtype)
        with emit.serial(self.size) as at:
            value = self.keys[self.row, at]
            emit.store(key, tirx.bitwise_not(value) if self.descending else value, [at])
        with emit.serial(padded - self.size) as at:  # takes part in no other key's rank
            emit.store(key, emit.zero(dtype), [at + self.size])
        with emit.serial(padded // self.lanes) as block:
            self._count(key, rank, block * self.lanes)
        with emit.serial(self.size) as at:
            place = tirx.Cast("int64", rank[at])
            emit.store(self.positions, tirx.Cast("int32", at), [self.row, place])

    def _count(self, key: Buffer, rank: Buffer, start: Expr) -> None:
        dtype, lanes = str(self.keys.dtype), self.lanes
        count, own = emit.stack(lanes, dtype), emit.stack(lanes, dtype)
        place = emit.ramp(0, lanes)
        emit.clear(count, 0, lanes)
        emit.store(own, key[emit.ramp(start, lanes)], [place])
        one, none = (emit.broadcast(tirx.const(v, dtype), lanes) for v in (1, 0))
        with emit.serial(self.size) as other:
            value = emit.broadcast(key[other], lanes)
            first = tirx.bitwise_and(
                value == own[place], emit.broadcast(other, lanes) < emit.ramp(start, lanes)
            )
            before = tirx.Select(tirx.bitwise_or(value < own[place], first), one, none)
            emit.store(count, count[place] + before, [place])
        emit.store(rank, count[place], [emit.ramp(start, lanes)])


@dataclass(frozen=True)
class _Digits:
    keys: Buffer
    positions: Buffer
    row: Expr
    size: int
    descending: bool
    chunks: int

    def write(self) -> None:
        """Sorts by one digit after the other, from one half of a buffer into the other."""
        packed = dtype_bytes(str(self.keys.dtype)) == 4
        items = emit.workspace([2, self.size], "uint64")  # with the position, if packed
        payload = items if packed else emit.workspace([2, self.size], "int32")
        counts = emit.workspace([self.chunks, _DIGITS], "int32")
        half = emit.workspace([1], "int32")
        emit.store(half, tirx.const(0, "int32"), [0])
        with self._chunk() as chunk, self._elements(chunk) as at:
            self._start(items, payload, self._index(chunk, at), packed)
        bits = 32 if packed else 64
        with emit.serial(bits // _DIGIT_BITS) as digit:
            shift = tirx.Cast("uint64", digit * _DIGIT_BITS + (64 - bits))
            self._sort_by(items, payload, counts, half, shift)
        with self._chunk() as chunk, self._elements(chunk) as at:
            index = self._index(chunk, at)
            emit.store(
                self.positions, tirx.Cast("int32", payload[half[0], index]), [self.row, index]
            )

    def _chunk(self) -> emit.Frame:
        return emit.parallel(self.chunks, self.chunks > 1)

    @property
    def _length(self) -> int:
        return -(-self.size // self.chunks)

    def _elements(self, chunk: Expr) -> emit.Frame:
        """The elements of a chunk; the last chunk may be shorter."""
        if self.chunks == 1:
            return emit.serial(self.size)
        left = emit.i64(self.size) - chunk * self._length
        return emit.serial(tirx.max(tirx.min(left, emit.i64(self._length)), emit.i64(0)))

    def _index(self, chunk: Expr, at: Expr) -> Expr:
        return at if self.chunks == 1 else chunk * self._length + at

    def _start(self, items: Buffer, payload: Buffer, at: Expr, packed: bool) -> None:
        """Writes a key as an unsigned integer, and its position: in one word if ``packed``."""
        bits = 32 if packed else 64
        key = self.keys[self.row, at]
        key = tirx.bitwise_not(key) if self.descending else key
        sign = tirx.const(1 << (bits - 1), f"uint{bits}")
        unsigned = tirx.bitwise_xor(op.reinterpret(f"uint{bits}", key), sign)
        if packed:
            high = op.shift_left(tirx.Cast("uint64", unsigned), tirx.const(32, "uint64"))
            emit.store(items, tirx.bitwise_or(high, tirx.Cast("uint64", at)), [0, at])
        else:
            emit.store(items, unsigned, [0, at])
            emit.store(payload, tirx.Cast("int32", at), [0, at])

    def _sort_by(
        self, items: Buffer, payload: Buffer, counts: Buffer, half: Buffer, shift: Expr
    ) -> None:
        def digit(value: Expr) -> Expr:
            low = tirx.bitwise_and(op.shift_right(value, shift), tirx.const(_DIGITS - 1, "uint64"))
            return tirx.Cast("int64", low)

        one = tirx.const(1, "int32")
        with self._chunk() as chunk:
            with emit.serial(_DIGITS) as at:
                emit.store(counts, tirx.const(0, "int32"), [chunk, at])
            with self._elements(chunk) as at:
                found = digit(items[half[0], self._index(chunk, at)])
                emit.store(counts, counts[chunk, found] + one, [chunk, found])
        common = sum(
            (counts[chunk, digit(items[half[0], 0])] for chunk in range(self.chunks)),
            start=tirx.const(0, "int32"),
        )

        def move() -> None:
            self._sum_up(counts)
            with self._chunk() as chunk, self._elements(chunk) as at:
                index = self._index(chunk, at)
                self._move(items, payload, counts, half, chunk, index, digit)
            emit.store(half, one - half[0], [0])

        emit.only_if(common != self.size, move)

    def _sum_up(self, counts: Buffer) -> None:
        """Turns counts into the positions of the first keys with each digit of each chunk."""
        total, count = emit.stack(1, "int32"), emit.stack(1, "int32")
        emit.store(total, tirx.const(0, "int32"), [0])
        with emit.serial(_DIGITS) as at, emit.serial(self.chunks) as chunk:
            emit.store(count, counts[chunk, at], [0])
            emit.store(counts, total[0], [chunk, at])
            emit.store(total, total[0] + count[0], [0])

    def _move(
        self, items: Buffer, payload: Buffer, counts: Buffer, half: Buffer, chunk: Expr,
        index: Expr, digit: Callable[[Expr], Expr],
    ) -> None:  # fmt: skip
        item, place = emit.stack(1, "uint64"), emit.stack(1, "int32")
        emit.store(item, items[half[0], index], [0])
        found = digit(item[0])
        emit.store(place, counts[chunk, found], [0])
        emit.store(counts, place[0] + tirx.const(1, "int32"), [chunk, found])
        target = [1 - half[0], place[0]]
        emit.store(items, item[0], target)
        if not payload.same_as(items):
            emit.store(payload, payload[half[0], index], target)
