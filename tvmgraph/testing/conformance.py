"""Compiled against eager, one sample at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tvmgraph.config import JitConfig
from tvmgraph.config.options import CompileOptions
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import TvmgraphError
from tvmgraph.jit.compiled import CompiledGraph
from tvmgraph.testing.samples import Case, assert_close, tolerance


def run_cases(cases: Sequence[Case], config: JitConfig) -> Iterator[tuple[Case, str | None]]:
    """Compiles samples as one module, which takes far less time than one for each, and runs them.

    Args:
        cases: The samples.
        config: How it is compiled.

    Yields:
        A sample, and what differs or ``None``. Where the module cannot be compiled, each sample is
        compiled alone.
    """
    from tvmgraph.compiler import compile_many

    try:
        graphs = {f"f{i}": case.graph() for i, case in enumerate(cases)}
        executable = compile_many(graphs, config.jit_level, config.target)
    except Exception:  # the samples that are to blame say why
        yield from ((case, run_case(case, config)) for case in cases)
        return
    for i, case in enumerate(cases):
        arguments = [Tensor(a) for a in case.cast_arrays()]
        types = [v.type for v in graphs[f"f{i}"].outputs]
        yield (
            case,
            _difference(case, lambda i=i, a=arguments, t=types: executable.run(a, t, f"f{i}")),
        )


def run_case(case: Case, config: JitConfig | None = None) -> str | None:
    """Compiles one sample and compares it with the NumPy column.

    Args:
        case: The sample.
        config: How it is compiled; by default as users do.

    Returns:
        What differs, or ``None``.
    """

    def run() -> Sequence[Tensor]:
        compiled = CompiledGraph(case.graph(), config or JitConfig())
        return compiled([Tensor(a) for a in case.cast_arrays()])

    return _difference(case, run)


def _difference(case: Case, run: Callable[[], Sequence[Tensor]]) -> str | None:
    try:
        expected, actual = case.call(case.tensors()), run()
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            what = f"output {i}"
            assert_close(a.asnumpy(), e.asnumpy(), tolerance(case, e.dtype), what)
    except Exception as e:
        return f"{type(e).__name__}: {str(e).strip().splitlines()[0] if str(e).strip() else ''}"
    return None


def compile_case(case: Case, config: JitConfig) -> str | None:
    """Compiles one sample without running it, for a target of another machine.

    Args:
        case: The sample.
        config: How it is compiled.

    Returns:
        Why it cannot be compiled, or ``None``.
    """
    from tvmgraph.compiler.library import write_library

    try:
        with tempfile.TemporaryDirectory() as folder:
            options = CompileOptions(config.jit_level, config.target)
            write_library(case.graph(), Path(folder) / "model.tar", options)
    except TvmgraphError as e:
        return f"{type(e).__name__}: {e.message}"
    return None
