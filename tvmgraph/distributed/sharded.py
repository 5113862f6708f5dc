"""Tensors that are split over processes, and compiled graphs that compute with them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvmgraph.autodiff.reverse import reverse
from tvmgraph.autodiff.tape import paused
from tvmgraph.config import JitConfig
from tvmgraph.core.deferred import Deferred
from tvmgraph.core.symbols import Specialise
from tvmgraph.core.tensor import Tensor, _forget_array, tensor_from_numpy
from tvmgraph.core.types import TensorType
from tvmgraph.distributed import engine
from tvmgraph.distributed.context import settings
from tvmgraph.distributed.layout import Layout, Mesh, Spec, layout_of, spec_of
from tvmgraph.distributed.partition import Partitioned, partition
from tvmgraph.distributed.propagate import mesh_of, propagate
from tvmgraph.errors import ArgumentError, DeviceError, reject
from tvmgraph.graph.ir import Graph, Role, Value
from tvmgraph.graph.sizes import is_symbolic
from tvmgraph.graph.text import canonical_text
from tvmgraph.jit.compiled import CompiledGraph

_new = object.__new__


class _Local(Tensor):
    """A process's part; compiled code may write to it where nobody else refers to it."""


class Shards:
    """The elements of a tensor of which every process has a part.

    It stands where a tensor on a GPU has its storage there: who looks at the elements gets them
    gathered, which all processes must do together.

    Attributes:
        local: This process's part.
        mesh: The processes.
        spec: How the tensor is split.
        type: The whole tensor's shape and dtype.
    """

    copied = True  # it is no storage on a GPU
    handle = index = None

    def __init__(self, local: Tensor, mesh: Mesh, spec: Spec, type: TensorType) -> None:
        self.local, self.mesh, self.spec, self.type = local, mesh, spec, type

    def numpy(self, implicit: bool = True) -> np.ndarray:
        """Returns all elements.

        Args:
            implicit: Whether nobody asked for the copy.
        """
        array = self.local.array
        for d, axes in enumerate(self.spec):
            if axes:
                parts = engine.all_gather(array, self.mesh.group(axes))
                array = np.concatenate(list(parts), axis=d)
        return array


class DTensor(Tensor):
    """A tensor that stays split over processes: what a call with an ``out_strategy`` returns.

    Its type is the whole tensor's. A sharded function takes it without traffic where it wants the
    same layout; everything else gathers the elements, in all processes at once.
    """

    __slots__ = ()

    _device: Shards

    @property
    def layout(self) -> Layout:
        """How it is split."""
        return layout_of(self._device.mesh, self._device.spec)

    def to_local(self) -> Tensor:
        """Returns this process's shard."""
        return self._device.local.snapshot()

    def full(self) -> Tensor:
        """Returns the whole tensor, gathered by all processes together."""
        return tensor_from_numpy(self._device.numpy(), self.aval)

    def __repr__(self) -> str:
        return f"DTensor(shape={list(self.shape)}, dtype={self.dtype}, {self.layout!r})"

    @staticmethod
    def from_local(local: Tensor, layout: Layout) -> DTensor:
        """Returns the tensor of which every process has a part.

        Args:
            local: This process's part, of the same shape everywhere.
            layout: How the whole is split.

        Raises:
            ArgumentError: if the layout has another number of dimensions.
        """
        mesh = layout.mesh
        spec = spec_of(layout, local.shape, Mesh((1,), mesh.names[:1]), "local", "from_local") \
            if layout.spec is None else layout.spec  # fmt: skip
        shape = tuple(n * mesh.count(a) for n, a in zip(local.shape, spec, strict=True))
        return split_tensor(local, mesh, spec, local.aval.with_shape(shape))


def split_tensor(local: Tensor, mesh: Mesh, spec: Spec, kind: TensorType) -> DTensor:
    """Returns a tensor whose part in this process is ``local``.

    Args:
        local: The part.
        mesh: The mesh.
        spec: Axes of the mesh that every dimension is split by.
        kind: Type of the whole tensor.
    """
    found = _new(DTensor)
    found.aval, found._token, found._ffi = kind, None, None
    found._device = Shards(_own(local), mesh, spec, kind)
    return found


def _own(local: Tensor) -> _Local:
    found = _new(_Local)
    found.aval, found._token, found._ffi = local.aval, None, None
    found._share(local)
    return found


def own_slices(shape: Sequence[int], mesh: Mesh, spec: Spec) -> tuple[slice, ...]:
    """Returns which part of a tensor this process has.

    Args:
        shape: Shape of the whole tensor.
        mesh: The mesh.
        spec: Axes of the mesh that every dimension is split by.
    """
    rank, found = engine.world().rank, []
    for n, axes in zip(shape, spec, strict=True):
        size = n // mesh.count(axes)
        start = mesh.index_of(rank, axes) * size
        found.append(slice(start, start + size))
    return tuple(found)


def cut(array: np.ndarray, mesh: Mesh, spec: Spec) -> np.ndarray:
    """Returns this process's shard of an array.

    Args:
        array: The whole array.
        mesh: The mesh.
        spec: Axes of the mesh that every dimension is split by.
    """
    return array[own_slices(array.shape, mesh, spec)].copy()


def shards_of(tensor: object) -> Shards | None:
    """Returns how a tensor is split, None for whole ones.

    Args:
        tensor: Any object.
    """
    found = getattr(tensor, "_device", None)
    return found if isinstance(found, Shards) else None


def keep_shard(tensor: Tensor, mesh: Mesh, spec: Spec) -> None:
    """Replaces a tensor's elements by this process's shard; nothing else is computed of those that
    are only described yet.

    Args:
        tensor: A whole tensor.
        mesh: The mesh.
        spec: Axes of the mesh that every dimension is split by.
    """
    held = tensor._device
    if isinstance(held, Deferred):
        array = held.part(own_slices(tensor.shape, mesh, spec))
    else:
        array = cut(tensor.array, mesh, spec)
    local = tensor_from_numpy(array)
    tensor._device = Shards(_own(local), mesh, spec, tensor.aval)
    tensor._ffi = None
    _forget_array(tensor)


class ShardedGraph(CompiledGraph):
    """Runs this process's shard of a graph.

    Args:
        graph: The program of whole tensors.
        config: How it is compiled.
        held: The tensors that are its parameters, where they are known before a call.
        mesh: The processes.
        given: Splits of parameters that are decided.
        outputs: Splits of outputs that are decided.
    """

    def __init__(
        self,
        graph: Graph,
        config: JitConfig,
        held: Sequence[Tensor | None],
        mesh: Mesh,
        given: Mapping[Value, Spec],
        outputs: Sequence[Spec | None] = (),
    ) -> None:
        self.graph, self.config = graph, config
        self._types = tuple(v.type for v in graph.outputs)
        self._pull_back = {}
        self.found: Partitioned = partition(graph, mesh, given, outputs)
        require_same(self.found, graph)
        self._free(held)
        self.inner: CompiledGraph = engine.in_turns(
            lambda: CompiledGraph(self.found.graph, config, ())
        )
        self.path, self.stats = self.inner.path, self.inner.stats
        self.overwritten, self.constants = (), []
        self.steps: object = self.inner  # calls take the way of graphs that run in several steps

    def _free(self, held: Sequence[Tensor | None]) -> None:
        """Leaves of every Parameter only the part that this process needs."""
        for p, tensor, spec in zip(self.graph.params, held, self.found.inputs):
            if tensor is not None and any(spec) and p.role is Role.PARAMETER:
                before = shards_of(tensor)
                if before is None or (before.mesh, before.spec) != (self.found.mesh, spec):
                    keep_shard(tensor, self.found.mesh, spec)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels of this process's shard."""
        return self.inner.kernels

    def kernel_choices(self) -> list[Any]:
        """What is known of the kernels of this process's shard."""
        return self.inner.kernel_choices()

    def run(
        self, args: Sequence[Tensor], consume: bool = False, kept: list[object] | None = None
    ) -> list[Tensor]:
        """Runs the part on the parts of tensors.

        Args:
            args: The tensors, whole or split in any way.
            consume: Whether their memory may be used for results.
            kept: Gets the list of the results, if given.
        """
        local = [
            self._local_shard(a, spec) if any(spec) or shards_of(a) is not None else a
            for a, spec in zip(args, self.found.inputs)
        ]
        inner = self.inner.run(local, consume)
        outputs = [
            split_tensor(o, self.found.mesh, spec, kind) if any(spec) else o
            for o, spec, kind in zip(inner, self.found.outputs, self._types)
        ]
        for o in outputs[len(outputs) - len(self.graph.writes) :]:
            found = shards_of(o)
            if found is not None:  # nobody else has seen it: the next call may write to it
                found.local._exclusive = found.local._ffi
        if kept is not None:
            kept.append(outputs)
        return outputs

    def _local_shard(self, tensor: Tensor, spec: Spec) -> Tensor:
        found, mesh = shards_of(tensor), self.found.mesh
        if found is not None and (found.mesh, found.spec) == (mesh, spec):
            return found.local
        return tensor_from_numpy(cut(tensor.array, mesh, spec))

    def _backward(
        self, args: Sequence[Tensor], wanted: Sequence[int], given: Sequence[int]
    ) -> CompiledGraph:
        key = tuple(wanted), tuple(given)
        found = self._pull_back.get(key)
        if found is None:
            with paused():
                graph = reverse(self.graph, wanted, given)
                specs = {p.value: s for p, s in zip(graph.params, self.found.inputs)}
                outputs = [
                    self.found.inputs[i] if self.graph.params[i].role is not Role.INPUT else None
                    for i in wanted
                ]
                found = ShardedGraph(graph, self.config, (), self.found.mesh, specs, outputs)
            self._pull_back[key] = found
        return found


def require_same(found: Partitioned, graph: Graph) -> None:
    """Checks that all processes are about to run the same program.

    Args:
        found: The program of this process.
        graph: The graph that it was made of.

    Raises:
        DeviceError: if they are not; it names the ranks.
    """
    text = canonical_text(found.graph)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    digests = engine.share_object((digest, len(graph.nodes)))
    if len(set(digests)) > 1:
        said = ", ".join(f"rank {i}: {d} of {n} operators" for i, (d, n) in enumerate(digests))
        reject(DeviceError, "shard", f"the processes run different programs for {graph.name!r}",
               said, "shapes, Python values and control flow must be the same in all")  # fmt: skip


def shard_graph(graph: Graph, config: JitConfig, held: Sequence[Tensor | None]) -> CompiledGraph:
    """Compiles a captured graph in which layouts are asked for.

    Args:
        graph: The graph.
        config: How it is compiled.
        held: The tensors that are its parameters, where they are known before a call.

    Raises:
        DeviceError: if there are not as many processes as the mesh has.
    """
    mesh = mesh_of(graph)
    assert mesh is not None
    if mesh.size == 1 == engine.world().size:
        return CompiledGraph(graph, config, held)
    if mesh.size != engine.world().size:
        reject(DeviceError, "shard",
               f"the mesh ({mesh}) has {mesh.size} processes, and there are {engine.world().size}",
               fix=f"start it with tvmgraph-run -n {mesh.size}")  # fmt: skip
    if is_symbolic(graph):  # parts have sizes of their own
        raise Specialise(frozenset().union(*[p.value.type.roots for p in graph.params]))
    given = splits_of(graph, held, mesh)
    if settings.enable_parallel_optimizer:
        given = with_split_states(graph, held, mesh, given)
    return ShardedGraph(graph, config, held, mesh, given)


def with_split_states(
    graph: Graph, held: Sequence[Tensor | None], mesh: Mesh, given: dict[Value, Spec]
) -> dict[Value, Spec]:
    """Splits also the optimizer's states of parameters that every process has as a whole.

    The gradient is then scattered as it is summed, and the new parameter gathered.

    Args:
        graph: The graph.
        held: The tensors that its parameters stand for.
        mesh: The mesh.
        given: How some values are split.

    Returns:
        ``given`` with more values.
    """
    specs = propagate(graph, mesh, given).specs
    found = {p.value: specs[p.value] for p in graph.params if p.role is Role.PARAMETER} | given
    for p, tensor in zip(graph.params, held):
        if getattr(tensor, "of_optimizer", False) and not any(specs[p.value]):
            shape = p.value.type.static_shape
            dim = next((d for d, n in enumerate(shape) if n and n % mesh.size == 0), None)
            if dim is not None:
                found[p.value] = tuple(mesh.names if d == dim else () for d in range(len(shape)))
    return found


def splits_of(graph: Graph, held: Sequence[Tensor | None], mesh: Mesh) -> dict[Value, Spec]:
    """Returns how Parameters are split already, or shall be by their user.

    Args:
        graph: The graph.
        held: The tensors that its parameters stand for.
        mesh: The mesh.

    Raises:
        ArgumentError: if one is planned on another mesh.
    """
    found: dict[Value, Spec] = {}
    for p, tensor in zip(graph.params, held):
        known = shards_of(tensor)
        wanted = getattr(tensor, "sharding", None)
        if wanted is not None:
            if wanted.mesh.names != mesh.names:
                reject(ArgumentError, "shard",
                       f"the parameter {p.label!r} is planned on the mesh ({wanted.mesh}), and the "
                       f"program has the mesh ({mesh})",
                       fix="make all layouts of one Layout(device_matrix, alias_name)")  # fmt: skip
            wanted = layout_of(mesh, wanted.spec)
            label = f"parameter {p.label!r}"
            found[p.value] = spec_of(wanted, p.value.type.static_shape, mesh, label)
        elif known is not None and known.mesh == mesh and p.role is Role.PARAMETER:
            found[p.value] = known.spec
    return found
