"""ONNX models whose nodes are not in topological order."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvmgraph as ms
from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.errors import LoadError

X = Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))


class Branches(nn.Cell):
    """Two branches that meet, and a loop that a tensor ends."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Dense(3, 4), nn.Dense(3, 4)

    def construct(self, x: Tensor) -> Tensor:
        y = ops.relu(self.left(x)) * ops.tanh(self.right(x)) - 1.0
        while y.sum() < 10.0:
            y = ops.abs(y) * 1.5 + 0.1
        return y


def _shuffle(graph: onnx.GraphProto, numbers: random.Random) -> None:
    nodes = list(graph.node)
    numbers.shuffle(nodes)
    for node in nodes:
        for a in node.attribute:
            if a.HasField("g"):
                _shuffle(a.g, numbers)
    held = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
    del graph.node[:]
    graph.node.extend(held)


@pytest.mark.parametrize("seed", range(4))
def test_nodes_are_sorted(seed: int, tmp_path: Path) -> None:
    ms.set_seed(0)
    net = Branches()
    expected = net(X).asnumpy()
    model = onnx.load(ms.export(net, X, file_name=tmp_path / "net"))
    before = [n.SerializeToString() for n in model.graph.node]
    _shuffle(model.graph, random.Random(seed))
    assert [n.SerializeToString() for n in model.graph.node] != before
    cell = ms.onnx.load(model)
    np.testing.assert_allclose(cell(X).asnumpy(), expected, rtol=1e-5)
    if not seed:
        np.testing.assert_allclose(jit(cell)(X).asnumpy(), expected, rtol=1e-5)


def _model(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    x, y = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in "xy"]
    graph = helper.make_graph(nodes, "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def test_a_cycle_is_an_error_that_names_its_nodes() -> None:
    outside = helper.make_node("Relu", ["x"], ["r"], name="outside")
    first = helper.make_node("Add", ["r", "b"], ["a"], name="first")
    second = helper.make_node("Tanh", ["a"], ["b"])
    after = helper.make_node("Relu", ["b"], ["y"], name="after")
    with pytest.raises(LoadError, match="2 nodes read their own results") as caught:
        ms.onnx.load(_model(after, outside, second, first))
    assert caught.value.got in ("Add(first), Tanh(b)", "Tanh(b), Add(first)")
    with pytest.raises(LoadError, match="1 nodes read") as caught:
        ms.onnx.load(_model(helper.make_node("Add", ["x", "y"], ["y"], name="self")))
    assert caught.value.got == "Add(self)"


def test_what_a_branch_reads_comes_before_it() -> None:
    scalar = helper.make_tensor_value_info("t", TensorProto.FLOAT, [2, 3])
    branch = helper.make_graph([helper.make_node("Relu", ["late"], ["t"])], "b", [], [scalar])
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
        helper.make_node("Cast", ["s"], ["c"], to=TensorProto.BOOL),
        helper.make_node("ReduceMax", ["x"], ["s"], keepdims=0),
        helper.make_node("Neg", ["x"], ["late"]),
    ]
    found = ms.onnx.load(_model(*nodes))(X).asnumpy()
    np.testing.assert_array_equal(found, np.maximum(-X.asnumpy(), 0))
