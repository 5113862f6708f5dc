"""The ``jit`` decorator with MindSpore's options."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any

from tvmgraph.capture.guards import is_cell
from tvmgraph.config import JitConfig, as_jit_config
from tvmgraph.errors import ArgumentError, DTypeError, user_source
from tvmgraph.jit.function import JitFunction

_MODES = ("PSJit", "PIJit")
_CAPTURE_MODES = ("ast", "bytecode", "trace")
_DEPRECATED = ("input_signature", "hash_args", "compile_once")


def jit(
    function: Any = None,
    *,
    mode: str = "PSJit",
    capture_mode: str = "ast",
    jit_level: str = "",
    dynamic: int = 0,
    fullgraph: bool = False,
    backend: str = "",
    jit_config: JitConfig | str | None = None,
    **options: Any,
) -> Any:
    """Compiles a function, a method or a Cell into one graph.

    User code is interpreted once per kind of arguments (shapes, dtypes and values of Python
    arguments): tensors are symbolic, and an ``if`` or a loop that a tensor decides about becomes
    part of the graph. Later calls of the same kind run compiled code.
    Whatever the code read besides its arguments (attributes, globals, closures) is guarded: when
    it changes, the function is captured again. Weights are read at every call.

    Args:
        function: Function, method, ``construct`` or Cell; without it a decorator is returned.
        mode: ``"PSJit"`` or ``"PIJit"``, MindSpore's older names of the capture modes.
        capture_mode: ``"ast"`` (and ``"bytecode"``) interpret the code, with control flow on
            tensors; ``"trace"`` runs it once with symbolic tensors, where control flow on a
            tensor is an error that names the line.
        jit_level: ``"O0"`` to ``"O3"``; empty follows ``jit_config``.
        dynamic: 0: shapes are part of the key. 1 is accepted and compiles per shape as well.
        fullgraph: The function is always captured as one graph, so both values mean the same.
        backend: Empty or ``"tvm"``.
        jit_config: A :class:`JitConfig` or the name of a preset.

    Returns:
        A :class:`JitFunction`.

    Raises:
        ArgumentError: for an unknown option value.
        DTypeError: if ``function`` is not callable.

    Example:
        >>> @ms.jit
        ... def f(x):
        ...     return x * 2 + 1
        >>> f(Tensor([1.0]))
    """
    _check_options(mode, capture_mode, dynamic, fullgraph, backend, options)
    config = as_jit_config(jit_config) if jit_config is not None else None
    captured = "trace" if capture_mode == "trace" else "ast"
    if jit_level:
        base = JitConfig() if config is None else config
        config = base.replace(jit_level=jit_level)
    if function is None:
        return functools.partial(_wrap, config=config, mode=captured)
    return _wrap(function, config, captured)


def _choice(name: str, value: Any, valid: tuple[Any, ...]) -> None:
    if not any(v is value or (type(v) is type(value) and v == value) for v in valid):
        raise ArgumentError(
            f"{name} cannot be {value!r}", op="jit", at=user_source(),
            fix=f"use one of {', '.join(map(repr, valid))}",
        )  # fmt: skip


def _check_options(
    mode: str, capture_mode: str, dynamic: int, fullgraph: bool, backend: str, options: Any
) -> None:
    _choice("mode", mode, _MODES)
    _choice("capture_mode", capture_mode, _CAPTURE_MODES)
    _choice("dynamic", dynamic, (0, 1))
    _choice("fullgraph", fullgraph, (False, True))
    _choice("backend", backend, ("", "tvm", "ms_backend"))
    for name in options:
        if name not in _DEPRECATED:
            raise ArgumentError(
                f"unknown option {name!r}", op="jit", at=user_source(),
                fix="use mode, capture_mode, jit_level, dynamic, fullgraph, backend or jit_config",
            )  # fmt: skip
        warnings.warn(f"jit: {name} is deprecated and has no effect", stacklevel=4)


def _wrap(function: Any, config: JitConfig | None = None, mode: str = "ast") -> Any:
    if isinstance(function, JitFunction):
        same = config is None and mode == function.mode
        return function if same else JitFunction(function.fn, config, function.owner, mode)
    if is_cell(function) and not isinstance(function, type):
        return JitFunction(CellCall(function), config, function, mode)
    if is_cell(function):
        function.construct = JitFunction(function.construct, config, None, mode)  # pyright: ignore
        return function
    if not callable(function):
        raise DTypeError(
            f"jit needs a function, a method or a Cell, not {type(function).__name__}",
            op="jit", at=user_source(),
        )  # fmt: skip
    owner = getattr(function, "__self__", None)
    return JitFunction(function, config, owner if is_cell(owner) else None, mode)


class CellCall:
    """Calls a whole Cell, with the signature of its ``construct``.

    Args:
        cell: The Cell.
    """

    def __init__(self, cell: Any) -> None:
        functools.update_wrapper(self, type(cell).construct, updated=())
        self.cell = cell
        self.__signature__ = inspect.signature(cell.construct)
        self.__name__ = self.__qualname__ = type(cell).__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the Cell."""
        return self.cell(*args, **kwargs)

    def __reduce__(self) -> Any:
        return (CellCall, (self.cell,))


def ms_function(fn: Any = None, **options: Any) -> Any:
    """The older name of :func:`jit`."""
    return jit(fn, **options)


def jit_class(cls: type) -> type:
    """Marks a plain class for use inside compiled functions; any class may be used, so it is
    returned unchanged.

    Raises:
        DTypeError: if ``cls`` is not a class.
    """
    if not isinstance(cls, type):
        raise DTypeError(f"jit_class needs a class, not {type(cls).__name__}", op="jit_class")
    return cls
