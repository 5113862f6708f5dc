"""What a Cell looked like while it was captured."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping

from tvmgraph.capture.checks import BOUND, CellLike, Check, brief, check_of, is_library, is_mutable
from tvmgraph.capture.sources import ABSENT
from tvmgraph.core.tensor import Tensor

#: Whether all code of a Cell's class is the user's; classes are not kept alive.
_all_user_code: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()
_TABLES = ("_params", "_cells", "_buffers", "_graph_mode", "_inputs", "_flags", "param_prefix")
Difference = tuple[str, str, str]  # name, text before, text now


class CellState:
    """The parameters, sub-cells and flags of a Cell, and those attributes that count.

    All attributes of a layer of this package count; of a user's Cell those that interpreted code
    reads. Assigning one changes the epoch, so they are looked at only then; what could change
    without an assignment when it was captured is guarded elsewhere.

    Args:
        cell: The Cell.
        precise: Whether user code is interpreted.

    Attributes:
        plain: What the attributes must be, by name.
        texts: The same for messages.
        numbers: Those that are Python numbers.
        wide: Whether all attributes count.
    """

    def __init__(self, cell: CellLike, precise: bool) -> None:
        self.kind = type(cell)
        self.params = _params(cell._params)
        self.cells = _references(cell._cells)
        self.buffers = dict(cell._buffers)
        self.flags = check_of(dict(cell._flags))
        self.plain: dict[str, Check] = {}
        self.texts: dict[str, str] = {}
        self.numbers: dict[str, int | float] = {}
        self.wide = False
        if precise and _is_all_user_code(type(cell)):
            for name in own_attributes(_base(type(cell))):
                self.note(cell, name)
        else:
            self.widen(cell)

    def widen(self, cell: CellLike) -> None:
        """Makes all attributes count.

        Args:
            cell: The Cell, traced or from outside.
        """
        self.wide = True
        for name in list(cell.__dict__):
            self.note(cell, name)

    def note(self, cell: CellLike, name: str) -> None:
        """Makes an attribute count, which need not exist.

        Args:
            cell: The Cell, traced or from outside.
            name: Name of the attribute.
        """
        if name in self.plain or name in _TABLES or name.startswith(BOUND):
            return
        value = cell.__dict__.get(name, ABSENT)
        self.plain[name] = _is_anything if is_mutable(value) else check_of(value, objects=False)
        if type(value) in (int, float):
            self.numbers[name] = value
        self.texts[name] = brief(value)

    def allow_any_tensor(self, name: str) -> None:
        """Makes any tensor do.

        Args:
            name: Name of the attribute.
        """
        if name in self.plain:
            self.plain[name] = lambda v: isinstance(v, Tensor)

    def difference(self, cell: CellLike) -> Difference | None:
        """Returns what differs, or ``None``.

        Args:
            cell: The Cell, traced or from outside.
        """
        now = cell.__dict__
        if type(cell) is not self.kind:
            return "__class__", self.kind.__name__, type(cell).__name__
        for name, same in self.plain.items():
            value = now.get(name, ABSENT)
            if not same(value):
                return name, self.texts[name], brief(value)
        if self.wide:
            for name in now.keys() - self.plain.keys():
                if name not in _TABLES and not name.startswith(BOUND):
                    return name, repr(ABSENT), brief(now[name])
        tables = (
            (_params(cell._params), self.params),
            (_references(cell._cells), self.cells),
            (cell._buffers, self.buffers),
        )
        for after, before in tables:
            if after != before:
                names = after.keys() ^ before.keys() or {k for k in after if after[k] != before[k]}
                return sorted(names)[0], "", ""
        return self.flag_difference(cell)

    def flag_difference(self, cell: CellLike) -> Difference | None:
        """Returns which of the flags that ``set_train`` and the like write differs.

        Args:
            cell: The Cell, traced or from outside.
        """
        if not self.flags(cell._flags):
            return "a flag", "", ""
        training = self.plain.get("training")
        if training is not None and not training(cell.training):
            return "training", self.texts["training"], brief(cell.training)
        return None


def _is_anything(value: object) -> bool:
    """Whether a value is what it was, which is guarded elsewhere."""
    return True


def _references(table: Mapping[str, CellLike | None]) -> dict[str, object]:
    """Returns which Cells there are: another one may get the id of one that is gone."""
    return {k: None if v is None else weakref.ref(v) for k, v in table.items()}


def _params(table: Mapping[str, object]) -> dict[str, tuple[object, ...]]:
    """Returns which parameters there are, and what decides about their gradients."""
    return {
        k: (id(p), getattr(p, "requires_grad", None), getattr(p, "gradient_hooks", None))
        for k, p in table.items()
    }


def _base(cls: type) -> type:
    """Returns the class ``Cell`` itself, which lives in a room above this one."""
    return next(base for base in cls.__mro__ if "_is_cell" in vars(base))


@functools.cache
def own_attributes(cell_class: type) -> frozenset[str]:
    """Returns the attributes that every Cell has, which the package's own code reads.

    Args:
        cell_class: The base class of Cells.
    """
    return frozenset(vars(cell_class()))


def _is_all_user_code(cls: type) -> bool:
    found = _all_user_code.get(cls)
    if found is None:
        own = _base(cls).__mro__
        user = [c for c in cls.__mro__ if c not in own]
        found = bool(user) and not any(is_library(c.__module__) for c in user)
        _all_user_code[cls] = found
    return found
