"""Products of a few vectors with a matrix, as in a network that sees one example at a time.

Every element of the matrix is used a handful of times, so that reading it is all that counts: the
tiles of the other kernels, 16 rows at least, would only add instructions and a longer start. Here
threads load 16 bytes of the matrix at a time, several loads ahead, straight into registers, and
multiply them with the vectors, which stay in the first-level cache.

A row of the matrix is what is multiplied with a vector, whichever operand the matrix is.

* The matrix is row-major (weights as ``nn.Dense`` has them): a warp, or a block where there are few
  rows, takes some rows and sums over its lanes.
* It is column-major: a thread takes neighbouring rows, and the threads of a block share K.

Where there are too few rows to keep all multiprocessors busy, blocks share K, and a second
kernel adds what they have in a fixed order.

Expected on a device: the bytes of the matrix at the speed of a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import VECTOR_BYTES, WARP, div, i32, mod, split
from tvmgraph.backend.cuda.kernels.gemm import add_partials, extents_of
from tvmgraph.backend.cuda.kernels.gemm_operand import GemmOperand
from tvmgraph.backend.cuda.kernels.output import Output
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.program import product
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Var, as_dtype
from tvmgraph.backend.target import GpuModel

#: Vectors at most; beyond, tensor cores are worth their tiles.
_MOST = 8
#: Types of matrices: whole numbers have tensor cores, which need no conversions.
_STREAMED = ("float16", "bfloat16", "float32", "float64")
#: Uses of an element by different rows or products, at most: windows of images have more.
_REUSE = 4
_THREADS = 256
_WARPS = _THREADS // WARP
#: Vectors of 16 bytes, along a row or in as many steps of K, that a thread asks for before it
#: uses one.
_AHEAD = 4
#: Rows of a thread group of a row-major matrix.
_ROWS = 2
#: Threads side by side on a column-major matrix: they read 128 bytes of a step.
_SIDE_BY_SIDE = 8
#: Blocks per multiprocessor that keep enough reads under way.
_BLOCKS_PER_SM = 4


@dataclass(frozen=True)
class Gemv:
    """A product of few vectors with a matrix.

    Attributes:
        contraction: The product.
        vectors: The operand that is a few vectors.
        matrix: The other one.
        model: The device.
    """

    contraction: Contraction
    vectors: GemmOperand
    matrix: GemmOperand
    model: GpuModel

    @cached_property
    def few(self) -> int:
        """Number of vectors."""
        return product(axis.extent for axis in self.vectors.mn_axes)

    @cached_property
    def rows(self) -> int:
        """Rows of the matrix: results per vector."""
        return product(axis.extent for axis in self.matrix.mn_axes)

    @cached_property
    def k_size(self) -> int:
        """Steps of the sums."""
        return product(axis.extent for axis in self.matrix.k_axes)

    @cached_property
    def lanes(self) -> int:
        """Elements of the matrix that one load moves."""
        return VECTOR_BYTES // dtype_bytes(str(self.matrix.load.source.dtype))

    @cached_property
    def row_major(self) -> bool:
        """Whether the matrix is row-major: elements of a row are neighbours in memory."""
        return self.matrix.run(self.matrix.k_axes) >= self.lanes

    @cached_property
    def batch(self) -> int:
        """Number of products."""
        return product(axis.extent for axis in self.contraction.batch)

    @cached_property
    def sharing(self) -> int:
        """Warps of a block that share the sums of a row."""
        if not self.row_major:
            return _WARPS
        blocks = self.batch * -(-self.rows // (_ROWS * _WARPS))
        return 1 if blocks >= self.model.sms * 2 else _WARPS

    @cached_property
    def width(self) -> int:
        """Rows of a block."""
        if self.row_major:
            return _ROWS * (_WARPS // self.sharing)
        return _SIDE_BY_SIDE * self.lanes

    @cached_property
    def stride(self) -> int:
        """Steps that the threads which share a row take in one turn of their loop."""
        if self.row_major:
            return self.sharing * WARP * self.lanes * _AHEAD
        return _THREADS // _SIDE_BY_SIDE * _AHEAD

    @cached_property
    def blocks(self) -> int:
        """Blocks of all products, of one split of K."""
        return self.batch * -(-self.rows // self.width)

    @cached_property
    def turns(self) -> int:
        """Turns of the loop over one split of K."""
        turns = -(-self.k_size // self.stride)
        wanted = -(-self.model.sms * _BLOCKS_PER_SM // self.blocks)
        return -(-turns // max(1, min(wanted, turns // 2)))

    @cached_property
    def splits(self) -> int:
        """Blocks that share the sums of a row."""
        return -(-self.k_size // (self.stride * self.turns))

    @property
    def fits(self) -> bool:
        """Whether the kernel pays: few vectors, a matrix to stream, and enough of it."""
        if self.few > _MOST or self.vectors.linear is None or self.matrix.linear is None:
            return False
        if self.vectors.guards or self.matrix.guards:
            return False
        source = device.elements(self.matrix.load.source)
        if self.batch * self.rows * self.k_size > _REUSE * source:
            return False
        runs = [self.matrix.run(side) for side in (self.matrix.k_axes, self.matrix.mn_axes)]
        if max(runs) < self.lanes or self.matrix.load.source.dtype not in _STREAMED:
            return False
        if self.row_major:
            return self.k_size >= WARP * self.lanes
        return self.rows >= self.width and self.k_size >= self.stride

    def write(self) -> None:
        """Writes the kernel, and one that adds the partial sums where blocks share K."""
        output, partial = Output(self.contraction), None
        extents = extents_of(self.contraction)
        if self.splits > 1:
            results = extents.batch * extents.rows * extents.columns
            partial = emit.workspace([self.splits * results], self.contraction.dtype)
        with device.launch(self.blocks * self.splits, _THREADS) as (number, thread):
            _Block(self, output, partial, number, thread).write()
        if partial is not None:
            add_partials(self.contraction, output, extents, self.splits, partial)


def gemv_of(
    contraction: Contraction, left: GemmOperand, right: GemmOperand, model: GpuModel
) -> Gemv | None:
    """A product as one of few vectors with a matrix, or None where that does not pay.

    Args:
        contraction: A matrix product.
        left: Its left operand.
        right: Its right operand.
        model: The device.
    """
    both = (Gemv(contraction, left, right, model), Gemv(contraction, right, left, model))
    found = [one for one in both if one.fits]
    return max(found, key=lambda one: one.rows, default=None)


class _Block:
    """The work of one block of threads.

    Args:
        plan: The product.
        output: What is done with the sums.
        partial: Sums of the splits of K, if there are several.
        number: Index of the block.
        thread: Index of the thread.
    """

    def __init__(
        self, plan: Gemv, output: Output, partial: Buffer | None, number: Expr, thread: Expr
    ) -> None:
        self.plan, self.output, self.partial = plan, output, partial
        self.thread = thread
        self.lane, self.warp = device.let(mod(thread, WARP)), device.let(div(thread, WARP))
        blocks = -(-plan.rows // plan.width)
        self.first = device.let(mod(number, blocks) * i32(plan.width))
        self.matrix = device.let(mod(div(number, blocks), plan.batch))
        self.split_index = device.let(div(number, blocks * plan.batch))
        splits = split(self.matrix, plan.contraction.batch)
        self.batch = {var: device.let(value) for var, value in splits.items()}
        self.dtype = plan.contraction.dtype
        #: Rows of which the thread has sums, for every vector.
        self.own = _ROWS if plan.row_major else plan.lanes
        self.sums = [
            [device.registers(1, self.dtype) for _ in range(plan.few)] for _ in range(self.own)
        ]

    def write(self) -> None:
        """Writes the sums of the threads, and what puts them together."""
        for row in self.sums:
            for register in row:
                device.fill(register)
        if self.plan.row_major:
            self._dot()
        else:
            self._add_rows()
        self._join()

    # Row-major

    def _dot(self) -> None:
        plan = self.plan
        member = self.lane + (self.warp * i32(WARP) if plan.sharing > 1 else i32(0))
        start = self.split_index * i32(plan.turns * plan.stride) + member * i32(plan.lanes)
        start = device.let(start)
        rows = [device.let(self._row(number)) for number in range(_ROWS)]
        with device.loop(plan.turns) as turn:
            steps = [
                device.let(start + turn * i32(plan.stride) + i32(ahead * plan.stride // _AHEAD))
                for ahead in range(_AHEAD)
            ]
            held = [
                [self._read_vector(plan.matrix, row, step, step, plan.k_size) for row in rows]
                for step in steps
            ]
            for step, at_step in zip(steps, held):
                device.only_if(
                    self._below(step, plan.k_size),
                    lambda step=step, at_step=at_step: self._multiply_steps(step, at_step),
                )

    def _row(self, number: int) -> Expr:
        """A row of the warp; one that does not exist is read as the last one."""
        row = self.first + i32(number)
        if self.plan.sharing == 1:
            row = row + self.warp * i32(_ROWS)
        return tirx.min(row, i32(self.plan.rows - 1)) if self._is_ragged else row

    @property
    def _is_ragged(self) -> bool:
        return self.plan.rows % self.plan.width != 0

    def _multiply_steps(self, step: Expr, held: list[Buffer]) -> None:
        """Adds the products of neighbouring steps of all rows and vectors."""
        plan = self.plan
        for vector in range(plan.few):
            wide = plan.vectors.run(plan.vectors.k_axes) >= plan.lanes
            if wide:
                other = self._read_vector(plan.vectors, i32(vector), step, None, 0)
                values = [other[i32(lane)] for lane in range(plan.lanes)]
            else:
                values = [
                    self._element(plan.vectors, i32(vector), step + i32(lane))
                    for lane in range(plan.lanes)
                ]
            values = [device.let(self._wide(plan.vectors, value)) for value in values]
            for row, elements in enumerate(held):
                for lane in range(plan.lanes):
                    term = self._wide(plan.matrix, elements[i32(lane)]) * values[lane]
                    self._add(row, vector, term)

    # Column-major

    def _add_rows(self) -> None:
        plan = self.plan
        row = self.first + mod(self.thread, _SIDE_BY_SIDE) * i32(plan.lanes)
        row = device.let(row)
        start = div(self.thread, _SIDE_BY_SIDE) * i32(_AHEAD)
        start = device.let(self.split_index * i32(plan.turns * plan.stride) + start)
        with device.loop(plan.turns) as turn:
            steps = [
                device.let(start + turn * i32(plan.stride) + i32(ahead)) for ahead in range(_AHEAD)
            ]
            held = [self._read_vector(plan.matrix, row, s, row, plan.rows, s) for s in steps]
            for step, elements in zip(steps, held):
                device.only_if(
                    self._below(step, plan.k_size),
                    lambda step=step, elements=elements: self._multiply_rows(step, elements),
                )

    def _multiply_rows(self, step: Expr, held: Buffer) -> None:
        plan = self.plan
        elements = [device.let(self._wide(plan.matrix, held[i32(i)])) for i in range(plan.lanes)]
        for vector in range(plan.few):
            value = self._element(plan.vectors, i32(vector), step)
            value = device.let(self._wide(plan.vectors, value))
            for row, element in enumerate(elements):
                self._add(row, vector, element * value)

    # Elements

    def _below(self, step: Expr, end: int) -> Expr | None:
        plan = self.plan
        whole = plan.splits * plan.turns * plan.stride == plan.k_size
        return None if whole else step < i32(end)

    def _element(self, factor: GemmOperand, row: Expr, step: Expr) -> Expr:
        """An element as it lies in memory."""
        return device.flat(factor.load.source, self._offset(factor, row, step))

    def _offset(self, factor: GemmOperand, row: Expr, step: Expr) -> Expr:
        assert factor.linear is not None
        values: dict[Var, Expr] = self.batch | split(row, factor.mn_axes)
        values |= split(step, factor.k_axes)
        axes = (*factor.batch, *factor.mn_axes, *factor.k_axes)
        return factor.offset(axes, values) + i32(factor.linear[1])

    def _read_vector(
        self, factor: GemmOperand, row: Expr, step: Expr, along: Expr | None, end: int,
        also: Expr | None = None,
    ) -> Buffer:  # fmt: skip
        """Neighbouring elements; zeros where ``along`` is not below ``end``.

        Args:
            factor: What is read.
            row: The first row.
            step: The first step.
            along: What the elements run along, or None where they are known to exist.
            end: How many there are of it.
            also: A step that must exist too.
        """
        plan = self.plan
        held = device.registers(plan.lanes, str(factor.load.source.dtype))
        inside = None
        if along is not None and (also is not None or self._below(step, end) is not None):
            ragged = also is None or self._is_ragged
            inside = (along < i32(end)) if ragged else None
        if also is not None:
            inside = device.both(inside, self._below(also, plan.k_size))
        if inside is not None:
            device.fill(held)
        offset = self._offset(factor, row, step)

        def read() -> None:
            with device.vector(plan.lanes) as lane:
                device.store(held, device.flat(factor.load.source, offset + lane), [lane])

        device.only_if(inside, read)
        return held

    def _wide(self, factor: GemmOperand, element: Expr) -> Expr:
        """An element, converted to the type that is multiplied, in the type of the sums."""
        return as_dtype(factor.converted(element), self.dtype)

    def _add(self, row: int, vector: int, term: Expr) -> None:
        register = self.sums[row][vector]
        device.store(register, register[i32(0)] + term, [0])

    # The results

    def _join(self) -> None:
        """Adds what the threads have, lanes first, then warps, and stores the results."""
        plan = self.plan
        distances = (16, 8, 4, 2, 1) if plan.row_major else (16, 8)
        for row in self.sums:
            for register in row:
                for distance in distances:
                    other = device.shuffle("xor", register[i32(0)], distance)
                    device.store(register, register[i32(0)] + device.let(other), [0])
        results = plan.width * plan.few
        kept = T.alloc_buffer((i32(plan.sharing * results),), self.dtype, scope="shared")
        own = device.let(self._own_place(results))
        leads = self.lane < i32(1 if plan.row_major else _SIDE_BY_SIDE)

        def publish() -> None:
            for number, row in enumerate(self.sums):
                for vector, register in enumerate(row):
                    device.store(kept, register[i32(0)], [own + i32(number * plan.few + vector)])

        device.only_if(leads, publish)
        T.evaluate(T.tvm_storage_sync("shared"))
        for first in range(0, results, _THREADS):
            at = device.let(self.thread + i32(first))
            whole = results % _THREADS == 0
            device.only_if(
                None if whole else at < i32(results), lambda at=at: self._finish(kept, at, results)
            )

    def _own_place(self, results: int) -> Expr:
        """Where the sums of a warp, or of a thread of its first row, begin."""
        plan = self.plan
        if plan.row_major:
            return self.warp * i32(_ROWS * plan.few)  # of other rows, or of the same ones
        return self.warp * i32(results) + self.lane * i32(plan.lanes * plan.few)

    def _finish(self, kept: Buffer, at: Expr, results: int) -> None:
        """Adds what the warps have of one result, and stores it."""
        plan = self.plan
        total = device.registers(1, self.dtype)
        device.store(total, kept[at], [0])
        for warp in range(1, plan.sharing):
            device.store(total, total[i32(0)] + kept[at + i32(warp * results)], [0])
        of_matrix = device.let(self.first + div(at, plan.few))
        vector = device.let(mod(at, plan.few))
        is_left = plan.vectors.mn_axes == plan.contraction.rows
        row, column = (vector, of_matrix) if is_left else (of_matrix, vector)
        inside = (of_matrix < i32(plan.rows)) if self._is_ragged else None
        device.only_if(inside, lambda: self._store(row, column, total))

    def _store(self, row: Expr, column: Expr, total: Buffer) -> None:
        if self.partial is None:
            self.output.write(self.batch, row, column, 1, lambda _: total[i32(0)])
            return
        extents = extents_of(self.plan.contraction)
        matrix = self.split_index * i32(extents.batch) + self.matrix
        place = (matrix * i32(extents.rows) + row) * i32(extents.columns) + column
        device.store(self.partial, total[i32(0)], [place])
