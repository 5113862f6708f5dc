"""Calls of ``logging`` and ``warnings.warn``: what every call of a compiled function says."""

from __future__ import annotations

import ast
import logging
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvmgraph.capture.frame import Frame
from tvmgraph.errors import is_package_file
from tvmgraph.forking import CALL_FILE

_METHODS = ("debug", "info", "warning", "warn", "error", "critical", "fatal", "exception", "log")
_MODULE = {id(getattr(logging, name)) for name in _METHODS if hasattr(logging, name)}
_LOGGERS = (logging.Logger, logging.LoggerAdapter)
_CALL = lambda function, args, kwargs: function(*args, **kwargs)  # noqa: E731


def is_call(function: Any) -> bool:
    """Whether a function makes a record: a method of a logger, one of the module, a warning.

    Args:
        function: What is called, or looked at.
    """
    if function is warnings.warn:
        return True
    owner = getattr(function, "__self__", None)
    if isinstance(owner, _LOGGERS):
        return function.__name__ in _METHODS
    return id(function) in _MODULE


@dataclass(frozen=True)
class _Line:
    """A line of the user's that calls something."""

    path: str
    name: str
    number: int
    globals: dict[str, object]


class Record:
    """A call of a logger, at a line of the user's.

    Args:
        function: The function of the logger, or of the module.
        node: The call.
        frame: The frame that made it.
    """

    def __init__(self, function: Callable[..., object], node: ast.AST, frame: Frame) -> None:
        self.function = function
        self._lines: list[_Line] = []  # innermost first
        caller: Frame | None = frame
        while caller is not None:
            number = getattr(node if caller is frame else caller.node, "lineno", 0)
            source = caller.source
            self._lines.append(_Line(source.file, source.name, number, caller.globals))
            caller = caller.caller

    def emit(self, *args: Any, **kwargs: Any) -> None:
        """Makes the record, which names the line of the user's.

        Args:
            *args: What the arguments of the call are now.
            **kwargs: The same for those by name.
        """
        if self.function is warnings.warn:
            self._warn(*args, **kwargs)
            return
        at = self._line(kwargs.pop("stacklevel", 1))
        code = _CALL.__code__.replace(  # for the logger, which asks who calls it
            co_filename=at.path, co_name=at.name, co_firstlineno=at.number
        )
        types.FunctionType(code, at.globals)(self.function, args, kwargs)

    def _line(self, level: int) -> _Line:
        """Returns the line that a ``stacklevel`` means, which may be of who calls compiled code."""
        inside = len(self._lines)
        if level <= inside:
            return self._lines[max(level, 1) - 1]
        last, found = self._lines[-1], sys._getframe(1)
        callers: list[types.FrameType] = []
        while found is not None:
            file = found.f_code.co_filename
            if file != CALL_FILE and not is_package_file(file):
                callers.append(found)
            found = found.f_back
        if callers and _where(callers[0]) == (last.path, last.name):
            del callers[0]  # Python runs the function, and this is one of its segments
        if level - inside > len(callers):
            return last
        frame = callers[level - inside - 1]
        return _Line(*_where(frame), frame.f_lineno, frame.f_globals)

    def _warn(
        self, message: Any, category: object = None, stacklevel: int = 1,
        source: object = None, **_: object,
    ) -> None:  # fmt: skip
        """Warns as at the line that the level means."""
        at = self._line(stacklevel)
        kind = type(message) if isinstance(message, Warning) else category or UserWarning
        module = str(at.globals.get("__name__"))
        shown: Any = at.globals.setdefault("__warningregistry__", {})
        warnings.warn_explicit(message, kind, at.path, at.number, module, shown, source=source)


def _where(frame: types.FrameType) -> tuple[str, str]:
    return frame.f_code.co_filename, frame.f_code.co_name
