"""Guards: what a captured function read besides its arguments, and whether it still holds.

Interpreted code is guarded read by read: a global, a closure variable, an attribute, the method a
class gave. Code that runs natively (a function without source, ``"trace"`` mode) is observed frame
by frame: the globals its code names, the objects passed to it. A compiled entry is used only while
all of that still holds, so a change outside recompiles instead of giving a stale result. Tensors
are guarded by identity alone: their elements are read at every call.
"""

from __future__ import annotations

import enum
import functools
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tvmgraph.capture import sources
from tvmgraph.capture.cell_state import CellState
from tvmgraph.capture.changes import changed_by_code
from tvmgraph.capture.checks import (
    CellLike,
    Check,
    attributes,
    brief,
    check_of,
    has_contents,
    is_cell,
    is_fixed,
    is_immutable,
    is_library,
    is_mortal,
    is_mutable,
    is_plain_object,
)
from tvmgraph.capture.conditions import Conditions, is_same
from tvmgraph.capture.containers import items_in
from tvmgraph.capture.frame_tracer import FrameTracer
from tvmgraph.capture.guard import CodeGuard, Guard
from tvmgraph.capture.impure import (
    ENVIRONMENTS,
    Impure,
    calls_named_by,
    impure_codes,
    rule_of_builtin,
)
from tvmgraph.capture.native_effects import NativeEffects
from tvmgraph.config import context
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import CaptureError, file_name

_SMALL = 64  # elements of a tensor that are compared one by one, should NumPy code write to them
_CONTAINERS = (list, dict, set)
_NUMBERS = (int, float)
# attributes of classes that their own `__dict__` does not hold, or holds differently
_OF_CLASSES = frozenset({"__annotations__", "__bases__", "__doc__", "__name__", "__qualname__"})
_SETTINGS = (bool, int, float, str, type(None))  # of objects of libraries


class Guards(Conditions):
    """All conditions under which a captured function may be reused, as they are found.

    Attributes:
        precise: Whether user code is interpreted, so that every read is known.
        pure: Whether code that is not interpreted is refused before it changes anything outside.
        own: Objects with a state, such as random generators, that the capture made, by ``id``.
        fresh: Other objects than Cells that it made, by ``id``: what they hold is no read.
        written: Attributes and variables that the capture wrote: what it reads of them later is
            its own.
        blind: Set while something is looked up only to be appended to.
        tracer: Watches user code that runs natively.
        native_effects: What objects held that code which is not interpreted may change.
    """

    def __init__(self) -> None:
        super().__init__()
        self.precise = self.pure = False
        self.written: set[object] = set()
        self.blind = False
        self.own: dict[int, object] = {}
        self.fresh: dict[int, object] = {}
        self._entered: set[int] = set()
        self._impure = impure_codes()
        self.tracer = FrameTracer(self.add_frame, self.add_builtin, self._impure)
        self.native_effects = NativeEffects()
        self._codes: set[object] = set()

    # ---- what interpreted code reads --------------------------------------------------------

    def add_variable(self, cell: types.CellType, name: str) -> None:
        """Guards a closure variable.

        Args:
            cell: What holds it.
            name: Its name.
        """
        source = sources.Closure(("closure", id(cell)), f"closure variable {name!r}", cell)
        self.add_cells(self._add(source))

    def add_global(self, space: dict[str, object], name: str) -> None:
        """Guards a global variable, also where it does not exist and a builtin is meant.

        Args:
            space: The globals of the code that names it.
            name: Its name.
        """
        source = sources.Global(("global", id(space), name), f"global {name!r}", space, name)
        self.add_cells(self._add(source))

    def add_read(self, owner: object, name: str) -> None:
        """Guards an attribute that interpreted code reads.

        Args:
            owner: A module, class, Cell, function or other object.
            name: The attribute.
        """
        if isinstance(owner, types.ModuleType):
            self._add_module_read(owner, name)
        elif isinstance(owner, type):
            self._add_inherited(owner, name)
            if name in _OF_CLASSES and not is_library(owner.__module__):
                self._add(sources.kept_inside(owner, name))
        elif is_cell(owner):
            self._add_cell_read(owner, name)
        elif isinstance(owner, types.FunctionType):
            if not is_library(owner.__module__):
                inside = name in vars(types.FunctionType)
                self._add(
                    sources.kept_inside(owner, name) if inside else sources.member(owner, name)
                )
        elif id(owner) in self.fresh:
            if name not in getattr(owner, "__dict__", ()):
                self._add_inherited(type(owner), name)
        elif is_plain_object(owner):
            if name == "__dict__":
                self.add_object(owner)
                return
            self.add_kind(owner)
            if isinstance(owner, enum.Enum) and name in ("name", "value"):
                name = f"_{name}_"
            self._add(sources.member(owner, name))
            if name not in getattr(owner, "__dict__", ()):
                self._add_inherited(type(owner), name)

    def _add_module_read(self, module: types.ModuleType, name: str) -> None:
        own = not is_library(module.__name__)
        held = getattr(module, name, None)  # a registry of a library, such as `sys.path`
        if own or isinstance(held, _CONTAINERS):
            self._add(sources.member(module, name))
        if own and name not in vars(module):
            self._add(sources.member(module, "__getattr__"))

    def add_kind(self, value: object) -> None:
        """Guards the class of a user's object.

        Args:
            value: The object; any other value is left alone.
        """
        if is_plain_object(value) and id(value) not in self.fresh:
            title = f"the class of a {type(value).__name__}"
            self._add(sources.Kind(("class of", id(value)), title, sources.reference(value)))
            self.add_bases(type(value))

    def add_bases(self, cls: type) -> None:
        """Guards what a class of the user's inherits from.

        Args:
            cls: The class; one of a library is left alone.
        """
        if not is_library(cls.__module__):
            self._add(sources.kept_inside(cls, "__mro__"))

    def add_weak(self, ref: weakref.ref[object]) -> None:
        """Guards which object a weak reference gives, or that it is gone.

        Args:
            ref: The reference.
        """
        value = ref()
        guard = Guard(sources.Result(("weak", id(ref)), "a weak reference", ref), is_same(None), "")
        if value is not None:
            guard.value, guard.weak, now = sources.reference(value), True, sources.reference(value)
            guard.same = lambda v: v is not None and v is now()
        self._always.setdefault(guard.source.key, guard)

    def add_given(self, owner: object, name: str, value: object) -> None:
        """Guards plain data of an object of a library, and what users set on tensors.

        Args:
            owner: The object.
            name: The attribute.
            value: What it gave.
        """
        if isinstance(owner, Tensor) and name in owner.__dict__:  # what a user set
            self._add(sources.member(owner, name))
            return
        kinds = (bool, str) if isinstance(owner, Tensor) else _SETTINGS
        if type(value) in kinds or isinstance(owner, BaseException):
            self._add(sources.kept_inside(owner, name))

    def _add_cell_read(self, cell: CellLike, name: str) -> None:
        if (id(cell), name) in self.written:
            return
        self.add_cell(cell)
        state_of = self._cells[id(cell)][1]
        if name == "__dict__":
            state_of.widen(cell)
            self._add_mutable(cell)
        state_of.note(cell, name)
        if name in cell.__dict__:
            if is_mutable(cell.__dict__[name]) and id(cell) not in self.made:
                self._add(sources.member(cell, name))
        elif name not in cell._params and name not in cell._cells:
            self._add_inherited(type(cell), name)

    def _add_inherited(self, cls: type, name: str) -> None:
        """Guards what a class or its bases hold, up to the one that has the name."""
        self.add_bases(cls)
        if name.startswith("__") and name not in ("__call__", "__init__"):
            return
        self._add_found(cls, name)

    def _add_found(self, cls: type, name: str) -> None:
        for base in cls.__mro__:
            if is_library(base.__module__):
                break
            self._add(sources.member(base, name, "class"))
            if name in vars(base):
                return
        if type(cls) is not type:
            self._add_inherited(type(cls), name)

    def _add_method(self, owner: object, code: types.CodeType) -> None:
        """Guards which method, such as that of an operator, runs for an object."""
        for base in type(owner).__mro__:
            if is_library(base.__module__):
                return
            for name, value in vars(base).items():
                if getattr(value, "__code__", None) is code:
                    self._add_found(type(owner), name)
                    return

    def add_call(self, function: types.FunctionType) -> None:
        """Guards the code and the defaults of a function that is interpreted.

        Args:
            function: The function.
        """
        defaults = check_of((function.__defaults__, function.__kwdefaults__))
        code = function.__code__

        def same(f: Any) -> bool:
            return f.__code__ is code and defaults((f.__defaults__, f.__kwdefaults__))

        key = ("function", id(function))
        plain = function.__defaults__ is None and function.__kwdefaults__ is None
        guard = CodeGuard if plain else Guard
        self._always.setdefault(
            key, guard(sources.Fixed(key, f"code of {function.__name__}", function), same, "")
        )

    def add_item(self, owner: object, index: int | str, value: object) -> None:
        """Guards which container is an item of another, of which nothing else counts.

        Args:
            owner: The outer container.
            index: Position or key of the inner one.
            value: The inner one.
        """
        source = sources.Item(("item", id(owner), index), f"item {index!r}", owner, index)
        self._always.setdefault(source.key, Guard(source, is_same(value), brief(value), value))

    def add_setting(self, name: str) -> None:
        """Guards a setting of the context.

        Args:
            name: The setting.
        """
        self._add(sources.member(context, name, "setting"))

    def add_result(
        self, key: object, label: str, read: Callable[[], object], value: object
    ) -> None:
        """Guards what a function of a library returned.

        Args:
            key: What is read, with its arguments.
            label: It as text, for messages.
            read: Calls the function again.
            value: What it returned.
        """
        source = sources.Result(("result", key), label, read)
        self._always.setdefault(source.key, Guard(source, check_of(value), brief(value)))

    def add_memoized(
        self, key: object, label: str, read: Callable[[], object], value: object
    ) -> None:
        """Guards which object a memoized function of the user's returns.

        Args:
            key: The function, with its arguments.
            label: It as text, for messages.
            read: Calls it again.
            value: What it returned.
        """
        source = sources.Memoized(("memoized", key), label, read)
        guard = Guard(source, is_same(value), brief(value))
        if is_mortal(value):
            guard.value, guard.weak = sources.reference(value), True
        else:
            guard.value = value
        self._always.setdefault(source.key, guard)

    def add_registry(self, function: Any) -> bool:
        """Guards what ``functools.singledispatch`` chooses among, if a function is one of those.

        Args:
            function: Anything that is called.
        """
        if not isinstance(function, types.FunctionType):
            return False
        registry = getattr(function, "registry", None)
        known = isinstance(registry, types.MappingProxyType)
        if known:
            found, title = tuple(registry.items()), f"{function.__name__}.registry"
            self.add_result(title, title, lambda: tuple(registry.items()), found)
        return known

    def add_environment(self) -> None:
        """Guards all variables of the environment."""
        whole = ENVIRONMENTS[0].copy
        self.add_result("os.environ", "os.environ", whole, whole())

    @contextmanager
    def looking_away(self) -> Iterator[None]:
        """Guards containers that are looked up without what they hold."""
        before, self.blind = self.blind, True
        try:
            yield
        finally:
            self.blind = before

    def note_write(self, owner: object, name: str) -> None:
        """Notes that the capture writes an attribute: what it reads later is its own.

        Args:
            owner: The object.
            name: The attribute.
        """
        if is_cell(owner):
            self.written.add((id(owner), name))
        else:
            self.written.add(sources.member(owner, name).key)

    # ---- what other code may read -----------------------------------------------------------

    def add_function(self, function: object) -> None:
        """Guards the Cell that the captured function is bound to, its code and closure.

        Args:
            function: A function or bound method.
        """
        self.add_cells(getattr(function, "__self__", None))
        function = getattr(function, "__func__", function)
        if isinstance(function, types.FunctionType):
            self.add_call(function)
        if self.precise:
            return
        names = getattr(getattr(function, "__code__", None), "co_freevars", ())
        for name, cell in zip(names, getattr(function, "__closure__", None) or ()):
            self.add_variable(cell, name)

    def add_frame(self, frame: types.FrameType) -> None:
        """Guards the globals that a native user frame's code names and what is passed to it.

        Args:
            frame: A frame that begins.
        """
        code, space = frame.f_code, frame.f_globals
        found = self._impure.get(code)
        if found is not None and frame.f_back is not None and _is_user(frame.f_back):
            given = [frame.f_locals[n] for n in code.co_varnames[: code.co_argcount]]
            self._add_impure(found[0], found[1], frame.f_back, lambda: found[2](*given))
        if is_library(space.get("__name__")):
            return
        self._refuse_change(frame)
        for name in code.co_varnames[: code.co_argcount]:
            value = frame.f_locals.get(name)
            if code.co_name == "__init__" and is_plain_object(value) and not attributes(value):
                self.fresh[id(value)] = value  # it is being made
            self._add_given(value, code)
        for name in code.co_varnames[: min(1, code.co_argcount)]:
            self._add_method(frame.f_locals.get(name), code)
        self.native_effects.keep(*frame.f_locals.values())
        if (code, id(space)) in self._codes:
            return
        self._codes.add((code, id(space)))
        for name in code.co_names:
            if name in space:
                self.add_global(space, name)
                self.native_effects.keep(space[name])
                self._add_members(space[name], code)

        self._add_names(frame)

    def _add_given(self, value: object, code: types.CodeType) -> None:
        """Guards what an argument holds, and what code names of its class."""
        self.add_object(value)
        if is_plain_object(value):
            for name in code.co_names:
                if hasattr(type(value), name):
                    self._add_inherited(type(value), name)

    def _refuse_change(self, frame: types.FrameType) -> None:
        what = self.pure and changed_by_code(frame)
        if what:
            name, file = frame.f_code.co_name, file_name(frame.f_code.co_filename)
            self.refused = self.refused or CaptureError(
                f"{name}, which is not interpreted, changes {what}", op="jit",
                at=f"{file}:{frame.f_lineno}", fix="do it outside of the compiled function",
            )  # fmt: skip
            raise self.refused

    def _add_names(self, frame: types.FrameType) -> None:
        """Looks for what Python does not report when it happens."""
        if "environ" in frame.f_code.co_names:
            self.add_environment()
        if _is_user(frame):
            for rule, name in calls_named_by(frame, self.own):
                self._add_impure(rule, name, frame, None)

    def add_builtin(self, frame: types.FrameType, function: Any) -> None:
        """Guards or refuses an impure function in C that native user code calls.

        Args:
            frame: The caller.
            function: What it calls.
        """
        if not _is_user(frame):
            return
        self.native_effects.keep(getattr(function, "__self__", None))
        found = rule_of_builtin(function)
        if found is not None:
            self._add_impure(*found, frame, function if found[0].treatment == "guard" else None)

    def _add_impure(
        self, rule: Impure, name: str, frame: types.FrameType, call: Callable[[], object] | None
    ) -> None:
        if call is not None and rule.treatment == "guard":
            self.add_result((name, id(frame)), f"{name}()", call, call())
        elif self.refused is None:
            at = f"{file_name(frame.f_code.co_filename)}:{frame.f_lineno}"
            self.refused = CaptureError(
                f"{name}(), which plain Python would run at every call, is not supported in a "
                "static graph", op=frame.f_code.co_name, at=at, fix=rule.fix,
            )  # fmt: skip

    def _add_members(self, value: object, code: types.CodeType) -> None:
        """Guards the members of a user's module or class that code names."""
        if isinstance(value, (types.ModuleType, type)) and not is_fixed(value):
            for name in code.co_names:
                if name in vars(value):
                    self._add(sources.member(value, name))

    def add_object(self, value: object) -> None:
        """Guards all attributes of an object that goes to code which is not interpreted.

        Args:
            value: The object, or a list, tuple or dict of such.
        """
        if is_cell(value):
            if "param_prefix" not in value.__dict__:
                return  # it is being made here: Cell.__init__ sets that last
            self.add_cell(value)
            self._cells[id(value)][1].widen(value)
            self._add_mutable(value)
        elif id(value) in self.fresh:
            if id(value) not in self._entered:
                self._entered.add(id(value))
                self.add_object([*attributes(value).values()])
        elif is_plain_object(value) or isinstance(value, functools.partial):
            key = ("object", id(value))
            source = sources.Referred(key, type(value).__name__, sources.reference(value))
            guard = Guard(source, check_of(value), "")
            self._always.setdefault(key, guard)
        elif isinstance(value, types.FunctionType) and not is_fixed(value):
            key = ("code", id(value))
            guard = Guard(sources.Fixed(key, value.__name__, value), check_of(value), "")
            self._always.setdefault(key, guard)
        elif isinstance(value, type) and not is_library(value.__module__):
            self.add_object(value.__new__)  # that of a named tuple has defaults
        elif isinstance(value, (list, tuple, dict)):
            for v in items_in(value):
                self.add_object(v)

    def add_cell(self, cell: CellLike) -> None:
        """Guards parameters, sub-cells and flags of a Cell and of every Cell below it.

        Args:
            cell: The Cell.
        """
        if id(cell) in self._cells:
            return
        was_on = self.tracer.enable(False)
        try:
            self._add_new_cell(cell)
        finally:
            self.tracer.enable(was_on)

    def _add_new_cell(self, cell: CellLike) -> None:
        known = CellState(cell, self.precise)
        self._cells[id(cell)] = (weakref.ref(cell), known)
        if known.wide:
            self._add_mutable(cell)
        known.note(cell, "construct")
        self._add_inherited(type(cell), "construct")
        for child in cell._cells.values():
            if child is not None:
                self.add_cell(child)

    def _add_mutable(self, cell: CellLike) -> None:
        for name in self._cells[id(cell)][1].plain:
            if is_mutable(cell.__dict__.get(name)) and id(cell) not in self.made:
                self._add(sources.member(cell, name))
        for base in type(cell).__mro__:
            if not is_library(base.__module__):
                for name, value in vars(base).items():
                    if not name.startswith("__") and not callable(value):
                        self._add(sources.member(base, name, "class"))

    def add_cells(self, value: object) -> None:
        """Guards a Cell from outside, or those in a list or tuple.

        Args:
            value: Anything; what holds no Cell is left alone.
        """
        if is_cell(value):
            self.add_cell(value)
        elif isinstance(value, (list, tuple)):
            for v in items_in(value):
                self.add_cells(v)

    def add_value(self, tensor: Tensor) -> None:
        """Guards the elements of a tensor that Python code looked at.

        Args:
            tensor: The tensor.
        """
        array = tensor.array
        small = check_of(array) if array.size <= _SMALL else lambda _: True
        token = tensor.token
        key = ("value", id(tensor))
        source = sources.Fixed(key, f"the value of {getattr(tensor, 'name', 'a tensor')}", tensor)
        same = lambda t: t.token is token and small(t.array)  # noqa: E731
        self._always.setdefault(key, Guard(source, same, ""))

    def _add(self, source: sources.Source) -> object:
        """Guards what a source holds now; returns it."""
        value = source.read()
        found = self._always.get(source.key)
        if found is not None:
            found.active = found.active or not self.blind
            return value
        if source.key in self.written:
            return value
        self.native_effects.note(value)
        known = self.originals.get(id(value), value)
        guard = Guard(source, check_of(known, objects=False), brief(known))
        if has_contents(value):
            self._read.append((guard, value))
        if isinstance(value, _CONTAINERS):
            guard.container, guard.active = value, not self.blind
            guard.same = self._pinned(id(value), guard.same)
        elif is_mortal(value):
            guard.value, guard.weak = sources.reference(value), True
        elif value is not sources.ABSENT and (is_immutable(value) or self._is_interpreted(value)):
            guard.value = value
        self._always[source.key] = guard
        return value

    def _is_interpreted(self, value: object) -> bool:
        """Whether a function's code is guarded when it is called."""
        return self.precise and isinstance(value, types.FunctionType)

    def _pinned(self, identity: int, same: Check) -> Check:
        """Requires the very container if the capture changes it: its changes are repeated."""
        originals = self.originals
        return lambda v: (id(v) == identity or identity not in originals) and same(v)


def _is_user(frame: types.FrameType) -> bool:
    return _is_of_user(frame.f_code.co_filename, str(frame.f_globals.get("__name__")))


@functools.lru_cache(maxsize=4096)  # asked at every call of library code
def _is_of_user(path: str, module: str) -> bool:
    installed = "site-packages" in path or "dist-packages" in path
    return not installed and not is_library(module)
