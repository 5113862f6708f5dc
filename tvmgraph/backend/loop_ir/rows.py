"""Recognizes functions that treat every row of a tensor alike: softmax, layer_norm, sums.

All stages of such a function share the loops over rows (the *outer* axes, those of the first
reduction); inside of a row some loop over its elements (*inner* axes). Executing the stages row by
row keeps every intermediate in registers or in the nearest cache.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvmgraph.backend.loop_ir.access import access, accesses, groups
from tvmgraph.backend.loop_ir.inline import has_identity_store
from tvmgraph.backend.loop_ir.program import Axis, Stage, product
from tvmgraph.backend.loop_ir.types import Buffer, Load
from tvmgraph.backend.walks import elements

#: Whether a buffer is a result of the kernel.
IsOutput = Callable[[Buffer], bool]
#: A reduction over at most this many elements is a window ...
_MAX_WINDOW = 128
#: ... if neighbouring rows are this close to each other.
_MAX_WINDOW_STRIDE = 4


@dataclass(frozen=True)
class RowStage:
    """A stage with its axes told apart.

    Attributes:
        stage: The stage.
        outer: The axes over rows, in the order of the plan's rows.
        inner: The other axes: reduction loops, or loops over the elements of a row.
    """

    stage: Stage
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]

    @functools.cached_property
    def loops(self) -> list[list[Axis]]:
        """The inner axes in groups that are one loop each, merged where memory allows."""
        return groups(self.stage, self.inner, accesses(self.stage, self.inner)) or [[]]


@dataclass(frozen=True)
class RowPlan:
    """Stages that can run row by row.

    Attributes:
        stages: In execution order.
        extents: Extents of the outer axes.
        along_rows: Whether memory is contiguous along the inner axes; otherwise it is contiguous
            along the last outer axis, and vectors hold elements of neighbouring rows.
    """

    stages: tuple[RowStage, ...]
    extents: tuple[int, ...]
    along_rows: bool

    @property
    def rows(self) -> int:
        """Number of rows."""
        return product(self.extents)

    @property
    def work(self) -> int:
        """Iterations of all stages."""
        return sum(row.stage.work for row in self.stages)

    def writer(self, buffer: Buffer) -> RowStage | None:
        """The stage that computes ``buffer``.

        Args:
            buffer: A buffer that a stage of the plan writes.
        """
        return next(
            (row for row in self.stages if any(b.same_as(buffer) for b in row.stage.buffers)), None
        )


def plan_rows(stages: Sequence[Stage]) -> RowPlan | None:
    """A plan for ``stages``, or None when they do not share their rows.

    Args:
        stages: The stages of a function, in the order they run.

    Returns:
        Which loops run over rows and which inside of one; None where a stage reads another row than
        its own, or has no reduction to take the rows from.
    """
    anchor = next((stage for stage in stages if stage.is_reduction), None)
    if anchor is None or not all(has_identity_store(stage) for stage in stages):
        return None
    known: list[RowStage] = []
    for stage in stages:
        row = _row_stage(stage, anchor, known, stages)
        if row is None:
            return None
        known.append(row)
    if not _rows_are_independent(known):
        return None
    return RowPlan(tuple(known), tuple(a.extent for a in anchor.axes), _along_rows(known))


def _row_stage(
    stage: Stage, anchor: Stage, known: Sequence[RowStage], stages: Sequence[Stage]
) -> RowStage | None:
    """Tells the axes of a stage apart, from its own form or from what it reads or is read by."""
    if stage.is_reduction:
        same = [a.extent for a in stage.axes] == [a.extent for a in anchor.axes]
        return RowStage(stage, stage.axes, stage.reduce) if same else None
    outer = _outer_from_reads(stage, known)
    if outer is None and not any(row.stage is anchor for row in known):
        outer = _outer_from_reader(stage, anchor)
    if outer is None or [a.extent for a in outer] != [a.extent for a in anchor.axes]:
        return None
    inner = tuple(axis for axis in stage.axes if axis not in outer)
    return RowStage(stage, outer, inner)


def _outer_from_reads(stage: Stage, known: Sequence[RowStage]) -> tuple[Axis, ...] | None:
    for row in known:
        for load in stage.loads:
            if not any(load.source.same_as(buffer) for buffer in row.stage.buffers):
                continue
            axes = [_axis_of(index, stage.axes) for index in _outer_indices(row, load)]
            found = [axis for axis in axes if axis is not None]
            if len(found) == len(axes) == len(set(id(axis) for axis in found)):
                return tuple(found)
    return None


def _outer_from_reader(stage: Stage, anchor: Stage) -> tuple[Axis, ...] | None:
    """Which axes of an early stage are the anchor's rows, when the anchor reads it at (rows, k)."""
    for load in anchor.loads:
        if not load.source.same_as(stage.buffer):
            continue
        by_axis = dict(zip(row_dims(stage), load.indices))
        outer = [
            next((axis for axis, index in by_axis.items() if row.var.same_as(index)), None)
            for row in anchor.axes
        ]
        if all(axis is not None for axis in outer):
            return tuple(axis for axis in outer if axis is not None)
    return None


def row_dims(stage: Stage) -> list[Axis | None]:
    """The axis that runs over every dimension of the stage's buffer; None for extent 1.

    Args:
        stage: A loop nest whose every index is a loop variable or 0.
    """
    return [_axis_of(index, stage.axes) for index in stage.indices]


def _outer_indices(row: RowStage, load: Load) -> list[object]:
    """The indices of a read of ``row``'s buffer, in the order of the plan's rows."""
    by_axis = dict(zip((id(axis) for axis in row_dims(row.stage)), load.indices))
    return [by_axis[id(axis)] for axis in row.outer]


def _axis_of(index: object, axes: Sequence[Axis]) -> Axis | None:
    return next((axis for axis in axes if axis.var.same_as(index)), None)


def _rows_are_independent(stages: Sequence[RowStage]) -> bool:
    """Whether every stage reads intermediates of its own row only, computed before it."""
    for position, row in enumerate(stages):
        for load in row.stage.loads:
            writer = next(
                (w for w in stages if any(load.source.same_as(b) for b in w.stage.buffers)), None
            )
            if writer is None:
                continue
            if writer is not row and not any(writer is w for w in stages[:position]):
                return False
            indices = _outer_indices(writer, load)
            if not all(axis.var.same_as(index) for axis, index in zip(row.outer, indices)):
                return False
    return True


def _along_rows(stages: Sequence[RowStage]) -> bool:
    """Whether vectors should run along the rows.

    Chosen is the direction in which fewer reads have to gather scattered elements. Small windows
    (pooling, depthwise convolution) over neighbouring positions are the exception: their few
    elements would leave most lanes of a row empty.
    """
    own = [buffer for row in stages for buffer in row.stage.buffers]
    gathers_along = gathers_across = 0
    for row in stages:
        if not row.inner:
            continue
        axes = [*row.outer, *row.inner]
        inner = product(axis.extent for axis in row.inner)
        for load in row.stage.loads:
            if any(load.source.same_as(buffer) for buffer in own):
                continue
            indices = elements(load.indices)
            strides = access(load.source, indices, axes).strides
            if strides is None:  # where an index tells which row, its elements may lie in order
                along = access(load.source, indices, row.inner).strides
                gathers_across += along is not None and _is_smooth(along)
                continue
            step = strides[len(row.outer) - 1] if row.outer else 0
            along = strides[len(row.outer) :]
            near = inner <= _MAX_WINDOW and 1 <= step <= _MAX_WINDOW_STRIDE and any(along)
            if row.stage.is_reduction and near:
                return False
            gathers_along += not _is_smooth(along)
            gathers_across += step not in (0, 1)
    return gathers_along <= gathers_across


def _is_smooth(strides: Sequence[int]) -> bool:
    """Whether an access is contiguous along one of the axes, or does not move at all."""
    return any(stride == 1 for stride in strides) or not any(strides)
