"""What the derivative of attention needs per query, besides its operands.

Expected on a device: result and cotangent are read once, at the speed of a copy.
"""

from __future__ import annotations

import math

from tvm import tirx

from tvmgraph.backend.attention import Operand, Problem
from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import both, div, i32, mod
from tvmgraph.backend.cuda.kernels.thread_group import ThreadGroup
from tvmgraph.backend.loop_ir.types import Buffer, Expr

#: Figures are kept for a multiple of this many queries, so that tiles read whole ones.
ALIGNED = 128
_LANES, _THREADS = 8, 256


def write_row_statistics(problem: Problem, cotangent: Operand) -> Buffer:
    """Writes the kernel.

    Args:
        problem: The attention.
        cotangent: That of its result.

    Returns:
        Two numbers per query, [batch, heads, queries, 2], for a multiple of :data:`ALIGNED`
        queries: the logarithm to the base 2 of the sum of its exponentials, infinite for those
        that do not exist, so that their weights are zero; and the sum of result times cotangent.
    """
    query = problem.query
    length = -(-query.fixed("S") // ALIGNED) * ALIGNED
    shape = [query.fixed("B"), query.fixed("N"), length, 2]
    row_statistics = device.device_memory(shape, problem.dtype)
    _write(problem, cotangent, row_statistics)
    return row_statistics


def _write(problem: Problem, cotangent: Operand, row_statistics: Buffer) -> None:
    out = problem.out
    lanes = max(2, 1 << (-(-out.fixed("D") // _LANES) - 1).bit_length())
    batch, heads, length = (int(extent) for extent in row_statistics.shape[:3])
    groups = _THREADS // lanes
    assert problem.statistics is not None
    with device.launch(batch * heads * length // groups, _THREADS) as (block, thread):
        number = device.let(block * i32(groups) + div(thread, lanes))
        query = device.let(mod(number, length))
        entry = device.let(div(number, length * heads))
        head = device.let(mod(div(number, length), heads))
        first = device.let(mod(thread, lanes) * i32(_LANES))
        mean = device.fill(device.registers(1, problem.dtype))
        exists = query < i32(problem.query.fixed("S"))
        inside = (first < i32(out.fixed("D"))) if out.fixed("D") != lanes * _LANES else None

        def add() -> None:
            left, right = (
                _read_vector(side, (entry, head, query), first) for side in (out, cotangent)
            )
            for i in range(_LANES):
                one, other = (tirx.Cast(problem.dtype, side[i32(i)]) for side in (left, right))
                device.store(mean, mean[i32(0)] + one * other, [0])

        device.only_if(both(exists, inside), add)
        ThreadGroup(lanes, mod(thread, lanes), groups).combine([mean], lambda a, b: [a[0] + b[0]])
        _keep_row_statistics(
            problem.statistics, row_statistics, (entry, head, query), exists, mean, first
        )


def _keep_row_statistics(
    statistics: Buffer, row_statistics: Buffer, at: tuple[Expr, Expr, Expr], exists: Expr,
    mean: Buffer, first: Expr,
) -> None:  # fmt: skip
    """Stores what one query needs, by the first of its lanes."""

    def keep() -> None:
        found = device.registers(2, "float32")
        device.store(found, tirx.const(math.inf, "float32"), [0])

        def read() -> None:
            logarithm = tirx.log2(statistics[(*at, i32(1))])
            top = statistics[(*at, i32(0))] * tirx.const(math.log2(math.e), "float32")
            device.store(found, top - logarithm, [0])

        device.only_if(exists, read)
        device.store(found, mean[i32(0)], [1])
        device.put_global(row_statistics[(*at, i32(0))], [found[i32(i)] for i in range(2)])

    device.only_if(first < i32(1), keep)


def _read_vector(operand: Operand, at: tuple[Expr, Expr, Expr], first: Expr) -> Buffer:
    """Eight neighbouring elements of a row."""
    held = device.registers(_LANES, str(operand.buffer.dtype))

    def read(lane: Expr) -> None:
        device.store(held, operand.buffer[operand.at(*at, first + lane)], [lane])

    if operand.layout[-1] == "D":
        with device.vector(_LANES) as lane:
            read(lane)
    else:
        for number in range(_LANES):
            read(i32(number))
    return held
