"""The geometry of a convolution: which input element meets which output element.

Every dimension of the input is indexed by one loop (image, channel) or by a window
``position * stride + tap * dilation - before``. Kernels whose vectors lie along the positions read
a rearranged copy of the input in which steps of one position are steps of one element: each window
dimension is split into ``stride`` phases. The copy applies the padding on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import overload

from tvm import sym, tirx

from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.cpu.kernels.operands import contraction_of, padding_of, with_right
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.columns import split_columns
from tvmgraph.backend.loop_ir.contraction import Contraction, Operand
from tvmgraph.backend.loop_ir.inline import inline_into
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound
from tvmgraph.backend.loop_ir.program import (
    Axis,
    Stage,
    is_choice,
    loads_of,
    static_shape,
    substitute,
)
from tvmgraph.backend.loop_ir.types import Expr, Index, Load, dtype_of
from tvmgraph.backend.table import Refused
from tvmgraph.machine.processor import CpuModel


@dataclass(frozen=True)
class Dimension:
    """One dimension of the input.

    Attributes:
        extent: Its size.
        axis: The loop that indexes it: a position, or a plain image or channel loop.
        tap: The loop over taps, or None.
        stride: Elements per position.
        dilation: Elements per tap.
        before: Elements of padding before the first one.
        index: Where several loops index the dimension without being a window: the index.
    """

    extent: int
    axis: Axis | None
    tap: Axis | None = None
    stride: int = 1
    dilation: int = 1
    before: int = 0
    index: Expr | None = None

    @property
    def positions(self) -> int:
        """Number of positions."""
        return self.axis.extent if self.axis else 1

    @property
    def taps(self) -> int:
        """Number of taps."""
        return self.tap.extent if self.tap else 1

    @overload
    def pixel(self, position: int, tap: int) -> int: ...
    @overload
    def pixel(self, position: Index, tap: Index) -> Index: ...
    def pixel(self, position: Index, tap: Index) -> Index:
        """The element that a tap sees at a position; outside of the image in the padding.

        Args:
            position: A position of the output along this dimension.
            tap: A tap of the filter.
        """
        return position * self.stride + tap * self.dilation - self.before

    @property
    def inside(self) -> bool:
        """Whether no tap ever leaves the image."""
        last = (self.positions - 1) * self.stride + (self.taps - 1) * self.dilation
        return self.before <= 0 and last - self.before < self.extent

    @property
    def phases(self) -> int:
        """Residues of the taps modulo the stride that occur."""
        if self.tap is None:
            return 1
        return max((t * self.dilation) % self.stride for t in range(self.tap.extent)) + 1

    @property
    def copied(self) -> int:
        """Elements of one phase that are read."""
        if self.tap is None or self.axis is None:
            return self.extent
        return self.axis.extent + (self.tap.extent - 1) * self.dilation // self.stride

    def place(self) -> list[Expr]:
        """Where the copy has what the loops reach: the phase, if there are several, and which."""
        position = self.axis.var if self.axis else emit.i64(0)
        if self.index is not None:
            position = self.index
        if self.tap is None:
            return [position]
        reach, stride = self.tap.var * self.dilation, emit.i64(self.stride)
        phase = [tirx.floormod(reach, stride)] if self.phases > 1 else []
        return [*phase, position + tirx.floordiv(reach, stride)]


def dimension_of(
    index: Expr, positions: Sequence[Axis], taps: Sequence[Axis], before: int, extent: int
) -> Dimension | None:
    """The dimension that windows move along, or None if it is indexed otherwise.

    Args:
        index: Index into the padded image.
        positions: The loops over positions, of all dimensions.
        taps: The loops over taps, of all dimensions.
        before: Elements of padding.
        extent: Elements without padding.
    """
    steps = _steps(index, [*positions, *taps])
    if steps is None:
        return None
    moving, seen = ([axis for axis in axes if axis in steps[0]] for axes in (positions, taps))
    if len(moving) > 1 or len(seen) > 1:
        return None
    axis, tap = (*moving, None)[0], (*seen, None)[0]
    stride, dilation = (steps[0][a] if a else 1 for a in (axis, tap))
    return Dimension(extent, axis, tap, stride, dilation, before - steps[1])


def _steps(index: Expr, axes: Sequence[Axis]) -> tuple[dict[Axis, int], int] | None:
    """What every loop adds to an index, and what it is at the start; None if it is not linear."""
    terms = list(sym.detect_linear_equation(index, [axis.var for axis in axes]))
    if not terms or not all(isinstance(term, tirx.IntImm) for term in terms):
        return None
    return {axis: int(term) for axis, term in zip(axes, terms) if int(term)}, int(terms[-1])


def lanes_along(positions: int, dtype: str, model: CpuModel) -> int:
    """Elements of vectors along rows of so many positions, few of them idle in short rows.

    Args:
        positions: Length of a row.
        dtype: Type of the elements.
        model: The processor.
    """
    lanes = model.lanes_of(dtype_bytes(dtype))
    while lanes > 4 and positions <= lanes // 2:
        lanes //= 2
    return lanes


# ---- convolutions of plain images ---------------------------------------------------------------


@dataclass(frozen=True)
class Window:
    """A convolution, or the gradient of its weights, whose column operand windows move over.

    Attributes:
        nest: Where it comes from.
        contraction: It.
        padding: The stage that pads the image, if there is one.
        dimensions: The dimensions of the image.
    """

    nest: Nest
    contraction: Contraction
    padding: Stage | None
    dimensions: list[Dimension]

    @property
    def by_taps(self) -> bool:
        """Whether sums run over the taps, as in a convolution, or over the positions."""
        return any(self.column is axis for axis in self.contraction.columns)

    @property
    def positions(self) -> tuple[Axis, ...]:
        """The axes of the positions of the window, images included."""
        return self.contraction.columns if self.by_taps else self.contraction.reduce

    @property
    def row(self) -> Axis | None:
        """The positions from top to bottom, if the image has two dimensions."""
        return (None, *self._positions)[-2]

    @property
    def column(self) -> Axis:
        """The positions of a row of the image."""
        return self._positions[-1]

    @property
    def _positions(self) -> list[Axis]:
        return [d.axis for d in self.dimensions if d.tap is not None and d.axis is not None]

    def widened(self, model: CpuModel) -> Window:
        """Writes the image, padded, in the type of the sums, unless it lies in that.

        Args:
            model: The processor, which decides how the copy is written.
        """
        return self if self.contraction.right.is_plain else self.copied(model)

    def copied(self, model: CpuModel) -> Window:
        """Writes the image, padded and in the type of the sums, unless it lies like that.

        Args:
            model: The processor, which decides how the copy is written.
        """
        contraction, stage = self.contraction, self.padding
        right, dtype = contraction.right, contraction.dtype
        if right.is_plain and stage is None:
            return self
        copy = emit.workspace(static_shape(right.load.source) or (), dtype)
        if stage is None:
            axes = tuple(Axis(tirx.Var("at", "int64"), int(extent)) for extent in copy.shape)
            at = tuple(axis.var for axis in axes)
            stage = Stage("widen", axes, (), (copy,), at, (right.load.source[at],), None)
        value = stage.value
        if not right.is_plain:
            wide = tirx.Cast(dtype, unguarded(value))
            choice = is_choice(value)
            value = tirx.if_then_else(value.args[0], wide, emit.zero(dtype)) if choice else wide
        emit_injective(replace(stage, buffers=(copy,), values=(value,)), model)
        contraction = with_right(contraction, copy[tuple(right.load.indices)])
        return replace(self, contraction=contraction, padding=None)


def find_convolution(nest: Nest) -> Window | Refused:
    """A convolution with the image as its column operand.

    Args:
        nest: The loops of a function.
    """
    return _find(
        nest, lambda found: found.columns, lambda found, _: bool(found.rows),
        "no window slides over its column operand",
    )  # fmt: skip


def find_weight_gradient(nest: Nest) -> Window | Refused:
    """The gradient of a convolution's weights: sums over more positions than there are taps.

    The result of a convolution of images smaller than the window would be one as well, were its
    columns, images and positions, not apart in memory.

    Args:
        nest: The loops of a function.
    """
    return _find(
        nest, lambda found: found.reduce, _sums_over_rows,
        "no gradient of a convolution's weights",
    )  # fmt: skip


def _find(
    nest: Nest,
    positions: Callable[[Contraction], Sequence[Axis]],
    is_it: Callable[[Contraction, Dimension], bool],
    reason: str,
) -> Window | Refused:
    """The contraction whose column operand is read through a window.

    Args:
        nest: The loops of a function.
        positions: The axes that count as positions of the window.
        is_it: Whether a contraction is what is looked for, whose window moves along a last axis.
        reason: What is said of one that is not.
    """
    contraction = contraction_of(nest)
    if isinstance(contraction, Refused):
        return contraction
    dimensions = _dimensions(contraction, positions(contraction))
    if dimensions is None or not is_it(contraction, dimensions[-1]):
        return Refused(reason)
    padding = padding_of(contraction, contraction.right)
    if isinstance(padding, Refused):
        return padding
    return Window(nest, contraction, padding, dimensions)


def _sums_over_rows(contraction: Contraction, last: Dimension) -> bool:
    """Whether sums run over rows of images, ``last`` along them, whose results are neighbours."""
    if last.axis is None or last.positions <= last.taps or not contraction.rows:
        return False
    strides = contraction.strides(contraction.left) if contraction.left.is_direct else None
    along = strides is not None and strides[last.axis.var] == 1
    return along and not split_columns(contraction).outer


def _dimensions(contraction: Contraction, positions: Sequence[Axis]) -> list[Dimension] | None:
    """The dimensions of the column operand of a convolution, or None if it is none.

    Args:
        contraction: The contraction.
        positions: Which axes count as window positions; those they are added to are the taps. The
            columns in a convolution; the summed axes in the gradient of its weights.
    """
    if not contraction.right.is_direct:
        return None
    load = contraction.right.load
    shape = static_shape(load.source) or ()
    every = (*contraction.batch, *contraction.columns, *contraction.reduce)
    found = [_dimension(*at, every, positions) for at in zip(load.indices, shape)]
    dimensions = [dimension for dimension in found if dimension is not None]
    whole = len(dimensions) == len(shape) and bool(dimensions) and dimensions[-1].tap is not None
    return dimensions if whole else None


def _dimension(
    index: Expr, extent: int, axes: Sequence[Axis], positions: Sequence[Axis]
) -> Dimension | None:
    found = _steps(index, axes)
    if found is None or found[1] or any(step < 0 for step in found[0].values()):
        return None
    if not found[0]:
        return Dimension(extent, None)
    (axis, step), *others = found[0].items()
    if not others and step == 1:
        return Dimension(extent, axis)
    if not any(axis in positions for axis in found[0]):
        return Dimension(extent, None, index=index)
    taps = [axis for axis in axes if axis not in positions]
    window = dimension_of(index, positions, taps, 0, extent)
    return window if window and window.axis and window.tap else None


def place_at(*positions: tuple[Dimension, Index]) -> Bound:
    """The loops over positions at one of them.

    Args:
        *positions: Dimensions, each with the position its loop has; those without a loop are left
            out.
    """
    return {d.axis.var: emit.index(at) for d, at in positions if d.axis}


def tap_at(*taps: tuple[Dimension, Index]) -> Bound:
    """The loops over taps at one of them.

    Args:
        *taps: Dimensions, each with the tap its loop has; those without taps are left out.
    """
    return {d.tap.var: emit.index(at) for d, at in taps if d.tap}


# ---- copies -------------------------------------------------------------------------------------


def rearrange(
    found: Window, slack: int, element: Callable[..., Expr] | None = None
) -> tuple[Contraction, Stage]:
    """The convolution that reads a copy, and the stage that fills the copy.

    The copy has one dimension per input dimension, preceded by its phase if it has several. Padding
    is merged into it.

    Args:
        found: The convolution.
        slack: Elements added at the end of every row, so that vectors may read beyond it.
        element: What is copied, by its place; an element of the input in the type of the sums if
            absent.
    """
    contraction, dimensions = found.contraction, found.dimensions
    element = element or contraction.right.at
    axes: list[Axis] = []
    at: list[Expr] = []
    guards: list[Expr] = []
    read: list[Expr] = []
    for number, dimension in enumerate(dimensions):
        phases = dimension.phases
        positions = dimension.copied + (slack if number == len(dimensions) - 1 else 0)
        phase, position = (tirx.Var(name, "int64") for name in ("phase", "at"))
        axes += [Axis(phase, phases)] if phases > 1 else []
        axes.append(Axis(position, positions))
        index: Expr = position if dimension.tap is None else position * dimension.stride
        at.append(index + phase if phases > 1 else index)
        if (positions - 1) * (dimension.stride if dimension.tap else 1) + phases > dimension.extent:
            guards.append(at[-1] < dimension.extent)
        read += dimension.place()
    value = element(*at)
    buffer = emit.workspace([axis.extent for axis in axes], dtype_of(value))
    if guards:
        value = tirx.if_then_else(tirx.all(*guards), value, emit.zero(dtype_of(value)))
    live = tuple(axis for axis in axes if axis.extent > 1)
    unit = {axis.var: emit.i64(0) for axis in axes if axis.extent == 1}
    indices = tuple(substitute(axis.var, unit) for axis in axes)
    stage = Stage("rearrange", live, (), (buffer,), indices, (substitute(value, unit),), None)
    if found.padding is not None:
        stage = inline_into(stage, found.padding)
    return with_right(contraction, buffer[tuple(read)]), stage


def image_of(operand: Operand, padding: Sequence[Stage]) -> tuple[Load, list[int]]:
    """An element of the image as it lies in memory, and the padding before each axis.

    Args:
        operand: The factor that is read through the window.
        padding: The stage that pads the image, or none.
    """
    if not padding:
        return operand.load, [0] * len(operand.load.indices)
    stage = padding[0]
    load = loads_of(unguarded(stage.value))[0]
    analyzer = sym.Analyzer()
    moved = [analyzer.simplify(index - at) for index, at in zip(stage.indices, load.indices)]
    return load, [int(step) if isinstance(step, tirx.IntImm) else -1 for step in moved]


def unguarded(value: Expr) -> Expr:
    """The value of padding where the image is.

    Args:
        value: What a stage that pads stores.
    """
    return value.args[1] if is_choice(value) else value
