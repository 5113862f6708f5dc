"""Products of a number and the logistic function of it, in one operator.

The operator has no subnormal results, which the logistic function alone has; a convolution that
reads them takes Intel's processors three times as long.
"""

from __future__ import annotations

from tvmgraph.graph.ir import Graph, Value
from tvmgraph.passes.rewrite import rewrite
from tvmgraph.passes.rules import Match, Rule


def _silu_of_parts(m: Match) -> Value | None:
    """``x * sigmoid(x) -> silu(x)``."""
    for x, gate in (m.inputs, m.inputs[::-1]):
        maker = m.maker(gate, "sigmoid")
        if maker is not None and maker.inputs[0] is x:
            return m.call("silu", x)
    return None


_RULE = Rule("silu_of_parts", False, ("mul",), _silu_of_parts)


def match_gates(graph: Graph) -> Graph:
    """Puts products with their own logistic function into one operator.

    Args:
        graph: The graph.
    """
    return rewrite(graph, [_RULE])


__all__ = ["match_gates"]
