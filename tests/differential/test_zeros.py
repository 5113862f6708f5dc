"""Zeros keep their signs, NaN and infinities stay, at every level: no algebra on floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tvmgraph import Tensor, jit, ops
from tvmgraph.ops.reduction.scan import running_sum

_VALUES = [-0.0, 0.0, -1.0, 1.0, 0.5, -2.5, np.inf, -np.inf, np.nan, 7.0, 3.0, -3.0]
_DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)

_ELEMENTWISE: dict[str, Callable[[Any], Any]] = {
    "x + 0": lambda x: x + 0,
    "0 + x": lambda x: 0 + x,
    "x - -0.0": lambda x: x - -0.0,
    "-(x + 0)": lambda x: -(x + 0),
    "(x + 0) // 2": lambda x: (x + 0) // 2,
    "x % 2 + 0": lambda x: x % 2 + 0,
    "x * 0": lambda x: x * 0,
    "1 / (x * 0 + 0)": lambda x: 1 / (x * 0 + 0),
    "floor(x) + 0": lambda x: ops.floor(x) + 0,
    "sign(x)": ops.sign,
    "1 / (x // 2)": lambda x: 1 / (x // 2),
}
_REDUCING: dict[str, Callable[[Any], Any]] = {
    "one element": lambda x: x.reshape(-1, 1).sum(1),
    "mean of one element": lambda x: x.reshape(-1, 1).mean(1),
    "product of one element": lambda x: ops.matmul(x.reshape(-1, 1), ops.ones((1, 3), x.dtype)),
    "no axes": lambda x: x[0].sum(),
    "mean over no axes": lambda x: x[0].mean(),
    "a number": lambda x: x[0] + 0,
    "NaN times 0": lambda x: x[8] * 0,
    "cumsum": lambda x: ops.cumsum(x[:1], 0),
    "exclusive cumsum": lambda x: running_sum(x[:3], 0, True, False),
    "reverse cumsum": lambda x: running_sum(x[:2], 0, False, True),
}


def _bits(t: Tensor) -> np.ndarray:
    a = t.asnumpy().astype(np.float64)
    return np.where(np.isnan(a), np.nan, a).view(np.int64)


@pytest.mark.parametrize("dtype", _DTYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("level", ["O0", "O2"])
def test_zeros_of_one_kernel(dtype: Any, level: str) -> None:
    """All in one graph, so that one module is compiled."""
    x = Tensor(np.array(_VALUES, dtype))
    cases = _ELEMENTWISE | _REDUCING
    every = jit(lambda x: tuple(f(x) for f in cases.values()), jit_level=level)(x)
    for name, actual, f in zip(cases, every, cases.values(), strict=True):
        np.testing.assert_array_equal(_bits(actual), _bits(f(x)), err_msg=f"{name} at {level}")


def test_numpy_agrees() -> None:
    x = np.array(_VALUES, np.float32)
    with np.errstate(invalid="ignore", divide="ignore"):
        for name, f in _ELEMENTWISE.items():
            if "(" not in name:
                expected = f(x)
                np.testing.assert_array_equal(_bits(f(Tensor(x))), _bits(Tensor(expected)), name)
