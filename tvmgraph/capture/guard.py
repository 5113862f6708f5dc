"""One condition of a capture: what was read must still be there, or be as it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvmgraph.capture.checks import Check
from tvmgraph.capture.sources import ABSENT, Names, Source


@dataclass(slots=True)
class Guard:
    """One condition.

    Attributes:
        source: Where the value was read.
        same: Whether a value counts as the same.
        before: The value as text, for messages.
        value: The value, where it is enough that it is the same object; else :data:`ABSENT`.
        weak: Whether ``value`` is a weak reference to it.
        container: The list, dict or set that the source held.
        active: Whether it counts; what is only appended to does not.
    """

    source: Source
    same: Check
    before: str
    value: object = ABSENT
    weak: bool = False
    container: object = None
    active: bool = True

    def code(self, names: Names) -> str:
        """Returns an expression that is true while the condition holds.

        Args:
            names: Names of the objects that the expression reads.
        """
        if self.weak:
            return f"None is not {names(self.value)}() is {self.source.code(names)}"
        if self.value is not ABSENT:
            return f"{self.source.code(names)} is {names(self.value)}"
        if self.before == repr(ABSENT):
            return self.source.absence(names)
        return f"{names(self.same)}({self.source.code(names)})"


class CodeGuard(Guard):
    """The code of a function without defaults."""

    __slots__ = ()

    def code(self, names: Names) -> str:
        """Returns an expression that is true while the condition holds.

        Args:
            names: Names of the objects that the expression reads.
        """
        function: Any = self.source.read()
        f = names(function)
        return f"{f}.__code__ is {names(function.__code__)} and {f}.__defaults__ is None"
