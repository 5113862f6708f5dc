"""Positions of values in sorted rows, by bisection.

Blocking: a vector of values is searched together. Its lanes read addresses that lie far apart, and
processors fetch those of one vector at the same time. Every step halves what is left of the row
without a branch. Chunks of the values are divided among the workers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func, dtype_of
from tvmgraph.machine.processor import CpuModel

#: Below this many values a kernel stays on the calling thread.
_MIN_PARALLEL = 1024
#: Values of one chunk of a kernel that is divided.
_CHUNK = 512
_MAX_INT32 = 2**31 - 1


def emit_search(func: Func, settings: str, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes a sorted row or rows (..., n) and values of any shape, for several rows as many
            rows of values, and gives int64 positions.
        settings: ``right`` to come after equal elements, ``left`` to come before them.
        model: The processor.
    """
    search = Search.of(func, settings)
    lanes = model.lanes_of(max(search.itemsize, dtype_bytes(search.index)))
    count = search.count
    small = isinstance(count, tirx.IntImm) and int(count) < _MIN_PARALLEL
    emit.chunks_of_vectors(
        count, lanes, _CHUNK, model.threads > 1 and not small,
        lambda first, length: search.write(first, length, emit.stack),
    )  # fmt: skip


@dataclass(frozen=True)
class Search:
    """A search, ready to be written.

    Attributes:
        rows: The sorted rows, flat.
        values: What is looked for, flat.
        positions: Where it belongs, flat.
        size: Elements of a row.
        per_row: Values that are looked for in one row; None where there is one row only.
        count: Values in all.
        index: Integers that count the elements of all rows.
        right: Whether positions come after equal elements.
    """

    rows: Buffer
    values: Buffer
    positions: Buffer
    size: Expr
    per_row: Expr | None
    count: Expr
    index: str
    right: bool

    @classmethod
    def of(cls, func: Func, settings: str) -> Search:
        """The search that a function and its settings ask for.

        Args:
            func: What :func:`emit_search` takes.
            settings: ``right`` to come after equal elements, ``left`` to come before them.
        """
        sequence, values, positions = func.params
        total, count = emit.size_of(sequence), emit.size_of(values)
        several = len(sequence.shape) > 1
        fits = isinstance(total, tirx.IntImm) and int(total) <= _MAX_INT32
        return cls(
            emit.flat(sequence),
            emit.flat(values),
            emit.flat(positions),
            sequence.shape[-1],
            values.shape[-1] if several else None,
            count,
            "int32" if fits else "int64",
            str(settings) == "right",
        )

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return dtype_bytes(str(self.rows.dtype))

    def write(self, at: Expr, lanes: int, registers: Callable[[int, str], Buffer]) -> None:
        """Writes the search for ``lanes`` values from ``at`` on.

        Args:
            at: Number of the first value.
            lanes: How many values are looked for at a time.
            registers: Makes a buffer in registers, of a number of elements and a dtype.
        """
        first, wanted = registers(lanes, self.index), registers(lanes, str(self.values.dtype))
        base, left = registers(lanes, self.index), registers(1, self.index)
        with emit.lanes_loop(lanes) as lane:
            emit.store(wanted, self.values[at + lane], [lane])
            emit.store(base, self._start(at + lane), [lane])
            emit.store(first, base[lane], [lane])
        emit.store(left, tirx.Cast(self.index, self.size), [0])
        one = tirx.const(1, self.index)
        with T.While(left[0] > one):
            half = tirx.shift_right(left[0], one)
            with emit.lanes_loop(lanes) as lane:
                passed = self._precedes(self.rows[first[lane] + half - one], wanted[lane])
                step = tirx.Select(passed, half, tirx.const(0, self.index))
                emit.store(first, first[lane] + step, [lane])
            emit.store(left, left[0] - half, [0])
        with emit.lanes_loop(lanes) as lane:
            passed = self._precedes(self.rows[first[lane]], wanted[lane])
            position = first[lane] - base[lane] + tirx.Cast(self.index, passed)
            emit.store(self.positions, tirx.Cast("int64", position), [at + lane])

    def _start(self, at: Expr) -> Expr:
        if self.per_row is None:
            return tirx.const(0, self.index)
        return tirx.Cast(self.index, tirx.floordiv(at, self.per_row) * self.size)

    def _precedes(self, element: Expr, value: Expr) -> Expr:
        """Whether a position comes after an element; NaN comes after all numbers."""
        if self.right:
            return tirx.Not(_is_less(value, element))
        return _is_less(element, value)


def _is_less(a: Expr, b: Expr) -> Expr:
    if not dtype_of(a).startswith("float"):
        return a < b
    return tirx.any(a < b, tirx.all(tirx.isnan(b), tirx.Not(tirx.isnan(a))))
