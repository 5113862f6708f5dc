"""Control flow in ONNX models: out of captured graphs, and in again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvmgraph as ms
from tests.export.helpers import MAX_ERROR, eager, relative_error, run_onnxruntime, run_reference
from tvmgraph import Tensor, nn, ops
from tvmgraph.errors import CaptureError
from tvmgraph.export.onnx_file import onnx_model


class Decides(nn.Cell):
    """A branch, a loop with a branch in it, and a loop whose length is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(4, 4)

    def construct(self, x: Tensor) -> Tensor:
        if x.sum() > 0:  # noqa: SIM108 (a statement is what is tested)
            y = self.dense(x)
        else:
            y = x * 2
        i = 0
        while y.abs().sum() < 100 and i < x.shape[0] * 3:
            if y.mean() > 0:  # noqa: SIM108
                y = y + self.dense(y)
            else:
                y = y * 1.5
            i += 1
        for k in range(ops.cast(x.sum() * 0 + 3, ms.int32)):
            y = y + k
        return y


def values(sign: int, rows: int = 2) -> Tensor:
    return Tensor(sign * np.random.default_rng(rows).random((rows, 4)).astype(np.float32))


@pytest.fixture(scope="module")
def net() -> Decides:
    ms.set_seed(3)
    return Decides()


@pytest.mark.parametrize("opset", [17, 20, 25])
@pytest.mark.parametrize("sign", [1, -1])
def test_out(net: Decides, sign: int, opset: int) -> None:
    model = onnx_model(net, (values(-sign),), opset)
    onnx.checker.check_model(model, full_check=True)
    kinds = [n.op_type for n in model.graph.node]
    assert kinds.count("If") == 2  # the branch, and the loop's `and`
    assert kinds.count("Loop") == 2
    x = values(sign)
    for run in (run_onnxruntime, run_reference):
        assert relative_error(run(model, (x,)), eager(net, (x,))) <= MAX_ERROR
    names = {t.name for t in model.graph.initializer}
    assert names >= {p.name for p in net.trainable_params()}


def test_out_with_a_variable_axis(net: Decides) -> None:
    model = onnx_model(net, (values(1),), dynamic={"x": {0: "batch"}})
    onnx.checker.check_model(model, full_check=True)
    for rows in (1, 2, 7):
        for x in (values(1, rows), values(-1, rows)):
            assert relative_error(run_onnxruntime(model, (x,)), eager(net, (x,))) <= MAX_ERROR


@pytest.mark.parametrize("count", [2, 3])
def test_out_of_a_loop_over_tensors(count: int) -> None:
    """Two or three tensors that a loop iterates over are no bounds of a ``range``."""

    class Net(nn.Cell):
        def construct(self, x: Tensor) -> tuple[Tensor, ...]:
            found = ()
            for part in tuple(x + k for k in range(count)):
                found += (part * 2,)
            return found

    args = (values(1),)
    found = run_onnxruntime(onnx_model(Net(), args, 17), args)
    assert relative_error(found, eager(Net(), args)) <= MAX_ERROR


def test_out_of_a_derivative(net: Decides) -> None:
    """The derivative of a loop: ONNX's reference stacks rows wrongly, so ONNX Runtime only."""

    def slope(x: Tensor) -> Tensor:
        return ms.grad(lambda x: ops.sum(net(x) ** 2))(x)

    for x in (values(1), values(-1)):
        model = onnx_model(slope, (x,))
        assert relative_error(run_onnxruntime(model, (x,)), [slope(x).asnumpy()]) <= MAX_ERROR


@pytest.mark.parametrize("file_format", ["GRAPH", "TVM"])
def test_other_files(net: Decides, tmp_path: Path, file_format: str) -> None:
    path = ms.export(net, values(1), file_name=tmp_path / "net", file_format=file_format)
    loaded = ms.load(path)
    for x in (values(1), values(-1)):
        found = loaded(x if file_format == "GRAPH" else x.asnumpy())
        assert relative_error([found], eager(net, (x,))) <= 5e-5


def test_in_again(net: Decides) -> None:
    back = ms.onnx.load(onnx_model(net, (values(1),)))
    compiled, again = ms.jit(back), onnx_model(back, (values(1),))
    assert {n.op_type for n in again.graph.node} >= {"If", "Loop"}
    for x in (values(1), values(-1)):
        expected = eager(net, (x,))
        assert relative_error([back(x)], expected) <= MAX_ERROR
        assert relative_error([compiled(x)], expected) <= 5e-5
        assert relative_error(run_onnxruntime(again, (x,)), expected) <= MAX_ERROR
        slopes = [ms.grad(lambda x, f=f: ops.sum(f(x) ** 2))(x) for f in (net, back, compiled)]
        for s in slopes[1:]:
            assert relative_error([s], [slopes[0].asnumpy()]) <= 5e-5


# ---- models made of ONNX's operators ------------------------------------------------------------


def info(name: str, shape: Any, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], consts: Any = ()) -> Any:
    tensors = [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in consts]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def loop_model(trips: int | None, stack: bool = False, grow: bool = False) -> onnx.ModelProto:
    """``x = x * w + i``, at most ``trips`` (an input if ``None``) times."""
    nodes = [
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["x", "w"], ["xw"]),
        helper.make_node("Add", ["xw", "f"], ["sum"]),
        helper.make_node("Concat", ["sum", "w"], ["next"], axis=0)
        if grow
        else helper.make_node("Identity", ["sum"], ["next"]),
        helper.make_node("Identity", ["going"], ["on"]),
        helper.make_node("Neg", ["sum"], ["row"]),
    ]  # fmt: skip
    wide = [None] if grow else [3]
    states, rows = [info("next", wide)], [info("row", [3])] if stack else []
    body = helper.make_graph(
        nodes, "body",
        [info("i", [], TensorProto.INT64), info("going", [], TensorProto.BOOL), info("x", wide)],
        [info("on", [], TensorProto.BOOL), *states, *rows],
    )  # fmt: skip
    if grow:
        body.node[1].CopyFrom(helper.make_node("Identity", ["x"], ["xw"]))
    outputs = [info("y", wide), *([info("ys", [None, 3])] if stack else [])]
    node = helper.make_node("Loop", ["n", "", "x0"], [o.name for o in outputs], body=body)
    inputs = [info("x0", [3]), info("w", [3])]
    consts: list[Any] = []
    if trips is None:
        inputs.append(info("n", [], TensorProto.INT64))
    else:
        consts.append(("n", np.int64(trips)))
    return model_of([node], inputs, outputs, consts)


X = Tensor(np.array([1, -2, 3], np.float32))
W = Tensor(np.array([0.5, 0.9, -0.7], np.float32))


def check(model: onnx.ModelProto, args: tuple[Any, ...], slope: bool = True) -> Any:
    """Compares eager, compiled and exported again with ONNX Runtime; returns the compiled graph."""
    expected = run_onnxruntime(model, args)
    net = ms.onnx.load(model)
    compiled = ms.jit(net)
    for f in (net, compiled):
        found = f(*args)
        assert relative_error(found if isinstance(found, tuple) else (found,), expected) <= 1e-5
    assert relative_error(run_onnxruntime(onnx_model(net, args), args), expected) <= 1e-5

    def loss(f: Any) -> Any:
        def total(x: Tensor) -> Tensor:
            found = f(x, *args[1:])
            first, *more = found if isinstance(found, tuple) else (found,)
            return sum((ops.sum(y) for y in more), ops.sum(first))

        return total

    if slope:
        a, b = (ms.grad(loss(f))(args[0]).asnumpy() for f in (net, compiled))
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
    return compiled.graph()


@pytest.mark.parametrize("trips", [0, 3, 40])
@pytest.mark.parametrize("stack", [False, True])
def test_loop(trips: int, stack: bool) -> None:
    graph = check(loop_model(trips, stack), (X, W))
    assert graph.op_counts()["while_"] == (trips == 40)  # short ones are unrolled


@pytest.mark.parametrize("trips", [0, 1, 25])
def test_loop_of_unknown_length(trips: int) -> None:
    graph = check(loop_model(None), (X, W, Tensor(np.int64(trips))))
    assert graph.op_counts()["while_"] == 1


def test_loop_that_grows() -> None:
    graph = check(loop_model(20, grow=True), (X, W), slope=False)
    assert graph.op_counts()["while_"] == 0
    net, args = ms.onnx.load(loop_model(None, grow=True)), (X, W, Tensor(np.int64(4)))
    assert net(*args).shape == (15,)
    with pytest.raises(CaptureError, match="the loop cannot be part of a graph"):
        ms.jit(net, fullgraph=True)(*args)


def test_rows_of_unknown_number() -> None:
    net, args = ms.onnx.load(loop_model(None, stack=True)), (X, W, Tensor(np.int64(4)))
    assert net(*args)[1].shape == (4, 3)
    with pytest.raises(CaptureError, match="number of rows it stacks is not known"):
        ms.jit(net, fullgraph=True)(*args)


@pytest.mark.parametrize(("steps", "back", "axis"), [(4, 0, 0), (4, 1, 1), (33, 0, 1), (33, 1, 1)])
def test_scan(steps: int, back: int, axis: int) -> None:
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["h", "half"], ["less"]),
            helper.make_node("Add", ["less", "x"], ["new"]),
            helper.make_node("Tanh", ["new"], ["row"]),
        ],
        "body", [info("h", [3]), info("x", [3])], [info("new", [3]), info("row", [3])],
    )  # fmt: skip
    node = helper.make_node(
        "Scan", ["h0", "xs"], ["h", "ys"], body=body, num_scan_inputs=1, scan_input_axes=[axis],
        scan_input_directions=[back], scan_output_axes=[axis], scan_output_directions=[back],
    )  # fmt: skip
    shape = [steps, 3] if axis == 0 else [3, steps]
    model = model_of(
        [node], [info("xs", shape), info("h0", [3])], [info("h", [3]), info("ys", shape)],
        [("half", np.float32(0.5))],
    )  # fmt: skip
    xs = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    graph = check(model, (Tensor(xs), X), slope=axis == back)
    assert graph.op_counts()["while_"] == (steps > 16)


def test_branches_that_differ() -> None:
    sides = [
        helper.make_graph([helper.make_node(k, ["x"], [k])], k, [], [info(k, None)])
        for k in ("Relu", "Transpose")
    ]
    node = helper.make_node("If", ["c"], ["y"], then_branch=sides[0], else_branch=sides[1])
    model = model_of(
        [node], [info("x", [2, 3]), info("c", [], TensorProto.BOOL)], [info("y", None)]
    )
    net, x = ms.onnx.load(model), Tensor(np.ones((2, 3), np.float32))
    assert net(x, Tensor(False)).shape == (3, 2)
    with pytest.raises(CaptureError, match="the branches differ and the condition is not known"):
        ms.jit(net, fullgraph=True)(x, Tensor(False))
