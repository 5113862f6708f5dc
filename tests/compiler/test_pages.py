"""Large results are written into large pages, where the system gives them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import tirx

from tests.backend.driver import fused, module
from tvmgraph import Tensor, jit, ops
from tvmgraph.backend.cpu.codegen.huge_pages import advise_huge_pages
from tvmgraph.backend.target import make_target

_SYSTEM = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_SIDE = 2048  # of a square of float32 of 16 MiB


def _calls(rows: int, target: str, result: str = "float32") -> list[str]:
    """Which parameters of an elementwise kernel are large and asked for."""
    mod = fused(module(lambda b, x: tvm.relax.op.astype(x, result), ((rows, _SIDE), "float32")))
    passes = [tirx.transform.BindTarget(make_target(target)), advise_huge_pages]
    mod = tvm.transform.Sequential(passes)(mod)
    (func,) = (f for f in mod.functions.values() if isinstance(f, tirx.PrimFunc))
    lines = [line for line in func.script().splitlines() if '"tvmgraph_advise_huge_pages"' in line]
    return [line.strip() for line in lines]


@pytest.mark.parametrize("rows, count", [(8, 0), (511, 0), (512, 1), (_SIDE, 1)])
def test_large_results_are_asked_for(rows: int, count: int) -> None:
    assert len(_calls(rows, "aarch64")) == count


def test_only_what_is_written_counts() -> None:
    (call,) = _calls(_SIDE, "aarch64")
    assert "compute" in call and str(4 * _SIDE * _SIDE) in call
    assert not _calls(512, "aarch64", "int8")  # the operand is large, the result is not


def _flags(address: int) -> list[str]:
    """What the system notes about the mapping that holds an address."""
    inside, flags = False, []
    for line in Path("/proc/self/smaps").read_text().splitlines():
        word = line.split()[0]
        if not word.endswith(":"):
            begin, end = (int(part, 16) for part in word.split("-"))
            inside = begin <= address < end
        elif inside and word == "VmFlags:":
            flags = line.split()[1:]
    return flags


def test_the_system_is_asked() -> None:
    x = np.random.RandomState(0).standard_normal((_SIDE, _SIDE)).astype(np.float32)
    y = jit(lambda x: ops.relu(x) - 1)(Tensor(x)).asnumpy()
    np.testing.assert_array_equal(y, np.maximum(x, 0) - 1)
    assert ("hg" in _flags(y.ctypes.data + y.nbytes // 2)) == _SYSTEM.exists()
