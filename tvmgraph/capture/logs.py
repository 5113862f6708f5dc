"""Calls of ``logging`` and ``warnings.warn``: what every call of a compiled function says."""

from __future__ import annotations

import ast
import logging
import warnings
from collections.abc import Callable
from typing import Any

from tvmgraph.capture.frame import Frame

_METHODS = ("debug", "info", "warning", "warn", "error", "critical", "fatal", "exception", "log")
_MODULE = {id(getattr(logging, name)) for name in _METHODS if hasattr(logging, name)}
_LEVELS = {"warn": "WARNING", "fatal": "CRITICAL"}  # other methods are called as their levels
_LOGGERS = (logging.Logger, logging.LoggerAdapter)


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
        """Makes the record; a warning and a plain logger's name the user's line."""
        if self.function is warnings.warn:
            self._warn(*args, **kwargs)
            return
        logger = getattr(self.function, "__self__", None)
        name: str = self.function.__name__
        if type(logger) not in (logging.Logger, logging.RootLogger) or name == "log" or kwargs:
            self.function(*args, **kwargs)
            return
        assert logger is not None
        level = getattr(logging, _LEVELS.get(name, name.upper()))
        if not logger.isEnabledFor(level):
            return
        record = logger.makeRecord(
            logger.name, level, self.path, self.line, args[0], args[1:], None, self.name
        )
        logger.handle(record)

    def _warn(
        self, message: Any, category: object = None, *_: object, source: object = None, **__: object
    ) -> None:
        """Warns as at the line of the call, whatever ``stacklevel`` is: callers have none."""
        kind = type(message) if isinstance(message, Warning) else category or UserWarning
        module = str(self.globals.get("__name__"))
        shown: Any = self.globals.setdefault("__warningregistry__", {})
        warnings.warn_explicit(message, kind, self.path, self.line, module, shown, source=source)
