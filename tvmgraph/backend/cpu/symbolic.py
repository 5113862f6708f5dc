"""Functions with a dimension, typically the batch, that is known only at run time.

Where all rows along that dimension are computed alike, the function is compiled for a few fixed
numbers of rows, and runs them one after the other: as many of the largest as fit, then of the next
one. A rest that nearly fills a kernel is run by it too, together with rows that are done already
and come out the same again. The fixed kernels are those of the static case, and divide their work
among the workers themselves; those that divide it alike do so together. The dimension may be any
axis of a buffer, a different one in each. Two such dimensions that follow each other in all buffers
(a batch, and the steps of its sequences) are one with as many rows as both together; of two others
one is taken after the other, with kernels for every pair of numbers of rows.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import direct_uses
from tvmgraph.backend.loop_ir.program import Stage, parse, product
from tvmgraph.backend.loop_ir.types import SCHEDULED, Buffer, Expr, Func, Load, Var

#: Rows of the fixed kernels, largest first, by the least number of elements per row. The last one
#: must be 1, and each divides the one before it; every further one takes as long to compile as a
#: static kernel.
_SIZES = {1 << 18: (1,), 1 << 15: (8, 2, 1), 1 << 11: (16, 4, 1), 0: (64, 8, 4, 2, 1)}
#: Rows of one kernel more where two dimensions are one: there are more, which the workers share.
_MANY = {(64, 8, 4, 2, 1): 512}
#: Rows with fewer elements than this are not worth a kernel call of their own.
_MIN_ROW = 16
#: Sizes at which the function is looked at: all different, so that nothing broadcasts by accident.
_PROBES = (64, 48)

Scheduler = Callable[[Func], Func]


@dataclass(frozen=True)
class _Rows:
    """A dimension along which the function is cut.

    Attributes:
        count: Its extent.
        dimensions: The parameters that have it, each with the position of the axis.
        inner: Extent of the axis behind it in all of these, if both are taken as one.
        factors: The sizes whose product ``count`` is, which are arguments themselves.
        step: Elements of the axes per row, where their extent is a multiple of ``count``.
    """

    count: Expr
    dimensions: tuple[tuple[Buffer, int], ...]
    inner: Var | None = None
    factors: tuple[Var, ...] = ()
    step: int = 1

    @property
    def total(self) -> Expr:
        """Rows in all."""
        return self.count if self.inner is None else self.count * self.inner

    def position(self, buffer: Buffer) -> int | None:
        """The axis of a parameter, None where it has none."""
        return next((axis for other, axis in self.dimensions if buffer.same_as(other)), None)


@dataclass(frozen=True)
class Cut:
    """A dimension to cut a function along, and the rows of the fixed kernels."""

    rows: _Rows
    sizes: tuple[int, ...]

    def write(self, func: Func, schedule: Scheduler) -> Func | None:
        """The function in terms of fixed numbers of rows; None where one has no kernel.

        Args:
            func: A function with a symbolic shape.
            schedule: Gives the kernel of a function of another shape.
        """
        done = [(size, schedule(_fix(func, {self.rows: size}))) for size in self.sizes]
        if not all(kernel.attrs and SCHEDULED in kernel.attrs for _, kernel in done):
            return None  # the general rule keeps loop variables, which may occur once only
        return emit.kernel(func, lambda: _write(func, self.rows, done))


def find_cuts(func: Func) -> list[Cut]:
    """The dimensions of unknown extent along which rows of ``func`` do not depend on each other.

    Args:
        func: A function of one symbolic size or more.

    Returns:
        One per size that can be cut, with the numbers of rows that kernels are compiled for; wider
        rows need fewer of them at once.
    """
    if not all(tirx.is_buffer_var(param) for param in func.params):
        candidates, counts = _product_rows(func), []
    else:
        counts = _symbols(func)
        candidates = [_find_rows(func, c) for c in counts] if len(counts) <= len(_PROBES) else []
    found: list[tuple[_Rows, int]] = []
    for rows in candidates:
        width = None if rows is None else _row_width(func, rows, counts)
        if rows is not None and width is not None:
            found.append((rows, width))
    joint = _joint(*(rows for rows, _ in found)) if len(found) == 2 else None
    if joint is not None:
        found = [(joint, found[0][1] // _PROBES[1])]
    return [Cut(rows, _sizes(rows, width)) for rows, width in found if width >= _MIN_ROW]


def _product_rows(func: Func) -> list[_Rows]:
    """The rows that a reshaping of axes to one leaves: a product of sizes, and perhaps a number."""
    buffers = _buffers(func)
    dimensions = [
        (buffer, axis, extent)
        for buffer in buffers
        for axis, extent in enumerate(buffer.shape)
        if not isinstance(extent, tirx.IntImm)
    ]
    extents = [extent for _, _, extent in dimensions]
    if len({id(buffer) for buffer, _, _ in dimensions}) < len(dimensions) or not extents:
        return []  # a buffer has two of them
    factors = _factors(extents[0])
    if factors is None or not all(tvm_ffi.structural_equal(e, extents[0]) for e in extents):
        return []
    places = tuple((buffer, axis) for buffer, axis, _ in dimensions)
    step = math.prod(f.value for f in factors if isinstance(f, tirx.IntImm))
    sizes = tuple(f for f in factors if isinstance(f, tirx.Var))
    if not all(any(size.same_as(param) for param in func.params) for size in sizes):
        return []  # one is that of a call's data
    return [_Rows(functools.reduce(operator.mul, sizes), places, factors=sizes, step=step)]


def _factors(extent: Expr) -> list[Expr] | None:
    """The sizes and numbers whose product an extent is, if it is one of different sizes."""
    if isinstance(extent, (tirx.Var, tirx.IntImm)):
        return [extent]
    if not isinstance(extent, tirx.Mul):
        return None
    a, b = _factors(extent.a), _factors(extent.b)
    if a is None or b is None:
        return None
    return None if any(x.same_as(y) for x in a for y in b) else a + b


def _sizes(rows: _Rows, width: int) -> tuple[int, ...]:
    """Numbers of rows of so many elements that kernels are compiled for."""
    sizes = next(sizes for least, sizes in _SIZES.items() if width >= least)
    if (rows.inner is None and not rows.factors) or sizes not in _MANY:
        return sizes
    return (_MANY[sizes], *sizes)


def _joint(outer: _Rows, inner: _Rows) -> _Rows | None:
    """Two dimensions as one, if all buffers that have one of them have the other behind it."""
    if len(outer.dimensions) != len(inner.dimensions):
        return None
    if any(inner.position(buffer) != axis + 1 for buffer, axis in outer.dimensions):
        return None
    return _Rows(outer.count, outer.dimensions, inner.count)


def _write(func: Func, rows: _Rows, kernels: Sequence[tuple[int, Func]]) -> None:
    runs = _runs(rows.total, kernels)
    flat = _flattened(func, rows)
    for extent, group in itertools.groupby(runs, lambda run: _shared_extent(run.kernel)):
        members = list(group)
        if extent is None or len(members) == 1:
            for run in members:
                run.write(flat, rows)
            continue
        # all rows of a work item at once: what it reads of a weight is fetched once
        with emit.parallel(extent) as item:
            for run in members:
                run.write(flat, rows, item)


def _flattened(func: Func, rows: _Rows) -> list[tuple[Buffer, int | None]]:
    """Every parameter, with the axis of its rows; two axes that are taken as one are one."""
    found: list[tuple[Buffer, int | None]] = []
    for param in filter(tirx.is_buffer_var, func.params):
        axis = rows.position(param)
        if axis is not None and rows.inner is not None:
            shape = [*param.shape[:axis], rows.total, emit.i64(1), *param.shape[axis + 2 :]]
            param = T.decl_buffer(shape, param.dtype, data=param.data, align=param.data_alignment)
        found.append((param, axis))
    return found


@dataclass(frozen=True)
class _Run:
    """Calls of one of the fixed kernels.

    Attributes:
        kernel: It.
        size: Its rows.
        calls: How many times it runs.
        done: Rows that are done before.
        count: Rows in all.
    """

    kernel: Func
    size: int
    calls: Expr
    done: Expr
    count: Expr

    def write(
        self, params: Sequence[tuple[Buffer, int | None]], rows: _Rows, item: Expr | None = None
    ) -> None:
        """Writes the calls, or only their share of a work item."""
        with emit.serial(self.calls) as chunk:
            first = tirx.min(self.done + chunk * self.size, self.count - self.size)
            T.add_to_parent(_shift(self.kernel, params, first * rows.step, item))


def _runs(count: Expr, kernels: Sequence[tuple[int, Func]]) -> list[_Run]:
    """Divides the rows among the kernels."""
    found: list[_Run] = []
    done, left = emit.i64(0), count
    finished: Expr = tirx.const(False, "bool")
    for position, (size, kernel) in enumerate(kernels):
        chunks, rest = (f(left, emit.i64(size)) for f in (tirx.floordiv, tirx.floormod))
        further = size > 2 and position + 1 < len(kernels)  # else a row is left at most
        again = tirx.And(4 * rest >= 3 * size, count >= size)
        if further:
            chunks = chunks + tirx.Select(again, emit.i64(1), emit.i64(0))
        calls = tirx.Select(finished, emit.i64(0), chunks)
        found.append(_Run(kernel, size, calls, done, count))
        if further:
            finished = tirx.Or(finished, again)
        # every size divides the one before it
        done, left = count - tirx.floormod(count, emit.i64(size)), rest
    return found


def _shared_extent(kernel: Func) -> int | None:
    """The extent of the loop whose iterations the workers divide, if that is the whole kernel."""
    loop = kernel.body.block.body
    if not isinstance(loop, tirx.For) or loop.kind != tirx.ForKind.PARALLEL:
        return None
    return int(loop.extent) if isinstance(loop.extent, tirx.IntImm) else None


def _shift(
    kernel: Func, params: Sequence[tuple[Buffer, int | None]], first: Expr, item: Expr | None = None
) -> tirx.Stmt:
    """The kernel's body on rows ``first`` and following of the function's parameters.

    Args:
        kernel: A kernel of a fixed number of rows.
        params: Those of the function of any number, each with the axis the rows are counted along.
        first: The first row.
        item: Takes the place of the variable of the kernel's outermost loop, which is left out.
    """
    moved = [
        (mine, theirs, axis)
        for mine, (theirs, axis) in zip(kernel.params, params)
        if not mine.same_as(theirs)
    ]

    def target(buffer: Buffer, indices: Sequence[Expr]) -> tuple[Buffer, list[Expr]] | None:
        for mine, theirs, axis in moved:
            if buffer.same_as(mine):
                shifted = [i + first if a == axis else i for a, i in enumerate(indices)]
                return theirs, shifted
        return None

    def load(node: Load) -> Expr:
        found = target(node.source, node.indices)
        return node if found is None else found[0][tuple(found[1])]

    def store(node: tirx.BufferStore) -> tirx.Stmt:
        found = target(node.buffer, node.indices)
        return node if found is None else tirx.BufferStore(found[0], node.value, found[1])

    body = kernel.body.block.body
    changes: list[tuple[object, object]] = [(Load, load), (tirx.BufferStore, store)]
    if item is not None:
        loop, body = body, body.body
        changes.append((tirx.Var, lambda var: item if var.same_as(loop.loop_var) else var))
    return tvm_ffi.structural_map(body, changes)


def _symbols(func: Func) -> list[Var]:
    """The extents of parameters that are symbols; those of the first axes come first."""
    found: list[tuple[int, Var]] = []
    for buffer in func.params:
        for position, extent in enumerate(buffer.shape):
            if isinstance(extent, tirx.Var) and not any(extent.same_as(v) for _, v in found):
                found.append((position, extent))
    return [var for _, var in sorted(found, key=lambda pair: pair[0])]


def _find_rows(func: Func, count: Var) -> _Rows | None:
    """The axes with this extent, if every buffer has at most one."""
    dimensions: list[tuple[Buffer, int]] = []
    for buffer in _buffers(func):
        axes = [a for a, extent in enumerate(buffer.shape) if count.same_as(extent)]
        others = [e for a, e in enumerate(buffer.shape) if a not in axes]
        if len(axes) > 1 or any(count.same_as(v) for e in others for v in _variables(e)):
            return None
        if axes:
            dimensions.append((buffer, axes[0]))
    return _Rows(count, tuple(dimensions)) if dimensions else None


def _buffers(func: Func) -> list[Buffer]:
    params = filter(tirx.is_buffer_var, func.params)
    return [*params, *getattr(func.body, "block", func.body).alloc_buffers]


def _fix(func: Func, sizes: dict[_Rows, int]) -> Func:
    """The function for fixed numbers of rows."""
    fixed: dict[Var, object] = {}
    for rows, size in sizes.items():
        fixed |= dict.fromkeys(rows.factors[1:], emit.i64(1)) | dict.fromkeys(
            rows.factors[:1], emit.i64(size)
        )
    for param in () if fixed else func.params:
        extents: dict[int, int] = {}
        for rows, size in sizes.items():
            axis = rows.position(param)
            if axis is not None:
                extents |= {axis: size} if rows.inner is None else {axis: size, axis + 1: 1}
        if extents:
            shape = [emit.i64(extents[a]) if a in extents else e for a, e in enumerate(param.shape)]
            fixed[param] = tirx.decl_buffer(
                shape, str(param.dtype), str(param.name), data_alignment=param.data_alignment
            )
    return func.specialize(fixed)


def _row_width(func: Func, rows: _Rows, counts: Sequence[Var]) -> int | None:
    """Elements per row, or None unless every stage computes row i from rows i only, all alike."""
    others = [_find_rows(func, c) for c in counts if not c.same_as(rows.count)]
    own = rows.factors or (rows.count,)
    if any(o is None for o in others) or any(_computes_with(func, size) for size in own):
        return None
    probed = dict(zip([rows, *(o for o in others if o is not None)], _PROBES))
    static = _fix(func, probed)
    program = parse(static)
    if program is None:
        return None
    pairs = zip(_buffers(static), _buffers(func))
    axes = [(mine, axis) for mine, theirs in pairs if (axis := rows.position(theirs)) is not None]
    if not all(_stage_is_row_wise(stage, axes) for stage in program.stages):
        return None
    return max(product(map(int, b.shape)) // _PROBES[0] for b, _ in axes)


def _stage_is_row_wise(stage: Stage, axes: Sequence[tuple[Buffer, int]]) -> bool:
    def position(buffer: Buffer) -> int | None:
        return next((axis for other, axis in axes if buffer.same_as(other)), None)

    dimensions = {position(buffer) for buffer in stage.buffers}
    if dimensions == {None}:  # a part of a weight, say: the same for all rows
        own = [position(load.source) for load in stage.loads]
        return not stage.is_reduction and all(axis is None for axis in own)
    if len(dimensions) != 1 or (dimension := dimensions.pop()) is None:
        return False
    axis = next((axis for axis in stage.axes if axis.var.same_as(stage.indices[dimension])), None)
    if axis is None:
        return False
    uses = 1  # by the store
    for load in stage.loads:
        own = position(load.source)
        if own is not None:
            if not axis.var.same_as(load.indices[own]):
                return False
            uses += 1
    found = [var for expr in (*stage.indices, *stage.exprs) for var in _variables(expr)]
    occurrences = sum(var.same_as(axis.var) for var in found)
    return occurrences == uses and not direct_uses(stage, [axis])[0]


def _computes_with(func: Func, count: Var) -> bool:
    """Whether the number of rows is used in an expression, such as the divisor of a mean."""
    found: list[Var] = []

    def visit(store: tirx.BufferStore) -> None:
        for expr in (store.value, *store.indices):
            found.extend(_variables(expr))

    tvm_ffi.structural_walk(func.body, (tirx.BufferStore, visit))
    return any(var.same_as(count) for var in found)


def _variables(expr: Expr) -> list[Var]:
    """The variables an expression computes with, those in the shapes of its buffers left out."""
    found: list[Var] = []

    def visit(load: Load) -> tvm_ffi.WalkResult:
        for index in load.indices:
            found.extend(_variables(index))
        return tvm_ffi.WalkResult.SKIP

    tvm_ffi.structural_walk(expr, [(Load, visit), (tirx.Var, found.append)], order="pre")
    return found
