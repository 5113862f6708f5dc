"""Elementwise, broadcast, gather and layout kernels: one output element from any input elements.

A thread computes vectors of 16 bytes; neighbouring threads have neighbouring vectors. Large
kernels give every thread two of them, so that twice as many reads are under way.

Expected on a device: the bytes of operands and results at the speed of a copy.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import tirx

from tvmgraph.backend.cpu.kernels.elementwise.repeated import STEPS, write_repeated
from tvmgraph.backend.cpu.kernels.reduce.search import Search
from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.body import Body
from tvmgraph.backend.cuda.kernels.device import i32
from tvmgraph.backend.cuda.kernels.iteration import Iteration, Loops
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.choice import choose
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import Stage
from tvmgraph.backend.loop_ir.types import Expr, Func, dtype_of
from tvmgraph.backend.table import Kernel, Refused
from tvmgraph.backend.target import GpuModel

THREADS = 256
#: From this many blocks per multiprocessor on a thread computes several vectors.
_MANY_BLOCKS = 32
_VECTORS = 2


def emit_elementwise(stage: Stage, model: GpuModel) -> None:
    """Writes the kernel of an elementwise stage.

    Args:
        stage: An elementwise stage of any number of results.
        model: The device, whose multiprocessors say when a thread gets two vectors.
    """
    body, loops = Body(stage, stage.axes), Loops(stage, stage.axes)
    lanes = body.lanes
    units = -(-loops.extent // lanes)
    vectors = _VECTORS if units >= _MANY_BLOCKS * model.sms * THREADS else 1
    vectors = choose("vectors of a thread", vectors, (1, 2, 4))
    threads = min(THREADS, -(-units // 32) * 32)
    per_block = threads * vectors
    with device.launch(-(-units // per_block), threads) as (block, thread):
        block = device.wide(block, loops.extent)
        for turn in range(vectors):
            unit = device.let(block * i32(per_block) + i32(turn * threads) + thread)
            inside = unit < tirx.const(units, dtype_of(unit)) if units % per_block else None
            device.only_if(inside, lambda unit=unit: _unit(body, loops, unit, lanes))


def _unit(body: Body, loops: Loops, unit: Expr, lanes: int) -> None:
    start = device.let(unit * i32(lanes)) if lanes > 1 else unit

    def run(count: int) -> Callable[[], None]:
        def write() -> None:
            iteration = Iteration((loops.at(start),))
            body.store(iteration, body.values(iteration, count))

        return write

    rest = loops.extent % lanes
    if not rest:
        run(lanes)()
        return
    extent = tirx.const(loops.extent, dtype_of(start))
    emit.when(start + i32(lanes) <= extent, run(lanes), run(rest))


def _match(nest: Nest, _model: GpuModel) -> Stage | Refused:
    if nest.stage is None or nest.stage.is_reduction:
        return Refused("no single elementwise stage")
    return nest.stage


KERNEL = Kernel(
    "elementwise", _match, lambda stage, _plan, writer: emit_elementwise(stage, writer.model),
    "elementwise, broadcast, gather and layout", knobs=("vectors of a thread",),
)  # fmt: skip


# ---- Kernels whose elements take steps of their own: integer powers, common divisors, bisection
# A thread computes one element as a vector of one lane does on a processor.

_THREADS = 256


def emit_repeated(func: Func, settings: str, _model: GpuModel) -> None:
    """Writes a function of :data:`STEPS`.

    Args:
        func: The function that asks for the kernel; its last parameter is the result.
        settings: Name of the steps.
    """
    *operands, target = map(emit.flat, func.params)

    def element(at: Expr) -> None:
        write_repeated(STEPS[str(settings)], operands, target, at, 1, device.registers)

    device.each_thread(emit.size_of(func.params[-1]), _THREADS, element)


def emit_search(func: Func, settings: str, _model: GpuModel) -> None:
    """Writes a search in sorted rows.

    Args:
        func: The function that asks for the kernel.
        settings: How rows are sorted and what is looked for.
    """
    search = Search.of(func, settings)
    device.each_thread(search.count, _THREADS, lambda at: search.write(at, 1, device.registers))
