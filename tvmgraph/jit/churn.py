"""Noticing that a function is captured for every other object or value that it is given."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass

from tvmgraph.capture.expect import has_contents, objects_in
from tvmgraph.capture.record import argument_labels
from tvmgraph.core.tensor import Tensor
from tvmgraph.jit.call_key import key_of

_MAX_SHORT = 24  # captures in a row that served too few calls
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


class Churn:
    """Counts the captures in a row that were not worth it, since an argument differs.

    What differs by the types of tensors alone does not count: that is what captures are for.
    """

    def __init__(self) -> None:
        self._short = 0
        self._kinds: dict[str, Kind] = {}
        self._made = self._seconds = 0.0

    def captured(self, kinds: dict[str, Kind], seconds: float) -> None:
        """Notes a capture.

        Args:
            kinds: The arguments that it was made with.
            seconds: How long it took.
        """
        self._kinds, self._seconds, self._made = kinds, seconds, time.perf_counter()

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
        served = time.perf_counter() - self._made
        self._short = 0 if reused and served > _WORTH * self._seconds else self._short + 1
        if self._short < _MAX_SHORT:
            return None
        self._short = 0
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
            key, tuple([t.type for t in leaves]), has_contents(value),
            tuple([weakref.ref(o) for o in mortal]),
        )  # fmt: skip
    return found
