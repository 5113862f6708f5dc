"""A Cell around a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvmgraph.capture.replay import replay
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.tensor import Tensor
from tvmgraph.nn.cell import Cell
from tvmgraph.ops import assign


class GraphCell(Cell):
    """A cell that runs a :class:`tvmgraph.graph.Graph`, with parameters by label.

    Args:
        graph: The graph; its PARAMETER parameters take their values from ``params_init``, and a
            call updates those that the graph writes. Or the Cell that ``ms.load`` returns.
        params_init: Values by label; for a Cell, new values of some of its parameters.
    """

    def __init__(self, graph: Any, params_init: Mapping[str, object] | None = None) -> None:
        super().__init__(auto_prefix=False)
        self.graph = graph
        values = params_init or {}
        if isinstance(graph, Cell):
            for name, p in graph.parameters_and_names():
                if p.name in values or name in values:
                    p.set_data(Tensor(values[p.name if p.name in values else name]))
            return
        self.weights = ParameterTuple(
            Parameter(values[p.label], name=p.label) for p in graph.parameters
        )

    def construct(self, *inputs: Tensor) -> Any:
        """Applies every node of the graph.

        Args:
            *inputs: One tensor per input of the graph.

        Returns:
            Its output, or a tuple of several.
        """
        if isinstance(self.graph, Cell):
            return self.graph(*inputs)
        outputs = replay(self.graph, inputs, self.weights)
        if self.graph.writes:  # new values of parameters are the last outputs
            count = len(outputs) - len(self.graph.writes)
            weights = {w.name: w for w in self.weights}
            for label, value in zip(self.graph.writes, outputs[count:]):
                assign(weights[label], value)
            outputs = outputs[:count]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)
