"""Lowers graphs to a Relax IRModule, one Relax function per graph."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from tvmgraph.core.op import Reason
from tvmgraph.core.types import TensorType
from tvmgraph.errors import CompileError, TvmgraphError
from tvmgraph.graph.ir import Graph, Node, Value
from tvmgraph.lowering.builder import RelaxBuilder, constant, unpack


def lower(graph: Graph) -> tvm.IRModule:
    """Lowers one graph; its function is called ``main``.

    Raises:
        CompileError: if an operator has no lowering, naming the user's line.
    """
    return lower_many({"main": graph})


def lower_many(graphs: dict[str, Graph]) -> tvm.IRModule:
    """Lowers several graphs into one module, so that they compile together."""
    block = relax.BlockBuilder()
    builder = RelaxBuilder(block)
    for name, graph in graphs.items():
        _lower_function(builder, name, graph)
    return block.get()


def _lower_function(R: RelaxBuilder, name: str, graph: Graph) -> None:
    R.start_function()
    values: dict[Value, Any] = {}
    params: list[Any] = []
    for i, p in enumerate(graph.params):
        var = relax.Var(f"p{i}_{_identifier(p.label)}", R.relax_type(p.value.type))
        values[p.value] = var
        params.append(var)
    for v, array in graph.consts.items():
        values[v] = constant(array, v.type.dtype.name)
    with R.block.function(name, params, pure=True):
        with R.block.dataflow():
            values.update((v, R.emit(R.empty(v.type))) for v in graph.consts if is_empty(v.type))
            for node in graph.nodes:
                _lower_node(R, node, values)
            outputs = [R.block.emit_output(values[v]) for v in graph.outputs]
        # a single output comes bare: unpacking a tuple would cost more than a small kernel
        R.block.emit_func_output(outputs[0] if len(outputs) == 1 else relax.Tuple(outputs))


def is_empty(t: TensorType) -> bool:
    """Whether a tensor is known to hold no element."""
    return any(d == 0 for d in t.shape)


def _identifier(label: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in label)


def _lower_node(R: RelaxBuilder, node: Node, values: dict[Value, Any]) -> None:
    column = node.op.lower
    if isinstance(column, Reason):
        raise CompileError(
            f"this operator cannot be compiled: {column}",
            op=f"ops.{node.op.name}", at=node.source, fix="call it outside the compiled function",
        )  # fmt: skip
    empty = [is_empty(v.type) for v in node.outputs]
    if all(empty):  # nothing to compute, and TVM rejects many operators on empty tensors
        values.update((v, R.emit(R.empty(v.type))) for v in node.outputs)
        return
    args = [values[v] for v in node.inputs]
    try:
        if isinstance(column, str):
            result = _named(R, column)(*args, **node.attrs)
        else:
            result = column(R, *args, **node.attrs)
        results = unpack(result, len(node.outputs))
        for v, expr, nothing in zip(node.outputs, results, empty, strict=True):
            values[v] = R.emit(R.empty(v.type) if nothing else expr)
    except TvmgraphError:
        raise
    except Exception as e:
        raise lowering_error(node, e) from e


def _named(R: RelaxBuilder, name: str) -> Any:
    found: Any = R.op
    for part in name.split("."):
        found = getattr(found, part)
    return found


def lowering_error(node: Node, cause: Exception) -> CompileError:
    """Wraps a TVM error with the node and the user's line."""
    first = next((line for line in str(cause).splitlines()[::-1] if line.strip()), "unknown")
    got = ", ".join(str(v.type) for v in node.inputs)
    return CompileError(
        f"TVM rejected this operator: {first.strip()}", op=f"ops.{node.op.name}",
        got=got, at=node.source, fix="please report it with this message",
    )  # fmt: skip
