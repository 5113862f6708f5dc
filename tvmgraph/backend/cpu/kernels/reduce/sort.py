"""The positions that sort every row, equal keys in their order.

Short rows are ranked: the place of a key is the number of keys before it in sorted order, which is
counted a vector of keys at a time, without a branch. Longer ones are sorted by their digits, least
significant first, a byte at a time: count the digits, sum up the counts, move every key to its
place. A digit in which all keys agree, as in small integers, moves nothing. The time is linear in
the length, and no comparison is ever mispredicted.

Rows are divided among the workers. A row that all workers share is cut into one part for each, with
counts of its own; parts with equal digits keep their order.

The positions of the first few keys of every row in sorted order.

The best keys so far are kept sorted. Keys are compared with the last of them a vector at a time;
the few that are better are inserted. Rows are divided among the workers.
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
from tvmgraph.backend.loop_ir.reducer import horizontal
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


# ---- the largest --------------------------------------------------------------------------------


def emit_topk(func: Func, settings: str, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes integer keys (rows, n) and the int32 positions (rows, k).
        settings: k, and 1 if the largest key comes first, else 0.
        model: The processor.
    """
    count, descending = (int(word) for word in str(settings).split())
    keys, positions = func.params
    lanes = model.lanes_of(dtype_bytes(str(keys.dtype)))
    rows, size = static_shape(keys) or (0, 0)
    parallel = rows * size >= MIN_PARALLEL_WORK and model.threads > 1 and rows > 1
    with emit.parallel(rows, parallel) as row:
        _Row(keys, positions, row, size, count, bool(descending), lanes).write()


@dataclass(frozen=True)
class _Row:
    keys: Buffer
    positions: Buffer
    row: Expr
    size: int
    count: int
    descending: bool
    lanes: int

    @property
    def _dtype(self) -> str:
        return str(self.keys.dtype)

    def write(self) -> None:
        """Takes the first keys as they come, then whatever is better than the last one kept."""
        best, place = emit.stack(self.count, self._dtype), emit.stack(self.count, "int32")
        with emit.serial(self.count) as position:
            self._insert(best, place, position, position)
        left = self.size - self.count
        full, rest = divmod(left, self.lanes)
        vector = emit.stack(self.lanes, self._dtype)
        with emit.serial(full) as block:
            start = block * self.lanes + self.count
            with emit.lanes_loop(self.lanes) as lane:
                emit.store(vector, self._key(start + lane), [lane])
            top = horizontal(tirx.max, vector, self.lanes, self.lanes, self._dtype)
            emit.only_if(
                top > best[self.count - 1], lambda: self._scan(best, place, start, self.lanes)
            )
        if rest:
            self._scan(best, place, emit.i64(self.size - rest), rest)
        with emit.serial(self.count) as position:
            emit.store(self.positions, place[position], [self.row, position])

    def _key(self, position: Expr) -> Expr:
        """A key, turned around where the smallest come first: ``~`` reverses the order."""
        key = self.keys[self.row, position]
        return key if self.descending else tirx.bitwise_not(key)

    def _scan(self, best: Buffer, place: Buffer, start: Expr, count: int) -> None:
        last = emit.i64(self.count - 1)
        with emit.serial(count) as offset:
            position = start + offset
            emit.only_if(
                self._key(position) > best[last], lambda: self._insert(best, place, position, last)
            )

    def _insert(self, best: Buffer, place: Buffer, position: Expr, slot: Expr) -> None:
        """Puts a key into a slot and moves it up past all smaller ones, behind equal ones."""
        emit.store(best, self._key(position), [slot])
        emit.store(place, tirx.Cast("int32", position), [slot])
        held, at = emit.stack(1, self._dtype), emit.stack(1, "int32")

        def swap(upper: Expr) -> None:
            emit.store(held, best[upper], [0])
            emit.store(at, place[upper], [0])
            emit.store(best, best[upper + 1], [upper])
            emit.store(place, place[upper + 1], [upper])
            emit.store(best, held[0], [upper + 1])
            emit.store(place, at[0], [upper + 1])

        with emit.serial(slot) as step:
            upper = slot - 1 - step
            emit.only_if(best[upper] < best[upper + 1], lambda: swap(upper))
