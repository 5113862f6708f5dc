"""Tracebacks of functions with graph breaks: every function of the user's is in there once.

Statements that Python runs in place of a compiled segment are a function of their own, which the
outline of the user's function calls. Python itself has one frame for both.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TypeVar

from tvmgraph.capture.frame_tracer import is_package_module

F = TypeVar("F", bound=Callable[..., object])
_runners: set[types.CodeType] = set()


def runs_statements(function: F) -> F:
    """Marks a function of this package that outlines call, and that calls nothing but statements.

    Args:
        function: The function.
    """
    _runners.add(function.__code__)
    return function


def as_in_python(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """Returns a traceback in which statements stand for the function that they belong to.

    Args:
        traceback: That of an exception which passed a function with graph breaks.
    """
    kept: list[types.TracebackType] = []
    entry, found = traceback, traceback
    while entry is not None:
        if kept and kept[-1].tb_frame.f_code in _runners:
            while len(kept) > 1 and _is_package(kept[-1]):
                kept.pop()
            kept[-1], found = _in_place_of(kept[-1], entry), None
        else:
            kept.append(entry)
        entry = entry.tb_next
    if found is None:
        for t in reversed(kept):
            found = types.TracebackType(found, t.tb_frame, t.tb_lasti, t.tb_lineno)
    return found


def _is_package(entry: types.TracebackType) -> bool:
    return is_package_module(entry.tb_frame.f_globals.get("__name__"))


def _in_place_of(
    outline: types.TracebackType, statements: types.TracebackType
) -> types.TracebackType:  # fmt: skip
    """Returns the entry of some statements, under the name of their function."""
    if outline.tb_frame.f_code.co_name == statements.tb_frame.f_code.co_name:
        return statements
    return types.TracebackType(None, outline.tb_frame, -1, statements.tb_lineno)
