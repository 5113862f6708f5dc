"""Merges what two branches computed into the results of one node.

A tensor of another size on each side of a branch: one whose sizes the condition decides.

Both sides are filled up to the larger size inside of the branch, and cut to the right one outside.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from tvmgraph import dtypes
from tvmgraph.capture.frame import Unset
from tvmgraph.capture.identity import choice_of, may_be
from tvmgraph.capture.region import Region
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.capture.traced_number import NUMBERS, TracedNumber, as_scalar, held, kind_of, wider
from tvmgraph.core.arguments import literal
from tvmgraph.core.op import F
from tvmgraph.core.symbols import Symbol, text_of
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import Dim, TensorType
from tvmgraph.graph import Value

if TYPE_CHECKING:
    from tvmgraph.capture.effects import Noted
    from tvmgraph.capture.recorder import Recorder
    from tvmgraph.graph import Value

T = TypeVar("T")
Plan = Callable[[list[Tensor]], Any]
_ATOMS = (int, float, bool, str, bytes, complex, type(None), slice, range, dtypes.DType)


class Mismatch(Exception):
    """Two values that cannot be merged; the text says why.

    Attributes:
        fix: What to write instead.
    """

    def __init__(
        self, why: str, fix: str = "make both sides give the same shape and dtype"
    ) -> None:
        super().__init__(why)
        self.fix = fix


def number_type(value: object) -> type | None:
    """Returns the type of a Python number, or of the one a tensor stands for.

    Args:
        value: Any object.
    """
    kind = kind_of(value)
    return kind if kind in NUMBERS else None


def as_tensor(value: Any, dtype: dtypes.DType | None = None) -> Tensor:
    """Makes a 0-d tensor of a Python number.

    Args:
        value: A number or a tensor.
        dtype: dtype of the tensor; that of the number by default.
    """
    if isinstance(value, Tensor):
        return value if dtype is None or value.dtype is dtype else F.cast(value, dtype)
    return as_scalar(value, dtype or NUMBERS[kind_of(value)])


def common_dtype(a: Any, b: Any) -> dtypes.DType | None:
    """Returns the dtype in which a number and a number or tensor meet.

    Args:
        a: A number or a tensor.
        b: Another one.

    Raises:
        Mismatch: if one is a number that the other one's dtype cannot hold.
    """
    kinds = [number_type(a), number_type(b)]
    if all(kinds):
        return NUMBERS[wider(*[k for k in kinds if k is not None])]
    for kind, other in zip(kinds, (b, a)):
        if kind is None:
            continue
        holds = {bool: "b", int: "iuf", float: "f"}[kind]
        if other.dtype.kind not in holds:
            raise Mismatch(f"a Python {kind.__name__} on one side and {other.aval} on the other")
        return other.dtype
    return None


def describe(value: object) -> str:
    """Returns a short text for a mismatch.

    Args:
        value: Any object.
    """
    if isinstance(value, Tensor):
        return str(value.aval)
    if isinstance(value, Unset):
        return "nothing"
    if isinstance(value, Symbol):
        return f"a Python {value.kind.__name__}"
    if isinstance(value, (list, tuple, dict, set)):
        items = "1 item" if len(value) == 1 else f"{len(value)} items"
        return f"a {type(value).__name__} with {items}"
    return "None" if value is None else f"{type(value).__name__} {value!r:.40}"


@dataclass
class Side(Generic[T]):
    """What one branch did.

    Attributes:
        recorder: Who recorded it.
        region: Its nodes.
        result: What the callback returned.
        names: The variables of every frame at its end.
        changed: Contents of the containers it changed.
        assigned: Tensors it assigned, with what they denoted at its end.
        effects: What it did to containers of the outside.
    """

    recorder: Recorder
    region: Region
    result: T
    names: list[dict[str, object]]
    changed: dict[int, object]
    assigned: dict[int, tuple[Tensor, Value]]
    effects: list[Noted]

    def final(self, value: object) -> object:
        """Returns a tensor that denotes what ``value`` denoted at the end of the branch.

        Args:
            value: Any object.
        """
        if isinstance(value, Tensor) and id(value) in self.assigned:
            tensor, now = self.assigned[id(value)]
            return TracedTensor(self.recorder, now) if tensor is value else value
        return value

    def contents(self, container: object) -> Any:
        """Returns what a container held at the end of the branch.

        Args:
            container: A list, dict or set.
        """
        return self.changed.get(id(container), container)


class Merger:
    """Collects the pairs of values that differ between two regions.

    Args:
        recorder: The recorder.
        first: One branch, finished but for its results.
        second: The other.
        known: The containers that there were before, by ``id``; what they hold is merged in place.
        condition: Tensor ``bool[]``: whether the first is taken.
        refuse: Refuses to write to a tensor that has another size on each side.
        exact: Whether a number merges with its own class alone, and a tensor with one of its shape,
            as they must where Python may see which class or shape it has.

    Attributes:
        pairs: The tensors of which a result is one, by its number.
        decided: Tensors that were chosen inside a branch, with the number of what decided.
    """

    def __init__(
        self, recorder: Recorder, first: Side, second: Side, known: Container[int],
        condition: Tensor, refuse: Callable[[], None], exact: bool = False,
    ) -> None:  # fmt: skip
        self.recorder, self.known, self.exact = recorder, known, exact
        self.condition, self.refuse = condition, refuse
        self.sides = (first, second)
        self.regions = (first.region, second.region)
        self.outputs: tuple[list[Value], list[Value]] = ([], [])
        self.pairs: dict[int, tuple[Tensor, Tensor]] = {}
        self.decided: list[tuple[TracedTensor, int]] = []
        self._places: dict[tuple[int, ...], int] = {}
        self._resized: dict[tuple[int, ...], Plan] = {}

    def merge(self, a: object, b: object) -> Plan:
        """Returns how to build the merged value from the node's results.

        Args:
            a: What the one branch left.
            b: What the other one left.

        Raises:
            Mismatch: if no one value can stand for both.
        """
        if a is b:
            return lambda outs: a
        if isinstance(a, Unset) or isinstance(b, Unset):
            raise Mismatch(next(x.why for x in (a, b) if isinstance(x, Unset)))
        tensors = isinstance(a, Tensor) or isinstance(b, Tensor)
        if not tensors and _equal(a, b):
            return lambda outs: a
        if not tensors and isinstance(a, (list, tuple, dict)):
            return self._merge_containers(a, b)
        if all(isinstance(x, (Tensor, Symbol)) or type(x) in NUMBERS for x in (a, b)):
            return self._merge_tensors(a, b)
        fix = "choose between tensors or numbers, or decide by a Python value"
        if a is None or b is None:
            fix = "give a tensor on both sides, such as zeros of the same shape and dtype"
        raise Mismatch(f"{describe(a)} on one side and {describe(b)} on the other", fix)

    def _merge_containers(self, a: Any, b: Any) -> Plan:
        a, b = (side.contents(x) for side, x in zip(self.sides, (a, b)))
        if type(a) is not type(b) or len(a) != len(b):
            raise Mismatch(
                f"{describe(a)} on one side and {describe(b)} on the other",
                "make both sides give containers of the same length",
            )
        kind = type(a)
        if isinstance(a, dict):
            if list(a) != list(b):
                raise Mismatch(
                    f"a dict with the keys {list(a)} on one side and {list(b)} on the other",
                    "give both dicts the same keys in the same order",
                )
            plans = {k: self.merge(a[k], b[k]) for k in a}
            return lambda outs: kind((k, p(outs)) for k, p in plans.items())
        items = [self.merge(x, y) for x, y in zip(a, b)]
        if hasattr(a, "_fields"):
            return lambda outs: kind(*[p(outs) for p in items])
        return lambda outs: kind([p(outs) for p in items])

    def _merge_tensors(self, *objects: object) -> Plan:
        known = self._places.get(tuple(map(id, objects)))
        if known is not None:  # two names of one tensor stay that
            return lambda outs: outs[known]
        if tuple(map(id, objects)) in self._resized:
            return self._resized[tuple(map(id, objects))]
        a, b = (side.final(x) for side, x in zip(self.sides, objects))
        dtype = common_dtype(a, b)
        numbers = number_type(a), number_type(b)
        if self.exact and numbers[0] is not numbers[1]:
            raise Mismatch(f"{describe(a)} on one side and {describe(b)} on the other")
        pair: list[Tensor] = []
        for region, x in zip(self.regions, (a, b)):
            with self.recorder.recording_into(region):
                pair.append(as_tensor(x, dtype))
        if pair[0].aval is not pair[1].aval:
            return self._merge_sizes(objects, *pair)
        if any(numbers):
            kinds = [k for k in numbers if k is not None]
            return self.add(pair[0], pair[1], wider(*kinds) if len(kinds) == 2 else None)
        return self._choice(objects, pair)

    def _merge_sizes(self, objects: Sequence[object], a: Tensor, b: Tensor) -> Plan:
        """Merges tensors of other sizes; code that sees shapes is to see the right ones."""
        build = None if self.exact else resized(self, a, b)
        if build is None:
            raise Mismatch(f"{a.aval} on one side and {b.aval} on the other")
        pairs = zip(objects, self.regions)
        others = [t for t, r in pairs if isinstance(t, Tensor) and not made_in(r, t)]

        made: list[Tensor] = []

        def plan(outs: list[Tensor]) -> Tensor:
            if not made:  # two names of one tensor stay that
                made.append(build(outs))
                if others:
                    self.recorder.moving[id(made[0])] = made[0], self.refuse
                    self.recorder.moved.update((id(t), (t, self.refuse)) for t in made + others)
            return made[0]

        return self._resized.setdefault(tuple(map(id, objects)), plan)

    def _choice(self, objects: Any, pair: Sequence[Tensor]) -> Plan:
        """Adds a pair of tensors that stay what they are: others may be the same."""
        place = len(self.outputs[0])
        self._places[tuple(map(id, objects))] = place
        self.pairs[place] = objects
        plan = self.add(pair[0], pair[1])
        for side, value in enumerate(objects):
            self._decide(value, side)
        return plan

    def _decide(self, value: Tensor, side: int) -> None:
        """Makes known outside what decided inside of a branch which tensor a value is."""
        region = self.regions[side]
        for t in may_be(value).values():
            choice = choice_of(t)
            if choice is None or not made_in(region, choice.condition):
                continue
            assert isinstance(t, TracedTensor)  # others are not chosen
            if all(made_in(region, u) for u in may_be(t).values()):
                continue
            self.decided.append((t, len(self.outputs[0])))
            pair = [as_tensor(False), as_tensor(False)]
            pair[side] = choice.condition
            self.add(pair[0], pair[1])

    def add(self, a: Tensor, b: Tensor, number: type | None = None) -> Plan:
        """Adds a pair of tensors of one type.

        Args:
            a: That of the one branch.
            b: That of the other one.
            number: The class of the number that both stand for; None for none.
        """
        index = len(self.outputs[0])
        for region, outputs, x in zip(self.regions, self.outputs, (a, b)):
            with self.recorder.recording_into(region):
                outputs.append(self.recorder.value_of(x))
        return lambda outs: outs[index] if number is None else TracedNumber(outs[index], number)

    def add_values(self, a: Value, b: Value) -> Plan:
        """Adds a pair of graph values of one type.

        Args:
            a: That of the one branch.
            b: That of the other one.
        """
        return self.add(TracedTensor(self.recorder, a), TracedTensor(self.recorder, b))

    def keep(self, value: object, side: int) -> Plan:
        """Merges a value that only one branch has with whatever costs least on the other.

        Args:
            value: Any object.
            side: Which branch has it: 0 or 1.
        """
        if id(value) in self.known:
            return lambda outs: value
        value = self.sides[side].final(value)
        tensor = held(value)
        if isinstance(tensor, TracedTensor):
            if not self.regions[side].defines(tensor.value):
                return lambda outs: value
            zeros = self._zeros(tensor.aval, 1 - side)
            pair = (tensor, zeros) if side == 0 else (zeros, tensor)
            if tensor is value and tensor.choice is not None:
                return self._choice((value, value), pair)
            return self.add(*pair, number=None if tensor is value else kind_of(value))
        if isinstance(value, dict):
            plans = {k: self.keep(v, side) for k, v in value.items()}
            kind: Any = type(value)
            return lambda outs: kind((k, p(outs)) for k, p in plans.items())
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            items = [self.keep(v, side) for v in value]
            kind = type(value)
            return lambda outs: kind([p(outs) for p in items])
        return lambda outs: value

    def _zeros(self, type: TensorType, side: int) -> Tensor:
        with self.recorder.recording_into(self.regions[side]):
            return zeros(type)


def made_in(region: Region, value: Tensor) -> bool:
    """Whether a tensor comes into being in a region.

    Args:
        region: The region.
        value: A tensor of the capture, or of the outside.
    """
    return isinstance(value, TracedTensor) and region.defines(value.value)


def zeros(type: TensorType) -> Tensor:
    """Returns zeros, for a value that nobody will look at.

    Args:
        type: Shape and dtype.
    """
    return F.zeros(type.static_shape, type.dtype)


def _equal(a: object, b: object) -> bool:
    return type(a) is type(b) and isinstance(a, _ATOMS) and literal(a) == literal(b)


# ---- values whose sizes differ ------------------------------------------------------------------


Build = Callable[[list[Tensor]], Tensor]


@dataclass
class _Axis:
    """An axis whose size differs.

    Attributes:
        place: Which one.
        sizes: Its size on each side.
        limits: How small and large it may be.
    """

    place: int
    sizes: tuple[int | Dim, int | Dim]
    limits: tuple[int, int]


def resized(merger: Merger, a: Tensor, b: Tensor) -> Build | None:
    """Returns how to build the one tensor; ``None`` if more than sizes that are known differs.

    Args:
        merger: What merges the two sides.
        a: The tensor of the one side.
        b: That of the other one.
    """
    axes = _axes(merger.recorder, a, b)
    if axes is None:
        return None
    filled = []
    for side, x in enumerate((a, b)):
        with merger.recorder.recording_into(merger.regions[side]):
            for axis in axes:
                x = _filled(x, axis, axis.sizes[side])
            filled.append(x)
    whole = merger.add(*filled)
    sizes = [_size(merger, axis) for axis in axes]

    def cut(outs: list[Tensor]) -> Tensor:
        x = whole(outs)
        for axis, size_of in zip(axes, sizes):
            places = F.count_up(size_of(outs), "counted")
            (size,) = places.aval.shape
            merger.recorder.limits[text_of(size)] = axis.limits
            x = x[(*[slice(None)] * axis.place, places)]
        return x

    return cut


def _axes(recorder: Recorder, a: Tensor, b: Tensor) -> list[_Axis] | None:
    shapes = a.aval.shape, b.aval.shape
    if a.dtype is not b.dtype or len(shapes[0]) != len(shapes[1]):
        return None
    found = []
    for i, sizes in enumerate(zip(*shapes)):
        if text_of(sizes[0]) == text_of(sizes[1]):
            continue
        first, second = (_limits(recorder, s) for s in sizes)
        if first is None or second is None:
            return None
        found.append(_Axis(i, sizes, (min(first[0], second[0]), max(first[1], second[1]))))
    return found


def _limits(recorder: Recorder, size: int | Dim) -> tuple[int, int] | None:
    """Returns how small and large a size may be; no axis is filled up that may be empty."""
    if isinstance(size, Dim):
        found = recorder.limits.get(size.text)
        return found if found is not None and found[0] else None
    return size, size


def _filled(x: Tensor, axis: _Axis, size: int | Dim) -> Tensor:
    """Returns a tensor with more elements, of whatever value, along an axis."""
    most = axis.limits[1]
    if isinstance(size, Dim):
        last = as_scalar(size, dtypes.int64) - 1
        return x[(*[slice(None)] * axis.place, F.minimum(Tensor(np.arange(most)), last))]
    pads = [(0, most - size if i == axis.place else 0) for i in range(x.ndim)]
    return F.pad_constant(x, pads=tuple(pads), value=0)


def _size(merger: Merger, axis: _Axis) -> Build:
    """Returns how to build the size of an axis: of the condition alone, where that is enough."""
    if not any(isinstance(s, Dim) for s in axis.sizes):
        return lambda outs: F.where(
            merger.condition, *[as_scalar(s, dtypes.int64) for s in axis.sizes]
        )
    pair = []
    for region, size in zip(merger.regions, axis.sizes):
        with merger.recorder.recording_into(region):
            pair.append(as_scalar(size, dtypes.int64))
    return merger.add(*pair)
