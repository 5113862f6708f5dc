"""How every value of a graph is split, from the splits of a few.

Two dimensions with one factor (see :class:`tvmgraph.core.traits.Factors`) are split alike. What is
given stays; what is open takes over the split of a neighbour, forwards and backwards, until nothing
changes. Which neighbour comes first is decided by the order of the nodes alone, so all processes
find the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tvmgraph.core.traits import Factors, Slot, Tie
from tvmgraph.distributed.layout import Axes, Mesh, Spec, parse
from tvmgraph.errors import ArgumentError
from tvmgraph.graph.ir import Graph, Node, Role, Value

Slots = list[list[tuple[Value, int]]]  # by factor: the dimensions that have it


@dataclass
class Splits:
    """The splits of a graph's values.

    Attributes:
        mesh: The processes.
        specs: For every value and dimension the axes that split it.
        factors: Of every node: which dimensions are the same, None where nothing can be split.
    """

    mesh: Mesh
    specs: dict[Value, Spec]
    factors: dict[Node, Factors | None]


def mesh_of(graph: Graph) -> Mesh | None:
    """Returns the mesh that the layouts inside a graph have, or None without any.

    Args:
        graph: The graph, regions included.

    Raises:
        ArgumentError: if there are two.
    """
    found: Mesh | None = None
    for node in graph.walk():
        if not node.op.traits.places:
            continue
        mesh = parse(node.attrs["layout"])[0]
        if found is not None and mesh != found:
            raise ArgumentError(
                f"one program has the meshes ({found}) and ({mesh})", op="shard", at=node.source,
                fix="make all layouts of one Layout(device_matrix, alias_name)",
            )  # fmt: skip
        found = mesh
    return found


class _Solver:
    def __init__(self, graph: Graph, mesh: Mesh) -> None:
        self.graph, self.mesh = graph, mesh
        self.found: dict[Value, list[Axes | None]] = {}
        self.sizes: dict[Value, tuple[int, ...]] = {}
        for v in _values(graph):
            self.sizes[v] = v.type.static_shape
            self.found[v] = [None] * len(self.sizes[v])
        self.factors = {n: _factors(n) for n in graph.walk()}
        self.steps: list[Slots] = []
        for node in graph.walk():
            factors = self.factors[node]
            if factors is not None:
                self.steps.append(_slots(node, factors))
            self.steps += [_same(*[value_at(node, slot) for slot in tie]) for tie in ties(node)]
        self.steps += [_same(p, o) for p, o in written(graph)]

    def close(self, value: Value, spec: Spec) -> None:
        """Fixes the split of a value."""
        self.found[value] = list(spec)

    def run(self) -> dict[Value, Spec]:
        """Fills what is open."""
        changed = True
        while changed:
            changed = False
            for step in self.steps:
                changed |= self._step(step)
            for step in reversed(self.steps):
                changed |= self._step(step)
        return {v: tuple(a or () for a in dims) for v, dims in self.found.items()}

    def _step(self, slots: Slots) -> bool:
        changed = False
        for places in slots:
            open_ = False
            axes: Axes | None = None
            for v, d in places:
                known = self.found[v][d]
                if known is None:
                    open_ = True
                elif known and axes is None:
                    axes = known
            if axes and open_:
                parts = self.mesh.count(axes)
                if all(self.sizes[v][d] % parts == 0 for v, d in places):
                    for v, d in places:
                        changed |= self._set(v, d, axes)
        return changed

    def _set(self, value: Value, dim: int, axes: Axes) -> bool:
        dims = self.found[value]
        if dims[dim] is not None or any(a in known for known in dims if known for a in axes):
            return False
        dims[dim] = axes
        return True


def _values(graph: Graph) -> Iterator[Value]:
    yield from (p.value for p in graph.params)
    yield from graph.consts
    for node in graph.nodes:
        yield from node.outputs
        for region in node.regions:
            yield from _values(region)


def ties(node: Node) -> list[Tie]:
    """Returns which values of a node and its regions stand for one another.

    Args:
        node: A node, which may have regions.
    """
    found = node.op.traits.ties
    return found(len(node.inputs), len(node.outputs), *node.regions) if found else []


def value_at(node: Node, slot: Slot) -> Value:
    """Returns the value at a place of a node or one of its regions.

    Args:
        node: The node.
        slot: The place.
    """
    if not slot.region:
        return (node.outputs if slot.gives else node.inputs)[slot.place]
    region = node.regions[slot.region - 1]
    return region.outputs[slot.place] if slot.gives else region.params[slot.place].value


def _factors(node: Node) -> Factors | None:
    if node.regions or node.op.traits.collective:
        return None
    return node.op.traits.split([v.type for v in node.inputs], node.attrs)


def _slots(node: Node, factors: Factors) -> Slots:
    by: dict[str, list[tuple[Value, int]]] = {}
    sides = (*zip(node.inputs, factors.inputs), *zip(node.outputs, factors.outputs))
    for v, dims in sides:
        for d, name in enumerate(dims):
            if name is not None:
                by.setdefault(name, []).append((v, d))
    return [places for places in by.values() if len(places) > 1]


def _same(*values: Value) -> Slots:
    return [[(v, d) for v in dict.fromkeys(values)] for d in range(values[0].type.ndim)]


def written(graph: Graph) -> list[tuple[Value, Value]]:
    """Returns the parameters that a graph replaces, with their new values.

    Args:
        graph: The graph.
    """
    by = {p.label: p.value for p in graph.params if p.role is not Role.INPUT}
    new = graph.outputs[len(graph.outputs) - len(graph.writes) :]
    return [(by[label], v) for label, v in zip(graph.writes, new) if label in by]


def propagate(
    graph: Graph,
    mesh: Mesh,
    given: Mapping[Value, Spec] | None = None,
    outputs: Sequence[Spec | None] = (),
) -> Splits:
    """Finds the split of every value.

    Args:
        graph: A graph of static shapes.
        mesh: The processes.
        given: Splits of parameters.
        outputs: Splits of the outputs, None where any will do.
    """
    solver = _Solver(graph, mesh)
    for node in graph.walk():
        if node.op.traits.places:
            solver.close(node.outputs[0], parse(node.attrs["layout"])[1])
    for value, spec in (given or {}).items():
        solver.close(value, spec)
    for value, spec in zip(graph.outputs, outputs):
        if spec is not None and all(d is None for d in solver.found[value]):
            solver.close(value, spec)
    return Splits(mesh, solver.run(), solver.factors)
