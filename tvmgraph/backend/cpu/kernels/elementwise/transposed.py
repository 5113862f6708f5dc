"""Elementwise kernels one of whose inputs is contiguous along another axis than the output.

Blocking: squares of one vector by one vector. The square is read along the input's contiguous axis,
transposed in registers, and stored along the output's. A worker runs through strips of the output:
several squares next to each other in it, then the same rows of the input further on.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import tvm_ffi

from tvmgraph.backend.cpu.kernels.elementwise.nontemporal import (
    is_nontemporal,
    nontemporal_stores,
    write_vector,
)
from tvmgraph.backend.cpu.kernels.gemm.microkernel import transpose
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import access, dtype_bytes, group_extent
from tvmgraph.backend.loop_ir.point import Bound, Point, bind_group, vectors
from tvmgraph.backend.loop_ir.program import Axis, Stage, map_loads, product, substitute
from tvmgraph.backend.loop_ir.types import Expr, Load
from tvmgraph.backend.walks import elements
from tvmgraph.machine.processor import CpuModel

Group = Sequence[Axis]

_MIN_PARALLEL_ELEMENTS = 32 * 1024
#: Squares side by side in the output: a pair of cache lines of each of its rows is written at a
#: time. More of them would read more rows of the input at once than processors follow.
_MAX_STRIP = 2
#: By how many squares what is asked for early is ahead of what is read.
_AHEAD = 4
#: Fewer of them where workers would otherwise get less than so many strips each.
_STRIPS_PER_THREAD = 4


@dataclass(frozen=True)
class Transposed:
    """A transposition within an elementwise stage.

    Attributes:
        load: The input element.
        read_axes: The merged axes along which it is contiguous.
        write_axes: The merged axes along which the output is contiguous.
        others: The remaining merged axes.
        lanes: Side of a square.
    """

    load: Load
    read_axes: Group
    write_axes: Group
    others: tuple[Group, ...]
    lanes: int


def find_transposed(stage: Stage, merged: Sequence[Group], model: CpuModel) -> Transposed | None:
    """The transposition in ``stage``, if all its reads but one kind follow the output.

    Args:
        stage: An elementwise stage of one result.
        merged: Its loops, neighbours that run on as one, outermost first.
        model: The processor: lanes of a vector.

    Returns:
        None for elements of less than 4 bytes, axes shorter than a vector, or reads in more than
        two orders.
    """
    axes = [axis for group in merged for axis in group]
    loads = stage.loads
    if len(merged) < 2 or stage.lets or not loads:
        return None
    read_axes: Group | None = None
    chosen: Load | None = None
    for load in loads:
        strides = access(load.source, elements(load.indices), axes).strides
        if strides is None:
            return None
        steps = dict(zip((id(axis) for axis in axes), strides))
        if steps[id(merged[-1][-1])] in (0, 1):
            continue
        if chosen is not None and not tvm_ffi.structural_equal(chosen, load):
            return None
        chosen = load
        read_axes = next((g for g in merged[:-1] if steps[id(g[-1])] == 1), None)
    if chosen is None or read_axes is None or stage.has_calls:  # written out once per row
        return None
    itemsize = dtype_bytes(str(chosen.source.dtype))
    lanes = model.lanes_of(itemsize)
    sizes = group_extent(read_axes), group_extent(merged[-1])
    if itemsize < 4 or lanes < 4 or lanes & (lanes - 1) or min(sizes) < lanes:
        return None
    others = tuple(group for group in merged[:-1] if group is not read_axes)
    return Transposed(chosen, read_axes, merged[-1], others, lanes)


def emit_transposed(stage: Stage, transposed: Transposed, model: CpuModel) -> None:
    """Writes the loops: squares first, then the rows and columns that fill none.

    Args:
        stage: The stage that :func:`find_transposed` was asked about.
        transposed: What it found.
        model: The processor: threads and sizes of the caches.
    """
    lanes = transposed.lanes
    high, wide = group_extent(transposed.read_axes), group_extent(transposed.write_axes)
    down, right = high // lanes, wide // lanes
    outer = product(group_extent(group) for group in transposed.others)
    strip = _strip(right, outer, model)
    extents = [*(group_extent(group) for group in transposed.others), right // strip]
    parallel = stage.points >= _MIN_PARALLEL_ELEMENTS and model.threads > 1
    nontemporal = is_nontemporal(stage, wide, lanes, model)
    kept = stage.buffers if nontemporal else ()
    with nontemporal_stores(kept, lanes), emit.parallel(product(extents), parallel) as item:
        *positions, part = emit.unfuse(item, extents)
        bound: Bound = {}
        for group, value in zip(transposed.others, positions):
            bound |= bind_group(group, value)
        with emit.serial(down * strip) as square:
            first, along = emit.unfuse(square, [down, strip])
            place = first * lanes, (part * strip + along) * lanes
            if nontemporal:
                _fetch(transposed, bound, *place)
            _square(stage, transposed, bound, *place, nontemporal=nontemporal)
    if wide % lanes:
        _rest(stage, transposed, (0, high), (right * lanes, wide), model)
    if high % lanes:
        _rest(stage, transposed, (down * lanes, high), (0, right * lanes), model)


def _strip(right: int, outer: int, model: CpuModel) -> int:
    """How many neighbouring squares of the output are written before going on along the input."""
    most = max(1, min(_MAX_STRIP, right * outer // (model.threads * _STRIPS_PER_THREAD)))
    return next(count for count in range(most, 0, -1) if right % count == 0)


def _fetch(transposed: Transposed, outer: Bound, first: Expr, along: Expr) -> None:
    """Asks for a square that comes a few further in the input: its rows lie far apart."""
    for row in range(transposed.lanes):
        ahead = bind_group(transposed.read_axes, first + _AHEAD * transposed.lanes)
        place = outer | bind_group(transposed.write_axes, along + row) | ahead
        emit.prefetch(
            transposed.load.source, [substitute(i, place) for i in transposed.load.indices]
        )


def _square(
    stage: Stage, transposed: Transposed, outer: Bound, first: Expr, along: Expr, *,
    nontemporal: bool,
) -> None:  # fmt: skip
    lanes, dtype = transposed.lanes, str(transposed.load.source.dtype)
    square = emit.stack(lanes * lanes, dtype)
    for row in range(lanes):
        with emit.vectorized(lanes) as lane:
            place = (
                outer
                | bind_group(transposed.write_axes, along + row)
                | bind_group(transposed.read_axes, first + lane)
            )
            emit.store(square, substitute(transposed.load, place), [row * lanes + lane])
    result = transpose(square, lanes, dtype)
    point = Point(stage, lanes)
    for row in range(lanes):

        def bound(lane: Expr, row: int = row) -> Bound:
            read = bind_group(transposed.read_axes, first + row)
            return outer | bind_group(transposed.write_axes, along + lane) | read

        def value(lane: Expr, row: int = row) -> list[Expr]:
            element = result[emit.i64(row * lanes) + lane]
            swap = functools.partial(_swap, transposed=transposed, element=element)
            return [substitute(map_loads(stage.value, swap), bound(lane, row))]

        write_vector(
            stage.buffers,
            lanes,
            value,
            lambda lane, row=row: point.indices(bound(lane, row)),
            nontemporal=nontemporal,
        )


def _rest(
    stage: Stage,
    transposed: Transposed,
    rows: tuple[int, int],
    columns: tuple[int, int],
    model: CpuModel,
) -> None:
    """A border, without squares; its rows are divided among the workers."""
    high, wide = rows[1] - rows[0], columns[1] - columns[0]
    outer = product(group_extent(group) for group in transposed.others)
    parallel = outer * high * wide >= _MIN_PARALLEL_ELEMENTS and model.threads > 1
    extents = [*(group_extent(group) for group in transposed.others), high]
    with emit.parallel(outer * high, parallel) as item:
        *positions, row = emit.unfuse(item, extents)
        bound = bind_group(transposed.read_axes, row + rows[0])
        for group, value in zip(transposed.others, positions):
            bound |= bind_group(group, value)

        def vector(at: Expr, lanes: int, _part: int) -> None:
            point = Point(stage, lanes)
            with emit.lanes_loop(lanes) as lane:
                mapping = bound | bind_group(transposed.write_axes, at + lane)
                emit.store(stage.buffer, point.values(mapping, lane)[0], point.indices(mapping))

        vectors(emit.i64(columns[0]), wide, transposed.lanes, vector)


def _swap(load: Load, transposed: Transposed, element: Expr) -> Expr:
    return element if tvm_ffi.structural_equal(load, transposed.load) else load
