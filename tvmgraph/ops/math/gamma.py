"""The incomplete gamma functions, the Hurwitz zeta function and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import VjpColumn
from tvmgraph.core.op import F, Reason, Sample, sample
from tvmgraph.core.primitive import RowDecorator, primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import as_int, bad, countable, describe, require
from tvmgraph.ops.common.pointwise import Formula, numpy_formula, pointwise
from tvmgraph.ops.common.rows import sum_to
from tvmgraph.ops.math import incomplete_gamma as formulas

__all__ = ["igamma", "igammac", "mvlgamma", "polygamma", "zeta"]

_REAL = (dtypes.float32, dtypes.float64)
_NO_ONNX = Reason("ONNX has no gamma function")
_STEP = 1e-3  # of a central difference of order four in float64: about 12 digits


def _samples(
    low: float, high: float, special: tuple[Sequence[float], Sequence[float]], grad: bool = True
) -> list[Sample]:
    return [
        sample((3, 4), (3, 4), low=low, high=high, grad=grad),
        sample((2, 1, 3), (5, 1), low=low, high=high, grad=grad),
        sample((), (3,), low=low, high=high, dtype="float64", grad=grad),
        sample((0, 2), (1, 2), low=low, high=high, grad=False),
        sample(*[np.array(v, np.float32) for v in special], grad=False),
        sample((2, 3), (2, 4), raises=ShapeError),
        sample((2,), (2,), dtype="float16", raises=DTypeError),
    ]


def _row(name: str, formula: Formula, vjp: VjpColumn, samples: list[Sample]) -> RowDecorator:
    """Adds a row of two broadcast tensors computed in float64."""
    return primitive(
        infer=rules.elementwise(_REAL),
        promote="common_float",
        eager=numpy_formula(formula, np.dtype("float64")),
        lower=pointwise(name, formula, wide="float64"),
        vjp=vjp,
        onnx=_NO_ONNX,
        samples=samples,
    )


# ---- incomplete gamma functions ------------------------------------------------------------------

_GAMMA_SPECIAL = (
    [0.5, 0, 1, 300, 1e4, -1, 2, math.nan, 2, 3, 150, 0],
    [0, 1, math.inf, 290, 1.01e4, 1, -1, 1, math.nan, 50, 149, 0],
)


def _density(a: Tensor, x: Tensor) -> Tensor:
    """The derivative of P(a, x) by x."""
    return F.exp(F.xlogy(a - 1, x) - x - F.lgamma(a))


def _order_derivative(a: Tensor, x: Tensor) -> Tensor:
    """The derivative of P(a, x) by a, which has no closed form: of P in float64, order h^4."""
    a, x = F.cast(a, dtypes.float64), F.cast(x, dtypes.float64)
    h = F.minimum(a, 1.0) * _STEP
    return _central_difference(lambda b: F.igamma(b, x), a, h)


def _central_difference(f: Callable[[Tensor], Tensor], a: Tensor, h: Tensor) -> Tensor:
    near, far = f(a + h) - f(a - h), f(a + h * 2) - f(a - h * 2)
    return (near * 8 - far) / (h * 12)


def _igamma_vjp(g: Tensor, a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    by_order = F.cast(_order_derivative(a, x), g.dtype)
    return sum_to(g * by_order, a), sum_to(g * _density(a, x), x)


@_row(
    "igamma", formulas.lower_gamma, lambda g, y, a, x: _igamma_vjp(g, a, x),
    _samples(0.3, 9.0, _GAMMA_SPECIAL),
)  # fmt: skip
def igamma(input: Tensor, other: Tensor) -> Tensor:
    r"""Regularized lower incomplete gamma function.

    .. math::
        P(a, x) = \frac{1}{\Gamma(a)} \int_0^x t^{a-1} e^{-t} dt

    Args:
        input: The order :math:`a > 0`, float32 or float64.
        other: The argument :math:`x \ge 0`; the shapes broadcast.

    Returns:
        Tensor of the broadcast shape; NaN outside the domain.

    Raises:
        DTypeError: for half precision.
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.igamma(Tensor([2.0, 4.0]), Tensor([2.0, 3.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 5.93994141e-01,  3.52768123e-01])
    """
    ...


@_row(
    "igammac", formulas.upper_gamma, lambda g, y, a, x: _igamma_vjp(-g, a, x),
    _samples(0.3, 9.0, _GAMMA_SPECIAL),
)  # fmt: skip
def igammac(input: Tensor, other: Tensor) -> Tensor:
    r"""Regularized upper incomplete gamma function: :math:`Q(a, x) = 1 - P(a, x)`.

    Args:
        input: The order :math:`a > 0`, float32 or float64.
        other: The argument :math:`x \ge 0`; the shapes broadcast.

    Returns:
        Tensor of the broadcast shape, accurate where it is tiny; NaN outside the domain.

    Raises:
        DTypeError: for half precision.
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.igammac(Tensor([2.0, 4.0]), Tensor([2.0, 3.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 4.06005859e-01,  6.47231877e-01])
    """
    ...


# ---- zeta ----------------------------------------------------------------------------------------

_ZETA_SPECIAL = ([2, 1, 0.5, 3, 2, 30, 2, math.nan, 2], [1, 2, 2, 0, -1, 0.001, 1e5, 1, math.nan])


def _exponent_derivative(x: Tensor, q: Tensor) -> Tensor:
    x, q = F.cast(x, dtypes.float64), F.cast(q, dtypes.float64)
    h = F.minimum(x - 1, 1.0) * _STEP
    return _central_difference(lambda s: F.zeta(s, q), x, h)


def _zeta_vjp(g: Tensor, x: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    by_exponent = F.cast(_exponent_derivative(x, q), g.dtype)
    return sum_to(g * by_exponent, x), sum_to(-g * x * F.zeta(x + 1, q), q)


@_row(
    "zeta", formulas.zeta, lambda g, y, x, q: _zeta_vjp(g, x, q),
    _samples(1.2, 6.0, _ZETA_SPECIAL),
)  # fmt: skip
def zeta(input: Tensor, other: Tensor) -> Tensor:
    r"""Hurwitz zeta function, elementwise: :math:`\zeta(x, q) = \sum_{k=0}^\infty (k + q)^{-x}`.

    Args:
        input: The exponent :math:`x`, float32 or float64.
        other: The shift :math:`q`; the shapes broadcast.

    Returns:
        Tensor of the broadcast shape; infinite for :math:`x = 1` and for :math:`q = 0`, NaN for
        :math:`x < 1` and for negative :math:`q`.

    Raises:
        DTypeError: for half precision.
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.zeta(Tensor([10.0]), Tensor([1.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 1.00099456e+00])
    """
    ...


def polygamma(n: object, input: Tensor) -> Tensor:
    r"""Derivative of order n of :func:`digamma`, elementwise: :math:`\psi^{(n)}(x)`.

    For :math:`n \ge 2` it is :math:`(-1)^{n+1} n! \sum_{k=0}^\infty (k + x)^{-n-1}`.

    Args:
        n: The order, an int or a tensor of integers (0 or more) that broadcasts.
        input: Tensor of any shape.

    Returns:
        Tensor of the broadcast shape; infinite or NaN at 0 and the negative integers.

    Raises:
        DTypeError: if ``n`` holds no integers.
        ArgumentError: if ``n`` is a negative int.

    Example:
        >>> ops.polygamma(1, Tensor([0.5, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 4.93480206e+00,  6.44934058e-01])
    """
    if input.dtype is dtypes.float16:
        return F.cast(polygamma(n, F.cast(input, dtypes.float32)), dtypes.float16)
    x = input if input.dtype in _REAL else F.cast(input, dtypes.float32)
    if isinstance(n, Tensor):
        if not n.dtype.is_integer:
            raise bad(DTypeError, "n must hold integers", "polygamma", describe(n=n, input=input))
        order = F.cast(n, x.dtype)
        sign = F.floor_mod(order, 2) * 2 - 1
        high = sign * F.exp(F.lgamma(order + 1)) * _sum_of_powers(order + 1, x, sign)
        low = F.where(F.equal(n, 0), F.digamma(x), F.trigamma(x))
        return F.where(n < 2, low, high)
    n = as_int(n, "polygamma", "n")
    require(n >= 0, f"n must not be negative ({n})", "polygamma", ArgumentError, input=x)
    if n < 2:
        return F.trigamma(x) if n else F.digamma(x)
    sign = (-1) ** (n + 1)
    return sign * math.gamma(n + 1) * _sum_of_powers(F.full_like(x, n + 1), x, sign)


def _sum_of_powers(s: Tensor, x: Tensor, sign: Tensor | int) -> Tensor:
    """Returns the sum of ``(k + x) ** -s`` over k from 0; ``s`` is whole, ``sign = (-1) ** s``.

    Left of 0, where :func:`zeta` is not defined, the terms whose base is negative are those of two
    other sums: with the fraction f of x they are ``sign * (zeta(s, 1 - f) - zeta(s, 1 - x))``.
    """
    left = x < 0
    fraction = F.where(left, x - F.floor(x), 0.5)  # elsewhere: anything without a pole
    negative = F.zeta(s, 1 - fraction) - F.zeta(s, 1 - F.where(left, x, 0.0))
    return F.zeta(s, F.where(left, fraction, x)) + F.where(left, sign * negative, 0.0)


def mvlgamma(input: Tensor, p: int) -> Tensor:
    r"""Logarithm of the multivariate gamma function, elementwise.

    .. math::
        y = \frac{p (p - 1)}{4} \ln \pi + \sum_{i=1}^{p} \ln \Gamma(x - \frac{i - 1}{2})

    Args:
        input: Tensor of any shape whose elements exceed :math:`(p - 1) / 2`.
        p: Number of dimensions, at least 1.

    Returns:
        Tensor of ``input``'s shape.

    Raises:
        ArgumentError: if ``p`` is less than 1.

    Example:
        >>> ops.mvlgamma(Tensor([3.0, 4.0]), 3)
        Tensor(shape=[2], dtype=Float32, value= [ 2.69492483e+00,  5.40297508e+00])
    """
    p = countable(as_int(p, "mvlgamma", "p"), "mvlgamma", "p")
    require(p >= 1, f"p must be at least 1, not {p}", "mvlgamma", ArgumentError, p=p)
    y = F.lgamma(input)
    for i in range(1, p):
        y = y + F.lgamma(input - i / 2)
    return y + p * (p - 1) / 4 * math.log(math.pi)
