"""Vectorizable float32 transcendental functions for the LLVM back end.

TVM lowers ``exp``, ``erf`` ... to calls of the C library, one element at a time. The rules here
replace such a call, whether scalar or of vector type, by straight-line arithmetic: argument
reduction, a polynomial, and selects for the special values. Every function is within 4 units in the
last place of the exact result over its whole domain (erf without AVX-512 within 5), and follows
IEEE 754 for NaN, infinities, signed zeros and denormal results. float16 is computed in float32.
float64 has forms of its own, within 3 units; only its remainder stays with the C library.

Polynomials are minimax fits of our own, coefficients in ascending order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import tvm
from tvm import ir, tirx

from tvmgraph.backend.cpu.intrinsics import double_angle, exponential, trigonometric
from tvmgraph.backend.cpu.intrinsics.division import fmod
from tvmgraph.backend.cpu.intrinsics.error_function import erf
from tvmgraph.backend.cpu.intrinsics.exponential import sigmoid
from tvmgraph.backend.cpu.intrinsics.lanes import Lanes
from tvmgraph.backend.cpu.intrinsics.power import pow
from tvmgraph.backend.loop_ir.types import Expr, dtype_of
from tvmgraph.backend.tvm_private import private
from tvmgraph.backend.walks import walk

#: Above the priority of TVM's own rules (10), so that these win.
_LEVEL = 99
_PURE = 1  # tirx.CallEffectKind


def _exp(x: Expr) -> Expr:
    """exp, which is cheaper of what is at most 0."""
    return exponential.exp_of_minus_square(x) if _is_minus_square(x) else exponential.exp(x)


def _is_minus_square(x: Expr) -> bool:
    """Whether an expression is y y c with a constant c < 0."""
    if not isinstance(x, tirx.Mul) or not isinstance(x.a, tirx.Mul):
        return False
    factor = x.b.value if isinstance(x.b, tirx.Broadcast) else x.b
    negative = isinstance(factor, tirx.FloatImm) and float(factor.value) < 0
    return negative and isinstance(x.a.a, tirx.Var) and x.a.a.same_as(x.a.b)


_RULES: dict[str, Callable[..., Expr]] = {
    **{
        name: getattr(exponential, name)
        for name in (
            "cosh", "exp2", "exp_nonpositive", "log", "log10", "log1p", "log2",
            "sinh", "tanh",
        )
    },
    **{
        name: getattr(trigonometric, name)
        for name in ("acos", "asin", "atan", "atan2", "cos", "sin", "tan")
    },
    "erf": erf,
    "exp": _exp,
    "fmod": fmod,
    "pow": pow,
    "sigmoid": sigmoid,
}  # fmt: skip
#: What float64 has instead.
_DOUBLE_RULES: dict[str, Callable[..., Expr]] = {
    **{name: getattr(double_angle, name) for name in ("acos", "asin", "atan", "atan2")},
    "fmod": lambda x, y: Lanes(x).each("fmod", x, y),
}

#: Functions of single lanes that TVM does not know as such: it would leave vectors for them.
_BY_LANE = (*_RULES, "isnan", "nearbyint", "rsqrt")
#: Where TVM's names differ; the function of softmax is one of this project.
_OPERATORS = {"log2": "prim.log2", "exp_nonpositive": "tirx.tvmgraph_exp_nonpositive"}


def _operator(name: str) -> str:
    """TVM's name of a function."""
    return _OPERATORS.get(name, f"tirx.{name}")


def exp_nonpositive(x: Expr) -> Expr:
    """exp(x) of a score less the largest one: a call, for which :func:`formula` has the formula.

    Args:
        x: float32 or float64, scalar or vector; at most 0, or NaN.
    """
    return ir.Call(ir.Op.get(_operator("exp_nonpositive")), [x], ret_ty=x.ty)


def _lowering(name: str, function: Callable[..., Expr]) -> Callable[[tvm.ir.Call], Expr]:
    """TVM's form of a rule, which must give an expression for every dtype."""

    def lower(call: tvm.ir.Call) -> Expr:
        scalar = dtype_of(call).partition("x")[0]
        if scalar == "float32":
            return function(*call.args)
        lanes = Lanes(call)
        if scalar == "float16":
            wide = [lanes.cast(arg, "float32") for arg in call.args]
            return lanes.cast(function(*wide), "float16")
        return _DOUBLE_RULES.get(name, function)(*call.args)

    return lower


def formula(call: tvm.ir.Call) -> Expr:
    """The formula of a call of an elementary function; any other call as it is.

    Args:
        call: A call of ``tirx.exp`` and others, scalar or of a vector.
    """
    lower = _by_operator().get(hash(call.op))
    return call if lower is None else lower(call)


def formula_count(exprs: Sequence[Expr]) -> int:
    """How many calls of elementary functions there are.

    Args:
        exprs: Scalar expressions.
    """
    found: list[tvm.ir.Call] = []
    walk(exprs, (tvm.ir.Call, found.append))
    return sum(hash(call.op) in _by_operator() for call in found)


@functools.cache
def _by_operator() -> dict[int, Callable[[tvm.ir.Call], Expr]]:
    """The formulas by the identity of their operator: asking each call for a name takes time."""
    return {hash(tvm.ir.Op.get(name)): lower for name, lower in _FORMULAS.items()}


def _register() -> None:
    """Makes the function of softmax known to TVM, which may read it from a file."""
    name = _operator("exp_nonpositive")
    private("ir.RegisterOp")(name, "exp(x) of x <= 0.")
    ir.register_op_attr(name, "TCallEffectKind", _PURE)


_register()
_FORMULAS = {_operator(name): _lowering(name, function) for name, function in _RULES.items()}


@functools.cache
def install() -> None:
    """Makes every later LLVM build of this process use the rules; repeated calls do nothing."""
    for name in _BY_LANE:
        tvm.ir.register_op_attr(_operator(name), "TVectorizable", True, _LEVEL)
    for name, lower in _FORMULAS.items():
        tvm.tirx.op.register_intrin_lowering(name, target="llvm", f=lower, level=_LEVEL)
