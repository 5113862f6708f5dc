"""Whatever goes wrong inside a public function becomes an error that names its arguments.

A guarded function keeps its identity, and with it what captures and tables know about it: its body
moves behind a handler of the same signature, which costs a call. Only the outermost guarded
function of a call says anything, the one that the user's code names. Exceptions of user code that
a function calls are none of its business.
"""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
from collections.abc import Callable, Mapping
from types import CodeType, FrameType, TracebackType

from tvmgraph.core import kinds
from tvmgraph.core.arguments import is_dict, is_sequence
from tvmgraph.core.dispatch import describe
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import (
    ArgumentError,
    DTypeError,
    OutOfMemoryError,
    OutOfRangeError,
    ShapeError,
    TvmgraphError,
    either,
    is_package_file,
    locals_of,
    user_source,
)

_OF_ONE_ELEMENT = ("bool(Tensor)", "Tensor.item")  # what refuses tensors of several elements
#: What `enum` says of a value that is none, NumPy of an array where a condition is needed, and
#: Python of a word where a number is.
_TYPE_TROUBLE = (" is not a valid ", "The truth value of an array ", "invalid literal for int() ",
                 "could not convert string to float")  # fmt: skip
_names: dict[CodeType, str] = {}  # what users call a guarded function
_defaults: dict[CodeType, dict[str, object]] = {}  # of its parameters
_annotations: dict[CodeType, dict[str, object]] = {}  # of its parameters
_signatures: dict[CodeType, inspect.Signature] = {}  # of functions that are wrapped
_speakers: set[CodeType] = set()  # functions of this package that call what users name


class _MissingAxis(ShapeError, OutOfRangeError):
    """A shape or a list of sizes is shorter than what reads it expects."""


#: The error of the project for an unexpected one; the first that fits.
_ERRORS: tuple[tuple[type[Exception], type[TvmgraphError]], ...] = (
    (MemoryError, OutOfMemoryError),
    (IndexError, _MissingAxis),
    (TypeError, DTypeError),
    (AttributeError, DTypeError),
    (KeyError, ArgumentError),
    (ValueError, ArgumentError),
    (ArithmeticError, ArgumentError),
    (BufferError, DTypeError),
    (AssertionError, ArgumentError),
    (RecursionError, ArgumentError),
)
_LIBRARIES = (*{sysconfig.get_path(k) + os.sep for k in ("stdlib", "platstdlib")}, "<frozen ")


def know(function: Callable[..., object], name: str) -> None:
    """Remembers what users call a function that has a handler, and its defaults.

    Args:
        function: The function with its handler.
        name: What users call it, as ``"ops.add"``.
    """
    code: CodeType = function.__code__
    _names[code] = name
    _annotations[code] = function.__annotations__
    if hasattr(function, "__wrapped__"):
        _signatures[code] = inspect.signature(function)
    positional = code.co_varnames[: code.co_argcount]
    _defaults[code] = {
        **dict(zip(positional[::-1], (function.__defaults__ or ())[::-1])),
        **(function.__kwdefaults__ or {}),
    }


def speaks_for_users(function: Callable[..., object]) -> None:
    """Declares that a function of this package calls what users name in their code.

    Args:
        function: The function.
    """
    _speakers.add(function.__code__)


def explained(
    error: Exception,
    name: str = "",
    arguments: dict[str, object] | None = None,
    function: Callable[..., object] | None = None,
) -> Exception:
    """Returns the error with which a public function ends; to be called in its handler.

    Args:
        error: The exception that escapes the function.
        name: What users call it, if it is not guarded.
        arguments: Its arguments by name, if they are not the local variables.
        function: What says what the arguments must be, if it is not the guarded function.

    Returns:
        The same error where a caller in this package or the user's own code is responsible, or an
        error of the project with the name and arguments of the function and the user's line.
    """
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    caller = frame.f_back
    if caller is None or not _is_users(caller.f_code) or _passed_user_code(error.__traceback__):
        return error
    if arguments is None:
        arguments = _arguments(frame)
    name = name or _name(frame)
    code = frame.f_code
    annotations = function.__annotations__ if function else _annotations.get(code, {})
    fixed = code.co_argcount + code.co_kwonlyargcount
    starred = code.co_varnames[fixed : fixed + 2]  # of these it says what each of them must be
    annotations = {n: a for n, a in annotations.items() if n not in starred}
    if isinstance(error, TvmgraphError):
        return _completed(error, name, arguments, annotations)
    return _converted(error, name, arguments, annotations)


def _name(frame: FrameType) -> str:
    itself = locals_of(frame).get("self") if frame.f_code.co_name == "__init__" else None
    if itself is not None:
        return type(itself).__name__
    return _names.get(frame.f_code, frame.f_code.co_name)


def _is_users(code: CodeType) -> bool:
    return code in _speakers or not is_package_file(code.co_filename)


def _passed_user_code(trace: TracebackType | None) -> bool:
    """Whether the exception comes out of user code that the function called."""
    below = trace.tb_next if trace is not None else None
    while below is not None:
        file = below.tb_frame.f_code.co_filename
        own = is_package_file(file) or file.endswith(".pyx")
        own = own or (file.startswith(_LIBRARIES) and "-packages" not in file)
        if not own:
            return True
        below = below.tb_next
    return False


def _arguments(frame: FrameType) -> dict[str, object]:
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = [n for n in code.co_varnames[:count] if n not in ("self", "cls")]
    defaults = _defaults.get(code, {})
    found = locals_of(frame)
    given = {n: found[n] for n in names if n in found}
    signature = _signatures.get(code, getattr(found.get("self"), "signature", None))
    starred = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    takes_any = len(given) == 2 and code.co_flags & starred == starred
    if takes_any and isinstance(signature, inspect.Signature):
        return _bound(signature, *given.values())
    fixed = code.co_argcount + code.co_kwonlyargcount
    for n in code.co_varnames[fixed:count]:  # what *args and **kwargs did not get says nothing
        if n in given and not given[n]:
            del given[n]
    return {n: v for n, v in given.items() if n not in defaults or v is not defaults[n]}


def _bound(
    signature: inspect.Signature, args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, object]:
    """Returns the arguments of a wrapped method by name; of its own ``self`` none."""
    positional = [n for n in signature.parameters if n != "self"]
    named = dict(zip(positional, args))
    return named | {f"argument {i}": a for i, a in enumerate(args) if i >= len(named)} | kwargs


def _completed(
    error: TvmgraphError, name: str, arguments: Mapping[str, object],
    annotations: Mapping[str, object],
) -> TvmgraphError:  # fmt: skip
    """Adds what an error raised deep inside could not know; a wrong type is what to say first."""
    wrong = _wrong(arguments, annotations) if isinstance(error, (ValueError, IndexError)) else ""
    if not wrong and error.op in _OF_ONE_ELEMENT:
        wrong = _no_number(arguments, annotations)
    text = str(error)
    if not all(n in text for n in arguments):
        error.got = _joined(error.got, arguments)
    if wrong and not isinstance(error, TypeError):
        new = either(DTypeError, type(error))(wrong, op=name, got=error.got)
        new.__cause__ = error
        return new
    becomes = (n for n, v in arguments.items()
               if kinds.no_tensor(kinds.words(annotations.get(n, "")), v))  # fmt: skip
    if isinstance(error, ValueError) and any(becomes):  # what MindSpore says first
        error.__class__ = either(type(error), TypeError)
    return error.locate(name, "", user_source())


def _converted(
    error: Exception, name: str, arguments: Mapping[str, object], annotations: Mapping[str, object]
) -> Exception:
    found = next((pair for pair in _ERRORS if isinstance(error, pair[0])), None)
    circular = next((n for n, v in arguments.items() if _holds_itself(v)), None)
    if found is None or (isinstance(error, RecursionError) and circular is None):
        return error
    theirs, ours = found
    kind = either(ours, theirs)
    wrong = _wrong(arguments, annotations)
    fix = None
    if circular is not None:
        message, fix = f"{circular} holds itself", "give containers that end"
    elif wrong:
        kind, message = either(DTypeError, theirs), wrong
    else:
        message = f"cannot work with these arguments ({_text(error)})"
        if any(words in message for words in _TYPE_TROUBLE):
            kind = either(DTypeError, theirs)
    new = kind(message, op=name, got=_described(arguments), fix=fix)
    new.__cause__ = error
    return new


def _wrong(arguments: Mapping[str, object], annotations: Mapping[str, object]) -> str:
    """Says which argument is certainly not what its annotation says, if any."""
    for name, value in arguments.items():
        words = kinds.words(annotations.get(name, ""))
        if kinds.is_wrong(words, value) or _is_no_number(words, value):
            return f"{name} must be {kinds.spoken(words)}, not {type(value).__name__}"
    return ""


def _no_number(arguments: Mapping[str, object], annotations: Mapping[str, object]) -> str:
    """Says which tensor with axes was taken for a number or a condition, if any."""
    for name, value in arguments.items():
        documented = kinds.words(annotations.get(name, ""))
        if "Tensor" not in documented and isinstance(value, Tensor) and value.ndim:
            return f"{name} cannot be a Tensor of shape {value.shape}"
    return ""


def _is_no_number(words: tuple[str, ...], value: object) -> bool:
    """Whether a tensor with axes is where numbers, strings or sequences are documented.

    That is allowed where it works, so it is an answer only to why something did not.
    """
    is_tensor = isinstance(value, Tensor) and value.ndim > 0
    return is_tensor and bool(kinds.wrong_classes(words)) and "Tensor" not in words


def _text(error: Exception) -> str:
    first = str(error).partition("\n")[0][:200]
    speaks = isinstance(error, MemoryError | ValueError)
    return first if speaks else f"{type(error).__name__}: {first}"


def _joined(got: str | None, arguments: Mapping[str, object]) -> str:
    """Adds to what was given the arguments that are not said there."""
    if not got:
        return _described(arguments)
    new = {n: v for n, v in arguments.items() if f" {n}={describe(v)}," not in f" {got},"}
    return ", ".join(part for part in (got, _described(new)) if part)


def _described(arguments: Mapping[str, object]) -> str:
    return ", ".join(f"{n}={describe(v)}" for n, v in arguments.items())


def _holds_itself(value: object, outer: tuple[int, ...] = ()) -> bool:
    if not (is_sequence(value) or is_dict(value)):
        return False
    if id(value) in outer or len(outer) > 100:
        return True
    items = value.values() if is_dict(value) else value
    return any(_holds_itself(v, (*outer, id(value))) for v in items)
