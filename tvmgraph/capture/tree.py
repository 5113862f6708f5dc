"""Nested tuples, lists and dicts: finding tensors, replacing them, describing results."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any

from tvmgraph.capture.containers import dict_like, items_in, list_like, of_kind, pairs
from tvmgraph.core.tensor import Tensor


@dataclass(frozen=True)
class Leaf:
    """One leaf of a result.

    Attributes:
        kind: ``"output"`` (graph output number), ``"number"`` (the same, as a Python number),
            ``"argument"`` (tensor argument number),
            ``"object"`` (a tensor that was read by reference), ``"constant"``, or ``"given"``
            (a container among the arguments, as a path), or ``"chosen"`` (the number of an output
            that decides, and two leaves), or ``"view"`` (an output, the leaf of what it was
            taken out of, and the index), or ``"part"`` (the same without an output).
        value: The number, tensor or constant.
    """

    kind: str
    value: Any


@dataclass(frozen=True)
class Branch:
    """A container of a result: how to build it, and its children."""

    build: Callable[[list[object]], object]
    children: tuple[Structure, ...]
    shared: bool = False  # whether it is a part of the result twice


Structure = Leaf | Branch


def tensors(value: object) -> list[Tensor]:
    """Returns the tensors of a structure in order.

    Args:
        value: Any object.
    """
    found: list[Tensor] = []
    _walk(value, found)
    return found


def leaves(value: object) -> list[object]:
    """Returns what is no tuple, list, dict, set or deque in a structure.

    Args:
        value: Any object.
    """
    if isinstance(value, (tuple, list)):
        return [leaf for v in items_in(value) for leaf in leaves(v)]
    if isinstance(value, dict):
        return [leaf for _, v in pairs(value) for leaf in leaves(v)]
    if isinstance(value, (set, frozenset, deque)):
        return [leaf for v in value for leaf in leaves(v)]
    return [value]


def _walk(value: object, found: list[Tensor]) -> None:
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, (tuple, list)):
        for v in items_in(value):
            _walk(v, found)
    elif isinstance(value, dict):
        for _, v in pairs(value):
            _walk(v, found)


def has_tensor_keys(value: Iterable[object]) -> bool:
    """Whether a tensor is a key, or in one: it is found by its identity alone.

    Args:
        value: The keys.
    """
    keys = dict.keys(value) if isinstance(value, dict) else value
    return any(k.__class__ is not str and tensors(k) for k in keys)


def replace(value: object, new: Iterator[object], other: Callable[[Any], Any] | None = None) -> Any:
    """Returns the structure with its tensors replaced in order.

    Args:
        value: The structure.
        new: What comes instead of its tensors.
        other: Gives what comes instead of anything else, which stays by default.
    """
    if isinstance(value, Tensor):
        return next(new)
    if isinstance(value, (tuple, list)):
        return list_like(value, [replace(v, new, other) for v in items_in(value)])
    if isinstance(value, dict):
        return dict_like(value)((k, replace(v, new, other)) for k, v in pairs(value))
    return value if other is None else other(value)


class Described:
    """Describes results; a container that comes again is the same container.

    Args:
        leaf: Describes what is no container.
        known: Describes what existed before, ``None`` for others.
        others: Describes what is built in the same call, with the same containers.
    """

    def __init__(
        self, leaf: Callable[[object], Leaf],
        known: Callable[[object], Leaf | None] = lambda v: None, others: Described | None = None,
    ) -> None:  # fmt: skip
        self._leaf, self._known = leaf, known
        self._seen: dict[int, Structure] = {} if others is None else others._seen

    def __call__(self, value: object) -> Structure:
        """Returns the structure of a value."""
        if not isinstance(value, (list, dict)):
            return self._known(value) or describe(value, self._leaf, self)
        found = self._seen.get(id(value))
        if isinstance(found, Branch):
            object.__setattr__(found, "shared", True)
        if found is None:
            found = self._known(value) or describe(value, self._leaf, self)
            self._seen[id(value)] = found
        return found


def describe(
    value: Any, leaf: Callable[[object], Leaf], inner: Callable[[object], Structure] | None = None
) -> Structure:
    """Describes a result so that :func:`rebuild` can make it again from new outputs.

    Args:
        value: Any object.
        leaf: Describes what is no container.
        inner: Describes what a container holds; by default as the result itself.
    """
    each = inner or (lambda v: describe(v, leaf))
    if isinstance(value, (tuple, list)) and not isinstance(value, Tensor):
        children = tuple(map(each, value))
        if hasattr(value, "_fields"):
            kind: Any = type(value)
            return Branch(lambda items: kind(*items), children)
        if getattr(value, "__dict__", None):  # more than its items
            return leaf(value)
        return Branch(partial(of_kind, type(value)), children)  # holds nothing of the value
    if isinstance(value, dict) and not getattr(value, "__dict__", None):
        keys, make = tuple(value), dict_like(value)
        named, children = tuple(map(each, keys)), tuple(map(each, value.values()))
        if all(isinstance(k, Leaf) and k.kind == "constant" for k in named):
            return Branch(lambda items: make(zip(keys, items)), children)
        return Branch(lambda items: make(_pairs(items)), (*named, *children))
    if isinstance(value, slice):
        return Branch(lambda items: slice(*items), tuple(map(each, _parts(value))))
    for kind, make in _VIEWS.items():
        if isinstance(value, kind):
            return Branch(make, tuple(map(each, value)))
    if is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in fields(value)]
        more = getattr(value, "__dict__", {}).keys() - {*names}
        if more or not all(hasattr(value, n) for n in names):
            return leaf(value)
        children = tuple(each(getattr(value, n)) for n in names)
        return Branch(partial(_with_fields, type(value), names), children)
    return leaf(value)


def _pairs(items: list[object]) -> Iterator[tuple[object, object]]:
    """Yields keys with values; first come the keys."""
    half = len(items) // 2
    return zip(items[:half], items[half:])


def _parts(value: slice) -> tuple[object, ...]:
    return value.start, value.stop, value.step


#: What makes a view of a dict from what it goes over.
_VIEWS: dict[type, Callable[[list[Any]], Any]] = {
    KeysView: lambda items: dict.fromkeys(items).keys(),
    ValuesView: lambda items: dict(enumerate(items)).values(),
    ItemsView: lambda items: dict(items).items(),
}
VIEWS = tuple(_VIEWS)


def _with_fields(kind: type[object], names: list[str], items: Sequence[object]) -> object:
    """Makes an instance of a data class, frozen or not, without running anything of it."""
    new = object.__new__(kind)
    for name, item in zip(names, items):
        object.__setattr__(new, name, item)
    return new


def rebuild(
    structure: Structure, outputs: list[Tensor], arguments: Sequence[object], given: Any = None,
    made: dict[int, object] | None = None,
) -> Any:  # fmt: skip
    """Builds a result from graph outputs and tensor arguments.

    Args:
        structure: What it is.
        outputs: Results of the graph.
        arguments: The tensors among the arguments.
        given: ``(args, kwargs)`` of the call.
        made: Containers that are shared, by the ``id`` of their structure.
    """
    if isinstance(structure, Branch):
        made = {} if made is None else made
        if structure.shared and id(structure) in made:
            return made[id(structure)]
        items = [rebuild(c, outputs, arguments, given, made) for c in structure.children]
        built = structure.build(items)
        if structure.shared:
            made[id(structure)] = built
        return built
    if structure.kind == "given":
        for key in structure.value:
            given = given[key]
        return given
    if structure.kind == "output":
        return outputs[structure.value]
    if structure.kind in ("view", "part"):
        *own, around, index = structure.value
        around = rebuild(around, outputs, arguments, given, made)
        if not own:
            return around[index]
        view = rebuild(own[0], outputs, arguments, given, made)
        view._base = (around, index)
        return view
    if structure.kind == "chosen":
        flag, *leaves = structure.value
        return rebuild(leaves[not outputs[flag].item()], outputs, arguments, given, made)
    if structure.kind == "number":
        return outputs[structure.value].item()
    return arguments[structure.value] if structure.kind == "argument" else structure.value


def labels(arguments: Mapping[str, object]) -> dict[int, str]:
    """Returns a name for every tensor argument, by ``id``.

    Args:
        arguments: The arguments by name.
    """
    found: dict[int, str] = {}
    for name, value in arguments.items():
        inner = tensors(value)
        for i, t in enumerate(inner):
            found.setdefault(id(t), name if isinstance(value, Tensor) else f"{name}_{i}")
    return found


class Names:
    """Makes names distinct by numbering repeats."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._repeats: Counter[str] = Counter()

    def add(self, name: str) -> str:
        """Returns the name, with a number if it was given before.

        Args:
            name: The name.
        """
        found = name
        while found in self._taken:
            self._repeats[name] += 1
            found = f"{name}_{self._repeats[name]}"
        self._taken.add(found)
        return found


def unique(names: list[str]) -> list[str]:
    """Makes names distinct by numbering repeats.

    Args:
        names: The names.
    """
    return list(map(Names().add, names))
