"""The geometry of a convolution: which input element meets which output element.

Every dimension of the input is indexed by one loop (image, channel) or by a window
``position * stride + tap * dilation``. The kernels read a rearranged copy of the input in which
steps of one output position are steps of one element: each window dimension is split into
``stride`` phases. The copy applies the padding on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tvm import sym, tirx

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.inline import inline_into
from tvmgraph.backend.loop_ir.program import Axis, Stage, static_shape, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Var, dtype_of


@dataclass(frozen=True)
class Dimension:
    """One dimension of the input.

    Attributes:
        extent: Its size, padding included.
        axis: The loop that indexes it: an output position, or a plain image or channel loop.
        tap: The window loop, or None.
        stride: Elements per output position.
        dilation: Elements per tap.
        index: Where several loops index the dimension without being a window: the index.
    """

    extent: int
    axis: Axis | None
    tap: Axis | None = None
    stride: int = 1
    dilation: int = 1
    index: Expr | None = None

    @property
    def phases(self) -> int:
        """Residues of the taps modulo the stride that occur."""
        if self.tap is None:
            return 1
        return max((t * self.dilation) % self.stride for t in range(self.tap.extent)) + 1

    @property
    def positions(self) -> int:
        """Elements of one phase that are read."""
        if self.tap is None or self.axis is None:
            return self.extent
        return self.axis.extent + (self.tap.extent - 1) * self.dilation // self.stride


def window_dimensions(
    contraction: Contraction, positions: Sequence[Axis]
) -> list[Dimension] | None:
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
    found = [
        _dimension(contraction, positions, index, extent)
        for index, extent in zip(load.indices, shape)
    ]
    dimensions = [dimension for dimension in found if dimension is not None]
    if len(dimensions) != len(shape) or not any(d.tap for d in dimensions):
        return None
    last = dimensions[-1]
    return dimensions if last.tap is not None else None


def _dimension(
    contraction: Contraction, positions: Sequence[Axis], index: Expr, extent: int
) -> Dimension | None:
    axes = [*contraction.batch, *contraction.columns, *contraction.reduce]
    terms = list(sym.detect_linear_equation(index, [axis.var for axis in axes]))
    if not terms or not all(isinstance(term, tirx.IntImm) for term in terms):
        return None
    steps = [(axis, int(term)) for axis, term in zip(axes, terms) if int(term)]
    if int(terms[-1]) != 0 or any(step < 0 for _, step in steps):
        return None
    if not steps:
        return Dimension(extent, None)
    if len(steps) == 1 and steps[0][1] == 1:
        return Dimension(extent, steps[0][0])
    moving = [pair for pair in steps if pair[0] in positions]
    taps = [pair for pair in steps if pair[0] not in positions]
    if not moving:
        return Dimension(extent, None, index=index)
    if len(taps) != 1 or len(moving) != 1:
        return None
    (position, stride), (tap, dilation) = moving[0], taps[0]
    return Dimension(extent, position, tap, stride, dilation)


@dataclass(frozen=True)
class Rearranged:
    """The copy of the input.

    Attributes:
        buffer: One dimension per input dimension, preceded by its phase if it has several.
        dimensions: The input's dimensions.
    """

    buffer: Buffer
    dimensions: tuple[Dimension, ...]

    def indices(self, values: dict[Var, Expr]) -> list[Expr]:
        """Where the element lies that the loops reach at ``values``."""
        result: list[Expr] = []
        for dimension in self.dimensions:
            position = values[dimension.axis.var] if dimension.axis else emit.i64(0)
            if dimension.index is not None:
                position = substitute(dimension.index, values)
            if dimension.tap is None:
                result.append(position)
                continue
            reach = values[dimension.tap.var] * dimension.dilation
            if dimension.phases > 1:
                result.append(tirx.floormod(reach, emit.i64(dimension.stride)))
            result.append(position + tirx.floordiv(reach, emit.i64(dimension.stride)))
        return result


def rearrange(
    contraction: Contraction,
    dimensions: list[Dimension],
    padding: Stage | None,
    slack: int,
    element: Callable[..., Expr] | None = None,
) -> tuple[Rearranged, Stage]:
    """The copy's layout and the stage that fills it.

    Args:
        contraction: The convolution.
        dimensions: Its input's dimensions.
        padding: The stage that computes the input from the function's parameter, merged into the
            copy; None when the input is a parameter.
        slack: Elements added at the end of every row, so that vectors may read beyond it.
        element: What is copied, by its place; an element of the input in the type of the sums if
            absent.
    """
    element = element or contraction.right.at
    axes: list[Axis] = []
    shape: list[int] = []
    at: list[Expr] = []
    guards: list[Expr] = []
    for number, dimension in enumerate(dimensions):
        phases = dimension.phases
        positions = dimension.positions + (slack if number == len(dimensions) - 1 else 0)
        phase, position = (tirx.Var(name, "int64") for name in ("phase", "at"))
        if phases > 1:
            axes.append(Axis(phase, phases))
            shape.append(phases)
        axes.append(Axis(position, positions))
        shape.append(positions)
        index: Expr = position if dimension.tap is None else position * dimension.stride
        at.append(index + phase if phases > 1 else index)
        if (positions - 1) * (dimension.stride if dimension.tap else 1) + phases > dimension.extent:
            guards.append(at[-1] < dimension.extent)
    value = element(*at)
    buffer = emit.workspace(shape, dtype_of(value))
    if guards:
        value = tirx.if_then_else(tirx.all(*guards), value, emit.zero(dtype_of(value)))
    indices = tuple(axis.var for axis in axes)
    live = tuple(axis for axis in axes if axis.extent > 1)
    unit = {axis.var: emit.i64(0) for axis in axes if axis.extent == 1}
    stage = Stage("rearrange", live, (), (buffer,), indices, (value,), None)
    stage = replace(stage, values=(substitute(value, unit),), indices=tuple(
        substitute(index, unit) for index in indices
    ))  # fmt: skip
    if padding is not None:
        stage = inline_into(stage, padding)
    return Rearranged(buffer, tuple(dimensions)), stage
