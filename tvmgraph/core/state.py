"""What is active in this thread: the recorder, the gradient tapes and the Cell scope."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from tvmgraph import forking
from tvmgraph.dtypes import DType

#: This file is below those that define them, which look at the state.
Op = Tensor = TensorType = Any


class Interpreter(Protocol):
    """Gives operators their meaning; the default one is NumPy (see :mod:`tvmgraph.eager`)."""

    @property
    def sizes(self) -> Mapping[str, object]:
        """A value that has it for every symbolic size that is known, by the size's name."""
        ...

    def run(
        self,
        op: Op,
        args: tuple[Tensor, ...],
        attrs: dict[str, object],
        types: tuple[TensorType, ...],
    ) -> tuple[Tensor, ...]:
        """Applies ``op`` and returns one tensor per entry of ``types``.

        Args:
            op: The row.
            args: Its operands.
            attrs: Its attributes.
            types: Types of its results.
        """
        ...

    def assign(self, target: Tensor, new: Tensor) -> None:
        """Makes ``target`` denote ``new``'s elements from here on.

        Args:
            target: What is assigned to.
            new: Its new value, of the same type.
        """
        ...

    def created(self, tensor: Tensor) -> None:
        """Notes that ``tensor`` was built from host data while interpreting.

        Args:
            tensor: The new tensor.
        """
        ...

    def read(self, tensor: Tensor) -> None:
        """Notes that Python code looks at the elements of ``tensor``.

        Args:
            tensor: The tensor.
        """
        ...

    def draw(self, blocks: int) -> tuple[Tensor, int]:
        """Reserves random counter blocks; see :func:`tvmgraph.core.random.draw`.

        Args:
            blocks: Philox blocks, each of four 32-bit words.
        """
        ...

    def first_values(
        self, blocks: int, type: TensorType, make: Callable[[int, int], Tensor]
    ) -> Tensor:
        """Draws the first values of a Parameter.

        Args:
            blocks: Random counter blocks that they take.
            type: Their type.
            make: Computes them from seed and counter.
        """
        ...

    def has_elements(self, tensor: Tensor) -> bool:
        """Whether the elements of ``tensor`` are known here and now.

        Args:
            tensor: Any tensor.
        """
        ...

    def starts_as(self, parameter: Tensor, value: Tensor) -> None:
        """Notes what a Parameter denotes that comes into being while interpreting.

        Args:
            parameter: The new Parameter.
            value: What it denotes.
        """
        ...

    def enter_cell(self, cell: object, scope: tuple[str, ...]) -> str:
        """Notes that a Cell is called inside ``scope`` and returns its name there.

        Args:
            cell: The Cell.
            scope: Names of the Cells around it, outermost first.
        """
        ...

    symbols: Any = None  # the SymbolScope of numbers that differ from call to call, or None

    def number(self, value: Any, dtype: DType) -> Tensor:
        """Returns a symbolic number as a 0-d tensor.

        Args:
            value: A symbol, or an expression of symbols.
            dtype: dtype of the result.
        """
        ...

    call: Callable[..., Any]  # (function, args, kwargs): calls a Python function

    def is_pure(self, run: Callable[[], object]) -> bool:
        """Whether running something only computes.

        Args:
            run: What would be run, called without arguments.
        """
        ...

    def made_cell(self, cell: object) -> None:
        """Notes that a Cell comes into being while interpreting.

        Args:
            cell: The Cell.
        """
        ...

    def before_attribute(self, cell: object, name: str) -> None:
        """Notes that an attribute of a Cell is about to be written.

        Args:
            cell: The Cell.
            name: Name of the attribute.
        """
        ...

    def before_change(self, owner: object) -> None:
        """Notes that the members or settings of a Cell or Parameter are about to change.

        Args:
            owner: The Cell or Parameter.
        """
        ...

    def snapshot(self, tensor: Tensor) -> Tensor:
        """Returns a tensor that keeps denoting what ``tensor`` denotes at this moment.

        Args:
            tensor: Any tensor.
        """
        ...


class Tape(Protocol):
    """Remembers operators so that they can be differentiated."""

    def record(
        self,
        op: Op,
        args: tuple[Tensor, ...],
        attrs: dict[str, object],
        outputs: tuple[Tensor, ...],
    ) -> None:
        """Appends one operator application.

        Args:
            op: The row.
            args: Its operands.
            attrs: Its attributes.
            outputs: Its results.
        """
        ...


class Precision(Protocol):
    """Chooses the float types that operators compute in."""

    def operands(self, op: Op, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Returns the operands of an operator, cast.

        Args:
            op: The row.
            args: Its operands.
        """
        ...


class meanwhile:  # noqa: N801 (read as a statement: ``with meanwhile(state, nested=1)``)
    """Gives attributes other values in a ``with`` block.

    Args:
        owner: Whose they are.
        **values: What they are inside, by name.
    """

    __slots__ = ("_inside", "_outer", "_owner")

    def __init__(self, owner: object, **values: object) -> None:
        self._owner, self._inside = owner, values

    def __enter__(self) -> None:
        self._outer = {name: getattr(self._owner, name) for name in self._inside}
        self._set(self._inside)

    def __exit__(self, *_: object) -> None:
        self._set(self._outer)

    def _set(self, values: Mapping[str, object]) -> None:
        for name, value in values.items():
            setattr(self._owner, name, value)


class ThreadState(threading.local):
    """Per-thread interpreter state.

    Attributes:
        interpreter: The active interpreter, or ``None`` for eager NumPy.
        tapes: Active gradient tapes, outermost first.
        paused: Tapes that see nothing but what Parameters are assigned.
        cotangents: Kinds of the dtypes whose values have cotangents in the reverse pass that runs;
            ``"fc"``, with ``"iu"`` where an integer argument is differentiated by.
        precision: What casts the operands of operators, see :mod:`.precision`; ``None`` where
            they are taken as they are.
        scope: Names of the Cells being called, outermost first.
        broken: The function or Cell that runs as plain Python because it cannot be one graph;
            the Cells it calls compile themselves. ``None`` otherwise.
        nested: How many such calls are inside each other.
    """

    def __init__(self) -> None:
        self.broken: object = None
        self.nested = 0
        self.interpreter: Interpreter | None = None
        self.tapes: tuple[Tape, ...] = ()
        self.paused: tuple[Tape, ...] = ()
        self.scope: tuple[str, ...] = ()
        self.cotangents = "fc"
        self.precision: Precision | None = None

    def interpreting(
        self, interpreter: Any, tapes: tuple[Tape, ...] = (), scope: tuple[str, ...] | None = None
    ) -> meanwhile:
        """Runs a block under another interpreter; what is outside of it sees nothing of it.

        Nothing is cast inside: what a graph is made of is what operators were applied to.

        Args:
            interpreter: What gives operators their meaning inside; ``None`` for eager NumPy.
            tapes: The tapes that record inside.
            scope: Names of the Cells being called inside; the same as outside if None.
        """
        scope = self.scope if scope is None else scope
        return meanwhile(self, interpreter=interpreter, tapes=tapes, precision=None, scope=scope)

    def computing_in(self, precision: Precision | None) -> meanwhile:
        """Runs a block in another precision.

        Args:
            precision: What casts operands; ``None`` for their own types.
        """
        return meanwhile(self, precision=precision)


state = ThreadState()

#: Held by compiled calls that write to tensors, from looking them up to the last write, and by
#: others while they look theirs up: each sees all of what such a call writes, or nothing.
turn = forking.whole()

#: How many calls have written attributes or containers; who holds the turn counts.
acted = 0

#: Hooks of gradients that belong to tensors which are no parameters: types do not tell of them.
hooked: weakref.WeakSet[object] = weakref.WeakSet()

#: Classes of tensors that the user derived; looked at where there are any.
derived: weakref.WeakSet[type] = weakref.WeakSet()

_counter = itertools.count(1)

#: Changes whenever an attribute of a Cell or the type of a tensor does.
epoch = 0
#: Changes whenever a tensor that existed before is given other elements or another storage.
writes = 0


R = TypeVar("R")


def call_user(
    function: Callable[..., R], args: tuple[object, ...], kwargs: Mapping[str, object] | None = None
) -> R:
    """Calls a function of the user, which a capture reads instead: it sees what that does.

    Args:
        function: The function.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
    """
    if state.interpreter is not None:
        return state.interpreter.call(function, args, kwargs or {})
    return function(*args, **(kwargs or {}))


def before_change(owner: object) -> None:
    """Notes that the members of a Cell, or settings of a Cell or Parameter, are about to change.

    Args:
        owner: The Cell or Parameter.
    """
    if state.interpreter is not None:
        state.interpreter.before_change(owner)


def bump_epoch() -> None:
    """Notes that some Cell or tensor type changed, so that guards are checked again."""
    global epoch
    epoch = next(_counter)


def note_write() -> None:
    """Notes that some tensor was written, so that compiled calls look at theirs again."""
    global writes
    writes = next(_counter)


def note_act() -> None:
    """Notes, within the turn, that a compiled call wrote what guards of others look at."""
    global acted
    acted += 1


def current_epoch() -> int:
    """Returns a number that changes whenever a Cell attribute or a tensor type does."""
    return epoch


def has_cotangent(dtype: DType) -> bool:
    """Whether values of a dtype have cotangents in the reverse pass that runs.

    Args:
        dtype: The dtype.
    """
    return dtype.kind in state.cotangents


def scope_text() -> str:
    """Returns the dotted Cell scope, or ``""`` outside any Cell."""
    return ".".join(state.scope)
