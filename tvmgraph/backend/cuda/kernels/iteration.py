"""Where a thread's elements lie: loops as single indices, and neighbours moved as one.

Loops over which all accesses run on as over one longer loop are one *group*. A thread computes the
indices of its groups once; an address is then a sum of few products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import tvm_ffi
from tvm import ir, sym, tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import (
    VECTOR_BYTES,
    at_point,
    div,
    flat,
    i32,
    mod,
    to_int32,
)
from tvmgraph.backend.loop_ir import access
from tvmgraph.backend.loop_ir.access import accesses, dtype_bytes, group_extent, groups
from tvmgraph.backend.loop_ir.program import Axis, Stage, is_choice, loads_of, product, static_shape
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, Var, dtype_of

#: Elements of a vector at most: code is written out for every one.
MAX_LANES = 8


@dataclass(frozen=True)
class Address:
    """An offset ``base + sum(stride * axis)``, counted in elements.

    Attributes:
        base: Offset of the first element.
        strides: One per axis.
    """

    base: int
    strides: tuple[int, ...]


def address_of(buffer: Buffer, indices: Sequence[Expr], axes: Sequence[Axis]) -> Address | None:
    """The address of an element, or None if it is not linear in the axes.

    Args:
        buffer: What is read or written, of known extents.
        indices: One index expression per dimension.
        axes: The loops around it, outermost first.

    Returns:
        The address at zero and the stride per axis, in elements.
    """
    offset = access.address_of(static_shape(buffer) or (), indices)
    if loads_of(offset):
        return None
    offset = access.bounded(axes).simplify(offset)
    terms = list(sym.detect_linear_equation(offset, [a.var for a in axes])) if axes else [offset]
    if not terms or not all(isinstance(term, tirx.IntImm) for term in terms):
        return None
    *strides, base = (int(term) for term in terms)
    return Address(base, tuple(strides))


def _is_linear(index: Expr, axes: Sequence[Axis]) -> bool:
    """Whether an index is a sum of multiples of loop variables: no quotient or remainder."""
    index = access.bounded(axes).simplify(index)
    terms = list(sym.detect_linear_equation(index, [a.var for a in axes]))
    return bool(terms) and all(isinstance(term, tirx.IntImm) for term in terms)


def aligned_run(load: Load, axes: Sequence[Axis], others: Sequence[Axis]) -> int:
    """Neighbours that an aligned stretch of the loops ``axes`` moves through; 1 if none.

    Args:
        load: An element.
        axes: The loops, the last one fastest.
        others: Loops around them.
    """
    shape = static_shape(load.source) or ()
    unknown = [p for p, index in enumerate(load.indices) if loads_of(index)]
    if not unknown and address_of(load.source, load.indices, [*others, *axes]) is None:
        unknown = [p for p, i in enumerate(load.indices) if not _is_linear(i, [*others, *axes])]
    fixed = [index if p not in unknown else _zero() for p, index in enumerate(load.indices)]
    found = address_of(load.source, fixed, [*others, *axes])
    if found is None or not axes:
        return 1
    run, position = 1, len(axes)
    while position and found.strides[len(others) + position - 1] == run:
        run *= axes[position - 1].extent
        position -= 1
    inside = [axis.var for axis in axes[position:]]
    if not inside or any(uses(load.indices[p], inside) for p in unknown):
        return 1
    steps = [found.base, *found.strides[: len(others) + position]]
    steps += [product(shape[p + 1 :]) for p in unknown]
    if position:
        steps.append(run)
    common = gcd(*steps)
    return common & -common if common else run if run & (run - 1) == 0 else MAX_LANES


def _zero() -> Expr:
    return tirx.IntImm("int64", 0)


def readable(stage: Stage) -> list[Load]:
    """The elements that a stage may read ahead of its conditions, each once.

    Args:
        stage: A stage with conditions.

    Returns:
        Reads that stand outside of every condition, or whose indices are within the buffer anyway.
    """
    guarded: list[Load] = []

    def choice(call: ir.Call) -> None:
        if is_choice(call):
            guarded.extend(loads_of(*call.args[1:]))

    def select(node: tirx.Select) -> None:
        guarded.extend(loads_of(node.true_value, node.false_value))

    for expr in stage.exprs:
        tvm_ffi.structural_walk(expr, [(ir.Call, choice), (tirx.Select, select)])
    analyzer, names = access.bounded((*stage.axes, *stage.reduce)), [var for var, _ in stage.lets]
    found: list[Load] = []
    for load in stage.loads:
        own = any(load.source.same_as(buffer) for buffer in stage.buffers)
        named = any(uses(index, names) for index in load.indices)
        risky = any(load.same_as(g) for g in guarded) and not _is_inside(load, analyzer)
        if not own and not named and not risky and not any(same(load, f) for f in found):
            found.append(load)
    return found


def same(left: Load, right: Load) -> bool:
    """Whether two reads are of the same element.

    Args:
        left: A read.
        right: Another one.
    """
    return left.source.same_as(right.source) and tvm_ffi.structural_equal(
        list(left.indices), list(right.indices)
    )


def has_choice(expr: Expr) -> bool:
    """Whether an expression has parts that are computed only under a condition.

    Args:
        expr: An expression.
    """
    found: list[ir.Call] = []
    tvm_ffi.structural_walk(expr, (ir.Call, found.append))
    return any(map(is_choice, found))


def uses(expr: Expr, variables: Sequence[Var]) -> bool:
    """Whether an expression depends on one of the variables.

    Args:
        expr: An expression.
        variables: Loop variables.
    """
    found: list[Var] = []
    tvm_ffi.structural_walk(expr, (Var, found.append))
    return any(var.same_as(variable) for var in found for variable in variables)


def _is_inside(load: Load, analyzer: sym.Analyzer) -> bool:
    for index, extent in zip(load.indices, load.source.shape):
        if loads_of(index):
            return False
        bound = analyzer.const_int_bound(index)
        low, high = bound.min_value, bound.max_value  # pyright: ignore[reportAttributeAccessIssue] - a field of the FFI
        if int(low) < 0 or int(high) >= int(extent):
            return False
    return True


@dataclass(frozen=True)
class Loops:
    """Some axes of a stage, merged into groups, and what one index over all of them means.

    Attributes:
        stage: The stage.
        axes: The axes, outermost first.
    """

    stage: Stage
    axes: tuple[Axis, ...]

    @cached_property
    def groups(self) -> list[list[Axis]]:
        """The axes, merged where every access allows it."""
        return groups(self.stage, self.axes, accesses(self.stage, self.axes))

    @cached_property
    def extent(self) -> int:
        """Iterations of all loops."""
        return product(axis.extent for axis in self.axes)

    @cached_property
    def last(self) -> int:
        """Iterations of the innermost group."""
        return group_extent(self.groups[-1]) if self.groups else 1

    def at(self, index: Expr) -> Position:
        """Where iteration ``index`` of all loops is.

        Args:
            index: The number of the iteration, counted through all loops.
        """
        found: list[Expr] = []
        rest = index
        for position, group in reversed(list(enumerate(self.groups))):
            extent = group_extent(group)
            found.insert(0, mod(rest, extent) if position else rest)
            rest = div(rest, extent)
        if len(found) > 1:
            found = [device.let(value) for value in found]
        return Position(self, index, tuple(found))


@dataclass(frozen=True)
class Position:
    """One iteration of some loops.

    Attributes:
        loops: The loops.
        index: The iteration, counted over all loops.
        indices: The index of every group.
    """

    loops: Loops
    index: Expr
    indices: tuple[Expr, ...]

    def next(self, lane: int) -> Position:
        """The position ``lane`` iterations further on, within the innermost group.

        Args:
            lane: How many iterations.
        """
        *outer, last = self.indices
        return Position(self.loops, self.index + i32(lane), (*outer, last + i32(lane)))

    def offset(self, strides: Sequence[int]) -> Expr:
        """What an address with these strides, one per group, adds to its base.

        Args:
            strides: Elements per iteration of a group.
        """
        extents = [group_extent(group) for group in self.loops.groups]
        inner = zip(strides, extents[1:], strides[1:])
        if strides and all(outer == extent * step for outer, extent, step in inner):
            return _times(self.index, strides[-1])  # one long loop, as this access goes
        total: Expr = i32(0)
        for index, stride in zip(self.indices, strides):
            total = total + _times(index, stride)
        return total


def _times(index: Expr, stride: int) -> Expr:
    if stride in (0, 1):
        return index if stride else i32(0)
    return index * tirx.const(stride, dtype_of(index))


@dataclass(frozen=True)
class Iteration:
    """One iteration of nested loops.

    Attributes:
        positions: The iteration of each; the last one holds the innermost groups.
    """

    positions: tuple[Position, ...]

    def next(self, lane: int) -> Iteration:
        """The one ``lane`` iterations further on, within the innermost group.

        Args:
            lane: How many iterations.
        """
        if not lane:
            return self
        *outer, last = self.positions
        return Iteration((*outer, last.next(lane)))

    @cached_property
    def values(self) -> dict[Var, Expr]:
        """The values of all axes."""
        found: dict[Var, Expr] = {}
        for position in self.positions:
            for group, index in zip(position.loops.groups, position.indices):
                found |= device.split(index, group)
        return found

    def element(self, load: Load) -> Load:
        """An element that the stage reads or writes here, addressed as directly as possible.

        Args:
            load: The element in terms of the loop variables.
        """
        groups = [group for position in self.positions for group in position.loops.groups]
        found = address_of(load.source, list(load.indices), [a for group in groups for a in group])
        if not load.source.shape:
            return load
        if found is None or device.elements(load.source) >= device.LARGE:
            here = at_point(load, self.values)
            assert isinstance(here, Load)
            return here
        strides, offset = list(found.strides), i32(found.base)
        for position in self.positions:
            own: list[int] = []
            for group in position.loops.groups:
                own.append(strides[len(group) - 1])
                del strides[: len(group)]
            offset = offset + position.offset(own)
        return flat(load.source, offset)

    def value(self, expr: Expr) -> Expr:
        """An expression here; what it reads is left as it is.

        Args:
            expr: The expression in terms of the loop variables.
        """
        return at_point(expr, self.values)


def run_within(size: int, start: Expr, lanes: int, run: Callable[[int], None]) -> None:
    """Runs a vector, as far as a row goes.

    Args:
        size: Elements of the row.
        start: The first element of the vector, a multiple of ``lanes``.
        lanes: Elements of a vector.
        run: Takes how many of them there are.
    """
    dtype, rest = dtype_of(start), size % lanes
    device.only_if(start + i32(lanes) <= tirx.const(size, dtype), lambda: run(lanes))
    if rest:
        device.only_if(tirx.EQ(start, tirx.const(size - rest, dtype)), lambda: run(rest))


def read_run(load: Load, iteration: Iteration, lanes: int, held: Buffer | None = None) -> Buffer:
    """Reads ``lanes`` neighbouring elements with as few instructions as possible.

    Args:
        load: The first element.
        iteration: The one that reads the first element.
        lanes: How many.
        held: Registers for them, instead of new ones.
    """
    held = device.registers(lanes, str(load.source.dtype)) if held is None else held
    *outer, last = (to_int32(index, {}) for index in iteration.element(load).indices)
    source, target = _movable(load.source), _movable(held)
    width = min(lanes, _widest(load.source))
    for first in range(0, lanes, width):
        with device.vector(width) as lane:
            element = source[(*outer, last + i32(first) + lane)]
            device.store(target, element, [i32(first) + lane])
    return held


def write_run(held: Buffer, to: Load, iteration: Iteration, lanes: int) -> None:
    """Stores ``lanes`` neighbouring elements.

    Args:
        held: The elements in registers.
        to: The first element.
        iteration: The one that stores the first element.
        lanes: Elements; instructions of 16 bytes at most are written.
    """
    *outer, last = (to_int32(index, {}) for index in iteration.element(to).indices)
    source, target = _movable(held), _movable(to.source)
    width = min(lanes, _widest(to.source))
    for first in range(0, lanes, width):
        with device.vector(width) as lane:
            device.store(target, source[i32(first) + lane], [*outer, last + i32(first) + lane])


def _widest(buffer: Buffer) -> int:
    """Elements that one instruction moves at most."""
    return VECTOR_BYTES // dtype_bytes(str(buffer.dtype))


def _movable(buffer: Buffer) -> Buffer:
    """The buffer as it is moved: TVM writes vectors of bools with two bytes for each."""
    if str(buffer.dtype) != "bool":
        return buffer
    return T.decl_buffer(buffer.shape, "int8", data=buffer.data, scope=buffer.scope())
