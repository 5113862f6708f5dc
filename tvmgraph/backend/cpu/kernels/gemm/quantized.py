"""Products with weights of 8 or 4 bits, which are taken apart in registers.

A token at a time, such a product lasts as long as its weights take to come from memory: they are
read once, one after the other, and never written as floats. Vectors are rows of the weight. Of a
single row of the input several sums run side by side, as one would wait for itself; of several
rows each uses the weights that were taken apart.

Products with weights of 4 bits by instructions that sum products of bytes.

As floats the weights would keep the processor busier than memory: three instructions for every
vector. A word of 4 bits is two groups of four bytes as it stands, once it is shifted and masked.
The input becomes whole numbers of 24 bits for that, block by block: three bytes with a factor,
which is as exact as float32 is for the largest element of the block. Sums of a block are exact.
VNNI sums four products per lane. AVX2 sums two, in 16 bits, which is enough for a block.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.cpu.kernels.gemm.microkernel import kept
from tvmgraph.backend.cpu.kernels.gemm.plan import LANES, MIN_PARALLEL_FLOPS
from tvmgraph.backend.cpu.kernels.gemm.vnni_packing import DOTS, call
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.point import vectors as each_vector
from tvmgraph.backend.loop_ir.program import static_shape
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func
from tvmgraph.machine.processor import CpuModel

#: Steps of K that are written out: the weights of 4 bits in a word.
STEPS = 8
#: Lines by which memory is asked for ahead: taking weights apart leaves it no time to guess.
AHEAD = 112
_LINE = 64


def emit_quantized_dense(func: Func, _settings: str, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes the operands of ``ops.quantized_dense`` and its result.
        model: The processor.
    """
    x, words, scales, out = func.params
    panels, _, width = static_shape(words) or (0, 0, 0)
    if str(words.dtype) == "int32" and has_products_of_bytes(model):
        write_product_of_bytes(func, panels, model)
        return
    Product(x, words, scales, out, panels, width, model).write()


@dataclass(frozen=True)
class Product:
    """A product whose weights become floats."""

    x: Buffer
    words: Buffer
    scales: Buffer
    out: Buffer
    panels: int
    width: int
    model: CpuModel

    @property
    def _lanes(self) -> int:
        return min(self.width, self.model.lanes_of(4))

    @property
    def _sums(self) -> int:
        """Vectors of sums that leave registers for the weights and for the totals."""
        return self.model.registers // 2

    @property
    def _columns(self) -> int:
        return int(self.out.shape[1])

    @property
    def height(self) -> int:
        """Rows of a tile."""
        return max(1, self._sums // (2 * (self.width // self._lanes)))

    def write(self) -> None:
        """Divides the panels among the workers; each reads one long stretch of memory."""
        rows, k_size = self.x.shape
        known = int(rows) if isinstance(rows, tirx.IntImm) else None
        flops = 2 * (known or 1) * int(k_size) * self._columns
        parallel = self.model.threads > 1 and flops >= MIN_PARALLEL_FLOPS
        with emit.parallel(self.panels, parallel) as panel:
            self._rows(panel, known)

    def _rows(self, panel: Expr, known: int | None) -> None:
        """All rows of the input times a panel."""
        height = self.height
        if known is not None:
            height = -(-known // -(-known // height))  # as even as they can be
            count = -(-known // height)
            with emit.serial(count) as tile:
                emit.peel_last(
                    (tile, count, height, known), lambda size: self.tile(panel, tile * height, size)
                )
            return
        rows = self.x.shape[0]
        full = tirx.floordiv(rows, emit.i64(height))
        with emit.serial(full) as tile:
            self.tile(panel, tile * height, height)
        with emit.serial(rows - full * height) as rest:
            self.tile(panel, full * height + rest, 1)

    def tile(self, panel: Expr, row: Expr, rows: int) -> None:
        """Some rows of the input times a panel.

        Args:
            panel: Number of the panel.
            row: The first row of the input.
            rows: How many rows.
        """
        lanes, vectors = self._lanes, self.width // self._lanes
        chains = max(1, min(8, self._sums // (rows * vectors)))
        groups = int(self.scales.shape[1])
        size = int(self.x.shape[1]) // groups
        totals = emit.stack(rows * vectors * lanes, "float32")
        for place in range(rows * vectors):
            emit.clear(totals, place * lanes, lanes)
        with emit.serial(groups) as group:
            sums = emit.stack(rows * vectors * chains * lanes, "float32")
            for place in range(rows * vectors * chains):
                emit.clear(sums, place * lanes, lanes)

            def step(first: Expr, count: int, _slot: int) -> None:
                self._step((panel, row, first), (rows, vectors, chains), count, sums)

            each_vector(group * size, size, STEPS, step)
            self._scale(panel, group, (rows, vectors, chains), sums, totals)
        for r in range(rows):
            for v in range(vectors):
                self.store(panel, v, row + r, totals, (r * vectors + v) * lanes)

    def _scale(
        self, panel: Expr, group: Expr, shape: tuple[int, int, int], sums: Buffer, totals: Buffer
    ) -> None:
        """Adds the sums of a group, times its factors, to the totals."""
        (rows, vectors, chains), lanes = shape, self._lanes
        for v in range(vectors):
            at, lane = self._place(panel, v)
            scale = self.scales[at, group, emit.ramp(lane, lanes)]
            scale = kept(tirx.Cast(f"float32x{lanes}", scale), lanes, "float32")
            for r in range(rows):
                first = (r * vectors + v) * chains
                parts = [sums[emit.ramp((first + c) * lanes, lanes)] for c in range(chains)]
                while len(parts) > 1:
                    parts = [sum(parts[i + 1 : i + 2], parts[i]) for i in range(0, len(parts), 2)]
                total = emit.ramp((r * vectors + v) * lanes, lanes)
                emit.store(totals, totals[total] + parts[0] * scale, [total])

    def _place(self, panel: Expr, vector: int) -> tuple[Expr, int]:
        """The panel of a vector, and where it begins there."""
        number, lane = divmod(vector * self._lanes, self.width)
        return panel + number, lane

    def _step(
        self, at: tuple[Expr, Expr, Expr], shape: tuple[int, int, int], count: int, sums: Buffer
    ) -> None:
        """Adds some steps of K, from the first of a word on."""
        (panel, row, first), (rows, vectors, chains), lanes = at, shape, self._lanes
        small = str(self.words.dtype) == "int8"
        for v in range(vectors):
            number, lane = self._place(panel, v)
            columns = emit.ramp(lane, lanes)
            word = high = None
            if small and lane == 0:
                for step in range(0, count, _LINE // self.width):
                    emit.prefetch(
                        self.words, [number, first + step + AHEAD * (_LINE // self.width), 0]
                    )
            elif not small:
                place = tirx.floordiv(first, emit.i64(STEPS))
                emit.prefetch(self.words, [number, place + AHEAD, lane])
                word = self.words[number, place, columns]
                word = kept(word, lanes, "int32")
                half = emit.broadcast(tirx.const(16, "int32"), lanes)
                high = kept(word >> half, lanes, "int32")
            for j in range(count):
                if word is None:
                    value = tirx.Cast(f"int32x{lanes}", self.words[number, first + j, columns])
                    weight = tirx.Cast(f"float32x{lanes}", value)
                else:
                    weight = self._of_word(word if j < STEPS // 2 else high, j)
                if rows > 1:
                    weight = kept(weight, lanes, "float32")
                for r in range(rows):
                    place = ((r * vectors + v) * chains + j % chains) * lanes
                    total = emit.ramp(place, lanes)
                    factor = emit.broadcast(self.x[row + r, first + j], lanes)
                    emit.store(sums, sums[total] + factor * weight, [total])

    def _of_word(self, word: Expr, step: int) -> Expr:
        """A weight of 4 bits as a float, without a conversion.

        In the mantissa of a power of two its bits are a whole number that is added to the power;
        what is left of that after a subtraction is exact.
        """
        place = 4 * (step % (STEPS // 2))
        mask, power, offset = (
            emit.broadcast(tirx.const(value, dtype), self._lanes)
            for value, dtype in (
                (15 << place, "int32"), ((150 - place) << 23, "int32"),
                (float((1 << 23 - place) + 8), "float32"),
            )
        )  # fmt: skip
        bits = tirx.bitwise_or(tirx.bitwise_and(word, mask), power)
        return tirx.reinterpret(f"float32x{self._lanes}", bits) - offset

    def store(self, panel: Expr, vector: int, row: Expr, totals: Buffer, base: int) -> None:
        """Stores a vector of a row, as far as its columns exist.

        Args:
            panel: Number of the panel.
            vector: The vector in the panel.
            row: The row of the result.
            totals: The finished sums, float32.
            base: Where the vector begins in ``totals``.
        """
        number, lane = self._place(panel, vector)
        lanes, first = self._lanes, number * self.width + lane
        rest = self._columns % self.width

        def some(size: int) -> None:
            there = max(0, min(lanes, size - lane))
            if there == lanes:
                value = totals[emit.ramp(base, lanes)]
                emit.store(self.out, value, [row, emit.ramp(first, lanes)])
                return
            for i in range(there):
                emit.store(self.out, totals[base + i], [row, first + i])

        if rest:
            last = number < self.panels - 1
            emit.when(last, lambda: some(self.width), lambda: some(rest))
        else:
            some(self.width)


# ---- bytes --------------------------------------------------------------------------------------


#: Bytes of an element of the input.
_PARTS = 3
#: Elements of a block at most: sums of so many products fit in 32 bits, halves of them with bytes
#: in 16.
_BLOCK = 32
#: The largest whole number: of three bytes from -128 to 127, though its factor is rounded.
_MOST = 127 << 16
#: Added to such a number makes its bytes the digits, each with 128 added.
_BIAS = 128 * ((1 << 16) + (1 << 8) + 1)


#: Adds products of bytes with and without a sign, two per lane of 16 bits; sums of two such lanes.
_PAIRS = Path(__file__).with_name("byte_pairs.ll").read_text()


def has_products_of_bytes(model: CpuModel) -> bool:
    """Whether a processor's products of bytes are faster than its products of floats.

    Args:
        model: The processor.
    """
    return "int8" in model.dot_types or model.sums_pairs_of_bytes


@dataclass(frozen=True)
class Bytes:
    """The input of a product as whole numbers.

    Attributes:
        digits: The bytes of every element, (rows, 3, K / 4), the smallest first, four in an
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
    k_size, group = int(x.shape[1]), int(x.shape[1]) // int(scales.shape[1])
    block = max(size for size in range(STEPS, _BLOCK + 1, STEPS) if group % size == 0)
    pairs = "int8" not in model.dot_types
    with T.attr(0, "pragma_import_llvm", _PAIRS if pairs else DOTS):
        rows, blocks = x.shape[0], k_size // block
        made = Bytes(
            emit.workspace((rows, _PARTS, k_size // 4), "int32"),
            emit.workspace((rows, blocks), "float32"),
            emit.workspace((rows, blocks), "int32"),
        )
        with emit.serial(rows) as row, emit.serial(blocks) as number:
            _to_bytes(x, made, row, number, block)
        kind = _PairProduct if pairs else _ByteProduct
        kind(x, words, scales, out, panels, LANES, model, made, block).write()


def _to_bytes(x: Buffer, made: Bytes, row: Expr, number: Expr, block: int) -> None:
    """Makes whole numbers of a block of a row."""
    lanes = LANES if block % LANES == 0 else STEPS
    starts = range(0, block, lanes)
    first = number * block

    def all_of(value: object, dtype: str) -> Expr:
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
    """With VNNI; a subclass sums the products of a block another way."""

    made: Bytes
    block: int

    #: Types of the sums of a block, and how many of them a lane has.
    _dtype = "int32"
    _of_lane = 1

    @property
    def height(self) -> int:
        """Rows of a tile."""
        return 1 if self.model.has_few_registers else 4

    @property
    def _vectors(self) -> int:
        return self.width // self._lanes

    def tile(self, panel: Expr, row: Expr, rows: int) -> None:
        """Some rows of the input times a panel."""
        lanes, wide = self._lanes, self._lanes * self._of_lane
        totals = emit.stack(rows * self.width, "float32")
        sums = emit.stack(rows * _PARTS * self._vectors * wide, self._dtype)
        for place in range(0, rows * self.width, lanes):
            emit.clear(totals, place, lanes)
        k_size = int(self.x.shape[1])
        shared = k_size // int(self.scales.shape[1]) // self.block  # blocks that share their scales
        with emit.serial(k_size // self.block) as number:
            for place in range(rows * _PARTS * self._vectors):
                emit.clear(sums, place * wide, wide)
            for word in range(self.block // STEPS):
                self._word(panel, row, rows, number * (self.block // STEPS) + word, sums)
            group = tirx.floordiv(number, emit.i64(shared))
            for v in range(self._vectors):
                scale = self.scales[panel, group, emit.ramp(v * lanes, lanes)]
                scale = kept(tirx.Cast(f"float32x{lanes}", scale), lanes, "float32")
                for r in range(rows):
                    total = emit.ramp(r * self.width + v * lanes, lanes)
                    factor = scale * emit.broadcast(self.made.factor[row + r, number], lanes)
                    whole = self._whole(sums, r, v)
                    whole += emit.broadcast(self.made.start[row + r, number], lanes)
                    value = tirx.Cast(f"float32x{lanes}", whole)
                    emit.store(totals, totals[total] + value * factor, [total])
        for r in range(rows):
            for v in range(self._vectors):
                self.store(panel, v, row + r, totals, r * self.width + v * lanes)

    def _word(self, panel: Expr, row: Expr, rows: int, place: Expr, sums: Buffer) -> None:
        """Adds eight steps of K."""
        lanes = self._lanes
        emit.prefetch(self.words, [panel, place + AHEAD, 0])
        mask, four = (
            emit.broadcast(tirx.const(value, "int32"), lanes) for value in (0x0F0F0F0F, 4)
        )
        for v in range(self._vectors):
            word = kept(self.words[panel, place, emit.ramp(v * lanes, lanes)], lanes, "int32")
            halves = [kept(tirx.bitwise_and(value, mask), lanes, "int32")
                      for value in (word, word >> four)]  # fmt: skip
            for r in range(rows):
                for part in range(_PARTS):
                    total = self._sum_at(r, part, v)
                    for half, weights in enumerate(halves):
                        digits = self.made.digits[row + r, part, place * 2 + half]
                        digits = emit.broadcast(digits, lanes)
                        emit.store(sums, self._add(sums[total], weights, digits), [total])

    def _sum_at(self, r: int, part: int, v: int) -> Expr:
        wide = self._lanes * self._of_lane
        return emit.ramp(((r * _PARTS + part) * self._vectors + v) * wide, wide)

    def _add(self, total: Expr, weights: Expr, digits: Expr) -> Expr:
        return call(f"int32x{self._lanes}", "dot_int8", total, weights, digits)

    def _sum(self, total: Expr) -> Expr:
        """What was added, as one number per lane."""
        return total

    def _whole(self, sums: Buffer, r: int, v: int) -> Expr:
        """The sums of the parts as one, which fits though what is added may not."""
        eight = emit.broadcast(tirx.const(8, "int32"), self._lanes)
        value: Expr | None = None
        for part in reversed(range(_PARTS)):
            digit = self._sum(sums[self._sum_at(r, part, v)])
            value = digit if value is None else tirx.shift_left(value, eight) + digit
        assert value is not None
        return value


@dataclass(frozen=True)
class _PairProduct(_ByteProduct):
    """With AVX2."""

    _dtype = "int16"
    _of_lane = 2

    def _add(self, total: Expr, weights: Expr, digits: Expr) -> Expr:
        return call(f"int16x{2 * self._lanes}", "add_pairs", total, weights, digits)

    def _sum(self, total: Expr) -> Expr:
        return call(f"int32x{self._lanes}", "sum_pairs", total)
