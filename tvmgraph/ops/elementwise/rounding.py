"""Rounding to whole numbers, elementwise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import OnnxColumn, OnnxNamed, OnnxOps
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F
from tvmgraph.core.primitive import RowDecorator
from tvmgraph.core.tensor import Tensor
from tvmgraph.ops.common.pointwise import NUMBERS, in_float32, number_samples, onnx_float32, unary

__all__ = ["ceil", "fix", "floor", "frac", "round", "trunc"]


def _rounding(
    eager: Callable[[np.ndarray], np.ndarray],
    lower: str,
    onnx: str | OnnxColumn,
    name: str | None = None,
) -> RowDecorator:
    """Adds the row of a rounding, which leaves integers and bool as they are."""
    low, of_floats = in_float32(lower), onnx_float32(onnx)

    def onnx_rounding(O: OnnxOps, x: OnnxNamed) -> OnnxNamed:
        return of_floats(O, x) if x.type.dtype.is_float else O.Identity(x)

    def eager_rounding(x: np.ndarray) -> np.ndarray:
        return x if x.dtype.kind in "biu" else eager(x)

    return unary(
        eager_rounding,
        lambda R, x: low(R, x) if R.type(x).dtype.is_float else x,
        rules.flat,
        onnx_rounding,
        allowed=NUMBERS,
        promote="no_bool",
        samples=number_samples(-9, 9),
        name=name,
    )


@_rounding(np.floor, "floor", lambda O, x: O.Floor(x))
def floor(input: Tensor) -> Tensor:
    r"""Rounds down, elementwise: :math:`y = \lfloor x \rfloor`.

    Args:
        input: Tensor of any shape; integers stay as they are.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Example:
        >>> ops.floor(Tensor([1.7, -1.2]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00, -2.00000000e+00])
    """
    ...


@_rounding(np.ceil, "ceil", lambda O, x: O.Ceil(x))
def ceil(input: Tensor) -> Tensor:
    r"""Rounds up, elementwise: :math:`y = \lceil x \rceil`.

    Args:
        input: Tensor of any shape; integers stay as they are.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Example:
        >>> ops.ceil(Tensor([1.2, -1.7]))
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00, -1.00000000e+00])
    """
    ...


@_rounding(np.trunc, "trunc", lambda O, x: O.Mul(O.Sign(x), O.Floor(O.Abs(x))))
def trunc(input: Tensor) -> Tensor:
    r"""Rounds towards zero, elementwise.

    Args:
        input: Tensor of any shape; integers stay as they are.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Example:
        >>> ops.trunc(Tensor([1.7, -1.7]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00, -1.00000000e+00])
    """
    ...


fix = trunc


@_rounding(np.rint, "round", lambda O, x: O.Round(x), name="round")
def _round(input: Tensor) -> Tensor:
    """Rounds to the nearest integer, halves to the even one."""
    ...


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    r"""Rounds to the nearest number of ``decimals`` digits, halves to the even digit.

    Args:
        input: Tensor of any shape.
        decimals: Digits kept after the decimal point; negative ones are set to zero before it.

    Returns:
        Tensor of ``input``'s shape and dtype; integers are rounded only by negative decimals.

    Example:
        >>> ops.round(Tensor([0.5, 1.5, 2.7]))
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  2.00000000e+00,  3.00000000e+00])
    """
    if decimals == 0 or (decimals > 0 and not input.dtype.is_float):
        return _round(input)
    if not input.dtype.is_float:
        return F.cast(round(F.cast(input, dtypes.float64), decimals=decimals), input.dtype)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return _round(input * scale) / scale
    return _round(input / scale) * scale


@fusible
def frac(x: Tensor) -> Tensor:
    r"""Fractional part with the sign of the number, elementwise: :math:`y = x - trunc(x)`.

    Args:
        x: Tensor of any shape.

    Returns:
        Tensor of ``x``'s shape and dtype.

    Example:
        >>> ops.frac(Tensor([1.25, -1.25]))
        Tensor(shape=[2], dtype=Float32, value= [ 2.50000000e-01, -2.50000000e-01])
    """
    return x - F.trunc(x)
