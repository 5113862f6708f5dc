"""The verifier: run after every pass while debugging and in tests."""

from __future__ import annotations

from tvmgraph.core.types import tensor_type
from tvmgraph.errors import GraphError, TvmgraphError
from tvmgraph.graph.ir import Graph, Node, Value

#: What a row's rule raises on attributes or operands of another kind than it is made for.
_WRONG_KINDS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError,
    ValueError,
)  # fmt: skip


def check(graph: Graph) -> Graph:
    """Verifies a graph and returns it.

    Every value is defined exactly once and before its use, constants match their declared type,
    and every node's outputs have the types its operator's rule infers.

    Args:
        graph: The graph; the graphs inside of its nodes are verified, too.

    Raises:
        GraphError: naming the node that breaks a rule.
    """
    _check(graph, set())
    return graph


def _check(graph: Graph, outer: set[Value]) -> None:
    defined = set(outer)
    names: set[str] = set()

    def define(v: Value, where: str) -> None:
        if v in defined:
            raise GraphError(f"{where} defines %{v.name} again", op=graph.name)
        if v.name in names:
            raise GraphError(f"{where}: two values are called %{v.name}", op=graph.name)
        defined.add(v)
        names.add(v.name)

    for p in graph.params:
        define(p.value, f"parameter {p.label!r}")
    for v, array in graph.consts.items():
        define(v, "a constant")
        if tensor_type(array.shape, array.dtype) is not v.type:
            raise GraphError(f"constant %{v.name} is {array.dtype}{array.shape}, not {v.type}")
    for node in graph.nodes:
        _check_node(graph, node, defined)
        for v in node.outputs:
            define(v, node.op.name)
    for v in graph.outputs:
        if v not in defined:
            raise GraphError(f"output %{v.name} is not defined", op=graph.name)
    if len(graph.writes) > len(graph.outputs):
        raise GraphError("more state writes than outputs", op=graph.name)


def _check_node(graph: Graph, node: Node, defined: set[Value]) -> None:
    for v in node.inputs:
        if v not in defined:
            raise GraphError(
                f"{node.op.name} reads %{v.name} before it is defined",
                op=graph.name, at=node.source,
            )  # fmt: skip
    if tuple(node.attrs) != node.op.attrs:
        raise GraphError(
            f"{node.op.name} has attributes {list(node.attrs)}, its row {list(node.op.attrs)}",
            op=graph.name, at=node.source,
        )  # fmt: skip
    for region in node.regions:
        _check(region, set())
    try:
        inferred = node.op.types(*[v.type for v in node.inputs], **node.keywords)
    except TvmgraphError as e:
        raise GraphError(f"{node.op.name}: {e.message}", op=graph.name, at=node.source) from e
    except _WRONG_KINDS as e:
        raise GraphError(
            f"{node.op.name} cannot take these operands and attributes ({type(e).__name__}: {e})",
            op=graph.name, at=node.source,
        ) from e  # fmt: skip
    if tuple(v.type for v in node.outputs) != inferred:
        raise GraphError(
            f"{node.op.name} gives {inferred}, the graph says {[v.type for v in node.outputs]}",
            op=graph.name, at=node.source,
        )  # fmt: skip
