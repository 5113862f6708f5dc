"""Asking memory for the next row while one is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import access, dtype_bytes, group_extent
from tvmgraph.backend.loop_ir.point import Bound, bind_group
from tvmgraph.backend.loop_ir.program import Axis, substitute
from tvmgraph.backend.loop_ir.rows import RowStage
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load
from tvmgraph.backend.walks import elements

#: Bytes between what is read and what is asked for in a single pass: a page.
_AHEAD = 4096


@dataclass(frozen=True)
class Fetch:
    """What a stage asks for early.

    Attributes:
        stage: Name of the stage.
        load: What it reads itself.
        share: Which share of the next row it asks for, and of how many; None for what is a page
            further in its own row.
    """

    stage: str
    load: Load
    share: tuple[int, int] | None


def plan_fetches(stages: Sequence[RowStage], kept: Sequence[Buffer], writes: bool) -> list[Fetch]:
    """Decides which pass asks for which share of the next row.

    The first pass over a row waits for memory. Later ones over the same elements find them in the
    cache; meanwhile those of the next row can come. Best is a pass that computes much, else the
    last one if it writes, since memory reads and writes at the same time as fast as it does
    either, else every pass asks for a share. A single pass asks for what lies a page ahead, where
    the processor itself does not look.

    Args:
        stages: What is computed.
        kept: Intermediates in scratch buffers.
        writes: Whether rows of results are written.
    """
    passes: dict[Buffer, list[tuple[RowStage, Load]]] = {}
    for row in stages:
        rows = {x.source: x for x in row.stage.loads if _is_row_of(x, row, kept)}
        for buffer, load in rows.items():
            passes.setdefault(buffer, []).append((row, load))
    found: list[Fetch] = []
    for every in passes.values():
        computing = [which for which in every[1:] if which[0].stage.has_calls]
        asking = computing[:1] or (every[-1:] if writes else every)
        for share, (row, load) in enumerate(asking):
            if len(every) > 1:
                found.append(Fetch(row.stage.name, load, (share, len(asking))))
            elif _is_contiguous(load, row):
                found.append(Fetch(row.stage.name, load, None))
    return found


def write_fetches(
    fetches: Sequence[Fetch], row: RowStage, bound: Bound, last: Sequence[Axis], at: Expr
) -> None:
    """Asks for what was planned, at position ``at`` of the loop over the axes ``last``.

    Args:
        fetches: What was planned.
        row: The stage being written.
        bound: Values of all other axes.
        last: The merged axes of the innermost loop.
        at: Where in it.
    """
    for fetch in fetches:
        if fetch.stage != row.stage.name:
            continue
        position, here = at, dict(bound)
        if fetch.share is None:
            position = at + _AHEAD // dtype_bytes(str(fetch.load.source.dtype))
        else:
            share, count = fetch.share
            if count > 1:
                position = tirx.floordiv(at, emit.i64(count)) + group_extent(last) * share // count
            here[row.outer[-1].var] += 1
        here |= bind_group(last, position)
        emit.prefetch(fetch.load.source, [substitute(index, here) for index in fetch.load.indices])


def _is_row_of(load: Load, row: RowStage, kept: Sequence[Buffer]) -> bool:
    """Whether a stage reads a row of an operand, not of an intermediate."""
    own = (*kept, *row.stage.buffers)
    if any(load.source.same_as(buffer) for buffer in own) or not row.outer:
        return False
    used = access(load.source, elements(load.indices), [*row.outer, *row.inner]).used
    return used[len(row.outer) - 1] and any(used[len(row.outer) :])


def _is_contiguous(load: Load, row: RowStage) -> bool:
    strides = access(load.source, elements(load.indices), row.inner).strides
    return strides is not None and strides[-1] == 1
