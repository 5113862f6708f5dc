"""The graph: recording, text, checker, passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, nn, ops
from tvmgraph.capture import record, replay
from tvmgraph.eager import evaluate
from tvmgraph.errors import GraphError
from tvmgraph.graph import Graph, GraphBuilder, Role, check, parse
from tvmgraph.graph import simplify as passes


class Shared(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(np.ones((3, 3), np.float32), name="w")
        self.inner = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return self.inner(ops.matmul(ops.matmul(x, self.w), self.w)) * 2.0


def recorded() -> Graph:
    return record(Shared(), Tensor(np.ones((2, 3), np.float32)))


GOLDEN = """\
graph Shared(%0: float32[2,3] input "x", %1: float32[3,3] parameter "w") {
  %5: float32[] = const([2.0])
  %2: float32[2,3] = matmul(%0, %1, transpose_a=False, transpose_b=False)  # test_graph.py:26 (Shared)
  %3: float32[2,3] = matmul(%2, %1, transpose_a=False, transpose_b=False)  # test_graph.py:26 (Shared)
  %4: float32[2,3] = relu(%3)  # test_graph.py:26 (Shared.inner)
  %6: float32[2,3] = mul(%4, %5)  # test_graph.py:26 (Shared)
  return %6
}"""


def test_golden_text() -> None:
    assert str(recorded()) == GOLDEN


def test_shared_parameter_stays_one() -> None:
    graph = recorded()
    assert [p.label for p in graph.parameters] == ["w"]
    assert graph.parameters[0].role is Role.PARAMETER
    assert not any(a.size > 1 for a in graph.consts.values())


def test_text_parses_back_and_checks() -> None:
    graph = check(recorded())
    again = check(parse(graph.text(full=True)))
    assert str(again) == str(graph)
    assert again.structural_hash() == graph.structural_hash()
    x, w = np.ones((2, 3), np.float32), np.eye(3, dtype=np.float32)
    np.testing.assert_array_equal(evaluate(again, [x, w])[0], evaluate(graph, [x, w])[0])


def test_large_constants_parse_back_only_from_the_full_text() -> None:
    graph = record(lambda x: x + Tensor(np.arange(100.0)), Tensor(np.ones(100)))
    check(parse(graph.text(full=True)))
    with pytest.raises(GraphError, match="full=True"):
        parse(graph.text())


def test_hash_ignores_names_and_sees_attributes() -> None:
    x = Tensor(np.ones((2, 3), np.float32))
    a = record(lambda first: ops.reshape(first, (3, 2)), x)
    b = record(lambda second: ops.reshape(second, (3, 2)), x)
    c = record(lambda second: ops.reshape(second, (6, 1)), x)
    assert a.structural_hash() == b.structural_hash() != c.structural_hash()
    twice = replace(a, outputs=(*a.outputs, *a.outputs))
    assert twice.structural_hash() != a.structural_hash()


def test_replay_is_eager() -> None:
    graph = recorded()
    x, w = Tensor(np.ones((2, 3), np.float32)), Tensor(np.eye(3, dtype=np.float32))
    assert float(replay(graph, [x], [w])[0].asnumpy()[0, 0]) == 2.0


def test_passes_keep_the_meaning() -> None:
    def f(x: Tensor) -> Tensor:
        unused = ops.tanh(x)
        twice = ops.tanh(x) + ops.tanh(x)
        assert unused is not None
        return twice * (Tensor(2.0) * Tensor(3.0))

    x = np.linspace(-1, 1, 4, dtype=np.float32)
    graph = record(f, Tensor(x))
    small = check(passes.simplify(graph))
    assert graph.op_counts()["tanh"] == 3
    assert small.op_counts() == {"tanh": 1, "add": 1, "mul": 1}
    np.testing.assert_allclose(evaluate(small, [x])[0], evaluate(graph, [x])[0], rtol=1e-6)


def test_products_read_transposed_operands_in_place() -> None:
    x, w = np.ones((2, 3), np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)
    graph = record(lambda x, w: ops.matmul(x, w.T).T @ x, Tensor(x), Tensor(w))
    small = check(passes.simplify(graph))
    assert small.op_counts() == {"matmul": 2}
    np.testing.assert_array_equal(evaluate(small, [x, w])[0], (x @ w.T).T @ x)


def test_checker_finds_what_is_wrong() -> None:
    add = ops.add.op
    builder = GraphBuilder("bad")
    a = builder.param(ms.Tensor(np.ones(2, np.float32)).aval)
    stranger = GraphBuilder("other").value(a.type)
    builder.node(add, (a, stranger), {}, [a.type])
    with pytest.raises(GraphError, match="before it is defined"):
        check(builder.build([a]))
    builder = GraphBuilder("bad")
    a = builder.param(ms.Tensor(np.ones(2, np.float32)).aval)
    wrong = ms.Tensor(np.ones(3, np.float32)).aval
    out = builder.node(add, (a, a), {}, [wrong])
    with pytest.raises(GraphError, match="the graph says"):
        check(builder.build(out))


@pytest.mark.parametrize("text", ["", "graph f() {", "graph f() {\n  nonsense\n  return\n}"])
def test_bad_text_is_an_error(text: str) -> None:
    with pytest.raises(GraphError):
        parse(text)


def test_graph_cell_runs_a_parsed_graph() -> None:
    graph = parse(recorded().text(full=True))
    cell = nn.GraphCell(graph, {"w": np.eye(3, dtype=np.float32)})
    x = Tensor(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(cell(x).asnumpy(), ms.jit(cell)(x).asnumpy())
