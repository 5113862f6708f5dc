"""Special functions that NumPy lacks, for the eager columns.

The error functions are SciPy's; that of float32, in which networks compute, is one rational
function (absolute error 3e-7), which is several times faster.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

_ERF32_P = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
_ERF32_Q = (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
    -1.42647390514189e-02,
)  # fmt: skip
_ERF32_MAX = 4.0  # erf is 1 in float32 from here on


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    r"""A polynomial by Horner's scheme: :math:`\sum_i c_i x^{n - i}`; works on arrays and on TIR
    expressions.

    Args:
        x: Array or expression.
        coefficients: :math:`c_0, \ldots, c_n`: that of the highest power first, at least two.
    """
    result = x * coefficients[0] + coefficients[1]
    if result.__class__ is np.ndarray:
        for c in coefficients[2:]:
            result *= x
            result += c
        return result
    for c in coefficients[2:]:
        result = result * x + c
    return result


def _erf32(x: np.ndarray) -> np.ndarray:
    x = np.clip(x, -_ERF32_MAX, _ERF32_MAX)
    z = x * x
    return x * polynomial(z, _ERF32_P) / polynomial(z, _ERF32_Q)


def _special(name: str, x: np.ndarray) -> np.ndarray:
    # imported here, as it takes a tenth of a second
    return np.asarray(getattr(importlib.import_module("scipy.special"), name)(x))


_ONE_FROM = 40.0  # the logistic function is 1 from here on, in float64 too
_FEW = 48  # elements up to which Python's own function beats the NumPy calls of a formula


def erf(x: np.ndarray) -> np.ndarray:
    """The error function of a float32 or float64 array.

    Args:
        x: Array of any shape.
    """
    if x.size <= _FEW:
        return np.array([math.erf(v) for v in x.ravel().tolist()], x.dtype).reshape(x.shape)
    return _erf32(x) if x.dtype == np.float32 else _special("erf", x)


def erfc(x: np.ndarray) -> np.ndarray:
    """The complementary error function of a float64 array.

    Args:
        x: Array of any shape.
    """
    return _special("erfc", x)


_Operand: TypeAlias = np.ndarray | np.generic | complex
_BITS = {4: np.int32, 8: np.int64}
_SELECT_FROM = 2048  # elements from which mispredicted branches cost more than extra passes


def select(condition: np.ndarray, a: _Operand, b: _Operand) -> np.ndarray:
    """``np.where`` without a branch per element, which random conditions make slow.

    Args:
        condition: Bools.
        a: What is taken where they hold; an array or number.
        b: What is taken elsewhere; an array or number.
    """
    like = a if isinstance(a, np.ndarray) else b
    if not isinstance(like, np.ndarray) or like.size < _SELECT_FROM:
        return np.where(condition, a, b)
    other = b if like is a else a
    bits = _BITS.get(like.dtype.itemsize)
    if isinstance(other, np.ndarray):
        alike = other.dtype == like.dtype
    else:
        alike = other.__class__ is int or (other.__class__ is float and like.dtype.kind == "f")
    if bits is None or condition.dtype != np.bool_ or not alike:
        return np.where(condition, a, b)
    first, second = (np.asarray(v, like.dtype).view(bits) for v in (a, b))
    mask = np.negative(condition.view(np.int8)).astype(bits)  # all bits, or none
    mask = mask & (first ^ second)
    return np.bitwise_xor(mask, second, out=mask).view(like.dtype)


class NumpyMath:
    """NumPy's functions and the ones above: the namespace of a formula run eagerly."""

    erf = staticmethod(erf)
    erfc = staticmethod(erfc)
    where = staticmethod(select)

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def const(self, value: float) -> float:
        """Returns a constant.

        Args:
            value: The number.
        """
        return value

    def let(self, value: object, body: Callable[[object], object]) -> object:
        """Computes ``body(value)``; compiled code binds the value once.

        Args:
            value: What compiled code binds.
            body: Makes the rest of the formula of it.
        """
        return body(value)

    def sigmoid(self, x: np.ndarray) -> np.ndarray:
        """The logistic function e / (1 + e) with e = exp(x), exact down to the denormals.

        Args:
            x: Array of float32 or float64.
        """
        e = np.exp(np.minimum(x, x.dtype.type(_ONE_FROM)))
        return e / (1 + e)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)
