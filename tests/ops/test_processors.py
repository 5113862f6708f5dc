"""The operator table on processors that this one can be, and code for those that it cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ops.test_rows import LOWERED, compare_with_eager, ids
from tvmgraph.compiler import pipeline
from tvmgraph.config.options import CompileOptions
from tvmgraph.lowering import lower_many
from tvmgraph.machine.processor import missing_features
from tvmgraph.machine.targets import target_table
from tvmgraph.testing.samples import Case, kinds


def _half(case: Case) -> str:
    return next((kind for kind in kinds(case.sample) if kind in ("float16", "bfloat16")), "")


#: The first sample of every row, with and without each half precision.
CODE = list({(case.op.name, _half(case)): case for case in reversed(LOWERED)}.values())


def _lacks(target: str) -> bool:
    return bool(missing_features(target_table()[target]["features"]))


@pytest.mark.skipif(_lacks("x86-64-v3"), reason="it cannot run here")
@pytest.mark.skipif(_lacks("x86-64-v4"), reason="test_rows has compiled for AVX2 here")
@pytest.mark.parametrize("narrow_case", LOWERED[::2], ids=ids)
def test_compiled_is_eager_with_avx2(narrow_case: Case, compiled_for: Any) -> None:
    compare_with_eager(narrow_case, compiled_for("x86-64-v3", "narrow_case"))


#: What differs between processors without and with arithmetic in half precision.
HALF = [case for case in CODE if _half(case)]


@pytest.mark.parametrize(  # some rows each: the loops of rows are much alike
    "target, cases",
    [("x86-64-v2", CODE[::3]), ("aarch64", CODE[1::3]), ("aarch64-fp16", HALF[::3])],
)
def test_code_is_generated(target: str, cases: list[Case]) -> None:
    graphs = {case.name.replace("-", "_"): case.graph() for case in cases}
    options, request = CompileOptions(target=target), pipeline.Request(checked=True)
    made = pipeline.build(lower_many(graphs), options, request=request)
    assert len(made.kernels) > len({case.op for case in cases})
