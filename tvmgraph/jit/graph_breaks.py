"""Running a function as plain Python: because its code raised, or between compiled segments.

In the mode ``"PIJit"`` a function that the strict mode refuses runs in CPython, statement by
statement; every Cell that it calls is compiled on its own, and falls back in the same way if it
must. Results, effects and exceptions are those of plain Python, and gradients go through both.
"""

from __future__ import annotations

import ast
import sys
import warnings
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from tvmgraph.capture.checks import BOUND
from tvmgraph.capture.interpreter import Interpreter
from tvmgraph.capture.settings import Settings
from tvmgraph.config import settings as configuration
from tvmgraph.core.state import meanwhile, state
from tvmgraph.errors import CaptureError, GlobalWrite, LeavesGraph, locals_of, user_source
from tvmgraph.jit.regions.report import reason
from tvmgraph.jit.regions.tracebacks import as_in_python

if TYPE_CHECKING:
    from tvmgraph.jit.function import JitFunction

_Error = TypeVar("_Error", bound=BaseException)
_COMPILED = f"{BOUND}compiled"
_DEEP = (
    24  # calls with graph breaks inside each other; further in, a recursion needs Python's stack
)
#: What runs with graph breaks -> the Cells in it that are compiled on their own.
_inside: weakref.WeakKeyDictionary[object, weakref.WeakSet[JitFunction]]
_inside = weakref.WeakKeyDictionary()
ENTERED = f"{BOUND}entered"  # attribute of functions that Python calls with graph breaks


class ObservedException(BaseException):
    """The captured code of the user raised an exception.

    Attributes:
        error: The exception.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(type(error).__name__)  # its text may read what was undone since
        self.error = error


class Aliased(Exception):
    """One tensor comes in several ways, which what was captured does not know."""


class Left(BaseException):
    """A call is left to plain Python, as calls like it were not worth a capture."""


def may_break(function: JitFunction, error: CaptureError) -> bool:
    """Whether a call that is refused runs with graph breaks.

    Args:
        function: The compiled function.
        error: Why its capture was refused.
    """
    if isinstance(error, GlobalWrite):
        return False
    return is_lax(function) or (isinstance(error, LeavesGraph) and not is_strict(function))


def is_strict(function: JitFunction) -> bool:
    """Whether what cannot be one graph is an error.

    Args:
        function: A jitted function.
    """
    config = function._config()
    if function.settings.fullgraph or config.jit_syntax_level == "STRICT":
        return True
    return (
        "jit_syntax_level" not in config.given
        and configuration.context.jit_syntax_level == configuration.STRICT
    )


def is_lax(function: JitFunction) -> bool:
    """Whether what cannot be one graph runs with graph breaks.

    Args:
        function: A jitted function.
    """
    settings = function.settings
    if settings.mode == "region":
        return True
    return settings.mode == "ast" and settings.attr_guard and not is_strict(function)


def nodes_of(error: BaseException) -> list[ast.AST]:
    """Returns what captured code was evaluating when it raised: in every function, outermost first.

    Args:
        error: An exception with the traceback of a capture.
    """
    found: list[ast.AST] = []
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code is Interpreter._body.__code__:
            found.append(locals_of(traceback.tb_frame)["frame"].node)
        traceback = traceback.tb_next
    return found


def node_of(error: BaseException) -> Any:
    """Returns what captured code was evaluating when it raised, a node of its syntax tree.

    Args:
        error: An exception with the traceback of a capture.
    """
    return next(iter(nodes_of(error)), None)


def let_go(error: _Error, handled: BaseException | None) -> _Error:
    """Forgets the frames of an exception, and of those that led to it: they hold arguments.

    Args:
        error: The exception.
        handled: The one that the caller is handling, which stays as it is.
    """
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        e = todo.pop()
        if e is not None and e is not handled and id(e) not in seen:
            seen.add(id(e))
            e.__traceback__ = None
            if isinstance(e, CaptureError):
                e.names, e.value = {}, None
            if e.__context__ is handled:
                e.__context__ = None
            todo += [e.__cause__, e.__context__]
    return error


def learn(function: JitFunction, node: Any, error: BaseException) -> None:
    """Notes that only Python can evaluate a node of a function.

    Args:
        function: The compiled function.
        node: A node of its syntax tree; None where it is not known.
        error: What evaluating it raised.
    """
    if function.region is None:
        from tvmgraph.jit.regions.segment import region_of

        function.region = region_of(function)
    if function.region is not None:
        function.region.program.mark_break(node, reason(error))
    function.refused_at = configuration.settings_version


def churn(function: JitFunction, name: str, change: str) -> CaptureError:
    """Lets Python read a variable, argument or attribute that makes every capture serve one call.

    Args:
        function: The compiled function.
        name: The variable or attribute.
        change: What differs between its values, in words.

    Returns:
        The error to be raised: the function is no graph.
    """
    error = CaptureError(
        f"it was captured again and again because {change}", op="jit", at=user_source(),
        fix=f"keep what differs from call to call in tensors, or pass {name} as one",
    )  # fmt: skip
    learn(function, None, error)
    if function.region is not None:
        function.region.program.churns = True
        function.region.program.mark_breaks_at_reads(name, reason(error))
    return error


def always_breaks(function: JitFunction) -> bool:
    """Whether a function never was one graph, and the settings are those of then.

    Args:
        function: A jitted function.
    """
    same = function.refused_at == configuration.settings_version
    return same and not function.entries and state.interpreter is None


def still_refused(function: JitFunction, key: object) -> bool:
    """Whether a kind of calls is known to be refused; forgets reasons that are gone.

    Args:
        function: The compiled function.
        key: What the calls have in common; see :func:`tvmgraph.jit.call_key.key_of`.
    """
    error = function.refused.get(key)
    if isinstance(error, LeavesGraph) and not error.holds():
        del function.refused[key]
    return key in function.refused


def run_with_breaks(function: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a refused function with graph breaks; Cells that Python calls compile themselves.

    Args:
        function: The compiled function.
        args: Positional arguments of the call.
        kwargs: Its keyword arguments.
    """
    broken, nested = function if function.owner is None else function.owner, state.nested
    with meanwhile(state, broken=broken, nested=nested + 1):
        return _run(function, args, kwargs, function.region if nested < _DEEP else None)


def run_plain(
    function: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any], error: BaseException
) -> Any:
    """Calls a function as plain Python, because its own code raised while it was captured.

    So what it did before it raised happens, and the traceback is Python's own.

    Args:
        function: The compiled function.
        args: Positional arguments of the call.
        kwargs: Its keyword arguments.
        error: What was raised.
    """
    node = node_of(error)
    let_go(error, sys.exception())
    result = _run(function, args, kwargs)
    if is_lax(function):
        learn(function, node, error)
    name = getattr(function.fn, "__qualname__", "the function")
    warnings.warn(
        f"{user_source()}: {name} could not be compiled and ran as plain Python: "
        f"{type(error).__name__}: {error}",
        stacklevel=3,
    )
    return result


def run_once(
    function: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any], error: BaseException
) -> Any:
    """Calls a function as plain Python this time.

    Values decided on too few elements for its graph, so that what the code does about that happens,
    or its own exception is raised; or the call was left to Python.

    Args:
        function: The compiled function.
        args: Positional arguments of the call.
        kwargs: Its keyword arguments.
        error: Which values decided, or that it was left.
    """
    let_go(error, sys.exception())
    if not isinstance(error, Left):
        return _run(function, args, kwargs)
    with meanwhile(state, broken=None):  # what it calls is not compiled on its own, either
        result = _run(function, args, kwargs)
    function.raising.clear()  # code that raised does so no more
    return result


def _run(
    function: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any], region: Any = None
) -> Any:
    outer = state.scope, state.broken
    if function.owner is not None:  # its Cell must not compile itself again
        state.scope = state.scope or (type(function.owner).__name__,)
        state.broken = state.broken and function.owner
    try:
        return (region or function.fn)(*args, **kwargs)
    except BaseException as e:
        if region is not None:
            e.__traceback__ = as_in_python(e.__traceback__)
        raise
    finally:
        state.scope, state.broken = outer


def compiled_cell(cell: Any) -> JitFunction:
    """Returns the compiled form of a Cell that is called by a refused function.

    Args:
        cell: The Cell; it keeps what is returned.
    """
    found = cell.__dict__.get(_COMPILED)
    if found is None:
        from tvmgraph.jit.api import CellCall
        from tvmgraph.jit.function import JitFunction

        found = JitFunction(CellCall(cell), None, cell, Settings(mode="region"))
        cell.__dict__[_COMPILED] = found  # not through Cell.__setattr__: no attribute changed
    if state.broken is not None and state.broken is not cell:
        _inside.setdefault(state.broken, weakref.WeakSet()).add(found)
    return found


def programs(function: JitFunction) -> list[Any]:
    """Returns what is known of the statements of a function, or of a Cell's ``construct``.

    Args:
        function: A jitted function.
    """
    if function.region is not None:
        return [function.region.program]
    own = getattr(function.owner, "construct", None)
    if function.refused and own is not function and getattr(own, "_is_jit", False):
        # ``@jit`` is on ``construct``, which runs with graph breaks itself
        return programs(own)  # pyright: ignore[reportArgumentType]
    construct = getattr(type(function.owner), "construct", None)
    entered = getattr(construct, "__dict__", {}).get(ENTERED, (None, {}))[1]
    found = [made.region for _, made in entered.values() if made is not None]
    return [r.program for r in found if r is not None] if function.refused else []


def describe_inside(function: JitFunction) -> list[str]:
    """Returns lines of ``explain()`` about Cells that Python calls and that are compiled.

    Args:
        function: A jitted function.
    """
    lines: list[str] = []
    holder = function if function.owner is None else function.owner
    for inner in sorted(_inside.get(holder, ()), key=repr):
        described = getattr(inner.owner, "extend_repr", str)()
        lines.append(f"  compiled inside: {type(inner.owner).__name__}({described})")
        lines += [f"    {line}" for line in inner.explain().splitlines()]
    return lines


def describe_breaks(refused: Mapping[object, CaptureError], waited: int) -> list[str]:
    """Returns lines of ``explain()`` about what could not be one graph.

    Args:
        refused: What a kind of calls has in common -> why it was refused.
        waited: How many calls plain Python ran because functions like this one are short-lived.
    """
    reasons = dict.fromkeys(str(e).replace("\n", "\n     ") for e in refused.values())
    found = [f"  graph break: {reason}" for reason in reasons]
    if waited:
        found.append(
            f"  in Python: its first {waited} call(s), since others of its definition served few "
            "calls each: keep the function, Cell or object, and call that again"
        )
    return found
