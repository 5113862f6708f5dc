"""Layers for norms, moments, triangles and shifts."""

from __future__ import annotations

from typing import Any

from tvmgraph import dtypes
from tvmgraph.core.arguments import AxisLike
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.nn._checks import boolean, is_int, is_real, real, reject
from tvmgraph.nn.cell import Cell


def _axes(op: str, axis: AxisLike | None) -> Any:
    """Checks an axis argument: None, an int or a tuple of ints."""
    if axis is None or is_int(axis):
        return axis
    if not isinstance(axis, (tuple, list)) or not all(is_int(a) for a in axis):
        reject(DTypeError, op, f"axis must be None, an int or a tuple of ints, not {axis!r}")
    return tuple(axis)


class Norm(Cell):
    r"""Euclidean norm along axes: :math:`\sqrt{\sum x^2}`.

    Args:
        axis: An int or a tuple; ``()`` means all axes.
        keep_dims: Whether the axes stay with size 1.

    Inputs:
        - **x** (Tensor) - Any shape, a float dtype.

    Outputs:
        Tensor without the axes.

    Raises:
        DTypeError: if an argument has the wrong class.

    Example:
        >>> float(nn.Norm()(Tensor([3.0, 4.0])))
        5.0
    """

    _shown = "axis keep_dims"

    def __init__(self, axis: AxisLike | None = (), keep_dims: bool = False) -> None:
        super().__init__()
        self.axis = _axes("Norm", axis)
        self.keep_dims = boolean("Norm", "keep_dims", keep_dims)

    def construct(self, x: Tensor) -> Tensor:
        axis = None if self.axis == () else self.axis
        return F.sqrt(F.sum(F.square(x), axis, self.keep_dims))


class ClipByNorm(Cell):
    r"""Scales a tensor down to a largest Euclidean norm:
    :math:`y = x \cdot c / \max(\|x\|_2, c)`.

    Args:
        axis: Axes of the norm; ``None`` means all.

    Inputs:
        - **x** (Tensor) - Any shape, float16 or float32.
        - **clip_norm** (Tensor) - :math:`c`, of a shape that broadcasts.

    Outputs:
        float32 tensor of the shape of ``x``.

    Raises:
        DTypeError: if ``axis`` has the wrong class.

    Example:
        >>> nn.ClipByNorm()(Tensor([3.0, 4.0]), Tensor([5.0])).asnumpy().tolist()
        [3.0, 4.0]
    """

    def __init__(self, axis: AxisLike | None = None) -> None:
        super().__init__()
        self.axis = _axes("ClipByNorm", axis)

    def construct(self, x: Tensor, clip_norm: NumberLike) -> Tensor:
        x = F.cast(x, dtypes.float32)
        limit = F.cast(clip_norm, dtypes.float32) if isinstance(clip_norm, Tensor) else clip_norm
        norm = F.sqrt(F.sum(F.square(x), self.axis, True))
        return x * limit / F.maximum(norm, limit)


class L1Regularizer(Cell):
    r"""Weighted sum of absolute values: :math:`\lambda \sum |w|`.

    Args:
        scale: :math:`\lambda`; positive and finite.

    Inputs:
        - **weights** (Tensor) - Any shape, a float dtype.

    Outputs:
        A 0-d tensor, float32 or wider.

    Raises:
        DTypeError: if ``scale`` is no number.
        ArgumentError: if it is not positive and finite.

    Example:
        >>> float(nn.L1Regularizer(0.5)(Tensor([1.0, -3.0])))
        2.0
    """

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = real("L1Regularizer", "scale", scale, 0, float("inf"), "()")

    def construct(self, weights: Tensor) -> Tensor:
        if weights.dtype is not dtypes.float64:
            weights = F.cast(weights, dtypes.float32)
        return F.sum(F.abs(weights)) * self.scale


class ReduceLogSumExp(Cell):
    r"""Logarithm of a sum of exponentials: :math:`\log \sum e^x`, without overflow.

    Args:
        axis: An int or a tuple; ``()`` means all axes.
        keep_dims: Whether the axes stay with size 1.

    Inputs:
        - **x** (Tensor) - Any shape, a float dtype.

    Outputs:
        Tensor without the axes.

    Raises:
        DTypeError: if an argument has the wrong class.

    Example:
        >>> nn.ReduceLogSumExp(1)(ops.ones((2, 3))).shape
        (2,)
    """

    def __init__(self, axis: AxisLike | None, keep_dims: bool = False) -> None:
        super().__init__()
        self.axis = _axes("ReduceLogSumExp", axis)
        self.keep_dims = boolean("ReduceLogSumExp", "keep_dims", keep_dims)

    def construct(self, x: Tensor) -> Tensor:
        axis = tuple(range(x.ndim)) if self.axis in ((), None) else self.axis
        return F.logsumexp(x, axis, self.keep_dims)


class Moments(Cell):
    r"""Mean and (biased) variance.

    Args:
        axis: An int or a tuple; ``None`` means all axes.
        keep_dims: Whether the axes stay with size 1.

    Inputs:
        - **x** (Tensor) - Any shape, a float dtype.

    Outputs:
        Tuple of mean and variance, of the dtype of ``x``.

    Raises:
        DTypeError: if an argument has the wrong class.

    Example:
        >>> mean, variance = nn.Moments()(Tensor([1.0, 3.0]))
        >>> float(mean), float(variance)
        (2.0, 1.0)
    """

    def __init__(self, axis: AxisLike | None = None, keep_dims: bool | None = None) -> None:
        super().__init__()
        self.axis = _axes("Moments", axis)
        self.keep_dims = False if keep_dims is None else boolean("Moments", "keep_dims", keep_dims)

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        axis = None if self.axis == () else self.axis
        wide = x if x.dtype is dtypes.float64 else F.cast(x, dtypes.float32)
        mean = F.mean(wide, axis, True)
        variance = F.mean(F.square(wide - mean), axis, self.keep_dims)
        mean = mean if self.keep_dims else F.reshape(mean, variance.shape)
        return F.cast(mean, x.dtype), F.cast(variance, x.dtype)


class Tril(Cell):
    r"""Lower triangle: elements above the k-th diagonal become 0.

    Inputs:
        - **x** (Tensor) - At least two axes.
        - **k** (int) - The diagonal; 0 is the main one.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.Tril()(ops.ones((2, 2))).asnumpy().tolist()
        [[1.0, 0.0], [1.0, 1.0]]
    """

    def construct(self, x: Tensor, k: int = 0) -> Tensor:
        return F.tril(x, k)


class Triu(Cell):
    r"""Upper triangle: elements below the k-th diagonal become 0.

    Inputs:
        - **x** (Tensor) - At least two axes.
        - **k** (int) - The diagonal; 0 is the main one.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.Triu()(ops.ones((2, 2))).asnumpy().tolist()
        [[1.0, 1.0], [0.0, 1.0]]
    """

    def construct(self, x: Tensor, k: int = 0) -> Tensor:
        return F.triu(x, k)


class Roll(Cell):
    r"""Shifts elements along axes; what falls off comes back at the other end.

    Args:
        shift: By how much: an int or one per axis.
        axis: Along which axes: an int or a tuple.

    Inputs:
        - **input_x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Raises:
        DTypeError: if an argument has the wrong class.
        ArgumentError: if there is not one shift per axis.

    Example:
        >>> nn.Roll(1, 0)(Tensor([1, 2, 3])).asnumpy().tolist()
        [3, 1, 2]
    """

    def __init__(self, shift: object, axis: AxisLike | None) -> None:
        super().__init__()
        for name, value in (("shift", shift), ("axis", axis)):
            items = value if isinstance(value, (tuple, list)) else (value,)
            if not all(is_int(v) for v in items):
                reject(DTypeError, "Roll", f"{name} must be an int or a tuple of ints",
                       f"{name}={value!r}")  # fmt: skip
        self.shift = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,)
        self.axis = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
        if len(self.shift) != len(self.axis):
            reject(ArgumentError, "Roll", "there must be one shift per axis",
                   f"shift={shift!r}, axis={axis!r}")  # fmt: skip

    def construct(self, input_x: Tensor) -> Tensor:
        return F.roll(input_x, self.shift, self.axis)


class Range(Cell):
    r"""Numbers from ``start`` up to (not including) ``limit``.

    Args:
        start: First number; the limit when ``limit`` is ``None``, and the first number is 0 then.
        limit: Where to stop.
        delta: Step.

    Outputs:
        Tensor of shape :math:`(\lceil (limit - start) / delta \rceil,)`: int32, or float32 when
        an argument is a float.

    Raises:
        DTypeError: if an argument is no number.
        ArgumentError: if ``delta`` is 0.

    Example:
        >>> nn.Range(1, 8, 2)().asnumpy().tolist()
        [1, 3, 5, 7]
    """

    def __init__(self, start: float, limit: float | None = None, delta: float = 1) -> None:
        super().__init__()
        if limit is None:
            start, limit = 0, start
        for name, value in (("start", start), ("limit", limit), ("delta", delta)):
            if not is_real(value):
                reject(DTypeError, "Range", f"{name} must be a number, not {type(value).__name__}")
        if delta == 0:
            reject(ArgumentError, "Range", "delta must not be 0")
        self.start, self.limit, self.delta = start, limit, delta
        whole = all(is_int(v) for v in (start, limit, delta))
        self.dtype = dtypes.int32 if whole else dtypes.float32

    def construct(self) -> Tensor:
        return F.cast(F.arange(self.start, self.limit, self.delta), self.dtype)


__all__ = [
    "ClipByNorm", "L1Regularizer", "Moments", "Norm", "Range", "ReduceLogSumExp", "Roll", "Tril",
    "Triu",
]  # fmt: skip
