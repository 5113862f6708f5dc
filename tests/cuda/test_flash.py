"""Attention on the device, run by the emulated GPU against float64 NumPy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import tirx

from tests.cuda import emulator
from tests.cuda.kernels import compiled
from tvmgraph.backend.cuda.kernels import flash
from tvmgraph.backend.cuda.schedule import schedule_function
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.types import NAMED
from tvmgraph.backend.table import Refused
from tvmgraph.backend.target import gpu_model

_NUMPY = {"bfloat16": ml_dtypes.bfloat16}
_FILL = -1e9


@dataclass(frozen=True)
class Attention:
    """A case: batch, heads of queries and of keys, lengths, sizes of a head of keys and values."""

    batch: int
    heads: tuple[int, int]
    lengths: tuple[int, int]
    sizes: tuple[int, int]
    dtype: str = "float16"
    diagonal: int | None = None
    mask: str = ""
    layout: str = "BNSD"
    scale: float = 0.2
    statistics: bool = False

    def _turned(self, x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x.transpose(["BNSD".index(axis) for axis in self.layout]))

    def plain(self) -> list[np.ndarray]:
        """Query, key, value, and perhaps a mask, with their axes in the order B, N, S, D."""
        rng = np.random.default_rng(0)
        (own, shared), (rows, keys), (size, width) = self.heads, self.lengths, self.sizes
        shapes = [(own, rows, size), (shared, keys, size), (shared, keys, width)]
        found = [rng.uniform(-2, 2, (self.batch, *shape)) for shape in shapes]
        found = [array.astype(_NUMPY.get(self.dtype, self.dtype)) for array in found]
        if self.mask == "add":
            found.append(rng.uniform(-1, 1, (self.batch, 1, 1, keys)).astype(self.dtype))
        if self.mask == "choose":
            found.append(rng.random((1, own, rows, keys)) < 0.3)
        return found

    def arrays(self) -> list[np.ndarray]:
        """What the kernel takes."""
        operands, mask = self.plain()[:3], self.plain()[3:]
        return [*map(self._turned, operands), *mask]

    def expected(self) -> list[np.ndarray]:
        """The result in float64, and the statistics."""
        query, key, value = (array.astype(np.float64) for array in self.plain()[:3])
        repeats = self.heads[0] // self.heads[1]
        key, value = (np.repeat(array, repeats, axis=1) for array in (key, value))
        scores = query @ key.swapaxes(2, 3) * self.scale
        if self.mask == "add":
            scores = scores + self.plain()[3].astype(np.float64)
        if self.mask == "choose":
            scores = np.where(self.plain()[3], _FILL, scores)
        if self.diagonal is not None:
            hidden = np.triu(np.ones(self.lengths, bool), self.diagonal + 1)
            scores = np.where(hidden, -np.inf, scores)
        top = scores.max(-1, keepdims=True)
        weights = np.exp(scores - top)
        total = weights.sum(-1, keepdims=True)
        result = self._turned(weights / total @ value)
        statistics = np.concatenate([top, 1 / total], -1)
        return [result, statistics] if self.statistics else [result]

    def function(self) -> Any:
        """The function that asks for the kernel."""
        results = [np.zeros(self.expected()[0].shape, _NUMPY.get(self.dtype, self.dtype))]
        results += [array.astype("float32") for array in self.expected()[1:]]
        params = [
            tirx.decl_buffer([tirx.IntImm("int64", e) for e in array.shape], str(array.dtype))
            for array in [*self.arrays(), *results]
        ]
        said = {"scale": self.scale, "diagonal": self.diagonal, "layouts": [self.layout] * 4}
        said |= {"fill": _FILL if self.mask == "choose" else None, "statistics": self.statistics}
        func = tirx.PrimFunc(params, tirx.Evaluate(0))
        return func.with_attr(NAMED, ("attention", json.dumps(said)))


CASES = {
    "grouped heads, a diagonal": Attention(1, (2, 1), (70, 130), (64, 64), diagonal=60),
    "padded heads, a mask": Attention(1, (2, 2), (40, 70), (40, 24), mask="choose"),
    "two panels": Attention(1, (1, 1), (140, 130), (128, 128), "bfloat16", diagonal=0),
    "training": Attention(
        2, (1, 1), (33, 66), (16, 16), "bfloat16", 33, "add", "BSND", -0.3, statistics=True
    ),
}


@cache
def _compiled(arch: str) -> Any:
    functions = {}
    for number, case in enumerate(CASES.values()):
        kernel = schedule_function(case.function(), gpu_model(arch))
        assert kernel is not None
        functions[f"case{number}"] = kernel
    return compiled(functions, arch)


@pytest.mark.parametrize("arch", ["sm_90", "sm_90a"])
@pytest.mark.parametrize("name", CASES)
def test_attention(name: str, arch: str):
    if emulator.missing():
        pytest.skip(emulator.missing())
    device, case = emulator.install(), CASES[name]
    device.reset()
    device.set(races=1)
    gpu, expected = tvm.cuda(0), case.expected()
    operands = [tvm.runtime.tensor(array, gpu) for array in case.arrays()]
    kinds = (_NUMPY.get(case.dtype, case.dtype), "float32")
    results = [tvm.runtime.tensor(np.full(e.shape, 7, k), gpu) for e, k in zip(expected, kinds)]
    _compiled(arch)[f"case{list(CASES).index(name)}"](*operands, *results)
    gpu.sync()
    assert not device.message
    tolerance = 2e-2 if case.dtype == "bfloat16" else 2e-3
    for found, right, limit in zip(results, expected, (tolerance, 1e-5)):
        np.testing.assert_allclose(found.numpy().astype(np.float64), right, limit, limit)


def test_what_the_kernel_does_not_take_is_left_to_others():
    model = gpu_model("sm_90")
    others = [
        Attention(1, (1, 1), (16, 16), (16, 16), "float32"),
        Attention(1, (1, 1), (16, 16), (12, 16)),
        Attention(1, (1, 1), (16, 16), (16, 16), layout="BNDS"),
    ]
    said = [flash.KERNEL.match(Nest(case.function()), model) for case in others]
    assert all(isinstance(answer, Refused) and answer.reason for answer in said)
