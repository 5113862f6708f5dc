"""Reads and writes of attributes, closure variables and globals by interpreted code."""

# pyright: reportGeneralTypeIssues=false
# (a part of Interpreter: `self` is the whole of it)
from __future__ import annotations

import ast
import functools
import inspect
import types
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tvmgraph.capture import memoized
from tvmgraph.capture.checks import is_cell, is_library, is_lifetime_observed, is_plain_object
from tvmgraph.capture.containers import method_of
from tvmgraph.capture.frame import Frame, Unset
from tvmgraph.capture.hoist import Hoist
from tvmgraph.capture.nested import NestedFunction
from tvmgraph.capture.sources import ABSENT, Closure, Global, Source, contents, member
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import GlobalWrite

if TYPE_CHECKING:
    from tvmgraph.capture.interpreter import Interpreter

_warned: set[str] = set()


class Outside:
    """The part of the interpreter that deals with what exists outside of the function."""

    def attribute(self: Interpreter, owner: object, name: str, *default: object) -> Any:
        """Reads an attribute, interpreting properties of user classes.

        Args:
            owner: What it belongs to.
            name: Name of the attribute.
            *default: What is returned if there is none; without it that is an error.
        """
        if name == "__class__" and isinstance(owner, TracedTensor):
            return owner.shown_type
        if name == "has_key" and isinstance(owner, dict):  # of Python 2, and of MindSpore's graphs
            name = "__contains__"
        if name == "__dict__" and not isinstance(owner, (type, types.ModuleType)):
            self.refuse_here("reading `__dict__`", "name the attributes you need")
        if isinstance(owner, types.CellType) and name == "cell_contents":
            return self.effects.seen(self._cell_value(owner, name), owner)
        if not isinstance(owner, Tensor):
            if self.hoisted and ("attribute", id(owner), name) in self.hoisted:
                return self._variable(("attribute", id(owner), name))
            found = inspect.getattr_static(type(owner), name, None)
            if isinstance(found, functools.cached_property) and self._is_read(found.func):
                memoized.read(self, owner, found)
            self.recorder.guards.add_read(owner, name)
            if isinstance(found, property) and self._interpretable(found.fget) is not None:
                return self.call(found.fget, (owner,), {})
        value = getattr(owner, name, *default)
        self.impure.read(owner, name, value)
        if self._is_given(owner, name):
            self.recorder.guards.add_given(owner, name, value)
        if isinstance(owner, types.ModuleType) or not isinstance(value, types.BuiltinMethodType):
            self.effects.seen(value, owner)
        return value

    def _is_given(self: Interpreter, owner: object, name: str) -> bool:
        """Whether an object of this package or a library held an attribute before the call."""
        if isinstance(owner, Tensor):
            has = isinstance(owner, Parameter) or name in owner.__dict__
            return has and not self.recorder.is_made(owner)
        if isinstance(owner, (type, types.ModuleType)) or not self.effects.existed(owner):
            return False
        known = is_library(type(owner).__module__) and not is_plain_object(owner)
        return isinstance(owner, BaseException) or (known and hasattr(owner, "__dict__"))

    def _variable(self: Interpreter, key: object) -> Any:
        value = self.hoisted.read(key)
        if isinstance(value, Unset):
            self.refuse_here(
                f"this cannot be read here: {value.why}",
                "give it a value of one shape and dtype on every path", verb="",
            )  # fmt: skip
        return value

    def set_attribute(
        self: Interpreter, owner: object, name: str, value: object, node: ast.AST, frame: Frame
    ) -> None:
        """Writes an attribute; every call repeats it.

        Args:
            owner: What it belongs to.
            name: Name of the attribute.
            value: What it holds then.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        frame.node = node
        if is_cell(owner) and name in owner._params and isinstance(value, Tensor):
            setattr(owner, name, value)  # the value of a parameter: a result of the graph
            return
        if isinstance(value, NestedFunction):
            self.refuse(node, frame, "storing a function in an attribute", "define it outside")
        if isinstance(owner, types.CellType):
            self._write_cell(owner, name, value, frame)
            return
        if isinstance(owner, TracedTensor) and not hasattr(Tensor, name):
            self.refuse(node, frame, "writing an attribute of a Tensor", "keep it in a variable")
        if not isinstance(owner, (type, Tensor)) and not is_cell(owner):
            setter = self._setter(owner, name)
            if setter is not None:
                self.invoke(*setter(value), {}, node, frame)
                return
            if self.effects.is_argument(owner):
                self.refuse(
                    node, frame, f"writing an attribute of a {type(owner).__name__} argument"
                )
        kept = inspect.getattr_static(type(owner), name, None)
        if isinstance(kept, types.GetSetDescriptorType) and self.effects.is_old(owner):
            self.refuse(node, frame, f"writing {name!r} of a {type(owner).__name__} from outside")
        source = member(owner, name)
        if self.settings.lax and is_lifetime_observed(source.read()):
            self.refuse(node, frame, f"replacing the attribute {name!r}, whose end is noticed,")
        if source.key in self.hoisted:
            self.hoisted.write(source.key, value)
        elif self.depth and not self._is_made_here(owner, name, node, frame):
            self.recorder.guards.add_read(owner, name)
            before = getattr(owner, name, ABSENT)
            what = f"writing the attribute {name!r}"
            raise Hoist(source, before, lambda v: self._set_attribute(owner, name, v), what)
        else:
            self._set_attribute(owner, name, value)

    def _is_made_here(
        self: Interpreter, owner: object, name: str, node: ast.AST, frame: Frame
    ) -> bool:
        """Whether the branch or loop that is recorded made an object, which nobody else sees."""
        region = self.recorder.region
        maker = region.maker_of(owner)
        if maker not in (None, region, self.recorder.root):  # recorded again it is another object
            self.refuse(
                node, frame, f"writing the attribute {name!r} of what a branch or loop around made",
                "write it where the object is made",
            )  # fmt: skip
        return maker is region

    def _setter(
        self: Interpreter, owner: object, name: str
    ) -> Callable[[object], tuple[object, tuple[object, ...]]] | None:
        """Returns what is called, with which arguments, when an attribute gets a value.

        That is ``__setattr__`` of the class, a property, or another descriptor; ``None`` if the
        value is just stored.
        """
        setter = type(owner).__setattr__
        own = self.settings.lax and self._interpretable(setter) is not None
        other = getattr(setter, "__name__", "") != "__setattr__"  # such as `dict.__setitem__`
        if own or (other and method_of(setter, (owner,)) is not None):
            return lambda value: (setter, (owner, name, value))
        found = inspect.getattr_static(type(owner), name, None)
        if isinstance(found, property) and self._interpretable(found.fset) is not None:
            return lambda value: (found.fset, (owner, value))
        puts = getattr(type(found), "__set__", None)
        if self._interpretable(puts) is not None:
            return lambda value: (puts, (found, owner, value))
        return None

    def _set_attribute(self: Interpreter, owner: object, name: str, value: object) -> None:
        if not is_cell(owner):
            self.recorder.guards.native_effects.keep(owner)
            self.recorder.before_attribute(owner, name)
        self.recorder.guards.note_write(owner, name)
        self.effects.store(value)
        setattr(owner, name, value)

    def check_raw_write(self: Interpreter, function: object, args: tuple[object, ...]) -> None:
        """Leaves to Python what writes past the ``__setattr__`` of a class, or deletes.

        What the call itself made may be written in any way.

        Args:
            function: What is called.
            args: Its arguments by position.
        """
        if isinstance(function, types.MethodWrapperType):
            args = (function.__self__, *args)
        elif function is not delattr and not isinstance(function, types.WrapperDescriptorType):
            return
        name = getattr(function, "__name__", "")
        writes = name in ("delattr", "__delattr__", "__setattr__")
        if writes and args and self.effects.existed(args[0]):
            self.refuse_here(f"{name}() of an object from outside", "write `o.name = value`")

    def read_outside(self: Interpreter, name: str, frame: Frame) -> object:
        """Returns what a closure variable, global or builtin denotes.

        Args:
            name: Name of a variable.
            frame: The frame in which that code runs.
        """
        guards = self.recorder.guards
        cell = frame.cell(name)
        if cell is not None:
            return self.effects.seen(self._cell_value(cell, name))
        if self.hoisted:
            key = _global(name, frame).key
            if key in self.hoisted:
                return self._variable(key)
        if (id(frame.globals), name) not in self.overlay:
            guards.add_global(frame.globals, name)
        return self.effects.seen(frame.outside(name, self.overlay))

    def _cell_value(self: Interpreter, cell: types.CellType, name: str) -> object:
        key = ("closure", id(cell))
        if self.hoisted and key in self.hoisted:
            return self._variable(key)
        self.recorder.guards.add_variable(cell, name)
        return cell.cell_contents

    def _write_cell(
        self: Interpreter, cell: types.CellType, name: str, value: object, frame: Frame
    ) -> None:
        """Writes a closure variable, as ``f.__closure__[0].cell_contents = v`` does."""
        source = Closure(("closure", id(cell)), f"closure variable {name!r}", cell)
        node = frame.node or frame.source.node

        def write(value: object) -> None:
            self.effects.write_cell(cell, value, node, frame)

        if source.key in self.hoisted:
            self.hoisted.write(source.key, value)
        elif self.depth:
            self.recorder.guards.add_variable(cell, name)
            raise Hoist(source, contents(cell), write, f"writing {source.label}")
        else:
            write(value)

    def write_outside(self: Interpreter, name: str, value: object, frame: Frame) -> None:
        """Writes a closure variable or a global.

        Whether others see a global written, is the user's choice (``global_writes``).

        Args:
            name: Name of a variable.
            value: What it holds then.
            frame: The frame in which that code runs.
        """
        node, cell = frame.node or frame.source.node, frame.cell(name)
        if cell is not None:
            self._write_cell(cell, name, value, frame)
            return
        if not self.settings.global_writes:
            self.recorder.guards.add_setting("global_writes")
        if self.settings.on_global_write == "error":
            self.refuse(
                node, frame, f"writing the global {name!r}",
                "return the value, or allow it with jit(..., global_writes='replay')",
                kind=GlobalWrite,
            )  # fmt: skip
        source = _global(name, frame)

        def write(value: object) -> None:
            self._write_global(name, value, node, frame)

        if source.key in self.hoisted:
            self.hoisted.write(source.key, value)
        elif self.depth:
            raise Hoist(source, self._before(name, frame), write, f"writing {source.label}")
        else:
            write(value)

    def _before(self: Interpreter, name: str, frame: Frame) -> object:
        if (id(frame.globals), name) not in self.overlay:
            self.recorder.guards.add_global(frame.globals, name)
        return self.overlay.get((id(frame.globals), name), frame.globals.get(name, ABSENT))

    def _write_global(
        self: Interpreter, name: str, value: object, node: ast.AST, frame: Frame
    ) -> None:
        self.overlay[id(frame.globals), name] = value
        if self.settings.on_global_write == "replay":
            self.effects.write_global(name, value, node, frame)
            return
        at = frame.source.location(node)
        if at + name not in _warned:
            _warned.add(at + name)
            warnings.warn(
                f"{at}: the compiled function {frame.source.name} writes the global {name!r}; the "
                "write is not visible outside of the call. Return the value, or choose "
                "jit(..., global_writes='replay').",
                stacklevel=2,
            )


def _global(name: str, frame: Frame) -> Source:
    return Global(("global", id(frame.globals), name), f"global {name!r}", frame.globals, name)
