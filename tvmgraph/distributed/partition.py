"""One process's program of a graph whose values are split.

Every node computes its shard; between nodes, values are brought into the split that the next one
wants, with the collective that moves least. Sums over a split dimension stay partial as long as
what follows is linear.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tvmgraph.core.op import get_op
from tvmgraph.core.traits import Dims, Factors, Pattern, Slot
from tvmgraph.core.types import TensorType
from tvmgraph.distributed.layout import Axes, Mesh, Spec
from tvmgraph.distributed.propagate import Splits, propagate, ties, value_at, written
from tvmgraph.graph.builder import GraphBuilder
from tvmgraph.graph.ir import Graph, Node, Value
from tvmgraph.graph.simplify import dce

#: How shards are combined -> how processes reduce.
_REDUCE = {"sum": "sum", "mean": "mean", "prod": "prod", "max": "max", "min": "min",
           "all": "min", "any": "max"}  # fmt: skip


#: Nodes after which a gathered weight is gathered again rather than kept: its layer is over.
_FAR = 40


@dataclass(frozen=True)
class Transfer:
    """One collective of a program.

    Attributes:
        kind: The row.
        axes: Axes of the mesh.
        nbytes: Bytes that one process passes to it.
        op: The operator that needs the result.
        source: The user's line of that operator.
        result: Its result in the program.
    """

    kind: str
    axes: Axes
    nbytes: int
    op: str
    source: str
    result: Value


@dataclass
class Partitioned:
    """What :func:`partition` returns.

    Attributes:
        graph: The program of one process, the same for all.
        mesh: The processes.
        inputs: How the parameters are split.
        outputs: How the outputs are split.
        transfers: The collectives in order.
        replicated: Operators that every process computes on whole tensors, with their lines.
    """

    graph: Graph
    mesh: Mesh
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    transfers: list[Transfer] = field(default_factory=list)
    replicated: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class _Shard:
    """A value of the program: its split, and the axes over which it still has to be added."""

    value: Value
    spec: Spec
    partial: Axes = ()
    how: str = "sum"


class _Writer:
    def __init__(self, graph: Graph, splits: Splits) -> None:
        self.graph, self.splits, self.mesh = graph, splits, splits.mesh
        self.builder = GraphBuilder(graph.name)
        self.shards: dict[Value, _Shard] = {}
        self.moved: dict[tuple[Value, Spec], tuple[_Shard, int]] = {}
        self.given = {p.value for p in graph.params}  # and their views
        self.transfers: list[Transfer] = []
        self.replicated: list[tuple[str, str]] = []
        self.node: Node | None = None

    def run(self, outputs: Sequence[Spec | None]) -> Partitioned:
        graph, specs = self.graph, self.splits.specs
        for p in graph.params:
            spec = specs[p.value]
            local = self.builder.param(self._local(p.value, spec), p.role, p.label)
            self.shards[p.value] = _Shard(local, spec)
        for v, array in graph.consts.items():
            self.shards[v] = _Shard(self.builder.const(array), ((),) * v.type.ndim)
        for node in graph.nodes:
            self.node = node
            self._node(node)
        self.node = None
        wanted = self._wanted(outputs)
        found = [self.redistributed_to(v, s).value for v, s in zip(graph.outputs, wanted)]
        built = self.builder.build(found, graph.writes)
        inputs = tuple(specs[p.value] for p in graph.params)
        return Partitioned(built, self.mesh, inputs, wanted, self.transfers, self.replicated)

    def _wanted(self, outputs: Sequence[Spec | None]) -> tuple[Spec, ...]:
        """How outputs are split: as given, as written parameters, as asked for, else whole."""
        placed = {n.outputs[0] for n in self.graph.nodes if n.op.traits.places}
        state = {}
        count = len(self.graph.outputs) - len(self.graph.writes)
        for (p, _), i in zip(written(self.graph), range(count, len(self.graph.outputs))):
            state[i] = self.splits.specs[p]
        found = []
        for i, v in enumerate(self.graph.outputs):
            given = outputs[i] if i < len(outputs) else None
            spec = self.splits.specs[v] if v in placed else ((),) * v.type.ndim
            found.append(state.get(i, given if given is not None else spec))
        return tuple(found)

    # ---- nodes ------------------------------------------------------------------------------

    def _node(self, node: Node) -> None:
        if node.op.traits.places:
            wanted = self.splits.specs[node.outputs[0]]
            self.shards[node.outputs[0]] = self.redistributed_to(node.inputs[0], wanted)
            return
        if node.op.traits.ties is not None:
            self._split_regions(node)
            return
        factors = self.splits.factors[node]
        if factors is None:
            self._replicated(node)
            return
        axes = self._choose(node, factors)
        wanted = [tuple(axes.get(f or "", ()) for f in dims) for dims in factors.inputs]
        partial, how = self._partial(node, axes)
        if node.op.traits.pattern is Pattern.VIEW and self.given.issuperset(node.inputs):
            self.given.update(node.outputs)
        operands = [
            (self._still_partial(v, s) if partial else self.redistributed_to(v, s)).value
            for v, s in zip(node.inputs, wanted)
        ]
        attrs = self._sized(node, factors, axes)
        types = node.op.types(*[o.type for o in operands], **attrs)
        outputs = self.builder.node(node.op, operands, attrs, types, node.source, node.scope)
        for old, new, dims in zip(node.outputs, outputs, factors.outputs):
            spec = tuple(axes.get(f or "", ()) for f in dims)
            summed = [a for f, got in axes.items() if f not in dims for a in got]
            left = self.mesh.ordered([*partial, *summed])
            shard = _Shard(new, spec, left, how if partial else node.op.traits.combine)
            if left and shard.how not in ("sum", "mean"):
                shard = self._reduced(shard, left)
            self.shards[old] = shard

    def _replicated(self, node: Node) -> None:
        """Computes a node on whole tensors, everywhere the same."""
        if any(any(self.shards[v].spec) for v in node.inputs):
            self.replicated.append((node.op.name, node.source))
        operands = [self.redistributed_to(v, ((),) * v.type.ndim).value for v in node.inputs]
        types = [v.type for v in node.outputs]
        outputs = self.builder.node(
            node.op, operands, node.attrs, types, node.source, node.scope, node.regions
        )
        for old, new in zip(node.outputs, outputs):
            self.shards[old] = _Shard(new, ((),) * old.type.ndim)

    def _split_regions(self, node: Node) -> None:
        """Computes shards in branches and loops; all processes take the same way, as what decides
        is whole."""
        chosen: dict[Slot, Spec] = {}
        for tie in ties(node):
            found = [self.splits.specs[value_at(node, slot)] for slot in tie]
            spec = next((s for s in found if any(s)), found[0])
            chosen.update(dict.fromkeys(tie, spec))

        def specs(values: Sequence[Value], region: int, gives: bool) -> list[Spec]:
            return [chosen.get(Slot(region, gives, i), ((),) * v.type.ndim)
                    for i, v in enumerate(values)]  # fmt: skip

        wanted, results = specs(node.inputs, 0, False), specs(node.outputs, 0, True)
        operands = [self.redistributed_to(v, s).value for v, s in zip(node.inputs, wanted)]
        regions = []
        for r, region in enumerate(node.regions, 1):
            params = [p.value for p in region.params]
            known = {**self.splits.specs, **dict(zip(params, specs(params, r, False)))}
            inner = _Writer(region, replace(self.splits, specs=known))
            built = bucketed(inner.run(specs(region.outputs, r, True)))
            self.transfers += built.transfers
            self.replicated += built.replicated
            regions.append(built.graph)
        types = [self._local(v, s) for v, s in zip(node.outputs, results)]
        outputs = self.builder.node(
            node.op, operands, node.attrs, types, node.source, node.scope, tuple(regions)
        )
        for old, new, spec in zip(node.outputs, outputs, results):
            self.shards[old] = _Shard(new, spec)

    def _local(self, value: Value, spec: Spec) -> TensorType:
        """The type of one process's shard."""
        return value.type.with_shape(self.mesh.local(value.type.static_shape, spec))

    def _choose(self, node: Node, factors: Factors) -> dict[str, Axes]:
        """Returns the axes along which every factor is split: as results want, or as operands are,
        whichever moves less."""
        results = [(self.splits.specs[v], v, d) for v, d in zip(node.outputs, factors.outputs)]
        operands = [(self.shards[v].spec, v, d) for v, d in zip(node.inputs, factors.inputs)]
        first = self._chosen([*results, *operands])
        if any(any(spec) for spec, _, _ in operands):
            second = self._chosen([*operands, *results])
            if second != first and self._cost(node, factors, second) < self._cost(
                node, factors, first
            ):
                return second
        return first

    def _chosen(self, sides: list[tuple[Spec, Value, Dims]]) -> dict[str, Axes]:
        """Gives every factor the first axes that somebody wants and that are free."""
        sizes: dict[str, list[int]] = {}
        wishes: dict[str, list[Axes]] = {}
        for spec, v, dims in sides:
            for f, axes, size in zip(dims, spec, v.type.static_shape):
                if f is not None:
                    sizes.setdefault(f, []).append(size)
                    wishes.setdefault(f, []).append(axes)
        chosen: dict[str, Axes] = {}
        used: set[str] = set()
        for f, wanted in wishes.items():
            for axes in wanted:
                count = self.mesh.count(axes)
                fits = all(n % count == 0 for n in sizes[f])
                if axes and not used & set(axes) and fits:
                    chosen[f] = axes
                    used |= set(axes)
                    break
        return chosen

    def _cost(self, node: Node, factors: Factors, axes: Mapping[str, Axes]) -> float:
        """Bytes that a process sends so that the node is split like this."""
        total = 0.0
        for v, dims in zip(node.inputs, factors.inputs):
            wanted = tuple(axes.get(f or "", ()) for f in dims)
            total += self._transfer_cost(v, self.shards[v].spec, wanted)
        for v, dims in zip(node.outputs, factors.outputs):
            spec, goal = tuple(axes.get(f or "", ()) for f in dims), self.splits.specs[v]
            summed = {a for f, got in axes.items() if f not in dims for a in got}
            if summed:
                scattered = any(set(a) & summed for a in goal)
                total += (1 if scattered else 2) * self._bytes(v, spec)
            total += self._transfer_cost(v, spec, goal)
        return total

    def _transfer_cost(self, value: Value, spec: Spec, goal: Spec) -> float:
        """Bytes that a process sends to bring a value from one split into another."""
        here = [a for axes in spec for a in axes]
        there = {a for axes in goal for a in axes}
        lost = self.mesh.count(tuple(a for a in here if a not in there))
        turned = any(a and a != b for a, b in zip(spec, goal)) and lost == 1
        return self._bytes(value, spec) * ((lost - 1) + turned)

    def _bytes(self, value: Value, spec: Spec) -> float:
        """Bytes of one process's shard."""
        count = math.prod(self.mesh.count(a) for a in spec)
        return math.prod(value.type.static_shape) * value.type.dtype.itemsize / count

    def _partial(self, node: Node, axes: Mapping[str, Axes]) -> tuple[Axes, str]:
        """Returns the axes over which all operands are partial, if the node may come first."""
        traits = node.op.traits
        is_view = traits.pattern is Pattern.VIEW and len(node.inputs) == 1
        shards = [self.shards[v] for v in node.inputs]
        first = shards[0] if shards else None
        if first is None or not first.partial or not (traits.linear or is_view):
            return (), "sum"
        same = all((p.partial, p.how) == (first.partial, first.how) for p in shards)
        used = {a for got in axes.values() for a in got}
        spread = len(shards) > 1 and len({v.type.shape for v in node.inputs}) > 1
        return ((), "sum") if not same or used & set(first.partial) or spread else (
            first.partial, first.how)  # fmt: skip

    def _sized(
        self, node: Node, factors: Factors, axes: Mapping[str, Axes]
    ) -> Mapping[str, object]:
        """The attributes of the node that computes one shard."""
        key = node.op.traits.sized
        if not key:
            return node.attrs
        counts = [self.mesh.count(axes.get(f or "", ())) for f in factors.outputs[0]]
        return {**node.attrs, key: tuple(n // c for n, c in zip(node.attrs[key], counts))}

    # ---- redistribution ---------------------------------------------------------------------

    def _still_partial(self, value: Value, spec: Spec) -> _Shard:
        """Returns a partial value in another split, still partial."""
        shard = self.shards[value]
        moved = self._redistribute(replace(shard, partial=()), spec)
        return replace(moved, partial=shard.partial, how=shard.how)

    def redistributed_to(self, value: Value, spec: Spec) -> _Shard:
        """Returns a value in a split, summed."""
        shard = self.shards[value]
        if shard.spec == spec and not shard.partial:
            return shard
        found, used = self.moved.get((value, spec), (None, 0))
        here = len(self.builder.nodes)
        if found is None or (value in self.given and here - used > _FAR):
            found = self._redistribute(self._reduce_partial(shard, spec), spec)
            if shard.partial and found.spec == shard.spec:
                self.shards[value] = found
        self.moved[value, spec] = found, here
        return found

    def _reduce_partial(self, shard: _Shard, spec: Spec) -> _Shard:
        """Adds what is partial; processes that want a shard of the sum get only that."""
        for d, axes in enumerate(spec):
            wanted = axes and not shard.spec[d] and set(axes) <= set(shard.partial)
            if wanted and shard.value.type.static_shape[d] % self.mesh.count(axes) == 0:
                value = self._emit("reduce_scattered", shard.value, axes, axis=d, how=shard.how)
                left = tuple(a for a in shard.partial if a not in axes)
                shard = replace(shard, value=value, partial=left, spec=_with(shard.spec, d, axes))
        return self._reduced(shard, shard.partial) if shard.partial else shard

    def _reduced(self, shard: _Shard, axes: Axes) -> _Shard:
        value = self._emit("all_reduced", shard.value, axes, how=_REDUCE[shard.how])
        return _Shard(value, shard.spec)

    def _redistribute(self, shard: _Shard, spec: Spec) -> _Shard:
        shard = self._sliced(shard, spec)
        for d in range(len(spec)):  # an axis that moves to another dimension
            axes = shard.spec[d]
            to = next((e for e, a in enumerate(spec) if a == axes and not shard.spec[e]), None)
            if axes and axes != spec[d] and to is not None:
                size = shard.value.type.static_shape[to]
                if size % self.mesh.count(axes) == 0:
                    value = self._emit("parts_exchanged", shard.value, axes, split=to, concat=d)
                    spread = _with(_with(shard.spec, d, ()), to, axes)
                    shard = replace(shard, value=value, spec=spread)
        for d, axes in enumerate(shard.spec):
            if axes != spec[d]:
                kept = _common(axes, spec[d])
                value = self._emit("all_gathered", shard.value, axes[len(kept) :], axis=d)
                shard = replace(shard, value=value, spec=_with(shard.spec, d, kept))
        return self._sliced(shard, spec)

    def _sliced(self, shard: _Shard, spec: Spec) -> _Shard:
        """Takes shards of dimensions that every process has as a whole."""
        for d, axes in enumerate(spec):
            used = {a for s in shard.spec for a in s}
            more = axes[len(shard.spec[d]) :]
            if more and axes[: len(shard.spec[d])] == shard.spec[d] and not used & set(more):
                value = self._emit("own_part", shard.value, more, axis=d)
                shard = replace(shard, value=value, spec=_with(shard.spec, d, axes))
        return shard

    def _emit(self, kind: str, value: Value, axes: Axes, **attrs: object) -> Value:
        count = self.mesh.count(axes)
        if count == 1:
            return value
        attrs |= {"group": self.mesh.group(axes), "parts": count}
        op = get_op(kind)
        ordered = {a: attrs[a] for a in op.attrs}
        types, node = op.types(value.type, **ordered), self.node
        source, scope = (node.source, node.scope) if node is not None else ("", "")
        (result,) = self.builder.node(op, (value,), ordered, types, source, scope)
        if kind != "own_part":
            nbytes = math.prod(value.type.static_shape) * value.type.dtype.itemsize
            needed_by = node.op.name if node is not None else "return"
            self.transfers.append(Transfer(kind, axes, nbytes, needed_by, source, result))
        return result


def _with(spec: Spec, dim: int, axes: Axes) -> Spec:
    return (*spec[:dim], axes, *spec[dim + 1 :])


def _common(a: Axes, b: Axes) -> Axes:
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(a, b))
    return tuple(axis for axis, _ in same)


def partition(
    graph: Graph,
    mesh: Mesh,
    given: Mapping[Value, Spec] | None = None,
    outputs: Sequence[Spec | None] = (),
) -> Partitioned:
    """Splits a graph over processes.

    Args:
        graph: A graph of static shapes, with the whole tensors.
        mesh: The processes.
        given: Splits of parameters that are decided.
        outputs: Splits of outputs; without one, and without :func:`placed_as` or a written
            parameter, an output is whole.
    """
    graph = dce(graph)  # what nobody reads shall move nothing
    splits = propagate(graph, mesh, given, outputs)
    return bucketed(_Writer(graph, splits).run(outputs))


# ---- small sums travel together -----------------------------------------------------------------

#: Bytes from which a sum is worth a message of its own (measured over TCP and shared memory).
BUCKET = 256 << 10


def bucketed(found: Partitioned) -> Partitioned:
    """Adds small tensors in one message that are summed in the same way and do not wait for each
    other.

    Args:
        found: A partitioned program.
    """
    buckets = _buckets(found.graph)
    if not buckets:
        return found
    order = _Order(buckets)
    for node in found.graph.nodes:
        order.append(node)
    built = replace(found.graph, nodes=tuple(order.nodes))
    transfers = _joined_transfers(found.transfers, buckets)
    return replace(found, graph=built, transfers=transfers)


class _Order:
    """Puts every bucket where its last member was, and what reads its members after it."""

    def __init__(self, buckets: list[list[Node]]) -> None:
        self.nodes: list[Node] = []
        self._bucket_of = {n: b for b in buckets for n in b}
        self._missing = {id(b): len(b) for b in buckets}
        self._later: set[Value] = set()  # values that exist only once a bucket was sent
        self._held: list[Node] = []

    def append(self, node: Node) -> None:
        """Appends a node, or holds it back."""
        if any(v in self._later for v in node.inputs):
            self._later.update(node.outputs)
            self._held.append(node)
            return
        self._later.difference_update(node.outputs)
        bucket = self._bucket_of.get(node)
        if bucket is None:
            self.nodes.append(node)
            return
        self._missing[id(bucket)] -= 1
        if self._missing[id(bucket)]:
            self._later.update(node.outputs)
            return
        self.nodes.append(_joined(bucket))
        self._later.difference_update(n.outputs[0] for n in bucket)
        held, self._held = self._held, []
        for waiting in held:
            self.append(waiting)


def _buckets(graph: Graph) -> list[list[Node]]:
    """Small sums by what they have in common and by how many sums they wait for."""
    depth: dict[Value, int] = {}
    by: dict[object, list[Node]] = {}
    for node in graph.nodes:
        level = max((depth.get(v, 0) for v in node.inputs), default=0)
        if node.op.name == "all_reduced" and len(node.inputs) == 1:
            kind = node.inputs[0].type
            small = math.prod(kind.static_shape) * kind.dtype.itemsize <= BUCKET
            if small:
                key = (level, kind.dtype, *node.attrs.values())
                by.setdefault(key, []).append(node)
            level += 1
        depth.update((v, level) for v in node.outputs)
    return [nodes for nodes in by.values() if len(nodes) > 1]


def _joined(bucket: list[Node]) -> Node:
    last = bucket[-1]
    return replace(
        last, inputs=tuple(n.inputs[0] for n in bucket),
        outputs=tuple(n.outputs[0] for n in bucket),
    )  # fmt: skip


def _joined_transfers(transfers: list[Transfer], buckets: list[list[Node]]) -> list[Transfer]:
    bucket_of = {n.outputs[0]: i for i, b in enumerate(buckets) for n in b}
    seen: dict[int, int] = {}
    found: list[Transfer] = []
    for t in transfers:
        i = bucket_of.get(t.result)
        if i is None:
            found.append(t)
        elif i in seen:
            first = found[seen[i]]
            found[seen[i]] = replace(first, nbytes=first.nbytes + t.nbytes)
        else:
            seen[i] = len(found)
            found.append(t)
    return found
