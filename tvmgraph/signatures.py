"""Signatures of functions that users wrote."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

#: From Python 3.14 on annotations are evaluated when somebody asks for them. Signatures do, but the
#: names may be there for type checkers only.
_LENIENT: dict[str, Any] = {}
if sys.version_info >= (3, 14):
    import annotationlib

    _LENIENT["annotation_format"] = annotationlib.Format.FORWARDREF


def python_signature(
    function: Callable[..., object], follow_wrapped: bool = True
) -> inspect.Signature:
    """Returns what :func:`inspect.signature` does, also where annotations name what is not defined.

    Args:
        function: The function.
        follow_wrapped: Whether a wrapper has the signature of what it wraps.

    Raises:
        TypeError: if it cannot be called.
        ValueError: if C code does not say what it takes.
    """
    return inspect.signature(function, follow_wrapped=follow_wrapped, **_LENIENT)
