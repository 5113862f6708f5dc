"""Padding layers."""

from __future__ import annotations

from typing import Any

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.nn._checks import choice, int_tuple, is_int, real, reject, require_axes
from tvmgraph.nn.cell import Cell


class Pad(Cell):
    r"""Pads every axis with zeros or by mirroring.

    Args:
        paddings: One ``(before, after)`` pair for every axis.
        mode: ``"CONSTANT"`` (zeros), ``"REFLECT"`` (mirrors at the edge element) or
            ``"SYMMETRIC"`` (repeats it).

    Inputs:
        - **x** (Tensor) - As many axes as there are pairs.

    Outputs:
        Tensor whose axis :math:`i` has size :math:`x_i + before_i + after_i`.

    Raises:
        DTypeError: if ``paddings`` is no tuple of pairs.
        ArgumentError: if ``mode`` is unknown or a padding negative.
        ShapeError: if the input has another number of axes.

    Example:
        >>> nn.Pad(((1, 1), (0, 2)))(ops.ones((2, 3))).shape
        (4, 5)
    """

    def __init__(self, paddings: object, mode: str = "CONSTANT") -> None:
        super().__init__()
        if not isinstance(paddings, (tuple, list)) or not all(
            isinstance(p, (tuple, list)) and len(p) == 2 for p in paddings
        ):
            reject(DTypeError, "Pad", "paddings must be a tuple of (before, after) pairs",
                   f"paddings={paddings!r}", "pass ((0, 0), (1, 1)) for a matrix")  # fmt: skip
        self.paddings = tuple(int_tuple("Pad", "paddings", tuple(p), 2, 0) for p in paddings)
        self.mode = choice("Pad", "mode", mode, ("CONSTANT", "REFLECT", "SYMMETRIC"))

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim != len(self.paddings):
            reject(ShapeError, "Pad",
                   f"there are {len(self.paddings)} pairs for an input with {x.ndim} axes",
                   f"x={x.aval}")  # fmt: skip
        if self.mode != "CONSTANT":
            return F.mirror_pad(x, self.paddings, self.mode)
        return F.pad(x, tuple(p for pair in reversed(self.paddings) for p in pair))


class _EdgePad(Cell):
    """Pads the last axes; ``padding`` lists the last axis first."""

    _axes = 2
    _mode = "constant"

    def __init__(self, padding: Any, value: float | None = None) -> None:
        super().__init__()
        op, count = type(self).__name__, 2 * self._axes
        low = 0 if self._mode == "reflect" else -(1 << 31)
        if is_int(padding):
            padding = (padding,) * count
        elif isinstance(padding, (tuple, list)) and len(padding) % 2:
            reject(ArgumentError, op, "padding must hold (before, after) pairs",
                   f"padding={padding!r}")  # fmt: skip
        elif self._mode == "constant" and isinstance(padding, (tuple, list)):
            padding = (*padding, *(0 for _ in range(len(padding), count)))  # of the axes before
        self.padding = int_tuple(op, "padding", padding, count, low)
        self.value = value

    def construct(self, x: Tensor) -> Tensor:
        op, axes = type(self).__name__, self._axes
        if self._mode == "constant":
            if x.ndim < axes:
                reject(ShapeError, op, f"the input must have at least {axes} axes, not {x.ndim}",
                       f"x={x.aval}")  # fmt: skip
            return F.pad(x, self.padding, "constant", self.value)
        require_axes(op, x, axes + 2, axes + 1)
        return F.pad(x, self.padding, self._mode)


class _ConstantPad(_EdgePad):
    def __init__(self, padding: object, value: float) -> None:
        if not isinstance(value, bool):
            real(type(self).__name__, "value", value)
        super().__init__(padding, value)


class ConstantPad1d(_ConstantPad):
    r"""Pads the last axis with a constant.

    Args:
        padding: An int for both sides or ``(left, right)``; negative cuts off.
        value: The constant.

    Inputs:
        - **x** (Tensor) - At least one axis.

    Outputs:
        Tensor whose last axis is longer by the padding.

    Raises:
        DTypeError: if an argument has the wrong class.
        ArgumentError: if ``padding`` has the wrong length.

    Example:
        >>> nn.ConstantPad1d((1, 0), 5.0)(Tensor([[1.0]])).asnumpy().tolist()
        [[5.0, 1.0]]
    """

    _axes = 1


class ConstantPad2d(_ConstantPad):
    r"""Pads the last two axes with a constant.

    Args:
        padding: An int for all sides or ``(left, right, top, bottom)``; negative cuts off.
        value: The constant.

    Inputs:
        - **x** (Tensor) - At least two axes.

    Outputs:
        Tensor whose last two axes are longer by the padding.

    Raises:
        DTypeError: if an argument has the wrong class.
        ArgumentError: if ``padding`` has the wrong length.

    Example:
        >>> nn.ConstantPad2d(1, 5.0)(ops.ones((1, 2, 2))).shape
        (1, 4, 4)
    """


class ConstantPad3d(_ConstantPad):
    r"""Pads the last three axes with a constant.

    Args:
        padding: An int for all sides or ``(left, right, top, bottom, front, back)``; negative
            cuts off.
        value: The constant.

    Inputs:
        - **x** (Tensor) - At least three axes.

    Outputs:
        Tensor whose last three axes are longer by the padding.

    Raises:
        DTypeError: if an argument has the wrong class.
        ArgumentError: if ``padding`` has the wrong length.

    Example:
        >>> nn.ConstantPad3d(1, 5.0)(ops.ones((1, 2, 2, 2))).shape
        (1, 4, 4, 4)
    """

    _axes = 3


class _ZeroPad(_EdgePad):
    def __init__(self, padding: object) -> None:
        super().__init__(padding, 0)


class ZeroPad1d(_ZeroPad):
    """Pads the last axis with zeros; see :class:`ZeroPad2d`.

    Args:
        padding: An int for both sides or ``(left, right)``; negative cuts off.

    Example:
        >>> nn.ZeroPad1d((1, 2))(ops.ones((1, 2))).shape
        (1, 5)
    """

    _axes = 1


class ZeroPad3d(_ZeroPad):
    """Pads the last three axes with zeros; see :class:`ZeroPad2d`.

    Args:
        padding: An int for all sides or ``(left, right, top, bottom, front, back)``; negative cuts
            off.

    Example:
        >>> nn.ZeroPad3d(1)(ops.ones((1, 2, 2, 2))).shape
        (1, 4, 4, 4)
    """

    _axes = 3


class ZeroPad2d(_ZeroPad):
    r"""Pads the last two axes with zeros.

    Args:
        padding: An int for all sides or ``(left, right, top, bottom)``; negative cuts off.

    Inputs:
        - **x** (Tensor) - At least two axes.

    Outputs:
        Tensor whose last two axes are longer by the padding.

    Raises:
        DTypeError: if an argument has the wrong class.
        ArgumentError: if ``padding`` has the wrong length.

    Example:
        >>> nn.ZeroPad2d((1, 1, 0, 0))(ops.ones((1, 2, 2))).shape
        (1, 2, 4)
    """


class _MirrorPad(_EdgePad):
    def __init__(self, padding: object) -> None:
        super().__init__(padding)


class ReflectionPad1d(_MirrorPad):
    r"""Pads the last axis by mirroring at the edge elements.

    Args:
        padding: An int for both sides or ``(left, right)``; smaller than the axis.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, L)` or :math:`(C, L)`.

    Outputs:
        Tensor whose last axis is longer by the padding.

    Raises:
        ArgumentError: if ``padding`` has the wrong length or is too large.

    Example:
        >>> nn.ReflectionPad1d(1)(Tensor([[1.0, 2.0]])).asnumpy().tolist()
        [[2.0, 1.0, 2.0, 1.0]]
    """

    _axes, _mode = 1, "reflect"


class ReflectionPad2d(_MirrorPad):
    r"""Pads the last two axes by mirroring at the edge elements.

    Args:
        padding: An int for all sides or ``(left, right, top, bottom)``; smaller than the axes.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, H, W)` or :math:`(C, H, W)`.

    Outputs:
        Tensor whose last two axes are longer by the padding.

    Raises:
        ArgumentError: if ``padding`` has the wrong length or is too large.

    Example:
        >>> nn.ReflectionPad2d(1)(ops.ones((1, 2, 2))).shape
        (1, 4, 4)
    """

    _axes, _mode = 2, "reflect"


class ReflectionPad3d(_MirrorPad):
    r"""Pads the last three axes by mirroring at the edge elements.

    Args:
        padding: An int for all sides or six ints, the last axis first; smaller than the axes.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, D, H, W)` or :math:`(C, D, H, W)`.

    Outputs:
        Tensor whose last three axes are longer by the padding.

    Raises:
        ArgumentError: if ``padding`` has the wrong length or is too large.

    Example:
        >>> nn.ReflectionPad3d(1)(ops.ones((1, 2, 2, 2))).shape
        (1, 4, 4, 4)
    """

    _axes, _mode = 3, "reflect"


class ReplicationPad1d(_MirrorPad):
    r"""Pads the last axis by repeating the edge elements.

    Args:
        padding: An int for both sides or ``(left, right)``; negative cuts off.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, L)` or :math:`(C, L)`.

    Outputs:
        Tensor whose last axis is longer by the padding.

    Raises:
        ArgumentError: if ``padding`` has the wrong length.

    Example:
        >>> nn.ReplicationPad1d(1)(Tensor([[1.0, 2.0]])).asnumpy().tolist()
        [[1.0, 1.0, 2.0, 2.0]]
    """

    _axes, _mode = 1, "replicate"


class ReplicationPad2d(_MirrorPad):
    r"""Pads the last two axes by repeating the edge elements.

    Args:
        padding: An int for all sides or ``(left, right, top, bottom)``; negative cuts off.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, H, W)` or :math:`(C, H, W)`.

    Outputs:
        Tensor whose last two axes are longer by the padding.

    Raises:
        ArgumentError: if ``padding`` has the wrong length.

    Example:
        >>> nn.ReplicationPad2d(1)(ops.ones((1, 2, 2))).shape
        (1, 4, 4)
    """

    _axes, _mode = 2, "replicate"


class ReplicationPad3d(_MirrorPad):
    r"""Pads the last three axes by repeating the edge elements.

    Args:
        padding: An int for all sides or six ints, the last axis first; negative cuts off.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, D, H, W)` or :math:`(C, D, H, W)`.

    Outputs:
        Tensor whose last three axes are longer by the padding.

    Raises:
        ArgumentError: if ``padding`` has the wrong length.

    Example:
        >>> nn.ReplicationPad3d(1)(ops.ones((1, 2, 2, 2))).shape
        (1, 4, 4, 4)
    """

    _axes, _mode = 3, "replicate"


__all__ = [
    "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Pad", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip
