"""Reads a PrimFunc of naive loop nests into a list of stages, the form every kernel emitter uses.

Legalization writes one loop nest per operator: perfectly nested serial loops around one block that
stores one element. A :class:`Stage` is such a nest; a :class:`Program` is a PrimFunc that consists
of nothing else. What does not fit (symbolic extents, opaque blocks, scans, sorts) is reported as
None and left to the fallback rule.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import tvm_ffi
from tvm import ir, tirx
from tvm.s_tir import SBlock, SBlockRealize

from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func, Load, Var, dtype_of
from tvmgraph.backend.walks import elements, rewrite, walk
from tvmgraph.core.descriptors import CONVOLUTION, Convolution

_SPATIAL, _REDUCE = 0, 2
#: The names that builds of TVM give to ``if_then_else``.
_CHOICES = frozenset({"prim.if_then_else", "tirx.if_then_else"})
#: Functions that are an instruction or two.
_INSTRUCTIONS = frozenset({"tirx.fabs", "tirx.isnan", "tirx.sqrt"})


@dataclass(frozen=True)
class Axis:
    """One loop of a stage: values 0 to ``extent`` - 1."""

    var: Var
    extent: int


@dataclass(frozen=True)
class Stage:
    """``for axes: buffer[indices] = value``, or a reduction of ``value`` over ``reduce``.

    Attributes:
        name: The block's name, for messages.
        axes: The spatial loops. Loops of one iteration have been removed.
        reduce: The reduction loops; empty for an elementwise stage.
        buffers: What is written. Only tuple reductions such as argmax write more than one buffer.
        indices: Where, in terms of the spatial axes; the same for all buffers.
        values: What is stored. In a reduction it reads ``buffers`` at ``indices``.
        inits: Initial values of a reduction, else None.
        lets: Values computed first and read by name, because they are used more than once. Later
            ones may use earlier ones.
        convolution: Of a convolution with a packed weight, what the operator knows of it.
        declared: Buffers that the block declares to read and its body does not: operands that only
            some kernels need, such as a transformed weight.
    """

    name: str
    axes: tuple[Axis, ...]
    reduce: tuple[Axis, ...]
    buffers: tuple[Buffer, ...]
    indices: tuple[Expr, ...]
    values: tuple[Expr, ...]
    inits: tuple[Expr, ...] | None
    lets: tuple[tuple[Var, Expr], ...] = ()
    convolution: Convolution | None = None
    declared: tuple[Buffer, ...] = ()

    @functools.cached_property
    def exprs(self) -> tuple[Expr, ...]:
        """Everything the body computes."""
        return (*(value for _, value in self.lets), *self.values)

    @property
    def buffer(self) -> Buffer:
        """The buffer written first."""
        return self.buffers[0]

    @property
    def value(self) -> Expr:
        """The value stored into :attr:`buffer`."""
        return self.values[0]

    @property
    def is_reduction(self) -> bool:
        """Whether values are accumulated."""
        return self.inits is not None

    @property
    def points(self) -> int:
        """Number of elements written."""
        return product(axis.extent for axis in self.axes)

    @property
    def work(self) -> int:
        """Number of times the body runs."""
        return self.points * product(axis.extent for axis in self.reduce)

    def reads(self, buffer: Buffer) -> bool:
        """Whether the value reads ``buffer`` (a reduction's own accumulator included).

        Args:
            buffer: A buffer of the function.
        """
        return hash(buffer) in self.sources

    @property
    def has_calls(self) -> bool:
        """Whether the body is more than arithmetic and tests of single instructions."""
        return any(str(getattr(call.op, "name", "")) not in _INSTRUCTIONS for call in self._calls)

    @property
    def has_choice(self) -> bool:
        """Whether a condition guards a part of the body (padding, concatenation)."""
        return any(map(is_choice, self._calls))

    @functools.cached_property
    def loads(self) -> list[Load]:
        """Every element that the body reads, repeats included."""
        return loads_of(*self.exprs)

    @functools.cached_property
    def size(self) -> int:
        """Number of expression nodes of the body."""
        return node_count(*self.exprs)

    @functools.cached_property
    def sources(self) -> frozenset[int]:
        """The identities of the buffers that the body reads."""
        return frozenset(hash(load.source) for load in self.loads)

    @functools.cached_property
    def _calls(self) -> list[ir.Call]:
        calls: list[ir.Call] = []
        walk(self.exprs, (ir.Call, calls.append))
        return calls


@dataclass(frozen=True)
class Program:
    """Loop nests in execution order, of a PrimFunc or of several that might become one.

    Attributes:
        params: The arguments and results; all other buffers are intermediates.
        stages: The loop nests.
    """

    params: tuple[Buffer, ...]
    stages: tuple[Stage, ...]

    def is_parameter(self, buffer: Buffer) -> bool:
        """Whether ``buffer`` is an argument rather than an intermediate of the function.

        Args:
            buffer: A buffer of the function.
        """
        return hash(buffer) in self._params

    @functools.cached_property
    def _params(self) -> frozenset[int]:
        return frozenset(map(hash, self.params))

    def consumers(self, buffer: Buffer) -> list[Stage]:
        """The stages that read ``buffer`` and do not write it.

        Args:
            buffer: A buffer of the function.
        """
        return [
            stage
            for stage in self.stages
            if stage.reads(buffer) and not any(b.same_as(buffer) for b in stage.buffers)
        ]


def product(values: Iterable[int]) -> int:
    """Product of integers; 1 when there are none.

    Args:
        values: Any iterable of integers: extents, to get a number of elements.
    """
    return math.prod(values)


def integers(values: Sequence[Expr]) -> tuple[int, ...] | None:
    """The numbers that expressions are, or None where one is no number.

    Args:
        values: Extents, or coefficients of a linear index.
    """
    found = [int(value) for value in values if isinstance(value, tirx.IntImm)]
    return tuple(found) if len(found) == len(values) else None


def static_shape(buffer: Buffer) -> tuple[int, ...] | None:
    """The extents of a buffer, or None where one is symbolic.

    Args:
        buffer: A buffer of TVM.
    """
    return integers(elements(buffer.shape))


def loads_of(*exprs: Expr) -> list[Load]:
    """Every element read by the expressions, repeats included.

    Args:
        exprs: Scalar expressions.
    """
    found: list[Load] = []
    walk(exprs, (Load, found.append))
    return found


def node_count(*exprs: Expr) -> int:
    """Number of nodes of expressions, those that they hold several times counted as often.

    Args:
        exprs: Scalar expressions.
    """
    count = 0

    def visit(_node: Expr) -> None:
        nonlocal count
        count += 1

    walk(exprs, (ir.Expr, visit))
    return count


def substitute(expr: Expr, mapping: Mapping[Var, Expr]) -> Expr:
    """Replaces variables.

    Args:
        expr: The expression; it is not changed.
        mapping: What stands in the place of a variable.
    """
    if not mapping or isinstance(expr, tirx.IntImm):
        return expr
    # by identity: comparing TVM's variables makes an expression, and hashing one gives its address
    found = {hash(old): new for old, new in mapping.items()}

    def visit(var: Var) -> Expr:
        return found.get(hash(var), var)

    return visit(expr) if isinstance(expr, Var) else rewrite(expr, (Var, visit))


def is_choice(expr: Expr) -> TypeGuard[ir.Call]:
    """Whether an expression is ``if_then_else``, which evaluates one of its branches only.

    Args:
        expr: An expression.
    """
    return isinstance(expr, ir.Call) and getattr(expr.op, "name", "") in _CHOICES


def map_loads(expr: Expr, visit: Callable[[Load], Expr]) -> Expr:
    """Replaces element reads, innermost first.

    Args:
        expr: The expression; it is not changed.
        visit: Returns what stands in the place of a read, whose indices are replaced already.
    """
    return rewrite(expr, (Load, visit))


def map_body(stage: Stage, visit: Callable[[Load], Expr]) -> Stage:
    """Replaces the element reads of a stage's body.

    Args:
        stage: The loop nest.
        visit: Returns what stands in the place of a read, in local variables and results alike.
    """
    named, exprs = len(stage.lets), elements(rewrite(stage.exprs, (Load, visit)))
    lets = tuple((var, value) for (var, _), value in zip(stage.lets, exprs))
    return replace(stage, lets=lets, values=tuple(exprs[named:]))


def rename_buffers(stage: Stage, new: Mapping[int, Buffer]) -> Stage:
    """The stage with other buffers in the places of some that it stores or reads.

    Args:
        stage: The loop nest.
        new: Buffers of the same extents and dtypes, by the hashes of those they replace.
    """

    def visit(load: Load) -> Expr:
        buffer = new.get(hash(load.source))
        return load if buffer is None else tirx.BufferLoad(buffer, load.indices)

    stored, declared = (
        tuple(new.get(hash(buffer), buffer) for buffer in buffers)
        for buffers in (stage.buffers, stage.declared)
    )
    inits = stage.inits and tuple(map_loads(init, visit) for init in stage.inits)
    return replace(map_body(stage, visit), buffers=stored, declared=declared, inits=inits)


def parse(func: Func) -> Program | None:
    """Reads ``func``, or returns None when it is not a list of static single-store nests.

    Args:
        func: A function as Relax's legalization and fusion leave it, one block per operator.

    Returns:
        One stage per nest in the order they run, or None: symbolic extents, opaque statements, or a
        buffer that is written twice.
    """
    root = func.body
    if not isinstance(root, SBlockRealize) or root.block.iter_vars:
        return None
    if not all(map(tirx.is_buffer_var, func.params)):  # a symbolic size is a parameter
        return None
    if any(static_shape(buffer) is None for buffer in [*func.params, *root.block.alloc_buffers]):
        return None
    stages: list[Stage] = []
    for nest in _statements(root.block.body):
        stage = _parse_nest(nest)
        if stage is None:
            return None
        stages.append(stage)
    if not stages or not _assigns_once(stages):
        return None
    return Program(tuple(func.params), tuple(stages))


def _assigns_once(stages: Sequence[Stage]) -> bool:
    """Whether every buffer is written by one stage, which reads nothing it overwrites."""
    written: list[Buffer] = []
    for stage in stages:
        if not stage.is_reduction and any(stage.reads(buffer) for buffer in stage.buffers):
            return False
        if any(buffer.same_as(other) for buffer in stage.buffers for other in written):
            return False
        written += stage.buffers
    return True


def _statements(body: tirx.Stmt) -> Sequence[tirx.Stmt]:
    return list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]


def _parse_nest(nest: tirx.Stmt) -> Stage | None:
    extents: list[tuple[Var, int]] = []
    while isinstance(nest, tirx.For):
        plain = nest.kind == tirx.ForKind.SERIAL and _is_int(nest.min, 0)
        if not plain or not isinstance(nest.extent, tirx.IntImm):
            return None
        extents.append((nest.loop_var, int(nest.extent)))
        nest = nest.body
    if not isinstance(nest, SBlockRealize) or not _is_int(nest.predicate, 1):
        return None
    block = nest.block
    if block.match_buffers or block.alloc_buffers:
        return None
    axes = _bind_axes(block, nest.iter_values, extents)
    return None if axes is None else _parse_block(block, *axes)


def _bind_axes(
    block: SBlock, values: Sequence[Expr], extents: list[tuple[Var, int]]
) -> tuple[list[Axis], list[Axis]] | None:
    """The block's spatial and reduction axes, when each is bound to a loop of its own."""
    spatial: list[Axis] = []
    reduce: list[Axis] = []
    unused = list(extents)
    for iter_var, value in zip(block.iter_vars, values):
        kind = int(iter_var.iter_type)
        if kind not in (_SPATIAL, _REDUCE):
            return None
        extent = next((extent for var, extent in unused if var.same_as(value)), None)
        if extent is None:
            if not _is_int(value, 0):
                return None
            extent = 1
        unused = [pair for pair in unused if not pair[0].same_as(value)]
        (spatial if kind == _SPATIAL else reduce).append(Axis(iter_var.var, extent))
    if any(extent != 1 for _, extent in unused):
        return None
    return spatial, reduce


def _parse_block(block: SBlock, spatial: list[Axis], reduce: list[Axis]) -> Stage | None:
    stores = _parse_stores(block.body)
    inits = _parse_stores(block.init) if block.init is not None else None
    if stores is None or (block.init is not None and inits is None):
        return None
    if bool(reduce) != (inits is not None):
        return None
    buffers = tuple(store[0] for store in stores)
    indices = stores[0][1]
    if any(not _same_exprs(store[1], indices) for store in stores[1:]):
        return None
    if inits is not None and not _same_targets(inits, stores):
        return None
    unit = {axis.var: _zero(axis.var) for axis in spatial + reduce if axis.extent == 1}
    known = block.annotations.get(CONVOLUTION)
    stage = Stage(
        name=str(block.name_hint),
        axes=tuple(axis for axis in spatial if axis.extent != 1),
        reduce=tuple(axis for axis in reduce if axis.extent != 1),
        buffers=buffers,
        indices=tuple(substitute(index, unit) for index in indices),
        values=tuple(substitute(store[2], unit) for store in stores),
        inits=None if inits is None else tuple(substitute(init[2], unit) for init in inits),
        convolution=None if known is None else Convolution.read(str(known)),
    )
    declared = tuple(r.source for r in block.reads if not stage.reads(r.source))
    return _without_empty_reduction(replace(stage, declared=declared))


def _without_empty_reduction(stage: Stage) -> Stage:
    """A reduction over one element is elementwise: its accumulator holds the initial value."""
    if stage.inits is None or stage.reduce:
        return stage
    pairs = list(zip(stage.buffers, stage.inits))

    def visit(load: Load) -> Expr:
        return next((init for buffer, init in pairs if load.source.same_as(buffer)), load)

    values = tuple(_from_zero(map_loads(value, visit)) for value in stage.values)
    return replace(stage, values=values, inits=None)


def _from_zero(value: Expr) -> Expr:
    """A sum of 0 and a float, which TVM would fold to the float though that may be -0."""
    if not isinstance(value, tirx.Add) or not dtype_of(value).startswith(("float", "bfloat")):
        return value
    first, term = value.a, value.b
    if not isinstance(first, tirx.FloatImm) or float(first.value) != 0:
        return value
    return tirx.Select(tirx.EQ(term, first), first, term)


_Store = tuple[Buffer, tuple[Expr, ...], Expr]


def _parse_stores(body: tirx.Stmt) -> list[_Store] | None:
    """The stores of a straight-line body, with its local names replaced by their values."""
    names: dict[Var, Expr] = {}
    stores: list[_Store] = []
    for statement in _statements(body):
        if isinstance(statement, tirx.Bind):
            names[statement.var] = substitute(statement.value, names)
        elif isinstance(statement, tirx.BufferStore):
            value = substitute(statement.value, names)
            stores.append((statement.buffer, tuple(elements(statement.indices)), value))
        else:
            return None
    return stores or None


def _same_targets(inits: list[_Store], stores: list[_Store]) -> bool:
    return len(inits) == len(stores) and all(
        init[0].same_as(store[0]) and _same_exprs(init[1], store[1])
        for init, store in zip(inits, stores)
    )


def _same_exprs(left: Sequence[Expr], right: Sequence[Expr]) -> bool:
    return len(left) == len(right) and all(
        tvm_ffi.structural_equal(a, b) for a, b in zip(left, right)
    )


def _is_int(expr: Expr, value: int) -> bool:
    return isinstance(expr, tirx.IntImm) and int(expr) == value


def _zero(var: Var) -> Expr:
    return tirx.IntImm(dtype_of(var), 0)
