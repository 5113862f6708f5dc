"""The ``jit`` decorator with MindSpore's options."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from tvmgraph.capture import tree
from tvmgraph.capture.checks import CellLike, is_cell, is_cell_class
from tvmgraph.capture.settings import Settings
from tvmgraph.config import GLOBAL_WRITES, JitConfig, as_jit_config, context
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.distributed import engine
from tvmgraph.errors import (
    ArgumentError,
    ConfigError,
    DTypeError,
    TypeOrValueError,
    either,
    user_source,
    warn_user,
)
from tvmgraph.jit.function import JitFunction
from tvmgraph.jit.signature import Signature, check_specs, signature_of
from tvmgraph.signatures import python_signature

_F = TypeVar("_F", bound=Callable[..., Any])
#: The capture mode that every older name stands for.
_MODES = {"PSJit": "ast", "PIJit": "bytecode"}
_CAPTURE_MODES = ("ast", "bytecode", "trace")
_DEPRECATED = ("hash_args", "compile_once")


def jit(
    function: object = None,
    *,
    mode: str = "",
    capture_mode: str = "",
    jit_level: str = "",
    dynamic: int = 0,
    fullgraph: bool = False,
    backend: str = "",
    jit_config: JitConfig | str | None = None,
    attr_guard: bool = True,
    global_writes: str = "",
    input_signature: object = None,
    **options: object,
) -> Any:
    """Compiles a function, a method or a Cell into one graph.

    User code is interpreted once per kind of arguments (shapes, dtypes and values of Python
    arguments): tensors are symbolic, and an ``if`` or a loop that a tensor decides about becomes
    part of the graph. Later calls of the same kind run compiled code.
    Whatever the code read besides its arguments (attributes, globals, closures) is guarded: when
    it changes, the function is captured again. Weights are read at every call.

    Args:
        function: Function, method, ``construct`` or Cell; without it a decorator is returned.
        mode: ``"PSJit"`` or ``"PIJit"``, MindSpore's older names of the capture modes ``"ast"`` and
            ``"bytecode"``; empty follows ``capture_mode``.
        capture_mode: ``"ast"``, or empty without ``mode``, interprets the code. What cannot be
            part of one graph runs with graph breaks: compiled segments between the statements that
            only Python can run, with its results, exceptions and effects; ``explain()`` lists them.
            With the ``jit_syntax_level`` ``"STRICT"`` it is an error that names the line.
            ``"bytecode"`` runs with graph breaks at either level. ``"trace"`` runs the code once
            with symbolic tensors, where control flow on a tensor is an error.
        jit_level: ``"O0"`` to ``"O3"``; empty follows ``jit_config``, which may not name another.
        dynamic: 0: a size becomes symbolic when a second one is seen. 1: all sizes are symbolic
            from the first call on, where the code allows it.
        fullgraph: ``True`` makes what cannot be one graph an error in every mode.
        backend: Empty or ``"tvm"``.
        jit_config: A :class:`JitConfig` or the name of a preset.
        attr_guard: ``False`` compiles once per kind of arguments: attributes, globals and closures
            that change later are not seen (a change warns once).
        global_writes: What a write to a global does: ``"warn"`` keeps it inside the call and warns
            once, ``"error"`` refuses it, ``"replay"`` repeats it after every call; empty follows
            ``set_context(global_writes=...)``, then is ``"replay"``, or ``"warn"`` for STRICT.
        input_signature: What the arguments must be: placeholders such as
            ``Tensor(shape=[None, 3], dtype=ms.float32)``. Their ``None`` sizes (or names, for
            sizes that are equal) are symbolic from the first call on; a call that does not fit is
            an error.

    Returns:
        A :class:`JitFunction`.

    Raises:
        ArgumentError: for an unknown option or value, or two that contradict each other.
        DTypeError: if ``function`` is no function, method, Cell or class of Cells.

    Example:
        >>> @ms.jit
        ... def f(x):
        ...     return x * 2 + 1
        >>> f(Tensor([1.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 3.00000000e+00])
    """
    _check_options(mode, capture_mode, dynamic, fullgraph, backend, options)
    config = as_jit_config(jit_config) if jit_config is not None else None
    _choice("attr_guard", attr_guard, (True, False))
    _choice("global_writes", global_writes, ("", *GLOBAL_WRITES))
    _check_level(jit_level, config)
    regions = (mode == "PIJit" or capture_mode == "bytecode") and not fullgraph
    captured = "trace" if capture_mode == "trace" else "region" if regions else "ast"
    settings = Settings(captured, attr_guard, global_writes, bool(dynamic), fullgraph=fullgraph)
    signature = signature_of(input_signature)
    if jit_level:
        base = JitConfig() if config is None else config
        config = base.replace(jit_level=jit_level)
    if function is None:
        return functools.partial(_wrap, config=config, settings=settings, signature=signature)
    return _wrap(function, config, settings, signature)


def _choice(name: str, value: object, valid: tuple[object, ...]) -> None:
    if not any(v is value or (type(v) is type(value) and v == value) for v in valid):
        kind = ArgumentError if type(value) in map(type, valid) else TypeOrValueError
        raise kind(
            f"{name} cannot be {value!r}", op="jit", at=user_source(),
            fix=f"use one of {', '.join(map(repr, valid))}",
        )  # fmt: skip


def _check_options(
    mode: str, capture_mode: str, dynamic: int, fullgraph: bool, backend: str,
    options: Iterable[str],
) -> None:  # fmt: skip
    _choice("mode", mode, ("", *_MODES))
    _choice("capture_mode", capture_mode, ("", *_CAPTURE_MODES))
    if mode and capture_mode and _MODES[mode] != capture_mode:
        raise ArgumentError(
            f"mode={mode!r} contradicts capture_mode={capture_mode!r}: it is another name of "
            f"{_MODES[mode]!r}", op="jit", at=user_source(), fix="leave one of them out",
        )  # fmt: skip
    _choice("dynamic", dynamic, (0, 1, False, True))
    _choice("fullgraph", fullgraph, (False, True))
    if backend == "GE":
        warn_user("jit: backend='GE' is Ascend's; TVM compiles here")
    elif backend not in ("", "tvm", "ms_backend"):
        raise either(ArgumentError, RuntimeError)(
            f"backend cannot be {backend!r}", op="jit", at=user_source(),
            fix="use one of '', 'tvm', 'ms_backend'",
        )  # fmt: skip
    for name in options:
        if name not in _DEPRECATED:
            raise ArgumentError(
                f"unknown option {name!r}", op="jit", at=user_source(),
                fix="use mode, capture_mode, jit_level, dynamic, fullgraph, backend, jit_config, "
                "attr_guard or global_writes",
            )  # fmt: skip
        warn_user(f"jit: {name} is deprecated and has no effect")


def _check_level(level: str, config: JitConfig | None) -> None:
    """Raises ArgumentError for a level beside another one that the configuration names."""
    if level and config is not None and "jit_level" in config.given and level != config.jit_level:
        raise ArgumentError(
            f"jit_level={level!r} contradicts jit_config, whose jit_level is "
            f"{config.jit_level!r}", op="jit", at=user_source(), fix="leave one of them out",
        )  # fmt: skip


def _wrap(
    function: object, config: JitConfig | None, settings: Settings,
    signature: Signature | None = None,
) -> object:  # fmt: skip
    if is_cell_class(function):
        function.construct = _jitted(function.construct, config, None, settings, signature)
        return function
    if isinstance(function, JitFunction):
        if config is None and settings == function.settings and signature is None:
            return function
        return _jitted(function.fn, config, function.owner, settings, signature)
    if is_cell(function):
        return _jitted(CellCall(function), config, function, settings, signature)
    if not callable(function) or isinstance(function, type):
        what = f"the class {function.__name__}" if isinstance(function, type) else (
            type(function).__name__
        )  # fmt: skip
        raise DTypeError(
            f"jit needs a function, a method or a Cell, not {what}", op="jit", at=user_source(),
            fix="decorate the functions or methods that compute; a class may be a Cell",
        )  # fmt: skip
    owner = getattr(function, "__self__", None)
    if signature is None:
        signature = getattr(function, "__enable_dynamic__", None)
    return _jitted(function, config, owner if is_cell(owner) else None, settings, signature)


def _jitted(
    fn: Callable[..., object], config: JitConfig | None, owner: object, settings: Settings,
    signature: Signature | None,
) -> JitFunction:  # fmt: skip
    made = JitFunction(fn, config, owner, settings)
    made.signature = signature
    if owner is not None or getattr(fn, "__module__", "") == "__main__":
        expect_compiles()
    return made


@functools.cache
def expect_compiles() -> None:
    """Starts the compiler's process, which is ready most of a second later.

    A program that jits a function of its own or a Cell is about to compile; the functions of
    imported modules may never be called.
    """
    from tvmgraph.compiler import worker

    if engine.launched() > 1:  # one process of a host compiles for all
        return
    with contextlib.suppress(ConfigError):  # the compile will say so
        if context.device_target == "CPU" and worker.why_here() is None:
            worker.start()


class CellCall:
    """Calls a whole Cell, with the signature of its ``construct``.

    Args:
        cell: The Cell.
    """

    def __init__(self, cell: CellLike) -> None:
        functools.update_wrapper(self, type(cell).construct, updated=())
        self.cell = cell
        self.__signature__ = python_signature(cell.construct)
        self.__name__ = self.__qualname__ = type(cell).__name__

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Calls the Cell."""
        # after `net.construct = jit(net)` the Cell would call this again
        if getattr(vars(self.cell).get("construct"), "fn", None) is self:
            method = types.MethodType(type(self.cell).construct, self.cell)
            if state.interpreter is not None:
                return state.interpreter.call(method, args, kwargs)
            return method(*args, **kwargs)
        return self.cell(*args, **kwargs)

    def __reduce__(self) -> tuple[object, ...]:
        return (CellCall, (self.cell,))


def ms_function(
    fn: object = None,
    input_signature: object = None,
    hash_args: object = None,
    jit_config: JitConfig | str | None = None,
) -> Any:
    """MindSpore's older decorator: compiles once per kind of arguments.

    Unlike :func:`jit` it does not look at attributes, globals and closures again: after
    ``net.value = 1`` the compiled function keeps the value it was compiled with. The first change
    that it does not see is named in a warning. Weights are read at every call, and
    ``set_train`` is seen.

    Args:
        fn: Function, method or Cell; without it a decorator is returned.
        input_signature: Deprecated, without effect.
        hash_args: Deprecated, without effect.
        jit_config: A :class:`JitConfig` or the name of a preset.

    Example:
        >>> @ms.ms_function
        ... def f(x):
        ...     return x * 2
        >>> f(Tensor([1.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 2.00000000e+00])
    """
    for name, value in (("input_signature", input_signature), ("hash_args", hash_args)):
        if value is not None:
            warn_user(f"ms_function: {name} is deprecated and has no effect")
    config = as_jit_config(jit_config) if jit_config is not None else None
    settings = Settings(attr_guard=False, alias="ms_function")
    if fn is None:
        return functools.partial(_wrap, config=config, settings=settings)
    return _wrap(fn, config, settings)


def enable_dynamic(**kwargs: object) -> Callable[[_F], _F]:
    """Declares arguments whose sizes vary, of a function that :func:`jit` compiles.

    One compile serves all their sizes; a call whose arguments do not fit is an error.

    Args:
        kwargs: A placeholder, or a tuple or list of them, by name of the argument: sizes that are
            ``None`` vary, and so does the number of axes of ``Tensor(shape=None, dtype=...)``.

    Returns:
        A decorator; above or below that of ``jit``. A function that is not compiled it leaves as
        it is.

    Raises:
        ArgumentError: if nothing is declared, or of the decorator if the function has no argument
            of a name.
        DTypeError: if no size of an argument varies, or it is declared by no Tensor.

    Example:
        >>> @ms.enable_dynamic(x=Tensor(shape=[None, 3], dtype=ms.float32))
        ... @ms.jit
        ... def f(x):
        ...     return x * 2
        >>> f(ops.ones((5, 3))).shape
        (5, 3)
    """
    if not kwargs:
        raise ArgumentError("an argument must be declared", op="enable_dynamic")
    for name, value in kwargs.items():
        leaves = value if isinstance(value, (tuple, list)) else (value,)
        check_specs((value,), "enable_dynamic")
        if not any(isinstance(v, Tensor) and not v.aval.is_static for v in tree.tensors(leaves)):
            raise DTypeError(
                f"no size of the argument {name!r} varies", op="enable_dynamic", at=user_source(),
                fix="declare it as Tensor(shape=[None], dtype=ms.float32)",
            )  # fmt: skip

    def decorate(function: _F) -> _F:
        target: object = function
        if not isinstance(target, (JitFunction, types.FunctionType, types.MethodType)):
            raise ArgumentError(f"{function!r:.60} is no function that jit compiles",
                                op="enable_dynamic", at=user_source())  # fmt: skip
        names = python_signature(target).parameters
        unknown = [n for n in kwargs if n not in names]
        if unknown:
            raise ArgumentError(
                f"there is no argument {unknown[0]!r}", op="enable_dynamic", at=user_source(),
                fix=f"its arguments are {', '.join(names)}",
            )  # fmt: skip
        if isinstance(target, JitFunction):
            target.signature = Signature((), kwargs)
        else:
            inner = getattr(target, "__func__", target)
            inner.__dict__["__enable_dynamic__"] = Signature((), kwargs)
        return function

    return decorate


def jit_class(cls: type) -> type:
    """Marks a plain class for use inside compiled functions; any class may be used, so it is
    returned unchanged.

    Args:
        cls: The class.

    Raises:
        DTypeError: if ``cls`` is not a class, or one of Cells, which have ``jit``.
    """
    if not isinstance(cls, type):
        raise DTypeError(f"cls must be a class, not {type(cls).__name__}", op="jit_class")
    if is_cell_class(cls):
        raise DTypeError(
            "a class of Cells is compiled by jit: decorate its construct, or call jit(cell)",
            op="jit_class", got=repr(cls), at=user_source(),
        )  # fmt: skip
    return cls
