"""Calls of ``logging``: records that every call of a compiled function makes, with values."""

from __future__ import annotations

import ast
import logging
from typing import Any

from tvmgraph.capture.frame import Frame

_METHODS = ("debug", "info", "warning", "warn", "error", "critical", "fatal", "exception", "log")
_MODULE = tuple(getattr(logging, name) for name in _METHODS if hasattr(logging, name))
_LEVELS = {"warn": "WARNING", "fatal": "CRITICAL"}  # other methods are called as their levels
_LOGGERS = (logging.Logger, logging.LoggerAdapter)


def is_call(function: Any) -> bool:
    """Whether a function makes a record: a method of a logger, or one of the module."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, _LOGGERS):
        return function.__name__ in _METHODS
    return any(function is f for f in _MODULE)


class Record:
    """A call of a logger, at a line of the user's.

    Args:
        function: The function of the logger, or of the module.
        node: The call.
        frame: The frame that made it.
    """

    def __init__(self, function: Any, node: ast.AST, frame: Frame) -> None:
        self.function = function
        self.path, self.name = frame.source.file, frame.source.name
        self.line = getattr(node, "lineno", 0)

    def emit(self, *args: Any, **kwargs: Any) -> None:
        """Makes the record; a plain logger's names the user's line."""
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
