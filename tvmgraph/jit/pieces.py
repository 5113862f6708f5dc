"""Running a function as plain Python: because its code raised, or between compiled pieces.

In the mode ``"PIJit"`` a function that the strict mode refuses runs in CPython, statement by
statement; every Cell that it calls is compiled on its own, and falls back in the same way if it
must. Results, effects and exceptions are those of plain Python, and gradients go through both.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tvmgraph.capture.expect import BOUND
from tvmgraph.capture.settings import Settings
from tvmgraph.core.state import state
from tvmgraph.errors import CaptureError, LeavesGraph, user_source

if TYPE_CHECKING:
    from tvmgraph.jit.function import JitFunction

_PIECE = f"{BOUND}piece"


class Raised(BaseException):
    """The captured code itself raised an exception.

    Attributes:
        error: The exception.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def may_break(function: JitFunction, error: CaptureError) -> bool:
    """Whether a call that is refused runs in pieces."""
    if function.settings.mode == "region":
        return True
    strict = function.settings.fullgraph or function._config().jit_syntax_level == "STRICT"
    return isinstance(error, LeavesGraph) and not strict


def still_refused(function: JitFunction, key: Any) -> bool:
    """Whether a kind of calls is known to be refused; forgets reasons that are gone."""
    error = function.refused.get(key)
    if isinstance(error, LeavesGraph) and not error.holds():
        del function.refused[key]
    return key in function.refused


def run_in_pieces(function: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a refused function as plain Python; the Cells it calls compile themselves."""
    outer = state.pieces
    state.pieces = function if function.owner is None else function.owner
    try:
        return _run(function, args, kwargs)
    finally:
        state.pieces = outer


def run_plain(
    function: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> Any:
    """Calls a function as plain Python, because its own code raised while it was captured.

    So what it did before it raised happens, and the traceback is Python's own.
    """
    result = _run(function, args, kwargs)
    name = getattr(function.fn, "__qualname__", "the function")
    warnings.warn(
        f"{user_source()}: {name} could not be compiled and ran as plain Python: "
        f"{type(error).__name__}: {error}",
        stacklevel=3,
    )
    return result


def _run(function: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    outer = state.scope
    if function.owner is not None:  # its Cell must not compile itself again
        state.scope = outer or (type(function.owner).__name__,)
    try:
        return function.fn(*args, **kwargs)
    finally:
        state.scope = outer


def compiled_piece(cell: Any) -> JitFunction:
    """Returns the compiled form of a Cell that is called by a refused function."""
    found = cell.__dict__.get(_PIECE)
    if found is None:
        from tvmgraph.jit.api import CellCall
        from tvmgraph.jit.function import JitFunction

        found = JitFunction(CellCall(cell), None, cell, Settings(mode="region"))
        cell.__dict__[_PIECE] = found  # not through Cell.__setattr__: no attribute changed
    return found


def describe_breaks(refused: dict[Any, CaptureError]) -> list[str]:
    """Returns lines of ``explain()`` about what could not be one graph."""
    reasons = dict.fromkeys(str(e).replace("\n", "\n     ") for e in refused.values())
    return [f"  in pieces, because {reason}" for reason in reasons]
