"""Kernel tables: which kernel a loop nest gets, and why.

A backend has one ordered list of :class:`Kernel`. A nest is offered to them one after the other;
the first whose ``match`` does not refuse takes it. A kernel may write a part of its nest and hand
the rest back (:meth:`Writer.write`), which then goes through the same list. While somebody watches
(:func:`recording_choices`), every choice is kept together with what the kernels before it said.

Kernels of one's own are put in front with :func:`register_kernel`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from tvmgraph.errors import ArgumentError, reject

Model = TypeVar("Model")


@dataclass(frozen=True)
class Refused:
    """Why a kernel does not take a nest."""

    reason: str


def _no_plan(_found: object, _model: object) -> None:
    return None


@dataclass(frozen=True)
class Kernel(Generic[Model]):
    """One entry of a kernel table.

    Attributes:
        name: Unique in its table, in lower case: ``conv_direct``.
        match: Takes a :class:`~tvmgraph.backend.loop_ir.nest.Nest` and the machine's model; returns
            what ``plan`` and ``emit`` work with, or :class:`Refused`.
        emit: Takes what ``match`` found, what ``plan`` made, and the :class:`Writer`; writes the
            loops into the kernel that is being written. One that ``rewrites`` returns a function.
        why: What the kernel is for, in a phrase.
        plan: Takes what ``match`` found and the model; returns the shape of the kernel (tiles,
            blocks, who packs what), which :func:`recording_choices` shows.
        knobs: The decisions that a search may overrule, see
            :func:`tvmgraph.backend.loop_ir.choice.choose`.
        rewrites: Whether ``emit`` makes the whole function itself.
    """

    name: str
    match: Callable[[Any, Model], Any]
    emit: Callable[[Any, Any, Writer[Model]], Any]
    why: str
    plan: Callable[[Any, Model], Any] = _no_plan
    knobs: tuple[str, ...] = ()
    rewrites: bool = False


@dataclass
class Choice:
    """Which kernel took a nest.

    Attributes:
        kernel: Its name.
        why: What it is for.
        refused: The kernels before it, with what they said.
        plan: Its plan as text, empty if it has none.
        nested: The choices for the nests it handed back.
        function: The function, of a choice that is not nested.
    """

    kernel: str
    why: str
    refused: tuple[tuple[str, str], ...]
    plan: str = ""
    nested: list[Choice] = field(default_factory=list)
    function: str = ""

    def text(self, indent: int = 0) -> str:
        """The choice and those nested in it as lines of text.

        Args:
            indent: How deep it is nested; every level takes two spaces.
        """
        pad = "  " * indent
        named = f"{self.function} -> " if self.function else ""
        lines = [f"{pad}{named}{self.kernel}: {self.why}"]
        if self.plan:
            lines.append(f"{pad}  plan: {self.plan}")
        if self.refused:
            lines.append(f"{pad}  not:")
            lines += [f"{pad}    {name}: {reason}" for name, reason in self.refused]
        return "\n".join([*lines, *(choice.text(indent + 1) for choice in self.nested)])


class KernelTable(Generic[Model]):
    """The kernels of a backend, in the order in which they are asked.

    Args:
        kernels: The entries. The last one must refuse nothing.
    """

    def __init__(self, kernels: Sequence[Kernel[Model]]) -> None:
        self._kernels = list(kernels)
        self._added: dict[str, Kernel[Model]] = {}

    @property
    def kernels(self) -> tuple[Kernel[Model], ...]:
        """The entries, registered ones included."""
        return tuple(self._kernels)

    @property
    def registered(self) -> tuple[Kernel[Model], ...]:
        """The entries that were added to those of the package."""
        return tuple(self._added.values())

    def add(self, kernel: Kernel[Model], before: str | None = None) -> None:
        """Puts an entry before another one, by default before all.

        Args:
            kernel: The entry.
            before: Name of the entry that it goes before.

        Raises:
            ArgumentError: if there is a kernel of this name, or none that is called ``before``.
        """
        names = [k.name for k in self._kernels]
        if kernel.name in names:
            reject(ArgumentError, "register_kernel", f"there is a kernel {kernel.name!r} already",
                   fix="give it another name")  # fmt: skip
        if before is not None and before not in names:
            reject(ArgumentError, "register_kernel", f"there is no kernel {before!r}",
                   fix=f"use one of {', '.join(names)}")  # fmt: skip
        self._kernels.insert(0 if before is None else names.index(before), kernel)
        self._added[kernel.name] = kernel

    def remove(self, name: str) -> None:
        """Takes a registered entry out again.

        Args:
            name: The entry's name.

        Raises:
            ArgumentError: if no entry of this name was registered.
        """
        if name not in self._added:
            raise ArgumentError(f"no kernel {name!r} was registered", op="register_kernel")
        self._kernels.remove(self._added.pop(name))

    def take(self, nest: object, model: Model) -> tuple[Kernel[Model], Any, list[tuple[str, str]]]:
        """The first entry that takes a nest, what it found, and what those before it said.

        Args:
            nest: The loops.
            model: The machine.
        """
        refused: list[tuple[str, str]] = []
        for kernel in self._kernels:
            found = kernel.match(nest, model)
            if not isinstance(found, Refused):
                return kernel, found, refused
            refused.append((kernel.name, found.reason))
        said = "; ".join(f"{name}: {reason}" for name, reason in refused)
        raise AssertionError(f"no kernel takes {nest}: {said}")


@dataclass(frozen=True)
class Writer(Generic[Model]):
    """Writes kernels of a table for a machine.

    Attributes:
        table: The kernels.
        model: The machine.
    """

    table: KernelTable[Model]
    model: Model

    def write(self, nest: object) -> Any:
        """Writes the kernel that takes ``nest``; returns what its ``emit`` does.

        Args:
            nest: Loops.
        """
        kernel, found, refused = self.table.take(nest, self.model)
        plan = kernel.plan(found, self.model)
        with _noted(kernel, refused, plan):
            return kernel.emit(found, plan, self)

    def function(self, nest: object, begin: Callable[[Callable[[], None]], Any]) -> Any:
        """Makes a function of ``nest``.

        Args:
            nest: Loops.
            begin: Makes a function of what its argument writes, for kernels that rewrite nothing.

        Returns:
            The function, and whether the kernel made it itself.
        """
        kernel, found, refused = self.table.take(nest, self.model)
        made: Any = None

        def emit() -> None:
            nonlocal made
            plan = kernel.plan(found, self.model)
            with _noted(kernel, refused, plan):
                made = kernel.emit(found, plan, self)

        if not kernel.rewrites:
            return begin(emit), False
        emit()
        return made, True


_recording = threading.local()


@contextlib.contextmanager
def recording_choices() -> Iterator[list[Choice]]:
    """Keeps the choices that this thread makes inside, in order."""
    before = getattr(_recording, "choices", None)
    _recording.choices = found = []
    try:
        yield found
    finally:
        _recording.choices = before


@contextlib.contextmanager
def naming(function: str) -> Iterator[None]:
    """Gives the choices made inside the name of the function that they are for.

    Args:
        function: Name of the function whose kernel is chosen meanwhile.
    """
    choices: list[Choice] | None = getattr(_recording, "choices", None)
    first = 0 if choices is None else len(choices)
    yield
    for choice in (choices or ())[first:]:
        choice.function = function


@contextlib.contextmanager
def _noted(
    kernel: Kernel[object], refused: Sequence[tuple[str, str]], plan: object
) -> Iterator[None]:
    """Keeps a choice while they are recorded; choices made inside are nested in it."""
    outer: list[Choice] | None = getattr(_recording, "choices", None)
    if outer is None:
        yield
        return
    choice = Choice(kernel.name, kernel.why, tuple(refused), describe(plan))
    outer.append(choice)
    _recording.choices = choice.nested
    try:
        yield
    finally:
        _recording.choices = outer


def describe(plan: object) -> str:
    """The numbers, names and texts of a plan, by field.

    Args:
        plan: A dataclass, of which expressions and buffers are left out; anything else is shown as
            text.
    """
    if plan is None:
        return ""
    if not dataclasses.is_dataclass(plan):
        return str(plan)
    shown = {f.name: _shown(getattr(plan, f.name)) for f in dataclasses.fields(plan)}
    return ", ".join(f"{name}={value}" for name, value in shown.items() if value is not None)


def _shown(value: object) -> str | None:
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, (bool, int, float, str)):
        return str(value)
    simple = isinstance(value, tuple) and all(isinstance(v, (bool, int, float)) for v in value)
    return str(value) if simple else None


#: The tables of the backends that were imported, and what to import for them.
_ROOMS: Mapping[str, str] = {
    "cpu": "tvmgraph.backend.cpu.table",
    "cuda": "tvmgraph.backend.cuda.table",
}


def table_of(backend: str) -> KernelTable[Any]:
    """The kernel table of ``"cpu"`` or ``"cuda"``.

    Args:
        backend: Its name.

    Raises:
        ArgumentError: for another backend.
    """
    if backend not in _ROOMS:
        reject(ArgumentError, "register_kernel", f"there is no backend {backend!r}",
               fix=f"use one of {', '.join(_ROOMS)}")  # fmt: skip
    return importlib.import_module(_ROOMS[backend]).KERNELS


def register_kernel(
    kernel: Kernel[object], backend: str = "cpu", before: str | None = None
) -> Callable[[], None]:
    """Adds a kernel to the table of a backend.

    Everything that is compiled from now on sees it. It is compiled in this process, and neither
    taken from nor kept in the cache on disk, which cannot know whether a kernel changed.

    Args:
        kernel: The entry.
        backend: ``"cpu"`` or ``"cuda"``.
        before: The entry that it is asked before, by default the first one.

    Returns:
        A function that takes the kernel out again.

    Raises:
        ArgumentError: if the table has a kernel of this name, or none called ``before``.

    Example:
        A kernel that says of every nest that it does not want it:

        >>> from tvmgraph.backend.table import Kernel, Refused, register_kernel
        >>> shy = Kernel("shy", lambda nest, model: Refused("no"), lambda *_: None, "an example")
        >>> remove = register_kernel(shy)
        >>> remove()
    """
    table = table_of(backend)
    table.add(kernel, before)
    return lambda: table.remove(kernel.name)


def registered() -> tuple[Kernel[Any], ...]:
    """The kernels of all tables that are not the package's; tables not in use yet have none."""
    tables = (getattr(sys.modules.get(room), "KERNELS", None) for room in _ROOMS.values())
    return tuple(k for table in tables if table is not None for k in table.registered)
