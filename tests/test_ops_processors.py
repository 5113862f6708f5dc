"""The operator table on processors that this one can be, and code for those that it cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.test_ops import LOWERED, compare_with_eager, ids
from tvmgraph.compiler import pipeline
from tvmgraph.lowering import lower_many
from tvmgraph.processor import missing_features
from tvmgraph.targets import target_table
from tvmgraph.testing.samples import Case, kinds


def _half(case: Case) -> str:
    return next((kind for kind in kinds(case.sample) if kind in ("float16", "bfloat16")), "")


#: The first sample of every row, with and without each half precision.
CODE = list({(case.op.name, _half(case)): case for case in reversed(LOWERED)}.values())


@pytest.mark.skipif(
    bool(missing_features(target_table()["x86-64-v3"]["features"])), reason="it cannot run here"
)
@pytest.mark.parametrize("compiled_case", LOWERED, ids=ids)
def test_compiled_is_eager_with_avx2(compiled_case: Case, compiled_for: Any) -> None:
    compare_with_eager(compiled_case, compiled_for("x86-64-v3"))


@pytest.mark.parametrize("target", ["x86-64-v2", "aarch64", "aarch64-fp16"])
def test_code_is_generated(target: str) -> None:
    graphs = {case.name.replace("-", "_"): case.graph() for case in CODE}
    module, level = lower_many(graphs), pipeline.LEVELS["O2"]
    _, kernels, _ = pipeline.build(module, level, target, checked=True)
    assert len(kernels) > len({case.op for case in CODE})
