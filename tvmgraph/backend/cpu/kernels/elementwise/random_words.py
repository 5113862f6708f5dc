"""Random words: every block of the generator is computed once, for the four words it gives.

Blocking: a vector of neighbouring blocks goes through the rounds together. Chunks of them are
divided among the workers.
"""

from __future__ import annotations

from tvm import tirx
from tvm.tirx import op

from tvmgraph.backend.cpu.intrinsics.lanes import Lanes
from tvmgraph.backend.cpu.kernels.gemm.microkernel import kept
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func
from tvmgraph.machine.processor import CpuModel
from tvmgraph.numerics.philox import philox

#: Below this many blocks a kernel stays on the calling thread.
_MIN_PARALLEL = 4 * 1024
#: Blocks of one chunk of a kernel that is divided.
_CHUNK = 1024


def emit_random_words(func: Func, settings: str, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes the seed and the number of the first block (2,); gives words (count,), word
            ``w`` of block ``b`` as element ``w * blocks + b``.
        settings: How many blocks are skipped.
        model: The processor.
    """
    state, target = map(emit.flat, func.params)
    count = int(emit.size_of(func.params[-1]))
    blocks = -(-count // 4)
    parallel = model.threads > 1 and blocks >= _MIN_PARALLEL

    def write(at: Expr, lanes: int) -> None:
        words = _words(state, int(settings), at, lanes)
        for position, word in enumerate(words):
            _store(target, word, at + position * blocks, lanes, whole=position < 3 or not count % 4)

    emit.chunks_of_vectors(emit.i64(blocks), model.lanes, _CHUNK, parallel, write)


def _store(target: Buffer, words: Expr, at: Expr, lanes: int, *, whole: bool) -> None:
    """Stores words; of the last ones of all blocks only those that were asked for."""
    (count,) = target.shape
    place = emit.ramp(at, lanes)
    if whole:
        emit.store(target, words, [place])
        return
    kept = emit.stack(lanes, "uint32")
    emit.store(kept, words, [emit.ramp(0, lanes)])

    def single() -> None:
        with emit.serial(lanes) as lane:
            emit.only_if(at + lane < count, lambda: emit.store(target, kept[lane], [at + lane]))

    inside = at + lanes <= count
    emit.when(inside, lambda: emit.store(target, kept[emit.ramp(0, lanes)], [place]), single)


def _words(state: Buffer, skipped: int, at: Expr, lanes: int) -> list[Expr]:
    """The four words of a vector of blocks."""
    v = Lanes(emit.ramp(at, lanes))

    def once(value: Expr) -> Expr:
        return kept(value, lanes, "uint64")

    def halves(value: Expr) -> tuple[Expr, Expr]:
        """High and low word, masked first: TVM does not know that the cast drops the rest."""
        low = op.bitwise_and(value, v.of(0xFFFFFFFF, "uint64"))
        return v.cast(op.shift_right(value, v.of(32, "uint64")), "uint32"), v.cast(low, "uint32")

    def mul(a: Expr, factor: int) -> tuple[Expr, Expr]:
        return halves(once(v.cast(a, "uint64") * v.of(factor, "uint64")))

    first = tirx.Cast("uint64", state[1]) + tirx.Cast("uint64", at)
    steps = v.cast(emit.ramp(emit.i64(skipped), lanes), "uint64")
    number = once(emit.broadcast(first, lanes) + steps)
    high, low = halves(number)
    key_high, key_low = halves(once(emit.broadcast(tirx.Cast("uint64", state[0]), lanes)))
    return philox((low, high), (key_low, key_high), mul, lambda value: v.of(value, "uint32"))
