"""Compiled against eager, one sample at a time."""

from __future__ import annotations

from tvmgraph.config import JitConfig
from tvmgraph.core.tensor import Tensor
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
