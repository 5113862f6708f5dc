"""Values at the borders of dtypes: casts of what does not fit, signed zeros, tiny results.

Eager and compiled code must agree bit by bit at every level, for processors with and without
AVX-512 and for every size, since whole vectors and single elements take different instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, dtypes, ops
from tvmgraph.config import JitConfig
from tvmgraph.core.tensor import tensor_from_numpy
from tvmgraph.errors import ArgumentError

INF, NAN = np.inf, np.nan
CONFIGS = {
    "O0": JitConfig("O0"),
    "O1": JitConfig("O1"),
    "O2": JitConfig("O2"),
    "AVX2": JitConfig("O2", options={"target": "x86-64-v3"}),
}
#: Around the least and the largest value of every integer, with what a float has next to them.
BORDERS = [
    sign * value * near
    for value in (2.0**7, 2.0**8, 2.0**15, 2.0**16, 2.0**31, 2.0**32, 2.0**63, 2.0**64)
    for near in (1 - 2.0**-53, 1 - 2.0**-24, 1 - 2.0**-11, 1 - 2.0**-8, 1, 1.01)
    for sign in (1, -1)
]
WRONG = [0.0, -0.0, 0.9, -0.9, 1.9, -1.9, 3e9, -3e9, 1e30, -1e30, INF, -INF, NAN, *BORDERS]


def _nearest(value: float, dtype: np.dtype) -> int:
    """The documented rule in exact integers."""
    info = np.iinfo(dtype)
    if value != value:
        return 0
    return int(min(max(value, info.min), info.max)) if abs(value) == INF else min(
        max(int(value), info.min), info.max
    )  # fmt: skip


def _floats(kind: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array(WRONG, np.float64).astype(dtypes.dtype_of(kind).numpy)


@pytest.mark.parametrize("kind", [d.name for d in dtypes.FLOATS])
def test_floats_that_fit_no_integer_become_the_nearest_one(kind: str) -> None:
    x = _floats(kind)

    def cast_all(x: Tensor) -> tuple[Tensor, ...]:
        return tuple([ops.cast(x, d) for d in dtypes.INTEGERS])

    expected = [
        np.array([_nearest(float(v), d.numpy) for v in x], d.numpy) for d in dtypes.INTEGERS
    ]
    functions = {"eager": cast_all}
    levels = ("O2", "AVX2") if kind.endswith("16") else tuple(CONFIGS)
    functions |= {name: ms.jit(cast_all, jit_config=CONFIGS[name]) for name in levels}
    for name, function in functions.items():
        for part in (slice(None), slice(10, 13)):
            results = function(tensor_from_numpy(x[part].copy()))
            for d, result, right in zip(dtypes.INTEGERS, results, expected):
                text = f"{name} {kind} -> {d.name}"
                np.testing.assert_array_equal(result.asnumpy(), right[part], text)


def _integers(dtype: np.dtype) -> np.ndarray:
    bounds = [0, 1, 127, 128, 255, 256, 2049, 65519, 65520, 2**16 + 1, 2**24 + 1, 2**25 + 3]
    bounds += [(1 << 29) + (1 << 5) + 1, 2**31, 2**32, 2**53 + 1, 2**54 + 3, 2**63, 2**64 - 1]
    info = np.iinfo(dtype)
    every = [v - d for b in bounds for v in (b, -b) for d in (0, 1)]
    return np.array([v for v in every if info.min <= v <= info.max], dtype)


@pytest.mark.parametrize("source", [*dtypes.INTEGERS, dtypes.float64], ids=str)
def test_other_conversions_are_numpys(source: dtypes.DType) -> None:
    x = _integers(source.numpy) if source.is_integer else _floats("float64")
    targets = [d for d in dtypes.ALL if source.is_integer or not d.is_integer]

    def cast_all(x: Tensor) -> tuple[Tensor, ...]:
        return tuple([ops.cast(x, d) for d in targets])

    compiled = [ms.jit(cast_all, jit_config=CONFIGS[name]) for name in ("O2", "AVX2")]
    for function in (cast_all, *compiled):
        for d, result in zip(targets, function(tensor_from_numpy(x.copy()))):
            with np.errstate(all="ignore"):
                expected = x.astype(d.numpy)
            got = result.asnumpy()
            equal = (got == expected) | ((got != got) & (expected != expected))
            assert equal.all(), (d, x[~equal], got[~equal], expected[~equal])


@pytest.mark.parametrize("value", [300, -1, [1, 256], 1e10, INF, NAN])
def test_numbers_that_do_not_fit_are_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match=r"does not fit uint8(.|\n)*test_values.py"):
        Tensor(value, ms.uint8)


def test_constants_and_tensors_are_converted_by_the_same_rule() -> None:
    assert Tensor(np.array([-1.0, 300.0, NAN]), ms.uint8).tolist() == [0, 255, 0]
    assert ms.jit(lambda: ops.cast(Tensor([-1.0, INF]), ms.int8))().tolist() == [-1, 127]
    assert Tensor(np.array([300, -1]), ms.uint8).tolist() == [44, 255]
    # a float between two integers loses what does not fit, so the casts must not be joined
    f = ms.jit(lambda x: ops.cast(ops.cast(x, ms.float64), ms.int8))
    assert f(Tensor([300, -300, 5], ms.int32)).tolist() == [127, -128, 5]


# ---- signs of zero and tiny results -------------------------------------------------------------


def _operands(dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    fi = np.finfo(dtype)
    values = [0.0, INF, NAN, fi.tiny, fi.tiny / 8, fi.eps, fi.eps**2, 1, 0.5, 2, 3, 89, 104, fi.max]
    x = np.array([s * v for v in values for s in (1, -1)], dtype)
    a, b = (g.ravel() for g in np.meshgrid(x, x))
    return x, a, b


_ONE = """relu sign sigmoid silu expm1 elu sin tan tanh sinh asin atan asinh erf gelu selu round
    ceil trunc neg"""
_TWO = "maximum minimum fmax fmin floor_mod remainder fmod floor_div trunc_div"
ONE: dict[str, Callable[..., Any]] = {name: getattr(ops, name) for name in _ONE.split()}
ONE["maximum 0"] = lambda x: ops.maximum(x, 0.0)
ONE["minimum 0"] = lambda x: ops.minimum(x, 0.0)
TWO: dict[str, Callable[..., Any]] = {name: getattr(ops, name) for name in _TWO.split()}
NUMPY = {
    "sign": lambda x: np.nan_to_num(np.sign(x)), "expm1": np.expm1, "sin": np.sin, "tan": np.tan,
    "floor_mod": np.remainder,
    "remainder": np.remainder, "fmod": np.fmod, "floor_div": np.floor_divide,
}  # fmt: skip


def _assert_alike(got: np.ndarray, expected: np.ndarray, text: str) -> None:
    """Equal signs, NaN at the same places, and values within some units of the last place."""
    unit = np.finfo(got.dtype)
    both_nan = np.isnan(got) & np.isnan(expected)
    with np.errstate(all="ignore"):
        near = np.abs(got - expected) <= 32 * unit.eps * np.abs(expected) + unit.smallest_subnormal
    alike = ((got == expected) | near) & (np.signbit(got) == np.signbit(expected)) | both_nan
    assert alike.all(), (text, got[~alike], expected[~alike])


@pytest.mark.parametrize("dtype, levels", [("float32", tuple(CONFIGS)), ("float64", ("O2",))])
def test_signs_of_zero_and_tiny_results(dtype: str, levels: tuple[str, ...]) -> None:
    x, a, b = _operands(dtype)

    def every(x: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        ones = [function(x) for function in ONE.values()]
        return (*ones, *[function(a, b) for function in TWO.values()])

    expected = [y.asnumpy() for y in every(Tensor(x), Tensor(a), Tensor(b))]
    for name, y in zip((*ONE, *TWO), expected):
        if name in NUMPY:
            with np.errstate(all="ignore"):
                _assert_alike(y, NUMPY[name](*([x] if name in ONE else [a, b])), name)
    functions = {"eager": every}
    functions |= {level: ms.jit(every, jit_config=CONFIGS[level]) for level in levels}
    for level, function in functions.items():
        for size in (None, 3):
            for start in (0,) if size is None else (0, 1):
                part = slice(start, None if size is None else start + size)
                results = function(*[Tensor(v[part]) for v in (x, a, b)])
                for name, y, right in zip((*ONE, *TWO), results, expected):
                    _assert_alike(y.asnumpy(), right[part], f"{level} {name} {dtype}")


def test_the_lesser_of_two_zeros_is_the_negative_one() -> None:
    a, b = Tensor([0.0, -0.0, -0.0, 0.0] * 9), Tensor([-0.0, 0.0, -0.0, 0.0] * 9)
    for function, negative in ((ops.maximum, [0, 0, 1, 0]), (ops.minimum, [1, 1, 1, 0])):
        for f in (function, ms.jit(function)):
            assert np.signbit(f(a, b).asnumpy()).tolist() == [bool(s) for s in negative] * 9


def test_quotients_are_rounded_down_exactly() -> None:
    a = np.array([-1.0, 1.0, 1.0, -1e-45, 6.0, 0.3], np.float64)
    b = np.array([INF, 0.1, -INF, 1e300, 0.1, 0.1], np.float64)
    for f in (ops.floor_div, ms.jit(ops.floor_div)):
        np.testing.assert_array_equal(f(Tensor(a), Tensor(b)).asnumpy(), np.floor_divide(a, b))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8])
def test_multiples_that_overflow_wrap_as_numpys(dtype: Any) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, info.max - 1, 100, 99, 64, 0, 3], dtype)
    a, b = (g.ravel() for g in np.meshgrid(x, x))
    for f in (ops.lcm, ms.jit(ops.lcm)):
        np.testing.assert_array_equal(f(Tensor(a), Tensor(b)).asnumpy(), np.lcm(a, b))


@pytest.mark.parametrize("dtype", [ms.int32, ms.int64], ids=str)
def test_negatives_are_divided_beside_other_results(dtype: dtypes.DType) -> None:
    """The product with -1, at which a division looks, is written so that it wraps."""

    def divided(n: Tensor) -> Tensor:
        return ops.stack([n, -n // 3])

    for n in (Tensor(5, dtype), Tensor([5, np.iinfo(dtype.numpy).min], dtype)):
        np.testing.assert_array_equal(ms.jit(divided)(n).asnumpy(), divided(n).asnumpy())
