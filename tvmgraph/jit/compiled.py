"""CompiledGraph: a graph with its executable, callable on tensors and differentiable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvmgraph.autodiff.reverse import reverse
from tvmgraph.autodiff.tape import Cotangents, paused, snapshot
from tvmgraph.config import JitConfig
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.core.types import TensorType
from tvmgraph.errors import CompileError
from tvmgraph.graph import Graph, Node, Value


class CompiledGraph:
    """Runs a graph as compiled code.

    Args:
        graph: The graph.
        config: How to compile and run it.

    Attributes:
        stats: What compiling it did.
    """

    def __init__(self, graph: Graph, config: JitConfig) -> None:
        from tvmgraph.compiler import compile_graph

        self.graph = graph
        self.config = config
        self._types = tuple(v.type for v in graph.outputs)
        self._pull_back: CompiledGraph | None = None
        self.steps = _Steps(graph, config) if config.exec_mode == "no_sink" else None
        if self.steps is None:
            self.executable, self.stats = compile_graph(graph, config.jit_level, config.target)
            self._constants = _constant_outputs(graph)

    def __call__(self, args: Sequence[Tensor]) -> list[Tensor]:
        """Runs the graph on one tensor per parameter; recorded on active tapes as one entry."""
        if self.steps is not None:
            outputs = self.steps.run(args)
        else:
            outputs = self.executable.run(args, self._types)
            for i in self._constants:
                outputs[i] = tensor_from_numpy(outputs[i].array.copy())
        if state.tapes:
            for tape in state.tapes:
                tape.record_call(  # pyright: ignore[reportAttributeAccessIssue]
                    self.graph.name, tuple(args), tuple(outputs), self._differentiate(args)
                )
        return outputs

    def _differentiate(self, args: Sequence[Tensor]) -> Any:
        kept = [snapshot(a) for a in args]
        wanted = [i for i, p in enumerate(self.graph.params) if p.value.type.dtype.is_float]
        floats = [i for i, v in enumerate(self.graph.outputs) if v.type.dtype.is_float]

        def pull_back(cotangents: tuple[Tensor, ...]) -> Cotangents:
            if self._pull_back is None:
                with paused():
                    graph = reverse(self.graph, wanted, floats)
                    self._pull_back = CompiledGraph(graph, self.config)
            found = self._pull_back([*kept, *[cotangents[i] for i in floats]])
            result: list[Tensor | None] = [None] * len(kept)
            for i, g in zip(wanted, found):
                result[i] = g
            return result

        return pull_back


def _constant_outputs(graph: Graph) -> list[int]:
    """Returns the outputs that depend on no parameter.

    TVM folds them, and returning one must not hand out the executable's own constant.
    """
    varying = {p.value for p in graph.params}
    for node in graph.nodes:
        if node.regions or any(v in varying for v in node.inputs):
            varying.update(node.outputs)
    return [i for i, v in enumerate(graph.outputs) if v not in varying]


class _Steps:
    """Runs a graph one operator at a time, every operator compiled on its own.

    An operator that fails is named with the user's line, and a debugger can stop between two.
    """

    def __init__(self, graph: Graph, config: JitConfig) -> None:
        self.graph = graph
        self.config = config

    def run(self, args: Sequence[Tensor]) -> list[Tensor]:
        """Runs every node in order."""
        known: dict[Value, Tensor] = {p.value: a for p, a in zip(self.graph.params, args)}
        known.update((v, tensor_from_numpy(a)) for v, a in self.graph.consts.items())
        for node in self.graph.nodes:
            inputs = [known[v] for v in node.inputs]
            known.update(zip(node.outputs, self.step(node, inputs)))
        return [known[v] for v in self.graph.outputs]

    def step(self, node: Node, inputs: list[Tensor]) -> list[Tensor]:
        """Compiles (once) and runs one node."""
        from tvmgraph.compiler import compile_graph
        from tvmgraph.compiler.compile import isolate

        executable, _ = compile_graph(isolate(node), self.config.jit_level, self.config.target)
        types: list[TensorType] = [v.type for v in node.outputs]
        try:
            return executable.run(inputs, types)
        except Exception as e:
            got = ", ".join(str(t.type) for t in inputs)
            raise CompileError(
                f"running it failed: {e}", op=f"ops.{node.op.name}", got=got, at=node.source
            ) from e
