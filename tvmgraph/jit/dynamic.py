"""What varies between the calls of a jitted function, and the captures that serve many calls.

Calls that differ in sizes and numbers alone form a family. The first call of a family is captured
as it is. When another size of an axis or another number is seen, the function is captured with a
symbol in that place; one such capture serves all calls that fit it. Where the captured code turns
out to need the number itself, it stays a constant and every value has a capture of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.capture.checks import MortalKeys, identified, own_attributes
from tvmgraph.capture.containers import items_in, pairs
from tvmgraph.capture.promotion import (
    NUMBERS,
    MutableFloat,
    MutableInt,
    MutableTuple,
    Operand,
    Promotion,
    Slot,
    axis_label,
    number_label,
)
from tvmgraph.core.arguments import literal
from tvmgraph.core.limits import limits_of
from tvmgraph.core.sizes import LEAST
from tvmgraph.core.symbols import Specialise
from tvmgraph.core.tensor import Tensor

if TYPE_CHECKING:
    from tvmgraph.config import JitConfig
    from tvmgraph.jit.function import Entry

_HISTORY = 6  # calls of a family that are remembered to see which sizes go together
_MAX_FAMILIES = 64
_MAX_SYMBOLIC = 8  # captures with symbols per family, the newest first
_MAX_ITEMS = 8  # of a tuple that is looked at again at every call
_TUPLES = frozenset((tuple, MutableTuple))  # another class may say itself what it holds
_MAX_DECIDED = 4  # captures of one set of symbols, after which deciding about them is given up

Axis = tuple[int, int]  # number of the tensor argument, axis
Make = Callable[["Promotion | None"], "Entry"]


def pattern_of(value: Any, shapes: list[tuple[int, ...]], numbers: list[object]) -> object:
    """Returns what the calls of a family have in common, and collects what differs.

    Tensors count by dtype and number of axes, Python numbers by class, anything else as in the
    key of a call.

    Args:
        value: The arguments of a call: tensors, numbers, and containers of them.
        shapes: Gets the shape of every tensor.
        numbers: Gets every Python number.
    """
    if isinstance(value, Tensor):
        shapes.append(value.aval.shape)  # pyright: ignore[reportArgumentType]
        return (value.aval.dtype, len(value.aval.shape), value.__class__)
    kind = value.__class__
    if kind in NUMBERS:
        numbers.append(value)
        return kind
    if kind in (tuple, list):
        return (kind, tuple([pattern_of(v, shapes, numbers) for v in value]))
    if value is None or kind in (bool, str, bytes, complex) or isinstance(value, dtypes.DType):
        return (kind, value)
    if isinstance(value, dict):
        items = [
            (k, pattern_of(v, shapes, numbers) if isinstance(k, (str, int)) else id(v))
            for k, v in (value.items() if kind is dict else pairs(value))
        ]
        return (kind, tuple(items), *own_attributes(value))
    if isinstance(value, (tuple, list)):
        items = [pattern_of(v, shapes, numbers) for v in items_in(value)]
        return (kind, tuple(items), *own_attributes(value))
    if isinstance(value, np.ndarray):
        return (kind, value.dtype.str, value.shape, value.tobytes())
    return identified(value)


@dataclass
class _Call:
    """Sizes and numbers of one call."""

    shapes: tuple[tuple[int, ...], ...]
    numbers: tuple[object, ...]


@dataclass
class Family:
    """Calls that differ in sizes and numbers alone.

    Attributes:
        calls: The newest calls that were captured, newest first.
        axes: Axes that vary.
        numbers: Python numbers among the arguments that vary.
        slots: Places outside of the function whose number varies, by key.
        fixed: What must be a constant: axes, ``("number", i)`` and keys of slots.
        entries: Captures with symbols, newest first.
        names: Names of axes that the user declared; axes of one name are equal.
    """

    calls: list[_Call] = field(default_factory=list)
    axes: set[Axis] = field(default_factory=set)
    numbers: set[int] = field(default_factory=set)
    slots: dict[object, Slot] = field(default_factory=dict)
    fixed: set[object] = field(default_factory=set)
    entries: list[Entry] = field(default_factory=list)
    names: dict[Axis, str] = field(default_factory=dict)

    def declare(self, axes: Mapping[Axis, str]) -> None:
        """Notes axes that the user says vary; those of one name are equal.

        Args:
            axes: ``(argument, axis)`` -> a name, or ``""``.
        """
        self.axes |= axes.keys()
        self.names.update({axis: name for axis, name in axes.items() if name})

    def learn(self, call: _Call) -> list[str]:
        """Compares a call with those before; returns what newly varies, in words.

        Args:
            call: Its sizes and numbers.
        """
        news: list[str] = []
        for old in self.calls:
            for i, (a, b) in enumerate(zip(old.shapes, call.shapes)):
                for axis, (m, n) in enumerate(zip(a, b)):
                    # sizes below the least are compiled for themselves
                    if m != n and n >= LEAST and (i, axis) not in self.axes:
                        self.axes.add((i, axis))
                        news.append(axis_label(i, axis))
            for i, (a, b) in enumerate(zip(old.numbers, call.numbers)):
                if literal(a) != literal(b) and i not in self.numbers:
                    self.numbers.add(i)
                    news.append(number_label(i))
        for i, number in enumerate(call.numbers):
            if number.__class__ in (MutableInt, MutableFloat):
                self.numbers.add(i)
        self.calls = [call, *self.calls][:_HISTORY]
        return news

    def promotion(self, call: _Call) -> Promotion:
        """Returns the symbols for a call.

        Args:
            call: Its sizes and numbers; small sizes stay constants.
        """
        sizes: dict[Axis, str] = {}
        names: dict[object, str] = {}
        for i, axis in sorted(self.axes):
            if (i, axis) in self.fixed or call.shapes[i][axis] < LEAST:
                continue
            # axes that always had equal sizes share a symbol
            same = tuple(c.shapes[i][axis] for c in self.calls)
            group = self.names.get((i, axis), same)
            sizes[i, axis] = names.setdefault(group, f"s{len(names)}")
        numbers = {i: f"a{i}" for i in sorted(self.numbers) if ("number", i) not in self.fixed}
        slots = [s for k, s in self.slots.items() if k not in self.fixed]
        kept = {f"g{i}": s for i, s in enumerate(slots) if type(s.read()) in (int, float)}
        found = {sizes[a]: limits_of(n) for a, n in self.names.items() if a in sizes}
        return Promotion(sizes, numbers, kept, {r: b for r, b in found.items() if b is not None})

    def fix(self, promotion: Promotion, roots: frozenset[str]) -> None:
        """Notes that the values of some symbols are needed.

        Args:
            promotion: The symbols of a capture.
            roots: Names of those whose values decided something.
        """
        self.fixed |= {axis for axis, name in promotion.sizes.items() if name in roots}
        self.fixed |= {("number", i) for i, name in promotion.numbers.items() if name in roots}
        self.fixed |= {slot.key for name, slot in promotion.slots.items() if name in roots}

    def add(self, entry: Entry, promotion: Promotion) -> None:
        """Keeps a capture with symbols.

        Args:
            entry: The capture.
            promotion: Its symbols.
        """
        alike = [e for e in self.entries if e.captured.promotion.key == promotion.key]
        if len(alike) >= _MAX_DECIDED:  # the code decides by the value again and again
            self.fix(promotion, entry.captured.decided)
        self.entries = [entry, *self.entries][:_MAX_SYMBOLIC]


class Varying:
    """The families of one jitted function."""

    def __init__(self) -> None:
        self.families: MortalKeys[Family] = MortalKeys()

    def family(self, args: object, kwargs: object) -> tuple[Family, _Call]:
        """Returns the family of a call, making it if need be, and what is special about it.

        Args:
            args: Positional arguments.
            kwargs: Keyword arguments.
        """
        shapes: list[tuple[int, ...]] = []
        numbers: list[object] = []
        pattern = pattern_of((args, kwargs), shapes, numbers)
        family = self.families.get(pattern)
        if family is None:
            while len(self.families) >= _MAX_FAMILIES:
                self.families.pop(next(iter(self.families)))
            family = self.families[pattern] = Family()
            self.families.forget_with((args, kwargs), pattern)
        return family, _Call(tuple(shapes), tuple(numbers))

    def find(
        self, leaves: Sequence[Tensor], args: object, kwargs: object, config: JitConfig
    ) -> tuple[Entry, list[Operand]] | None:
        """Returns a capture with symbols that fits a call, and the numbers it needs.

        Args:
            leaves: The tensors among the arguments.
            args: Positional arguments.
            kwargs: Keyword arguments.
            config: The settings of now; captures under others do not fit.
        """
        if not self.families:
            return None
        family = self.families.get(pattern_of((args, kwargs), [], []))
        for entry in family.entries if family is not None else ():
            resolve = entry.captured.resolve
            values = resolve(leaves, (args, kwargs)) if resolve is not None else None
            if values is not None and entry.failure(config) is None:
                return entry, values
        return None

    def entries(self, args: object, kwargs: object) -> list[Entry]:
        """Returns the captures with symbols of a call's family.

        Args:
            args: Positional arguments.
            kwargs: Keyword arguments.
        """
        family = self.families.get(pattern_of((args, kwargs), [], []))
        return [] if family is None else family.entries

    def capture(
        self, args: object, kwargs: object, slots: Sequence[Slot], make: Make,
        declared: Mapping[Axis, str] | None = None, dynamic: bool = False,
    ) -> tuple[Entry, str]:  # fmt: skip
        """Captures a call, with symbols for what varies.

        Args:
            args: Positional arguments.
            kwargs: Keyword arguments.
            slots: Places outside of the function that hold another number than before.
            make: Captures and compiles with the symbols it is given.
            declared: Axes that the user declared as varying, with their names if they have any.
            dynamic: Whether all axes vary.

        Returns:
            The entry, and what became symbolic because of this call, in words.
        """
        family, call = self.family(args, kwargs)
        if declared is not None:
            family.declare(declared)
        if dynamic:
            family.declare({(i, a): "" for i, s in enumerate(call.shapes) for a in range(len(s))})
        news = family.learn(call)
        for slot in slots:
            if slot.key not in family.slots and slot.key not in family.fixed:
                news.append(slot.label)
            family.slots.setdefault(slot.key, slot)
        kept: list[str] = []  # what turned out to be constants
        while promotion := family.promotion(call):
            try:
                entry = make(promotion)
            except Specialise as e:
                every = _all_roots(promotion)
                needed = e.roots & every or every  # a symbol of something else decides by all
                family.fix(promotion, needed)
                kept.append(f"{promotion.describe(needed)} stays constant: needed at {e.at}")
                continue
            except Exception as e:
                entry = make(None)  # an error of the code itself is raised here
                family.fix(promotion, _all_roots(promotion))
                why = str(e).partition("\n")[0]
                kept.append(f"{promotion.describe(_all_roots(promotion))} stays constant: {why}")
                break
            family.add(entry, promotion)
            return entry, "; ".join([*filter(None, [", ".join(news)]), *kept])
        else:
            entry = make(None)
        return entry, "; ".join(kept)


class RecentCall:
    """A call of a capture that takes numbers; the next one is likely to differ in those alone.

    Args:
        entry: The capture.
        args: The arguments of the call: tensors and plain data, and tuples of these.
    """

    def __init__(self, entry: Entry, args: tuple[object, ...]) -> None:
        self.entry = entry
        self._kinds = _kind_of(args, [])

    def match(
        self, args: tuple[object, ...], config: JitConfig
    ) -> tuple[Entry | None, list[Operand], list[Tensor]]:
        """Returns the capture, if it fits, its numbers, and the tensors among the arguments.

        Args:
            args: The arguments of a call.
            config: The settings of now.
        """
        entry = self.entry
        resolve = entry.captured.resolve
        leaves: list[Tensor] = []
        if resolve is None or _kind_of(args, leaves) != self._kinds:
            return None, [], []
        numbers = resolve(leaves, (args, {}))
        if numbers is None or entry.failure(config) is not None:
            return None, [], []
        return entry, numbers, leaves


def _kind_of(value: object, leaves: list[Tensor]) -> object:
    """What another call must have in the place of an argument; collects the tensors."""
    if isinstance(value, Tensor):
        leaves.append(value)
        return value.aval
    kind = value.__class__
    if isinstance(value, tuple) and type(value) in _TUPLES:
        return (kind, *[_kind_of(v, leaves) for v in value])
    return kind if kind in NUMBERS else (kind, value)


def _is_simple(value: object) -> bool:
    """Whether :func:`_kind_of` tells what of an argument matters."""
    if isinstance(value, tuple) and type(value) in _TUPLES:
        return len(value) <= _MAX_ITEMS and all(map(_is_simple, value))
    kind = value.__class__
    return isinstance(value, Tensor) or value is None or kind in NUMBERS or kind in (bool, str)


def recent_call(entry: Entry, args: tuple[object, ...], kwargs: object) -> RecentCall | None:
    """Returns what recognises a call like this one, ``None`` where it takes more.

    Args:
        entry: The capture that served it.
        args: Positional arguments.
        kwargs: Keyword arguments; calls with some are not recognised.
    """
    captured = entry.captured
    if (
        kwargs
        or captured.aliasing_matters
        or not captured.promotion.numbers
        or entry.aliases is not None
    ):
        return None
    return RecentCall(entry, args) if all(map(_is_simple, args)) else None


def _all_roots(promotion: Promotion) -> frozenset[str]:
    return frozenset({*promotion.sizes.values(), *promotion.numbers.values(), *promotion.slots})
