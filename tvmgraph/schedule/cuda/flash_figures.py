"""What the derivative of attention needs per query, besides its operands.

Expected on a device: result and cotangent are read once, at the speed of a copy.
"""

from __future__ import annotations

import math

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.schedule import emit
from tvmgraph.schedule.analysis.program import product
from tvmgraph.schedule.attention.plan import Operand, Problem
from tvmgraph.schedule.cuda import device
from tvmgraph.schedule.cuda.across import Team
from tvmgraph.schedule.cuda.device import both, div, i32, mod
from tvmgraph.schedule.types import Buffer, Expr

#: Figures are kept for a multiple of this many queries, so that tiles read whole ones.
ALIGNED = 128
_LANES, _THREADS = 8, 256


def write_figures(problem: Problem, cotangent: Operand) -> Buffer:
    """Writes the kernel.

    Args:
        problem: The attention.
        cotangent: That of its result.

    Returns:
        Two figures per query, [batch, heads, queries, 2], for a multiple of :data:`ALIGNED`
        queries: the logarithm to the base 2 of the sum of its exponentials, infinite for those
        that do not exist, so that their weights are zero; and the sum of result times cotangent.
    """
    query = problem.query
    length = -(-query.fixed("S") // ALIGNED) * ALIGNED
    shape = [query.fixed("B"), query.fixed("N"), length, 2]
    memory = emit.workspace([product(shape)], problem.dtype)
    # TVM shrinks what it allocates to what indices seem to touch: not through a view
    figures = T.decl_buffer([i32(extent) for extent in shape], problem.dtype, data=memory.data)
    _write(problem, cotangent, figures)
    return figures


def _write(problem: Problem, cotangent: Operand, figures: Buffer) -> None:
    out = problem.out
    lanes = max(2, 1 << (-(-out.fixed("D") // _LANES) - 1).bit_length())
    batch, heads, length = (int(extent) for extent in figures.shape[:3])
    teams = _THREADS // lanes
    assert problem.statistics is not None
    with device.launch(batch * heads * length // teams, _THREADS) as (block, thread):
        number = device.let(block * i32(teams) + div(thread, lanes))
        query = device.let(mod(number, length))
        entry = device.let(div(number, length * heads))
        head = device.let(mod(div(number, length), heads))
        first = device.let(mod(thread, lanes) * i32(_LANES))
        mean = device.registers(1, problem.dtype)
        device.store(mean, tirx.const(0, problem.dtype), [0])
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
        Team(lanes, mod(thread, lanes), teams).combine([mean], lambda a, b: [a[0] + b[0]])
        _keep_figures(problem.statistics, figures, (entry, head, query), exists, mean, first)


def _keep_figures(
    statistics: Buffer, figures: Buffer, at: tuple[Expr, Expr, Expr], exists: Expr, mean: Buffer,
    first: Expr,
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
        device.put_global(figures[(*at, i32(0))], [found[i32(i)] for i in range(2)])

    device.only_if(first < i32(1), keep)


def _read_vector(operand: Operand, at: tuple[Expr, Expr, Expr], first: Expr) -> Buffer:
    """Eight neighbouring elements of a row."""
    held = device.registers(_LANES, str(operand.buffer.dtype))
    if operand.layout[-1] == "D":
        with device.vector(_LANES) as lane:
            device.store(held, operand.buffer[operand.at(*at, first + lane)], [lane])
        return held
    for lane in range(_LANES):
        device.store(held, operand.buffer[operand.at(*at, first + i32(lane))], [lane])
    return held


__all__ = ["ALIGNED", "write_figures"]
