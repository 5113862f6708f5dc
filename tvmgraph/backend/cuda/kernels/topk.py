"""The positions of the first few keys of every row in sorted order.

A group of threads takes a row and looks for the best key that comes after the one found last, once
for each result. Every thread keeps its keys in registers, if they are few.

Expected on a device: the bytes of the keys at the speed of a copy for rows that fit registers, and
one pass over the second-level cache for every result otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import WARP, i32
from tvmgraph.backend.cuda.kernels.thread_group import ThreadGroup
from tvmgraph.backend.loop_ir.program import static_shape
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func
from tvmgraph.backend.target import GpuModel

_LARGEST = 1024
#: Keys that a thread wants, and that it can hold.
_WANTED, _HELD = 8, 32


def emit_topk(func: Func, settings: str, _model: GpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes integer keys (rows, n) and the int32 positions (rows, k).
        settings: k, and 1 if the largest key comes first, else 0.
    """
    count, descending = (int(word) for word in str(settings).split())
    keys, positions = func.params
    rows, size = static_shape(keys) or (0, 0)
    group = WARP
    while group < _LARGEST and group * _WANTED < size:
        group *= 2
    with device.launch(rows, group) as (row, thread):
        _Row(
            keys, positions, ThreadGroup(group, thread), row, size, count, bool(descending)
        ).write()


@dataclass(frozen=True)
class _Row:
    keys: Buffer
    positions: Buffer
    group: ThreadGroup
    row: Expr
    size: int
    count: int
    descending: bool

    @property
    def _dtype(self) -> str:
        return str(self.keys.dtype)

    def write(self) -> None:
        """Finds the results one after the other."""
        steps = -(-self.size // self.group.size)
        held = None
        if steps <= _HELD:
            held = device.registers(steps, self._dtype)
            for step in range(steps):
                self._inside(step, lambda at, step=step: device.store(held, self._key(at), [step]))
        best, last = (
            [device.registers(1, dtype) for dtype in (self._dtype, "int32")] for _ in range(2)
        )
        device.store(last[0], tirx.max_value(self._dtype), [0])
        device.store(last[1], i32(-1), [0])
        with device.loop(self.count) as number:
            device.store(best[0], tirx.min_value(self._dtype), [0])
            device.store(best[1], i32(self.size), [0])
            if held is None:
                with device.loop(steps) as step:
                    at = device.let(step * i32(self.group.size) + self.group.member)
                    device.only_if(
                        at < i32(self.size), lambda: self._meet(best, last, self._key(at), at)
                    )
            else:
                for step in range(steps):
                    self._inside(
                        step, lambda at, step=step: self._meet(best, last, held[i32(step)], at)
                    )
            self.group.combine(best, _better)
            for kept, found in zip(last, best):
                device.store(kept, found[i32(0)], [0])
            device.only_if(
                tirx.EQ(self.group.member, i32(0)),
                lambda: device.store(self.positions, last[1][i32(0)], [self.row, number]),
            )

    def _inside(self, step: int, body: Callable[[Expr], None]) -> None:
        at = device.let(i32(step * self.group.size) + self.group.member)
        whole = (step + 1) * self.group.size <= self.size
        device.only_if(None if whole else at < i32(self.size), lambda: body(at))

    def _key(self, at: Expr) -> Expr:
        """A key, turned around where the smallest come first: ``~`` reverses the order."""
        key = self.keys[self.row, at]
        return key if self.descending else tirx.bitwise_not(key)

    def _meet(self, best: Sequence[Buffer], last: Sequence[Buffer], key: Expr, at: Expr) -> None:
        """Keeps a key that comes after the last one found and before the best one so far."""
        key = device.let(key)
        met = [key, at]
        after = _comes_before([v[i32(0)] for v in last], met)
        before = _comes_before(met, [v[i32(0)] for v in best])

        def keep() -> None:
            for register, value in zip(best, met):
                device.store(register, value, [0])

        device.only_if(tirx.And(after, before), keep)


def _comes_before(left: Sequence[Expr], right: Sequence[Expr]) -> Expr:
    same = tirx.And(tirx.EQ(left[0], right[0]), left[1] < right[1])
    return tirx.Or(left[0] > right[0], same)


def _better(left: Sequence[Expr], right: Sequence[Expr]) -> Sequence[Expr]:
    first = _comes_before(left, right)
    return [tirx.Select(first, a, b) for a, b in zip(left, right)]
