"""Lowers graphs to a Relax IRModule, one Relax function per graph."""

from __future__ import annotations

import tvm
from tvm import relax

from tvmgraph.core.op import Reason
from tvmgraph.errors import CompileError, DeviceError, TvmgraphError
from tvmgraph.graph.ir import Graph, Node, Role, Value
from tvmgraph.lowering.builder import RelaxBuilder, constant, is_empty, unpack

#: Attribute of a function: pairs of an output and the parameter that it replaces.
WRITES = "tvmgraph.writes"


def lower(
    graph: Graph, outlined: dict[str, Graph] | None = None, marks_casts: bool = False
) -> tvm.IRModule:
    """Lowers one graph; its function is called ``main``.

    Args:
        graph: The graph.
        outlined: Gets the regions that became functions of their own, by function name.
        marks_casts: Whether conversions to half precision are marked as such, because kernels leave
            out other roundings.

    Raises:
        CompileError: if an operator has no lowering, naming the user's line.
    """
    return lower_many({"main": graph}, outlined, marks_casts)


def lower_many(
    graphs: dict[str, Graph], outlined: dict[str, Graph] | None = None, marks_casts: bool = False
) -> tvm.IRModule:
    """Lowers several graphs into one module, so that they compile together.

    Args:
        graphs: The graphs by the name of their function.
        outlined: Gets the regions that became functions of their own, by function name.
        marks_casts: Whether conversions to half precision are marked, see :func:`lower`.
    """
    block = relax.BlockBuilder()
    builder = RelaxBuilder(block)
    builder.marks_casts = marks_casts

    def outline(region: Graph) -> relax.GlobalVar:
        name = builder.fresh(_identifier(region.name))
        if outlined is not None:
            outlined[name] = region
        return _lower_function(builder, name, region, private=True)

    builder.outline = outline
    for name, graph in graphs.items():
        _lower_function(builder, name, graph)
    return block.get()


def _lower_function(
    R: RelaxBuilder, name: str, graph: Graph, private: bool = False
) -> tvm.ir.GlobalVar:
    for node in graph.nodes:  # before TVM has begun a function that would remain unfinished
        _require_lowering(node)
    for node in graph.nodes:  # one function at a time: those that are called come first
        if node.regions and not isinstance(node.op.lower, Reason):
            types = [v.type for v in node.inputs]
            R.functions[node] = node.op.lower.define(R, types, **node.keywords)
    R.start_function()
    values: dict[Value, object] = {}
    params: list[object] = []
    for i, p in enumerate(graph.params):
        var = relax.Var(f"p{i}_{_identifier(p.label)}", R.relax_type(p.value.type))
        values[p.value] = var
        params.append(var)
    for v, array in graph.consts.items():
        values[v] = constant(array, v.type.dtype.name)
    with R.block.function(name, params, pure=True, private=private):
        try:
            _lower_body(R, graph, values)
        except BaseException:
            R.block._end_block()  # TVM would complain about it on stderr, besides the error
            raise
        outputs = [values[v] for v in graph.outputs]
        # a single output comes bare: unpacking a tuple would cost more than a small kernel
        result = outputs[0] if len(outputs) == 1 else relax.Tuple(outputs)
        function = R.block.emit_func_output(result)
    replaced = _replaced(graph)
    if replaced and not private:
        lowered = R.block.get()[function].with_attr(WRITES, replaced)
        R.block.update_func(function, lowered)
    return function


def _replaced(graph: Graph) -> list[list[int]]:
    """Outputs that replace parameters of the function that holds the graph, and which."""
    labels = {p.label: i for i, p in enumerate(graph.params) if p.role is not Role.INPUT}
    first = len(graph.outputs) - len(graph.writes)
    pairs = [[first + i, labels.get(label, -1)] for i, label in enumerate(graph.writes)]
    return [pair for pair in pairs if pair[1] >= 0]


def _lower_body(R: RelaxBuilder, graph: Graph, values: dict[Value, object]) -> None:
    """Lowers all nodes; what stands between two nodes with regions is one dataflow block."""
    runs: list[list[Node]] = [[]]
    for node in graph.nodes:
        if node.regions:
            runs += [[node], []]
        else:
            runs[-1].append(node)
    read = _last_reads(graph, runs)
    for i, run in enumerate(runs):
        if run and run[0].regions:
            _lower_node(R, run[0], values)
        elif run or i == len(runs) - 1 or i == 0:
            with R.block.dataflow():
                if i == 0:
                    empty = [v for v in graph.consts if is_empty(v.type)]
                    values.update((v, R.emit(R.empty(v.type))) for v in empty)
                for node in run:
                    _lower_node(R, node, values)
                made = [v for n in run for v in n.outputs] if i < len(runs) - 1 else []
                made = [v for v in made if read.get(v, -1) > i]
                if i == 0:
                    made += [v for v in empty if read.get(v, -1) > 0]  # pyright: ignore[reportPossiblyUnboundVariable]
                if i == len(runs) - 1:
                    made = list(graph.outputs)
                values.update((v, R.block.emit_output(values[v], f"out_{v.name}_")) for v in made)


def variable_name(node: Node, value: Value) -> str:
    """Returns what a node's result is called in Relax: ``v12_relu`` for ``%12`` of the graph.

    Args:
        node: A node of the graph.
        value: One of its results.
    """
    return f"v{value.name}_{node.op.name}_"


def _last_reads(graph: Graph, runs: list[list[Node]]) -> dict[Value, int]:
    """Returns the number of the last run that reads a value."""
    read = {v: i for i, run in enumerate(runs) for n in run for v in n.inputs}
    read.update((v, len(runs)) for v in graph.outputs)
    return read


def _identifier(label: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in label)


def _require_lowering(node: Node) -> None:
    if isinstance(node.op.lower, Reason):
        raise CompileError(
            f"this operator cannot be compiled: {node.op.lower}",
            op=f"ops.{node.op.name}", at=node.source, fix="call it outside the compiled function",
        )  # fmt: skip


def _lower_node(R: RelaxBuilder, node: Node, values: dict[Value, object]) -> None:
    empty = [is_empty(v.type) for v in node.outputs]
    # nothing to compute, and TVM rejects many operators on empty tensors
    if all(empty) and not node.regions:
        values.update((v, R.emit(R.empty(v.type))) for v in node.outputs)
        return
    args = [values[v] for v in node.inputs]
    R.hint = "part"
    try:
        if node.regions:
            result = node.op.lower.emit(R, R.functions[node], args)
        else:
            result = R.apply(node.op, args, node.keywords)
        results = unpack(result, len(node.outputs))
        for v, expr, nothing in zip(node.outputs, results, empty, strict=True):
            R.hint = variable_name(node, v)
            values[v] = R.emit(R.empty(v.type) if nothing else expr)
    except TvmgraphError as e:
        got = ", ".join(str(v.type) for v in node.inputs)
        raise e.locate(f"ops.{node.op.name}", got, node.source) from e.__cause__
    except Exception as e:
        raise lowering_error(node, e) from e


def lowering_error(node: Node, cause: Exception) -> TvmgraphError:
    """Wraps an error of TVM, or of a device's kernels, with the node and the user's line.

    Args:
        node: The node that was lowered.
        cause: TVM's error, whose last line is quoted, or the ``NotImplementedError`` of a device
            that has no kernel for the node.
    """
    first = next((line for line in str(cause).splitlines()[::-1] if line.strip()), "unknown")
    got = ", ".join(str(v.type) for v in node.inputs)
    if isinstance(cause, NotImplementedError):
        return DeviceError(
            f"it has no code for GPUs: {first.strip()}", op=f"ops.{node.op.name}", got=got,
            at=node.source, fix="run it on the CPU: move its operands with .to('CPU')",
        )  # fmt: skip
    return CompileError(
        f"TVM rejected this operator: {first.strip()}", op=f"ops.{node.op.name}",
        got=got, at=node.source, fix="please report it with this message",
    )  # fmt: skip
