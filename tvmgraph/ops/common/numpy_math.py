"""Special functions that NumPy lacks, for the eager columns.

The float64 error functions are the rational approximations of S. Moshier's Cephes library
(relative error below 1e-15); the float32 form is one rational function (absolute error 3e-7).
"""

from __future__ import annotations

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

# erf(x) = x T(x^2) / U(x^2) for |x| <= 1
_T = (
    9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
    7.00332514112805075473e3, 5.55923013010394962768e4,
)  # fmt: skip
_U = (
    1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3,
    2.26290000613890934246e4, 4.92673942608635921086e4,
)  # fmt: skip
# erfc(x) = exp(-x^2) P(x) / Q(x) for 1 <= x < 8, R and S beyond
_P = (
    2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
    4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
    9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2,
)  # fmt: skip
_Q = (
    1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
    9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
    1.65666309194161350182e3, 5.57535340817727675546e2,
)  # fmt: skip
_R = (
    5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0,
    6.16021097993053585195e0, 7.40974269950448939160e0, 2.97886665372100240670e0,
)  # fmt: skip
_S = (
    1.0, 2.26052863220117276590e0, 9.39603524938001434673e0, 1.20489539808096656605e1,
    1.70814450747565897222e1, 9.60896809063285878198e0, 3.36907645100081516050e0,
)  # fmt: skip


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


def _erf_near(x: np.ndarray) -> np.ndarray:
    z = x * x
    return x * polynomial(z, _T) / polynomial(z, _U)


def _erfc_far(a: np.ndarray) -> np.ndarray:
    """erfc(a) for a >= 1."""
    b = np.minimum(a, 40.0)  # exp(-b^2) is 0 there; larger arguments would give inf * 0
    near = polynomial(b, _P) / polynomial(b, _Q)
    far = polynomial(b, _R) / polynomial(b, _S)
    return np.exp(-b * b) * select(b < 8, near, far)


_ONE_FROM = 40.0  # the logistic function is 1 from here on, in float64 too
_FEW = 48  # elements up to which Python's own function beats the NumPy calls of a formula


def erf(x: np.ndarray) -> np.ndarray:
    """The error function of a float32 or float64 array.

    Args:
        x: Array of any shape.
    """
    if x.size <= _FEW:
        return np.array([math.erf(v) for v in x.ravel().tolist()], x.dtype).reshape(x.shape)
    if x.dtype == np.float32:
        return _erf32(x)
    a = np.abs(x)
    far = np.copysign(1 - _erfc_far(np.maximum(a, 1)), x)
    return select(a <= 1, _erf_near(np.clip(x, -1, 1)), far)


def erfc(x: np.ndarray) -> np.ndarray:
    """The complementary error function of a float64 array.

    Args:
        x: Array of any shape.
    """
    a = np.abs(x)
    far = _erfc_far(np.maximum(a, 1))
    far = select(x < 0, 2 - far, far)
    return select(a <= 1, 1 - _erf_near(np.clip(x, -1, 1)), far)


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
