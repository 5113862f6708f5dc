"""Products with weights of 4 bits by the instruction that sums four products of bytes per lane.

As floats the weights would keep the processor busier than memory: three instructions for every
sixteen. A word of 4 bits is two groups of four bytes as it stands, once it is shifted and masked.
The input becomes whole numbers of 24 bits for that, block by block: three bytes with a factor,
which is as exact as float32 is for the largest element of the block. Sums of a block are exact.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.cpu.kernels.gemm.microkernel import kept
from tvmgraph.backend.cpu.kernels.gemm.quantized import AHEAD, STEPS, Product
from tvmgraph.backend.cpu.kernels.gemm.vnni_packing import DOTS, LANES, call
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func
from tvmgraph.machine.processor import CpuModel

#: Bytes of an element of the input.
_PARTS = 3
#: Elements of a block at most: sums of so many products fit in 32 bits.
_BLOCK = 32
#: The largest whole number: of three bytes from -128 to 127, though its factor is rounded.
_MOST = 127 << 16
#: Added to such a number makes its bytes the digits, each with 128 added.
_BIAS = 128 * ((1 << 16) + (1 << 8) + 1)


@dataclass(frozen=True)
class Bytes:
    """The input of a product as whole numbers.

    Attributes:
        digits: The bytes of every element, (rows, 3, depth / 4), the smallest first, four in an
            int32; of eight neighbours first those with even places.
        factor: What the numbers of a block are multiplied by, (rows, blocks).
        start: Minus 8 times the sum of a block, for the 8 that weights have added.
    """

    digits: Buffer
    factor: Buffer
    start: Buffer


def write_product_of_bytes(func: Func, panels: int, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes the operands of ``ops.quantized_dense`` and its result.
        panels: Panels of the weight.
        model: The processor, which has the instruction.
    """
    x, words, scales, out = func.params
    depth, group = int(x.shape[1]), int(x.shape[1]) // int(scales.shape[1])
    block = max(size for size in range(STEPS, _BLOCK + 1, STEPS) if group % size == 0)
    with T.attr(0, "pragma_import_llvm", DOTS):
        rows, blocks = x.shape[0], depth // block
        made = Bytes(
            emit.workspace((rows, _PARTS, depth // 4), "int32"),
            emit.workspace((rows, blocks), "float32"),
            emit.workspace((rows, blocks), "int32"),
        )
        with emit.serial(rows) as row, emit.serial(blocks) as number:
            _to_bytes(x, made, row, number, block)
        _ByteProduct(x, words, scales, out, panels, LANES, model, made, block).write()


def _to_bytes(x: Buffer, made: Bytes, row: Expr, number: Expr, block: int) -> None:
    """Makes whole numbers of a block of a row."""
    lanes = LANES if block % LANES == 0 else STEPS
    starts = range(0, block, lanes)
    first = number * block

    def all_of(value: Any, dtype: str) -> Expr:
        return emit.broadcast(tirx.const(value, dtype), lanes)

    values = [kept(x[row, emit.ramp(first + at, lanes)], lanes, "float32") for at in starts]
    zero = all_of(0, "float32")
    most, nothing = all_of(1e-30, "float32"), zero
    for value in values:
        most = tirx.max(most, tirx.max(value, zero - value))
        nothing = nothing + value * zero  # not a number, if one is not, which `max` hides
    largest = kept(_fold(most, lanes, "float32", tirx.max), 1, "float32")
    nothing = _fold(nothing, lanes, "float32", operator.add)
    emit.store(made.factor, largest / tirx.const(_MOST, "float32") + nothing, [row, number])
    by = kept(tirx.const(_MOST, "float32") / largest, 1, "float32")
    total = all_of(0, "int32")
    for at, value in zip(starts, values):
        near = tirx.nearbyint(value * emit.broadcast(by, lanes))
        whole = kept(tirx.Cast(f"int32x{lanes}", near), lanes, "int32")
        total = total + whole
        digits = tirx.bitwise_xor(whole + all_of(_BIAS, "int32"), all_of(_BIAS, "int32"))
        digits = kept(digits, lanes, "int32")
        order = [8 * eight + i for eight in range(lanes // 8) for i in (0, 2, 4, 6, 1, 3, 5, 7)]
        for part in range(_PARTS):
            byte = tirx.Cast(f"int8x{lanes}", digits >> all_of(8 * part, "int32"))
            fours = tirx.reinterpret(f"int32x{lanes // 4}", emit.shuffle([byte], order))
            to = [row, part, emit.ramp(number * (block // 4) + at // 4, lanes // 4)]
            emit.store(made.digits, fours, to)
    total = _fold(total, lanes, "int32", operator.add)
    emit.store(made.start, total * tirx.const(-8, "int32"), [row, number])


def _fold(vector: Expr, lanes: int, dtype: str, combine: Any) -> Expr:
    """Combines the lanes of a vector."""
    while lanes > 1:
        vector, lanes = kept(vector, lanes, dtype), lanes // 2
        low, high = (emit.shuffle([vector], range(at, at + lanes)) for at in (0, lanes))
        vector = combine(low, high)
    return vector


@dataclass(frozen=True)
class _ByteProduct(Product):
    made: Bytes
    block: int

    @property
    def height(self) -> int:
        """Rows of a tile."""
        return 4

    def tile(self, panel: Expr, row: Expr, rows: int) -> None:
        """Some rows of the input times a panel."""
        totals = emit.stack(rows * LANES, "float32")
        sums = emit.stack(rows * _PARTS * LANES, "int32")
        for r in range(rows):
            zero = emit.broadcast(emit.zero("float32"), LANES)
            emit.store(totals, zero, [emit.ramp(r * LANES, LANES)])
        depth = int(self.x.shape[1])
        shared = depth // int(self.scales.shape[1]) // self.block  # blocks that share their scales
        with emit.serial(depth // self.block) as number:
            self._start(row, rows, number, sums)
            for word in range(self.block // STEPS):
                self._word(panel, row, rows, number * (self.block // STEPS) + word, sums)
            group = tirx.floordiv(number, emit.i64(shared))
            scale = tirx.Cast(f"float32x{LANES}", self.scales[panel, group, emit.ramp(0, LANES)])
            scale = kept(scale, LANES, "float32")
            for r in range(rows):
                total = emit.ramp(r * LANES, LANES)
                factor = scale * emit.broadcast(self.made.factor[row + r, number], LANES)
                value = tirx.Cast(f"float32x{LANES}", self._whole(sums, r))
                emit.store(totals, totals[total] + value * factor, [total])
        for r in range(rows):
            self.store(panel, 0, row + r, totals, r * LANES)

    def _start(self, row: Expr, rows: int, number: Expr, sums: Buffer) -> None:
        for r in range(rows):
            for part in range(_PARTS):
                value = emit.zero("int32") if part else self.made.start[row + r, number]
                place = emit.ramp((r * _PARTS + part) * LANES, LANES)
                emit.store(sums, emit.broadcast(value, LANES), [place])

    def _word(self, panel: Expr, row: Expr, rows: int, place: Expr, sums: Buffer) -> None:
        """Adds eight steps of the depth."""
        emit.prefetch(self.words, [panel, place + AHEAD, 0])
        mask = emit.broadcast(tirx.const(0x0F0F0F0F, "int32"), LANES)
        word = kept(self.words[panel, place, emit.ramp(0, LANES)], LANES, "int32")
        four = emit.broadcast(tirx.const(4, "int32"), LANES)
        halves = [kept(tirx.bitwise_and(value, mask), LANES, "int32")
                  for value in (word, word >> four)]  # fmt: skip
        for r in range(rows):
            for part in range(_PARTS):
                total = emit.ramp((r * _PARTS + part) * LANES, LANES)
                for half, weights in enumerate(halves):
                    digits = self.made.digits[row + r, part, place * 2 + half]
                    digits = emit.broadcast(digits, LANES)
                    value = call(f"int32x{LANES}", "dot_int8", sums[total], weights, digits)
                    emit.store(sums, value, [total])

    def _whole(self, sums: Buffer, r: int) -> Expr:
        """The sums of the parts as one, which fits though what is added may not."""
        eight = emit.broadcast(tirx.const(8, "int32"), LANES)
        value: Expr | None = None
        for part in reversed(range(_PARTS)):
            digit = sums[emit.ramp((r * _PARTS + part) * LANES, LANES)]
            value = digit if value is None else tirx.shift_left(value, eight) + digit
        assert value is not None
        return value
