"""Code that is not interpreted: what it may do, and the objects that it makes."""

# pyright: reportGeneralTypeIssues=false
# (a part of Interpreter: `self` is the whole of it)
from __future__ import annotations

import copy
import dataclasses
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeGuard

from tvmgraph.capture import tree
from tvmgraph.capture.checks import (
    HOLDERS,
    attributes,
    is_cell,
    is_cell_class,
    is_library,
    is_plain_object,
)
from tvmgraph.capture.frame_tracer import is_package_module
from tvmgraph.capture.native_effects import contents_of, first_changed
from tvmgraph.capture.nested import NestedFunction
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.core.symbols import Symbol

if TYPE_CHECKING:
    from tvmgraph.capture.interpreter import Interpreter

_MAKING = (copy.copy, copy.deepcopy, dataclasses.replace, *HOLDERS)  # what they return is new
_MAX_NESTED = 5
KEEP = "keep it in a list or dict, or return it"


class Native:
    """The part of the interpreter that runs code which it does not read."""

    def run_unchanging(
        self: Interpreter, function: object, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> object:
        """Runs code that is not interpreted, which may not change what is older than the call.

        What it changes is seen afterwards: a graph break leaves the call to Python. A whole graph
        is used once then, see :meth:`tvmgraph.capture.guards.Guards.look_again`.

        Args:
            function: What is called, or looked at.
            args: Its arguments by position.
            kwargs: Its arguments by name.
        """
        if is_package(function):
            return self._run_natively(function, args, kwargs)
        owner, mark = getattr(function, "__self__", None), self.effects.mark()
        given = (owner, *args, *kwargs.values()) if self.settings.lax else ()
        old = contents_of(given, self.effects.is_old)
        result = self._run_natively(function, args, kwargs)
        changed = first_changed(old) if self.effects.mark() == mark else None
        if changed is not None:
            self.refuse_here(f"changing a {type(changed).__name__} by code that is not interpreted")
        if any(function is f for f in _MAKING):
            self._note_made(result, 0 if function is copy.deepcopy else _MAX_NESTED)
        return result

    def computes(self: Interpreter, values: object) -> bool:
        """Whether tensors of the capture are among some values; other symbols become constants.

        Args:
            values: What is handed to code that is not interpreted.
        """
        found = tree.leaves(values)
        for v in found:
            if isinstance(v, Symbol) and not v.traced:
                v.specialise()
        return any(isinstance(v, (Symbol, TracedTensor)) for v in found)

    def check_left(self: Interpreter) -> None:
        """Raises where code that is not interpreted left a result of the capture outside of it."""
        for value, left in self.recorder.guards.native_effects.changed(self.effects.is_old):
            if self.computes(left):
                self.refuse_here(
                    f"changing a {type(value).__name__} from outside by code that is not "
                    "interpreted", KEEP,
                )  # fmt: skip

    def make(
        self: Interpreter, kind: type[object], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """Makes an object of a user's class: what it holds is no read of the outside.

        Args:
            kind: The class.
            args: Its arguments by position.
            kwargs: Its arguments by name.
        """
        new = kind.__new__(kind)
        self._note_new(new)
        self.recorder.guards.add_read(kind, "__init__")
        make = kind.__init__
        if self.settings.lax:
            self.call(make, (new, *args), kwargs)
        else:  # whatever it is made of: statements that are no graph do no harm here
            self._hand_out(make, (new, *args), kwargs)
            self._run_natively(make, (new, *args), kwargs)
        return new

    def _note_made(self: Interpreter, value: object, depth: int) -> None:
        """Notes an object that the call made, and those in it until they are nested too deeply."""
        if is_plain_object(value) and not self.effects.existed(value):
            self._note_new(value)
            value = attributes(value)
        if isinstance(value, (list, tuple, dict)) and depth < _MAX_NESTED:
            for v in value.values() if isinstance(value, dict) else value:
                self._note_made(v, depth + 1)

    def _note_new(self: Interpreter, value: object) -> None:
        self.recorder.guards.fresh[id(value)] = self.recorder.region.made[id(value)] = value


def makes_plainly(kind: object) -> TypeGuard[type[object]]:
    """Whether a call of a user's class makes an object and calls Python's ``__init__``.

    Args:
        kind: What is called.
    """
    if not isinstance(kind, type) or is_library(kind.__module__) or is_cell_class(kind):
        return False
    if type(kind).__call__ is not type.__call__:
        return False
    made = getattr(kind, "__new__", None)
    plain = any(made is base.__new__ for base in (object, dict, list))
    return plain and isinstance(kind.__init__, types.FunctionType)


def is_package(function: object) -> bool:
    """Whether a function is one of this package, or an object whose class says how it is called.

    A Cell of the user is called by the package, which has its ``construct`` interpreted. A wrapper
    has copied ``__module__`` from what it wraps.

    Args:
        function: What is called, or looked at.
    """
    if isinstance(function, NestedFunction):  # it stands for a function of the user's
        return False
    if isinstance(function, types.FunctionType):
        return is_package_module(function.__globals__.get("__name__"))
    if not isinstance(function, type) and (
        is_cell(function) or is_package_module(type(function).__module__)
    ):
        return True
    return is_package_module(getattr(function, "__module__", None))
