"""Puts the bodies of public functions behind a handler, see :mod:`tvmgraph.core.explained`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from types import CodeType, FunctionType

from tvmgraph.core import kinds
from tvmgraph.core.explained import explained, know
from tvmgraph.errors import is_package_file

_handlers: set[CodeType] = set()
_PACKAGE = "tvmgraph."
_CORE = f"{_PACKAGE}core."
_HANDLER = "_explained"
_CHECK = "_require_kind"
_MEMBER = "_require_word"
_NO_COLUMNS = 0x80 | 13 << 3  # kind of an entry of a code's table of lines


def guard_module(namespace: Mapping[str, object], prefix: str = "") -> None:
    """Guards the public functions of a module, and the constructors and methods of its classes.

    Args:
        namespace: Its ``globals()``; what other packages define is left alone.
        prefix: What users call the module, such as ``ops``.
    """
    for name, value in sorted(namespace.items(), key=_bases_first):
        module = getattr(value, "__module__", None) or ""
        if name.startswith("_") or not module.startswith(_PACKAGE):
            continue
        of_all = isinstance(value, type) and module.startswith(_CORE)  # Tensor is everybody's
        full = f"{prefix}.{name}" if prefix and not of_all else name
        if isinstance(value, FunctionType):
            guard(value, full)
        elif isinstance(value, type) and not issubclass(value, (BaseException, Enum)):
            for cls in value.__mro__:
                if cls.__module__.startswith(_PACKAGE):
                    _guard_class(cls, full)


def public_names(namespace: Mapping[str, object], *others: str) -> list[str]:
    """Returns the ``__all__`` of a module or package: what it, or its modules, define.

    Args:
        namespace: Its ``globals()``.
        others: Names that it has from elsewhere, or finds when they are used.
    """
    inside = f"{namespace['__name__']}."
    own = {name for name, value in namespace.items() if not name.startswith("_")
           and f"{getattr(value, '__module__', None)}.".startswith(inside)}  # fmt: skip
    return sorted({*own, *others})


def _bases_first(item: tuple[str, object]) -> int:
    return len(item[1].__mro__) if isinstance(item[1], type) else 0


def _guard_class(cls: type, name: str) -> None:
    """Guards what a class itself defines; of layers only the constructor, for they are called."""
    own = vars(cls)
    methods = [] if "construct" in own else [n for n in own if not n.startswith("_")]
    for key in ["__init__", "__new__", *methods]:
        value = own.get(key)
        inner = getattr(value, "__func__", value)  # of class and static methods
        if isinstance(inner, FunctionType) and is_package_file(inner.__code__.co_filename):
            guard(inner, name if key.startswith("__") else f"{name}.{key}")


def guard(function: Callable[..., object], name: str) -> None:
    """Puts the body of a function behind a handler; the function stays the same object.

    Args:
        function: A plain function or method of this package.
        name: What users call it.
    """
    assert isinstance(function, FunctionType)
    wrapped = getattr(function, "__wrapped__", None)
    if isinstance(wrapped, FunctionType):
        guard(wrapped, name)
    code = function.__code__
    names = function.__globals__
    own = str(names.get("__name__")).startswith(_PACKAGE)
    if code in _handlers or not own or hasattr(function, "op") or _suspends(code):
        return
    body = FunctionType(code, names, function.__name__, function.__defaults__, function.__closure__)
    body.__kwdefaults__ = function.__kwdefaults__
    key = f"_body_{len(_handlers)}_of_{function.__name__}"
    names |= {key: body, _HANDLER: explained, _CHECK: kinds.require, _MEMBER: kinds.require_word}
    function.__code__ = _handled(function, key)
    _handlers.add(function.__code__)
    know(function, name)


def _suspends(code: CodeType) -> bool:
    return bool(code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE))


def _handled(function: FunctionType, body: str) -> CodeType:
    """Compiles the handler with the signature and the free variables of a function."""
    code = function.__code__
    made = _inner(_inner(compile(_source(function, body), code.co_filename, "exec")))
    return made.replace(
        co_name=code.co_name, co_qualname=code.co_qualname, co_firstlineno=code.co_firstlineno,
        co_linetable=_one_line(len(made.co_code) // 2),
    )  # fmt: skip


def _one_line(units: int) -> bytes:
    """Returns a table of lines for code that is all on its first line.

    Args:
        units: Length of the code; an entry covers up to eight, and the next one starts there.
    """
    eights, rest = divmod(units, 8)
    last = bytes([_NO_COLUMNS | rest - 1, 0]) if rest else b""
    return bytes([_NO_COLUMNS | 7, 0]) * eights + last


def _inner(code: CodeType) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType))


def _source(function: FunctionType, body: str) -> str:
    code = function.__code__
    checks = [f"   {c}\n" for c in _checks(function, body)]
    return (
        f"def outer({', '.join(code.co_freevars)}):\n"
        f" def inner({_parameters(code)}):\n"
        f"  if 0: {', '.join(code.co_freevars) or '0'}\n"
        f"  try:\n{''.join(checks)}"
        f"   return {body}({_forwarded(code)})\n"
        f"  except Exception as _error:\n"
        f"   raise {_HANDLER}(_error)\n"
    )


def _groups(code: CodeType) -> tuple[list[str], list[str], str, str]:
    """Returns the positional and the keyword-only parameters, and those with stars."""
    names = code.co_varnames
    end = code.co_argcount + code.co_kwonlyargcount
    rest = list(names[end : end + 2])
    stars = rest.pop(0) if code.co_flags & inspect.CO_VARARGS else ""
    keywords = rest.pop(0) if code.co_flags & inspect.CO_VARKEYWORDS else ""
    return list(names[: code.co_argcount]), list(names[code.co_argcount : end]), stars, keywords


def _parameters(code: CodeType) -> str:
    positional, named, stars, keywords = _groups(code)
    if code.co_posonlyargcount:
        positional.insert(code.co_posonlyargcount, "/")
    middle = [f"*{stars}"] if stars else ["*"] if named else []
    return ", ".join([*positional, *middle, *named, *([f"**{keywords}"] if keywords else [])])


def _forwarded(code: CodeType) -> str:
    positional, named, stars, keywords = _groups(code)
    passed = [*positional, *([f"*{stars}"] if stars else []), *[f"{n}={n}" for n in named]]
    return ", ".join([*passed, *([f"**{keywords}"] if keywords else [])])


def _checks(function: FunctionType, body: str) -> list[str]:
    """Returns the statements that look at arguments: numbers, None, words and fills of images."""
    positional, named, _, _ = _groups(function.__code__)
    defaults: dict[str, object] = dict(zip(positional[::-1], (function.__defaults__ or ())[::-1]))
    defaults |= function.__kwdefaults__ or {}
    found: list[str] = []
    for n in [*positional, *named]:
        words = kinds.words(function.__annotations__.get(n, ""))
        if n in defaults and defaults[n] is None and "None" not in words:
            words = (*words, "None")
        if kinds.are_numbers(words):
            exact = next(kinds.EXACT[w].__name__ for w in words if w != "None")
            none = f"{n} is not None and " if "None" in words else ""
            check = f"{n} = {_CHECK}({n!r}, {n}, {words!r})"
            found.append(f"if {none}{n}.__class__ is not {exact}: {check}")
        elif words == ("Fill",) or words[0] == "Workers":
            usual = "int" if words == ("Fill",) else "None.__class__"
            found.append(f"if {n}.__class__ is not {usual}: {_CHECK}({n!r}, {n}, {words!r})")
        elif kinds.are_words(words) and isinstance(defaults.get(n), Enum):
            home = f"{body}.__kwdefaults__[{n!r}]"
            if n in positional:
                home = f"{body}.__defaults__[{positional.index(n) - len(positional)}]"
            found.append(f"{_MEMBER}({n!r}, {n}, {home})")
    return found
