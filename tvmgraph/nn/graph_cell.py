"""A Cell around a graph."""

from __future__ import annotations

from typing import Any

from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.tensor import Tensor
from tvmgraph.nn.cell import Cell


class GraphCell(Cell):
    """A cell that runs a :class:`tvmgraph.graph.Graph`, with parameters by label.

    Args:
        graph: The graph; its PARAMETER parameters take their values from ``params_init``.
        params_init: Values by label.
    """

    def __init__(self, graph: Any, params_init: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.graph = graph
        values = params_init or {}
        self.weights = ParameterTuple(
            Parameter(values[p.label], name=p.label) for p in graph.parameters
        )

    def construct(self, *inputs: Tensor) -> Any:
        """Applies every node of the graph."""
        from tvmgraph.capture.replay import replay

        outputs = replay(self.graph, inputs, self.weights)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)
