"""The factors of a contraction as they lie in device memory.

An element is addressed by its row in A, or column in B, and its step along K. Padding is
not stored anywhere: a factor that is zero outside of a tensor reads that tensor, under a guard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tvm import sym, tirx

from tvmgraph.backend.cuda.kernels.device import VECTOR_BYTES, at_point, elements, i32, to_int32
from tvmgraph.backend.cuda.kernels.iteration import uses
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.contraction import Contraction, Operand
from tvmgraph.backend.loop_ir.program import Axis, is_choice, map_loads, product
from tvmgraph.backend.loop_ir.types import Expr, Load, Var, dtype_of


@dataclass(frozen=True)
class GemmOperand:
    """One operand of a contraction.

    Attributes:
        value: The factor in terms of the axes, in the type that is multiplied.
        load: The element that it is made from.
        guards: Where one of them is false the factor is zero.
        batch: Axes that select a matrix.
        mn_axes: Rows of A or columns of B.
        k_axes: The summed axes.
    """

    value: Expr
    load: Load
    guards: tuple[Expr, ...]
    batch: tuple[Axis, ...]
    mn_axes: tuple[Axis, ...]
    k_axes: tuple[Axis, ...]

    @property
    def dtype(self) -> str:
        """Type that is multiplied."""
        return dtype_of(self.value)

    @property
    def itemsize(self) -> int:
        """Bytes of an element as it is multiplied."""
        return dtype_bytes(self.dtype)

    @property
    def is_plain(self) -> bool:
        """Whether elements are multiplied as they lie in memory."""
        return isinstance(self.value, Load)

    @cached_property
    def linear(self) -> tuple[dict[Var, int], int] | None:
        """By how many elements the address moves along every axis, and where it starts.

        None where it is not linear, or the factor is more than its element converted.
        """
        value = self.value
        while isinstance(value, tirx.Cast):
            value = value.value
        if not isinstance(value, Load):
            return None
        return linear_address(self.load, (*self.batch, *self.mn_axes, *self.k_axes))

    def run(self, axes: Sequence[Axis]) -> int:
        """How many neighbouring elements an aligned stretch along ``axes`` moves through.

        Args:
            axes: M, N or K of the operand, outermost first.
        """
        if self.linear is None:
            return 1
        strides, start = self.linear
        length, inner = 1, []
        for axis in reversed(axes):
            guarded = any(uses(guard, [axis.var]) for guard in self.guards)
            if strides[axis.var] != length or guarded:
                break
            length *= axis.extent
            inner.append(axis.var)
        steps = [s for var, s in strides.items() if not any(var.same_as(v) for v in inner)]
        aligned = VECTOR_BYTES
        while aligned > 1 and any(number % aligned for number in (length, start, *steps)):
            aligned //= 2
        return aligned

    def offset(self, axes: Sequence[Axis], values: Mapping[Var, Expr]) -> Expr:
        """The share of some axes in the offset of a linear address.

        Args:
            axes: The axes.
            values: Their loop variables -> where they are.
        """
        assert self.linear is not None
        strides = self.linear[0]
        wide = elements(self.load.source) >= 1 << 31
        total: Expr = i32(0)
        for axis in axes:
            value = tirx.Cast("int64", values[axis.var]) if wide else values[axis.var]
            total = total + value * tirx.const(strides[axis.var], dtype_of(value))
        return total

    def guard(self, values: Mapping[Var, Expr]) -> Expr | None:
        """Whether the factor is not zero, None where it never is.

        Args:
            values: Loop variables -> where they are.
        """
        found = [to_int32(guard, values) for guard in self.guards]
        return tirx.all(*found) if found else None

    def element(self, values: Mapping[Var, Expr]) -> Expr:
        """The factor where the guards hold.

        Args:
            values: Loop variables -> where they are.
        """
        return at_point(self.value, values)

    def converted(self, element: Load) -> Expr:
        """The factor made from another element than its own.

        Args:
            element: The load of the other element.
        """
        return map_loads(self.value, lambda _: element)


def gemm_operand_of(contraction: Contraction, operand: Operand, dtype: str) -> GemmOperand:
    """Reads an operand.

    Args:
        contraction: What it belongs to.
        operand: Its left or right operand.
        dtype: Type that is multiplied.
    """
    value, guards = _peel(operand.expr)
    if isinstance(value, tirx.Cast) and dtype_of(value.value) == dtype:
        value = value.value  # tensor cores take the narrow type
    elif dtype_of(value) != dtype:
        value = tirx.Cast(dtype, value)
    mn_axes = contraction.rows if operand is contraction.left else contraction.columns
    return GemmOperand(
        value, operand.load, tuple(guards), contraction.batch, mn_axes, contraction.reduce
    )


def _peel(expr: Expr) -> tuple[Expr, list[Expr]]:
    """An expression and the conditions outside of which it is zero."""
    if isinstance(expr, tirx.Cast):
        value, guards = _peel(expr.value)
        return (tirx.Cast(dtype_of(expr), value) if guards else expr), guards
    if is_choice(expr) and _is_zero(expr.args[2]):
        value, guards = _peel(expr.args[1])
        return value, [*_conditions(expr.args[0]), *guards]
    return expr, []


def _conditions(expr: Expr) -> list[Expr]:
    if isinstance(expr, tirx.And):
        return [*_conditions(expr.a), *_conditions(expr.b)]
    return [expr]


def _is_zero(expr: Expr) -> bool:
    while isinstance(expr, tirx.Cast):
        expr = expr.value
    return isinstance(expr, tirx.IntImm | tirx.FloatImm) and float(expr.value) == 0


def linear_address(load: Load, axes: Sequence[Axis]) -> tuple[dict[Var, int], int] | None:
    """Element offsets per axis and the offset at zero, or None if the address is not linear.

    Args:
        load: A read.
        axes: The loops that its indices may depend on.
    """
    shape = [int(extent) for extent in load.source.shape]
    address: Expr = tirx.IntImm("int64", 0)
    for position, index in enumerate(load.indices):
        address = address + index * tirx.IntImm("int64", product(shape[position + 1 :]))
    variables = [axis.var for axis in axes]
    terms = list(sym.detect_linear_equation(address, variables)) if variables else []
    terms = terms or [sym.Analyzer().simplify(address)]
    if not all(isinstance(term, tirx.IntImm) for term in terms) or len(terms) <= len(variables):
        return None
    strides = {axis.var: int(term) for axis, term in zip(axes, terms)}
    return strides, int(terms[-1])


def run_of(load: Load, group: Sequence[Axis], others: Sequence[Axis]) -> int:
    """How many neighbours an aligned stretch along ``group`` moves through, at fixed ``others``.

    Args:
        load: A read.
        group: Loops along which neighbours are sought, outermost first.
        others: Loops that stand still meanwhile.

    Returns:
        Elements.
    """
    return GemmOperand(load, load, (), tuple(others), tuple(group), ()).run(group)
