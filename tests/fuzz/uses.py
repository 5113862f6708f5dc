"""Programs as they are used: compiled functions, two threads, files, a second process.

What :mod:`.campaign` compiles are graphs, many in one module, which is cheap. Here every program
is compiled alone and goes the whole way of a user's: what a call leaves in parameters, the shortest
way into compiled code, weights that are prepared ahead, the compiler's process, the cache on disk.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import tvmgraph as ms
from tests.fuzz.differential import (
    ANY_ORDER,
    SCALED,
    Arrays,
    Difference,
    assert_same,
    capture_mode,
    differs,
    disturbed,
    eager_results,
    evaluating,
    observe,
    observed,
    unequal,
)
from tests.fuzz.programs import Program
from tvmgraph import Tensor, jit, runtime
from tvmgraph.errors import CaptureError, ExportError
from tvmgraph.graph import Graph
from tvmgraph.jit import entry

_ROOT = Path(__file__).parents[2]
_THREADS, _CALLS_PER_THREAD = 2, 3
_SECONDS = 300


@dataclass
class Use:
    """A program that was compiled, and what is known of it.

    Attributes:
        program: The program.
        level: The ``jit_level``.
        expected: What eager code gives, see :func:`.observe`.
        folder: For files.
        compiled: The compiled function.
        results: What it gave.
        disk: What the cache on disk did for its graphs.
    """

    program: Program
    level: str
    folder: Path
    expected: Arrays = field(default_factory=list)
    compiled: Any = None
    results: Arrays = field(default_factory=list)
    disk: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Compiles and calls the program, and compares it with eager code.

        Raises:
            Difference: if it gives something else.
        """
        self.expected = eager_results(self.program)
        net = self.program.net()
        with _noting(self.disk):
            self.compiled = jit(net, jit_level=self.level, capture_mode=capture_mode(self.program))
            results = observe(self.compiled, net, self.program)
        if isinstance(results, str):
            raise Difference("compiled call refuses", results)
        self.results = results
        self.compare("compiled call", results, range(len(results)))

    def compare(self, kind: str, actual: Arrays, places: Sequence[int]) -> None:
        """Compares some of what :func:`.observe` returns with eager code.

        Raises:
            Difference: if they are further apart than rounding explains.
        """
        names, freedom = observed(self.program), ANY_ORDER if self.level == "O3" else SCALED
        expected = [self.expected[i] for i in places]
        with self._disturbing() as sample:
            found = differs(expected, actual, lambda: [sample()[i] for i in places], freedom)
        if found is not None:
            raise Difference(kind, f"{found} of {', '.join(names[i] for i in places)}")

    @contextlib.contextmanager
    def _disturbing(self) -> Iterator[Callable[[], Arrays]]:
        """Gives a function that draws what the program may give where operators round."""
        rng, program = np.random.default_rng(self.program.seed), self.program
        freedom = ANY_ORDER if self.level == "O3" else SCALED

        def evaluate(graph: Graph, arrays: Arrays) -> Arrays:
            return disturbed(graph, arrays, rng, freedom)

        net = program.net()
        function = jit(net, capture_mode=capture_mode(program))

        def sample() -> Arrays:
            for name, array in program.parameters.items():
                getattr(net, name).set_data(Tensor(array.copy()))
            return observe(function, net, program)

        with evaluating(evaluate):
            yield sample

    @property
    def outputs(self) -> list[int]:
        """Where the results of the first call are among what :func:`.observe` returns."""
        return list(range(len(self.program.outputs)))

    def is_repeatable(self) -> bool:
        """Whether a second call gives what the first did: nothing is drawn or changed."""
        one = len(self.program.outputs) + len(self.program.inputs)
        return all(unequal(a, b) is None for a, b in zip(self.expected[:one], self.expected[one:]))


@contextlib.contextmanager
def _noting(disk: list[str]) -> Iterator[None]:
    """Notes what the cache on disk does for the graphs that are compiled."""
    real = entry.CompiledGraph

    class Noting(real):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            disk.append(self.stats.disk)

    with mock.patch.object(entry, "CompiledGraph", Noting):
        yield


def from_threads(use: Use) -> None:
    """Calls the compiled function from threads that run at the same time.

    Raises:
        Difference: if one of them gets another bit than a single one did.
    """
    if not use.is_repeatable():
        return
    found: list[Any] = []
    gate = threading.Barrier(_THREADS)

    def call() -> None:
        gate.wait()
        for _ in range(_CALLS_PER_THREAD):
            try:
                results = use.compiled(*use.program.arguments())
                found.append([t.asnumpy().copy() for t in results])
            except Exception as e:
                found.append(e)

    threads = [threading.Thread(target=call) for _ in range(_THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for results in found:
        if isinstance(results, Exception):
            raise Difference("threads", repr(results))
        for name, a, e in zip(use.program.outputs, results, use.results):
            if (where := unequal(a, e)) is not None:
                raise Difference("threads", f"{name}{where}")


def from_module(use: Use) -> None:
    """Exports the program as a compiled module, loads it and calls it.

    Raises:
        Difference: if the module gives something else.
    """
    path = use.folder / f"{use.program.seed}.tvm"
    try:
        ms.export(use.program.net(), *use.program.arguments(), file_name=path,
                  file_format="TVM", jit_level=use.level)  # fmt: skip
    except (ExportError, CaptureError) as e:
        return _refused("module refuses", e)
    results = runtime.load(path)(*(a.copy() for a in use.program.inputs.values()))
    _compare_file(use, "module", results)


def from_graph_file(use: Use) -> None:
    """Exports the program as a graph, loads it as a Cell and calls it eagerly.

    Raises:
        Difference: if the Cell gives something else.
    """
    path = use.folder / f"{use.program.seed}.graph"
    try:
        ms.export(use.program.net(), *use.program.arguments(), file_name=path, file_format="GRAPH")
    except (ExportError, CaptureError) as e:
        return _refused("graph file refuses", e)
    results = ms.load(path)(*use.program.arguments())
    results = results if isinstance(results, tuple) else (results,)
    _compare_file(use, "graph file", [t.asnumpy() for t in results])


def _compare_file(use: Use, kind: str, results: Any) -> None:
    arrays = [np.asarray(a) for a in (results if isinstance(results, (tuple, list)) else [results])]
    if len(arrays) != len(use.program.outputs):
        raise Difference(kind, f"{len(arrays)} results instead of {len(use.program.outputs)}")
    use.compare(kind, arrays, use.outputs)


def _refused(kind: str, e: ExportError | CaptureError) -> None:
    """Accepts what the documents say a file cannot hold."""
    if not any(word in str(e) for word in _NOT_IN_FILES):
        raise Difference(kind, str(e))


#: Of errors of exports: what a file has no place for. A size that values decide, where a number is
#: asked for, is a graph break in compiled code, and a file has none.
_NOT_IN_FILES = ("random", "in place", "a size that depends on values")

#: Ways to use a program that was compiled in this process.
USES: dict[str, Callable[[Use], None]] = {
    "threads": from_threads, "module": from_module, "graph file": from_graph_file,
}  # fmt: skip


def run_uses(
    programs: Sequence[Program], level: str, failed: Callable[[Program, Exception], None]
) -> None:
    """Runs programs in every way in which they are used.

    Args:
        programs: The programs.
        level: The ``jit_level``.
        failed: Called with a program and what is wrong with it.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        cache = {"TVMGRAPH_CACHE_DIR": f"{folder}/cache"}
        with mock.patch.dict(os.environ, cache):
            good: list[Use] = []
            for use in (Use(p, level, Path(folder)) for p in programs):
                try:
                    use.run()
                    good.append(use)
                    for run in USES.values():
                        run(use)
                except Exception as e:
                    failed(use.program, e)
            second = _second_process([u.program for u in good], level, Path(folder))
        for use in good:
            try:
                _compare_processes(use, *second[use.program.seed])
            except Difference as e:
                failed(use.program, e)


# ---- a second process ---------------------------------------------------------------------------


def _second_process(programs: Sequence[Program], level: str, folder: Path) -> dict[int, Any]:
    """Runs programs in another process that finds what this one has compiled."""
    given, found = folder / "programs.pickle", folder / "results.pickle"
    given.write_bytes(pickle.dumps([(p, level) for p in programs]))
    paths = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    subprocess.run(
        [sys.executable, "-m", "tests.fuzz.uses", given, found], check=True, timeout=_SECONDS,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    return pickle.loads(found.read_bytes())


def _compare_processes(use: Use, results: Any, disk: list[str]) -> None:
    if isinstance(results, str):
        raise Difference("second process", results)
    assert_same("second process", use.program, results, use.results)
    wanted = ["loaded" if d == "kept" else d for d in use.disk]
    if disk != wanted:
        raise Difference("cache on disk", f"{disk} in the second process, {use.disk} in the first")


def _main(given: str, found: str) -> None:
    """What the second process does."""
    results: dict[int, Any] = {}
    for program, level in pickle.loads(Path(given).read_bytes()):
        use = Use(program, level, Path(given).parent)
        try:
            use.run()
            results[program.seed] = use.results, use.disk
        except Exception as e:
            results[program.seed] = repr(e), use.disk
    Path(found).write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    _main(*sys.argv[1:])
