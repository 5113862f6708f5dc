"""Recognizes sums of products: matrix products of any operand order and batching, convolutions.

``out[...] = sum over k of a * b`` where every spatial axis belongs to one operand (rows,
columns) or to both (batch), followed by at most one elementwise stage that reads each sum once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import tvm_ffi
from tvm import ir, sym, tirx

from tvmgraph.backend.loop_ir.access import Access, access, variables_in
from tvmgraph.backend.loop_ir.inline import has_identity_store
from tvmgraph.backend.loop_ir.program import Axis, Program, Stage, loads_of, product, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, Var, as_dtype, dtype_of
from tvmgraph.backend.walks import elements, walk
from tvmgraph.core.descriptors import Convolution

#: Types of products, and the types that their sums are accumulated in.
_SUM_TYPES = {
    "float32": "float32",
    "float64": "float64",
    "int32": "int32",
    "int64": "int64",
    "float16": "float32",
    "bfloat16": "float32",
}


@dataclass(frozen=True)
class Operand:
    """One factor.

    Attributes:
        expr: The factor in terms of the contraction's axes, cast to the accumulator's type.
        load: The element it is made from.
        access: How that element moves with the contraction's axes.
    """

    expr: Expr
    load: Load
    access: Access

    @property
    def is_plain(self) -> bool:
        """Whether the factor is an element of memory as it lies there."""
        return isinstance(self.expr, Load)

    @property
    def is_direct(self) -> bool:
        """Whether the factor is an element of memory, perhaps cast."""
        return self.load.same_as(self.expr.value if isinstance(self.expr, tirx.Cast) else self.expr)

    def at(self, *indices: Expr) -> Expr:
        """A direct factor at other places; a vector where the last index is one.

        Args:
            indices: One per axis of its buffer.
        """
        value = self.load.source[indices]
        if not isinstance(self.expr, tirx.Cast):
            return value
        lanes = getattr(indices[-1], "lanes", 1)
        dtype = dtype_of(self.expr)
        return tirx.Cast(f"{dtype}x{lanes}" if lanes > 1 else dtype, value)


@dataclass(frozen=True)
class Contraction:
    """``out = epilogue(sum of left * right)``.

    Attributes:
        left: The operand of the row axes.
        right: The operand of the column axes, along which the result is contiguous.
        batch: Axes of both operands.
        rows: Axes of ``left`` only.
        columns: Axes of ``right`` only; there are none in a depthwise convolution of blocks.
        reduce: Summed axes.
        dtype: Type of the sums.
        sums: The buffer that the sums are named by in ``epilogue``.
        epilogue: What is stored, in terms of the same spatial axes.
        before: Stages that must run first.
        convolution: Of a convolution with a packed weight, what the operator knows of it.
        declared: Operands that only some kernels need: its transformed weight.
    """

    left: Operand
    right: Operand
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    reduce: tuple[Axis, ...]
    dtype: str
    sums: Buffer
    epilogue: Stage
    before: tuple[Stage, ...]
    convolution: Convolution | None = None
    declared: tuple[Buffer, ...] = ()

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, in the order of the operands' accesses."""
        return (*self.batch, *self.rows, *self.columns, *self.reduce)

    @property
    def extents(self) -> tuple[int, int, int, int]:
        """Independent products, rows, columns, and steps of the sums."""
        batch, rows, columns, steps = (
            product(axis.extent for axis in axes)
            for axes in (self.batch, self.rows, self.columns, self.reduce)
        )
        return batch, rows, columns, steps

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * product(self.extents)

    def strides(self, operand: Operand) -> dict[Var, int] | None:
        """Address step of an operand along every axis, or None when it is not linear.

        Args:
            operand: The left or the right one.
        """
        if operand.access.strides is None:
            return None
        return {axis.var: step for axis, step in zip(self.axes, operand.access.strides)}

    def swapped(self) -> Contraction:
        """The same sums with the operands exchanged, and with them rows and columns."""
        other = replace(self, rows=self.columns, columns=self.rows)
        left, right = (operand_of(o.expr, o.load, other.axes) for o in (self.right, self.left))
        return replace(other, left=left, right=right)


def prepare_first(program: Program) -> Program:
    """The program with the stages that need no sums before the sums.

    Such stages, the scale of a batch norm per channel for example, may stand among those that
    finish the sums, where they would hide that the rest is one elementwise stage.

    Args:
        program: The function.

    Returns:
        The same stages: first those that need no sum, then what only the sums read (padding, beside
        them so that they are merged with it), then the rest in their order.
    """
    late: list[Stage] = []
    early: list[Stage] = []
    for stage in program.stages:
        waits = stage.is_reduction or any(stage.reads(b) for s in late for b in s.buffers)
        (late if waits else early).append(stage)
    padding = [s for s in early if any(r.is_reduction and r.reads(s.buffer) for r in late)]
    others = [s for s in early if not any(s is p for p in padding)]
    if any(o.reads(p.buffer) for p in padding for o in others):
        return replace(program, stages=(*early, *late))
    return replace(program, stages=(*others, *padding, *late))


def match_contraction(program: Program) -> Contraction | None:
    """The contraction that ``program`` computes, or None.

    Args:
        program: A function with one reduction, a sum of products, and at most one stage after it.

    Returns:
        What its axes are (batch, rows, columns, reduction) and how its operands are addressed; None
        where a second reduction, an index that both operands share only in part, or a local
        variable is in the way.
    """
    anchors = [stage for stage in program.stages if stage.is_reduction]
    if len(anchors) != 1 or not has_identity_store(anchors[0]) or anchors[0].lets:
        return None
    anchor = anchors[0]
    position = program.stages.index(anchor)
    after = program.stages[position + 1 :]
    epilogue = _epilogue(program, anchor, after[0] if after else None) if len(after) < 2 else None
    if epilogue is None or _factors(anchor) is None:
        return None
    anchor, epilogue = split_groups(anchor, epilogue)
    factors = _factors(anchor)
    return None if factors is None else _classify(anchor, factors, epilogue, program, position)


def _factors(anchor: Stage) -> tuple[Expr, Expr] | None:
    """a and b of ``acc + a * b``, each cast to the accumulator's type."""
    value = anchor.value
    is_zero = anchor.inits is not None and float(getattr(anchor.inits[0], "value", 1)) == 0
    dtype = _sum_type(anchor)
    if not isinstance(value, tirx.Add) or not is_zero or dtype is None:
        return None
    own, term = value.a, value.b
    if not (isinstance(own, Load) and own.source.same_as(anchor.buffer)):
        return None
    if isinstance(term, tirx.Cast) and isinstance(term.value, tirx.Mul):
        term = term.value
    if not isinstance(term, tirx.Mul):
        return None

    return as_dtype(term.a, dtype), as_dtype(term.b, dtype)


def _same_extents(mapping: dict[Var, Expr], anchor: Stage, after: Stage) -> bool:
    """Whether the stage after the sums visits exactly the elements that are summed."""
    extents = {axis.var: axis.extent for axis in anchor.axes}
    summed = [mapping.get(axis.var) for axis in after.axes]
    return all(
        isinstance(var, Var) and extents.get(var) == axis.extent
        for var, axis in zip(summed, after.axes)
    )


def _sum_type(anchor: Stage) -> str | None:
    return _SUM_TYPES.get(str(anchor.buffer.dtype))


def _epilogue(program: Program, anchor: Stage, after: Stage | None) -> Stage | None:
    """The stage after the sums rewritten to the anchor's axes; a plain store when there is none."""
    own = anchor.buffer[tuple(anchor.indices)]
    if after is None:
        return Stage(anchor.name, anchor.axes, (), anchor.buffers, anchor.indices, (own,), None)
    if program.is_parameter(anchor.buffer) or len(after.buffers) != 1:
        return None
    reads = [load for load in after.loads if load.source.same_as(anchor.buffer)]
    if not reads or not all(
        tvm_ffi.structural_equal(load.indices, reads[0].indices) for load in reads
    ):
        return None
    mapping: dict[Var, Expr] = {}
    for mine, theirs in zip(anchor.indices, reads[0].indices):
        if isinstance(mine, Var) and isinstance(theirs, Var):
            mapping[theirs] = mine
    if len(mapping) != len(after.axes) or len(mapping) != len(anchor.axes):
        return None
    if not _same_extents(mapping, anchor, after):  # padding after the sums, or a slice of them
        return None
    return Stage(
        after.name,
        anchor.axes,
        (),
        after.buffers,
        tuple(substitute(index, mapping) for index in after.indices),
        tuple(substitute(value, mapping) for value in after.values),
        None,
        tuple((var, substitute(value, mapping)) for var, value in after.lets),
    )


def _classify(
    anchor: Stage, factors: tuple[Expr, Expr], epilogue: Stage, program: Program, position: int
) -> Contraction | None:
    axes = [*anchor.axes, *anchor.reduce]
    operands = [_operand(factor, axes) for factor in factors]
    if operands[0] is None or operands[1] is None:
        return None
    uses = [dict(zip((id(a) for a in axes), op.access.used)) for op in operands if op is not None]
    if any(not (uses[0][id(axis)] and uses[1][id(axis)]) for axis in anchor.reduce):
        return None
    if any(not (uses[0][id(axis)] or uses[1][id(axis)]) for axis in anchor.axes):
        return None
    order = (0, 1)
    last = _contiguous_axis(epilogue)
    if last is not None and uses[0][id(last)] and not uses[1][id(last)]:
        order = (1, 0)
    left, right = (uses[side] for side in order)
    spatial = anchor.axes
    batch = tuple(a for a in spatial if left[id(a)] and right[id(a)])
    rows = tuple(a for a in spatial if left[id(a)] and not right[id(a)])
    columns = tuple(a for a in spatial if right[id(a)] and not left[id(a)])
    if not columns and (not batch or not rows):
        return None
    ordered = [*batch, *rows, *columns, *anchor.reduce]
    final = [_operand(factors[side], ordered) for side in order]
    if final[0] is None or final[1] is None:
        return None
    return Contraction(
        left=final[0],
        right=final[1],
        batch=batch,
        rows=rows,
        columns=columns,
        reduce=anchor.reduce,
        dtype=_sum_type(anchor) or "",
        sums=anchor.buffer,
        epilogue=epilogue,
        before=program.stages[:position],
        convolution=anchor.convolution,
        declared=anchor.declared,
    )


def _operand(expr: Expr, axes: Sequence[Axis]) -> Operand | None:
    loads = loads_of(expr)
    return operand_of(expr, loads[0], axes) if len(loads) == 1 else None


def operand_of(expr: Expr, load: Load, axes: Sequence[Axis]) -> Operand:
    """The factor ``expr``, which is made from ``load``, of a contraction with some axes.

    Args:
        expr: The factor as the product has it, with conversions and conditions.
        load: The element that it is made from.
        axes: Loops of the contraction, in which the address is analysed.
    """
    return Operand(expr, load, access(load.source, elements(load.indices), axes))


def _contiguous_axis(stage: Stage) -> Axis | None:
    """The axis along which the stage stores neighbouring elements."""
    strides = access(stage.buffer, stage.indices, stage.axes).strides
    if strides is None:
        return None
    return next((axis for axis, stride in zip(stage.axes, strides) if stride == 1), None)


def is_window(contraction: Contraction) -> bool:
    """Whether the column operand is read through a sliding window, as in a convolution.

    Args:
        contraction: The contraction, whose right operand may be an image.

    Returns:
        True if some index of the operand adds a column axis and a reduction axis (``x * stride +
        k``).
    """
    columns = [axis.var for axis in contraction.columns]
    reduce = [axis.var for axis in contraction.reduce]
    return any(
        any(variables_in([index], columns)) and any(variables_in([index], reduce))
        for index in contraction.right.load.indices
    )


# ---- grouped convolutions: an output channel reads the input channels of its group only ----------
# Legalization writes the group of channel ``f`` as ``f // size``. Splitting the loop over channels
# into one over groups and one within a group makes all indices linear again, and groups a batch
# axis.


def split_groups(anchor: Stage, epilogue: Stage) -> tuple[Stage, Stage]:
    """Splits the spatial axis that ``anchor`` divides in an index, in both stages; if there is one.

    Args:
        anchor: A reduction.
        epilogue: A stage over the same spatial axes.
    """
    for load in loads_of(*anchor.values):
        for index in load.indices:
            found = _quotient(index, anchor.axes)
            if found is not None:
                return _split(anchor, *found), _split(epilogue, *found)
    return anchor, epilogue


def _quotient(index: Expr, axes: tuple[Axis, ...]) -> tuple[Axis, Axis, Axis] | None:
    """The axis divided within an index, and the axes over groups and within a group."""
    found: list[tuple[Axis, int]] = []

    def visit(node: tirx.FloorDiv) -> None:
        dividend: Expr = node.a
        divisor: Expr = node.b
        axis = next((axis for axis in axes if axis.var.same_as(dividend)), None)
        if axis is not None and isinstance(divisor, tirx.IntImm):
            found.append((axis, int(divisor)))

    walk(index, (tirx.FloorDiv, visit))
    if not found or found[0][0].extent % found[0][1]:
        return None
    axis, size = found[0]
    group, member = (tirx.Var(name, "int64") for name in ("group", "member"))
    return axis, Axis(group, axis.extent // size), Axis(member, size)


def _split(stage: Stage, axis: Axis, group: Axis, member: Axis) -> Stage:
    position = stage.axes.index(axis)
    parts = (group, member) if group.extent > 1 else (member,)
    axes = (*stage.axes[:position], *parts, *stage.axes[position + 1 :])
    analyzer = sym.Analyzer()
    for each in (*axes, *stage.reduce):
        low, extent = (tirx.IntImm("int64", value) for value in (0, each.extent))
        analyzer.bind(each.var, ir.Range.from_min_extent(low, extent))
    whole = group.var * member.extent + member.var if len(parts) > 1 else member.var
    mapping: dict[Var, Expr] = {axis.var: whole}

    def rewrite(expr: Expr) -> Expr:
        return analyzer.simplify(substitute(expr, mapping))

    return replace(
        stage,
        axes=axes,
        indices=tuple(rewrite(index) for index in stage.indices),
        values=tuple(rewrite(value) for value in stage.values),
        lets=tuple((var, rewrite(value)) for var, value in stage.lets),
    )
