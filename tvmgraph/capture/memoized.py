"""Functions that remember what they returned: ``functools.lru_cache`` and ``cached_property``.

Python runs the body for the first call and gives the same object ever after, so a capture does not
read it: the function runs outside of the capture as Python would run it, and the graph takes what
it returned. Every later call asks again, as Python does, and captures anew if another object comes.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tvmgraph.capture.checks import is_library
from tvmgraph.capture.nested import STANDING
from tvmgraph.capture.tree import tensors
from tvmgraph.core.state import state
from tvmgraph.core.symbols import Symbol
from tvmgraph.errors import CaptureError, user_source

if TYPE_CHECKING:
    from tvmgraph.capture.interpreter import Interpreter


def wrapped(function: object) -> Callable[..., object] | None:
    """Returns the function of the user's that a memoized one calls, ``None`` for all others.

    Args:
        function: What is called, or looked at.
    """
    function = getattr(function, "__func__", function)
    if not isinstance(function, functools._lru_cache_wrapper):
        return None
    inner = getattr(function, "__wrapped__", None)
    plain = isinstance(inner, types.FunctionType) and not is_library(inner.__module__)
    return inner if plain else None


def call(
    interpreter: Interpreter, function: Callable[..., object], args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> object:  # fmt: skip
    """Calls a memoized function outside of the capture, and guards which object it returns.

    Args:
        interpreter: Who executes the captured function.
        function: The function, or a bound method of one.
        args: Its positional arguments. Given a number that differs from call to call it is read
            like any other function, if it only computes; else the number is fixed.
        kwargs: Its keyword arguments.

    Raises:
        CaptureError: if it computes with values of the captured call, in LAX also where a tensor
            decides or something is to be done before it, which would come after it.
    """
    if interpreter.reads_only:
        raise CaptureError("code that cannot be read is called", op="jit", at=user_source())
    inner = wrapped(function)
    owner, given = getattr(function, "__self__", None), (*args, *kwargs.values())
    if any(isinstance(v, STANDING) for v in (*given, *tensors(given))):  # no keys of a cache
        _refuse(interpreter, "a memoized function with values of the call")
        return _read(interpreter, inner, owner, args, kwargs)
    varying = [v for v in given if isinstance(v, Symbol)]
    if varying:
        before = interpreter.effects.mark()
        result = _read(interpreter, inner, owner, args, kwargs)
        if interpreter.effects.mark() == before:
            return result
        for value in varying:
            value.specialise()
    if interpreter.depth or interpreter.effects.mark():
        _refuse(interpreter, "a memoized function after side effects, or where a tensor decides,")
    result = _run(interpreter, lambda: function(*args, **kwargs))
    key = (id(inner), id(owner), given, (*map(type, given), *kwargs))
    interpreter.recorder.guards.add_memoized(
        key, f"{inner and inner.__name__}()", lambda: function(*args, **kwargs), result
    )
    return interpreter.effects.seen(result)


def check_method(interpreter: Interpreter, function: object) -> None:
    """Leaves ``cache_info()`` and ``cache_clear()`` of a memoized function to Python.

    Args:
        interpreter: The interpreter of the capture.
        function: What is called.
    """
    if isinstance(function, types.BuiltinMethodType) and wrapped(function.__self__) is not None:
        _refuse(interpreter, f"{function.__name__}() of a memoized function")


def read(interpreter: Interpreter, owner: object, found: functools.cached_property[object]) -> None:
    """Gives an object the attribute that a ``cached_property`` computes, if it has it not yet.

    Args:
        interpreter: Who executes the captured function.
        owner: The object.
        found: What its class holds.

    Raises:
        CaptureError: as of :func:`call`.
    """
    name = str(found.attrname)
    if name in vars(owner):
        return
    if not interpreter.effects.existed(owner):
        vars(owner)[name] = interpreter.call(found.func, (owner,), {})
        return
    if interpreter.depth or interpreter.effects.mark():
        _refuse(interpreter, "a cached_property after side effects, or where a tensor decides,")
    _run(interpreter, lambda: getattr(owner, name))


def _read(
    interpreter: Interpreter, inner: object, owner: object, args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> object:  # fmt: skip
    """Executes the body of a memoized function, as if nothing was remembered."""
    bound = () if owner is None else (owner,)
    return interpreter.call(inner, (*bound, *args), {**kwargs})


def _run(interpreter: Interpreter, function: Callable[[], object]) -> object:
    """Runs code outside of the capture, whatever becomes of that."""
    guards = interpreter.recorder.guards
    was_on = guards.tracer.enable(False)
    try:
        with state.interpreting(None), guards.native_effects.taking():
            return function()
    finally:
        guards.tracer.enable(was_on)


def _refuse(interpreter: Interpreter, what: str) -> None:
    """Leaves it to Python with a graph break; a whole graph goes on."""
    frame = interpreter.current
    if interpreter.settings.lax and frame is not None:
        interpreter.refuse(frame.node or frame.source.node, frame, f"calling {what}")
