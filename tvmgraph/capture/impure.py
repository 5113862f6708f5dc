"""Impure functions of libraries: what they return or do differs from call to call.

A graph that kept what such a function gave while it was captured would be wrong at the next call.
One table says which they are and what becomes of a call in code that is compiled:

* ``"guard"``: its result is compared at every call, like a global variable that was read; another
  result captures the function again.
* ``"native"``: only plain Python can call it, so it cannot be a part of a graph.

Objects that a function makes for itself in a known state are its own: numbers drawn from
``np.random.default_rng(0)`` are constants.
"""

from __future__ import annotations

import contextvars
import datetime
import decimal
import dis
import enum
import functools
import inspect
import io
import logging
import os
import pathlib
import queue
import random
import sys
import threading
import types
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tvmgraph.capture.checks import HOLDERS, is_iterator
from tvmgraph.capture.impure_table import (
    ASKED,
    CLOCK,
    DRAW,
    FILE,
    ITERATOR,
    ONLY_COMPUTE,
    STATE,
    SYSTEM,
    TABLE,
    Impure,
)
from tvmgraph.capture.sources import reference

if TYPE_CHECKING:
    from tvmgraph.capture.protocol import Interpreting


_SHOWN = {"builtins": "", **{m: "ms." for m in TABLE if m.startswith("tvmgraph.")}}
_RANDOM = (
    random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator,
    np.random.SeedSequence,
)  # fmt: skip
# what threads, or parts of a program, pass to each other
_SHARED = (
    queue.Queue, queue.SimpleQueue, threading.Event, threading.Condition, threading.Semaphore,
    threading.Barrier, type(threading.Lock()), type(threading.RLock()),
)  # fmt: skip
# which hold what others may end
_WEAK = (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)
_STATEFUL = (*_RANDOM, io.IOBase, *_SHARED, *_WEAK)
_OWNED = (*_RANDOM, io.StringIO, io.BytesIO, *_SHARED)
_BEGIN_EMPTY = (io.IOBase, *_SHARED)
# Modules of the standard library whose objects hold what never changes, or what guards read.
_PLAIN = frozenset({
    "_contextvars", "_operator", "_struct", "_thread", "_weakref", "abc", "array", "builtins",
    "collections", "contextvars", "dataclasses", "datetime", "decimal", "enum", "fractions",
    "functools", "inspect", "ipaddress", "itertools", "numbers", "operator", "os", "pathlib", "re",
    "struct", "sys", "time", "types", "typing", "uuid", "weakref", "zoneinfo",
})  # fmt: skip
_LOGGING = (logging.Logger, logging.Handler)
_CONFIGURES = frozenset({
    "addFilter", "addHandler", "close", "flush", "removeFilter", "removeHandler", "setFormatter",
    "setLevel", "setStream",
})  # fmt: skip
_CONFIGURED = frozenset({"getEffectiveLevel", "hasHandlers", "isEnabledFor"})
_SUSPENDED = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_GUARDED = (bool, int, float, str, type(None))  # see `Guards.add_given`
_TEXTS = (str, repr, ascii, format, np.array2string, np.array_repr, np.array_str)
_NOW = ("now", "today", "utcnow")
_PATH_STATE = frozenset({
    "absolute", "cwd", "exists", "expanduser", "home", "is_dir", "is_file", "is_mount",
    "is_symlink", "resolve", "samefile",
})  # fmt: skip
_PATH_FILES = vars(pathlib.Path).keys() - vars(pathlib.PurePath).keys() - _PATH_STATE
_LOOK_UPS = ("get", "__getitem__", "__contains__")  # of one variable of the environment
_WHOLE = ("copy", "items", "keys", "values", "__iter__", "__len__", "__or__", "__ror__")
ENVIRONMENTS = tuple(e for e in (os.environ, getattr(os, "environb", None)) if e is not None)


def is_environment(value: object) -> bool:
    """Whether a value is the environment of the process.

    Args:
        value: Any object.
    """
    return any(value is e for e in ENVIRONMENTS)


def owner_of(function: object) -> object:
    """Returns the object or class that a method belongs to, or ``None``.

    Args:
        function: What is called, or looked at.
    """
    return getattr(function, "__self__", None)


def rule_of(function: Any) -> tuple[Impure, str] | None:
    """Returns what becomes of calls of a function, and its name; ``None`` for a pure one.

    Args:
        function: What is called, or looked at.
    """
    found = _by_identity().get(id(function))
    if found is not None:
        return found[:2]
    owner = owner_of(function)
    if owner is None or isinstance(owner, types.ModuleType):
        return None
    rule = _rule_of_method(owner, getattr(function, "__name__", ""))
    kind = owner if isinstance(owner, type) else type(owner)
    shown = "os.environ" if is_environment(owner) else kind.__name__
    return None if rule is None else (rule, f"{shown}.{function.__name__}")


def _rule_of_method(owner: object, name: str) -> Impure | None:
    if isinstance(owner, type):
        if issubclass(owner, datetime.date) and name in _NOW:
            return CLOCK
        return _rule_of_path(name) if issubclass(owner, pathlib.Path) else None
    if isinstance(owner, _RANDOM):
        return DRAW
    if isinstance(owner, io.IOBase):
        return FILE
    if isinstance(owner, (threading.Thread, Executor, *_SHARED, *_WEAK)):
        return SYSTEM
    if isinstance(owner, _LOGGING):
        return SYSTEM if name in _CONFIGURES else STATE if name in _CONFIGURED else None
    if isinstance(owner, pathlib.Path):
        return _rule_of_path(name)
    if isinstance(owner, contextvars.ContextVar):
        return STATE if name == "get" else SYSTEM
    if is_environment(owner):
        return STATE if name in _LOOK_UPS or name in _WHOLE else SYSTEM
    return None


def _rule_of_path(name: str) -> Impure | None:
    return STATE if name in _PATH_STATE else FILE if name in _PATH_FILES else None


def is_whole(function: Any) -> bool:
    """Whether a method of the environment reads more than one variable.

    Args:
        function: What is called, or looked at.
    """
    return is_environment(owner_of(function)) and function.__name__ in _WHOLE


# ---- objects that a function may make for itself ------------------------------------------------


def has_state(value: object) -> bool:
    """Whether a value is an object whose methods are impure unless the function made it.

    Args:
        value: Any object.
    """
    return isinstance(value, _STATEFUL)


def is_changeable(value: object) -> bool:
    """Whether a value is an object of the standard library that keeps what its methods look at.

    Nothing is known of how, so that only Python can ask one that existed before the call.

    Args:
        value: Any object.
    """
    module = getattr(type(value), "__module__", "")
    root = module.partition(".")[0] if isinstance(module, str) else ""
    if isinstance(value, decimal.Context):
        return True
    if root in _PLAIN or root not in sys.stdlib_module_names or isinstance(value, enum.Enum):
        return False
    known = (*HOLDERS, *_LOGGING, logging.LoggerAdapter, dict, list, set, tuple, BaseException)
    return not isinstance(value, known) and not isinstance(value, type)


def makes_state(function: object) -> bool:
    """Whether a call makes such an object.

    Args:
        function: What is called, or looked at.
    """
    if isinstance(function, type):
        return issubclass(function, _OWNED) and not issubclass(function, random.SystemRandom)
    return function is np.random.default_rng


def is_seeded(function: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
    """Whether such an object starts in a state that its arguments decide.

    Args:
        function: What makes the object.
        args: Its arguments by position.
        kwargs: Its arguments by name.
    """
    if isinstance(function, type) and issubclass(function, _BEGIN_EMPTY):
        return True
    return any(v is not None for v in (*args, *kwargs.values()))


UNSEEDED = Impure("native", f"give it a seed, or {DRAW.fix}")

# ---- the table as functions ---------------------------------------------------------------------

_Found = tuple[Impure, str, Callable[..., object]]


_imported: tuple[str, ...] = ()  # modules of the table, as of the last look
_awaited: list[str] = list(TABLE)  # those that were not imported then


def _modules() -> tuple[str, ...]:
    """Returns the modules of the table that are imported; asked at every call of C code."""
    global _imported, _awaited
    if any(map(sys.modules.__contains__, _awaited)):
        _imported = tuple(name for name in TABLE if name in sys.modules)
        _awaited = [name for name in TABLE if name not in _imported]
    return _imported


def _by_identity() -> dict[int, _Found]:
    return _functions(_modules())


@functools.lru_cache(maxsize=2)
def _functions(modules: tuple[str, ...]) -> dict[int, _Found]:
    found: dict[int, _Found] = {}
    for name in modules:
        for rule, listed in TABLE[name].items():  # those that are listed come last
            for attribute, function in _listed(sys.modules[name], name, listed):
                found[id(function)] = rule, f"{_SHOWN.get(name, name + '.')}{attribute}", function
    return found


def _listed(
    module: types.ModuleType, name: str, listed: Collection[str] | None
) -> Iterator[tuple[str, Any]]:
    if listed is None:
        names = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
        listed = [n for n in names if n not in ONLY_COMPUTE.get(name, ())]
        listed = [n for n in listed if not _is_data(getattr(module, n, None))]
    for n in listed:
        function = getattr(module, n, None)
        if callable(function):
            yield n, function


def _is_data(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, (BaseException, tuple, int))


@functools.lru_cache(maxsize=2)
def _codes(modules: tuple[str, ...]) -> dict[types.CodeType, _Found]:
    found = {getattr(f[2], "__func__", f[2]): f for f in _functions(modules).values()}
    return {f.__code__: v for f, v in found.items() if isinstance(f, types.FunctionType)}


def impure_codes() -> dict[types.CodeType, _Found]:
    """Returns the code of those functions of the table that are written in Python."""
    return _codes(_modules())


def rule_of_builtin(function: object) -> tuple[Impure, str] | None:
    """Returns what becomes of calls of a function in C, whoever made the object it belongs to.

    Args:
        function: What is called, or looked at.
    """
    owner = owner_of(function)
    named = isinstance(owner, (types.ModuleType, type, contextvars.ContextVar))
    return rule_of(function) if named or id(function) in _by_identity() else None


def calls_named_by(frame: types.FrameType, own: Collection[int]) -> Iterator[tuple[Impure, str]]:
    """Yields the impure functions that code names and that Python does not report to a profiler.

    These are NumPy's, of its global random stream and of generators, and all methods of objects
    with a state, which may be the code's own when it is reported.

    Args:
        frame: A frame that begins.
        own: Identities of objects with a state that the captured function made.
    """
    value: Any = None
    for step in dis.get_instructions(frame.f_code):
        name = step.argval
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            value = frame.f_globals.get(name)
        elif step.opname in ("LOAD_FAST", "LOAD_DEREF"):
            value = frame.f_locals.get(name)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            if has_state(value) and id(value) not in own:
                rule = _rule_of_method(value, name)
                if rule is not None:
                    yield rule, f"{type(value).__name__}.{name}"
            value = _member(value, name)
        else:
            value = None
        rule = None if value is None else _by_identity().get(id(value))
        if rule is not None and rule[0] is DRAW and rule[1].startswith("numpy."):
            yield rule[:2]


def _member(value: object, name: str) -> object:
    """Returns a member of a module or object, without running code of the user's."""
    if isinstance(value, types.ModuleType):
        return getattr(value, name, None)
    return None if value is None else inspect.getattr_static(value, name, None)


class ImpureCalls:
    """Deals with calls of impure functions by interpreted code.

    Args:
        interpreter: Who executes the function.

    Attributes:
        kept: The iterators from before every branch or loop that is being recorded.
    """

    def __init__(self, interpreter: Interpreting) -> None:
        self._interpreter = interpreter
        self.kept: list[dict[int, object]] = []
        self._own = interpreter.recorder.guards.own

    def call(self, function: Any, args: tuple[object, ...], kwargs: dict[str, Any]) -> object:
        """Calls a function if it is impure, or makes objects with a state.

        Args:
            function: What is called, or looked at.
            args: Its arguments by position.
            kwargs: Its arguments by name.

        Returns:
            Its result; :data:`PURE` if it is neither and was not called.
        """
        if isinstance(function, weakref.ref) and not (args or kwargs):
            self._interpreter.recorder.guards.add_weak(function)
            return self._interpreter.effects.seen(function())
        if makes_state(function):
            return self._make(function, args, kwargs)
        found = rule_of(function)
        owner = owner_of(function)
        if found is None or (id(owner) in self._own and self._are_own(args, kwargs)):
            if found is None:
                return PURE
            return self._adopt(self._interpreter.run_unchanging(function, args, kwargs))
        rule, name = found
        if len(args) + len(kwargs) >= rule.pure_from:
            return PURE
        if rule.treatment == "guard":
            return self._guarded(function, name, args, kwargs)
        self._refuse(rule, f"{name}()")

    def _make(
        self, function: Any, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> object:
        name = f"{getattr(function, '__name__', '')}()"
        if not is_seeded(function, args, kwargs):
            self._refuse(UNSEEDED, f"{name} without a seed")
        if not self._are_own(args, kwargs):
            self._refuse(DRAW, f"{name} of a generator from outside")
        return self._adopt(function(*args, **kwargs))

    def _adopt(self, value: object) -> object:
        for v in value if isinstance(value, (list, tuple)) else (value,):
            if has_state(v):
                self._own[id(v)] = v
        return value

    def _are_own(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
        given = (*args, *kwargs.values())
        return all(id(v) in self._own for v in given if has_state(v))

    def _guarded(
        self, function: Any, name: str, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> object:
        if is_whole(function):
            self.hand_out(function.__self__)
            return function(*args, **kwargs)
        result = function(*args, **kwargs)
        shown = ", ".join(map(repr, args))
        key = (name, shown, repr(kwargs))
        guards = self._interpreter.recorder.guards
        label = f"os.environ[{shown}]" if is_environment(owner_of(function)) else f"{name}({shown})"
        guards.add_result(key, label, lambda: function(*args, **kwargs), result)
        return result

    def hand_out(self, *values: object, called: object = None) -> None:
        """Deals with values that go to code which is not interpreted.

        Args:
            *values: The values.
            called: What they are passed to.
        """
        shown = called in _TEXTS or isinstance(owner_of(called), str)
        for value in values:
            self._note_settings(value, shown)
            if is_environment(value):
                self._interpreter.recorder.guards.add_environment()
            elif has_state(value) and id(value) not in self._own:
                name = f"using a {type(value).__name__} from outside"
                self._refuse(DRAW if isinstance(value, _RANDOM) else FILE, name)
            elif is_changeable(value) and self._from_outside(value):
                self._refuse(ASKED, f"asking a {type(value).__name__} from outside")
            elif is_iterator(value) and self._interpreter.effects.is_outside(value):
                self._refuse(ITERATOR, f"taking items of a {type(value).__name__} from outside")
            elif any(id(value) in known for known in self.kept):
                what = f"taking items of a {type(value).__name__} where a tensor decides about it"
                self._refuse(ITERATOR, what)
            elif callable(value) and called not in (None, functools.partial):
                found = rule_of(value)
                if found is not None and found[0].treatment == "native":
                    self._refuse(found[0], f"{found[1]}()")

    def _from_outside(self, value: object) -> bool:
        """Whether Python is to ask an object; a whole graph keeps what it once said."""
        return self._interpreter.settings.lax and self._interpreter.effects.existed(value)

    def look_into(self, *values: object) -> None:
        """Deals with an operator that shows what objects hold.

        Args:
            *values: What the operator shows.
        """
        guards = self._interpreter.recorder.guards
        for value in values:
            self._note_settings(value)
            if isinstance(value, _WEAK) or is_changeable(value):
                self.hand_out(value)
            elif isinstance(value, HOLDERS):
                guards.add_object(value)

    def _note_settings(self, value: object, shown: bool = False) -> None:
        """Guards the settings by which Python computes with a number, or NumPy writes an array."""
        guards = self._interpreter.recorder.guards
        if isinstance(value, decimal.Decimal):
            guards.add_result("decimal", "the decimal context", _decimal_settings,
                              _decimal_settings())  # fmt: skip
        if shown and _has_array(value):
            options = np.get_printoptions
            guards.add_result("printoptions", "numpy.get_printoptions()", options, options())

    def show(self, value: object) -> None:
        """Deals with a value whose text is taken.

        Args:
            value: Any object.
        """
        self._note_settings(value, shown=True)

    def read(self, owner: object, name: str, value: object) -> None:
        """Deals with an attribute of an object of Python or its library.

        Args:
            owner: What it belongs to.
            name: Name of a variable.
            value: Any object.
        """
        if isinstance(owner, np.ndarray) and name == "flags":
            kept = reference(owner)
            self._interpreter.recorder.guards.add_result(
                ("flags", id(owner)), "the flags of an array", lambda: _flags(kept()), _flags(owner)
            )
        elif not callable(value) and self._is_asked(owner, value):
            what = f"reading {name!r} of a {type(owner).__name__} from outside"
            self._refuse(ITERATOR if isinstance(owner, _SUSPENDED) else ASKED, what)

    def _is_asked(self, owner: object, value: object) -> bool:
        """Whether Python is to read what an attribute of an object holds."""
        if isinstance(owner, _SUSPENDED):
            return self._interpreter.effects.is_outside(owner)
        if not (isinstance(owner, _LOGGING) or is_changeable(owner)):
            return False
        guarded = isinstance(value, _GUARDED) and hasattr(owner, "__dict__")
        return not guarded and self._from_outside(owner)

    def write_item(self, owner: object) -> None:
        """Deals with an assignment to an item of an object.

        Args:
            owner: What it belongs to.
        """
        self.look_into(owner)
        if is_environment(owner):
            self._refuse(SYSTEM, "writing a variable of the environment")

    def _refuse(self, rule: Impure, what: str) -> NoReturn:
        self._interpreter.refuse_here(
            f"{what}, which plain Python would run at every call,", rule.fix
        )


def _decimal_settings() -> tuple[object, ...]:
    now = decimal.getcontext()
    traps = tuple([signal.__name__ for signal, on in now.traps.items() if on])
    return now.prec, now.rounding, now.Emin, now.Emax, now.capitals, now.clamp, traps


def _flags(array: object) -> int:
    return array.flags.num if isinstance(array, np.ndarray) else -1


def _has_array(value: object) -> bool:
    """Whether the text of a value has that of an array in it."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, (list, tuple)):
        return any(map(_has_array, value))
    return isinstance(value, (np.ndarray, np.generic))


PURE = object()
