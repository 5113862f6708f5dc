"""Operator classes: configured once by the constructor, then called like the function.

``ops.ReduceMean(keep_dims=True)(x, 1)`` is ``ops.mean(x, 1, True)``. The classes are built from
one-line rows (``classes.rows``) the first time they are named::

    ReduceMean | keep_dims=False | x, axis=() | F.mean(x, axis, keep_dims)

that is: class name, constructor parameters, call parameters, and the expression a call computes.
``(...`` stands for the operands of the call, in their order; classes of one form share a row, in
which ``F.*`` is the function of each one's name::

    Argmax Argmin | axis=-1 | x | F.*(..., axis)
"""

from __future__ import annotations

import ast
import functools
import inspect
import numbers
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tvmgraph import dtypes, hooks
from tvmgraph.core.guard import guard
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.op import F
from tvmgraph.core.random import Generator
from tvmgraph.core.sizes import Dim
from tvmgraph.errors import (
    ArgumentError,
    DTypeError,
    NotFoundError,
    ShapeError,
    TypeOrValueError,
    either,
    reject,
)

__all__ = [
    "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "constexpr", "prim_arg_register",
    "prim_attr_register",
]  # fmt: skip


class Primitive:
    """Base of all operator classes.

    Derive from it to write an operator of your own in Python: the constructor keeps the
    configuration, ``__call__`` computes with other operators. Without a ``__call__`` it computes
    what the operator class of its name does, configured by its attributes.

    Args:
        name: Name of the operator.

    Example:
        >>> ops.Primitive("scale").add_prim_attr("factor", 2).attrs
        {'factor': 2}
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.attrs: dict[str, Any] = {}

    def __call__(self, *args: Any) -> Any:
        """Computes the operator.

        Raises:
            NotFoundError: if there is no operator class of its name.
        """
        known = sys.modules["tvmgraph.ops.operations._inner_ops"]  # and the rows of ops.operations
        built = getattr(known, self.name) if self.name in dir(known) else None
        if inspect.isclass(built) and issubclass(built, Primitive):
            taken = inspect.signature(built).parameters
            return built(**{k: v for k, v in self.attrs.items() if k in taken})(*args)
        raise NotFoundError(
            f"{self!r} has no implementation", op=self.name,
            fix="derive a class and define __call__, or use one of the classes in tvmgraph.ops",
        )  # fmt: skip

    def add_prim_attr(self, name: str, value: object) -> Primitive:
        """Keeps ``value`` as an attribute called ``name`` and returns the operator.

        Args:
            name: Name of the attribute.
            value: Its value.
        """
        self.attrs[name] = value
        setattr(self, name, value)
        return self

    def del_prim_attr(self, name: str) -> Primitive:
        """Removes an attribute and returns the operator.

        Args:
            name: Name of the attribute; one that does not exist is no error.
        """
        self.attrs.pop(name, None)
        self.__dict__.pop(name, None)
        return self

    def init_prim_io_names(self, inputs: list[str], outputs: list[str]) -> None:
        """Names the inputs and outputs; kept for programs that ask for them.

        Args:
            inputs: Names of the inputs.
            outputs: Names of the outputs.
        """
        self.add_prim_attr("input_names", inputs)
        self.add_prim_attr("output_names", outputs)

    def set_device(self, device_target: str) -> Primitive:
        """Kept for MindSpore programs; operators run where their operands are.

        Args:
            device_target: Name of a device.
        """
        return self.add_prim_attr("primitive_target", device_target)

    def set_stage(self, stage: int) -> Primitive:
        """Kept for MindSpore programs; there are no pipeline stages.

        Args:
            stage: Number of the stage.
        """
        return self.add_prim_attr("stage", stage)

    def place(self, role: str, rank_id: int) -> Primitive:
        """Kept for MindSpore programs; operators run in the process that calls them.

        Args:
            role: Role of the process.
            rank_id: Rank of the process.
        """
        return self.add_prim_attr("place_role", role).add_prim_attr("place_rank", rank_id)

    def recompute(self, mode: bool = True) -> Primitive:
        """Kept for MindSpore programs; what a derivative computes again, its plan decides.

        Args:
            mode: Whether it should be computed again.
        """
        return self.add_prim_attr("recompute_mode", mode)

    def set_prim_instance_name(self, name: str) -> Primitive:
        """Gives this instance a name of its own and returns it.

        Args:
            name: The name.
        """
        self.instance_name = name
        return self

    def shard(self, in_strategy: object = None, out_strategy: object = None) -> Primitive:
        """Asks that operands and results be split over processes; returns the operator.

        Args:
            in_strategy: Per operand into how many parts every dimension is cut, or a
                :class:`tvmgraph.Layout`.
            out_strategy: The same per result.
        """
        return hooks.shard_primitive(self, in_strategy, out_strategy)

    def __repr__(self) -> str:
        shown = {k: v for k, v in self.attrs.items() if k not in ("input_names", "output_names")}
        text = ", ".join(f"{k}={v}" for k, v in shown.items())
        return f"Prim[{self.name}]" + (f"<{text}>" if text else "")


class PrimitiveWithInfer(Primitive):
    """Kept for MindSpore programs that derive from it; the same as :class:`Primitive`."""


class PrimitiveWithCheck(Primitive):
    """Kept for MindSpore programs that derive from it; the same as :class:`Primitive`."""


def prim_attr_register(fn: Callable[..., None]) -> Callable[..., None]:
    """Decorates the ``__init__`` of an operator class: every argument becomes an attribute.

    Args:
        fn: The ``__init__``.
    """
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def init(self: Primitive, *args: object, **kwargs: object) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        Primitive.__init__(self, type(self).__name__)
        for name, value in list(bound.arguments.items())[1:]:
            self.add_prim_attr(name, value)
        fn(self, *args, **kwargs)

    return init


prim_arg_register = prim_attr_register


def constexpr(
    fn: Callable[..., object] | None = None,
    get_instance: bool = True,
    name: str | None = None,
    reuse_result: bool = True,
    check: bool = True,
) -> Callable[..., object]:
    """Marks a function of Python values that is computed while capturing, not in the graph.

    Args:
        fn: Function without tensor arguments; None when used with arguments.
        get_instance: Kept for MindSpore programs; has no effect.
        name: Name shown for the function.
        reuse_result: Kept for MindSpore programs; has no effect.
        check: Kept for MindSpore programs; has no effect.

    Example:
        >>> ops.constexpr(lambda n: 2 * n)(3)
        6
    """

    def mark(function: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(function)
        def compute(*args: object, **kwargs: object) -> object:
            return function(*args, **kwargs)

        compute.__name__ = name or getattr(function, "__name__", "constexpr")
        return compute

    return mark if fn is None else mark(fn)


def _primexpr(
    fn: Callable[..., object] | None = None, get_instance: bool = True, name: str | None = None,
    reuse_result: bool = True,
) -> Callable[..., object]:  # fmt: skip
    """Marks a function of numbers; one of a tensor's values becomes part of the graph, as any."""
    return fn if fn is not None else lambda function: function


# ---- checks of constructor arguments ------------------------------------------------------------


def _is_int(value: object) -> bool:
    return isinstance(value, (numbers.Integral, Dim)) and not isinstance(value, bool)


def _is_ints(value: object) -> bool:
    return _is_int(value) or (isinstance(value, (tuple, list)) and all(map(_is_int, value)))


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


KINDS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "bool": ("a bool", lambda v: isinstance(v, bool)),
    "int": ("an int", _is_int),
    "ints": ("an int or a tuple of ints", _is_ints),
    "float": ("a number", _is_number),
    "above0": ("a number", _is_number),
    "str": ("a str", lambda v: isinstance(v, str)),
}


#: How MindSpore keeps sizes: kind -> what they are checked as, ones ahead, and how many follow.
STORED = {
    "axes": ("ints", 0, 1), "pair": ("positive", 0, 2), "steps": ("positive", 2, 2),
    "edges": ("ints", 0, 4), "triple": ("positive", 0, 3), "steps3": ("positive", 2, 3),
    "edges3": ("ints", 0, 6),
}  # fmt: skip


#: Classes whose words MindSpore looks up in a table: others are KeyErrors.
_KEYED = frozenset(("IOU",))


def _stored(op: str, name: str, kind: str, value: object) -> object:
    """Returns sizes as the attribute that MindSpore makes of them: an int stands for each."""
    checked, ahead, count = STORED[kind]
    sizes = _checked(op, name, checked, value)
    sizes = sizes if isinstance(sizes, tuple) else (sizes,) * count
    return sizes if not ahead or len(sizes) > count else (1,) * ahead + sizes


def _checked(op: str, name: str, kind: Any, value: Any) -> object:
    """Returns ``value`` after checking it against its kind.

    A kind is None (anything), "dtype", one of :data:`KINDS` or of :data:`STORED`, "positive" (ints
    above zero; "above0" are all such numbers), or a tuple of the words a string may be.
    """
    if kind in STORED:
        return _stored(op, name, kind, value)
    if kind is None:
        return value
    if kind == "dtype":
        return dtypes.dtype_of(value)
    expected, holds = KINDS["str" if isinstance(kind, tuple) else kind.replace("positive", "ints")]
    if not holds(value):  # MindSpore raises either error where words or sizes are expected
        words_or_sizes = isinstance(kind, tuple) or kind == "str" or holds is _is_ints
        error = TypeOrValueError if words_or_sizes else DTypeError
        error = either(error, KeyError) if op in _KEYED else error
        reject(error, f"ops.{op}", f"{name} must be {expected}, not {type(value).__name__}",
               f"{name}={value!r}")  # fmt: skip
    if isinstance(kind, tuple) and value.lower() not in map(str.lower, kind):
        words = " or ".join(repr(k) for k in kind)
        error = either(ArgumentError, KeyError) if op in _KEYED else ArgumentError
        reject(error, f"ops.{op}", f"{name} must be {words}, not {value!r}", f"{name}={value!r}")
    items = value if isinstance(value, (tuple, list)) else (value,)
    if kind == "positive" and any(v < 1 for v in items):
        reject(ArgumentError, f"ops.{op}", f"{name} must be at least 1, not {value!r}",
               f"{name}={value!r}")  # fmt: skip
    if kind == "above0" and any(v <= 0 for v in items):
        reject(ArgumentError, f"ops.{op}", f"{name} must be above 0, not {value!r}",
               f"{name}={value!r}")  # fmt: skip
    return tuple(value) if isinstance(value, list) else value


def _kind_of(parameter: inspect.Parameter) -> str | tuple[str, ...] | None:
    """The kind an annotation or else the default value asks for."""
    if parameter.annotation is not parameter.empty:
        kind = parameter.annotation
        named = kind in KINDS or kind in STORED or kind in ("dtype", "positive")
        return kind if named else tuple(kind.split(" | "))
    default = parameter.default
    if isinstance(default, dtypes.DType):
        return "dtype"
    for python, kind in ((bool, "bool"), (int, "int"), (float, "float"), (str, "str")):
        if isinstance(default, python):
            return kind
    return None


# ---- classes from rows --------------------------------------------------------------------------


def read_rows(name: str) -> dict[str, tuple[str, str, str, str]]:
    """Reads a table of this folder, see :func:`parse_rows`.

    Args:
        name: Name of the file without its ending.
    """
    return parse_rows(Path(__file__).with_name(f"{name}.rows").read_text("utf-8"))


def parse_rows(text: str) -> dict[str, tuple[str, str, str, str]]:
    """Splits the lines of a row table into ``name -> (name, init, call, expression)``.

    Args:
        text: One row per line; an indented line continues the one before, ``#`` begins a comment.
    """
    rows = {}
    for line in text.replace("\n  ", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            names, init, call, expression = (
                c.strip() for c in re.split(r"\s\|(?=\s)", line, maxsplit=3)
            )
            operands = ", ".join(re.findall(r"(?:^|, )(\*{0,2}[A-Za-z_]\w*)", call))
            full = expression.replace("(...", f"({operands}", 1)
            for name in names.split():
                rows[name] = (name, init, call, full.replace("F.*", f"F.{_function_of(name)}"))
    return rows


def _function_of(name: str) -> str:
    """``LogicalAnd`` is ``logical_and``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def functions_of(expression: str) -> list[str]:
    """Returns the operator functions that a row's expression calls.

    Args:
        expression: The last column of a row.
    """
    return re.findall(r"\bF\.(\w+)", expression)


def build_class(row: Iterable[str], module: str, scope: dict[str, object]) -> type[Primitive]:
    """Builds the class of one row.

    Args:
        row: Name, constructor parameters, call parameters and expression.
        module: Module that shows the class.
        scope: Names the expression and the defaults may use, besides ``F`` and the dtypes.
    """
    name, init, call, expression = row
    init_text, call_text = (f"self{', ' if p else ''}{p}" for p in (init, call))
    space = {"F": F, **vars(dtypes), **scope}
    _define(f"def __init__({init_text}): ...", space)
    parameters = list(inspect.signature(space["__init__"]).parameters.values())[1:]
    kinds = {p.name: _kind_of(p) for p in parameters}
    optional = frozenset(p.name for p in parameters if p.default is None)
    space |= {"_configure": functools.partial(_configure, name, kinds, optional)}
    space["__name__"] = __name__
    ahead = {p: STORED[k][1] for p, k in kinds.items() if k in STORED}
    loads = "".join(
        f"    {p} = self.{p}{'[2:]' if ahead.get(p) else ''}\n"
        for p in kinds if re.search(rf"\b{p}\b", expression)
    )  # fmt: skip
    _define(f"def __call__({call_text}): ...", space)
    signature = inspect.signature(space["__call__"])
    taken, check = _counted(signature, call_text)
    space |= {"_absent": _ABSENT, "_miscount": functools.partial(_miscount, name, signature)}
    _define(
        f"def __init__({init_text}):\n"
        f"    _configure(self, dict({', '.join(f'{p}={p}' for p in kinds)}))\n"
        f"def __call__({taken}):\n{check}{loads}    return {expression}\n",
        space,
    )
    space["__call__"].__signature__ = signature
    methods: dict[str, Any] = {"__module__": module, "__doc__": _doc(row, space)}
    for method in ("__init__", "__call__"):
        space[method].__qualname__ = f"{name}.{method}"
        space[method].__annotations__ = {}
        methods[method] = space[method]
    guard(methods["__call__"], f"ops.{name}")
    methods["__init__"].__doc__ = "Configures the operator."
    methods["__call__"].__doc__ = f"Computes ``{expression.replace('F.', 'ops.')}``."
    return type(name, (Primitive,), methods)


#: What an operand that was not given is, until the call says how many it takes.
_ABSENT = object()


def _counted(signature: inspect.Signature, parameters: str) -> tuple[str, str]:
    """Returns the parameters of a call that takes any number of operands, and its first lines.

    They count the operands: Python's own TypeError would not be the error that MindSpore raises.

    Args:
        signature: What the call takes, with ``self``.
        parameters: The same as text.
    """
    kinds = {p.kind for p in signature.parameters.values()}
    needed = [n for n, p in signature.parameters.items() if p.default is p.empty][1:]
    if kinds != {inspect.Parameter.POSITIONAL_OR_KEYWORD}:
        return parameters, ""
    parsed = ast.parse(f"lambda {parameters}: 0", mode="eval").body
    assert isinstance(parsed, ast.Lambda)
    arguments = parsed.args
    absent = [ast.Name("_absent") for _ in needed]
    arguments.defaults = [*absent, *arguments.defaults]
    arguments.vararg = ast.arg("more")
    wrong = " or ".join(["more", *(f"{n} is _absent" for n in needed)])
    return ast.unparse(arguments), f"    if {wrong}: _miscount(more, {', '.join(needed)})\n"


def _miscount(
    name: str, signature: inspect.Signature, more: tuple[object, ...], *needed: object
) -> None:
    """Raises the error of a wrong number of operands.

    MindSpore's is one of three by operator: its classes with a Python signature raise a TypeError,
    the others what their inference or their list of operands says.
    """
    operands = list(signature.parameters.values())[1:]
    least, most = len(needed), len(operands)
    count = str(most) if least == most else f"{least} to {most}"
    takes = f"takes {count} operand{'s' if most != 1 else ''}"
    if most:
        takes += f" ({', '.join(o.name for o in operands)})"
    missing = [o.name for o, value in zip(operands, needed) if value is _ABSENT]
    wrong = f"without {' and '.join(missing)}" if missing else f"not {most + len(more)}"
    raise either(DTypeError, ShapeError)(f"{takes}, {wrong}", op=f"ops.{name}")


def _define(source: str, space: dict[str, object]) -> None:
    """Runs a definition as code of this file, so that errors name the user's line, not this one."""
    exec(compile(source, __file__, "exec"), space)


def _configure(
    name: str, kinds: Mapping[str, object], optional: frozenset[str], self: Primitive,
    values: Mapping[str, object],
) -> None:  # fmt: skip
    Primitive.__init__(self, name)
    if "seed" in values:
        setattr(self, "stream", _stream_of(values["seed"], values.get("seed2", 0)))  # noqa: B010
    for key, value in values.items():
        if value is not None or key not in optional:
            value = _checked(name, key, kinds[key], value)
        self.attrs[key] = value
        setattr(self, key, value)


def _stream_of(*seeds: object) -> Generator | None:
    """Returns where an operator with seeds draws from; without any, it is the global stream."""
    known = [s for s in seeds if isinstance(s, int)]
    if not any(s > 0 for s in known):
        return None
    return Generator(functools.reduce(lambda a, b: (a * 0x9E3779B1 + b) % 2**31, known))


def _doc(row: Iterable[str], space: Mapping[str, object]) -> str:
    name, init, call, expression = row
    shown = re.sub(r"\bF\.", "ops.", expression)
    text = f"Class form of ``{shown}``.\n\n``{name}({init})({call})`` computes ``{shown}``.\n"
    for function in dict.fromkeys(functions_of(expression)):
        doc = inspect.getdoc(getattr(F, function, None)) or ""
        text += f"\n:func:`tvmgraph.ops.{function}`: {doc.split(chr(10) + chr(10))[0]}\n"
    return text


_guard_module(globals(), "ops")
