"""Noticing that captures serve too few calls: an argument differs, or functions are short-lived.

A function that is defined inside another one, a method of an object and a Cell are captured for
every function, object or Cell anew. Where many of one definition applied the same operators to
tensors of the same types and served few calls each, the next ones run in plain Python until they
have been called a number of times.
"""

from __future__ import annotations

import time
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass

from tvmgraph.capture.checks import has_contents, is_library, objects_in
from tvmgraph.capture.record import argument_labels
from tvmgraph.core.tensor import Tensor
from tvmgraph.graph import Graph
from tvmgraph.jit.call_key import key_of

_MAX_SHORT = 24  # captures in a row that served too few calls
_MAX_FLEETING = 6  # the same where objects of the argument's class were the reason elsewhere
_WAITED = 8  # calls of a function until it is captured if those before it were short-lived
_WORTH = 20  # times what capturing took: so long a capture must serve to have been worth it


@dataclass(frozen=True)
class Kind:
    """What a compiled function sees of an argument.

    Attributes:
        key: Hash of its part of the key, in which objects count by their ids.
        tensors: The types of its tensors.
        contents: Whether it is a container, whose items count in the key.
        objects: Its objects; another one may have got the id of one that is gone.
    """

    key: int
    tensors: tuple[object, ...]
    contents: bool
    objects: tuple[weakref.ref[object], ...]

    def differs(self, other: Kind) -> bool:
        """Whether a later argument differs in more than the types of its tensors.

        Args:
            other: The later argument.
        """
        gone = any(o() is None for o in self.objects)
        return (gone or self.key != other.key) and self.tensors == other.tensors


@dataclass
class Definition:
    """What is known of the functions that one definition made.

    Attributes:
        newest: The captures of the newest that was called.
        short: How many in a row computed the same and were not worth their capture.
        outline: What the last one computed that was captured, see :class:`Churn`.
    """

    newest: Churn
    short: int = 0
    outline: object = None

    def follow(self, churn: Churn) -> None:
        """Notes that another function of this definition is called.

        Args:
            churn: Its captures.
        """
        before, self.newest = self.newest, churn
        if before.waited and before.outline is None:
            return  # it was not captured
        same = self.outline in (None, before.outline)
        self.short = self.short + 1 if same and not before.is_worth_it() else 0
        self.outline = before.outline


_definitions: weakref.WeakKeyDictionary[types.CodeType, Definition] = weakref.WeakKeyDictionary()


#: Classes of arguments of which every call brings another object, such as caches of a generation.
_fleeting: weakref.WeakSet[type] = weakref.WeakSet()


def forget_definitions() -> None:
    """Forgets which definitions made short-lived functions, and short-lived objects; for tests."""
    _definitions.clear()
    _fleeting.clear()


class Churn:
    """Counts the captures in a row that were not worth it, since an argument differs.

    What differs by the types of tensors alone does not count: that is what captures are for.

    Attributes:
        waited: How many calls plain Python ran because functions like this one are short-lived.
        outline: A digest of the newest capture's operators and types, without the elements of
            constants; None if there is none.
    """

    def __init__(self) -> None:
        self.waited = 0
        self.outline: object = None
        self._reused = self._served = False
        self._short = 0
        self._kinds: dict[str, Kind] = {}
        self._made = self._seconds = 0.0

    def reuse(self) -> None:
        """Notes that a capture served another call."""
        self._reused = self._served = True

    def take_reuse(self) -> bool:
        """Returns whether any capture served another call since this was asked the last time."""
        reused, self._reused = self._reused, False
        return reused

    def waits(self, fn: object) -> bool:
        """Whether a function that was not captured yet is to run in plain Python this time.

        Args:
            fn: The function.
        """
        function = getattr(fn, "__func__", fn)
        function = getattr(function, "__dict__", {}).get("__wrapped__", function)
        code = getattr(function, "__code__", None)
        if not isinstance(code, types.CodeType):
            return False
        known = _definitions.setdefault(code, Definition(self))
        if known.newest is not self:
            known.follow(self)
        if known.short < _MAX_SHORT or self.waited >= _WAITED:
            return False
        self.waited += 1
        return True

    def is_worth_it(self) -> bool:
        """Whether the newest capture served for long in comparison with what it took."""
        return self._served and time.perf_counter() - self._made > _WORTH * self._seconds

    def captured(self, graph: Graph, kinds: dict[str, Kind], seconds: float) -> None:
        """Notes a capture.

        Args:
            graph: What it gave.
            kinds: The arguments that it was made with.
            seconds: How long it took.
        """
        self._kinds, self._seconds, self._made = kinds, seconds, time.perf_counter()
        nodes = [*graph.walk()]
        values = [*(p.value for p in graph.params), *(v for n in nodes for v in n.outputs)]
        operators = [(n.op.name, *n.attrs.values()) for n in nodes]
        self.outline = hash((*operators, *[str(v.type) for v in values]))

    def refilled(self, kinds: dict[str, Kind]) -> str | None:
        """Returns a container that holds something else than it did for the newest capture.

        Args:
            kinds: The arguments of the call.
        """
        for name, kind in kinds.items():
            before = self._kinds.get(name)
            if before and before.contents and kind.contents and before.key != kind.key:
                return name
        return None

    def argument(self, kinds: dict[str, Kind], reused: bool) -> str | None:
        """Returns the argument that makes captures useless, before one more is made.

        Args:
            kinds: The arguments of the call.
            reused: Whether any capture served another call since the newest was made.
        """
        before = self._kinds
        differs = [n for n, kind in kinds.items() if n in before and before[n].differs(kind)]
        if not differs:
            return None
        self._short = 0 if reused and self.is_worth_it() else self._short + 1
        found = [type(o()) for o in kinds[differs[0]].objects]
        classes = [kind for kind in found if not is_library(kind.__module__)]
        known = any(kind in _fleeting for kind in classes)
        if self._short < (_MAX_FLEETING if known else _MAX_SHORT):
            return None
        self._short = 0
        _fleeting.update(classes)
        return differs[0]


def kinds_of(
    fn: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, Kind]:
    """Returns what is seen of every argument of a call, by name.

    Args:
        fn: The function, whose parameters give the names.
        args: Positional arguments.
        kwargs: Keyword arguments.
    """
    found: dict[str, Kind] = {}
    for name, value in argument_labels(fn, args, kwargs).items():
        leaves: list[Tensor] = []
        key = hash(key_of(value, leaves))
        mortal = [o for o in objects_in(value) if type(o).__weakrefoffset__]
        found[name] = Kind(
            key, tuple([t.aval for t in leaves]), has_contents(value),
            tuple([weakref.ref(o) for o in mortal]),
        )  # fmt: skip
    return found
