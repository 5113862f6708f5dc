"""What goes through ONNX and back keeps its value at the edges of its dtype."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph.errors import ArgumentError
from tvmgraph.ops.shape.pad import pad_constant

_POINTS = list(itertools.product([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan], repeat=2))
_LARGE = np.array([2**31 - 1, -(2**31), 16777217, -7], np.int32)
_HALF = np.full((1, 1, 8, 8), 40000, np.float16)

_CASES: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "atan2": (ops.atan2, [np.array(p, np.float32) for p in zip(*_POINTS)]),
    "log1p of half precision": (ops.log1p, [np.array([40160.0, 1e-3, 65504.0], np.float16)]),
    "average of half precision": (lambda x: ops.avg_pool2d(x, 8), [_HALF]),
    "least integer by -1": (
        ops.floor_divide, [np.array([-128, 7, -7], np.int8), np.array([-1, 2, 2], np.int8)]
    ),
    "more digits than float32": (
        ops.floor_divide, [_LARGE, np.array([1, 1, 1, 2], np.int32)]
    ),
    "product that wraps": (
        ops.matmul, [np.array([[2**32 - 1, 5]], np.uint32), np.array([[2**32 - 1], [3]], np.uint32)]
    ),
    "padding by infinity": (
        lambda x: pad_constant(x, ((1, 1),), float("inf")), [np.array([1, 2], np.uint32)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", _CASES)
def test_extremes(name: str, tmp_path: Path) -> None:
    function, arrays = _CASES[name]

    class Net(nn.Cell):
        def construct(self, *xs: Tensor) -> Tensor:
            return function(*xs)

    tensors = [Tensor(a) for a in arrays]
    path = ms.export(Net(), *tensors, file_name=tmp_path / "net", file_format="ONNX")
    expected, actual = function(*tensors).asnumpy(), ms.onnx.load(path)(*tensors).asnumpy()
    if expected.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))
        bits = 2e-3 if expected.dtype == np.float16 else 1e-6
        np.testing.assert_allclose(actual, expected, rtol=bits)
    else:
        np.testing.assert_array_equal(actual, expected)


def test_integers_are_not_padded_by_infinity() -> None:
    with pytest.raises(ArgumentError, match="uint32 does not hold inf"):
        ops.pad(Tensor(np.array([1, 2], np.uint32)), (1, 1), value=float("inf"))
