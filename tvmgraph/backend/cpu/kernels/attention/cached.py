"""Attention of one token over a cache of keys and values.

A head at a time: the scores of a block of tokens, their exponentials as vectors, and the values
added up, with the largest score so far as in :mod:`.forward`. The tokens that count are known only
when the kernel runs; what the cache has room for beyond them is never read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from tvmgraph.backend.cpu.intrinsics import exp_nonpositive
from tvmgraph.backend.cpu.kernels.gemm.plan import MIN_PARALLEL_FLOPS
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.reducer import horizontal
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func
from tvmgraph.machine.processor import CpuModel

#: Tokens of a block.
_BLOCK = 64
#: Tokens from which workers share the heads: what a call with threads costs.
_MANY_TOKENS = 512


def emit_cached_attention(func: Func, settings: str, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes the operands of ``ops.cached_attention`` and its result.
        settings: The layer, and the factor of the scores.
        model: The processor.
    """
    layer, scale = str(settings).split()
    _Attention(func, int(layer), float(scale), model).write()


@dataclass(frozen=True)
class _Attention:
    func: Func
    layer: int
    scale: float
    model: CpuModel

    @property
    def _sizes(self) -> tuple[Expr, int, int, int]:
        """Batch, heads, kept heads, size of a head."""
        query, key = self.func.params[:2]
        return query.shape[0], int(query.shape[1]), int(key.shape[1]), int(query.shape[2])

    @property
    def _lanes(self) -> int:
        return math.gcd(self._sizes[3], self.model.lanes_of(4))

    def write(self) -> None:
        """Divides the heads among the workers."""
        batch, heads, _, size = self._sizes
        flops = heads * size * 4 * _MANY_TOKENS
        parallel = self.model.threads > 1 and flops >= MIN_PARALLEL_FLOPS
        with emit.parallel(batch * heads, parallel) as item:
            row, head = emit.unfuse(item, [batch, heads])
            self._head(row, head)

    def _head(self, row: Expr, head: Expr) -> None:
        _, heads, kept, size = self._sizes
        shared = tirx.floordiv(head, emit.i64(heads // kept))
        one = _Head(self, row, head, shared, self._lanes, self.model.lanes_of(4),
                    emit.stack(3, "float32"), emit.stack(size, "float32"),
                    emit.stack(_BLOCK, "float32"))  # fmt: skip
        one.write()


@dataclass(frozen=True)
class _Head:
    """One head of one text.

    Attributes:
        whole: What it is a part of.
        row: The text.
        head: The head of the query.
        shared: The head of keys and values.
        lanes: Elements of a head that are one vector.
        wide: Scores that are one vector.
        state: Largest score, sum of exponentials, the largest score to be.
        mixed: The values so far.
        scores: The scores of a block.
    """

    whole: _Attention
    row: Expr
    head: Expr
    shared: Expr
    lanes: int
    wide: int
    state: Buffer
    mixed: Buffer
    scores: Buffer

    def write(self) -> None:
        """The token itself first, then the blocks of the tokens before it."""
        _, key, value, _, span, out = self.whole.func.params
        row, state, mixed = self.row, self.state, self.mixed
        emit.store(state, self._score(lambda at: key[row, self.shared, at]), [0])
        emit.store(state, tirx.const(1, "float32"), [1])
        self._vectors(lambda at: emit.store(mixed, value[row, self.shared, at], [at]))
        first, end = (tirx.Cast("int64", span[row, i]) for i in (0, 1))
        count: Any = tirx.max(end - first, emit.i64(0))
        with emit.serial(tirx.floordiv(count + (_BLOCK - 1), emit.i64(_BLOCK))) as block:
            start = first + block * _BLOCK
            length = tirx.min(end - start, emit.i64(_BLOCK))
            self._rate(start, length)
            self._weigh()
            with emit.serial(length) as s:
                self._add(start + s, self.scores[s])
        divisor = emit.broadcast(state[1], self.lanes)
        self._vectors(lambda at: emit.store(out, mixed[at] / divisor, [row, self.head, at]))

    def _vectors(self, body: Callable[[Expr], None]) -> None:
        """The elements of a head, written out."""
        for first in range(0, self.whole._sizes[3], self.lanes):
            body(emit.ramp(first, self.lanes))

    def _score(self, key: Callable[[Expr], Expr]) -> Expr:
        """The score of a key."""
        query, lanes = self.whole.func.params[0], self.lanes
        products = emit.stack(lanes, "float32")
        emit.clear(products, 0, lanes)

        def add(at: Expr) -> None:
            total = products[emit.ramp(0, lanes)] + query[self.row, self.head, at] * key(at)
            emit.store(products, total, [emit.ramp(0, lanes)])

        self._vectors(add)
        total = horizontal(lambda a, b: a + b, products, lanes, lanes, "float32")
        return total * tirx.const(self.whole.scale, "float32")

    def _rate(self, start: Expr, length: Expr) -> None:
        """The scores of a block, none where it is shorter, and the largest so far."""
        cache, layer = self.whole.func.params[3], self.whole.layer
        least = emit.broadcast(tirx.const(-math.inf, "float32"), self.wide)
        for place in range(0, _BLOCK, self.wide):
            emit.store(self.scores, least, [emit.ramp(place, self.wide)])
        emit.store(self.state, self.state[0], [2])
        with emit.serial(length) as s:
            token = start + s
            found = self._score(lambda at: cache[layer, 0, token, self.row, self.shared, at])
            emit.store(self.scores, found, [s])
            emit.store(self.state, tirx.max(self.state[2], self.scores[s]), [2])

    def _weigh(self) -> None:
        """Exponentials in place of the scores; what was summed before shrinks."""
        state, scores, wide = self.state, self.scores, self.wide
        with emit.serial(_BLOCK // wide) as part, emit.lanes_loop(wide) as lane:
            at = part * wide + lane
            emit.store(scores, exp_nonpositive(scores[at] - state[2]), [at])
        emit.store(state, tirx.exp(state[0] - state[2]), [0])
        factor = emit.broadcast(state[0], self.lanes)
        self._vectors(lambda at: emit.store(self.mixed, self.mixed[at] * factor, [at]))
        sums = emit.stack(wide, "float32")
        emit.store(sums, scores[emit.ramp(0, wide)], [emit.ramp(0, wide)])
        for place in range(wide, _BLOCK, wide):
            total = sums[emit.ramp(0, wide)] + scores[emit.ramp(place, wide)]
            emit.store(sums, total, [emit.ramp(0, wide)])
        total = horizontal(lambda a, b: a + b, sums, wide, wide, "float32")
        emit.store(state, state[1] * state[0] + total, [1])
        emit.store(state, state[2], [0])

    def _add(self, token: Expr, weight: Expr) -> None:
        """Adds the value of a token."""
        cache, layer = self.whole.func.params[3], self.whole.layer
        factor = emit.broadcast(weight, self.lanes)

        def add(at: Expr) -> None:
            value = cache[layer, 1, token, self.row, self.shared, at]
            emit.store(self.mixed, self.mixed[at] + factor * value, [at])

        self._vectors(add)
