"""What a program would cost on processes that need not be there, and the search for a cheap split.

The model is simple and the same for all choices: every node takes as long as its arithmetic or its
memory traffic, whichever is longer (operators of one instruction are fused with their neighbours);
every collective takes its latency, and its bytes over the slowest link of its axes. A branch counts
as its longer side, the body of a loop as one trip.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tvmgraph.core.traits import Pattern
from tvmgraph.core.types import TensorType
from tvmgraph.distributed.layout import Axes, Layout, Mesh, Spec, parse, text_of
from tvmgraph.distributed.partition import Partitioned, Transfer, partition
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.graph.ir import Graph, Node, Role, Value


@dataclass(frozen=True)
class Hardware:
    """One process's device and the links between devices.

    Attributes:
        flops: Arithmetic per second.
        memory_bandwidth: Bytes per second.
        memory: Bytes of memory.
        near: Bytes per second between devices of one machine, in one direction.
        far: The same between machines.
        per_host: Devices of a machine.
        latency: Seconds until the first byte.
    """

    flops: float
    memory_bandwidth: float
    memory: float
    near: float
    far: float
    per_host: int = 8
    latency: float = 1e-5


#: From the data sheets: dense bfloat16, HBM, NVLink in one direction, one 400 or 200 Gbit/s link
#: per GPU; the CPU is a server's share of two cores over shared memory and 10 Gbit/s.
HARDWARE = {
    "h100": Hardware(989e12, 3.35e12, 80e9, 450e9, 50e9),
    "a100": Hardware(312e12, 2.04e12, 80e9, 300e9, 25e9),
    "cpu": Hardware(1e11, 2e10, 8e9, 4e9, 1.2e9, per_host=64),
}


def hardware_of(value: Hardware | str | None) -> Hardware:
    """Returns a description of hardware, by its name or as it is.

    Args:
        value: A description or its name; ``None`` for ``"cpu"``.

    Raises:
        ArgumentError: if there is none of this name.
    """
    if isinstance(value, Hardware):
        return value
    if value is not None and value not in HARDWARE:
        raise ArgumentError(
            f"there is no hardware {value!r}", op="explain",
            fix=f"use {', '.join(map(repr, HARDWARE))} or a distributed.plan.Hardware",
        )  # fmt: skip
    return HARDWARE[value or "cpu"]


@dataclass
class Plan:
    """What a program costs one process.

    Attributes:
        program: The program.
        hardware: What it runs on.
        wire: Bytes that one process sends, by collective.
        compute_seconds: Time of all nodes.
        transfer_seconds: Time of all collectives.
        parameter_bytes: Its part of parameters and states.
        peak_bytes: The most memory at any time, in the order of the program.
    """

    program: Partitioned
    hardware: Hardware
    wire: dict[str, int] = field(default_factory=dict)
    compute_seconds: float = 0.0
    transfer_seconds: float = 0.0
    parameter_bytes: int = 0
    peak_bytes: int = 0

    @property
    def seconds(self) -> float:
        """Time of a call; what does not fit into memory takes forever."""
        fits = self.peak_bytes <= self.hardware.memory
        return self.compute_seconds + self.transfer_seconds if fits else math.inf

    def __str__(self) -> str:
        mesh = self.program.mesh
        lines = [f"mesh {mesh}: {mesh.size} processes"]
        for p, spec in zip(self.program.graph.params, self.program.inputs):
            if any(spec):
                shape = "+".join(text_of(mesh, (a,)).partition(": ")[2] for a in spec)
                lines.append(f"  {p.role.value} {p.label}: {shape.replace('+', ' ')}")
        by: dict[tuple[str, Axes], list[Transfer]] = {}
        for t in self.program.transfers:
            by.setdefault((t.kind, t.axes), []).append(t)
        for (kind, axes), found in by.items():
            sent = sum(_wire(t, mesh) for t in found)
            named = ", ".join(sorted({f"{t.op} ({t.source})" for t in found if t.source})[:3])
            lines.append(f"  {len(found)} x {kind} over {'+'.join(axes)}: {_human(sent)} sent"
                         + (f", for {named}" if named else ""))  # fmt: skip
        for name, source in dict.fromkeys(self.program.replicated):
            lines.append(f"  computed whole by every process: ops.{name} at {source}")
        lines.append(
            f"  per process: parameters {_human(self.parameter_bytes)}, at most "
            f"{_human(self.peak_bytes)}; {self.compute_seconds * 1e3:.3g} ms compute + "
            f"{self.transfer_seconds * 1e3:.3g} ms transfers"
        )
        return "\n".join(lines)


def _human(nbytes: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if nbytes < 1000:
            return f"{nbytes:.3g} {unit}"
        nbytes /= 1000
    return f"{nbytes:.3g} TB"


def _nbytes(t: TensorType) -> int:
    return math.prod(t.static_shape) * t.dtype.itemsize


def _wire(t: Transfer, mesh: Mesh) -> int:
    """Bytes that one process sends, by ring algorithms."""
    n = mesh.count(t.axes)
    factor = {"all_reduced": 2 * (n - 1) / n, "all_gathered": n - 1}.get(t.kind, (n - 1) / n)
    return int(t.nbytes * factor)


def _bandwidth(axes: Axes, mesh: Mesh, hardware: Hardware) -> float:
    """The slowest link: within a machine where ranks that differ along the axes are near."""
    first = min(mesh.names.index(a) for a in axes)
    reach = math.prod(mesh.shape[first:])
    return hardware.near if reach <= hardware.per_host else hardware.far


def _flops(node: Node) -> float:
    """Arithmetic of a node: of a contraction two per product, else one per element."""
    out = sum(math.prod(v.type.static_shape) for v in node.outputs)
    if node.op.traits.pattern is not Pattern.CONTRACTION or len(node.inputs) < 2:
        return out
    factors = node.op.traits.split([v.type for v in node.inputs], node.attrs)
    if factors is not None and all(all(dims) for dims in factors.inputs):
        sizes = {f: n for v, dims in zip(node.inputs, factors.inputs)
                 for f, n in zip(dims, v.type.static_shape)}  # fmt: skip
        return 2.0 * math.prod(sizes.values())
    weight = node.inputs[1].type.static_shape
    return 2.0 * out * math.prod(weight[1:]) if weight else out


def cost(program: Partitioned, hardware: Hardware) -> Plan:
    """Predicts what a program costs one process.

    Args:
        program: The program of one process.
        hardware: What it runs on.
    """
    found = Plan(program, hardware)
    graph, mesh = program.graph, program.mesh
    found.compute_seconds = _seconds(graph, hardware)
    for t in program.transfers:
        sent = _wire(t, mesh)
        found.wire[t.kind] = found.wire.get(t.kind, 0) + sent
        found.transfer_seconds += hardware.latency + sent / _bandwidth(t.axes, mesh, hardware)
    held = [p for p in graph.params if p.role is not Role.INPUT]
    found.parameter_bytes = sum(_nbytes(p.value.type) for p in held)
    found.peak_bytes = _peak(graph)
    return found


def _seconds(graph: Graph, hardware: Hardware) -> float:
    """The time of all nodes that compute."""
    total = 0.0
    for node in graph.nodes:
        if node.op.traits.collective:
            continue
        if node.regions:
            total += max(_seconds(region, hardware) for region in node.regions)
            continue
        moved = sum(_nbytes(v.type) for v in (*node.inputs, *node.outputs))
        idle = node.op.traits.cheap or node.op.traits.pattern is Pattern.VIEW
        total += max(_flops(node) / hardware.flops,
                     0 if idle else moved / hardware.memory_bandwidth)  # fmt: skip
    return total


def _peak(graph: Graph) -> int:
    """The most bytes that are alive at once when nodes run in order."""
    last: dict[Value, int] = {v: i for i, n in enumerate(graph.nodes) for v in n.inputs}
    last.update((v, len(graph.nodes)) for v in graph.outputs)
    always = {p.value for p in graph.params} | set(graph.consts)
    now = peak = sum(_nbytes(v.type) for v in always)
    for i, node in enumerate(graph.nodes):
        inside = max((_peak(r) - _held(r) for r in node.regions), default=0)
        now += sum(_nbytes(v.type) for v in node.outputs)
        peak = max(peak, now + inside)
        done = {v for v in (*node.inputs, *node.outputs) if last.get(v, i) == i}
        now -= sum(_nbytes(v.type) for v in done - always)
    return peak


def _held(graph: Graph) -> int:
    """The bytes of what a region is given."""
    return sum(_nbytes(p.value.type) for p in graph.params)


def on_mesh(graph: Graph, mesh: Mesh) -> Graph:
    """Returns a graph whose layouts are those of a mesh with axes of the same names.

    Args:
        graph: A graph with layouts.
        mesh: The mesh.

    Raises:
        ArgumentError: if an axis has no size in the mesh.
        ShapeError: if a tensor cannot be split over it.
    """
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op.traits.places:
            _, spec = parse(node.attrs["layout"])
            _fits(mesh, spec, node.outputs[0].type.static_shape, node.source)
            node = replace(node, attrs={"layout": text_of(mesh, spec)})
        regions = tuple(on_mesh(r, mesh) for r in node.regions)
        nodes.append(replace(node, regions=regions) if regions else node)
    return replace(graph, nodes=tuple(nodes))


def _fits(mesh: Mesh, spec: Spec, shape: Sequence[int], where: str) -> None:
    for size, axes in zip(shape, spec):
        if not set(axes) <= set(mesh.names):
            raise ArgumentError(
                f"the mesh ({mesh}) has no axis {' or '.join(axes)}", op="explain", at=where,
                fix="use Layouts in the strategies, and the same names in mesh=",
            )  # fmt: skip
        if size % mesh.count(axes):
            raise ShapeError(
                f"{size} of shape {tuple(shape)} cannot be cut into {mesh.count(axes)} equal parts",
                op="explain", at=where,
            )  # fmt: skip


# ---- search -------------------------------------------------------------------------------------


@dataclass
class Choice:
    """Splits that the search has found.

    Attributes:
        inputs: Per input of the graph.
        parameters: Of Parameters, by their value in the graph.
        plan: What they cost.
        data_parallel: What data parallelism costs.
    """

    inputs: tuple[Spec, ...]
    parameters: dict[Value, Spec]
    plan: Plan
    data_parallel: Plan


def search(graph: Graph, mesh: Mesh, hardware: Hardware, most: int = 12) -> Choice:
    """Looks for splits of inputs and weights that cost least.

    It begins with the best split of the inputs alone, data parallelism among them, and then splits
    one kind of weight after the other as long as that pays; so it is never worse than data
    parallelism by its own measure.

    Args:
        graph: The program of whole tensors, without layouts.
        mesh: The processes.
        hardware: What they run on.
        most: How many kinds of weights (by shape) are tried, the largest first.
    """
    free = _without_constraints(graph)
    inputs = [p.value for p in free.params if p.role is Role.INPUT]

    def price(chosen: Mapping[Value, Spec]) -> Plan:
        return cost(partition(free, mesh, dict(chosen)), hardware)

    def batches(axes: Axes) -> dict[Value, Spec]:
        return {v: (axes, *((),) * (v.type.ndim - 1)) for v in inputs
                if v.type.ndim and v.type.static_shape[0] % mesh.count(axes) == 0}  # fmt: skip

    data = price(batches(mesh.names))
    starts = [mesh.names[:i] for i in range(len(mesh.names), -1, -1)]
    choices = [(price(batches(a)), batches(a)) for a in starts]
    plan, chosen = min(choices, key=lambda c: c[0].seconds)
    kinds: dict[tuple[int, ...], list[Value]] = {}
    for p in free.params:
        if p.role is Role.PARAMETER and p.value.type.ndim > 1:
            kinds.setdefault(p.value.type.static_shape, []).append(p.value)
    largest = sorted(kinds.items(), key=lambda k: -math.prod(k[0]) * len(k[1]))[:most]
    for shape, values in largest:
        for spec in _splits(shape, mesh):
            tried = {**chosen, **dict.fromkeys(values, spec)}
            found = price(tried)
            if found.seconds < plan.seconds:
                plan, chosen = found, tried
    whole = tuple(chosen.get(v, ((),) * v.type.ndim) for v in inputs)
    weights = {v: s for v, s in chosen.items() if v not in inputs}
    return Choice(whole, weights, plan, data)


def _without_constraints(graph: Graph) -> Graph:
    """The graph without layouts."""
    renamed: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = tuple(renamed.get(v, v) for v in node.inputs)
        if node.op.traits.places:
            renamed[node.outputs[0]] = inputs[0]
        else:
            nodes.append(replace(node, inputs=inputs))
    outputs = tuple(renamed.get(v, v) for v in graph.outputs)
    return replace(graph, nodes=tuple(nodes), outputs=outputs, customs=())


def _splits(shape: tuple[int, ...], mesh: Mesh) -> Iterator[Spec]:
    """Splits of one dimension of a weight over some axes, in order."""
    ends = range(1, len(mesh.names) + 1)
    for start, stop in itertools.product(range(len(mesh.names)), ends):
        axes = mesh.names[start:stop]
        for d, size in enumerate(shape):
            if axes and size % mesh.count(axes) == 0:
                yield tuple(axes if e == d else () for e in range(len(shape)))


def mesh_given(value: object) -> Mesh:
    """Returns the mesh of a Layout or of sizes.

    Args:
        value: A Layout or mesh.

    Raises:
        ArgumentError: if it is neither.
    """
    if isinstance(value, Layout):
        return value.mesh
    if isinstance(value, Mesh):
        return value
    raise ArgumentError(f"mesh must be a Layout, not {type(value).__name__}", op="explain",
                        fix='Layout((64, 8), ("dp", "mp"))')  # fmt: skip
