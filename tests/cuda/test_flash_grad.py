"""The derivative of attention on the device, run by the emulated GPU against eager code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import tirx

import tvmgraph as ms
from tests.cuda import emulator
from tests.cuda.kernels import compiled
from tvmgraph import Tensor, dtypes, ops
from tvmgraph.backend.cuda.kernels import flash_grad
from tvmgraph.backend.cuda.schedule import schedule_function
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.types import NAMED
from tvmgraph.backend.table import Refused
from tvmgraph.backend.target import gpu_model

_AXES = "BNSD"


@dataclass(frozen=True)
class Gradient:
    """A case: batch, heads of queries and of keys, lengths, sizes of a head of keys and values."""

    batch: int
    heads: tuple[int, int]
    lengths: tuple[int, int]
    sizes: tuple[int, int]
    dtype: str = "float16"
    diagonal: int | None = None
    mask: str = ""
    layouts: tuple[str, ...] = ("BNSD",) * 8
    scale: float = 0.2

    @property
    def said(self) -> dict[str, Any]:
        """The attributes besides the layouts."""
        fill = -1e9 if self.mask == "choose" else None
        return {"scale": self.scale, "diagonal": self.diagonal, "fill": fill}

    def _numbers(self, rng: Any, extents: tuple[int, ...], layout: str) -> np.ndarray:
        shape = [extents[_AXES.index(axis)] for axis in layout]
        return rng.uniform(-1, 1, shape).astype(dtypes.dtype_of(self.dtype).numpy)

    def arrays(self) -> list[np.ndarray]:
        """Query, key, value, perhaps a mask, result, statistics and cotangent."""
        rng = np.random.default_rng(0)
        (own, shared), (rows, keys), (size, width) = self.heads, self.lengths, self.sizes
        kinds = [(own, rows, size), (shared, keys, size), (shared, keys, width)]
        found = [self._numbers(rng, (self.batch, *k), o) for k, o in zip(kinds, self.layouts)]
        if self.mask == "add":
            found.append(rng.uniform(-1, 1, (self.batch, 1, 1, keys)).astype(found[0].dtype))
        if self.mask == "choose":
            found.append(rng.random((1, own, rows, keys)) < 0.3)
        layouts = self.layouts[:4]
        made = ops.attention_with_statistics(*map(Tensor, found), **self.said, layouts=layouts)
        cotangent = self._numbers(rng, (self.batch, own, rows, width), self.layouts[4])
        return [*found, *(t.asnumpy() for t in made), cotangent]

    def expected(self) -> list[np.ndarray]:
        """The results of the eager operator on float64 operands."""
        wide = [a if a.dtype == bool else a.astype(np.float64) for a in self.arrays()]
        made = ops.attention_gradient(*map(Tensor, wide), **self.said, layouts=self.layouts)
        return [t.asnumpy() for t in made]

    def function(self) -> Any:
        """The function that asks for the kernels."""
        kinds = [(a.shape, str(a.dtype)) for a in self.arrays()]
        kinds += [(a.shape, self.dtype) for a in self.expected()]
        params = [
            tirx.decl_buffer([tirx.IntImm("int64", e) for e in shape], dtype)
            for shape, dtype in kinds
        ]
        func = tirx.PrimFunc(params, tirx.Evaluate(0))
        said = json.dumps(self.said | {"layouts": self.layouts})
        return func.with_attr(NAMED, ("attention_gradient", said))


CASES = {
    "grouped heads, a diagonal": Gradient(1, (4, 2), (70, 150), (64, 64), diagonal=80),
    "padded heads, a mask": Gradient(1, (2, 2), (40, 70), (40, 24), mask="choose"),
    "large heads, causal": Gradient(1, (1, 1), (130, 130), (128, 128), "bfloat16", diagonal=0),
    "layouts": Gradient(
        2, (1, 1), (33, 66), (16, 16), "bfloat16", 33, "add",
        ("BSND", "BNSD", "BSND", "BSND", "BNDS", "BSND", "BNDS", "BNSD"), -0.3,
    ),
}  # fmt: skip


@cache
def _compiled() -> Any:
    functions = {}
    for number, case in enumerate(CASES.values()):
        kernel = schedule_function(case.function(), gpu_model("sm_90"))
        assert kernel is not None
        functions[f"case{number}"] = kernel
    return compiled(functions, "sm_90")


@pytest.mark.parametrize("name", CASES)
def test_gradient(name: str):
    if emulator.missing():
        pytest.skip(emulator.missing())
    device, case = emulator.install(), CASES[name]
    device.reset()
    device.set(races=1)
    gpu, expected = tvm.cuda(0), case.expected()
    operands = [tvm.runtime.tensor(array, gpu) for array in case.arrays()]
    kind = dtypes.dtype_of(case.dtype).numpy
    results = [tvm.runtime.tensor(np.full(e.shape, 7, kind), gpu) for e in expected]
    kernel = _compiled()[f"case{list(CASES).index(name)}"]
    try:
        kernel(*operands, *results)
        gpu.sync()
    except RuntimeError:  # its text is the whole source
        pytest.fail(device.message)
    assert not device.message
    limit = 3e-2 if case.dtype == "bfloat16" else 4e-3
    for found, right in zip(results, expected):
        largest = np.abs(right).max()
        np.testing.assert_allclose(found.numpy().astype(np.float64), right, limit, limit * largest)


def test_a_graph_that_trains_holds_no_scores(gpu: emulator.Device):
    def loss(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) * 0.25
        return (ops.matmul(ops.softmax(scores, -1), v) * q).sum()

    derivative = ms.grad(loss, (0, 1, 2))
    rng = np.random.default_rng(0)
    operands = [Tensor(rng.uniform(-1, 1, (1, 2, 40, 16)).astype("float16")) for _ in range(3)]
    expected = derivative(*operands)
    ms.set_context(device_target="GPU")
    found = ms.jit(derivative)(*operands)
    names = [launch.name for launch in gpu.launches]
    assert sum("attention_gradient" in name for name in names) == 3, names
    for one, right in zip(found, expected):
        np.testing.assert_allclose(one.asnumpy(), right.asnumpy(), 0, 6e-3)


def test_what_the_kernels_do_not_take_is_left_to_others():
    model = gpu_model("sm_90")
    others = [
        Gradient(1, (1, 1), (16, 16), (16, 16), "float32"),
        Gradient(1, (1, 1), (16, 16), (12, 16)),
        Gradient(1, (1, 1), (16, 16), (16, 136)),
    ]
    said = [flash_grad.KERNEL.match(Nest(case.function()), model) for case in others]
    assert all(isinstance(answer, Refused) and answer.reason for answer in said)
