"""Random programs run eagerly and compiled: what the tests of this folder share."""

from __future__ import annotations

import contextlib
import itertools
import linecache
import os
import random
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

import tvmgraph as ms
from tests.capture.test_fuzz import NumpyGraph
from tvmgraph import JitConfig, Tensor, jit, nn, ops
from tvmgraph.jit import compiled, entry

#: The seed of the first program; a failure prints the seed of its own.
SEED = int(os.environ.get("TVMGRAPH_SEED", random.SystemRandom().randrange(10**6)))
#: How many times as many programs as in a usual test run.
MANY = int(os.environ.get("TVMGRAPH_PROGRAMS", "1"))
LEVELS = ("O0", "O1", "O2")


@contextlib.contextmanager
def in_numpy() -> Iterator[None]:
    """Graphs, and those of derivatives, run in NumPy: what is tested is the capture."""
    real = compiled.CompiledGraph
    entry.CompiledGraph = compiled.CompiledGraph = NumpyGraph  # pyright: ignore
    try:
        yield
    finally:
        entry.CompiledGraph = compiled.CompiledGraph = real  # pyright: ignore


def compiling(wanted: bool) -> contextlib.AbstractContextManager[None]:
    """Whether graphs are compiled, or run in NumPy."""
    return contextlib.nullcontext() if wanted else in_numpy()


_numbers = itertools.count()


@contextlib.contextmanager
def defined(source: str) -> Iterator[dict[str, Any]]:
    """Executes the source of a module that the capture can read; gives its names."""
    name = f"<program {next(_numbers)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = sys.modules[name] = types.ModuleType(name)
    module.__dict__.update(ms=ms, ops=ops, nn=nn, Tensor=Tensor, np=np, jit=jit)
    try:
        exec(compile(source, name, "exec"), module.__dict__)
        yield module.__dict__
    finally:
        del sys.modules[name], linecache.cache[name]


def at(function: Any, level: str) -> Any:
    """Returns the function compiled at a level."""
    return jit(function, jit_config=JitConfig(jit_level=level))


def arrays(value: Any) -> list[np.ndarray]:
    """Lists the tensors of a result as arrays; bfloat16 as float32."""
    if isinstance(value, Tensor):
        array = value.asnumpy()
        return [array.astype(np.float32) if value.dtype is ms.bfloat16 else array.copy()]
    return [a for v in value for a in arrays(v)] if isinstance(value, (tuple, list)) else []


def assert_same(wanted: Any, found: Any, where: str, rtol: float = 0.0) -> None:
    """Compares the tensors of two results."""
    pairs = arrays(wanted), arrays(found)
    assert [a.shape for a in pairs[0]] == [a.shape for a in pairs[1]], where
    for a, b in zip(*pairs):
        assert a.dtype == b.dtype, f"{a.dtype} {b.dtype}: {where}"
        np.testing.assert_allclose(b, a, rtol=rtol, atol=rtol, err_msg=where)
