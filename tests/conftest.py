"""Shared fixtures: one compile per processor for all operator samples that were selected."""

from __future__ import annotations

import functools
import gc
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tvmgraph.config import context
from tvmgraph.jit import churn
from tvmgraph.testing.samples import Case

# a machine that others use takes long to draw examples, which says nothing of what is tested
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


def pytest_configure(config: pytest.Config) -> None:
    """Keeps the executables of a test run in a folder of its own, not in the user's cache.

    A run that a shell started in the background ignores Ctrl-C, and so would what tests start.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["TVMGRAPH_EAGER_KERNELS"] = "0"  # what comes first is no matter of time
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # more of every process burn a core until they sleep
    folder = tempfile.TemporaryDirectory(prefix="tvmgraph-tests-", ignore_cleanup_errors=True)
    os.environ["TVMGRAPH_CACHE_DIR"] = folder.name
    if sys.dont_write_bytecode:  # tests start hundreds of processes that import the same modules
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = f"{folder.name}/bytecode"
    config.add_cleanup(folder.cleanup)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Looks for no garbage among what is collected, neither meanwhile nor later: all of it stays.

    That took a third of the collection, and half a second of every search in a test.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """Tests write into folders of their own, not into the repository."""
    root = Path(__file__).parent.parent
    before = {p.name for p in root.iterdir()}
    yield
    left = {p.name for p in root.iterdir() if not p.name.startswith(".")} - before
    assert not left, f"tests left {', '.join(sorted(left))} in {root.name}"


@pytest.fixture(autouse=True)
def settings_are_put_back() -> Iterator[None]:
    """A test that leaves a setting changed fails, not those after it; nothing else is left."""
    before = vars(context).copy()
    churn.forget_definitions()  # tests of other rows define the same short-lived functions
    yield
    changed = sorted(k for k, v in vars(context).items() if before[k] is not v and before[k] != v)
    for name in changed:
        setattr(context, name, before[name])
    assert not changed, f"the test left {', '.join(changed)} changed: ms.reset_context()"


class CompiledCases:
    """Compiles the one-node graphs of all selected cases as one module, at first use.

    Args:
        cases: The cases.
        target: The processor they are compiled for.
    """

    def __init__(self, cases: list[Case], target: str) -> None:
        self.cases = cases
        self.target = target
        self.executable: Any = None
        self.failures: dict[str, Exception] = {}

    def run(self, case: Case, arrays: list[np.ndarray]) -> list[np.ndarray]:
        from tvmgraph.core.tensor import Tensor

        if self.executable is None:
            self._compile()
        if case.name in self.failures:
            raise self.failures[case.name]
        types = [v.type for v in case.graph().outputs]
        name = case.name.replace("-", "_")
        outputs = self.executable.run([Tensor(a) for a in arrays], types, name)
        return [o.asnumpy() for o in outputs]

    def _compile(self) -> None:
        from tvmgraph.compiler import compile_graph, compile_many
        from tvmgraph.lowering import lower

        cases = {case.name.replace("-", "_"): case for case in self.cases}
        graphs: dict[str, Any] = {}
        for name, case in cases.items():
            try:
                graphs[name] = case.graph()
            except Exception as e:
                self.failures[case.name] = e
        # What finds the graphs that the others cannot be compiled with; the second takes long.
        checks = [lower, functools.partial(compile_graph, target=self.target)]
        while self.executable is None:
            try:
                self.executable = compile_many(graphs, target=self.target)
            except Exception:
                if not checks:
                    raise
                check = checks.pop(0)
                for name, graph in list(graphs.items()):
                    try:
                        check(graph)
                    except Exception as e:
                        self.failures[cases[name].name] = e
                        del graphs[name]


#: What is compiled for a processor: by the name of the parameter, the cases of the run.
_selected: dict[str, list[Case]] = {}


def pytest_collection_finish(session: pytest.Session) -> None:
    for item in session.items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        for name in params.keys() & {"compiled_case", "narrow_case"}:
            _selected.setdefault(name, []).append(params[name])


@pytest.fixture
def compiled_here() -> Iterator[None]:
    """This process compiles itself, for tests that replace parts of the compiler."""
    before = context.compile_worker
    context.compile_worker = False
    yield
    context.compile_worker = before


@pytest.fixture(scope="session")
def compiled_for() -> Callable[..., CompiledCases]:
    """The selected cases compiled for a processor."""
    return functools.cache(
        lambda target, name="compiled_case": CompiledCases(_selected[name], target)
    )
