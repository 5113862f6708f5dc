"""Imported ONNX models: eager, compiled, differentiated, exported again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import tvmgraph as ms
from tests.export import onnx_node_tests as node_tests
from tests.export.helpers import MAX_ERROR, eager, relative_error, run_onnxruntime
from tests.export.onnx_node_graphs import Batch
from tests.models import MODELS, Model
from tvmgraph import Parameter, Tensor, ops
from tvmgraph.errors import ArgumentError, CaptureError, LoadError
from tvmgraph.export.onnx_file import onnx_model
from tvmgraph.jit.graph_breaks import compiled_cell


def small_model(*nodes: onnx.NodeProto, inputs: Any = ("x",), outputs: Any = ("y",)) -> Any:
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        list(nodes), "g",
        [helper.make_tensor_value_info(n, kind, None) for n in inputs],
        [helper.make_tensor_value_info(n, kind, None) for n in outputs],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


@pytest.mark.parametrize("operator", node_tests.documented())  # loading all tests takes seconds
def test_node(operator: str) -> None:
    """Every test of an operator passes, or fails for a written reason."""
    cases = [c for c in node_tests.cases() if node_tests.operator(c) == operator]
    assert cases
    problems = {c.name: problem for c in cases if (problem := node_tests.run(c))}
    unexplained = {c.name for c in cases if c.name in problems
                   and not node_tests.reason(c, problems[c.name])}  # fmt: skip
    assert not unexplained, problems


def test_node_graphs() -> None:
    """Captured, compiled and exported again, a tenth of the tests (all of them: the document)."""
    chosen = [c for c in node_tests.cases()[::10] if not node_tests.run(c)]
    batch = Batch(chosen)
    for case in chosen:
        for problem in batch.problems(case.name):
            assert not problem or node_tests.reason(case, problem), f"{case.name}: {problem}"


def test_document_is_in_step() -> None:
    """What runs eagerly is what the document says; the other columns cannot be larger."""
    total, passed = Counter[str](), Counter[str]()
    for case in node_tests.cases():
        name = node_tests.operator(case)
        total[name] += 1
        passed[name] += not node_tests.run(case)
    table = node_tests.documented()
    assert {n: (row[0], row[-1]) for n, row in table.items()} == {
        n: (passed[n], total[n]) for n in total
    }
    assert all(max(row[1:-1]) <= row[0] for row in table.values())


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_there_and_back(model: Model) -> None:
    """A network that was exported, imported and exported again computes the same."""
    net, args = model.build(), model.inputs(2)
    expected = eager(net, args)
    back = ms.onnx.load(onnx_model(net, args))
    assert relative_error(eager(back, args), expected) <= MAX_ERROR
    names = {p.name for p in back.get_parameters()}
    assert {p.name for p in net.trainable_params()} <= names
    again = onnx_model(back, args)
    assert [i.name for i in again.graph.input] == list(back.input_names)
    assert relative_error(run_onnxruntime(again, args), expected) <= MAX_ERROR


@pytest.mark.parametrize("name", ["lenet", "bert"])
def test_compiled(name: str) -> None:
    model = next(m for m in MODELS if m.name == name)
    net, args = model.build(), model.inputs(2)
    expected = eager(net, args)
    found = ms.jit(ms.onnx.load(onnx_model(net, args)))(*args)
    found = found if isinstance(found, tuple) else (found,)
    assert relative_error(found, expected) <= 5e-5


def test_derivatives() -> None:
    model = next(m for m in MODELS if m.name == "lenet")
    net, (x,) = model.build(), model.inputs(2)
    back = ms.onnx.load(onnx_model(net, (x,)))
    weights = {p.name: p for p in back.get_parameters()}

    def gradients(f: Any, params: list[Parameter]) -> Any:
        return ms.grad(lambda x: ops.sum(f(x) * f(x)), None, params)(x)

    own = net.trainable_params()
    for a, b in zip(gradients(net, own), gradients(back, [weights[p.name] for p in own])):
        np.testing.assert_allclose(b.asnumpy(), a.asnumpy(), rtol=1e-4, atol=1e-5)


def test_files(tmp_path: Path) -> None:
    model = next(m for m in MODELS if m.name == "gpt2")
    net, args = model.build(), model.inputs(1)
    path = ms.export(net, *args, file_name=tmp_path / "net", external_data_bytes=1000)
    assert relative_error([ms.onnx.load(path)(*args)], eager(net, args)) <= MAX_ERROR
    (tmp_path / "net.onnx.data").unlink()
    with pytest.raises(LoadError, match="damaged"):
        ms.onnx.load(path)
    with pytest.raises(LoadError, match="no such file"):
        ms.onnx.load(tmp_path / "absent.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"\xff" * 100)
    with pytest.raises(LoadError, match="no ONNX model"):
        ms.onnx.load(tmp_path / "bad.onnx")


def test_all_unsupported_operators_are_listed() -> None:
    model = small_model(
        helper.make_node("StringConcat", ["x", "x"], ["a"]),
        helper.make_node("StringConcat", ["a", "x"], ["b"]),
        helper.make_node("Frobnicate", ["b"], ["c"], domain="com.example"),
        helper.make_node("Relu", ["c"], ["y"]),
    )
    with pytest.raises(LoadError) as caught:
        ms.onnx.load(model)
    assert "3 nodes use operators that are not supported" in str(caught.value)
    assert "StringConcat (2), com.example.Frobnicate (1)" in str(caught.value)


def test_functions_of_the_model() -> None:
    body = helper.make_function(
        "own", "Twice", ["a"], ["b"],
        [
            helper.make_node("Constant", [], ["two"], value_float=2.0),
            helper.make_node("Mul", ["a", "two"], ["b"]),
        ],
        [helper.make_opsetid("", 20)],
    )  # fmt: skip
    model = small_model(helper.make_node("Twice", ["x"], ["y"], domain="own"))
    model.functions.append(body)
    model.opset_import.append(helper.make_opsetid("own", 1))
    net = ms.onnx.load(model)
    x = Tensor(np.array([1.0, -3.0], np.float32))
    for run in (net, ms.jit(net)):
        np.testing.assert_array_equal(run(x).asnumpy(), [2, -6])


def test_shapes_from_values() -> None:
    model = small_model(helper.make_node("NonZero", ["x"], ["y"], name="where"))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    net = ms.onnx.load(model)
    x = Tensor(np.array([0.0, 1.0, 2.0], np.float32))
    np.testing.assert_array_equal(net(x).asnumpy(), [[1, 2]])
    with pytest.raises(CaptureError, match=r"not known before the model runs") as caught:
        ms.jit(net, fullgraph=True)(x)
    assert "onnx.NonZero 'where'" in str(caught.value)


def test_what_does_not_depend_on_values_is_one_graph() -> None:
    """Two nodes whose sizes depend on values: the others are compiled, also one behind them."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("NonZero", ["m"], ["first"]),
        helper.make_node("Relu", ["m"], ["r"]),
        helper.make_node("NonZero", ["r"], ["second"]),
        helper.make_node("Concat", ["first", "second"], ["places"], axis=1),
        helper.make_node("Transpose", ["places"], ["rows"]),
        helper.make_node("GatherND", ["m", "rows"], ["chosen"]),
        helper.make_node("Exp", ["r"], ["e"]),
    ]
    w = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    info = helper.make_tensor_value_info
    outputs = [info("chosen", TensorProto.FLOAT, None), info("e", TensorProto.FLOAT, None)]
    graph = helper.make_graph(
        nodes, "g", [info("x", TensorProto.FLOAT, [3, 4])], outputs,
        [onnx.numpy_helper.from_array(w, "w")],
    )  # fmt: skip
    net = ms.onnx.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    run, other = ms.jit(net), np.random.default_rng(1)
    for _ in range(3):  # as many are chosen as are positive
        x = other.standard_normal((3, 4)).astype(np.float32)
        m = x @ w
        found, e = run(Tensor(x))
        want = np.concatenate([m[m != 0], m[m > 0]])
        np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(e.asnumpy(), np.exp(np.maximum(m, 0)), rtol=1e-5)
    (part,) = net._model.parts.values()
    assert [n.op_type for n in part.split.nodes] == ["MatMul", "Relu", "Exp"]
    assert part.split.names == ["m", "r", "e"]
    assert "compiled 1 time(s)" in compiled_cell(part).explain()
    said = run.explain()
    assert "compiled inside: OnnxPart(3 of 8 nodes -> m, r, e)" in said
    assert "    OnnxPart: compiled 1 time(s)" in said


def test_what_waits_for_values_is_compiled_where_it_has_weights() -> None:
    """Two products, each of as many rows as values choose, also of none: two graphs more."""
    nodes = [
        helper.make_node("Gather", ["x", "column"], ["c"], axis=1),
        helper.make_node("NonZero", ["c"], ["one"]),
        helper.make_node("Transpose", ["one"], ["rows"]),
        helper.make_node("GatherND", ["x", "rows"], ["chosen"]),
        helper.make_node("Gemm", ["chosen", "w"], ["g"], transB=1),
        helper.make_node("Relu", ["g"], ["r"]),
        helper.make_node("ReduceMax", ["r"], ["best"], axes=[1], keepdims=0),
        helper.make_node("NonZero", ["best"], ["two"]),
        helper.make_node("Transpose", ["two"], ["kept"]),
        helper.make_node("GatherND", ["r", "kept"], ["some"]),
        helper.make_node("MatMul", ["some", "v"], ["y"]),
    ]
    other = np.random.default_rng(0)
    w, v = (other.standard_normal(shape).astype(np.float32) for shape in ((5, 4), (5, 3)))
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info("x", TensorProto.FLOAT, [12, 4])], [info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(a, n)
         for a, n in ((w, "w"), (v, "v"), (np.asarray(0, np.int64), "column"))],
    )  # fmt: skip
    net = ms.onnx.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    run = ms.jit(net)
    for count in (7, 7, 7, 9, 0, 6, 11, 5, 8):
        x = other.standard_normal((12, 4)).astype(np.float32)
        x[other.permutation(12)[count:], 0] = 0
        r = np.maximum(x[x[:, 0] != 0] @ w.T, 0)
        want = r[r.max(1, initial=0) != 0] @ v
        np.testing.assert_allclose(run(Tensor(x)).asnumpy(), want, rtol=1e-5, atol=1e-6)
    compiled = {
        tuple(n.op_type for n in part.split.nodes): compiled_cell(part).explain()
        for part in net._model.parts.values()
    }
    (first,) = (said for names, said in compiled.items() if names == ("Gemm", "Relu", "ReduceMax"))
    (second,) = (said for names, said in compiled.items() if names == ("MatMul",))
    assert "compiled 2 time(s)" in first and "symbolic: axis 0" in first
    assert "compiled 0 time(s)" not in second


def test_calls_compare_a_model_as_one_object() -> None:
    """However many nodes and constants it has: nothing of it is looked at in a repeated call."""
    net = ms.onnx.load(small_model(
        helper.make_node("Constant", [], ["c"], value_float=2.0),
        helper.make_node("Mul", ["x", "c"], ["z"]),
        helper.make_node("Relu", ["z"], ["y"]),
    ))  # fmt: skip
    net.construct(Tensor([1.0, 2.0, 3.0]))
    f = ms.jit(net)
    for _ in range(3):
        f(Tensor([1.0, 2.0, 3.0]))
    assert f.fast_call is not None
    assert "__dict__" not in f.fast_call.__globals__["source"]


def test_number_of_inputs() -> None:
    net = ms.onnx.load(small_model(helper.make_node("Add", ["a", "b"], ["y"]), inputs=("a", "b")))
    x = Tensor(np.ones(2, np.float32))
    with pytest.raises(ArgumentError, match="2 inputs are needed, not 1"):
        net(x)
    assert str(net) == "OnnxCell(a, b -> y)"


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_models_give_errors(data: st.DataObject, tmp_path_factory: Any) -> None:
    """Changed bytes end in an error of this package, or in a model."""
    x = Tensor(np.ones((2, 3), np.float32))
    content = bytearray(onnx_model(ms.nn.Dense(3, 2), (x,)).SerializeToString())
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "net.onnx"
    path.write_bytes(content)
    try:
        net = ms.onnx.load(path)
    except ms.errors.TvmgraphError as e:
        assert str(e)
    else:
        assert net.output_names is not None
