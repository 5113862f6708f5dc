"""Integer arithmetic that overflows gives the same numbers in kernels as in eager code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tvmgraph as ms
from tests.processors import CPUS
from tvmgraph import JitConfig, Tensor, jit, ops
from tvmgraph.dtypes import DType

Binary = Callable[[Tensor, Tensor], Tensor]
PROGRAMS: dict[str, Binary] = {
    "compared": lambda x, y: (x + 1) > x,
    "difference": lambda x, y: (x - y) < x,
    "product": lambda x, y: (x * y) // ops.maximum(y, 1),
    "halved": lambda x, y: (x * 2) // 2,
    "least": lambda x, y: ops.minimum(x + y, x),
    "converted": lambda x, y: (x + y).astype(ms.float64),
    "distance": lambda x, y: (x - y).astype(ms.int64) + 1,
    "distance as a float": lambda x, y: (x - y).astype(ms.float64),
    "chosen": lambda x, y: ops.where(x * y - x > y, x + y, x - y),
    "stored": lambda x, y: x * x * x - y * x + 3,
    "summed": lambda x, y: (x + y).sum(),
}


def operands(dtype: DType) -> tuple[Tensor, Tensor]:
    info, rng = np.iinfo(dtype.numpy), np.random.default_rng(3)
    edges = np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype.numpy)
    numbers = rng.integers(info.min, info.max, 61, dtype.numpy, endpoint=True)
    x = np.concatenate([edges, numbers])
    return Tensor(x), Tensor(rng.permutation(x))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", [ms.int32, ms.uint32, ms.int64, ms.uint64], ids=str)
def test_it_wraps(dtype: DType, cpu: str) -> None:
    def programs(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return tuple(program(x, y) for program in PROGRAMS.values())

    compiled = jit(programs, jit_config=JitConfig(options={"cpu": cpu}))
    found, wanted = compiled(*operands(dtype)), programs(*operands(dtype))
    for name, got, want in zip(PROGRAMS, found, wanted, strict=True):
        np.testing.assert_array_equal(got.asnumpy(), want.asnumpy(), name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_wraps_where_nothing_else_is_stored(name: str) -> None:
    for dtype in (ms.int32, ms.uint64):
        x, y = operands(dtype)
        got = jit(PROGRAMS[name])(x, y).asnumpy()
        np.testing.assert_array_equal(got, PROGRAMS[name](x, y).asnumpy(), str(dtype))
