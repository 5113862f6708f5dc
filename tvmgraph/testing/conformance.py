"""Compiled against eager, one sample at a time."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tvmgraph.config import JitConfig
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import TvmgraphError
from tvmgraph.jit.compiled import CompiledGraph
from tvmgraph.testing.samples import Case, assert_close, tolerance


def run_case(case: Case, config: JitConfig | None = None) -> str | None:
    """Compiles one sample and compares it with the NumPy column.

    Returns:
        What differs, or ``None``.
    """
    try:
        expected = case.call(case.tensors())
        compiled = CompiledGraph(case.graph(), config or JitConfig())
        actual = compiled([Tensor(a) for a in case.cast_arrays()])
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            what = f"output {i}"
            assert_close(a.asnumpy(), e.asnumpy(), tolerance(case, e.dtype), what)
    except Exception as e:
        return f"{type(e).__name__}: {str(e).strip().splitlines()[0] if str(e).strip() else ''}"
    return None


def compile_case(case: Case, config: JitConfig) -> str | None:
    """Compiles one sample without running it, for a target of another machine.

    Returns:
        Why it cannot be compiled, or ``None``.
    """
    from tvmgraph.compiler.compile import CompileOptions
    from tvmgraph.compiler.library import write_library

    try:
        with tempfile.TemporaryDirectory() as folder:
            options = CompileOptions(config.jit_level, config.target)
            write_library(case.graph(), Path(folder) / "model.tar", options)
    except TvmgraphError as e:
        return f"{type(e).__name__}: {e.message}"
    return None
