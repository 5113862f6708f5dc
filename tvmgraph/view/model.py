"""The model of a picture: nodes with what is said about them, nested in boxes, and edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvmgraph.graph.ir import Graph, Node, Value
from tvmgraph.graph.text import format_attr

_LONG = 40  # characters of an attribute that are shown in a box


@dataclass(frozen=True)
class Kernel:
    """A kernel and the nodes of the graph it computes.

    Attributes:
        name: Its name.
        nodes: Positions of the nodes in the graph.
        seconds: What one call of it took, if it was measured.
    """

    name: str
    nodes: tuple[int, ...]
    seconds: float | None = None


def model_of(graph: Graph, kernels: Sequence[Kernel] = (), title: str = "") -> dict[str, Any]:
    """Returns what ``view.js`` draws.

    Args:
        graph: The graph.
        kernels: Boxes are kernels if any are given, else Cell scopes.
        title: Heading of the picture.
    """
    return _Modeller(graph, kernels).model(title or graph.name)


class _Modeller:
    def __init__(self, graph: Graph, kernels: Sequence[Kernel]) -> None:
        self.graph = graph
        self.kernel_of = {i: (n, k) for n, k in enumerate(kernels) for i in k.nodes}
        self.by_kernel = bool(kernels)
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[tuple[str, str, str]] = []
        self.maker: dict[Value, str] = {}
        self.inline: dict[Value, str] = {}

    def model(self, title: str) -> dict[str, Any]:
        """Builds everything."""
        readers = self._first_readers()
        for p in self.graph.params:
            reader = readers.get(p.value)
            inner = p.role.value == "parameter" and reader is not None
            path = self._path(reader) if inner and reader is not None else []
            facts = {"name": p.label, "role": p.role.value, "type": str(p.value.type)}
            self._add(f"v{p.value.name}", p.role.value, [p.label, str(p.value.type)], path, facts)
            self.maker[p.value] = f"v{p.value.name}"
        for v, array in self.graph.consts.items():
            self._const(v, array, readers.get(v))
        for i, node in enumerate(self.graph.nodes):
            self._node(i, node)
        for i, v in enumerate(self.graph.outputs):
            written = i - len(self.graph.outputs) + len(self.graph.writes)
            label = f"new {self.graph.writes[written]}" if written >= 0 else f"output {i}"
            self._add(f"o{i}", "output", [label], [], {"type": str(v.type)})
            self._edge(v, f"o{i}")
        return {"title": title, "nodes": self.nodes, "edges": self.edges}

    def _first_readers(self) -> dict[Value, int]:
        found: dict[Value, int] = {}
        for i, node in enumerate(self.graph.nodes):
            for v in node.inputs:
                found.setdefault(v, i)
        return found

    def _path(self, i: int) -> list[str]:
        if self.by_kernel:
            number, kernel = self.kernel_of.get(i, (-1, None))
            return [] if kernel is None else [f"kernel {number}: {kernel.name}"]
        scope = self.graph.nodes[i].scope
        return scope.split(".") if scope else []

    def _const(self, v: Value, array: np.ndarray, reader: int | None) -> None:
        if array.size == 1:  # written into the nodes that read it
            self.inline[v] = f"{array.reshape(-1)[0]:.6g}"
            return
        path = self._path(reader) if reader is not None else []
        self._add(f"v{v.name}", "const", ["const", str(v.type)], path, {"type": str(v.type)})
        self.maker[v] = f"v{v.name}"

    def _node(self, i: int, node: Node) -> None:
        attrs = {k: format_attr(a) for k, a in node.attrs.items()}
        numbers = [self.inline[v] for v in node.inputs if v in self.inline]
        shown = ", ".join([*numbers, *(f"{k}={a}" for k, a in attrs.items())])
        lines = [node.op.name, *([shown[:_LONG]] if shown else [])]
        _, kernel = self.kernel_of.get(i, (-1, None))
        took = kernel.seconds if kernel is not None else None
        facts = {
            "type": ", ".join(str(v.type) for v in node.outputs),
            "inputs": ", ".join(str(v.type) for v in node.inputs),
            "source": node.source,
            "scope": node.scope,
            **attrs,
            "kernel": kernel.name if kernel is not None else "",
            "kernel time": f"{took * 1e6:.1f} us" if took is not None else "",
        }
        name = f"n{i}"
        self._add(name, "op", lines, self._path(i), facts, node.source)
        for v in node.inputs:
            self._edge(v, name)
        self.maker.update((v, name) for v in node.outputs)

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
