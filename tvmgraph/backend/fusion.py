"""Which kernels may become one: those that run over the same rows or the same elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

from tvmgraph.backend.cpu.kernels.conv.depthwise import is_depthwise
from tvmgraph.backend.cpu.kernels.reduce.kernel import wants_split
from tvmgraph.backend.loop_ir.access import group_extent
from tvmgraph.backend.loop_ir.contraction import is_window, match_contraction, prepare_first
from tvmgraph.backend.loop_ir.fuse import extents_of, fuse_sums, visits_same_points
from tvmgraph.backend.loop_ir.inline import has_identity_store, inline
from tvmgraph.backend.loop_ir.program import (
    Program,
    parse,
    product,
    rename_buffers,
    static_shape,
)
from tvmgraph.backend.loop_ir.rows import plan_rows
from tvmgraph.backend.loop_ir.types import NAMED, SCHEDULED, Buffer, Func
from tvmgraph.machine.processor import CpuModel

#: Sums that one kernel computes at most: a block keeps a vector of each per thread.
_MOST_SUMS = 4
#: Reductions over fewer elements are windows, which have kernels of their own.
_SHORTEST_ROW = 16


@dataclass(frozen=True)
class Shape:
    """What a kernel runs over.

    Attributes:
        rows: Extents of the rows, or ``None`` for an elementwise kernel.
        axes: Extents of an elementwise kernel's loops, or ``None`` where stages differ in them, as
            when something is computed once per row first.
        points: Elements of its largest output.
        columns: Extents of results and of what they are summed over, of a kernel that does nothing
            else, whose results lie side by side.
    """

    rows: tuple[int, ...] | None
    axes: tuple[int, ...] | None
    points: int
    columns: tuple[tuple[int, ...], tuple[int, ...]] | None = None

    def may_fuse(self, other: Shape) -> bool:
        """Whether it is worth trying to fuse two kernels.

        Args:
            other: What the other kernel runs over.
        """
        if self.columns is not None or other.columns is not None:
            return self.columns == other.columns
        if self.rows is not None and other.rows is not None:
            return self.rows == other.rows
        if self.rows is None and other.rows is None:
            return self.axes is not None and other.axes is not None and self.points == other.points
        rows = product((self.rows or ()) + (other.rows or ()))
        points = self.points if self.rows is None else other.points
        return rows > 0 and points % rows == 0


def shape_of(program: Program, model: CpuModel) -> Shape | None:
    """What a kernel runs over, or None when it cannot be fused with others.

    Args:
        program: The kernel's stages, from :func:`read`.
        model: The processor, by which rows are planned.

    Returns:
        The extents of its rows, columns or elements: kernels of equal ones may be fused.
    """
    if _is_contraction(program):
        return None
    return _row_shape(program, model) or _point_shape(program) or _mixed_shape(program)


def fused_shape(program: Program, members: tuple[Shape, ...], model: CpuModel) -> Shape | None:
    """What a fused kernel runs over, or None if it would not run in one pass over memory.

    Args:
        program: The stages that fusion would make, from :func:`merged`.
        members: What the kernels that it is made of run over.
        model: The processor, by which rows are planned.
    """
    if any(member.columns is not None for member in members):
        return _row_shape(program, model)
    rows = next((member.rows for member in members if member.rows is not None), None)
    if rows is None:
        return _point_shape(program)
    shape = _row_shape(program, model)
    return shape if shape is not None and shape.rows == rows else None


def read(func: Func) -> Program | None:
    """The stages of a kernel, or None where it cannot be fused with others.

    Args:
        func: A kernel as TVM's own fusion leaves it.
    """
    if func.attrs and (SCHEDULED in func.attrs or NAMED in func.attrs):
        return None
    parsed = parse(func)
    if parsed is None or any(0 in (static_shape(p) or ()) for p in func.params):
        return None
    return merged(parsed)


def instance(program: Program, buffers: Sequence[Buffer]) -> Program:
    """A kernel's stages at one of its calls.

    Args:
        program: The stages of the kernel.
        buffers: What the call passes, one for each of the kernel's parameters.
    """
    new = dict(zip(map(hash, program.params), buffers, strict=True))
    for buffer in (b for stage in program.stages for b in stage.buffers):
        if hash(buffer) not in new:
            new[hash(buffer)] = another(buffer)
    return Program(tuple(buffers), tuple(rename_buffers(stage, new) for stage in program.stages))


def another(buffer: Buffer) -> Buffer:
    """A buffer like another one.

    Args:
        buffer: The other one.
    """
    return tirx.Var(buffer.name, buffer.ty)


def merged(program: Program) -> Program | None:
    """The stages of one kernel, or None where no kernel knows them.

    Args:
        program: The stages of one call or of several, in the order they run.
    """
    found = inline(program)
    return found if all(map(has_identity_store, found.stages)) else None


def _is_contraction(program: Program) -> bool:
    contraction = match_contraction(prepare_first(program))
    if contraction is None:
        return False
    if not contraction.columns:
        return is_depthwise(contraction)
    return bool(contraction.rows) or not is_window(contraction)


def _row_shape(program: Program, model: CpuModel) -> Shape | None:
    plan = plan_rows(program.stages)
    if plan is None or wants_split(plan, model):
        return None
    lengths = [group_extent(row.inner) for row in plan.stages if row.stage.is_reduction]
    if not plan.along_rows and max(lengths) > model.max_strided_row:
        return _column_shape(program) if model.max_strided_row else None
    shortest = min(lengths)
    kept = sum(
        4 * group_extent(row.inner)
        for row in plan.stages
        if not row.stage.is_reduction and not program.is_parameter(row.stage.buffer)
    )
    if shortest < _SHORTEST_ROW or kept > model.l2_bytes // 2:
        return None
    return Shape(plan.extents, (), max(stage.points for stage in program.stages))


def _column_shape(program: Program) -> Shape | None:
    """Sums of columns that are too long to be held."""
    sums = fuse_sums(program)
    if sums is None or len(sums) > _MOST_SUMS:
        return None
    return Shape(None, None, sums[0].points, (extents_of(sums[0].axes), extents_of(sums[0].reduce)))


def _point_shape(program: Program) -> Shape | None:
    if not visits_same_points(program):
        return None
    first = program.stages[0]
    return Shape(None, extents_of(first.axes), first.points)


def _mixed_shape(program: Program) -> Shape | None:
    """An elementwise kernel whose stages run over different loops: rows may take it in."""
    if any(stage.is_reduction for stage in program.stages):
        return None
    return Shape(None, None, max(stage.points for stage in program.stages))
