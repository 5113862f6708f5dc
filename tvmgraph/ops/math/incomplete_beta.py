"""The incomplete beta function, by Lentz' continued fraction evaluated from the inside."""

from __future__ import annotations

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor

__all__: list[str] = []

_LEVELS = 60  # pairs; the fraction converges in some multiple of the root of the larger order


def betainc(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    r"""Regularized incomplete beta function, computed in float64.

    .. math::
        I_x(a, b) = \frac{\Gamma(a + b)}{\Gamma(a) \Gamma(b)} \int_0^x t^{a-1} (1-t)^{b-1} dt

    Args:
        a: Orders above zero, a float dtype.
        b: Orders above zero; the shapes broadcast.
        x: Elements from 0 to 1.

    Returns:
        Tensor of the broadcast shape and ``x``'s dtype.

    Example:
        >>> ops.Betainc()(Tensor([1.0]), Tensor([2.0]), Tensor([0.5]))
        Tensor(shape=[1], dtype=Float32, value= [ 7.50000000e-01])
    """
    p, q, z = (F.cast(t, dtypes.float64) for t in (a, b, x))
    swap = z > (p + 1) / (p + q + 2)  # on the other side of the peak the fraction is slow
    first, second = F.where(swap, q, p), F.where(swap, p, q)
    z = F.where(swap, 1 - z, z)
    value = F.ones_like(first + second + z)
    for m in range(_LEVELS, 0, -1):
        twice = first + 2 * m
        value = 1 + m * (second - m) * z / ((twice - 1) * twice) / value
        below = twice - 2
        value = 1 - (first + m - 1) * (first + second + m - 1) * z / (below * (below + 1)) / value
    front = F.lgamma(first + second) - F.lgamma(first) - F.lgamma(second)
    front = F.exp(front + F.xlogy(first, z) + F.xlogy(second, 1 - z)) / first
    tail = front / value
    return F.cast(F.where(swap, 1 - tail, tail), x.dtype)
