"""Side effects of captured code on things outside: noted in order and repeated at every call."""

from __future__ import annotations

import ast
import dataclasses
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from tvmgraph.capture import logs, printing, tree
from tvmgraph.capture.changes import CHANGEABLE, MUTATING
from tvmgraph.capture.checks import is_cell, is_iterator, is_plain_object
from tvmgraph.capture.containers import (
    Container,
    Method,
    copy_of,
    count_of,
    inherited,
    item_of,
    items_in,
    owners,
    pairs,
    refill,
)
from tvmgraph.capture.frame import Frame
from tvmgraph.capture.settings import CapturedAgain
from tvmgraph.capture.sources import contents
from tvmgraph.core.symbols import Symbol
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import CaptureError, user_source

if TYPE_CHECKING:
    from tvmgraph.capture.protocol import Interpreting

Path = tuple[object, ...]


@dataclass(frozen=True)
class Effect:
    """One thing to do after every call.

    Attributes:
        target: What it happens to: a container, a closure cell, ``print``, or the path of a
            container among the arguments.
        method: The method to call.
        arguments: Structure of ``(args, kwargs)``.
        function: The C function that the method of a container is, whatever its class overrides.
    """

    target: Any
    method: str
    arguments: tree.Structure
    function: Method | None = None

    def apply(
        self, given: Any, outputs: list[Any], leaves: list[Any], made: dict[int, object]
    ) -> None:
        """Does it again with the results of a call.

        Args:
            given: ``(args, kwargs)`` of the call.
            outputs: The graph's results.
            leaves: The tensors among the arguments.
            made: The containers that the call made, see :func:`tree.rebuild`.
        """
        args, kwargs = tree.rebuild(self.arguments, outputs, leaves, given, made)
        target = self.target
        if isinstance(target, tuple):
            for key in target:
                given = item_of(given, key)
            target = given
        if self.target is None and self.method in printing.FUNCTIONS:
            printing.FUNCTIONS[self.method](*args, **kwargs)
        elif isinstance(self.target, logs.Record):
            self.target.emit(*args, **kwargs)
        elif self.method == "write_cell":
            target.cell_contents = args[0]
        elif self.function is not None:
            self.function(target, *args, **kwargs)
        else:
            getattr(target, self.method)(*args, **kwargs)


@dataclass(frozen=True)
class Noted:
    """One side effect of the captured call.

    Attributes:
        owner: What it happens to.
        method: The method.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        node: The expression that did it.
        frame: The frame that did it.
        before: What the container held before, where a tensor decides.
        function: The C function that the method of a container is.
    """

    owner: Any
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, object]
    node: ast.AST
    frame: Frame
    before: Any = None
    function: Method | None = None

    def describe(self) -> str:
        """Names it for messages."""
        return f"{type(self.owner).__name__}.{self.method}() on a container from outside"


_HOLDING = (list, dict, set, deque)
#: Methods that take the items of their arguments, and arguments whose items never change.
_FILLING = frozenset({
    "__iadd__", "difference_update", "extend", "intersection_update",
    "symmetric_difference_update", "update",
})  # fmt: skip
_FIXED = (str, bytes, range, tuple, frozenset)
_TAKING = ("pop", "popitem", "popleft")


def _items(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container


def _check_texts(values: Sequence[object]) -> None:
    """Raises where an object would show a tensor whose elements are not known."""
    for value in values:
        if not isinstance(value, (Tensor, Symbol, str, *_SHOWN)):
            str(value)


_SHOWN = (int, float, bool, complex, type(None), list, tuple, dict, set)


class Effects:
    """Notes side effects while a function is captured, and undoes them afterwards.

    Args:
        interpreter: Who executes the function.
    """

    def __init__(self, interpreter: Interpreting) -> None:
        self._interpreter = interpreter
        self._outside: dict[int, object] = {}
        self._paths: dict[int, Path] = {}
        self._log: list[Noted] = []
        self._undo: dict[int, Callable[[], None]] = {}
        self._copies: dict[int, int] = {}  # of the arguments' containers, by id of the original
        self._known: dict[int, object] = {}  # what came from outside, of any kind
        self._stored: dict[int, object] = {}  # what was made here and something outside holds
        self._both: set[int] = set()  # arguments' containers that are read elsewhere, too

    def add_originals(self, given: object, copied: Any) -> None:
        """Notes which containers of the caller the arguments' containers stand for.

        Args:
            given: ``(args, kwargs)`` of the call.
            copied: The same with the containers that are interpreted.
        """
        if isinstance(given, (list, dict)):
            other = self._copies.setdefault(id(given), id(copied))
            if other != id(copied):  # passed twice
                self._both.update((other, id(copied)))
        if isinstance(given, (list, tuple, dict)):
            keys = dict.keys(given) if isinstance(given, dict) else range(count_of(given))
            for k in keys:
                self.add_originals(item_of(given, k), item_of(copied, k))

    def apart(self) -> tuple[object, ...] | None:
        """Returns what must not be an argument, because changes would be seen in both."""
        if not self._log:
            return None
        copies = set(self._paths)
        return tuple(
            [v for i, v in self._outside.items() if isinstance(v, (list, dict)) and i not in copies]
        )

    def _met(self, container: object) -> None:
        """Notes that a container of the arguments is read elsewhere."""
        copied = self._copies[id(container)]
        self._both.update((copied, id(container)))
        if any(id(noted.owner) == copied for noted in self._log):
            self._refuse_both()

    def _refuse_both(self) -> NoReturn:
        raise CaptureError(
            "a container that is an argument and is read in another way, too, is changed",
            op="jit", at=user_source(), fix="pass it once, or do not change it",
        )  # fmt: skip

    def add_arguments(self, given: object, path: Path = ()) -> None:
        """Notes the containers among the arguments, whose changes the caller sees.

        Args:
            given: ``(args, kwargs)`` of the call, or a part of them.
            path: Where that part is.
        """
        self.seen(given)
        if isinstance(given, (list, dict)):
            self._paths[id(given)] = path
            if hasattr(given, "__dict__"):  # the key of the call holds its attributes
                self._interpreter.recorder.guards.fresh[id(given)] = given
        if isinstance(given, dict):
            if tree.has_tensor_keys(given):
                raise CaptureError(
                    "a dict with tensors as keys is an argument", op="jit", at=user_source(),
                    fix="use numbers or strings as keys",
                )  # fmt: skip
            for k, v in pairs(given):
                self.add_arguments(v, (*path, k))
        elif isinstance(given, (list, tuple)):
            for i, v in enumerate(items_in(given)):
                self.add_arguments(v, (*path, i))

    def seen(self, value: object, owner: object = None) -> object:
        """Notes a value that existed before the call.

        Args:
            value: The value.
            owner: What it was read of; if the call made that, the value need not be from outside.
        """
        if id(value) in self._copies:
            self._met(value)
        if id(value) in self._stored:
            return value
        if not isinstance(value, Tensor) and (owner is None or self.existed(owner)):
            self._known[id(value)] = value
            self._interpreter.recorder.guards.add_cells(value)  # code of the package reads it
        if isinstance(value, CHANGEABLE) or is_iterator(value):
            self._outside[id(value)] = value
        elif isinstance(value, tuple):
            for v in items_in(value):
                self.seen(v, owner)
        return value

    def store(self, *values: object) -> None:
        """Notes values that something outside holds from here on.

        Args:
            *values: The values.
        """
        for value in values:
            if isinstance(value, tuple):
                self.store(*value)
            elif not self.existed(value):
                self._stored[id(value)] = value

    def existed(self, value: object) -> bool:
        """Whether an object is known to have been there before the call.

        Args:
            value: Any object.
        """
        if isinstance(value, types.MethodType):
            value = value.__self__
        if is_cell(value):
            return id(value) not in self._interpreter.recorder.guards.made
        return id(value) in self._known or isinstance(value, (types.ModuleType, type))

    def is_old(self, value: object) -> bool:
        """Whether an object or container is known to have been there before the call.

        Args:
            value: Any object.
        """
        return self.is_outside(value) or self.existed(value)

    def reference(self, value: object) -> tree.Leaf | None:
        """Describes any object that existed before the call; numbers are no objects here.

        Args:
            value: Any object.
        """
        atom = isinstance(value, (Tensor, Symbol, tuple, str, float, int))
        return None if atom or not self.existed(value) else tree.Leaf("constant", value)

    def is_outside(self, container: object) -> bool:
        """Whether a container existed before the call.

        Args:
            container: A list, dict or set.
        """
        return any(id(v) in self._outside for v in owners(container))

    def container_in(self, owner: Any, index: Any) -> object:
        """Returns a container that is an item of another one from outside, ``None`` if it is not.

        It is guarded which container it is, and nothing else of the other one.

        Args:
            owner: The other container.
            index: Index or key.
        """
        guards = self._interpreter.recorder.guards
        if type(owner) not in (list, dict) or type(index) not in (int, str):
            return None
        if not self.is_outside(owner) or self.is_argument(owner) or id(owner) in guards.originals:
            return None
        if index not in (owner if isinstance(owner, dict) else range(-len(owner), len(owner))):
            return None
        value = owner[index]
        if type(value) not in (list, dict, set) or id(value) in self._stored:
            return None
        guards.add_item(owner, index, value)
        return self.item(owner, value)

    def is_argument(self, container: object) -> bool:
        """Whether a container stands for one that was passed.

        Args:
            container: A list, dict or set.
        """
        return id(container) in self._paths

    def existing(self, container: object) -> tree.Leaf | None:
        """Describes a container that existed before the call.

        Args:
            container: A list, dict, set, iterator or instance of a data class.
        """
        path = self._paths.get(id(container))
        if path is not None:
            return tree.Leaf("given", path)
        if dataclasses.is_dataclass(container) and self.existed(container):
            return tree.Leaf("constant", container)
        kept = isinstance(container, (list, dict, set)) or is_iterator(container)
        if not kept or not self.is_outside(container):
            return None
        if not self.existed(container):
            raise CaptureError(
                f"a {type(container).__name__} that an object of the call holds leaves it",
                op="jit", at=user_source(), fix="keep it in a variable, or make it outside",
            )  # fmt: skip
        return tree.Leaf("constant", container)

    def item(self, owner: object, value: object, taken: bool = False) -> Any:
        """Notes what comes from a container: its items are outside if it is.

        Args:
            owner: The container.
            value: An item of it, or a container that was made of its items, such as a slice.
            taken: Whether the value was an item, and is not any more.
        """
        if id(owner) not in self._outside:
            return value
        if taken or not (isinstance(owner, _HOLDING) and isinstance(value, _HOLDING)):
            return self.seen(value, owner)
        if any(v is value for v in _items(owner)):
            return self.seen(value, owner)
        for v in _items(value):
            self.seen(v, owner)
        return value

    def call(
        self, owner: Any, method: str, args: tuple[object, ...], kwargs: dict[str, object],
        node: ast.AST, frame: Frame, function: Method | None = None,
    ) -> object:  # fmt: skip
        """Calls a method that may change a container, and notes it if the container is outside.

        Args:
            owner: The container, or any object with such a method.
            method: Its name.
            args: Positional arguments.
            kwargs: Keyword arguments.
            node: What calls it.
            frame: Where.
            function: The C function that it is; by default that of the owner's class. A method
                that the class overrides is called as such, and what it does is noted then.
        """
        held = isinstance(owner, (list, dict, set))
        if held and function is None:
            function = inherited(owner, method)
        if function is not None and method in MUTATING and id(owner) in self._outside:
            if method == "setdefault" and isinstance((args or (0,))[-1], (list, dict, set)):
                self._leave(owner, node, frame)
            return self._change(owner, method, args, kwargs, node, frame, function)
        self._interpreter.recorder.guards.native_effects.keep(owner)
        if method in ("__setitem__", "__delitem__"):
            self._interpreter.impure.write_item(owner)
        bound = getattr(owner, method) if function is None else types.MethodType(function, owner)
        if function is None and (held or is_plain_object(owner)):  # whose class may be a user's
            return self._interpreter.call(bound, args, kwargs)
        self._interpreter.refuse_change(bound, args)
        return self.item(owner, bound(*args, **kwargs), taken=method in _TAKING)

    def _change(
        self, owner: Container, method: str, args: tuple[object, ...], kwargs: dict[str, object],
        node: ast.AST, frame: Frame, function: Method,
    ) -> object:  # fmt: skip
        """Changes a container from outside, and notes it with the items that were taken."""
        if id(owner) in self._both:
            self._refuse_both()
        self._interpreter.recorder.guards.native_effects.keep(owner)
        before = copy_of(owner)
        self._interpreter.recorder.guards.originals.setdefault(id(owner), before)
        self._undo.setdefault(id(owner), lambda: refill(owner, before))
        mark, given = self.mark(), args
        filled = method == "__setitem__" and isinstance(args[0], slice)
        if filled or method in _FILLING:
            pairs = [self._taking(owner, v, node, frame) for v in args[filled:]]
            given = (*args[:filled], *[v for v, _ in pairs])
            args = (*args[:filled], *[v for _, v in pairs])
        try:
            taken = method in _TAKING
            result = self.item(owner, function(owner, *given, **kwargs), taken=taken)
        except BaseException:  # an iterator may have ended it midway
            refill(owner, before)
            raise
        if any(noted.owner is owner for noted in self._log[mark:]):
            self._interpreter.refuse(
                node, frame, f"changing a {type(owner).__name__} while it takes items",
                "make a list of the items first",
            )  # fmt: skip
        if kwargs.get("key") is not None:  # `sort`, whose function did what it does
            function, method = list.__setitem__, "__setitem__"
            args, kwargs = (slice(None), [*owner]), {}
        self.store(*args, *kwargs.values())
        for v in args if given is not args else ():
            self.store(*_items(v) if isinstance(v, (list, dict)) else ())
        inside = before if self._interpreter.depth else None
        self._log.append(Noted(owner, method, args, kwargs, node, frame, inside, function))
        return result

    def _taking(
        self, owner: Container, value: Any, node: ast.AST, frame: Frame
    ) -> tuple[object, object]:
        """Returns what a container takes items of, and what holds those items afterwards.

        They are taken one by one as in Python: an iterator may look at the container meanwhile.
        """
        if isinstance(value, _FIXED) or (self.is_outside(value) and not is_iterator(value)):
            return value, value
        if isinstance(owner, dict) and hasattr(value, "keys"):
            items = dict(value)
            return items, items
        taken: list[object] = []

        def take() -> Iterator[object]:
            for item in self._interpreter.iterate(value, node, frame):
                taken.append(tuple(item) if isinstance(owner, dict) else item)
                yield taken[-1]

        return take(), taken

    def _leave(self, owner: object, node: ast.AST, frame: Frame) -> None:
        """Leaves it to Python to make an item that is there in later calls."""
        if self._interpreter.settings.lax and not self.is_argument(owner):
            self._interpreter.refuse(node, frame, "dict.setdefault() with a container")

    def again(
        self, noted: Noted, args: tuple[Any, ...], kwargs: Any, node: ast.AST, frame: Frame
    ) -> None:
        """Does what both sides of a branch did.

        Args:
            noted: The effect.
            args: Its arguments by position.
            kwargs: Its arguments by name.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        self.call(noted.owner, noted.method, args, kwargs, node, frame, noted.function)

    def mark(self) -> int:
        """Returns a position to which :meth:`take_back` can return."""
        return len(self._log)

    def take_back(self, mark: int) -> list[Noted]:
        """Undoes everything since a position, and returns it.

        Args:
            mark: The position.
        """
        done = self._log[mark:]
        for noted in reversed(done):
            refill(noted.owner, noted.before)
        del self._log[mark:]
        return done

    def unconditional(self, what: str, node: ast.AST, frame: Frame) -> None:
        """Refuses a side effect that a tensor decides about.

        Args:
            what: What the side effect is.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        if self._interpreter.depth:
            self._interpreter.refuse(
                node, frame, f"{what} where a tensor decides whether it happens",
                "do it outside of the branch or loop, with a value that both sides give",
            )  # fmt: skip

    def write_cell(self, cell: types.CellType, value: object, node: ast.AST, frame: Frame) -> None:
        """Writes a closure variable of a function from outside.

        Args:
            cell: The closure variable.
            value: What it holds then.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        before = contents(cell)
        self.store(value)
        self._undo.setdefault(id(cell), lambda: setattr(cell, "cell_contents", before))
        self._log.append(Noted(cell, "write_cell", (value,), {}, node, frame))
        self._interpreter.recorder.guards.written.add(("closure", id(cell)))
        cell.cell_contents = value

    def write_global(self, name: str, value: object, node: ast.AST, frame: Frame) -> None:
        """Writes a global variable after every call.

        Args:
            name: Name of a variable.
            value: What it holds then.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        self.store(value)
        self._log.append(Noted(frame.globals, "__setitem__", (name, value), {}, node, frame))

    def print(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
        node: ast.AST, frame: Frame,
    ) -> None:  # fmt: skip
        """Prints: after every call, or in the graph where a tensor decides about some print.

        What is printed to a buffer that the function made is there at once.

        Args:
            function: What is called, or looked at.
            args: Its arguments by position.
            kwargs: Its arguments by name.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        file = kwargs.get("file")
        if id(file) in self._interpreter.recorder.guards.own:
            function(*args, **kwargs)
            return
        if isinstance(getattr(type(file), "write", None), types.FunctionType):
            self._interpreter.refuse(node, frame, f"printing to a {type(file).__name__}")
        _check_texts([*args, *kwargs.values()])
        if self._interpreter.settings.prints:
            printing.emit(self._interpreter, function, args, kwargs, node, frame)
        elif self._interpreter.depth:
            raise CapturedAgain(replace(self._interpreter.settings, prints=True))
        else:
            self._log.append(Noted(None, function.__name__, args, kwargs, node, frame))

    def log(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
        node: ast.AST, frame: Frame,
    ) -> None:  # fmt: skip
        """Makes a record of ``logging`` after every call.

        Args:
            function: What is called, or looked at.
            args: Its arguments by position.
            kwargs: Its arguments by name.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        self.unconditional("logging", node, frame)
        what = ""
        if function.__name__ == "exception" or kwargs.get("exc_info"):
            what = "logging the traceback of an exception"
        elif self._interpreter.settings.prints:
            what = "logging in a function where a tensor decides about a print"
        if what:
            self._interpreter.refuse(node, frame, what, "log what the function returns, outside")
        _check_texts([*args, *kwargs.values()])
        record = logs.Record(function, node, frame)
        self._log.append(Noted(record, "emit", args, kwargs, node, frame))

    # ---- the end of the capture -------------------------------------------------------------

    def undo(self) -> None:
        """Takes everything back: the call itself repeats it."""
        for undo in self._undo.values():
            undo()
        self._undo.clear()

    def finish(self, stored: tree.Described, shown: tree.Described) -> tuple[Effect, ...]:
        """Returns what every call must do.

        Args:
            stored: Describes what is stored outside.
            shown: Describes what is printed.
        """

        def effect(n: Noted) -> Effect:
            describe = shown if n.owner is None or isinstance(n.owner, logs.Record) else stored
            target = self._paths.get(id(n.owner), n.owner)
            return Effect(target, n.method, describe((n.args, n.kwargs)), n.function)

        return tuple(map(effect, self._log))
