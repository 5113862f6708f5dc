"""Kernels whose elements take steps of their own: integer powers, common divisors, bisection.

A thread computes one element as a vector of one lane does on a processor.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import tirx

from tvmgraph.backend.cpu.kernels.elementwise.repeated import STEPS, write_repeated
from tvmgraph.backend.cpu.kernels.reduce.search import Search
from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import i32
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.types import Expr, Func
from tvmgraph.backend.target import GpuModel

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

    _for_each(emit.size_of(func.params[-1]), element)


def emit_search(func: Func, settings: str, _model: GpuModel) -> None:
    """Writes a search in sorted rows.

    Args:
        func: The function that asks for the kernel.
        settings: How rows are sorted and what is looked for.
    """
    search = Search.of(func, settings)
    _for_each(search.count, lambda at: search.write(at, 1, device.registers))


def _for_each(count: Expr, body: Callable[[Expr], None]) -> None:
    """Runs a body in one thread for each element."""
    blocks = tirx.Cast("int32", tirx.floordiv(count + (_THREADS - 1), emit.i64(_THREADS)))
    with device.launch(blocks, _THREADS) as (block, thread):
        at = device.let(tirx.Cast("int64", block * i32(_THREADS) + thread))
        device.only_if(at < count, lambda: body(at))
