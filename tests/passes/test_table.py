"""The pass table: what its rows say is what runs, and a pass of a user's own is one of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.backend.passes import function_at
from tvmgraph.config.graph_kernel import parse_flags
from tvmgraph.config.options import CompileOptions
from tvmgraph.errors import ConfigError
from tvmgraph.graph import Graph, simplify
from tvmgraph.passes import table
from tvmgraph.passes.freeze import freeze
from tvmgraph.passes.run import run_graph_passes
from tvmgraph.passes.table import Stage

OPTIONS = [CompileOptions(level, target) for level in table.LEVELS for target in ("host", "sm_90")]


@pytest.fixture
def own_pass() -> Iterator[list[str]]:
    """Adds a pass that makes additions multiplications, and collects what it is given."""
    seen: list[str] = []

    def multiply(graph: Graph) -> Graph:
        seen.append(graph.name)
        mul = ms.core.op.get_op("mul")
        nodes = [dataclasses.replace(n, op=mul) if n.op.name == "add" else n for n in graph.nodes]
        if nodes == list(graph.nodes):
            return graph
        return dataclasses.replace(graph, nodes=tuple(nodes))

    table.add_pass("multiply", multiply, "additions become products", after="simplify")
    yield seen
    table.remove_pass("multiply")


@pytest.mark.parametrize("row", table.passes(), ids=lambda row: row.name)
def test_every_row_can_run(row: table.Pass) -> None:
    assert row.why
    assert row.run or row.within
    for path in row.run:
        assert callable(function_at(path)), path
    assert row.cpu or row.cuda
    assert not row.switches or not row.optional


def test_names_are_unique() -> None:
    names = Counter([row.name for row in table.passes()] + list(table.switches()))
    shared = {name for row in table.passes() for name, _ in row.switches if name == row.name}
    assert {name for name, count in names.items() if count > 1} == shared


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: f"{o.level}-{o.backend}")
def test_passes_run_once_unless_the_table_says_why_not(options: CompileOptions) -> None:
    calls: Counter[str] = Counter()

    def watched(row: table.Pass) -> Any:
        functions = [table.function_of(path) for path in row.run]

        def run(graph: Graph, *args: Any) -> Graph:
            calls[row.name] += 1
            for function in functions:
                graph = function(graph, *args)
            return graph

        return dataclasses.replace(row, run=(run,))

    net = nn.SequentialCell(nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten())
    graph = jit(net.set_train(False)).graph(Tensor(np.ones((1, 8, 6, 6), np.float32)))
    rows = list(table._TABLE)
    try:
        table._TABLE[:] = [
            watched(row) if row.stage is Stage.GRAPH else row for row in rows
        ]  # fmt: skip
        frozen = freeze(graph, options) if table.runs("freeze", options) else None
        run_graph_passes(graph if frozen is None else frozen.main, options)
    finally:
        table._TABLE[:] = rows
    assert calls
    for name, count in calls.items():
        row = table.get_pass(name)
        assert count == 1 or (row.again and count <= row.rounds), (name, count)


@pytest.mark.parametrize("name", ["freeze", "layout", "fold_scale", "panels", "in_place"])
def test_a_pass_can_be_left_out(name: str) -> None:
    options = CompileOptions(kernels=parse_flags(f"--disable_pass={name}"))
    assert table.runs(name, CompileOptions())
    assert not table.runs(name, options)
    assert name in table.described(CompileOptions()).split(", ")
    assert name not in table.described(options).split(", ")


def test_weights_stay_as_they_are_without_panels() -> None:
    net = nn.Dense(64, 128)
    graph = jit(net).graph(Tensor(np.ones((8, 64), np.float32)))
    with_panels = freeze(graph)
    assert with_panels is not None and with_panels.main.op_counts()["matmul_panels"] == 1
    without = freeze(graph, CompileOptions(kernels=parse_flags("--disable_pass=panels")))
    assert without is None or not without.main.op_counts()["matmul_panels"]
    x = Tensor(np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32))
    flags = {"graph_kernel_flags": "--disable_pass=panels,freeze"}
    found = jit(net, jit_config=ms.JitConfig(options=flags))(x)
    np.testing.assert_allclose(found.asnumpy(), net(x).asnumpy(), rtol=1e-4, atol=1e-5)


def test_explain_lists_the_passes() -> None:
    function = jit(lambda x: ops.exp(x) + 1.0, jit_level="O2")
    function(Tensor(np.ones(3, np.float32)))
    assert f"passes: {table.described(CompileOptions())}" in function.explain()


def test_a_pass_of_your_own(own_pass: list[str]) -> None:
    x = Tensor(np.array([2.0, 5.0], np.float32))
    function = jit(lambda x: (x + x) * 1.0)
    np.testing.assert_array_equal(function(x).asnumpy(), [4.0, 25.0])
    assert own_pass
    assert "multiply" in function.explain()
    assert "not kept: it takes passes of your own" in function.explain()
    flags = {"graph_kernel_flags": "--disable_pass=multiply"}
    plain = jit(lambda x: (x + x) * 1.0, jit_config=ms.JitConfig(options=flags))
    np.testing.assert_array_equal(plain(x).asnumpy(), [4.0, 10.0])


def test_a_pass_of_your_own_is_gone_when_it_is_removed() -> None:
    table.add_pass("renamed", lambda graph: graph, "does nothing", level="O2", backends=["cuda"])
    assert not table.runs("renamed", CompileOptions())
    assert table.runs("renamed", CompileOptions(target="sm_90"))
    assert not table.runs("renamed", CompileOptions("O1", "sm_90"))
    table.remove_pass("renamed")
    assert not table.added()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "simplify"}, "already"),
        ({"name": "mine", "after": "legalize"}, "takes no graph"),
        ({"name": "mine", "after": "nothing"}, "no pass"),
        ({"name": "mine", "level": "O7"}, "no level"),
    ],
)
def test_wrong_passes_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        table.add_pass(run=simplify.simplify, why="none", **arguments)
    with pytest.raises(ConfigError, match="--disable_pass=freeze"):
        table.remove_pass("freeze")
