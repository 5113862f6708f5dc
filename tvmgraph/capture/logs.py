"""Calls of ``logging`` and ``warnings.warn``: what every call of a compiled function says."""

from __future__ import annotations

import ast
import logging
import types
import warnings
from collections.abc import Callable
from typing import Any

from tvmgraph.capture.frame import Frame

_METHODS = ("debug", "info", "warning", "warn", "error", "critical", "fatal", "exception", "log")
_MODULE = {id(getattr(logging, name)) for name in _METHODS if hasattr(logging, name)}
_LOGGERS = (logging.Logger, logging.LoggerAdapter)
_CALL = lambda function, args, kwargs: function(*args, **kwargs)  # noqa: E731


def is_call(function: Any) -> bool:
    """Whether a function makes a record: a method of a logger, one of the module, a warning."""
    if function is warnings.warn:
        return True
    owner = getattr(function, "__self__", None)
    if isinstance(owner, _LOGGERS):
        return function.__name__ in _METHODS
    return id(function) in _MODULE


class Record:
    """A call of a logger, at a line of the user's.

    Args:
        function: The function of the logger, or of the module.
        node: The call.
        frame: The frame that made it.
    """

    def __init__(self, function: Callable[..., object], node: ast.AST, frame: Frame) -> None:
        self.function = function
        self.path, self.name = frame.source.file, frame.source.name
        self.line = getattr(node, "lineno", 0)
        self.globals = frame.globals

    def emit(self, *args: Any, **kwargs: Any) -> None:
        """Makes the record, which names the line of the user's."""
        if self.function is warnings.warn:
            self._warn(*args, **kwargs)
            return
        code = _CALL.__code__.replace(  # for the logger, which asks who calls it
            co_filename=self.path, co_name=self.name, co_firstlineno=self.line
        )
        types.FunctionType(code, self.globals)(self.function, args, kwargs)

    def _warn(
        self, message: Any, category: object = None, *_: object, source: object = None, **__: object
    ) -> None:
        """Warns as at the line of the call, whatever ``stacklevel`` is: callers have none."""
        kind = type(message) if isinstance(message, Warning) else category or UserWarning
        module = str(self.globals.get("__name__"))
        shown: Any = self.globals.setdefault("__warningregistry__", {})
        warnings.warn_explicit(message, kind, self.path, self.line, module, shown, source=source)
