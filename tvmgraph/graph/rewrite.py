"""Optimizing a graph before it is lowered: passes in order, each shown to whoever watches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvmgraph.core.types import TensorType
from tvmgraph.graph import passes
from tvmgraph.graph.attention import fuse_attention, takes_on_gpu
from tvmgraph.graph.ir import Graph, Node, Value
from tvmgraph.graph.rules import RULES, Match, Rule
from tvmgraph.graph_kernel import GraphKernel

Show = Callable[[str, Graph], Graph]

_MAX_ROUNDS = 8  # rules enable each other; chains longer than this are not worth more time


def optimize(graph: Graph, settings: GraphKernel, show: Show, on_gpu: bool = False) -> Graph:
    """Runs the graph passes that ``settings`` asks for.

    Args:
        graph: The captured graph.
        settings: Which passes and rules.
        show: Called with a title and the graph after every pass.
        on_gpu: Whether it is for a GPU, whose kernels take fewer kinds of attention.
    """
    graph = passes.simplify(graph)
    chosen = chosen_rules(settings)
    for _ in range(_MAX_ROUNDS if chosen else 0):
        rewritten = rewrite(graph, chosen)
        if rewritten is graph:
            break
        graph = show("after algebraic rules", passes.simplify(rewritten))
    if settings.has("attention"):
        fused = fuse_attention(graph, takes_on_gpu if on_gpu else None)
        if fused is not graph:
            graph = show("after fusing attention", passes.simplify(fused))
    return graph


def chosen_rules(settings: GraphKernel) -> list[Rule]:
    """Returns the rules that run under ``settings``."""
    return [
        rule
        for rule in RULES.values()
        if settings.has("simplify" if rule.exact else "reassociate")
        and rule.name not in settings.off_rules
    ]


def rewrite(graph: Graph, rules: Sequence[Rule]) -> Graph:
    """Applies the first rule that matches to every node; returns ``graph`` itself if none does."""
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
