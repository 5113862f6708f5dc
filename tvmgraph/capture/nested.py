"""Functions that are defined inside interpreted code."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Sequence
from typing import Protocol

from tvmgraph.capture.frame import Frame
from tvmgraph.capture.function_source import FunctionSource
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.capture.traced_number import TracedNumber

_P = inspect.Parameter


class Runs(Protocol):
    """An interpreter, as far as a function of its own knows it."""

    def run_nested(
        self, function: NestedFunction, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """Calls a function that is defined inside interpreted code.

        Args:
            function: What is called, or looked at.
            args: Its arguments by position.
            kwargs: Its arguments by name.
        """
        ...


class NestedFunction:
    """A ``def`` or ``lambda`` met while interpreting; framework code may call it too.

    Args:
        interpreter: Who interprets it.
        source: Its definition.
        frame: The frame it is defined in.
        defaults: Values of the last positional parameters.
        keyword_defaults: One-tuples with the values of keyword-only parameters, or ``None``.
    """

    def __init__(
        self,
        interpreter: Runs,
        source: FunctionSource,
        frame: Frame,
        defaults: Sequence[object],
        keyword_defaults: Sequence[tuple[object] | None],
    ) -> None:
        self.interpreter = interpreter
        self.source = source
        self.frame = frame
        self.__name__ = source.name
        self.__qualname__ = f"{frame.source.name}.<locals>.{source.name}"
        self.__module__ = str(frame.globals.get("__name__"))
        self.__doc__ = _doc(source.node)
        self.__signature__ = _signature(source.node.args, defaults, keyword_defaults)

    shown_type = types.FunctionType

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Interprets the body."""
        return self.interpreter.run_nested(self, args, kwargs)


def _doc(node: ast.AST) -> str | None:
    return ast.get_docstring(node, clean=False) if isinstance(node, ast.FunctionDef) else None


def _signature(
    a: ast.arguments, defaults: Sequence[object], keyword_defaults: Sequence[tuple[object] | None]
) -> inspect.Signature:
    positional = [*a.posonlyargs, *a.args]
    missing = len(positional) - len(defaults)
    values = [*[_P.empty] * missing, *defaults]
    kinds = [_P.POSITIONAL_ONLY] * len(a.posonlyargs) + [_P.POSITIONAL_OR_KEYWORD] * len(a.args)
    params = [_P(x.arg, k, default=v) for x, k, v in zip(positional, kinds, values)]
    if a.vararg is not None:
        params.append(_P(a.vararg.arg, _P.VAR_POSITIONAL))
    for x, d in zip(a.kwonlyargs, keyword_defaults):
        params.append(_P(x.arg, _P.KEYWORD_ONLY, default=_P.empty if d is None else d[0]))
    if a.kwarg is not None:
        params.append(_P(a.kwarg.arg, _P.VAR_KEYWORD))
    return inspect.Signature(params)


#: What stands for a tensor, number or function of the user during a capture.
STANDING = (TracedTensor, TracedNumber, NestedFunction)
