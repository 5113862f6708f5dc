"""The positions of the first few keys of every row in sorted order.

The best keys so far are kept sorted. Keys are compared with the last of them a vector at a time;
the few that are better are inserted. Rows are divided among the workers.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from tvmgraph.backend.cpu.kernels.reduce.kernel import MIN_PARALLEL_WORK
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.program import static_shape
from tvmgraph.backend.loop_ir.reducer import horizontal
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func
from tvmgraph.machine.processor import CpuModel


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
