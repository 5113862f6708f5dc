"""Which nodes a kernel computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tvmgraph import JitConfig, Tensor, jit, nn, ops


def normal(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def statistics(x: Tensor) -> tuple[Tensor, ...]:
    d = x - x.mean(-1, keep_dims=True)
    return d * ops.rsqrt((d * d).mean(-1, keep_dims=True) + 1e-5), ops.exp(x), ops.tanh(x)


def around_product(x: Tensor) -> Tensor:
    return ops.softmax(ops.matmul(ops.exp(x) * 2, x) * 3 + 1, -1)


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
@pytest.mark.parametrize("body", [statistics, around_product])
def test_every_node_belongs_to_one_kernel(body: Callable[..., object], level: str) -> None:
    f = jit(body, jit_level=level)
    f(normal(48, 48))
    graph, kernels = f.fused_graph()
    nodes = sorted(n for k in kernels for n in k.nodes)
    assert nodes == list(range(len(graph.nodes)))
    assert {k.name for k in kernels} == set(f.kernels())


def test_groups_are_what_their_names_say() -> None:
    f = jit(around_product)
    f(normal(48, 48))
    graph, kernels = f.fused_graph()
    found = [tuple(graph.nodes[n].op.name for n in k.nodes) for k in kernels]
    assert found == [("exp", "mul"), ("matmul", "mul", "add"), ("softmax",)]


def test_equal_kernels_are_told_apart() -> None:
    w = [normal(16, 16) for _ in range(3)]

    def f(x: Tensor) -> Tensor:
        for v in w:
            x = ops.tanh(ops.matmul(x, v))
        return x

    g = jit(f)
    g(normal(4, 16))
    _, kernels = g.fused_graph()
    assert [k.nodes for k in kernels] == [(0, 1), (2, 3), (4, 5)]
    assert len({k.name for k in kernels}) == 1


def test_kernels_of_a_network_carry_their_times() -> None:
    net = nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    net.set_train(False)
    f = jit(net)
    profile = f.profile(normal(2, 1, 8, 8))
    graph, kernels = f.fused_graph(profile)
    assert sorted(n for k in kernels for n in k.nodes) == list(range(len(graph.nodes)))
    assert all(k.seconds is not None and k.seconds > 0 for k in kernels)


def test_steps_are_one_node_each() -> None:
    f = jit(around_product, jit_config=JitConfig(exec_mode="no_sink"))
    f(normal(8, 8))
    graph, kernels = f.fused_graph()
    assert [k.nodes for k in kernels] == [(i,) for i in range(len(graph.nodes))]


def test_viewers_say_what_chose_a_kernel() -> None:
    viewer = jit(lambda x: ops.relu(x @ x) * 2.0).viewer(Tensor(np.ones((8, 8), np.float32)))
    assert viewer.models[0]["choices"] == {}
    choices = viewer.models[1]["choices"]
    shown = {n["facts"].get("kernel") for n in viewer.models[1]["nodes"]} - {None, ""}
    assert shown and shown <= set(choices)
    assert all("\n  not:\n" in text for text in choices.values())
