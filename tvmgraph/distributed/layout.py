"""Meshes of processes and how tensors are split over them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvmgraph.distributed import engine
from tvmgraph.errors import ArgumentError, ShapeError, reject

Axes = tuple[str, ...]
Spec = tuple[Axes, ...]  # for every dimension of a tensor the axes of the mesh that split it


@dataclass(frozen=True)
class Mesh:
    """Processes in a grid whose axes have names; ranks count along the last axis first.

    Attributes:
        shape: Processes along every axis.
        names: The axes.
    """

    shape: tuple[int, ...]
    names: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of processes."""
        return math.prod(self.shape)

    def count(self, axes: Axes) -> int:
        """Returns into how many parts some axes split.

        Args:
            axes: Names of axes.
        """
        return math.prod(self.shape[self.names.index(a)] for a in axes)

    def group(self, axes: Axes) -> str:
        """Returns the name of the groups of processes that differ along some axes.

        Args:
            axes: Names of axes.
        """
        return engine.mesh_text(self.names, self.shape, axes)

    def index_of(self, rank: int, axes: Axes) -> int:
        """Returns which of the shards along some axes a process has.

        Args:
            rank: Number of the process.
            axes: Names of axes, the outermost first.
        """
        found = 0
        for a in axes:
            i = self.names.index(a)
            found = found * self.shape[i] + rank // math.prod(self.shape[i + 1 :]) % self.shape[i]
        return found

    def ordered(self, axes: Sequence[str]) -> Axes:
        """Returns axes in the order of the mesh.

        Args:
            axes: Names of axes, in any order.
        """
        return tuple(n for n in self.names if n in axes)

    def local(self, shape: Sequence[int], spec: Spec) -> tuple[int, ...]:
        """Returns the shape of one process's part.

        Args:
            shape: Shape of the whole tensor.
            spec: Axes of the mesh that every dimension is split by.
        """
        return tuple(n // self.count(axes) for n, axes in zip(shape, spec, strict=True))

    def __str__(self) -> str:
        return ",".join(f"{n}={s}" for n, s in zip(self.names, self.shape))


class Layout:
    """A mesh of processes; called with one entry per dimension, how a tensor is split over it.

    Args:
        device_matrix: Processes along every axis of the mesh, such as ``(2, 4)``.
        alias_name: Names of these axes, such as ``("dp", "mp")``.
        rank_list: Processes in the order of the mesh; by default all, in order.

    Raises:
        ArgumentError: if the names do not fit.

    Example:
        >>> Layout((2, 4), ("dp", "mp"))("dp", "None")
        Layout(dp=2,mp=4: dp .)
    """

    def __init__(
        self,
        device_matrix: Sequence[int],
        alias_name: Sequence[str],
        rank_list: Sequence[int] | None = None,
    ) -> None:
        shape, names = tuple(device_matrix), tuple(alias_name)
        unique = len(set(names)) == len(names) == len(shape)
        if not unique or "None" in names or not all(isinstance(n, int) and n > 0 for n in shape):
            raise ArgumentError(
                "alias_name must have a name of its own, other than 'None', for every size of "
                "device_matrix", op="Layout",
                got=f"device_matrix={device_matrix!r}, alias_name={alias_name!r}",
            )  # fmt: skip
        self.mesh = Mesh(shape, names)
        if rank_list is not None and list(rank_list) != list(range(self.mesh.size)):
            reject(ArgumentError, "Layout", "a mesh has the processes in order",
                   f"rank_list={rank_list!r}", "leave rank_list out")  # fmt: skip
        self.spec: Spec | None = None

    def to_dict(self) -> dict[str, object]:
        """Returns the layout as MindSpore writes it down.

        In ``tensor_map`` axes of the mesh count from the last one, and -1 stands for a dimension
        that is not split.

        Raises:
            ArgumentError: if it is no layout of a tensor.
        """
        if self.spec is None:
            raise ArgumentError("the layout has no tensor_map", op="Layout.to_dict",
                                fix="call the layout first")  # fmt: skip
        names = self.mesh.names[::-1]
        places = [tuple(names.index(a) for a in axes) for axes in self.spec]
        return {
            "device_matrix": self.mesh.shape,
            "tensor_map": tuple(p if len(p) > 1 else p[0] if p else -1 for p in places),
            "interleaved_parallel": False,
            "alias_name": self.mesh.names,
            "rank_list": list(range(self.mesh.size)),
        }

    def __call__(self, *tensor_map: object) -> Layout:
        """Returns how a tensor is split: per dimension a name, several names, or ``"None"``.

        Raises:
            ArgumentError: if a name is none of the mesh's, or comes twice.
        """
        found = Layout(self.mesh.shape, self.mesh.names)
        found.spec = tuple(_axes(entry) for entry in tensor_map)
        used = [a for axes in found.spec for a in axes]
        if not set(used) <= set(self.mesh.names) or len(set(used)) < len(used):
            reject(ArgumentError, "Layout",
                   f"the axes must be different ones of {', '.join(self.mesh.names)}",
                   repr(tensor_map))  # fmt: skip
        return found

    @property
    def text(self) -> str:
        """The layout as :func:`parse` reads it."""
        spec = " ".join("+".join(axes) or "." for axes in self.spec or ())
        return f"{self.mesh}: {spec}".rstrip() if self.spec is not None else f"{self.mesh}:?"

    def __repr__(self) -> str:
        return f"Layout({self.text})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and (self.mesh, self.spec) == (other.mesh, other.spec)

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec))


def layout_of(mesh: Mesh, spec: Spec) -> Layout:
    """Returns a layout of a mesh.

    Args:
        mesh: The mesh.
        spec: Axes of the mesh that every dimension is split by.
    """
    found = Layout(mesh.shape, mesh.names)
    found.spec = spec
    return found


def _axes(entry: Any) -> Axes:
    if entry in (None, "None"):
        return ()
    return (entry,) if isinstance(entry, str) else tuple(entry)


@functools.cache
def parse(text: str) -> tuple[Mesh, Spec]:
    """Returns the mesh and the split of a layout's text.

    Args:
        text: What :func:`text_of` returns.
    """
    sizes, _, dims = text.partition(":")
    pairs = [p.partition("=") for p in sizes.split(",")]
    mesh = Mesh(tuple(int(s) for _, _, s in pairs), tuple(n for n, _, _ in pairs))
    return mesh, tuple(() if d == "." else tuple(d.split("+")) for d in dims.split())


def text_of(mesh: Mesh, spec: Spec) -> str:
    """Returns the text of a layout.

    Args:
        mesh: The mesh.
        spec: Axes of the mesh that every dimension is split by.
    """
    return f"{mesh}: {' '.join('+'.join(a) or '.' for a in spec)}".rstrip()


def flat_mesh(size: int) -> Mesh:
    """Returns a mesh of which any strategy of integers can be built: one axis per prime factor.

    Args:
        size: Number of processes.
    """
    factors, rest, p = [], size, 2
    while rest > 1:
        while rest % p == 0:
            factors.append(p)
            rest //= p
        p += 1
    return Mesh(tuple(factors) or (1,), tuple(f"d{i}" for i in range(max(1, len(factors)))))


def spec_of(strategy: Any, shape: Sequence[int], mesh: Mesh, what: str, op: str = "shard") -> Spec:
    """Returns how a strategy splits a tensor.

    Args:
        strategy: A called :class:`Layout`, one integer per dimension, or ``None``: along the first
            dimension over all processes.
        shape: Shape of the tensor.
        mesh: The mesh of integers.
        what: What is split, for errors.
        op: What was called, for errors.

    Raises:
        ArgumentError: if the strategy fits neither the tensor nor the mesh.
        ShapeError: if a dimension cannot be split like this.
    """
    if strategy is None:
        spec = (mesh.names, *((),) * (len(shape) - 1)) if shape else ()
    elif isinstance(strategy, Layout):
        if strategy.spec is None:
            reject(ArgumentError, op, f"{what}: the layout says nothing about dimensions",
                   fix=f"call it: layout({', '.join(['...'] * len(shape))})")  # fmt: skip
        spec = strategy.spec
        mesh = strategy.mesh
    else:
        spec = _of_integers(tuple(strategy), mesh, what, op)
    if len(spec) != len(shape):
        reject(ArgumentError, op,
               f"{what}: the strategy {strategy!r} has {len(spec)} entries for the shape "
               f"{tuple(shape)}")  # fmt: skip
    for d, axes in enumerate(spec):
        if shape[d] % mesh.count(axes):
            reject(ShapeError, op,
                   f"{what}: dimension {d} of shape {tuple(shape)} cannot be cut into "
                   f"{mesh.count(axes)} equal parts")  # fmt: skip
    return spec


def _of_integers(strategy: tuple[object, ...], mesh: Mesh, what: str, op: str) -> Spec:
    """Gives every dimension the next axes whose product is its number."""
    free, spec = list(mesh.names), []
    for parts in strategy:
        if not isinstance(parts, int) or parts < 1:
            raise ArgumentError(
                f"{what}: a strategy has one integer from 1 on per dimension, not {parts!r}", op=op
            )
        chosen = _product(free, mesh, parts)
        if chosen is None:
            reject(ArgumentError, op,
                   f"{what}: the strategy {strategy} does not fit {mesh.size} processes",
                   fix="the product of its numbers must divide their number")  # fmt: skip
        free = [a for a in free if a not in chosen]
        spec.append(chosen)
    return tuple(spec)


def _product(free: list[str], mesh: Mesh, parts: int) -> Axes | None:
    """The first axes, in order, whose sizes multiply to a number."""
    if parts == 1:
        return ()
    for i, a in enumerate(free):
        size = mesh.count((a,))
        if size > 1 and parts % size == 0:
            rest = _product(free[i + 1 :], mesh, parts // size)
            if rest is not None:
                return (a, *rest)
    return None
