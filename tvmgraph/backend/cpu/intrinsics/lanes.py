"""Expressions over the lanes of a vector: what vectorizable functions are put together from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tirx
from tvm.tirx import op

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.types import Expr, dtype_of, scalar_of
from tvmgraph.backend.target import has_feature


class Lanes:
    """Builds constants and types of as many lanes as a given expression has."""

    def __init__(self, like: Expr) -> None:
        _, _, lanes = dtype_of(like).partition("x")
        self.lanes = int(lanes or 1)

    def type(self, scalar: str) -> str:
        """The type with these lanes."""
        return scalar if self.lanes == 1 else f"{scalar}x{self.lanes}"

    def of(self, value: float | int, dtype: str) -> Expr:
        """A constant in every lane."""
        imm: Any = tirx.FloatImm if dtype.startswith("float") else tirx.IntImm
        return emit.broadcast(imm(dtype, value), self.lanes)

    def f32(self, value: float) -> Expr:
        """A float32 constant."""
        return self.of(float(value), "float32")

    def i32(self, value: int) -> Expr:
        """An int32 constant."""
        return self.of(value, "int32")

    def f64(self, value: float) -> Expr:
        """A float64 constant."""
        return self.of(float(value), "float64")

    def i64(self, value: int) -> Expr:
        """An int64 constant."""
        return self.of(value, "int64")

    def cast(self, value: Expr, scalar: str) -> Expr:
        """The value converted to another type."""
        return tirx.Cast(self.type(scalar), value)

    def bits(self, value: Expr, scalar: str) -> Expr:
        """The same bits, read as another type of the same width."""
        return op.reinterpret(self.type(scalar), value)

    def poly(self, x: Expr, coefficients: Sequence[float], dtype: str = "float32") -> Expr:
        """Horner's scheme; LLVM contracts every step to one fused multiply-add."""
        result = self.of(coefficients[-1], dtype)
        for coefficient in reversed(coefficients[:-1]):
            result = result * x + self.of(coefficient, dtype)
        return result

    def abs(self, x: Expr) -> Expr:
        """|x| of float32, the sign bit cleared."""
        return self.bits(op.bitwise_and(self.bits(x, "int32"), self.i32(0x7FFFFFFF)), "float32")

    def with_sign_of(self, magnitude: Expr, x: Expr) -> Expr:
        """A float32 magnitude with the sign bit of ``x``."""
        sign = op.bitwise_and(self.bits(x, "int32"), self.i32(-(2**31)))
        return self.bits(op.bitwise_or(self.bits(magnitude, "int32"), sign), "float32")

    def multiply_add(self, a: Expr, b: Expr, c: Expr) -> Expr:
        """a b + c, rounded once; of float32 without an instruction for it, by way of float64."""
        if dtype_of(a).startswith("float32") and has_feature("sse4.2") and not has_feature("fma"):
            wide = [self.cast(value, "float64") for value in (a, b, c)]
            return self.cast(wide[0] * wide[1] + wide[2], "float32")
        return op.call_llvm_pure_intrin(dtype_of(a), "llvm.fma", a, b, c)

    def largest(self, x: Expr) -> Expr:
        """The largest lane of a float32, NaN left out."""
        if self.lanes == 1:
            return x
        return op.call_llvm_pure_intrin("float32", "llvm.vector.reduce.fmax", x)

    def each(self, function: str, *args: Expr, dtype: str = "float32") -> Expr:
        """A call of the C library for every lane."""
        if self.lanes == 1:
            return op.call_pure_extern(dtype, function, *args)
        results = [
            op.call_pure_extern(dtype, function, *[emit.shuffle([arg], [lane]) for arg in args])
            for lane in range(self.lanes)
        ]
        return emit.shuffle(results, range(self.lanes))

    def pow2(self, n: Expr) -> Expr:
        """2^n of an int32 for -127 < n < 128, made from the exponent bits."""
        return self.bits(op.shift_left(n + self.i32(127), self.i32(23)), "float32")


def let(value: Expr, body: Callable[[Expr], Expr]) -> Expr:
    """Binds ``value`` once, so that the expression does not grow with every use.

    What has a name already needs no other; TVM's analysis even stumbles over a second one.
    """
    if isinstance(value, tirx.Var):
        return body(value)
    var = tirx.Var("t", value.ty)
    return tirx.Let(var, value, body(var))


def keep_zero(x: Expr, result: Expr) -> Expr:
    """``x`` where it is 0, whose sign is lost in sums, else ``result``."""
    return tirx.Select(x == Lanes(x).of(0.0, scalar_of(x)), x, result)


def with_nearest(x: Expr, low: Expr, high: Expr, body: Callable[[Expr, Expr], Expr]) -> Expr:
    """``body(c, n)`` with ``c`` = x within bounds and n its nearest integer; NaN stays NaN."""

    def bounded(x: Expr) -> Expr:
        clamped = tirx.max(tirx.min(x, high), low)
        return keep_nan(x, let(clamped, lambda c: let(op.nearbyint(c), lambda n: body(c, n))))

    return let(x, bounded)


def keep_nan(x: Expr, result: Expr) -> Expr:
    """``x`` where it is NaN, else ``result``."""
    return tirx.Select(op.isnan(x), x, result)
