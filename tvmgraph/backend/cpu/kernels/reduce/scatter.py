"""Rows of updates combined with the rows of a tensor that indices name.

The result is written once, as a copy of the tensor or as one number throughout; then the updates
are applied in their order, so that repeated indices give the same result on any number of workers.
The workers divide the columns among them: each goes through all updates and changes columns that
no other touches. Rows too short to be divided are left to one worker.
"""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

from tvmgraph.backend.cpu.kernels.elementwise.nontemporal import (
    are_nontemporal,
    nontemporal_stores,
    store_nontemporal,
)
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.items import Split, write_items
from tvmgraph.backend.loop_ir.point import vectors
from tvmgraph.backend.loop_ir.program import product, static_shape
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func
from tvmgraph.machine.processor import CpuModel

#: Below this many elements waking the workers costs more than they save.
_MIN_PARALLEL = 16 * 1024
#: Elements of one chunk of the result when it is filled.
_CHUNK = 4096
_LINE_BYTES = 64
#: How many updates ahead the rows are asked for that lie outside of the caches, and at most how
#: many lines of one.
_AHEAD, _LINES = 6, 8

_COMBINE: dict[str, Callable[[Expr, Expr], Expr]] = {
    "update": lambda _, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": tirx.max,
    "min": tirx.min,
}


def emit_scatter(func: Func, settings: str, model: CpuModel) -> None:
    r"""Writes the kernel.

    Args:
        func: Takes the tensor (\*sizes, \*row) unless ``fill`` is given, the int64 coordinates of
            rows (\*batch, axes), all within bounds, and the updates (\*batch, \*row), as many as a
            call brings; gives the new tensor.
        settings: JSON: ``mode``, a key of :data:`_COMBINE`; ``axes``, how many coordinates a row
            has; and ``fill``, the number that the tensor consists of, or null.
        model: The processor.
    """
    said = json.loads(str(settings))
    sizes = (static_shape(func.params[-1]) or ())[: int(said["axes"])]
    count: Expr = functools.reduce(operator.mul, list(func.params[-3].shape)[:-1], emit.i64(1))
    *bases, indices, updates, target = map(emit.flat, func.params)
    lanes = model.lanes_of(max(2, dtype_bytes(str(target.dtype))))
    size = product(static_shape(target) or ())
    width = size // product(sizes)
    scatter = _Scatter(indices, updates, target, sizes, width, count, lanes)
    source = bases[0] if bases else tirx.const(said["fill"], str(target.dtype))
    nontemporal = are_nontemporal([target], model)
    with nontemporal_stores([target] if nontemporal else [], lanes):
        threads = model.threads if size >= _MIN_PARALLEL else 1
        scatter.start(source, nontemporal=nontemporal, threads=threads)
    distant = size * dtype_bytes(str(target.dtype)) > model.l2_bytes
    scatter.apply(_COMBINE[said["mode"]], model.threads, distant=distant)


@dataclass(frozen=True)
class _Scatter:
    indices: Buffer
    updates: Buffer
    target: Buffer
    sizes: Sequence[int]
    width: int
    count: Expr
    lanes: int

    @property
    def _line(self) -> int:
        """Elements of a cache line."""
        return _LINE_BYTES // dtype_bytes(str(self.target.dtype))

    def start(self, source: Expr | Buffer, *, nontemporal: bool, threads: int) -> None:
        """Copies the tensor, or fills the result."""
        (size,) = static_shape(self.target) or (0,)
        count = -(-size // _CHUNK)

        def vector(at: Expr, lanes: int, _slot: int) -> None:
            whole = emit.ramp(at, lanes)
            copied = isinstance(source, tirx.Buffer)
            value = source[whole] if copied else emit.broadcast(source, lanes)
            if nontemporal and lanes == self.lanes:
                store_nontemporal(self.target, value, [at], lanes)
            else:
                emit.store(self.target, value, [whole])

        write_items(
            [Split(size, _CHUNK)], threads > 1 and count > 1,
            lambda _, ranges: vectors(*ranges[0], self.lanes, vector),
        )  # fmt: skip

    def apply(self, combine: Callable[[Expr, Expr], Expr], threads: int, *, distant: bool) -> None:
        """Applies the updates one after the other, every worker to columns of its own."""
        few = isinstance(self.count, tirx.IntImm) and int(self.count) * self.width < _MIN_PARALLEL
        chunks = 1 if few else min(threads, self.width // self._line)
        quarter = max(1, self._line // 4)
        width = -(-self.width // (max(1, chunks) * quarter)) * quarter if chunks > 1 else self.width
        chunks = -(-self.width // width)
        with emit.parallel(chunks, chunks > 1) as chunk, emit.serial(self.count) as update:
            row = self._row(update) * self.width
            start = emit.i64(0) if chunks == 1 else chunk * width
            if distant:
                self._ask_ahead(update, start, width)

            def vector(at: Expr, lanes: int, _slot: int) -> None:
                place = emit.ramp(row + at, lanes)
                new = self.updates[emit.ramp(update * self.width + at, lanes)]
                emit.store(self.target, combine(self.target[place], new), [place])

            emit.peel_last(
                (chunk, chunks, width, self.width), lambda n: vectors(start, n, self.lanes, vector)
            )

    def _row(self, update: Expr) -> Expr:
        axes, row = len(self.sizes), emit.i64(0)
        for axis, extent in enumerate(self.sizes):
            row = row * extent + self.indices[update * axes + axis]
        return row

    def _ask_ahead(self, update: Expr, start: Expr, width: int) -> None:
        later = self._row(tirx.min(update + _AHEAD, self.count - 1)) * self.width + start
        for line in range(min(_LINES, -(-width // self._line))):
            emit.prefetch(self.target, [later + line * self._line])
