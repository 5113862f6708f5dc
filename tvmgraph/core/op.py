"""The operator row, the table of all rows, and the decorator that adds one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvmgraph.core import kinds
from tvmgraph.core.types import TensorType
from tvmgraph.errors import GraphError, NotFoundError


class Reason(str):
    """The written reason why a column of a row is missing."""


@dataclass(frozen=True)
class Sample:
    """Arguments on which the derived checks run one row.

    Attributes:
        shapes: Shape of every tensor argument (or a NumPy array, taken as it is).
        attrs: Attributes of the call.
        dtype: dtype of the generated arrays; a tuple gives one per argument.
        low: Smallest generated value (inclusive).
        high: Largest generated value (exclusive for integers).
        raises: The exception class this sample must raise, or ``None``.
        grad: Whether finite differences are checked on it.
        rtol: Relative tolerance of compiled against eager, ``None`` for the dtype's default.
    """

    shapes: tuple[Any, ...]
    attrs: dict[str, Any]
    dtype: str | tuple[str, ...] = "float32"
    low: float = -2.0
    high: float = 2.0
    raises: type[Exception] | None = None
    grad: bool = True
    rtol: float | None = None


def sample(
    *shapes: Any,
    attrs: dict[str, Any] | None = None,
    dtype: str | tuple[str, ...] = "float32",
    low: float = -2.0,
    high: float = 2.0,
    raises: type[Exception] | None = None,
    grad: bool = True,
    rtol: float | None = None,
    **more_attrs: Any,
) -> Sample:
    """Builds a :class:`Sample`.

    Every other keyword is an attribute of the call; attributes whose names clash with the
    sample's own (such as ``dtype``) go into ``attrs``.
    """
    return Sample(shapes, (attrs or {}) | more_attrs, dtype, low, high, raises, grad, rtol)


InferRule = Callable[..., TensorType | tuple[TensorType, ...]]
Column = Any  # a callable, a name, or a Reason


@dataclass(eq=False)
class Op:
    """One row of the table; every room of the project interprets it.

    Attributes:
        name: Unique name, the key of the table.
        infer: ``(*TensorType, **attrs) -> TensorType | tuple`` or raises a shape or dtype error.
        eager: NumPy implementation ``(*ndarray, **attrs) -> ndarray | tuple``.
        lower: A ``relax.op`` name, or ``(R, *expr, **attrs) -> expr | tuple``.
        vjp: ``(g, y, *inputs, **attrs) -> tuple`` of input cotangents (``None`` where there is
            none); with several outputs ``g`` and ``y`` are tuples. It may use any operator.
        onnx: An ONNX op_type, or ``(O, *value, **attrs) -> value | tuple``.
        samples: Inputs of the derived checks.
        promote: How mixed dtypes are unified before ``infer`` (see :mod:`.promotion`).
        variadic: Whether the tensors arrive as ``*args``.
        tensors: Names of the tensor arguments.
        attrs: Names of the attributes, in order.
        kinds: What the attributes must be, by name, where their annotations say it.
        regions: Names of the sub-graphs of a control-flow row; every column gets them as keywords.
        multi: Whether the operator always returns a tuple.
        fn: The public function of the row.
        module: Module that defines it.
    """

    name: str
    infer: InferRule
    eager: Callable[..., Any]
    lower: Column
    vjp: Column
    onnx: Column
    samples: Sequence[Sample]
    promote: str | None
    tensors: tuple[str, ...]
    attrs: tuple[str, ...]
    variadic: bool
    module: str
    doc: str
    multi: bool = False
    regions: tuple[str, ...] = ()
    fn: Callable[..., Any] = field(init=False, repr=False)
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    kinds: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"Op({self.name})"

    def __reduce__(self) -> tuple[object, ...]:
        return (get_op, (self.name,))


OPS: dict[str, Op] = {}
CUSTOM: dict[str, Op] = {}  # operators that users made: no rows of the table, but found by name


def get_op(name: str) -> Op:
    """Returns the row called ``name``.

    Raises:
        NotFoundError: if the table has no such row.
    """
    _load_table()
    found = OPS.get(name) or CUSTOM.get(name)
    if found is None:
        raise NotFoundError(f"there is no operator {name!r} in the table")
    return found


def _load_table() -> None:
    import tvmgraph.ops  # noqa: F401  (importing the package fills the table)


class OpNamespace:
    """Resolves operator functions by name at call time, so that rooms need no import cycle.

    ``F.matmul`` is the public function ``tvmgraph.ops.matmul``; rows may use it in their VJPs.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        import tvmgraph.ops as ops

        found = getattr(ops, name, None)
        if found is None and name in OPS:
            found = OPS[name].fn
        if found is None:
            raise NotFoundError(f"there is no operator function {name!r}")
        setattr(self, name, found)
        return found


F: Any = OpNamespace()


def _split_signature(
    function: Callable[..., Any],
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], bool, inspect.Signature]:
    signature = inspect.signature(function)
    tensors: list[str] = []
    attrs: list[str] = []
    regions: list[str] = []
    variadic = False
    for p in signature.parameters.values():
        if "Tensor" in str(p.annotation):
            tensors.append(p.name)
            variadic = variadic or p.kind is p.VAR_POSITIONAL
        else:
            (regions if p.annotation == "Graph" else attrs).append(p.name)
    return tuple(tensors), tuple(attrs), tuple(regions), variadic, signature


def _kinds_of(attrs: tuple[str, ...], signature: inspect.Signature) -> dict[str, tuple[str, ...]]:
    found = {}
    for name in attrs:
        p = signature.parameters[name]
        words = kinds.words(p.annotation)
        words = words if p.default is not None else (*words, "None")
        if kinds.wrong_classes(words):
            found[name] = words
    return found


def _call_source(name: str, op: Op, signature: inspect.Signature) -> str:
    """Source of the public function: bind the signature once, then go to the dispatch point."""
    params = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    header = str(signature.replace(parameters=params, return_annotation=signature.empty))
    tensors = op.tensors[0] if op.variadic else "(" + "".join(t + ", " for t in op.tensors) + ")"
    names = op.attrs + op.regions
    attrs = "{" + ", ".join(f"{a!r}: {a}" for a in names) + "}" if names else "_no_attrs"
    return (
        f"def {name}{header}:\n try:\n  return _apply(_op, {tensors}, {attrs})\n"
        f" except Exception as _error:\n  raise _explained(_error)\n"
    )


def primitive(
    *,
    infer: InferRule,
    eager: Callable[..., Any],
    lower: Column,
    vjp: Column,
    onnx: Column,
    samples: Sequence[Sample],
    promote: str | None = None,
    multi: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds a row to the table; the decorated function gives its signature and documentation.

    Parameters annotated ``Tensor`` are inputs, ``Graph`` sub-graphs, all others are attributes
    (hashable, keyword or positional). The body of the decorated function is never executed.

    Raises:
        GraphError: if the name is taken or a missing column carries no written reason.
    """

    def add_row(function: Callable[..., Any]) -> Callable[..., Any]:
        from tvmgraph.core.dispatch import apply
        from tvmgraph.core.explained import explained, know

        name = function.__name__
        if name in OPS:
            raise GraphError(f"operator {name!r} is defined twice")
        for column, value in (("lower", lower), ("vjp", vjp), ("onnx", onnx)):
            if value is None:
                raise GraphError(f"operator {name!r}: column {column!r} needs a written reason")
        tensors, attrs, regions, variadic, signature = _split_signature(function)
        # infinities and NaN are results like any other, as in compiled code: no NumPy warnings
        quiet = np.errstate(all="ignore")(eager)
        op = Op(
            name, infer, quiet, lower, vjp, onnx, samples, promote, tensors, attrs, variadic,
            function.__module__, function.__doc__ or "", multi, regions,
        )  # fmt: skip
        op.kinds = _kinds_of(attrs, signature)
        scope: dict[str, Any] = {
            "_apply": apply, "_explained": explained, "_op": op, "_no_attrs": {},
            "__name__": __name__,
        }  # fmt: skip
        source = _call_source(name, op, signature)
        exec(compile(source, function.__code__.co_filename, "exec"), scope)
        generated = scope[name]
        know(generated, f"ops.{name}")
        generated.__doc__ = function.__doc__
        generated.__module__ = function.__module__
        generated.__annotations__ = function.__annotations__
        generated.op = op
        op.fn = generated
        OPS[name] = op
        return generated

    return add_row
