"""Expressions over the lanes of a vector: what vectorizable functions are put together from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.tirx import op

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.types import Expr, dtype_of, scalar_of
from tvmgraph.backend.target import has_feature


@dataclass(frozen=True)
class Format:
    """How a type of floats is stored.

    Attributes:
        bits: The type of integers of its width.
        width: Bits of a number.
        fraction: Bits of the fraction.
        bias: What is added to the exponent.
        min_normal: The least positive normal number.
        max_finite: The greatest finite number.
    """

    bits: str
    width: int
    fraction: int
    bias: int
    min_normal: float
    max_finite: float


FORMATS = {
    "float32": Format("int32", 32, 23, 127, 1.17549435e-38, 3.4028234663852886e38),
    "float64": Format("int64", 64, 52, 1023, 2.2250738585072014e-308, 1.7976931348623157e308),
}


class Lanes:
    """Builds constants and types of as many lanes as a given expression has."""

    def __init__(self, like: Expr) -> None:
        self.scalar, _, lanes = dtype_of(like).partition("x")
        self.lanes = int(lanes or 1)

    @property
    def format(self) -> Format:
        """How the floats of the given expression are stored."""
        return FORMATS[self.scalar]

    def type(self, scalar: str) -> str:
        """The type with these lanes.

        Args:
            scalar: dtype of one lane, as ``"float32"``.
        """
        return scalar if self.lanes == 1 else f"{scalar}x{self.lanes}"

    def of(self, value: float | int, dtype: str) -> Expr:
        """A constant in every lane.

        Args:
            value: The number in every lane.
            dtype: dtype of one lane.
        """
        imm: Any = tirx.FloatImm if dtype.startswith("float") else tirx.IntImm
        return emit.broadcast(imm(dtype, value), self.lanes)

    def f(self, value: float) -> Expr:
        """A constant of the given expression's type.

        Args:
            value: The number in every lane.
        """
        return self.of(float(value), self.scalar)

    def i(self, value: int) -> Expr:
        """A constant of the integers that have the width of the given expression's floats.

        Args:
            value: The number in every lane; it has to fit :attr:`Format.bits`.
        """
        return self.of(value, self.format.bits)

    def f32(self, value: float) -> Expr:
        """A float32 constant.

        Args:
            value: The number in every lane.
        """
        return self.of(float(value), "float32")

    def i32(self, value: int) -> Expr:
        """An int32 constant.

        Args:
            value: The number in every lane.
        """
        return self.of(value, "int32")

    def f64(self, value: float) -> Expr:
        """A float64 constant.

        Args:
            value: The number in every lane.
        """
        return self.of(float(value), "float64")

    def i64(self, value: int) -> Expr:
        """An int64 constant.

        Args:
            value: The number in every lane.
        """
        return self.of(value, "int64")

    def cast(self, value: Expr, scalar: str) -> Expr:
        """The value converted to another type.

        Args:
            value: An expression with these lanes.
            scalar: dtype of one lane of the result.
        """
        return tirx.Cast(self.type(scalar), value)

    def integral(self, value: Expr) -> Expr:
        """The value converted to integers of the width of its floats.

        Args:
            value: Floats, which are truncated.
        """
        return self.cast(value, self.format.bits)

    def bits(self, value: Expr, scalar: str) -> Expr:
        """The same bits, read as another type of the same width.

        Args:
            value: An expression with these lanes.
            scalar: dtype of one lane of the result, as wide as that of ``value``.
        """
        return op.reinterpret(self.type(scalar), value)

    def bits_of(self, value: Expr) -> Expr:
        """The bits of floats as integers.

        Args:
            value: Floats of the given expression's type.
        """
        return self.bits(value, self.format.bits)

    def float_of(self, bits: Expr) -> Expr:
        """The floats that bits stand for.

        Args:
            bits: Integers of the type :attr:`Format.bits`.
        """
        return self.bits(bits, self.scalar)

    def poly(self, x: Expr, coefficients: Sequence[float]) -> Expr:
        r"""A polynomial by Horner's scheme: :math:`\sum_i c_i x^i`.

        LLVM contracts every step to one fused multiply-add.

        Args:
            x: Floats of any type, with these lanes.
            coefficients: :math:`c_0, c_1, \ldots`: that of the lowest power first.
        """
        dtype = scalar_of(x)
        result = self.of(coefficients[-1], dtype)
        for coefficient in reversed(coefficients[:-1]):
            result = result * x + self.of(coefficient, dtype)
        return result

    def abs(self, x: Expr) -> Expr:
        """|x|, the sign bit cleared.

        Args:
            x: Floats of the given expression's type.
        """
        return self.float_of(
            op.bitwise_and(self.bits_of(x), self.i(2 ** (self.format.width - 1) - 1))
        )

    def with_sign_of(self, magnitude: Expr, x: Expr) -> Expr:
        """A magnitude with the sign bit of ``x``.

        Args:
            magnitude: Floats that are not negative.
            x: Floats of the same type, whose sign the result gets; that of -0 too.
        """
        sign = op.bitwise_and(self.bits_of(x), self.i(-(2 ** (self.format.width - 1))))
        return self.float_of(op.bitwise_or(self.bits_of(magnitude), sign))

    def multiply_add(self, a: Expr, b: Expr, c: Expr) -> Expr:
        """a b + c, rounded once; of float32 without an instruction for it, by way of float64.

        Args:
            a: The first factor, floats with these lanes.
            b: The second factor, of the same type.
            c: The summand, of the same type.
        """
        if dtype_of(a).startswith("float32") and has_feature("sse4.2") and not has_feature("fma"):
            wide = [self.cast(value, "float64") for value in (a, b, c)]
            return self.cast(wide[0] * wide[1] + wide[2], "float32")
        return op.call_llvm_pure_intrin(dtype_of(a), "llvm.fma", a, b, c)

    def largest(self, x: Expr) -> Expr:
        """The largest lane, NaN left out.

        Args:
            x: Floats of the given expression's type.

        Returns:
            One float; NaN where every lane is NaN.
        """
        if self.lanes == 1:
            return x
        return op.call_llvm_pure_intrin(self.scalar, "llvm.vector.reduce.fmax", x)

    def each(self, function: str, *args: Expr) -> Expr:
        """A call of the C library for every lane.

        Args:
            function: Name of a function of floats, as the C library has it for this type.
            *args: Its arguments, floats with these lanes.
        """
        if self.lanes == 1:
            return op.call_pure_extern(self.scalar, function, *args)
        results = [
            op.call_pure_extern(
                self.scalar, function, *[emit.shuffle([arg], [lane]) for arg in args]
            )
            for lane in range(self.lanes)
        ]
        return emit.shuffle(results, range(self.lanes))

    def pow2(self, n: Expr) -> Expr:
        """2^n of an integer for -bias < n <= bias, made from the exponent bits.

        Args:
            n: The exponents, integers of the type :attr:`Format.bits`.
        """
        stored = op.shift_left(n + self.i(self.format.bias), self.i(self.format.fraction))
        return self.float_of(stored)


def let(value: Expr, body: Callable[[Expr], Expr]) -> Expr:
    """Binds ``value`` once, so that the expression does not grow with every use.

    What has a name already needs no other; TVM's analysis even stumbles over a second one.

    Args:
        value: What gets a name.
        body: Returns the expression that uses it.
    """
    if isinstance(value, tirx.Var):
        return body(value)
    var = tirx.Var("t", value.ty)
    return tirx.Let(var, value, body(var))


def keep_zero(x: Expr, result: Expr) -> Expr:
    """``x`` where it is 0, whose sign is lost in sums, else ``result``.

    Args:
        x: A float, scalar or vector.
        result: A function of it of the same type, for which f(0) = 0.
    """
    return tirx.Select(x == Lanes(x).of(0.0, scalar_of(x)), x, result)


def with_nearest(x: Expr, low: Expr, high: Expr, body: Callable[[Expr, Expr], Expr]) -> Expr:
    """``body(c, n)`` with ``c`` = x within bounds and n its nearest integer; NaN stays NaN.

    Args:
        x: A float, scalar or vector.
        low: Its least value.
        high: Its largest value.
        body: Takes x within these bounds, and the nearest integer as a float.
    """

    def bounded(x: Expr) -> Expr:
        clamped = tirx.max(tirx.min(x, high), low)
        return keep_nan(x, let(clamped, lambda c: let(op.nearbyint(c), lambda n: body(c, n))))

    return let(x, bounded)


def clamp(x: Expr, low: Expr, high: Expr) -> Expr:
    """``x`` within bounds, by two instructions that keep NaN.

    Args:
        x: A float, scalar or vector.
        low: Its least value.
        high: Its largest value.
    """

    def below(x: Expr) -> Expr:
        return let(tirx.Select(high < x, high, x), lambda x: tirx.Select(x < low, low, x))

    return let(x, below)


def keep_nan(x: Expr, result: Expr) -> Expr:
    """``x`` where it is NaN, else ``result``.

    Args:
        x: A float, scalar or vector.
        result: A function of it of the same type, whose comparisons lost a NaN.
    """
    return tirx.Select(op.isnan(x), x, result)
