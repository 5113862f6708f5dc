"""How a convolution walks one axis of its image, and where the image is that padding surrounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import sym, tirx

from tvmgraph.backend.loop_ir.contraction import Operand
from tvmgraph.backend.loop_ir.program import Axis, Stage, is_choice, loads_of
from tvmgraph.backend.loop_ir.types import Expr, Load


@dataclass(frozen=True)
class Line:
    """How one spatial axis of the image is walked.

    Attributes:
        axis: The loop over positions; None where there is one position.
        tap: The loop over taps; None where there is one tap.
        stride: Pixels per position.
        dilation: Pixels per tap.
        before: Pixels of padding before the first one.
        extent: Pixels.
    """

    axis: Axis | None
    tap: Axis | None
    stride: int
    dilation: int
    before: int
    extent: int

    @property
    def positions(self) -> int:
        """Number of positions."""
        return self.axis.extent if self.axis else 1

    @property
    def taps(self) -> int:
        """Number of taps."""
        return self.tap.extent if self.tap else 1

    def pixel(self, position: Expr | int, tap: Expr | int) -> Expr | int:
        """The pixel that a tap sees at a position; outside of the image in the padding."""
        return position * self.stride + tap * self.dilation - self.before

    @property
    def inside(self) -> bool:
        """Whether no tap ever leaves the image."""
        last = (self.positions - 1) * self.stride + (self.taps - 1) * self.dilation
        return self.before <= 0 and last - self.before < self.extent


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
    moved = [index - at for index, at in zip(stage.indices, load.indices)]
    analyzer = sym.Analyzer()
    return load, [_constant(analyzer.simplify(step)) for step in moved]


def unguarded(value: Expr) -> Expr:
    """The value of padding where the image is."""
    return value.args[1] if is_choice(value) else value


def line_of(
    index: Expr, positions: Sequence[Axis], taps: Sequence[Axis], before: int, extent: int
) -> Line | None:
    """How an axis of the image is walked, or None if it is by no window.

    Args:
        index: Index into the padded image.
        positions: The loops over positions, of all axes.
        taps: The loops over taps, of all axes.
        before: Pixels of padding.
        extent: Pixels without padding.
    """
    axes = [*positions, *taps]
    terms = list(sym.detect_linear_equation(index, [axis.var for axis in axes]))
    if not terms or not all(isinstance(term, tirx.IntImm) for term in terms):
        return None
    steps = {axis: int(term) for axis, term in zip(axes, terms) if int(term)}
    moving = [axis for axis in positions if axis in steps]
    seen = [axis for axis in taps if axis in steps]
    if len(moving) > 1 or len(seen) > 1:
        return None
    axis, tap = (*moving, None)[0], (*seen, None)[0]
    stride, dilation = (steps[a] if a else 1 for a in (axis, tap))
    return Line(axis, tap, stride, dilation, before - int(terms[-1]), extent)


def _constant(value: Expr) -> int:
    return int(value) if isinstance(value, tirx.IntImm) else -1
