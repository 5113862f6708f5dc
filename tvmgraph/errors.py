"""Exception classes and the message template every error of the project follows.

A message has four parts: what was called and the rule it broke, what it got, where in the user's
code, and what to do about it::

    ShapeError: ops.matmul: inner dimensions differ (3 and 5)
      got: input=float32[2,3], other=float32[5,4]
      at:  demo.py:4   (in Network.dense1)
      fix: transpose an operand, or check Dense(in_channels=5)
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib.util
import os
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Mapping
from types import CodeType, FrameType, MappingProxyType
from typing import Any, NoReturn

_PACKAGE_DIR = os.path.dirname(os.path.abspath(__file__)) + os.sep
_NUMPY_DIR = os.path.dirname(getattr(importlib.util.find_spec("numpy"), "origin", "")) + os.sep
#: Frames of these files are nobody's: a `with` block written as a generator runs below contextlib,
#: NumPy's columns of the table below what silences its warnings, imports below what finds files.
_NOT_THE_USER = (_PACKAGE_DIR, contextlib.__file__, threading.__file__, _NUMPY_DIR,
                  "<frozen importlib")  # fmt: skip
_OPS_DIR = os.path.join(_PACKAGE_DIR, "ops") + os.sep


class TvmgraphError(Exception):
    """Base of every error raised on purpose.

    Args:
        message: The rule that was broken, in one line.
        op: What was called, such as ``ops.matmul``.
        got: The offending arguments, one line.
        at: The user's location ``file.py:line``; where ``op`` is told, by default the line that
            is being executed.
        fix: What the user can do, one line.
    """

    def __init__(
        self,
        message: str,
        *,
        op: str | None = None,
        got: str | None = None,
        at: str | None = None,
        fix: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.op = op
        self.got = got
        self.at = user_source() if at is None and op else at
        self.fix = fix
        self._is_placed = at is not None  # by whom knows better than the default

    def locate(self, op: str, got: str, at: str) -> TvmgraphError:
        """Fills in the parts that are still missing and returns the error itself.

        Args:
            op: What was called.
            got: What it was given.
            at: Where in the user's code.
        """
        self.op = self.op or op
        self.got = self.got or got
        if at and not self._is_placed:
            self.at, self._is_placed = at, True
        return self

    def __str__(self) -> str:
        lines = [f"{self.op}: {self.message}" if self.op else self.message]
        parts = (("got:", self.got), ("at: ", self.at), ("fix:", self.fix))
        lines += [f"  {label} {text}" for label, text in parts if text]
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        state = {"op": self.op, "got": self.got, "at": self.at, "fix": self.fix}
        return (type(self), (self.message,), state)


def reject(
    kind: type[TvmgraphError], op: str, rule: str, got: str | None = None, fix: str | None = None
) -> NoReturn:
    """Raises an error with all four lines of its message.

    Args:
        kind: Class of the error.
        op: What was called.
        rule: What is wrong.
        got: What was given.
        fix: What the user may do.
    """
    raise kind(rule, op=op, got=got, fix=fix)


class ShapeError(TvmgraphError, ValueError, RuntimeError):
    """Shapes do not fit the operator: a ValueError or RuntimeError of MindSpore, by operator."""


class Unserved(TvmgraphError):
    """A call that compiled code cannot serve as Python does; plain Python serves it."""


class TooFewElements(Unserved, ShapeError):
    """Values decided on fewer elements than what comes after needs, in compiled code."""


def require_size(size: int, least: int) -> None:
    """Makes sure that a size that values decided is large enough.

    Args:
        size: The size.
        least: What it must be at least.

    Raises:
        TooFewElements: if it is smaller.
    """
    if size < least:
        raise TooFewElements(f"values decided on {size} elements, and at least {least} are needed")


@functools.cache
def either(kind: type[TvmgraphError], other: type[Exception]) -> type[Any]:
    """Returns a class of errors that is also what MindSpore, or Python, raises for the mistake.

    Args:
        kind: What the mistake is here.
        other: Another class that the error is of; nothing is added if it is of that anyway.
    """
    if issubclass(kind, other):
        return kind
    parts = {"__doc__": kind.__doc__, "__module__": __name__, "__reduce__": _reduced}
    return type(kind.__name__, (kind, other), parts)


def also_runtime(error: Exception) -> Exception:
    """Returns an error that is a RuntimeError, too, and else what it was.

    MindSpore's pipelines raise RuntimeErrors for whatever goes wrong in them.

    Args:
        error: Any error; one that is of a class of Python's own is copied.
    """
    kind: type = type(error)
    if isinstance(error, RuntimeError):
        return error
    if isinstance(error, TvmgraphError):
        error.__class__ = either(kind, RuntimeError)
        return error
    again = {"__module__": kind.__module__, "__reduce__": lambda self: (kind, self.args)}
    bases = (RuntimeError,) if issubclass(RuntimeError, kind) else (kind, RuntimeError)
    both = type(kind.__name__, bases, again)
    try:
        error.__class__ = both
    except TypeError:  # a class of Python's own
        copied = both(*error.args)
        copied.__dict__.update(error.__dict__)
        copied.__cause__, copied.__context__ = error.__cause__, error.__context__
        return copied.with_traceback(error.__traceback__)
    return error


def require_offered(op: str, options: Mapping[str, object], kept: Collection[str] = ()) -> None:
    """Makes sure that nothing is asked for that does not exist here.

    Args:
        op: What was called.
        options: Its keyword arguments that it does not name; ``None`` and False ask for nothing.
        kept: Those of MindSpore's that have no meaning here and change no result.

    Raises:
        ArgumentError: naming the first of them; it is a TypeError, too, as Python's own.
    """
    for name, value in options.items():
        if name not in kept and value is not None and value is not False:
            raise either(ArgumentError, TypeError)(
                f"there is no argument {name!r}", op=op, got=f"{name}={value!r:.60}",
                fix="leave it out, or correct its name",
            )  # fmt: skip


def no_scalar(value: object, several: bool = False) -> type[DTypeError]:
    """Returns the class for what is no number: of an array with axes the shape is wrong, too.

    Args:
        value: What was given.
        several: Whether sizes per axis or a word are documented, of which MindSpore says that the
            type or that the value is wrong, by function.
    """
    kind = TypeOrValueError if several else DTypeError
    return either(kind, ShapeError) if getattr(value, "ndim", 0) else kind


def _reduced(error: TvmgraphError) -> tuple[object, ...]:
    """A class made by :func:`either` is pickled by what it is made of."""
    return (_again, (*type(error).__bases__, error.message), TvmgraphError.__reduce__(error)[2])


def _again(kind: type[TvmgraphError], other: type[Exception], message: str) -> TvmgraphError:
    return either(kind, other)(message)


class DTypeError(TvmgraphError, TypeError):
    """A dtype or the class of an argument does not fit."""


class NoTensorError(DTypeError, AttributeError):
    """An argument is no tensor: a type error by MindSpore's documentation, and what its functions
    raise that look for a tensor's attributes first.
    """


class TypeOrValueError(DTypeError, ValueError):
    """An argument of a wrong type, which MindSpore reports as a wrong value."""


class ArgumentError(TvmgraphError, ValueError):
    """An argument has a value outside the documented range."""


class OutOfRangeError(TvmgraphError, IndexError, ValueError, RuntimeError):
    """An index lies outside the axis it addresses: any of the three of MindSpore, by operator."""


class OutOfMemoryError(TvmgraphError, MemoryError):
    """Something would need more memory than there is."""


class ConfigError(TvmgraphError, ValueError):
    """An unknown or contradictory configuration key or value."""


class ConfigTypeError(ConfigError, TypeError):
    """A configuration value of a wrong type."""


class CaptureError(TvmgraphError, RuntimeError):
    """The Python code cannot be turned into a graph.

    Attributes:
        node: What the captured function was evaluating, a node of its syntax tree.
        names: Its local variables then.
        value: What it may not return, if that is the reason, in a tuple.
    """

    node: Any = None
    names: Mapping[str, object] = MappingProxyType({})
    value: tuple[object] | None = None


class GlobalWrite(CaptureError):
    """A global is written where the user does not allow it."""


class LeavesGraph(CaptureError):
    """Something runs as plain Python also in compiled code, and so does whoever calls it.

    Attributes:
        holds: Whether it still does.
    """

    holds: Callable[[], bool] = staticmethod(lambda: True)


class GraphError(TvmgraphError, ValueError):
    """A graph breaks its own rules, or a graph text cannot be parsed."""


class NoGradientError(TvmgraphError, RuntimeError):
    """A derivative was asked of something that has none."""


class ExportError(TvmgraphError, RuntimeError):
    """A graph cannot be written in the requested format."""


class LoadError(TvmgraphError, RuntimeError):
    """A file cannot be loaded: damaged, or made for another machine or version."""


class CompileError(TvmgraphError, RuntimeError):
    """The compiler rejected a graph; names the node and the user's line."""


class NumericsError(TvmgraphError, ArithmeticError):
    """An operator made a NaN or an infinity of finite values while somebody watches for them."""


class DeviceError(TvmgraphError, RuntimeError):
    """A device is missing, unknown or unusable."""


class KeyNotFoundError(TvmgraphError, KeyError):
    """A name that a table of names does not take."""

    __str__ = TvmgraphError.__str__


class NotFoundError(TvmgraphError, AttributeError):
    """A name does not exist."""


class NotFoundImportError(TvmgraphError, ModuleNotFoundError):
    """A name or a module that an import asks for does not exist."""


class _Files(dict[str, bool]):
    """Which files are of this package; asked at every operator."""

    def __missing__(self, file: str) -> bool:
        found = self[file] = file.startswith(_NOT_THE_USER)
        return found


_IS_OWN = _Files()


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Returns the local variables of a function's frame without leaving them there.

    Before Python 3.13 a frame keeps the dictionary it was asked for: objects in it would outlive
    the variables, and an exception that is being handled would hold its own frames.

    Args:
        frame: A frame of this package: a tracer of a user's would find its variables gone.
    """
    kept = frame.f_locals
    found = dict(kept)
    if sys.version_info < (3, 13):
        kept.clear()
    return found


def is_package_file(file: str) -> bool:
    """Whether code of this file is nobody's: of this package, or of a ``with`` block in it.

    Args:
        file: Path of the file.
    """
    return _IS_OWN[file]


def user_frame() -> FrameType | None:
    """Returns the innermost frame whose code is not part of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _IS_OWN[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


_interpreters: dict[CodeType, Callable[[FrameType], str]] = {}


def interprets(code: CodeType, locate: Callable[[FrameType], str]) -> None:
    """Declares that a function of this package executes user code.

    Args:
        code: The function's code.
        locate: Returns ``file.py:line`` of the user's code from a frame of the function.
    """
    _interpreters[code] = locate


def file_name(path: str) -> str:
    """Returns the name of a source file; of a notebook cell what the notebook calls it.

    Args:
        path: Path of the file.
    """
    get_shell = getattr(builtins, "get_ipython", None)  # while a cell runs; that of IPython writes
    if get_shell is not None and "ipykernel" in path:
        cells = getattr(getattr(get_shell(), "compile", None), "_filename_map", {})
        if path in cells:
            return f"In[{cells[path]}]"
    return os.path.basename(path)


def warn_user(message: str) -> None:
    """Warns at the line of the user's code, however deep in this package the caller is.

    Args:
        message: The text, a UserWarning.
    """
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and _IS_OWN[frame.f_code.co_filename]:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def user_source() -> str:
    """Returns ``file.py:line`` of the user's code being executed, or ``""``."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _IS_OWN[frame.f_code.co_filename]:
        locate = _interpreters.get(frame.f_code)
        if locate is not None:
            return locate(frame)
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{file_name(frame.f_code.co_filename)}:{frame.f_lineno}"


def called_operator(default: str) -> str:
    """Returns the ``ops`` function that the user's code called, or ``default``.

    A public function may be built on other operators; the error is about what the user wrote.

    Args:
        default: What is returned if it was none.
    """
    frame: FrameType | None = sys._getframe(1)
    called: FrameType | None = None
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE_DIR):
        called, frame = frame, frame.f_back
    if called is None:
        return default
    name = called.f_code.co_name
    if name in ("__getitem__", "__setitem__"):
        return f"Tensor.{name}"
    in_ops = called.f_code.co_filename.startswith(_OPS_DIR)
    return f"ops.{name}" if in_ops and not name.startswith(("_", "<")) else default
