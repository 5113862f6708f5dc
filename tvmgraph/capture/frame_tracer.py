"""Watching user code that runs natively during a capture.

What interpreted code reads is known. Some user code runs natively all the same: functions without
source, properties and operators of user classes, callbacks of libraries. Python reports its frames
to a profiling function, which guards what they name. That function is called for every call of
library code, too, and makes Python three times as slow, so it rests while code of this package runs
that calls nothing of the user's but through the interpreter.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np

from tvmgraph.capture.checks import is_cell, is_cell_class, is_library
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import DType

_PACKAGE = "tvmgraph"
_DATA = frozenset((
    Tensor, Parameter, TracedTensor, DType, int, float, bool, complex, str, bytes, type(None),
    slice, type(...), np.ndarray,
))  # fmt: skip


_quiet: set[str] = set()  # names of library modules


def _is_quiet(module: object) -> bool:
    """Whether a module is a library's, whose frames do not count."""
    quiet = is_library(module)
    if quiet:
        _quiet.add(str(module))
    return quiet


class FrameTracer:
    """Reports new frames while it is on.

    Args:
        seen: Called with every frame of user code that begins, and of the code that is watched.
        called: Called with a frame of user code and the function in C that it calls.
        watched: Library code whose calls count.
    """

    def __init__(
        self,
        seen: Callable[[types.FrameType], None],
        called: Callable[[types.FrameType, object], None],
        watched: Container[types.CodeType],
    ) -> None:
        def profile(frame: types.FrameType, event: str, function: object) -> None:
            # called for every call of library code, too, and at every return
            if event == "call" or event == "c_call":
                module = frame.f_globals.get("__name__")
                quiet = (module.__class__ is str and module in _quiet) or _is_quiet(module)
                if event == "c_call":
                    if not quiet:
                        called(frame, function)
                elif not quiet or frame.f_code in watched:
                    seen(frame)

        self._profile: Any = profile
        self._on = False
        self._outer: Any = None

    def begin(self) -> None:
        """Takes the place of this thread's profiler, and watches."""
        self._outer = sys.getprofile()
        self.enable(True)

    def enable(self, on: bool) -> bool:
        """Begins or ceases to watch; returns whether it did before.

        Args:
            on: Whether it watches.
        """
        before, self._on = self._on, on
        if before is not on:
            sys.setprofile(self._profile if on else None)
        return before

    def end(self) -> None:
        """Gives the profiler its place back; cProfile's is no function but an object."""
        self._on, self._profile = False, None  # which is part of a cycle
        sys.setprofile(None)
        if callable(self._outer):
            sys.setprofile(self._outer)
        elif self._outer is not None:
            self._outer.enable()


def is_own(function: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
    """Whether a call runs code of this package that calls user code by the interpreter only.

    That is a Cell, which hands its ``construct`` and its hooks to the interpreter, or a function of
    the package that is given data and Cells of the package.

    Args:
        function: What is called, or looked at.
        args: Its arguments by position.
        kwargs: Its arguments by name.
    """
    code = function if isinstance(function, types.FunctionType) else type(function).__call__
    if not isinstance(code, types.FunctionType) or not is_package_module(
        code.__globals__.get("__name__")
    ):
        return False
    if code is not function:
        return is_cell(function)
    return all(map(_is_data, args)) and all(map(_is_data, kwargs.values()))


def _is_data(value: Any) -> bool:
    kind = value.__class__
    if kind in _DATA:
        return True
    if kind is tuple or kind is list:
        return all(map(_is_data, value))
    if not is_cell(value) or not is_package_module(kind.__module__):
        return False
    return not any(map(_is_code, value.__dict__.values()))


def _is_code(value: object) -> bool:
    """Whether an attribute is code of the user's."""
    if not callable(value) or value.__class__ in _DATA or is_cell(value) or is_cell_class(value):
        return False
    owner = value if isinstance(value, types.FunctionType) else value.__class__
    return not is_package_module(owner.__module__)


def is_package_module(module: object) -> bool:
    """Whether a name is that of a module of this package.

    Args:
        module: Name of the module.
    """
    return str(module).partition(".")[0] == _PACKAGE
