"""Signatures of functions that users wrote."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

#: From Python 3.14 on annotations are evaluated when somebody asks for them. Signatures do, but the
#: names may be there for type checkers only.
_LENIENT: dict[str, Any] = {}
if sys.version_info >= (3, 14):
    import annotationlib

    _LENIENT["annotation_format"] = annotationlib.Format.FORWARDREF


_PACKAGE = __name__.partition(".")[0]


def python_signature(function: Callable[..., object]) -> inspect.Signature:
    """Returns what a function takes, also where annotations name what is not defined.

    A decorated function takes what its wrapper does, whatever signature the wrapper claims by
    :func:`functools.wraps` or ``__signature__``; wrappers of this package pass on what they get.

    Args:
        function: The function.

    Raises:
        TypeError: if it cannot be called.
        ValueError: if C code does not say what it takes.
    """
    function = inspect.unwrap(function, stop=lambda f: not _passes_on(f))
    if isinstance(function, types.MethodType):
        bare: Callable[..., object] = types.MethodType(_bare(function.__func__), function.__self__)
    else:
        bare = _bare(function)
    return inspect.signature(bare, **_LENIENT)


def _passes_on(function: object) -> bool:
    """Whether a wrapper of this package takes what it wraps does."""
    if "__signature__" in getattr(function, "__dict__", ()):
        return False
    if isinstance(function, types.FunctionType):
        module = function.__globals__.get("__name__")
    else:
        module = type(function).__module__
    return str(module).partition(".")[0] == _PACKAGE


def _bare(function: Callable[..., object]) -> Callable[..., object]:
    """Returns a function without the signature that it claims."""
    if not isinstance(function, types.FunctionType):
        return function
    if vars(function).keys().isdisjoint(("__wrapped__", "__signature__")):
        return function
    bare = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    bare.__kwdefaults__ = function.__kwdefaults__
    return bare
