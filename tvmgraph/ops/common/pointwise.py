"""Columns of elementwise rows: NaN-correct kernels, half precision computed wide, samples.

Relax lacks many elementwise functions, and some it has drop NaN or reject a dtype. A row may give
a *formula* instead: a function of a maths namespace and the elements, such as
``lambda m, x: m.where(x < 0, 0, x)``. :func:`pointwise` turns it into one fusable kernel, and
because the namespace has NumPy's names, the same formula can serve as the ``eager`` column
(:func:`numpy_formula`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import (
    Builder,
    EagerColumn,
    Expr,
    Formula,
    LowerColumn,
    OnnxColumn,
    OnnxNamed,
    OnnxOps,
    VjpColumn,
)
from tvmgraph.core.op import Reason, Sample, sample
from tvmgraph.core.primitive import Result, RowDecorator, primitive
from tvmgraph.core.traits import ELEMENTWISE, Traits
from tvmgraph.ops.common.numpy_math import NumpyMath
from tvmgraph.ops.common.rows import extreme_values, lower_wide, unary_samples
from tvmgraph.ops.math.error_function import complementary_error

NUMBERS = dtypes.INTEGERS + dtypes.FLOATS

#: NumPy's names of functions that TIR calls otherwise.
_TIR_NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "rint": "nearbyint",
    "logical_not": "Not",
}  # fmt: skip
#: asinh and acosh of larger numbers are logarithms.
_HUGE = {"float32": 1e9, "float64": 1e18}
#: asinh and atanh of smaller numbers are those numbers.
_TINY = {"float32": 1e-4, "float64": 1e-9}
_LN2 = 0.6931471805599453


class TirMath:
    """NumPy's names for elementwise functions, on TIR expressions of one dtype.

    Comparisons with NaN are false, ``!=`` included: test with :meth:`isnan` where it matters.
    """

    def __init__(self, tir: ModuleType, dtype: str, result: str) -> None:
        self.tir = tir
        self.dtype = dtype
        # TVM's conversion to bfloat16 repeats its operand, which may then bind no variable
        self._coarse = result == "bfloat16"

    def const(self, value: float) -> Expr:
        """Returns a constant of the dtype that the formula computes in.

        Args:
            value: The number.
        """
        return self.tir.const(value, self.dtype)

    def where(self, condition: object, a: object, b: object) -> Expr:
        """Selects between two values, both of which are evaluated.

        Args:
            condition: A bool expression.
            a: What is selected where it holds; an expression or number.
            b: What is selected elsewhere; an expression or number.
        """
        a, b = (self.const(v) if isinstance(v, (int, float)) else v for v in (a, b))
        return self.tir.Select(condition, a, b)

    def let(self, value: Expr, body: Callable[[Expr], Expr]) -> Expr:
        """Computes ``body(value)`` with the value bound once, however often it is used.

        Args:
            value: What is bound.
            body: Makes the rest of the formula of it.
        """
        if self._coarse:
            return body(value)
        var = self.tir.Var("t", value.ty)
        return self.tir.Let(var, value, body(var))

    def expm1(self, x: Expr) -> Expr:
        """exp(x) - 1 without cancellation: 2t / (1 - t) with t = tanh(x / 2) for small x.

        Args:
            x: An element.
        """
        t = self.tanh(self.where(x < 1, x, 0) * 0.5)
        return self.where(x < 1, 2 * t / (1 - t), self.exp(x) - 1)

    def library(self, name: str, *xs: object) -> Expr:
        """Calls a function of the C (or CUDA) mathematics library.

        Args:
            name: Name of the function for float64, as ``"lgamma"``.
            *xs: Its arguments.
        """
        suffix = "f" if self.dtype == "float32" else ""
        return self.tir.call_pure_extern(self.dtype, name + suffix, *xs)

    def erfc(self, x: object) -> Expr:
        """erfc; NaN stays NaN.

        Args:
            x: An element.
        """
        return complementary_error(self, x)

    def bits(self, x: object) -> Expr:
        """The bits of a floating-point number, as a signed integer of its width.

        Args:
            x: An element.
        """
        return self.tir.reinterpret(self._integer, x)

    def from_bits(self, bits: object) -> Expr:
        """The floating-point number of these bits.

        Args:
            bits: Signed integers of the dtype's width.
        """
        return self.tir.reinterpret(self.dtype, bits)

    def copysign(self, a: object, b: object) -> Expr:
        """|a| with the sign bit of b.

        Args:
            a: The magnitude, of any sign.
            b: What gives the sign.
        """
        return self.from_bits((self.bits(a) & ~self._sign_bit) | (self.bits(b) & self._sign_bit))

    def nextafter(self, a: Expr, b: Expr) -> Expr:
        """The neighbour of a towards b: one step of the magnitude that the lower bits count.

        Args:
            a: An element.
            b: The element that its neighbour lies towards.
        """
        out, back = (self.tir.const(step, self._integer) for step in (1, -1))
        upwards, downwards = (self.tir.Select(c, out, back) for c in (b > a, b < a))
        step = self.tir.Select(a > 0, upwards, downwards)
        least = self.from_bits((self.bits(b) & self._sign_bit) | out)
        value = self.where(a == 0, least, self.from_bits(self.bits(a) + step))
        value = self.where(a == b, b, value)
        return self.where(self.isnan(a), a, self.where(self.isnan(b), b, value))

    @property
    def _integer(self) -> str:
        return self.dtype.replace("float", "int")

    @property
    def _sign_bit(self) -> Expr:
        return self.tir.const(-(2 ** (int(self.dtype[5:]) - 1)), self._integer)

    def arcsinh(self, x: Expr) -> Expr:
        """asinh(x) = log1p(a + a^2 / (1 + sqrt(1 + a^2))) with a = |x|, and the sign of x.

        Args:
            x: An element.
        """
        a = self.tir.abs(x)
        square = self.where(a < _HUGE[self.dtype], a, 0) * a
        near = a + square / (1 + self.tir.sqrt(1 + square))
        value = self.tir.log1p(self.where(a < _HUGE[self.dtype], near, a))
        value = self.where(a < _HUGE[self.dtype], value, value + _LN2)
        return self.where(x < 0, -value, self.where(a < _TINY[self.dtype], x, value))

    def arccosh(self, x: Expr) -> Expr:
        """acosh(x) = log1p(t + sqrt(2t + t^2)) with t = x - 1.

        Args:
            x: An element; below 1 the result is NaN.
        """
        t = x - 1
        near = t + self.tir.sqrt(2 * t + t * self.where(x < _HUGE[self.dtype], t, 0))
        value = self.tir.log1p(self.where(x < _HUGE[self.dtype], near, x))
        value = self.where(x < _HUGE[self.dtype], value, value + _LN2)
        return self.where(x < 1, math.nan, value)

    def arctanh(self, x: Expr) -> Expr:
        """atanh(x) = log1p(2a / (1 - a)) / 2 with a = |x|, and the sign of x.

        Args:
            x: An element of :math:`[-1, 1]`.
        """
        a = self.tir.abs(x)
        value = self.tir.log1p(2 * a / (1 - a)) * 0.5
        return self.where(x < 0, -value, self.where(a < _TINY[self.dtype], x, value))

    def __getattr__(self, name: str) -> Callable[..., Expr]:
        if name == "fmod" and self.dtype != "float32":  # TIR has none
            return lambda *xs: self.library(name, *xs)
        return getattr(self.tir, _TIR_NAMES.get(name, name))


def compute_dtype(dtype: str) -> str:
    """Returns the dtype in which a kernel computes elements of ``dtype``.

    Args:
        dtype: Name of a dtype.
    """
    if dtype == "bool":  # TIR has no arithmetic on bool
        return "int8"
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def pointwise(
    name: str, formula: Formula, *, out: str | None = None, wide: str | None = None
) -> Callable[..., Expr]:
    """Builds a ``lower`` column from a formula.

    Args:
        name: Name of the kernel.
        formula: ``(m, *elements, **attrs) -> element``; float16 and bfloat16 arrive as float32,
            bool as int8.
        out: dtype of the result, by default that of the first input.
        wide: dtype to compute in, where the formula needs more than the input's.
    """

    def lower(R: Builder, *xs: Expr, **attrs: object) -> Expr:
        result = out or R.type(xs[0]).dtype.name

        def kernel(*tensors: Expr) -> Expr:
            shape = _broadcast_shape(tensors)
            dtype = wide or compute_dtype(str(tensors[0].dtype))
            m = TirMath(R.tir, dtype, result)

            def element(*index: Expr) -> Expr:
                loads = [_load(R.tir, t, index, shape, wide) for t in tensors]
                return _store(R.tir, formula(m, *loads, **attrs), result)

            return R.te.compute(shape, element, name=name)

        kernel.__name__ = name
        return R.emit_te(kernel, *xs)

    return lower


def _is_one(d: object) -> bool:
    return getattr(d, "value", None) == 1


def _broadcast_shape(tensors: Sequence[Expr]) -> list[object]:
    ndim = max(len(t.shape) for t in tensors)
    shape: list[object] = []
    for axis in range(-ndim, 0):
        dims = [t.shape[axis] for t in tensors if len(t.shape) >= -axis]
        shape.append(next((d for d in dims if not _is_one(d)), dims[0]))
    return shape


def broadcast_load(t: Expr, index: Sequence[object]) -> Expr:
    """Returns the element of a tensor that is broadcast to more axes or larger ones.

    Args:
        t: The tensor.
        index: Indices of the element in the broadcast shape.
    """
    own = zip(t.shape, index[len(index) - len(t.shape) :])
    return t(*[0 if _is_one(d) else i for d, i in own])


def _load(
    tir: ModuleType, t: Expr, index: Sequence[object], shape: Sequence[object], wide: str | None
) -> Expr:
    lead = len(index) - len(t.shape)
    own = zip(t.shape, index[lead:], shape[lead:])
    # where nothing is broadcast the index stays, so that TVM sees an elementwise access
    x = t(*[0 if _is_one(d) and not _is_one(full) else i for d, i, full in own])
    dtype = wide or compute_dtype(str(t.dtype))
    return x if dtype == str(t.dtype) else tir.Cast(dtype, x)


def _store(tir: ModuleType, x: Expr, dtype: str) -> Expr:
    x = getattr(x, "asobject", lambda: x)()  # == and != build an expression only when asked
    have = str(x.ty.dtype)
    if have == dtype:
        return x
    if dtype == "bool":
        return x != tir.const(0, have)
    return tir.Cast(dtype, x)


def numpy_formula(
    formula: Callable[..., Any], wide: np.dtype | None = None, long: bool = False
) -> Callable[..., np.ndarray]:
    """Builds an ``eager`` column from a formula.

    Args:
        formula: The formula; its namespace is NumPy.
        wide: dtype to compute in; by default float16 and bfloat16 are computed in float32.
        long: Whether there are so many steps that large arrays are better computed in pieces whose
            temporaries stay in the cache; with ``wide`` they always are.
    """
    pieces = long or wide is not None
    spaces: dict[np.dtype, tuple[np.dtype, NumpyMath]] = {}

    def eager(*xs: np.ndarray, **attrs: object) -> np.ndarray:
        dtype = xs[0].dtype
        found = spaces.get(dtype)
        if found is None:
            inner = wide or (np.float32 if dtype.itemsize == 2 and dtype.kind in "fV" else dtype)
            found = spaces[dtype] = (np.dtype(inner), NumpyMath(np.dtype(inner).name))
        inner, m = found
        if pieces and xs[0].size > _BLOCKS_FROM and _alike(xs):
            return _in_blocks(formula, m, inner, xs, attrs)
        if inner is not dtype:
            xs = tuple([x.astype(inner, copy=False) for x in xs])
        result = formula(m, *xs, **attrs)
        if result.__class__ is np.ndarray and result.dtype == dtype:
            return result
        return np.asarray(result, dtype)

    return eager


_BLOCK = 32768
_BLOCKS_FROM = 2 * _BLOCK


def _alike(xs: Sequence[np.ndarray]) -> bool:
    return all([x.flags.c_contiguous and x.shape == xs[0].shape for x in xs])


def _in_blocks(
    formula: Callable[..., Any],
    m: NumpyMath,
    inner: np.dtype,
    xs: Sequence[np.ndarray],
    attrs: Mapping[str, object],
) -> np.ndarray:
    """Runs a formula piece by piece, so that its temporaries stay in the cache."""
    out = np.empty(xs[0].shape, xs[0].dtype)
    target, sources = out.reshape(-1), [x.reshape(-1) for x in xs]
    for start in range(0, target.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        pieces = [s[part].astype(inner, copy=False) for s in sources]
        target[part] = formula(m, *pieces, **attrs)
    return out


def in_float32(name: str) -> Callable[..., Expr]:
    """Builds a ``lower`` column of a ``relax.op`` that is given half precision as float32.

    Args:
        name: Name of the operator in ``relax.op``.
    """

    def lower(R: Builder, *xs: Expr) -> Expr:
        return lower_wide(R, getattr(R.op, name), *xs)

    return lower


def onnx_wide(op_type: str, *integers: dtypes.DType) -> Callable[..., OnnxNamed]:
    """Builds an ``onnx`` column of an op_type that knows floats and the given integers only.

    Args:
        op_type: The ONNX operator.
        integers: Integer dtypes it accepts; others, and bool, are computed in int64.
    """

    def onnx(O: OnnxOps, *xs: OnnxNamed) -> OnnxNamed:
        dtype = xs[0].type.dtype
        if dtype.is_float or dtype in integers:
            return O.add(op_type, xs, 1, {})
        number = O.dtype(dtypes.int64)
        y = O.add(op_type, [O.Cast(x, to=number) for x in xs], 1, {})
        return O.Cast(y, to=O.dtype(dtype))

    return onnx


def onnx_float32(column: str | OnnxColumn) -> Callable[..., OnnxNamed]:
    """Gives an ``onnx`` column bfloat16 as float32: most of ONNX's functions do not know it.

    Args:
        column: An ``onnx`` column, or the name of an ONNX operator.
    """

    def onnx(O: OnnxOps, *xs: OnnxNamed, **attrs: object) -> OnnxNamed:
        low = xs[0].type.dtype is dtypes.bfloat16
        if low:
            number = O.dtype(dtypes.float32)
            types = [x.type.with_dtype(dtypes.float32) for x in xs]
            xs = tuple(O.Cast(x, to=number) for x in xs)
            for x, t in zip(xs, types):
                x.type = t
        y = O.add(column, xs, 1, attrs) if isinstance(column, str) else column(O, *xs, **attrs)
        return O.Cast(y, to=O.dtype(dtypes.bfloat16)) if low else y

    return onnx


def float_samples(
    low: float = -2.0, high: float = 2.0, extremes: bool = True, **kwargs: Any
) -> list[Sample]:
    """Samples of a unary floating-point row, bfloat16, integers and extreme values included.

    Args:
        low: Smallest value.
        high: Largest value.
        extremes: Whether infinities, NaN and denormals are among them.
        **kwargs: More arguments of :func:`tvmgraph.core.op.sample`.
    """
    more = [
        sample((5,), dtype="bfloat16", low=low, high=high, grad=False, **kwargs),
        sample((4,), dtype="int32", low=max(low, 0), high=high, **kwargs),
    ]
    if extremes:
        more.append(sample(extreme_values(), grad=False, **kwargs))
    return unary_samples(low, high, **kwargs) + more


def number_samples(low: float = -2.0, high: float = 2.0, **kwargs: Any) -> list[Sample]:
    """Samples of a unary row that keeps integers integers.

    Args:
        low: Smallest value.
        high: Largest value.
        **kwargs: More arguments of :func:`tvmgraph.core.op.sample`.
    """
    more = [
        sample((7,), dtype="int8", low=-9, high=9, **kwargs),
        sample((7,), dtype="uint8", low=0, high=9, **kwargs),
        sample((3, 2), dtype="int64", low=-9, high=9, **kwargs),
    ]
    return float_samples(low, high, **kwargs)[:-2] + more + [
        sample(extreme_values(), grad=False, **kwargs)
    ]  # fmt: skip


def unary(
    eager: EagerColumn,
    lower: LowerColumn | str | Reason,
    vjp: VjpColumn | str | Reason,
    onnx: OnnxColumn | str | Reason,
    *,
    samples: Sequence[Sample] | None = None,
    allowed: Collection[dtypes.DType] = dtypes.FLOATS,
    promote: str | None = "float",
    out: rules.OutDType = None,
    name: str | None = None,
    traits: Traits = ELEMENTWISE,
) -> RowDecorator:
    """Adds a row of one tensor; integers are computed in float32 by default.

    Args:
        eager: The NumPy function.
        lower: A relax operator that is given half precision as float32, or a ``lower`` column.
        vjp: The ``vjp`` column.
        onnx: The ``onnx`` column.
        samples: Samples; by default :func:`float_samples`.
        allowed: Accepted dtypes after promotion.
        promote: Promotion policy.
        out: dtype of the result, by default the input's.
        name: Name of the row where it is not that of the decorated function.
        traits: What kind of operator it is.
    """

    def add_row(function: Callable[..., Result]) -> Callable[..., Result]:
        function.__name__ = name or function.__name__
        return primitive(
            infer=rules.elementwise(allowed, out),
            traits=traits,
            eager=eager,
            lower=in_float32(lower) if isinstance(lower, str) else lower,
            vjp=vjp,
            onnx=onnx if promote != "float" or isinstance(onnx, Reason) else onnx_float32(onnx),
            promote=promote,
            samples=float_samples() if samples is None else samples,
        )(function)

    return add_row


def formula_row(
    name: str,
    formula: Formula,
    vjp: VjpColumn | str | Reason,
    onnx: OnnxColumn | str | Reason,
    *,
    samples: Sequence[Sample] | None = None,
    wide: str | None = None,
    long: bool = False,
    **options: Any,
) -> RowDecorator:
    """Adds a row of one tensor whose eager and compiled columns are one formula.

    Args:
        name: Name of the row.
        formula: What an element of the result is: ``formula(m, x)`` with the functions ``m``.
        vjp: The ``vjp`` column.
        onnx: The ``onnx`` column.
        samples: Samples; by default :func:`float_samples`.
        wide: Name of the dtype that it is computed in, if that is not the input's.
        long: Whether the formula has so many steps that eager code goes through large arrays in
            parts.
        **options: More arguments of :func:`unary`.
    """
    eager = numpy_formula(formula, np.dtype(wide) if wide else None, long)
    lower = pointwise(name, formula, wide=wide)
    return unary(eager, lower, vjp, onnx, samples=samples, name=name, **options)
