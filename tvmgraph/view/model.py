"""The model of a picture: nodes with what is said about them, nested in boxes, and edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from tvmgraph.graph.ir import Graph, Node, Value
from tvmgraph.graph.text import format_attr

_LONG = 40  # characters of an attribute that are shown in a box


@dataclass(frozen=True)
class Kernel:
    """A kernel and the nodes of the graph it computes.

    Attributes:
        name: Its name.
        nodes: Positions of the nodes it computes, in the order of ``graph.walk()``.
        seconds: What one call of it took, if it was measured.
    """

    name: str
    nodes: tuple[int, ...]
    seconds: float | None = None


class Box(TypedDict):
    """A node of a picture, as ``view.js`` reads it.

    Attributes:
        id: Its name, which edges are between.
        kind: How it is coloured.
        lines: What stands in it.
        path: The boxes that it is in, from the outermost.
        facts: What is said of it when it is chosen, by name.
        source: ``file:line`` of the user's code; empty where there is none.
        text: What a search looks through, in lower case.
    """

    id: str
    kind: str
    lines: list[str]
    path: list[str]
    facts: dict[str, str]
    source: str
    text: str


class Model(TypedDict):
    """A picture, as ``view.js`` reads it.

    Attributes:
        title: Its heading.
        nodes: What is drawn.
        edges: Maker, reader and type of every value that is read.
        shares: The part of all kernel time that the box of a kernel takes.
        choices: What chose a kernel and why, by its name.
    """

    title: str
    nodes: list[Box]
    edges: list[tuple[str, str, str]]
    shares: dict[str, float]
    choices: dict[str, str]


def model_of(
    graph: Graph,
    kernels: Sequence[Kernel] = (),
    title: str = "",
    choices: Mapping[str, str] | None = None,
) -> Model:
    """Returns what ``view.js`` draws.

    Args:
        graph: The graph.
        kernels: Boxes are kernels if any are given, else Cell scopes.
        title: Heading of the picture.
        choices: For names of kernels, what chose them and why, shown with their nodes.
    """
    return _Modeller(graph, kernels).model(title or graph.name, choices or {})


class _Modeller:
    def __init__(self, graph: Graph, kernels: Sequence[Kernel]) -> None:
        self.graph = graph
        self.kernel_of: dict[int, list[tuple[int, Kernel]]] = {}
        for number, kernel in enumerate(kernels):
            for i in kernel.nodes:
                self.kernel_of.setdefault(i, []).append((number, kernel))
        self.by_kernel = bool(kernels)
        self.position = 0  # of the next node, in the order of graph.walk()
        self.nodes: list[Box] = []
        self.edges: list[tuple[str, str, str]] = []
        self.maker: dict[Value, str] = {}
        self.inline: dict[Value, str] = {}

    def model(self, title: str, choices: Mapping[str, str]) -> Model:
        """Builds everything."""
        readers = _first_readers(self.graph)
        for p in self.graph.params:
            reader = readers.get(p.value)
            inner = p.role.value == "parameter" and reader is not None
            path = self._scope(self.graph.nodes[reader]) if inner and reader is not None else []
            facts = {"name": p.label, "role": p.role.value, "type": str(p.value.type)}
            self._add(f"v{p.value.name}", p.role.value, [p.label, str(p.value.type)], path, facts)
            self.maker[p.value] = f"v{p.value.name}"
        self._body(self.graph, [], "")
        for i, v in enumerate(self.graph.outputs):
            written = i - len(self.graph.outputs) + len(self.graph.writes)
            label = f"new {self.graph.writes[written]}" if written >= 0 else f"output {i}"
            self._add(f"o{i}", "output", [label], [], {"type": str(v.type)})
            self._edge(v, f"o{i}")
        return {"title": title, "nodes": self.nodes, "edges": self.edges,
                "shares": self._shares(), "choices": dict(choices)}  # fmt: skip

    def _shares(self) -> dict[str, float]:
        """The part of all kernel time that every kernel's box takes."""
        timed = {_box(n, k): k.seconds for group in self.kernel_of.values() for n, k in group
                 if k.seconds is not None}  # fmt: skip
        total = sum(timed.values()) or 1.0
        return {name: round(seconds / total, 4) for name, seconds in timed.items()}

    def _body(self, graph: Graph, outer: list[str], prefix: str) -> None:
        """Adds the constants and nodes of the graph or of a region.

        Args:
            graph: The graph or region.
            outer: The boxes the region is in.
            prefix: Makes the identifiers of a region's constants unique.
        """
        readers = _first_readers(graph)
        for v, array in graph.consts.items():
            reader = readers.get(v)
            scope = self._scope(graph.nodes[reader]) if reader is not None and not outer else []
            self._const(v, array, [*outer, *scope], prefix)
        for node in graph.nodes:
            self._node(node, outer)

    def _scope(self, node: Node) -> list[str]:
        return node.scope.split(".") if node.scope and not self.by_kernel else []

    def _const(self, v: Value, array: np.ndarray, path: list[str], prefix: str) -> None:
        if array.size == 1:  # written into the nodes that read it
            self.inline[v] = f"{array.reshape(-1)[0]:.6g}"
            return
        name = f"{prefix}v{v.name}"
        self._add(name, "const", ["const", str(v.type)], path, {"type": str(v.type)})
        self.maker[v] = name

    def _node(self, node: Node, outer: list[str]) -> None:
        i = self.position
        self.position += 1
        path = [*outer, *(self._scope(node) if not outer else [])]
        if node.regions:
            path = [*path, f"{node.op.name} {node.source}".strip() + f" #{i}"]
            self._regions(i, node, path)
        kernels = self.kernel_of.get(i, [])
        boxes = [_box(n, k) for n, k in kernels[-1:]]
        attrs = {k: format_attr(a) for k, a in node.attrs.items()}
        numbers = [self.inline[v] for v in node.inputs if v in self.inline]
        shown = ", ".join([*numbers, *(f"{k}={a}" for k, a in attrs.items())])
        lines = [node.op.name, *([shown[:_LONG]] if shown else [])]
        name = f"n{i}"
        facts = self._facts(node, attrs, [k for _, k in kernels])
        self._add(name, _kind(node), lines, [*path, *boxes], facts, node.source)
        for v in node.inputs:
            self._edge(v, name)
        self.maker.update((v, name) for v in node.outputs)

    def _facts(self, node: Node, attrs: dict[str, str], kernels: list[Kernel]) -> dict[str, str]:
        times = [k.seconds for k in kernels if k.seconds is not None]
        return {
            "type": ", ".join(str(v.type) for v in node.outputs),
            "inputs": ", ".join(str(v.type) for v in node.inputs),
            "source": node.source,
            "scope": node.scope,
            **attrs,
            "kernel": ", ".join(dict.fromkeys(k.name for k in kernels)),
            "kernel time": f"{sum(times) * 1e6:.1f} us" if times else "",
        }

    def _regions(self, i: int, node: Node, path: list[str]) -> None:
        """Adds the nodes of a branch or loop; their results flow into its own node."""
        for name, region in zip(node.op.regions, node.regions):
            for p, v in zip(region.params, _operands(node, region)):
                if v in self.inline:
                    self.inline[p.value] = self.inline[v]
                if v in self.maker:
                    self.maker[p.value] = self.maker[v]
            self._body(region, [*path, name], f"n{i}{name}")
            for v in region.outputs:
                self._edge(v, f"n{i}")

    def _edge(self, v: Value, to: str) -> None:
        if v in self.maker:
            self.edges.append((self.maker[v], to, str(v.type)))

    def _add(
        self, name: str, kind: str, lines: list[str], path: list[str], facts: dict[str, str],
        source: str = "",
    ) -> None:  # fmt: skip
        text = " ".join([*lines, *facts.values(), *path]).lower()
        self.nodes.append({
            "id": name, "kind": kind, "lines": lines, "path": path, "facts": facts,
            "source": source, "text": text,
        })  # fmt: skip


def _box(number: int, kernel: Kernel) -> str:
    """Name of a kernel's box: its number tells equal kernels apart."""
    name = kernel.name if len(kernel.name) <= _LONG else f"{kernel.name[: _LONG - 1]}…"
    took = f" {kernel.seconds * 1e6:.1f} us" if kernel.seconds is not None else ""
    return f"kernel {number}: {name}{took}"


#: What an operator's file is called after; the first that fits counts.
_KINDS = {
    "product": ("linalg", "conv", "attention"),
    "reduce": ("reduction", "normalization", "pooling", "activation_softmax", "loss", "sort"),
    "move": ("shape", "indexing", "creation", "assignment"),
}


def _kind(node: Node) -> str:
    """How a node is coloured."""
    if node.regions:
        return "control"
    module = node.op.module.rpartition(".")[2]
    found = (kind for kind, files in _KINDS.items() if module.startswith(files))
    return next(found, "op")


def _first_readers(graph: Graph) -> dict[Value, int]:
    """The position of the first node that reads a value."""
    found: dict[Value, int] = {}
    for i, node in enumerate(graph.nodes):
        for v in node.inputs:
            found.setdefault(v, i)
    return found


def _operands(node: Node, region: Graph) -> tuple[Value, ...]:
    """What a region's parameters are given: a branch keeps its condition to itself."""
    spare = len(node.inputs) - len(region.params)
    return node.inputs[1:] if spare == 1 and "then" in node.op.regions else node.inputs
