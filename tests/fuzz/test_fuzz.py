"""Hostile input ends in an error of this package: what was found once, and random changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from tests.fuzz.targets import TARGETS, onnx_model, target
from tvmgraph.onnx import supported_operators

FINDINGS = sorted((Path(__file__).parent / "findings").iterdir())
BOUNDED = settings(max_examples=60, deadline=60_000, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("path", FINDINGS, ids=lambda p: p.name)
def test_findings(path: Path) -> None:
    target(path.name.split("__")[0])(path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_changed_bytes(name: str) -> None:
    function, seeds = TARGETS[name]
    unchanged = seeds()

    @BOUNDED
    @given(data=st.data())
    def changed(data: st.DataObject) -> None:
        content = bytearray(data.draw(st.sampled_from(unchanged)))
        for _ in range(data.draw(st.integers(1, 4))):
            start = data.draw(st.integers(0, len(content)))
            end = start + data.draw(st.integers(0, 8))
            content[start:end] = data.draw(st.binary(max_size=8))
        function(bytes(content))

    changed()


# ---- ONNX models that are well formed and make no sense -----------------------------------------

_OPERATORS = sorted(
    name
    for name in supported_operators()
    if "." not in name and name not in ("If", "Loop", "Scan", "SequenceMap")
)
_ARRAYS = [
    np.ones((2, 3), np.float32), np.arange(3), np.array(2), np.array([], np.float32),
    np.array([-1, 7]), np.array([[True, False]]), np.ones((1, 1, 4, 4), np.float32),
    np.array(np.nan, np.float32), np.array([1, 2], np.uint8), np.array([10**12, 10**12]),
]  # fmt: skip
_ATTRIBUTES = st.one_of(
    st.integers(-3, 5), st.floats(-2, 2), st.lists(st.integers(-2, 4), min_size=1, max_size=4),
    st.sampled_from(["SAME_UPPER", "nearest", "constant", "", "x"]),
    st.sampled_from([2**31, 10**9, -(10**9)]),
)  # fmt: skip


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    """Chains of random operators on random operands with random attributes."""
    names = [f"c{i}" for i in range(len(_ARRAYS))] + ["x", ""]
    nodes = []
    for i in range(draw(st.integers(1, 3))):
        op_type = draw(st.sampled_from(_OPERATORS))
        schema = onnx.defs.get_schema(op_type) if onnx.defs.has(op_type) else None
        known = sorted(schema.attributes) if schema is not None else []
        chosen = draw(st.lists(st.sampled_from(known), unique=True, max_size=3)) if known else []
        attrs = {name: draw(_ATTRIBUTES) for name in chosen}
        inputs = draw(st.lists(st.sampled_from(names), min_size=0, max_size=4))
        nodes.append(helper.make_node(op_type, inputs, [f"v{i}"], **attrs))
        names.append(f"v{i}")
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", kind, [2, 3])],
        [helper.make_tensor_value_info(names[-1], kind, None)],
        [numpy_helper.from_array(a, f"c{i}") for i, a in enumerate(_ARRAYS)],
    )  # fmt: skip
    opset = draw(st.sampled_from([5, 9, 13, 17, 20, onnx.defs.onnx_opset_version()]))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


@settings(BOUNDED, max_examples=250)
@given(model=models())
def test_senseless_models(model: Any) -> None:
    onnx_model(model.SerializeToString())
