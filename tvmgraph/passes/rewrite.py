"""Applying rewrite rules to the nodes of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tvmgraph.core.types import TensorType
from tvmgraph.graph import simplify as passes
from tvmgraph.graph.ir import Graph, Node, Value
from tvmgraph.passes.rules import RULES, Match, Rule
from tvmgraph.passes.table import Options


def apply_rules(graph: Graph, options: Options) -> Graph:
    """Applies the rules that the settings ask for to every node; ``graph`` itself if none does.

    Args:
        graph: A graph of any operators.
        options: Its flags choose: ``simplify`` has the exact rules, ``reassociate`` those that may
            round otherwise; single rules are left out by name.
    """
    settings = options.settings
    chosen = [
        rule
        for rule in RULES.values()
        if settings.has("simplify" if rule.exact else "reassociate")
        and rule.name not in settings.off
    ]
    return rewrite(graph, chosen)


def match_byte_products(graph: Graph) -> Graph:
    """Returns the graph with products of bytes that were written as casts and products.

    Args:
        graph: A graph of any operators.
    """
    return rewrite(graph, [RULES["integer_product"]])


def rewrite(graph: Graph, rules: Sequence[Rule]) -> Graph:
    """Applies the first rule that matches to every node; returns ``graph`` itself if none does.

    Args:
        graph: A graph of any operators; nodes of control flow stay as they are.
        rules: Tried in this order.
    """
    return _Rewriter(graph, rules).run()


class _Rewriter:
    def __init__(self, graph: Graph, rules: Sequence[Rule]) -> None:
        self.graph = graph
        self.by_op: dict[str, list[Rule]] = {}
        for rule in rules:
            for name in rule.ops:
                self.by_op.setdefault(name, []).append(rule)
        self.makers: dict[Value, Node] = {}
        self.consts = dict(graph.consts)
        self.renamed: dict[Value, Value] = {}
        self.count = 0
        self.taken = _names(graph)

    def fresh(self, type: TensorType) -> Value:
        """Returns a value whose name is still free."""
        while f"r{self.count}" in self.taken:
            self.count += 1
        self.count += 1
        return Value(f"r{self.count - 1}", type)

    def run(self) -> Graph:
        """Returns the rewritten graph."""
        nodes: list[Node] = []
        for old in self.graph.nodes:
            node = passes.with_inputs(old, self.renamed)
            nodes += self.apply(node)
        if not self.renamed:
            return self.graph
        outputs = tuple(self.renamed.get(v, v) for v in self.graph.outputs)
        graph = self.graph
        return Graph(graph.name, graph.params, self.consts, tuple(nodes), outputs, graph.writes)

    def apply(self, node: Node) -> list[Node]:
        """Returns what takes the place of a node."""
        kept = [node]
        if not node.regions and len(node.outputs) == 1:
            for rule in self.by_op.get(node.op.name, ()):
                match = Match(node, self.makers, self.consts, self.fresh)
                found = rule.rewrite(match)
                if found is not None and found.type is node.outputs[0].type:
                    self.renamed[node.outputs[0]] = found
                    kept = match.built
                    break
        for made in kept:
            self.makers.update((v, made) for v in made.outputs)
        return kept


def _names(graph: Graph) -> set[str]:
    names = {p.value.name for p in graph.params} | {v.name for v in graph.consts}
    for node in graph.nodes:
        names.update(v.name for v in node.outputs)
        for region in node.regions:
            names |= _names(region)
    return names


# ---- products of a number and the logistic function of it, in one operator -----------------------
# The operator has no subnormal results, which the logistic function alone has; a convolution that
# reads them takes Intel's processors three times as long.


def _silu_of_parts(m: Match) -> Value | None:
    """``x * sigmoid(x) -> silu(x)``."""
    for x, gate in (m.inputs, m.inputs[::-1]):
        maker = m.maker(gate, "sigmoid")
        if maker is not None and maker.inputs[0] is x:
            return m.call("silu", x)
    return None


def _by_kernel(m: Match) -> Value | None:
    if m.node.attrs.get("kernel"):
        return None
    return m.call(m.node.op.name, *m.inputs, **{**m.node.attrs, "kernel": True})


_RULE = Rule("silu_of_parts", False, ("mul",), _silu_of_parts)
_FOURIER = Rule("fourier", True, ("spectrum", "signal_of_half"), _by_kernel)


def match_gates(graph: Graph) -> Graph:
    """Puts products with their own logistic function into one operator.

    Args:
        graph: The graph.
    """
    return rewrite(graph, [_RULE])


def use_fourier_kernel(graph: Graph) -> Graph:
    """Lets Fourier transforms be computed by the kernel of processors.

    Args:
        graph: The graph.
    """
    return rewrite(graph, [_FOURIER])


# ---- concatenations that begin with another one's operands ---------------------------------------
# A layer of DenseNet reads what all layers before it made: k operands in the k-th layer, and as
# many loops in its kernel, so that their code grows with the square of the layers. With every
# eighth prefix in memory no kernel has more than nine, most differ in their sizes alone and
# become one, and the prefixes add an eighth of what the layers write at most.

_MOST_OPERANDS = 8


def share_prefixes(graph: Graph) -> Graph:
    """Lets long concatenations start with an earlier one of the same first operands.

    Args:
        graph: The graph, which is returned as it is where there are none.
    """
    made: dict[object, Value] = {}  # by axis and operands
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op.name == "concat":
            axis, operands = node.attrs["axis"], node.inputs
            made.setdefault((axis, operands), node.outputs[0])
            length = (len(operands) - 1) // _MOST_OPERANDS * _MOST_OPERANDS
            prefix = made.get((axis, operands[:length]))
            if prefix is not None:
                node = replace(node, inputs=(prefix, *operands[length:]))
        nodes.append(node)
    return graph if nodes == list(graph.nodes) else replace(graph, nodes=tuple(nodes))
