"""Accuracy and special values of the vectorizable functions."""

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from driver import call, compile_module, module
from tvm import te, tirx
from tvm.relax import op

from tvmgraph import Tensor, jit, ops
from tvmgraph.backend.cpu.codegen.loops import write_formulas
from tvmgraph.backend.cpu.codegen.pipeline import generate
from tvmgraph.backend.target import make_target

_MAX_ULP = 4
_LIMITS = [
    0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, -1e-38, 3.4e38, -3.4e38, 1, -1,
    88.7, 88.8, -87.5, -103, -104, 9.0, -9.1, 0.5, 2, 3, -2, -3, -0.5,
]  # fmt: skip


def _sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


_CASES: dict[str, Any] = {
    "exp": (op.exp, np.exp),
    "tanh": (op.tanh, np.tanh),
    "sigmoid": (op.sigmoid, _sigmoid),
    "erf": (op.erf, np.vectorize(math.erf, otypes=[float])),
    "log": (op.log, np.log),
}


def _inputs(name: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    if name == "log":
        parts = [np.exp(rng.uniform(-100, 88, 20000)), rng.uniform(0.5, 2, 10000)]
    else:
        parts = [
            rng.uniform(-110, 95, 10000),
            rng.uniform(-5, 5, 10000),
            np.exp(rng.uniform(-60, 0, 5000)) * rng.choice([-1, 1], 5000),
        ]
    return np.concatenate([_LIMITS, *parts]).astype("float32")


def _ulp_errors(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distance in units in the last place; infinite where special values differ."""
    with np.errstate(all="ignore"):
        want = exact.astype("float32")
        finite = np.isfinite(want)
        unit = np.spacing(np.abs(np.where(finite, want, 1))).astype("float64")
        error = np.abs(got.astype("float64") - exact) / unit
        special = np.where(np.isnan(want), np.isnan(got), got == want)
    return np.where(finite, error, np.where(special, 0, np.inf))


@pytest.mark.parametrize("target", ["host", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("name", _CASES)
def test_within_four_ulp(name, target):
    build, reference = _CASES[name]
    x = _inputs(name)
    with np.errstate(all="ignore"):
        exact = reference(x.astype("float64"))
    spec = ((x.size,), "float32")
    (got,) = call(compile_module(module(lambda _, v: build(v), spec), target=target), [x])
    errors = _ulp_errors(got, exact)
    worst = int(errors.argmax())
    limit = 5 if name == "erf" else _MAX_ULP
    assert errors[worst] <= limit, (x[worst], got[worst], exact[worst])


#: Functions by their names in NumPy and here, and the largest argument that is tried.
_MORE = {
    "exp2": ("exp2", 160), "log2": ("log2", 1e38), "log1p": ("log1p", 1e38), "sinh": ("sinh", 95),
    "cosh": ("cosh", 95), "sin": ("sin", 1e5), "cos": ("cos", 1e5), "tan": ("tan", 1e5),
    "arcsin": ("asin", 1), "arccos": ("acos", 1), "arctan": ("atan", 1e9), "expm1": ("expm1", 90),
    "arcsinh": ("asinh", 1e38), "arccosh": ("acosh", 1e38), "arctanh": ("atanh", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", _MORE)
def test_more_functions_within_four_ulp(name):
    ours, limit = _MORE[name]
    rng = np.random.default_rng(0)
    parts = [
        rng.uniform(-limit, limit, 20000),
        rng.uniform(-min(limit, 5), min(limit, 5), 20000),
        np.exp(rng.uniform(-60, np.log(limit), 20000)) * rng.choice([-1, 1], 20000),
    ]
    x = np.concatenate([_LIMITS, *parts]).astype("float32")
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype("float64"))
    got = jit(getattr(ops, ours))(Tensor(x)).asnumpy()
    errors = _ulp_errors(got, exact)
    worst = int(errors.argmax())
    assert errors[worst] <= _MAX_ULP, (x[worst], got[worst], exact[worst])


def test_angle_of_a_point_within_four_ulp():
    rng = np.random.default_rng(0)
    y, x = np.exp(rng.uniform(-40, 40, (2, 20000))) * rng.choice([-1, 1], (2, 20000))
    limits = np.array(_LIMITS)
    x = np.concatenate([x, np.repeat(limits, limits.size)]).astype("float32")
    y = np.concatenate([y, np.tile(limits, limits.size)]).astype("float32")
    got = jit(ops.atan2)(Tensor(y), Tensor(x)).asnumpy()
    exact = np.arctan2(y.astype("float64"), x.astype("float64"))
    errors = _ulp_errors(got, exact)
    worst = int(errors.argmax())
    assert errors[worst] <= _MAX_ULP, (y[worst], x[worst], got[worst], exact[worst])


def test_remainder_is_exact():
    rng = np.random.default_rng(0)
    x, y = np.exp(rng.uniform(-8, 8, (2, 20000))) * rng.choice([-1, 1], (2, 20000))
    y[::2] = np.round(y[::2]) + 0.5
    x[::4] = y[::4] * rng.integers(-9999, 9999, 5000)
    limits = np.array(_LIMITS)
    x = np.concatenate([x, np.repeat(limits, limits.size)]).astype("float32")
    y = np.concatenate([y, np.tile(limits, limits.size)]).astype("float32")
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
    np.testing.assert_array_equal(jit(ops.fmod)(Tensor(x), Tensor(y)).asnumpy(), want)


def test_signed_zero_is_kept():
    x = np.array([-0.0, 0.0] * 16, "float32")
    for build in (op.tanh, op.erf):
        (got,) = call(
            compile_module(module(lambda _, v, build=build: build(v), ((32,), "float32"))), [x]
        )
        np.testing.assert_array_equal(np.signbit(got), np.signbit(x))


def test_power_within_four_ulp_and_special_values_of_c():
    rng = np.random.default_rng(0)
    limits = np.array(_LIMITS)
    x = np.concatenate(
        [
            np.exp(rng.uniform(-80, 80, 20000)),
            rng.normal(size=20000),
            np.repeat(limits, limits.size),
        ]
    ).astype("float32")
    y = np.concatenate(
        [rng.uniform(-2, 2, 20000), rng.integers(-5, 6, 20000), np.tile(limits, limits.size)]
    ).astype("float32")
    with np.errstate(all="ignore"):
        exact = np.power(x.astype("float64"), y.astype("float64"))
    spec = ((x.size,), "float32")
    (got,) = call(compile_module(module(lambda _, a, b: op.power(a, b), spec, spec)), [x, y])
    errors = _ulp_errors(got, exact)
    worst = int(errors.argmax())
    assert errors[worst] <= _MAX_ULP, (x[worst], y[worst], got[worst], exact[worst])


@pytest.mark.parametrize("target", ["host", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-14), ("float16", 1e-3)])
def test_other_float_types(dtype, tolerance, target):
    x = np.linspace(-6, 6, 333).astype(dtype)
    for build, reference in (_CASES["exp"], _CASES["tanh"], _CASES["erf"]):
        mod = module(lambda _, v, build=build: build(v), ((x.size,), dtype))
        (got,) = call(compile_module(mod, target=target), [x])
        assert got.dtype == x.dtype
        np.testing.assert_allclose(got, reference(x.astype("float64")), rtol=tolerance)


@pytest.mark.parametrize("x, y", [(np.inf, np.inf), (-np.inf, np.inf), (5.0, np.inf)])
def test_the_remainder_of_infinity_alone(x: float, y: float) -> None:
    a, b = Tensor([x]), Tensor([y])
    for remainder in (ops.fmod, ops.floor_mod):
        np.testing.assert_array_equal(jit(remainder)(a, b).asnumpy(), remainder(a, b).asnumpy())


#: Functions of float64 by their names in NumPy and here, and the largest argument that is tried.
_DOUBLE = {
    "exp": ("exp", 745), "log": ("log", 1e307), "log1p": ("log1p", 1e307), "sin": ("sin", 1e9),
    "cos": ("cos", 1e9), "tanh": ("tanh", 25), "exp2": ("exp2", 1075), "log2": ("log2", 1e307),
    "log10": ("log10", 1e307), "expm1": ("expm1", 709), "sinh": ("sinh", 711),
    "cosh": ("cosh", 711), "tan": ("tan", 1e6), "arctan": ("atan", 1e300), "arcsin": ("asin", 1),
    "arccos": ("acos", 1), "arcsinh": ("asinh", 1e300), "arccosh": ("acosh", 1e300),
    "arctanh": ("atanh", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", _DOUBLE)
def test_float64_within_three_ulp(name):
    ours, limit = _DOUBLE[name]
    rng = np.random.default_rng(0)
    parts = [
        [*_LIMITS, 5e-324, 1e-310, 709.7, 709.8, 710.3, 710.5, -745.1, -746, -1074, -1075.1],
        rng.uniform(-limit, limit, 5000),
        rng.uniform(-5, 5, 5000),
        np.arange(1, 3000) * (math.pi / 2),
        np.exp(rng.uniform(-700, np.log(limit), 5000)) * rng.choice([-1, 1], 5000),
    ]
    x = np.concatenate(parts)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x.astype(np.longdouble))
    _assert_close(jit(getattr(ops, ours))(Tensor(x)).asnumpy(), want, 3)


@pytest.mark.parametrize("name, ours", [("power", "pow"), ("arctan2", "atan2"), ("hypot", "hypot")])
def test_two_float64_within_two_ulp(name, ours):
    rng = np.random.default_rng(0)
    limits = np.array([*_LIMITS, 5e-324, -5e-324, 1.7e308, -1.7e308, 1e-310])
    sizes = np.exp(rng.uniform(-300, 300, 5000)) * rng.choice([-1, 1], 5000)
    x = [np.repeat(limits, limits.size), sizes, rng.uniform(0.9, 1.1, 5000), sizes]
    y = [np.tile(limits, limits.size), rng.uniform(-2.5, 2.5, 5000), rng.uniform(-7e3, 7e3, 5000)]
    a, b = np.concatenate(x), np.concatenate([*y, rng.integers(-3, 4, 5000)])
    with np.errstate(all="ignore"):
        want = getattr(np, name)(a.astype(np.longdouble), b.astype(np.longdouble))
    _assert_close(jit(getattr(ops, ours))(Tensor(a), Tensor(b)).asnumpy(), want, 2)


def _assert_close(got: np.ndarray, exact: np.ndarray, ulp: float) -> None:
    """Compares float64 with an extended format (float64 again where there is none)."""
    with np.errstate(all="ignore"):
        want = exact.astype(np.float64)
        finite = np.isfinite(want)
        np.testing.assert_array_equal(got[~finite], want[~finite])
        errors = np.abs(got - exact)[finite] / np.spacing(np.abs(want[finite]))
    assert errors.max() <= ulp
    zeros = want == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


def test_error_function_of_float64_within_four_ulp():
    rng = np.random.default_rng(0)
    x = np.concatenate([_LIMITS, rng.uniform(-7, 7, 5000), np.exp(rng.uniform(-700, 0, 1000))])
    want = np.array([math.erf(v) for v in x])
    _assert_close(jit(ops.erf)(Tensor(x)).asnumpy(), want, 4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["copysign", "nextafter"])
def test_functions_of_bits_are_exact(name, dtype):
    info, rng = np.finfo(dtype), np.random.default_rng(0)
    limits = np.array([0, 1, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal], dtype)
    limits = np.concatenate([limits, -limits])
    drawn = rng.normal(size=(2, 100)).astype(dtype)
    a = np.concatenate([np.repeat(limits, limits.size), drawn[0]])
    b = np.concatenate([np.tile(limits, limits.size), drawn[1]])
    with np.errstate(all="ignore"):
        want = getattr(np, name)(a, b)
    got = jit(getattr(ops, name))(Tensor(a), Tensor(b)).asnumpy()
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


def test_error_and_gamma_functions_of_float32():
    """Against the C library in float64; lgamma of float32 is computed in float64."""
    rng = np.random.default_rng(0)
    x = np.concatenate([_LIMITS, rng.uniform(-9.5, 9.5, 3000), rng.uniform(-9.5, 30, 2000)])
    x = x.astype("float32")
    x[(np.abs(x - 1.5) < 0.6) & (np.abs(x - 1.5) > 0.4)] = 3  # near the zeros of lgamma
    for ours, exact, limit in ((ops.erfc, math.erfc, _MAX_ULP), (ops.lgamma, _lgamma, 1)):
        want = np.array([exact(float(v)) for v in x])
        errors = _ulp_errors(jit(ours)(Tensor(x)).asnumpy(), want)
        worst = int(errors.argmax())
        assert errors[worst] <= limit, (ours, x[worst], want[worst])


def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def test_inverse_error_function_within_four_ulp():
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.uniform(-3.7, 3.7, 3000), np.exp(rng.uniform(-60, 0, 1000))])
    x = np.array([math.erf(v) for v in y]).astype("float32")
    x = x[np.abs(x) < 1]
    got = jit(ops.erfinv)(Tensor(x)).asnumpy().astype("float64")
    exact = ops.erfinv(Tensor(x.astype("float64"))).asnumpy()
    assert _ulp_errors(got, exact).max() <= _MAX_ULP


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "int16"])
@pytest.mark.parametrize("name", ["floor_div", "trunc_div", "floor_mod", "fmod"])
def test_division_of_integers_by_reciprocals_is_exact(name, dtype):
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    edges = {info.min, info.max, info.min + 1, info.max - 1, 0, 1, 2, 3, 7, -info.min % 256, 100}
    edges |= {-1, -2, -7} if info.min < 0 else set()
    limits = np.array(sorted(edges)).clip(info.min, info.max)
    drawn = rng.integers(info.min, info.max, (2, 2000), endpoint=True)
    a = np.concatenate([drawn[0], np.repeat(limits, limits.size)]).astype(dtype)
    b = np.concatenate([drawn[1] // 2 ** rng.integers(0, 31, 2000), np.tile(limits, limits.size)])
    x, y = Tensor(a), Tensor(b.astype(dtype))
    function = getattr(ops, name)
    want = function(x, y).asnumpy()  # by NumPy's integers
    np.testing.assert_array_equal(jit(lambda x, y: function(x, y))(x, y).asnumpy(), want)


def test_no_level_needs_the_rules_of_another() -> None:
    """TVM has no remainder for LLVM: also the level that schedules nothing installs ours."""
    program = """
from tvmgraph import JitConfig, Tensor, jit, ops
f = jit(lambda a: ops.fmod(a, 3.0), jit_config=JitConfig(jit_level="O0"))
print(f(Tensor([7.0, -7.0])).asnumpy().tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == "[1.0, -1.0]"


def test_formulas_inside_choices_become_statements():
    """What is bound in a branch, or in the condition of a choice, is stored, not written out."""
    shape = (tirx.IntImm("int64", 40),)
    a = te.placeholder(shape, "float32", name="a")

    def nested(i):
        inner = tirx.if_then_else(a[i] > 0, tirx.exp(a[i]), tirx.tanh(a[i]))
        outer = tirx.if_then_else(inner > 1.5, tirx.log(inner), tirx.if_then_else(
            inner < -0.5, tirx.exp(inner) + inner, inner))  # fmt: skip
        return outer * inner

    func = te.create_prim_func([a, te.compute(shape, nested, name="b")])
    mod = tvm.IRModule({"f": func.with_attr("global_symbol", "f")})
    left: list[object] = []
    tvm_ffi.structural_walk(write_formulas(mod)["f"].body, (tirx.Let, left.append))
    assert not left
    x = np.linspace(-3, 3, 40, dtype=np.float32)
    y = tvm.runtime.tensor(np.zeros(40, np.float32))
    generate(mod, make_target())["f"](tvm.runtime.tensor(x), y)
    inner = np.where(x > 0, np.exp(x), np.tanh(x))
    with np.errstate(invalid="ignore"):
        outer = np.where(inner > 1.5, np.log(inner), inner)
    outer = np.where(inner < -0.5, np.exp(inner) + inner, outer)
    np.testing.assert_allclose(y.numpy(), outer * inner, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["sigmoid", "exp", "softmax", "gelu", "silu"])
def test_every_nan_stays_nan(name):
    payloads = np.arange(1, 2**22, 2**22 // 96, dtype="uint32")[:96]
    x = np.concatenate([0x7FC00000 | payloads, 0xFFC00000 | payloads, [0x7FC00000]])
    x = x.astype("uint32").view("float32").reshape(-1, 1) + np.zeros((1, 40), "float32")
    function = getattr(ops, name)
    assert np.isnan(jit(function)(Tensor(x)).asnumpy()).all()
