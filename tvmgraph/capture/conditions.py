"""Whether what a captured function read is as it was: asked before every call that may reuse it."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

from tvmgraph.capture import tree
from tvmgraph.capture.cell_state import CellState
from tvmgraph.capture.checks import CellLike, Check, brief, changed
from tvmgraph.capture.guard import Guard
from tvmgraph.capture.promotion import Slot
from tvmgraph.capture.sources import ABSENT, Memoized, Names, member
from tvmgraph.core.state import current_epoch
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import CaptureError

_NUMBERS = (int, float)


class Conditions:
    """Conditions under which a captured function may be reused.

    Attributes:
        originals: What changed containers held before the capture changed them, by ``id``.
        made: Cells that the capture made, which the captured function may hold without any name,
            by ``id``. Every call makes them anew, so that what they hold is no condition.
        refused: Why the capture cannot be used: code that runs natively called an impure function.
        spent: Why it serves the call that was captured alone: code that is not interpreted changed
            something outside, which it does again only when it runs again.
    """

    def __init__(self) -> None:
        self.originals: dict[int, object] = {}
        self.made: dict[int, CellLike] = {}
        self.refused: CaptureError | None = None
        self.spent: str | None = None
        self._read: list[tuple[Guard, object]] = []  # what has contents
        self._cells: dict[int, tuple[weakref.ref[CellLike], CellState]] = {}
        self._always: dict[object, Guard] = {}
        self._epoch = -1

    def allow_any_tensor(self, owner: object, name: str, before: Tensor) -> bool:
        """Stops guarding which tensor an attribute holds: the function itself replaces it.

        Args:
            owner: The object.
            name: The attribute.
            before: What it held.

        Returns:
            Whether that is possible. It is not if something else that was read holds the tensor,
            too: what is read of the one is then that of the other.
        """
        key = ("attribute", id(owner), name)
        others = (g.source.read() for k, g in self._always.items() if k != key)
        held = [self.originals.get(id(v)) or v for v in others]
        for cell, known in self._watched():
            own = vars(cell)
            held += [own.get(n) for n in known.plain if cell is not owner or n != name]
        if any(t is before for t in tree.tensors(held)):
            return False
        if id(owner) in self._cells:
            self._cells[id(owner)][1].allow_any_tensor(name)
        elif key in self._always:
            guard, kind = self._always[key], type(before)
            guard.same, guard.value, guard.weak = lambda v: v.__class__ is kind, ABSENT, False
        return True

    def settle(self) -> None:
        """Completes the conditions; called once when the capture is over.

        Raises:
            CaptureError: if code that ran natively called an impure function.
        """
        if self.refused is not None:
            raise self.refused
        for guard in self._always.values():
            if not guard.active:  # its contents do not matter
                guard.same = is_same(guard.container)
            guard.container = None
        for identity in self.originals:
            self.originals[identity] = None

    def look_again(self) -> None:
        """Finds what the capture changed without noting it; called when it took back the rest."""
        for guard, value in self._read:
            if guard.active and guard.source.read() is value and not guard.same(value):
                self.spent = f"{guard.source.label} is changed by code that runs natively"
                break
        self._read.clear()

    def conditions(self, names: Names) -> Iterator[str]:
        """Yields expressions that are all true while everything outside of Cells holds.

        Args:
            names: Gives an object a name in the generated code.
        """
        if self.spent is not None:
            yield "False"
        for guard in self._always.values():
            yield guard.code(names)

    def labels(self) -> list[str]:
        """Returns what is looked at before every call, as text.

        That builtins are builtins, what classes inherit from, and what the code that Python writes
        for a named tuple calls, is not mentioned.
        """
        here = [g for g in self._always.values() if g.active and g.before != repr(ABSENT)]
        here = [g for g in here if not g.source.label.endswith((".__mro__", " '_tuple_new'"))]
        found = [g.source.label for g in here]
        for cell, known in self._watched():
            found += [f"{type(cell).__name__}.{n}" for n in known.plain if n[0] != "_"]
        return list(dict.fromkeys(found))

    def varying(self) -> list[Slot]:
        """Returns the sources that held a Python number and hold another one of its class now."""
        here = [g for g in self._always.values() if not isinstance(g.source, Memoized)]
        sources = [(g.source, g.value) for g in here if type(g.value) in _NUMBERS]
        for cell, known in self._watched():
            sources += [(member(cell, n), v) for n, v in known.numbers.items()]
        found: dict[object, Slot] = {}
        for source, before in sources:
            now = source.read()
            if type(now) is type(before) and now != before:
                found[source.key] = Slot(source.key, source.label, source.read, source.write)
        return list(found.values())

    def failure(self) -> str | None:
        """Returns what changed, or ``None`` while everything holds."""
        if self.spent is not None:
            return self.spent
        found = self.change()
        return None if found is None else found[1]

    def change(self, ask: bool = True) -> tuple[str, str] | None:
        """Returns the name of the variable or attribute that changed, and how, or ``None``.

        Args:
            ask: Whether this is about a call that may use the capture, so that memoized functions
                are called as it would call them.
        """
        for guard in self._always.values():
            if not ask and isinstance(guard.source, Memoized):
                continue
            now = guard.source.read()
            if not guard.same(now):
                label = guard.source.label
                return _name_in(label), changed(label, guard.before, brief(now))
        epoch = current_epoch()
        if epoch == self._epoch:  # no Cell was written to since the last look
            return None
        found = self._cell_change()
        if found is None:
            self._epoch = epoch
        return found

    def flag_failure(self) -> str | None:
        """Returns which flag of a Cell changed, or ``None``."""
        found = self._cell_change(flags_only=True)
        return None if found is None else found[1]

    def _watched(self) -> Iterator[tuple[CellLike, CellState]]:
        """Yields the Cells from outside that are not gone, with what is known of each."""
        for key, (ref, known) in self._cells.items():
            cell = ref()
            if cell is not None and key not in self.made:
                yield cell, known

    def _cell_change(self, flags_only: bool = False) -> tuple[str, str] | None:
        for cell, before in self._watched():
            found = before.flag_difference(cell) if flags_only else before.difference(cell)
            if found is not None:
                name, old, new = found
                return name, changed(f"{type(cell).__name__}.{name}", old, new)
        return None


def _name_in(label: str) -> str:
    """Returns the variable or attribute that a label names."""
    return label.split("'")[1] if "'" in label else label.rpartition(".")[2]


def is_same(value: object) -> Check:
    """A check that asks for the very object.

    Args:
        value: The object.
    """
    return lambda v: v is value
