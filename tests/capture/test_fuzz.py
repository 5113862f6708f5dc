"""Compiled programs against plain Python: equal, or an explicit error that changes nothing.

Nearly all programs run their graphs in NumPy, which costs no compile: what is tested here is what
the capture makes of Python. Some programs are compiled.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import sys
import threading
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.capture.programs import Program
from tvmgraph import JitConfig, Tensor, jit, ops
from tvmgraph.eager import evaluate
from tvmgraph.errors import CaptureError
from tvmgraph.graph.sizes import is_symbolic, sizes_of, with_sizes
from tvmgraph.jit import compiled, entry
from tvmgraph.jit.compiled import CompiledGraph
from tvmgraph.runtime.executable import from_ffi, to_ffi
from tvmgraph.runtime.workers import affinity

COUNT = int(os.environ.get("TVMGRAPH_FUZZ", "400"))
STEP = 200
PIECES = int(os.environ.get("TVMGRAPH_FUZZ_PIECES", "50"))
COMPILED_EVERY = 200


class _NumpyExecutable:
    """Runs a graph in NumPy behind the interface of compiled code."""

    on_host = True

    def __init__(self, graph: Any, evaluate: Any) -> None:
        self.graph, self.evaluate = graph, evaluate
        self.local = threading.local()

    def function(self) -> Any:
        def run(*handles: Any) -> Any:
            types = [p.value.type for p in self.graph.params]
            given = [from_ffi(h, t).array for h, t in zip(handles, types, strict=True)]
            outputs = [to_ffi(Tensor(a)) for a in self._evaluated(given)]
            return outputs[0] if len(outputs) == 1 else outputs

        here = affinity()
        self.local.entry = run, here.core, here
        return run

    def handle(self, tensor: Tensor) -> Any:
        return to_ffi(tensor)

    def run(self, args: Any, types: Any, kept: Any = None) -> list[Tensor]:
        outputs = [Tensor(np.asarray(a)) for a in self._evaluated([a.array for a in args])]
        if kept is not None:
            kept.append(outputs)
        return outputs

    def _evaluated(self, arrays: list[Any]) -> Any:
        graph = self.graph
        if is_symbolic(graph):
            sizes = sizes_of([p.value for p in graph.params], [a.shape for a in arrays])
            graph = with_sizes(graph, sizes)
        return self.evaluate(graph, arrays)


class NumpyGraph(CompiledGraph):
    """A compiled graph that was not compiled."""

    evaluate: Any = staticmethod(evaluate)

    def __init__(self, graph: Any, config: JitConfig, held: Any = ()) -> None:
        self.graph, self.config, self.steps, self.constants = graph, config, None, []
        self.executable: Any = _NumpyExecutable(graph, self.evaluate)
        self._types = tuple(v.type for v in graph.outputs)
        self._pull_back, self.overwritten = {}, ()


@contextlib.contextmanager
def in_numpy() -> Iterator[None]:
    real = entry.CompiledGraph, compiled.CompiledGraph  # the second: derivatives
    entry.CompiledGraph = compiled.CompiledGraph = NumpyGraph
    try:
        yield
    finally:
        entry.CompiledGraph, compiled.CompiledGraph = real


def define(source: str, name: str) -> dict[str, Any]:
    """Executes a program's module; returns its names."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = types.ModuleType(name)
    module.__dict__.update(ops=ops, Tensor=Tensor, np=np)
    sys.modules[name] = module
    exec(compile(source, name, "exec"), module.__dict__)
    return module.__dict__


def plain(value: Any) -> Any:
    """Returns a value with its tensors as arrays."""
    if isinstance(value, Tensor):
        return np.asarray(value.asnumpy()).copy()
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return [[k, plain(v)] for k, v in value.items()]
    return value


class World:
    """Everything outside of a program's function."""

    def __init__(self, source: str, name: str) -> None:
        self.names = define(source, name)
        self.names["o"] = self.names["Box"](1, Tensor(np.array([0.5, -2], np.float32)))
        self.names["items"] = [3, 4]

    def state(self) -> list[Any]:
        """Returns what can be observed of it."""
        o = self.names["o"]
        return [
            plain(vars(o)), plain(self.names["items"]), self.names["SCALE"],
            plain(self.names["TABLE"]), plain(self.names["SEEN"]),
        ]  # fmt: skip

    def call(self, function: Any, x: np.ndarray, y: np.ndarray, n: int) -> list[Any]:
        """Returns result or exception, text, and the state after a call."""
        out = io.StringIO()
        given = Tensor(x), Tensor(y)
        with contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result: Any = plain(function(*given, n, self.names["o"], self.names["items"]))
            except CaptureError:
                raise
            except Exception as e:
                result = type(e).__name__
        return [result, out.getvalue(), *self.state(), *map(plain, given)]


def assert_same(a: Any, b: Any, where: str) -> None:
    if isinstance(a, list) and isinstance(b, list):
        assert len(a) == len(b), f"{where}: {a!r} {b!r}"
        for p, q in zip(a, b):
            assert_same(p, q, where)
    elif isinstance(a, np.ndarray):
        assert isinstance(b, np.ndarray), f"{where}: {b!r} is no tensor"
        assert a.dtype == b.dtype, f"{where}: {a.dtype} {b.dtype}"
        if not (np.array_equal(a, b) or np.allclose(a, b, 1e-5, 1e-5, equal_nan=True)):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=where)
    else:
        assert type(a) is type(b), f"{where}: {a!r} {b!r}"
        assert a == b, f"{where}: {a!r} {b!r}"


def run_program(seed: int, mode: str = "ast", strict: bool = True) -> bool:
    """Compares one program; returns whether it could be compiled."""
    program = Program(seed)
    source, changes = program.source(), program.changes()
    where = f"program {seed}, between calls {changes}\n{source}"
    eager, compiled = (World(source, f"<program {seed} {k}>") for k in ("eager", "compiled"))
    config = JitConfig(jit_level="O0")
    function = jit(
        compiled.names["f"], jit_config=config, global_writes="replay", capture_mode=mode,
        fullgraph=strict,
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    for n, change in zip((1, 1, 2, 1, 1), ["pass", *changes]):
        for world in (eager, compiled):
            exec(change, world.names)
        x, y = rng.uniform(-1, 1, (2, 2)).astype(np.float32)
        before = compiled.state()
        try:
            actual = compiled.call(function, x, y, n)
        except CaptureError:
            assert_same(before, compiled.state(), f"refused, but something changed: {where}")
            return False
        assert_same(eager.call(eager.names["f"], x, y, n), actual, where)
    return True


@pytest.mark.parametrize("start", range(0, COUNT, STEP))
def test_programs_equal_plain_python(start: int) -> None:
    count = 0
    for seed in range(start, min(start + STEP, COUNT)):
        with contextlib.nullcontext() if seed % COMPILED_EVERY == 0 else in_numpy():
            count += run_program(seed)
        for kind in ("eager", "compiled"):
            sys.modules.pop(f"<program {seed} {kind}>", None)
            linecache.cache.pop(f"<program {seed} {kind}>", None)
    assert count >= STEP // 4


@pytest.mark.parametrize("mode", ["ast", "bytecode"])
def test_no_program_is_refused_in_pieces(mode: str) -> None:
    start = 0 if mode == "ast" else PIECES
    with in_numpy():
        assert all(run_program(seed, mode, strict=False) for seed in range(start, start + PIECES))
