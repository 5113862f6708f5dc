"""Where a captured function reads what is outside of it: globals, closures, attributes.

A source knows how to read itself, and the Python expression that reads it in generated code.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Names = Callable[[object], str]


class _Absent:
    """What is read where there is nothing."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


@dataclass(frozen=True, eq=False, slots=True)
class Source:
    """Where a value comes from that lives outside of the captured function.

    Attributes:
        key: Identifies it.
        label: What it is called in messages.
    """

    key: object
    label: str

    def read(self) -> object:
        """Returns what it holds, :data:`ABSENT` if it does not exist."""
        raise NotImplementedError

    def write(self, value: object) -> None:
        """Puts something there.

        Args:
            value: Any object.
        """
        raise NotImplementedError

    def code(self, names: Names) -> str:
        """Returns an expression that reads it; it may raise where the source does not exist.

        Args:
            names: Returns the name under which generated code knows an object.
        """
        raise NotImplementedError

    def absence(self, names: Names) -> str:
        """Returns an expression that is true while the source does not exist.

        Args:
            names: Names of the objects that the expression reads.
        """
        return f"{names(self.read)}() is {names(ABSENT)}"


@dataclass(frozen=True, eq=False, slots=True)
class Global(Source):
    """A global variable of a module."""

    space: dict[str, object]
    name: str

    def read(self) -> object:
        """Returns what it holds."""
        return self.space.get(self.name, ABSENT)

    def write(self, value: object) -> None:
        """Rebinds it.

        Args:
            value: Any object.
        """
        self.space[self.name] = value

    def code(self, names: Names) -> str:
        """Returns an expression that reads it."""
        return f"{names(self.space)}[{self.name!r}]"

    def absence(self, names: Names) -> str:
        """Returns an expression that is true while a builtin of the name is seen.

        Args:
            names: Names of the objects that the expression reads.
        """
        return f"{self.name!r} not in {names(self.space)}"


@dataclass(frozen=True, eq=False, slots=True)
class Closure(Source):
    """A variable of an enclosing function."""

    cell: types.CellType

    def read(self) -> object:
        """Returns what it holds."""
        return contents(self.cell)

    def write(self, value: object) -> None:
        """Rebinds it.

        Args:
            value: Any object.
        """
        self.cell.cell_contents = value

    def code(self, names: Names) -> str:
        """Returns an expression that reads it."""
        return f"{names(self.cell)}.cell_contents"


@dataclass(frozen=True, eq=False, slots=True)
class Member(Source):
    """An entry of an object's own ``__dict__``, or one of its slots.

    The object is held weakly where it can be.
    """

    owner: Callable[[], object]
    name: str
    slot: bool = False

    def read(self) -> object:
        """Returns what it holds."""
        owner = self.owner()
        if self.slot:
            return getattr(owner, self.name, ABSENT)
        return ABSENT if owner is None else owner.__dict__.get(self.name, ABSENT)

    def write(self, value: object) -> None:
        """Sets the attribute, without telling anybody.

        Args:
            value: Any object.
        """
        owner = self.owner()
        if self.slot:
            setattr(owner, self.name, value)
        elif isinstance(owner, type):  # its `__dict__` can only be read
            type.__setattr__(owner, self.name, value)
        else:
            owner.__dict__[self.name] = value

    def code(self, names: Names) -> str:
        """Returns an expression that reads it."""
        owner = f"{names(self.owner)}()"
        return f"{owner}.{self.name}" if self.slot else f"{owner}.__dict__[{self.name!r}]"


@dataclass(frozen=True, eq=False, slots=True)
class Kind(Source):
    """The class of an object, which is held weakly where it can be."""

    owner: Callable[[], object]

    def read(self) -> object:
        """Returns the class."""
        return type(self.owner())

    def code(self, names: Names) -> str:
        """Returns an expression that gives it."""
        return f"type({names(self.owner)}())"


@dataclass(frozen=True, eq=False, slots=True)
class Item(Source):
    """An item of a list or dict."""

    owner: Any
    index: int | str

    def read(self) -> object:
        """Returns what it holds."""
        try:
            return self.owner[self.index]
        except LookupError:
            return ABSENT

    def code(self, names: Names) -> str:
        """Returns an expression that reads it."""
        return f"{names(self.owner)}[{self.index!r}]"


@dataclass(frozen=True, eq=False, slots=True)
class Fixed(Source):
    """An object itself, of which the inside is compared."""

    value: object

    def read(self) -> object:
        """Returns the object."""
        return self.value

    def code(self, names: Names) -> str:
        """Returns its name."""
        return names(self.value)


@dataclass(frozen=True, eq=False, slots=True)
class Referred(Source):
    """An object itself, which is held weakly where it can be."""

    value: Callable[[], object]

    def read(self) -> object:
        """Returns the object, ``None`` if it is gone."""
        return self.value()

    def code(self, names: Names) -> str:
        """Returns an expression that gives it."""
        return f"{names(self.value)}()"


@dataclass(frozen=True, eq=False, slots=True)
class Result(Source):
    """What a function returns that looks at the world outside of Python's variables."""

    function: Callable[[], object]

    def read(self) -> object:
        """Calls it."""
        try:
            return self.function()
        except Exception:  # such as an environment variable that is gone
            return ABSENT

    def code(self, names: Names) -> str:
        """Returns an expression that calls it."""
        return f"{names(self)}.read()"


class Memoized(Result):
    """What a memoized function of the user's returns: asking it may run its body."""

    __slots__ = ()


def held(owner: object, name: str) -> object:
    """Returns what an object's own attribute holds, :data:`ABSENT` if it does not exist.

    Args:
        owner: What it belongs to.
        name: Name of the attribute.
    """
    own = getattr(owner, "__dict__", None)
    if own is not None and (name in own or not _is_slot(owner, name)):
        return own.get(name, ABSENT)
    return getattr(owner, name, ABSENT)


def put_back(owner: object, name: str, value: object) -> None:
    """Makes an own attribute hold what it held, without telling anybody.

    Args:
        owner: What it belongs to.
        name: Name of the attribute.
        value: What it held.
    """
    own = None if isinstance(owner, type) else getattr(owner, "__dict__", None)
    if own is not None and not _is_slot(owner, name):
        if value is ABSENT:
            own.pop(name, None)
        else:
            own[name] = value
    elif value is not ABSENT:
        (setattr if isinstance(owner, type) else object.__setattr__)(owner, name, value)
    elif held(owner, name) is not ABSENT:
        (delattr if isinstance(owner, type) else object.__delattr__)(owner, name)


def member(owner: object, name: str, kind: str = "attribute") -> Member:
    """Returns the source of an attribute of an object, class or module.

    Args:
        owner: What it belongs to.
        name: Name of the attribute.
        kind: What messages call it.
    """
    title = owner.__name__ if isinstance(owner, (type, types.ModuleType)) else type(owner).__name__
    slot = not hasattr(owner, "__dict__") or _is_slot(owner, name)
    return Member((kind, id(owner), name), f"{title}.{name}", reference(owner), name, slot)


def kept_inside(owner: object, name: str) -> Member:
    """Returns the source of an attribute that only ``getattr`` finds, as of a class or function.

    Args:
        owner: What it belongs to.
        name: Name of a variable.
    """
    named = isinstance(owner, (type, types.FunctionType))
    title = owner.__name__ if named else type(owner).__name__
    return Member(("given", id(owner), name), f"{title}.{name}", reference(owner), name, slot=True)


class Reference(weakref.ref[object]):
    """A weak reference of a capture, which is not the one that the user gets for the object."""

    __slots__ = ()


def has_references(value: object) -> bool:
    """Whether somebody but captures holds weak references to an object.

    Args:
        value: Any object.
    """
    return any(type(r) is not Reference for r in weakref.getweakrefs(value))


def reference(value: object, kept: bool = True) -> Callable[[], object]:
    """Returns a weak reference to an object.

    Args:
        value: The object.
        kept: Whether one that allows no weak references is held; its reference is empty otherwise.
    """
    try:
        return Reference(value)
    except TypeError:
        return (lambda: value) if kept else lambda: None


def contents(cell: types.CellType) -> object:
    """Returns what a closure variable holds.

    Args:
        cell: The closure variable.
    """
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def _is_slot(owner: object, name: str) -> bool:
    if isinstance(owner, type):
        return False
    return any(
        isinstance(vars(base).get(name), types.MemberDescriptorType) for base in type(owner).__mro__
    )
