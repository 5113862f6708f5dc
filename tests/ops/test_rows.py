"""Checks derived from every row of the operator table and every sample of a row.

``pytest -k tanh`` runs everything that is derived for one operator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops import differences
from tvmgraph import Tensor, dtypes
from tvmgraph.core.op import OPS, Op, Reason
from tvmgraph.graph import check, parse
from tvmgraph.testing.samples import (
    Case,
    all_cases,
    assert_close,
    derived_cases,
    has_column,
    tolerance,
)

GOOD = list(all_cases())
BAD = list(all_cases(bad=True))
#: Every sample, and one of every dtype that none of a row's samples has.
LOWERED = [c for c in (*GOOD, *derived_cases()) if has_column(c.op, "lower")]


def ids(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("op", [OPS[n] for n in sorted(OPS)], ids=lambda o: o.name)
def test_row_is_complete(op: Op) -> None:
    assert op.samples, f"{op.name} has no samples"
    assert op.doc.strip(), f"{op.name} has no documentation"
    for column in ("lower", "vjp", "onnx"):
        value = getattr(op, column)
        assert value is not None
        if isinstance(value, Reason):
            assert len(value) > 10, f"{op.name}.{column}: write the reason out"


@pytest.mark.parametrize("case", GOOD, ids=ids)
def test_infer_is_eager(case: Case) -> None:
    """The NumPy column gives the shapes and dtypes that the inference rule promises."""
    outputs = case.call(case.tensors())
    inferred = [v.type for v in case.graph().outputs]
    for o, t in zip(outputs, inferred, strict=True):
        actual = (o.array.shape, dtypes.dtype_of(o.array.dtype))
        if t.is_static:
            assert actual == (t.shape, t.dtype)
        else:
            assert (len(actual[0]), actual[1]) == (t.ndim, t.dtype)


@pytest.mark.parametrize("compiled_case", LOWERED, ids=ids)
def test_compiled_is_eager(compiled_case: Case, compiled_for: Any) -> None:
    compare_with_eager(compiled_case, compiled_for("host"))


def compare_with_eager(case: Case, compiled: Any) -> None:
    """Runs the compiled graph and the eager operator on the same arguments."""
    expected = case.call(case.tensors())
    actual = compiled.run(case, case.cast_arrays())
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        assert_close(a, e.asnumpy(), tolerance(case, e.dtype), f"{case.name} output {i}")


@pytest.mark.parametrize("case", [c for c in GOOD if differences.is_checkable(c)], ids=ids)
def test_vjp_is_finite_differences(case: Case) -> None:
    differences.check_gradient(case)


@pytest.mark.parametrize("case", [c for c in GOOD if has_column(c.op, "onnx")], ids=ids)
def test_onnx_is_eager(case: Case) -> None:
    ort = pytest.importorskip("onnxruntime")
    from tvmgraph.export.onnx import to_onnx

    graph = case.graph()
    expected = case.call(case.tensors())
    model = to_onnx(graph)
    try:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        session = ort.InferenceSession(model.SerializeToString(), options)
    except Exception as e:
        if "NOT_IMPLEMENTED" in str(e):
            pytest.xfail(f"ONNX Runtime has no kernel for this dtype: {str(e)[:120]}")
        raise
    if dtypes.bfloat16 in {
        v.type.dtype for v in (*(p.value for p in graph.params), *graph.outputs)
    }:
        pytest.xfail("ONNX Runtime exchanges no bfloat16 with NumPy")
    feeds = {p.label: a for p, a in zip(graph.params, case.cast_arrays())}
    feeds = {k: v for k, v in feeds.items() if k in {i.name for i in session.get_inputs()}}
    for i, (a, e) in enumerate(zip(session.run(None, feeds), expected, strict=True)):
        assert_close(np.asarray(a), e.asnumpy(), tolerance(case, e.dtype), f"{case.name}[{i}]")


@pytest.mark.parametrize("case", BAD, ids=ids)
def test_bad_sample_raises(case: Case) -> None:
    raises = case.sample.raises
    assert raises is not None
    with pytest.raises(raises) as info:
        case.call(case.tensors())
    text = str(info.value)
    assert f"ops.{case.op.name}: " in text
    assert "\n  got: " in text
    assert "\n  at:  " in text


@pytest.mark.parametrize("case", GOOD, ids=ids)
def test_text_round_trip(case: Case) -> None:
    graph = case.graph()
    again = parse(graph.text(full=True))
    check(graph)
    check(again)
    assert again.text(full=True) == graph.text(full=True)
    assert again.structural_hash() == graph.structural_hash()


def test_number_arguments_are_promoted() -> None:
    from tvmgraph import ops

    assert (Tensor([1, 2]) + 1.5).dtype == dtypes.float32
    assert ops.add(1, Tensor(np.ones(2, np.float16))).dtype == dtypes.float16
