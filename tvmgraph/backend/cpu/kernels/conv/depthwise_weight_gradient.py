"""The gradient of a depthwise convolution's weights: sums over a plane of ``grad * input``.

Blocking: a work item is one channel. Image after image, its plane and its cotangent are copied to
the first-level cache; then vectors run along the rows of both, and every tap keeps a vector of
partial sums in registers. Several rows at a time share the pixels that they read. Windows with many
taps take several passes, a few rows of taps each.
"""

from __future__ import annotations

from tvmgraph.backend.cpu.kernels.conv.plane import Plane, PlaneCopy, find_plane, is_element
from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue
from tvmgraph.backend.cpu.kernels.gemm.microkernel import sum_each
from tvmgraph.backend.cpu.kernels.product import contraction_of
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound, bind_group, nest, vectors
from tvmgraph.backend.loop_ir.program import product, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

#: Taps in a row of a window, rows that share pixels, and taps of a window.
_MAX_COLUMNS, _MAX_ROWS, _MAX_TAPS = 25, 4, 128
#: Registers beside those of the partial sums: a pixel, and a few rows of the cotangent.
_OTHERS = 7
#: Below this many operations the calling thread works alone.
_MIN_PARALLEL_FLOPS = 100_000


def _plane(contraction: Contraction) -> Plane | None:
    if contraction.rows or not contraction.batch or not is_element(contraction.left.expr):
        return None
    plane = find_plane(contraction, contraction.reduce, contraction.columns)
    if plane is None or plane.column.taps > _MAX_COLUMNS:
        return None
    return plane if plane.row.taps * plane.column.taps <= _MAX_TAPS else None


def rows_of_taps(rows: int, columns: int, model: CpuModel) -> int:
    """Rows of a window of ``rows`` x ``columns`` taps whose sums registers hold, at least one."""
    return max(1, min(rows, (model.registers - _OTHERS) // columns))


class _DepthwiseGradient:
    def __init__(self, contraction: Contraction, plane: Plane, model: CpuModel) -> None:
        self.contraction = contraction
        self.row, self.column = plane.row, plane.column
        batch = contraction.batch
        self.images = [a for a in plane.outer if not any(a is each for each in batch)]
        lanes = model.lanes_of(dtype_bytes(contraction.dtype))
        while lanes > 4 and self.column.positions <= lanes // 2:
            lanes //= 2
        self.lanes = lanes
        self.copy = PlaneCopy(contraction, plane, lanes)
        self.width = -(-self.column.positions // lanes) * lanes
        self.parallel = contraction.flops >= _MIN_PARALLEL_FLOPS and model.threads > 1
        self.tap_rows = rows_of_taps(self.row.taps, self.column.taps, model)
        spare = max(1, model.registers - 3 - self.tap_rows * self.column.taps)
        self.rows = min(_MAX_ROWS, spare, self.row.positions)

    def write(self) -> None:
        """Writes the loop over channels."""
        dtype, height = self.contraction.dtype, self.row.positions
        taps = self.row.taps * self.column.taps
        batch = self.contraction.batch
        with emit.parallel(product(axis.extent for axis in batch), self.parallel) as item:
            bound = bind_group(batch, item)
            copy = emit.workspace([self.copy.size(height)], dtype)
            grad = emit.workspace([height * self.width], dtype)
            sums = emit.stack(taps * self.lanes, dtype)
            with emit.serial(taps) as tap:
                emit.store(sums, self._zero, [emit.ramp(tap * self.lanes, self.lanes)])

            def image(number: Bound) -> None:
                here = bound | number
                self.copy.fill(copy, here, emit.i64(0), height)
                self._copy_grad(grad, here)
                for first in range(0, self.row.taps, self.tap_rows):
                    count = min(self.tap_rows, self.row.taps - first)
                    self._pass(copy, grad, sums, first, count)

            nest([[axis] for axis in self.images], image)
            self._finish(bound, sums, taps)

    @property
    def _zero(self) -> Expr:
        return emit.broadcast(emit.zero(self.contraction.dtype), self.lanes)

    def _copy_grad(self, grad: Buffer, bound: Bound) -> None:
        """The cotangent of a plane, with zeros up to whole vectors."""
        width = self.column.positions
        with emit.serial(self.row.positions) as row:

            def vector(at: Expr, lanes: int, _slot: int) -> None:
                start = row * self.width + at
                if lanes < self.lanes:
                    emit.store(grad, self._zero, [emit.ramp(start, self.lanes)])
                with emit.lanes_loop(lanes) as lane:
                    place = bound | self._position(row, at + lane)
                    emit.store(grad, substitute(self.contraction.left.expr, place), [start + lane])

            vectors(emit.i64(0), width, self.lanes, vector)

    def _position(self, row: Expr, column: Expr) -> Bound:
        pairs = ((self.row.axis, row), (self.column.axis, column))
        return {axis.var: value for axis, value in pairs if axis}

    def _pass(self, copy: Buffer, grad: Buffer, sums: Buffer, first: int, count: int) -> None:
        """Adds a plane to the sums of ``count`` rows of taps."""
        lanes, dtype, across = self.lanes, self.contraction.dtype, self.column.taps
        held = [emit.stack(lanes, dtype) for _ in range(count * across)]
        here = emit.ramp(0, lanes)
        places = [emit.ramp((first * across + i) * lanes, lanes) for i in range(len(held))]
        for buffer, place in zip(held, places):
            emit.store(buffer, sums[place], [here])

        def rows(top: Expr, number: int) -> None:
            def vector(left: Expr, _lanes: int, _slot: int) -> None:
                for line in range(self.copy.rows_read(number)):
                    taps = self.copy.taps_of(line, number)
                    taps = [(r, tap - first) for r, tap in taps if 0 <= tap - first < count]
                    for along in range(across) if taps else ():
                        pixels = copy[self.copy.at(top * self.row.stride + line, along, left)]
                        for r, tap in taps:
                            other = grad[emit.ramp((top + r) * self.width + left, lanes)]
                            buffer = held[tap * across + along]
                            emit.store(buffer, buffer[here] + pixels * other, [here])

            vectors(emit.i64(0), self.width, lanes, vector)

        full, rest = divmod(self.row.positions, self.rows)
        with emit.serial(full) as block:
            rows(block * self.rows, self.rows)
        if rest:
            rows(emit.i64(full * self.rows), rest)
        for buffer, place in zip(held, places):
            emit.store(sums, buffer[here], [place])

    def _finish(self, bound: Bound, sums: Buffer, taps: int) -> None:
        lanes, dtype = self.lanes, self.contraction.dtype
        held = [emit.stack(lanes, dtype) for _ in range(taps)]
        for number, buffer in enumerate(held):
            emit.store(buffer, sums[emit.ramp(number * lanes, lanes)], [emit.ramp(0, lanes)])
        totals = sum_each(held, lanes, dtype)
        epilogue = Epilogue(self.contraction, self.contraction.columns)
        with emit.serial(taps) as tap:
            epilogue.vector(bound, tap, 1, lambda _: totals[tap])


def _match(nest: Nest, _model: CpuModel) -> tuple[Contraction, Plane] | Refused:
    found = contraction_of(nest)
    if isinstance(found, Refused):
        return found
    plane = _plane(found)
    if plane is None:
        return Refused("no gradient of the weights of a depthwise convolution")
    return found, plane


def _emit(found: tuple[Contraction, Plane], _plan: None, writer: Writer[CpuModel]) -> None:
    """Writes the kernel; a stage that pads the image becomes part of it."""
    _DepthwiseGradient(*found, writer.model).write()


KERNEL = Kernel(
    "conv_depthwise_weight_gradient", _match, _emit,
    "gradient of the weights of a depthwise convolution",
)  # fmt: skip
