"""The extents of a contraction as a matrix product, and which columns can form panels."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import tirx

from tvmgraph.backend.loop_ir.access import access, dtype_bytes
from tvmgraph.backend.loop_ir.contraction import Contraction, Operand
from tvmgraph.backend.loop_ir.gemm_shape import GemmShape
from tvmgraph.backend.loop_ir.point import Bound, bind_group
from tvmgraph.backend.loop_ir.program import Axis, product, static_shape, substitute
from tvmgraph.backend.loop_ir.types import Expr, Var


@dataclass(frozen=True)
class Columns:
    """The column axes: ``inner`` ones run on in the result and are cut into panels."""

    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]


def split_columns(contraction: Contraction) -> Columns:
    """Finds the longest group of column axes along which the result is contiguous.

    Args:
        contraction: The matrix product. Its columns may be several axes.

    Returns:
        The column axes along which the result has stride 1 as one long axis, and the others, which
        are loops around the GEMM. Where no axis has stride 1 the one of the smallest stride is
        taken.
    """
    stage = contraction.epilogue
    strides = access(stage.buffer, stage.indices, contraction.columns).strides
    if strides is None:
        return Columns(contraction.columns[:-1], contraction.columns[-1:])
    ordered = sorted(zip(strides, contraction.columns), key=lambda pair: pair[0])
    inner: list[Axis] = []
    expected = 1
    for stride, axis in ordered:
        if stride != expected:
            break
        inner.insert(0, axis)
        expected *= axis.extent
    inner = inner or [ordered[0][1]]
    return Columns(tuple(a for a in contraction.columns if a not in inner), tuple(inner))


@dataclass(frozen=True)
class MatrixProduct:
    """A contraction as a matrix product.

    Attributes:
        contraction: It. Its columns may be several axes.
        columns: Its column axes as :func:`split_columns` parts them.
    """

    contraction: Contraction
    columns: Columns

    @property
    def around(self) -> tuple[Axis, ...]:
        """The loops around a single product: the batch, and columns that form no panels."""
        return (*self.contraction.batch, *self.columns.outer)

    @functools.cached_property
    def shape(self) -> GemmShape:
        """Its extents in elements, the bytes of an element and of the distance between rows."""
        contraction = self.contraction
        return GemmShape(
            rows=product(axis.extent for axis in contraction.rows),
            columns=product(axis.extent for axis in self.columns.inner),
            k_size=product(axis.extent for axis in contraction.reduce),
            outer=product(axis.extent for axis in self.around),
            itemsize=dtype_bytes(contraction.dtype),
            row_bytes=_row_bytes(contraction),
        )

    def bound_at(self, operand: Operand, outer: Bound, mn: Expr, k: Expr | Bound) -> Bound:
        """The axes of an operand, bound to one of its elements.

        Args:
            operand: The left or right operand.
            outer: What the loops around the product are bound to.
            mn: The row of the left operand, or the column of the right one.
            k: The step of K, or what its axes are bound to.
        """
        rows = operand is self.contraction.left
        steps = k if isinstance(k, dict) else bind_group(self.contraction.reduce, k)
        return outer | bind_group(self.contraction.rows if rows else self.columns.inner, mn) | steps

    def element_at(self, operand: Operand, outer: Bound, mn: Expr, k: Expr | Bound) -> Expr:
        """The value of an operand at an element; see :meth:`bound_at`.

        Args:
            operand: The left or right operand.
            outer: What the loops around the product are bound to.
            mn: The row of the left operand, or the column of the right one.
            k: The step of K, or what its axes are bound to.
        """
        return substitute(operand.expr, self.bound_at(operand, outer, mn, k))

    @property
    def is_transposed(self) -> bool:
        """Whether the column operand is contiguous along K instead of along the columns."""
        strides = self.contraction.strides(self.contraction.right)
        if strides is None:
            return False
        along, across = self.contraction.reduce[-1].var, self.columns.inner[-1].var
        return strides[along] == 1 and strides[across] != 1


def _row_bytes(contraction: Contraction) -> int:
    """Bytes from one row of the row operand to the next, 0 if they vary."""
    left = contraction.left
    strides = contraction.strides(left)
    if strides is None or len(contraction.rows) != 1:
        return 0
    return abs(strides[contraction.rows[0].var]) * dtype_bytes(str(left.load.source.dtype))


def runs_on(axes: Sequence[Axis], strides: dict[Var, int]) -> bool:
    """Whether the elements along some axes, the innermost one last, are all neighbours.

    Args:
        axes: Loops, the innermost one last.
        strides: Stride of an access per loop variable, in elements.
    """
    expected = 1
    for axis in reversed(axes):
        if strides[axis.var] != expected:
            return False
        expected *= axis.extent
    return True


def stored_panel(found: MatrixProduct, group: int = 1) -> int | None:
    """Columns per panel of an operand that is stored as ``[panel, K, column in it]``.

    Args:
        found: The product.
        group: Elements along K that lie side by side; more than 1 are a last axis.
    """
    contraction, inner = found.contraction, list(found.columns.inner)
    right = contraction.right
    extents = list(static_shape(right.load.source) or ())
    if not right.is_direct or found.around or len(inner) > 2:
        return None
    if len(contraction.reduce) != 1 or len(extents) != 3 + (group > 1):
        return None
    if group > 1 and extents[3] != group:
        return None
    width, k = extents[2], contraction.reduce[0].var
    if len(inner) == 2:  # whole panels
        panel, member = inner[0].var, inner[1].var
    elif extents[0] == 1 and inner[0].extent == width:  # a single one
        panel, member = tirx.IntImm("int64", 0), inner[0].var
    else:
        panel, member = _divided(inner[0].var, width)
    expected = (panel, k, member)
    if group > 1:
        number, own = _divided(k, group)
        expected = (panel, number, member, own)
    same = all(map(tvm_ffi.structural_equal, right.load.indices, expected))
    return width if same and (len(inner) == 1 or inner[1].extent == width) else None


def _divided(var: Var, size: int) -> tuple[Expr, Expr]:
    """The quotient and the rest of a variable."""
    divisor = tirx.IntImm("int64", size)
    return tirx.floordiv(var, divisor), tirx.floormod(var, divisor)  # pyright: ignore[reportGeneralTypeIssues]
