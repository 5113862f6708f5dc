"""Products with weights of 8 or 4 bits, which are taken apart in registers.

A token at a time, such a product lasts as long as its weights take to come from memory: they are
read once, one after the other, and never written as floats. Vectors are rows of the weight. Of a
single row of the input several sums run side by side, as one would wait for itself; of several
rows each uses the weights that were taken apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from tvmgraph.backend.cpu.kernels.gemm.microkernel import kept
from tvmgraph.backend.cpu.kernels.gemm.plan import MIN_PARALLEL_FLOPS
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
    if str(words.dtype) == "int32":
        from tvmgraph.backend.cpu.kernels.gemm import quantized_bytes

        if quantized_bytes.has_products_of_bytes(model):
            quantized_bytes.write_product_of_bytes(func, panels, model)
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
