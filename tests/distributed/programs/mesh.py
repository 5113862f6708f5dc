"""A transformer layer, forwards and backwards, on meshes of four processes; computed in NumPy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tvmgraph as ms
from tvmgraph import nn, ops
from tvmgraph.autodiff.reverse import reverse
from tvmgraph.capture.record import capture
from tvmgraph.distributed.engine import world
from tvmgraph.distributed.layout import Mesh, Spec
from tvmgraph.distributed.partition import Partitioned, partition
from tvmgraph.distributed.sharded import cut
from tvmgraph.eager import evaluate
from tvmgraph.graph.ir import Graph

RANK, SIZE = world().rank, world().size
RNG = np.random.default_rng(0)


class Layer(nn.Cell):
    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.norm = nn.LayerNorm((width,))
        self.q, self.k, self.v, self.o = (nn.Dense(width, width) for _ in range(4))
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)
        self.heads = heads

    def split(self, x: ms.Tensor) -> ms.Tensor:
        batch, length, width = x.shape
        return x.reshape((batch, length, self.heads, width // self.heads)).transpose((0, 2, 1, 3))

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        y = self.norm(x)
        q, k, v = self.split(self.q(y)), self.split(self.k(y)), self.split(self.v(y))
        scores = ops.softmax(ops.matmul(q, k.transpose((0, 1, 3, 2))) * 0.5, -1)
        found = ops.matmul(scores, v).transpose((0, 2, 1, 3)).reshape(x.shape)
        x = x + self.o(found)
        return (x + self.down(ops.relu(self.up(self.norm(x))))).mean()


def check(graph: Graph, mesh: Mesh, given: Mapping[str, Spec], whole: list[np.ndarray],
          arrays: list[np.ndarray]) -> Partitioned:  # fmt: skip
    values = {p.label: p.value for p in graph.params}
    splits = {values[n]: s for n, s in given.items()}
    specs = dict(zip(values, partition(graph, mesh, splits).inputs))
    outputs = [specs[named.get(n, n)] for n in gradients]  # as the weights themselves
    found = partition(graph, mesh, {values[n]: s for n, s in specs.items()}, outputs)
    local = [cut(a, mesh, s) for a, s in zip(arrays, found.inputs)]
    for got, expected, spec in zip(evaluate(found.graph, local), whole, found.outputs):
        np.testing.assert_allclose(got, cut(expected, mesh, spec), atol=2e-5)
    return found


net = Layer()
captured = capture(net.construct, (ms.Tensor(RNG.standard_normal((4, 8, 16)).astype("f")),), {})
forward = captured.graph
wanted = [i for i, p in enumerate(forward.params) if p.label != "x"]
graph = reverse(forward, wanted, [0])
arrays = [RNG.standard_normal(p.value.type.static_shape).astype("f") for p in graph.params]
names = [p.label for p in graph.params]
gradients = [forward.params[i].label for i in wanted]
whole = evaluate(graph, arrays)
named = {p.label: f"p{i}" for i, p in enumerate(forward.params)}
x, weights = named["x"], {n: named[f"{n}.weight"] for n in ("q", "k", "v", "up", "o", "down")}

MESH = Mesh((2, 2), ("dp", "mp"))
columns: Spec = (("mp",), ())
data: Spec = (("dp",), (), ())
megatron = {x: data} | {weights[n]: columns for n in ("q", "k", "v", "up")}
found = check(graph, MESH, megatron, whole, arrays)
by_label = dict(zip(names, found.inputs))
assert by_label[weights["o"]] == by_label[weights["down"]] == ((), ("mp",))  # they follow
assert {t.kind for t in found.transfers} == {"all_reduced"}, found.transfers
assert found.replicated == []
check(graph, MESH, {x: (("dp", "mp"), (), ())}, whole, arrays)
check(graph, MESH, {x: (("dp",), ("mp",), ())}, whole, arrays)  # the sequence is split
everything = {n: (("dp",), *((),) * (len(p.value.type.shape) - 1))
              for n, p in zip(names, graph.params) if p.value.type.ndim and n != x}  # fmt: skip
zero3 = check(graph, MESH, {x: data, **everything}, whole, arrays)
assert "all_gathered" in {t.kind for t in zero3.transfers}
check(graph, Mesh((2, 1, 2), ("a", "b", "c")), {x: (("c",), ("a",), ())}, whole, arrays)
print(f"mesh: rank {RANK} of {SIZE} is right, {len(found.transfers)} transfers")
