"""Row kernels: softmax, normalizations, and reductions along rows, in one pass.

A group of threads takes a row: a few lanes of a warp, a warp, or a block, so that each thread holds
at most ``_HELD`` elements of it in registers. Memory is read once and written once; what a later
stage needs again it has. Longer rows are read again from the second-level cache.

Where neighbours in memory belong to neighbouring rows (a softmax over the channels of an image),
neighbouring threads have neighbouring rows, and the members of a group lie a row of threads apart.

Expected on a device: the bytes of operands and results at the speed of a copy.

Reductions of few, long rows: several blocks share a row.

Every block reduces a stretch of the row, a second kernel combines their results in a fixed order.

Expected on a device: the bytes of the operands at the speed of a copy, and one more launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from tvm import tirx

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.body import Body
from tvmgraph.backend.cuda.kernels.device import VECTOR_BYTES, WARP, div, i32, mod
from tvmgraph.backend.cuda.kernels.iteration import (
    Iteration,
    Loops,
    Position,
    read_run,
    readable,
    run_within,
    same,
    uses,
)
from tvmgraph.backend.cuda.kernels.reduce_columns import (
    emit_combined,
    emit_reduction,
    fuse_reductions,
)
from tvmgraph.backend.cuda.kernels.reduction import Reduction, match_reduction
from tvmgraph.backend.cuda.kernels.thread_group import StridedThreadGroup, ThreadGroup
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import group_extent
from tvmgraph.backend.loop_ir.choice import choose
from tvmgraph.backend.loop_ir.fuse import fuse_sums
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import Stage, product, substitute
from tvmgraph.backend.loop_ir.rows import RowPlan, RowStage, row_dims
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, as_dtype
from tvmgraph.backend.table import Kernel, Refused
from tvmgraph.backend.target import GpuModel
from tvmgraph.machine.processor import CpuModel

IsOutput = Callable[[Buffer], bool]

#: Threads of a block of several thread groups, and of the largest group.
_BLOCK, _LARGEST = 256, 1024
#: Elements of a row that a thread wants, and that it can hold.
_WANTED, _HELD = 8, 32
#: Elements that are soon done, however few blocks share them.
_SMALL = 1 << 16


def fusion_model() -> CpuModel:
    """What decides which kernels are fused: rows whose intermediates a block can hold."""
    held = 4 * _LARGEST * _HELD
    registers = 32
    longest = _LARGEST // WARP * _HELD
    return CpuModel(
        VECTOR_BYTES, registers, held, 2 * held, 2 * held, threads=1, max_strided_row=longest
    )


@dataclass(frozen=True)
class Division:
    """How rows are divided among threads.

    Attributes:
        size: Elements of a row.
        lanes: Elements of a vector.
        group: Threads that share a row.
        groups: Rows of a block.
    """

    size: int
    lanes: int
    group: int
    groups: int

    @property
    def steps(self) -> int:
        """Vectors of a row that every thread takes."""
        return -(-self.size // (self.lanes * self.group))

    @property
    def is_held(self) -> bool:
        """Whether the threads can keep the row."""
        return self.steps * self.lanes <= _HELD


def divide(plan: RowPlan, model: GpuModel) -> Division:
    """The division for a plan whose rows are contiguous.

    Args:
        plan: The stages of a function row by row.
        model: The device, whose multiprocessors are to be kept busy.

    Returns:
        Elements of a row, lanes of a vector, threads of a row, and rows of a block.
    """
    size = max(product(axis.extent for axis in row.inner) for row in plan.stages)
    lanes = min(
        (_body(row).lanes for row in plan.stages if row.inner and _reads_much(row, size)), default=1
    )
    vectors = -(-size // lanes)
    wanted = choose("elements of a thread", _WANTED, (4, 8, 16, 32))
    group = 1
    while group < _LARGEST and group * wanted < size and group < vectors:
        group *= 2
    while group < _LARGEST and group >= WARP and plan.rows * group < model.sms * _BLOCK:
        if group >= vectors:
            break
        group *= 2
    groups = max(1, _BLOCK // group) if group <= WARP else 1
    while groups > 1 and groups * group > WARP and -(-plan.rows // groups) < model.sms:
        groups //= 2
    return Division(size, lanes, group, groups)


def _reads_much(row: RowStage, size: int) -> bool:
    return product(axis.extent for axis in row.inner) == size


def _body(row: RowStage) -> Body:
    reduction = match_reduction(row.stage) if row.stage.is_reduction else None
    return Body(reduction.terms if reduction else row.stage, row.inner, row.outer)


def divide_strided(plan: RowPlan) -> Division:
    """The division for a plan whose neighbouring rows are neighbours in memory.

    Args:
        plan: The stages of a function row by row.
    """
    size = max(product(axis.extent for axis in row.inner) for row in plan.stages)
    wanted = choose("elements of a thread", _WANTED, (4, 8, 16, 32))
    group = 1
    while group * WARP < _LARGEST and group * wanted < size:
        group *= 2
    return Division(size, 1, group, max(WARP, _BLOCK // group))


def _is_possible(plan: RowPlan, division: Division, is_output: IsOutput) -> bool:
    for row in plan.stages:
        if row.stage.is_reduction and match_reduction(row.stage) is None:
            return False
        size = product(axis.extent for axis in row.inner)
        keeps = [b for b in row.stage.buffers if not row.stage.is_reduction and row.inner]
        read_later = [b for b in keeps if any(o.stage.reads(b) for o in plan.stages)]
        if read_later and (not division.is_held or size != division.size):
            return False
        if not all(_follows(reader, row, b) for b in read_later for reader in plan.stages):
            return False
        if not all(map(is_output, keeps)) and not division.is_held:
            return False
    return True


def _follows(reader: RowStage, writer: RowStage, buffer: Buffer) -> bool:
    """Whether a stage reads an intermediate in the order in which the threads hold it."""
    for load in reader.stage.loads:
        if not load.source.same_as(buffer):
            continue
        dims = zip(row_dims(writer.stage), load.indices)
        held = [(dim, i) for dim, i in dims if any(dim is axis for axis in writer.inner)]
        if not len(held) == len(writer.inner) == len(reader.inner):
            return False
        for (dim, index), mine, theirs in zip(held, reader.inner, writer.inner):
            if dim is not theirs or not mine.var.same_as(index) or mine.extent != theirs.extent:
                return False
    return True


@dataclass
class _RowKernel:
    """Writes the stages of a plan for one row.

    Attributes:
        plan: The plan.
        division: How the row is divided.
        group: The threads that share it.
        row: Index of the row.
        stores: Condition under which results are stored, or None for always.
        is_output: Which buffers are results.
    """

    plan: RowPlan
    division: Division
    group: ThreadGroup | StridedThreadGroup
    row: Expr
    stores: Expr | None
    is_output: IsOutput
    _held: list[tuple[Buffer, list[Buffer]]] = field(default_factory=list)  # one per step
    _scalars: list[tuple[Buffer, Buffer]] = field(default_factory=list)
    _shared: list[_Operand] = field(default_factory=list)
    _outer: dict[int, Position] = field(default_factory=dict)

    def write(self) -> None:
        """Writes all stages."""
        if self.division.is_held:
            self._shared = _shared_operands(self.plan, self.division)
            for operand in self._shared:
                dtype = str(operand.load.source.dtype)
                lanes = self.division.lanes
                operand.steps += [device.registers(lanes, dtype) for _ in self._numbers]
        for row in self.plan.stages:
            if row.stage.is_reduction:
                self._reduce(row)
            elif row.inner:
                self._map(row)
            else:
                self._once(row)

    # ---- stages -----------------------------------------------------------------------------

    def _reduce(self, row: RowStage) -> None:
        reduction = match_reduction(row.stage)
        assert reduction is not None
        body = Body(reduction.terms, row.inner, row.outer)
        size, lanes = product(axis.extent for axis in row.inner), self.division.lanes
        accumulators = lanes if lanes & (lanes - 1) == 0 else 1
        held = reduction.registers(accumulators)

        def step(iteration: Iteration, number: int | None, count: int) -> None:
            self._fill(row, body, iteration, number, count)
            values = body.values(iteration, count, self._known(row, number))
            for lane, value in enumerate(values):
                reduction.add(held, lane % accumulators, value)

        self._steps(row, body, size, step)
        reduction.join(held, accumulators)
        self.group.combine(held, reduction.combine)
        results = reduction.finish([register[i32(0)] for register in held])
        self._keep(row, results)

    def _once(self, row: RowStage) -> None:
        """A value per row, which every thread of the thread group computes."""
        body = Body(row.stage, (), row.outer)
        values = body.values(self._iteration(row), 1, self._known(row, None))[0]
        self._keep(row, values)

    def _keep(self, row: RowStage, values: Sequence[Expr]) -> None:
        kept = []
        for buffer, value in zip(row.stage.buffers, values):
            register = device.registers(1, str(buffer.dtype))
            device.store(register, as_dtype(value, str(buffer.dtype)), [0])
            self._scalars.append((buffer, register))
            if self.is_output(buffer):
                kept.append((buffer, register))
        if not kept:
            return
        iteration = self._iteration(row)

        def store() -> None:
            for buffer, register in kept:
                element = iteration.element(buffer[tuple(row.stage.indices)])
                device.store(buffer, register[i32(0)], list(element.indices))

        device.only_if(device.both(self.stores, tirx.EQ(self.group.member, i32(0))), store)

    def _map(self, row: RowStage) -> None:
        body = Body(row.stage, row.inner, row.outer)
        size = product(axis.extent for axis in row.inner)
        kept = self._intermediates(row)

        def step(iteration: Iteration, number: int | None, count: int) -> None:
            self._fill(row, body, iteration, number, count)
            results = body.values(iteration, count, self._known(row, number))
            if kept and number is not None:
                for position, (buffer, steps) in enumerate(kept):
                    for lane, values in enumerate(results):
                        value = as_dtype(values[position], str(buffer.dtype))
                        device.store(steps[number], value, [lane])
                results = [[steps[number][i32(lane)] for _, steps in kept] for lane in range(count)]
            if self.is_output(row.stage.buffer):
                device.only_if(self.stores, lambda: body.store(iteration, results))

        self._steps(row, body, size, step)

    def _intermediates(self, row: RowStage) -> list[tuple[Buffer, list[Buffer]]]:
        """Registers for what later stages read."""
        if not any(o.stage.reads(b) for o in self.plan.stages for b in row.stage.buffers):
            return []
        kept = [
            (b, [device.registers(self.division.lanes, str(b.dtype)) for _ in self._numbers])
            for b in row.stage.buffers
        ]
        self._held += kept
        return kept

    # ---- elements ---------------------------------------------------------------------------

    @property
    def _numbers(self) -> range:
        return range(self.division.steps)

    def _steps(
        self,
        row: RowStage,
        body: Body,
        size: int,
        step: Callable[[Iteration, int | None, int], None],
    ) -> None:
        """Calls ``step`` for every vector of the row that the thread takes."""
        lanes, group = self.division.lanes, self.group.size
        loops = Loops(body.stage, row.inner)
        steps = -(-size // (lanes * group))

        def vector(first: Expr, number: int | None, last: bool) -> None:
            start = device.let(first * i32(group * lanes) + self.group.member * i32(lanes))

            def run(count: int) -> None:
                iteration = self._iteration(row, loops.at(start))
                step(iteration, number, count)

            if not last or size % (group * lanes) == 0:
                run(lanes)
                return
            run_within(size, start, lanes, run)

        if steps * lanes <= _HELD:
            for number in range(steps):
                vector(i32(number), number, number == steps - 1)
            return
        full = size // (group * lanes)
        with device.loop(full) as number:
            vector(number, None, False)
        if size % (group * lanes):
            vector(i32(full), None, True)

    def _iteration(self, row: RowStage, inner: Position | None = None) -> Iteration:
        if id(row) not in self._outer:
            self._outer[id(row)] = Loops(row.stage, row.outer).at(self.row)
        outer = self._outer[id(row)]
        return Iteration((outer,) if inner is None else (outer, inner))

    def _known(self, row: RowStage, number: int | None) -> Callable[[Load, int], Expr | None]:
        def known(load: Load, lane: int) -> Expr | None:
            for buffer, register in self._scalars:
                if load.source.same_as(buffer):
                    return register[i32(0)]
            for buffer, steps in self._held:
                if load.source.same_as(buffer) and number is not None:
                    return steps[number][i32(lane)]
            for operand in self._shared:
                if number is not None and operand.is_read(row, load):
                    return operand.steps[number][i32(lane)]
            return None

        return known

    def _fill(
        self, row: RowStage, body: Body, iteration: Iteration, number: int | None, count: int
    ) -> None:
        """Reads what this stage is the first one to need of the operands that several need."""
        for operand in self._shared:
            if number is None or operand.first is not row:
                continue
            wide = count == self.division.lanes and any(
                operand.load.same_as(load) for load in body.wide(count)
            )
            if wide:
                read_run(operand.load, iteration, count, operand.steps[number])
                continue
            for lane in range(count):
                element = iteration.next(lane).element(operand.load)
                device.store(operand.steps[number], element, [lane])


@dataclass
class _Operand:
    """An element of every position of a row that several stages read.

    Attributes:
        first: The first of them.
        load: How it reads the element.
        readers: All of them.
        steps: The registers of every vector.
    """

    first: RowStage
    load: Load
    readers: list[RowStage]
    steps: list[Buffer] = field(default_factory=list)

    def is_read(self, row: RowStage, load: Load) -> bool:
        """Whether a stage's read is of this element."""
        return any(row is reader for reader in self.readers) and same(
            _renamed(load, row, self.first), self.load
        )


def _shared_operands(plan: RowPlan, division: Division) -> list[_Operand]:
    found: list[_Operand] = []
    for row in plan.stages:
        if product(axis.extent for axis in row.inner) != division.size:
            continue
        for load in readable(row.stage):
            written = plan.writer(load.source) is not None
            if written or not any(uses(i, [a.var for a in row.inner]) for i in load.indices):
                continue
            known = next((o for o in found if _fits(o, row, load)), None)
            if known is None:
                found.append(_Operand(row, load, [row]))
            else:
                known.readers.append(row)
    return [operand for operand in found if len(operand.readers) > 1]


def _fits(operand: _Operand, row: RowStage, load: Load) -> bool:
    extents = [[a.extent for a in r.inner] for r in (operand.first, row)]
    return extents[0] == extents[1] and same(_renamed(load, row, operand.first), operand.load)


def _renamed(load: Load, row: RowStage, other: RowStage) -> Load:
    """A read in terms of the axes of another stage of the plan."""
    pairs = zip((*row.outer, *row.inner), (*other.outer, *other.inner))
    found = substitute(load, {mine.var: theirs.var for mine, theirs in pairs})
    assert isinstance(found, Load)
    return found


def _match(nest: Nest, model: GpuModel) -> tuple[RowPlan, Division, IsOutput] | Refused:
    plan = nest.rows
    if plan is None or not plan.along_rows or not plan.rows:
        return Refused("no reductions of rows that are contiguous")
    if nest.stage is None and any(
        split_count(row.stage, model) > 1 for row in plan.stages if row.stage.is_reduction
    ):
        return Refused("too few rows: stages one by one")
    division = divide(plan, model)
    if not _is_possible(plan, division, nest.is_output):
        return Refused("threads cannot hold what later stages read")
    return plan, division, nest.is_output


def _emit(
    found: tuple[RowPlan, Division, IsOutput], division: Division, *, strided: bool = False
) -> None:
    """Writes a kernel whose blocks take ``division.groups`` rows each.

    Neighbouring threads share a row; if ``strided``, they have neighbouring rows.
    """
    plan, _, is_output = found
    size, groups = division.group, division.groups
    with device.launch(-(-plan.rows // groups), size * groups) as (block, thread):
        number = device.let(mod(thread, groups)) if strided else div(thread, size)
        row = device.let(block * i32(groups) + number) if groups > 1 else block
        whole = plan.rows % groups == 0
        # A group that has no row of its own takes part in the exchanges of its warp all the same.
        used = row if whole else device.let(tirx.min(row, i32(plan.rows - 1)))
        stores = None if whole else row < i32(plan.rows)
        if strided:
            group = StridedThreadGroup(size, device.let(div(thread, groups)), groups, number)
        else:
            member = mod(thread, size) if groups > 1 else thread
            group = ThreadGroup(size, device.let(member), groups)
        _RowKernel(plan, division, group, used, stores, is_output).write()


def shares_columns(plan: RowPlan | None) -> TypeGuard[RowPlan]:
    """Whether several stages go through the same rows, whose elements lie apart in memory.

    Args:
        plan: The stages of a function row by row, or None.
    """
    return plan is not None and not plan.along_rows and plan.rows > 0 and len(plan.stages) > 1


def _match_strided(nest: Nest, model: GpuModel) -> tuple[RowPlan, Division, IsOutput] | Refused:
    plan = nest.rows
    if not shares_columns(plan):
        return Refused("no several stages over rows whose elements lie apart")
    division = divide_strided(plan)
    blocks = -(-plan.rows // division.groups)
    is_enough = blocks * 2 >= model.sms or plan.rows * division.size <= _SMALL
    if not division.is_held or not is_enough:
        return Refused("rows are long or few: reductions one by one read them in wider vectors")
    if not _is_possible(plan, division, nest.is_output):
        return Refused("threads cannot hold what later stages read")
    return plan, division, nest.is_output


def _division(found: tuple[RowPlan, Division, IsOutput], _model: GpuModel) -> Division:
    return found[1]


def _match_together(nest: Nest, _model: GpuModel) -> Reduction | Refused:
    plan = nest.rows
    if not shares_columns(plan) or nest.loops is None:
        return Refused("no several stages over rows whose elements lie apart")
    lengths = [group_extent(row.inner) for row in plan.stages if row.stage.is_reduction]
    if not lengths or max(lengths) <= fusion_model().max_strided_row:
        return Refused("a block can hold the rows")
    return fuse_reductions(fuse_sums(nest.loops) or ())


TOGETHER = Kernel(
    "reduce_columns_fused", _match_together,
    lambda reduction, _plan, writer: emit_reduction(reduction, writer.model),
    "several sums of long columns that read their operands once",
)  # fmt: skip
KERNEL = Kernel(
    "reduce_rows", _match, lambda found, division, _writer: _emit(found, division),
    "reductions and what is built on them, rows are contiguous",
    _division, ("blocks per multiprocessor", "elements of a thread"),
)  # fmt: skip
STRIDED = Kernel(
    "reduce_rows_strided", _match_strided,
    lambda found, division, _writer: _emit(found, division, strided=True),
    "reductions and what is built on them, neighbouring rows are neighbours in memory",
    _division, ("elements of a thread",),
)  # fmt: skip


# ---- few long rows ------------------------------------------------------------------------------


_THREADS = 256
#: Vectors of a thread: more blocks than this leaves no work for the second kernel to be small.
_MIN_VECTORS = 4
#: Blocks per multiprocessor that together keep memory busy.
_BLOCKS_PER_SM = 8


def split_count(stage: Stage, model: GpuModel) -> int:
    """How many blocks should share a row of a reduction; 1 if a block should have one alone.

    Args:
        stage: A reduction along contiguous rows.
        model: The device, whose multiprocessors are to be kept busy.
    """
    size = product(axis.extent for axis in stage.reduce)
    wanted = model.sms * choose("blocks per multiprocessor", _BLOCKS_PER_SM, (2, 4, 8, 16))
    if stage.points * 2 >= model.sms or size < 4 * _THREADS * _MIN_VECTORS:
        return 1
    return max(1, min(-(-wanted // stage.points), size // (_THREADS * _MIN_VECTORS)))


def _write(stage: Stage, reduction: Reduction, splits: int) -> None:
    """Writes the kernels of a reduction whose rows ``splits`` blocks share."""
    body = Body(reduction.terms, stage.reduce, stage.axes)
    rows, steps, lanes = Loops(body.stage, stage.axes), Loops(body.stage, stage.reduce), body.lanes
    size = product(axis.extent for axis in stage.reduce)
    turns = -(-size // (splits * _THREADS * lanes))
    stretch = turns * _THREADS * lanes
    splits = -(-size // stretch)
    partial = [emit.workspace([splits * stage.points], dtype) for dtype in reduction.dtypes]
    with device.launch(splits * stage.points, _THREADS) as (block, thread):
        row = device.let(mod(block, stage.points))
        split = device.let(device.wide(div(block, stage.points), size))
        held = reduction.registers(lanes)
        start = device.let(split * i32(stretch) + thread * i32(lanes))
        with device.loop(turns) as turn:
            first = device.let(start + turn * i32(_THREADS * lanes))

            def add(count: int) -> None:
                iteration = Iteration((rows.at(row), steps.at(first)))
                for lane, values in enumerate(body.values(iteration, count)):
                    reduction.add(held, lane, values)

            run_within(size, first, lanes, add)
        reduction.join(held, lanes)
        ThreadGroup(_THREADS, thread).combine(held, reduction.combine)

        def store() -> None:
            for memory, register in zip(partial, held):
                device.store(memory, register[i32(0)], [split * i32(stage.points) + row])

        device.only_if(thread < i32(1), store)
    emit_combined(stage, reduction, partial, splits)


def _match_long(nest: Nest, model: GpuModel) -> tuple[Stage, Reduction, int] | Refused:
    if nest.stage is None or nest.rows is None or not nest.rows.along_rows:
        return Refused("no single reduction of rows that are contiguous")
    splits = split_count(nest.stage, model)
    if splits < 2:
        return Refused("there are rows enough for the blocks")
    reduction = match_reduction(nest.stage)
    if reduction is None:
        return Refused("what is reduced cannot be combined from partial results")
    return nest.stage, reduction, splits


LONG = Kernel(
    "reduce_long_rows", _match_long, lambda found, _plan, _writer: _write(*found),
    "a reduction of few long rows, each shared by several blocks",
    lambda found, _model: f"splits={found[2]}", ("blocks per multiprocessor",),
)  # fmt: skip
