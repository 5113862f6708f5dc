"""Bessel functions of orders 0 and 1; their formulas are in :mod:`.bessel_formulas`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tvmgraph.core.columns import Formula, VjpColumn
from tvmgraph.core.op import F, Reason, Sample, sample
from tvmgraph.core.primitive import RowDecorator
from tvmgraph.core.tensor import Tensor
from tvmgraph.ops.common.pointwise import float_samples, formula_row
from tvmgraph.ops.math import bessel_formulas as _bessel

__all__ = [
    "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "bessel_j0", "bessel_j1", "bessel_k0",
    "bessel_k0e", "bessel_k1", "bessel_k1e", "bessel_y0", "bessel_y1", "i0",
]  # fmt: skip

_NO_ONNX = Reason("ONNX has no Bessel functions")


def _row(samples: list[Sample]) -> Callable[[str, Formula, VjpColumn], RowDecorator]:
    return partial(formula_row, onnx=_NO_ONNX, samples=samples, wide="float64")


#: Rows of functions of any number, and of positive ones.
_everywhere = _row([*float_samples(-12.0, 12.0), sample((9,), low=-800.0, high=800.0, grad=False)])
_positive = _row([*float_samples(0.2, 12.0), sample((9,), low=0.0, high=800.0, grad=False)])


def _over(y: Tensor, x: Tensor, limit: float) -> Tensor:
    """y / x, continued by its limit at 0."""
    zero = F.equal(x, 0)
    return F.where(zero, limit, y / F.where(zero, 1, x))


@_everywhere("bessel_i0", _bessel.i0(scaled=False), lambda g, y, x: (g * F.bessel_i1(x),))
def bessel_i0(x: Tensor) -> Tensor:
    r"""Modified Bessel function of the first kind, order 0: :math:`y = I_0(x)`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.bessel_i0(Tensor([0.5, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.06348336e+00,  2.27958536e+00])
    """
    ...


@_everywhere(
    "bessel_i0e", _bessel.i0(scaled=True), lambda g, y, x: (g * (F.bessel_i1e(x) - F.sign(x) * y),)
)
def bessel_i0e(x: Tensor) -> Tensor:
    r"""Exponentially scaled :func:`bessel_i0`: :math:`y = e^{-|x|} I_0(x)`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.bessel_i0e(Tensor([0.5, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 6.45035267e-01,  3.08508337e-01])
    """
    ...


@_everywhere(
    "bessel_i1",
    _bessel.i1(scaled=False),
    lambda g, y, x: (g * (F.bessel_i0(x) - _over(y, x, 0.5)),),
)
def bessel_i1(x: Tensor) -> Tensor:
    r"""Modified Bessel function of the first kind, order 1: :math:`y = I_1(x)`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.bessel_i1(Tensor([0.5, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 2.57894307e-01,  1.59063685e+00])
    """
    ...


@_everywhere(
    "bessel_i1e",
    _bessel.i1(scaled=True),
    lambda g, y, x: (g * (F.bessel_i0e(x) - F.sign(x) * y - _over(y, x, 0.5)),),
)
def bessel_i1e(x: Tensor) -> Tensor:
    r"""Exponentially scaled :func:`bessel_i1`: :math:`y = e^{-|x|} I_1(x)`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.bessel_i1e(Tensor([0.5, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.56420797e-01,  2.15269282e-01])
    """
    ...


@_everywhere("bessel_j0", _bessel.j0, lambda g, y, x: (g * -F.bessel_j1(x),))
def bessel_j0(x: Tensor) -> Tensor:
    r"""Bessel function of the first kind, order 0: :math:`y = J_0(x)`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.bessel_j0(Tensor([0.5, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 9.38469827e-01,  2.23890781e-01])
    """
    ...


@_everywhere("bessel_j1", _bessel.j1, lambda g, y, x: (g * (F.bessel_j0(x) - _over(y, x, 0.5)),))
def bessel_j1(x: Tensor) -> Tensor:
    r"""Bessel function of the first kind, order 1: :math:`y = J_1(x)`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.bessel_j1(Tensor([0.5, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 2.42268458e-01,  5.76724827e-01])
    """
    ...


@_positive("bessel_k0", _bessel.k0(scaled=False), lambda g, y, x: (g * -F.bessel_k1(x),))
def bessel_k0(x: Tensor) -> Tensor:
    r"""Modified Bessel function of the second kind, order 0: :math:`y = K_0(x)`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``x``'s shape; infinite at 0 and left of it.

    Example:
        >>> ops.bessel_k0(Tensor([0.5, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 9.24419045e-01,  1.13893874e-01])
    """
    ...


@_positive("bessel_k0e", _bessel.k0(scaled=True), lambda g, y, x: (g * (y - F.bessel_k1e(x)),))
def bessel_k0e(x: Tensor) -> Tensor:
    r"""Exponentially scaled :func:`bessel_k0`: :math:`y = e^x K_0(x)`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``x``'s shape; infinite at 0 and left of it.

    Example:
        >>> ops.bessel_k0e(Tensor([0.5, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.52410936e+00,  8.41568232e-01])
    """
    ...


@_positive("bessel_k1", _bessel.k1(scaled=False), lambda g, y, x: (g * (-F.bessel_k0(x) - y / x),))
def bessel_k1(x: Tensor) -> Tensor:
    r"""Modified Bessel function of the second kind, order 1: :math:`y = K_1(x)`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``x``'s shape; infinite at 0 and left of it.

    Example:
        >>> ops.bessel_k1(Tensor([0.5, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.65644109e+00,  1.39865875e-01])
    """
    ...


@_positive(
    "bessel_k1e", _bessel.k1(scaled=True), lambda g, y, x: (g * (y - F.bessel_k0e(x) - y / x),)
)
def bessel_k1e(x: Tensor) -> Tensor:
    r"""Exponentially scaled :func:`bessel_k1`: :math:`y = e^x K_1(x)`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``x``'s shape; infinite at 0 and left of it.

    Example:
        >>> ops.bessel_k1e(Tensor([0.5, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 2.73100972e+00,  1.03347683e+00])
    """
    ...


@_positive("bessel_y0", _bessel.y0, lambda g, y, x: (g * -F.bessel_y1(x),))
def bessel_y0(x: Tensor) -> Tensor:
    r"""Bessel function of the second kind, order 0: :math:`y = Y_0(x)`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``x``'s shape; -infinity at 0 and left of it.

    Example:
        >>> ops.bessel_y0(Tensor([0.5, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [-4.44518745e-01,  5.10375679e-01])
    """
    ...


@_positive("bessel_y1", _bessel.y1, lambda g, y, x: (g * (F.bessel_y0(x) - y / x),))
def bessel_y1(x: Tensor) -> Tensor:
    r"""Bessel function of the second kind, order 1: :math:`y = Y_1(x)`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``x``'s shape; -infinity at 0 and left of it.

    Example:
        >>> ops.bessel_y1(Tensor([0.5, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [-1.47147238e+00, -1.07032433e-01])
    """
    ...


def i0(input: Tensor) -> Tensor:
    r"""Another name of :func:`bessel_i0`: :math:`y = I_0(x)`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``input``'s shape.

    Example:
        >>> ops.i0(Tensor([0.5, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.06348336e+00,  2.27958536e+00])
    """
    return F.bessel_i0(input)
