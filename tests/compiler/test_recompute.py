"""Cheap values are computed by everyone who reads them, and mean the same."""

import numpy as np

import tvmgraph as ms
from tvmgraph import nn, ops
from tvmgraph.eager.evaluate import evaluate
from tvmgraph.graph.simplify import dce
from tvmgraph.passes.recompute import recompute_cheap


def _readers(graph, name):
    made = {v for n in graph.nodes if n.op.name == name for v in n.outputs}
    return [sum(v in made for v in n.inputs) for n in graph.nodes]


def test_statistics_of_half_precision_read_it_themselves():
    def normalized(x):
        wide = x.astype(ms.float32)
        moved = wide - wide.mean(0)
        return moved / ops.sqrt((moved * moved).mean(0) + 1e-5)

    x = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float16)
    graph = ms.jit(normalized).graph(ms.Tensor(x))
    again = recompute_cheap(graph, least=1)
    names = [node.op.name for node in again.nodes]
    assert names.count("cast") == 3 and names.count("sub") == 2
    assert max(_readers(again, "cast")) == 1
    for found, wanted in zip(evaluate(again, [x]), evaluate(graph, [x])):
        np.testing.assert_array_equal(found, wanted)
    assert recompute_cheap(graph) is graph, "it is too small"


def test_what_others_need_in_memory_is_kept():
    def product(x):
        y = x * 2.0
        return y @ y, y.sum(0)

    graph = ms.jit(product).graph(ms.ops.ones((16, 16)))
    assert recompute_cheap(graph, least=1) is graph


def test_two_operands_have_more_bytes_than_their_sum():
    def sums(x, y):
        z = x + y
        return z.sum(0), (z * z).sum(0)

    pair = [ms.ops.ones((16, 16)), ms.ops.ones((16, 16))]
    graph = ms.jit(sums).graph(*pair)
    names = [node.op.name for node in recompute_cheap(graph, least=1).nodes]
    assert names.count("add") == 1


def test_a_training_step_means_the_same():
    net = nn.SequentialCell(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten())
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1)).set_train()
    x = np.random.default_rng(1).standard_normal((2, 3, 6, 6)).astype(np.float32)
    graph = dce(ms.jit(step).graph(ms.Tensor(x)))
    again = recompute_cheap(graph, least=1)
    assert len(again.nodes) > len(graph.nodes)
    rng = np.random.default_rng(2)
    arguments = [
        np.asarray(rng.uniform(0.1, 1, t.static_shape), t.dtype.numpy)
        for t in (p.value.type for p in graph.params)
    ]
    for found, wanted in zip(evaluate(again, arguments), evaluate(graph, arguments)):
        np.testing.assert_array_equal(found, wanted)
