"""Compiled programs against plain Python: equal, or an explicit error."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import types
import warnings
from typing import Any

import numpy as np
import pytest

from tests.capture.programs import Program
from tvmgraph import JitConfig, Tensor, jit, ops
from tvmgraph.errors import CaptureError

COUNT = int(os.environ.get("TVMGRAPH_FUZZ", "120"))
STEP = 20


def helper(a: Tensor, b: Tensor) -> Tensor:
    if a.sum() > b.sum():
        return a
    return b


def compiled(seed: int) -> types.FunctionType:
    source = Program(seed).source()
    name = f"<program {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"ops": ops, "helper": helper, "__name__": "program"}
    exec(compile(source, name, "exec"), scope)
    return scope["f"]


def plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return np.asarray(value.asnumpy())
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value


def outcome(function: Any, calls: list[Any]) -> list[Any]:
    """Returns everything that can be observed of some calls."""
    holder = types.SimpleNamespace(v=1, last=None)
    items = [3, 4]
    seen: list[Any] = []
    for x, y, n in calls:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result: Any = plain(function(Tensor(x), Tensor(y), n, holder, items))
            except CaptureError:
                raise
            except Exception as e:
                result = type(e).__name__
        seen.append([result, out.getvalue(), holder.v, plain(holder.last), list(items)])
    return seen


def assert_same(a: Any, b: Any, where: str) -> None:
    if isinstance(a, list) and isinstance(b, list):
        assert len(a) == len(b), where
        for p, q in zip(a, b):
            assert_same(p, q, where)
    elif isinstance(a, np.ndarray):
        assert isinstance(b, np.ndarray), f"{where}: {b!r} is no tensor"
        assert a.dtype == b.dtype, where
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=where)
    else:
        assert type(a) is type(b), f"{where}: {a!r} {b!r}"
        assert a == b, where


def run_program(seed: int) -> bool:
    """Compares one program; returns whether it could be compiled."""
    function = compiled(seed)
    rng = np.random.default_rng(seed)
    calls = [
        (*(rng.uniform(-1, 1, (2, 2)).astype(np.float32)[0] for _ in range(2)), n)
        for n in (1, 1, 2, 1)
    ]
    expected = outcome(function, calls)
    try:
        actual = outcome(jit(function, jit_config=JitConfig(jit_level="O0")), calls)
    except CaptureError:
        return False
    assert_same(expected, actual, f"program {seed}\n{Program(seed).source()}")
    return True


@pytest.mark.parametrize("start", range(0, COUNT, STEP))
def test_programs_equal_plain_python(start: int) -> None:
    compiled_count = sum(run_program(seed) for seed in range(start, start + STEP))
    assert compiled_count >= STEP // 4
