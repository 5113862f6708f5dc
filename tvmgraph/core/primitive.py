"""The decorator that adds a row to the table of operators."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from tvmgraph.core import kinds
from tvmgraph.core.columns import EagerColumn, InferColumn, LowerColumn, OnnxColumn, VjpColumn
from tvmgraph.core.dispatch import apply
from tvmgraph.core.explained import explained, know
from tvmgraph.core.op import OPS, Op, Reason, RegionColumn, Sample
from tvmgraph.core.traits import Pattern, Traits
from tvmgraph.errors import GraphError

#: What the function of a row returns.
Result = TypeVar("Result")
#: Decorates what NumPy computes: infinities and NaN are results, as they are in compiled code.
without_warnings = np.errstate(all="ignore")


class RowDecorator(Protocol):
    """Makes the public function of a row from the one that declares it.

    What a row takes, also numbers in the place of tensors, is looked at when it is called.
    """

    def __call__(self, function: Callable[..., Result], /) -> Callable[..., Result]:
        """Adds the row and returns its function."""
        ...


def _split_signature(
    function: Callable[..., object],
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
    found: dict[str, tuple[str, ...]] = {}
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
    infer: InferColumn,
    eager: EagerColumn,
    lower: LowerColumn | RegionColumn | str | Reason,
    vjp: VjpColumn | str | Reason,
    onnx: OnnxColumn | str | Reason,
    samples: Sequence[Sample],
    traits: Traits | None = None,
    promote: str | None = None,
    multi: bool = False,
    check_values: Callable[..., None] | None = None,
) -> RowDecorator:
    """Adds a row to the table; the decorated function gives its signature and documentation.

    Parameters annotated ``Tensor`` are inputs, ``Graph`` sub-graphs, all others are attributes
    (hashable, keyword or positional). The body of the decorated function is never executed.

    Args:
        infer: The type rule, see :class:`Op` for all columns.
        traits: What kind of operator it is; by default what the type rule brings.

    Raises:
        GraphError: if the name is taken, a missing column carries no written reason, or there are
            no traits.
    """

    def add_row(function: Callable[..., Result]) -> Callable[..., Result]:
        name = function.__name__
        if name in OPS:
            raise GraphError(f"operator {name!r} is defined twice")
        for column, value in (("lower", lower), ("vjp", vjp), ("onnx", onnx)):
            if value is None:
                raise GraphError(f"operator {name!r}: column {column!r} needs a written reason")
        known = traits or getattr(infer, "traits", None)
        if known is None:
            raise GraphError(f"operator {name!r}: its type rule brings no traits, so give traits=")
        tensors, attrs, regions, variadic, signature = _split_signature(function)
        moves = known.pattern in (Pattern.VIEW, Pattern.GATHER)
        quiet = eager if moves else without_warnings(eager)
        op = Op(
            name, infer, quiet, lower, vjp, onnx, samples, known, promote, tensors, attrs, variadic,
            function.__module__, function.__doc__ or "", multi, regions, check_values,
        )  # fmt: skip
        op.kinds = _kinds_of(attrs, signature)
        scope: dict[str, Any] = {
            "_apply": apply, "_explained": explained, "_op": op, "_no_attrs": {},
            "__name__": __name__,
        }  # fmt: skip
        source = _call_source(name, op, signature)
        exec(compile(source, function.__code__.co_filename, "exec"), scope)
        generated = scope[name]
        if not attrs:
            op.doc = completed(op.doc, tensors, promote, known)
        generated.__doc__ = op.doc
        generated.__module__ = function.__module__
        generated.__annotations__ = function.__annotations__
        know(generated, f"ops.{name}")
        generated.op = op
        op.fn = generated
        OPS[name] = op
        return generated

    return add_row


# ---- the sections of docstrings that all elementwise rows share ----------------------------------

_HEADS = ("Args", "Returns", "Raises")
_SECTION = re.compile(r"\n\n(?=(?:Args|Returns|Raises|Example|Note|Attributes):\n)")


def completed(doc: str, tensors: tuple[str, ...], promote: str | None, traits: Traits) -> str:
    """Returns the docstring of a row with the sections that it leaves to its kind.

    Args:
        doc: The docstring; a section that it has stays as it is.
        tensors: Names of the tensor arguments.
        promote: How mixed dtypes are unified.
        traits: The row's traits; only those of elementwise rows say enough.
    """
    text = inspect.cleandoc(doc)
    if traits.pattern is not Pattern.ELEMENTWISE or not text:
        return text
    summary, *found = _SECTION.split(text)
    by_head = {section.partition(":")[0]: section for section in found}
    shared = _of_one(tensors[0], promote) if len(tensors) == 1 else _of_two(tensors, promote)
    sections = [by_head.pop(head, shared.get(head)) for head in _HEADS]
    return "\n\n".join([summary, *filter(None, sections), *by_head.values()])


def _of_one(name: str, promote: str | None) -> dict[str, str]:
    computed = "; integers are computed in float32" if promote == "float" else ""
    return {
        "Args": f"Args:\n    {name}: Tensor of any shape{computed}.",
        "Returns": f"Returns:\n    Tensor of ``{name}``'s shape.",
    }


def _of_two(names: tuple[str, ...], promote: str | None) -> dict[str, str]:
    floats = promote in ("common_float", "first_float", "scaled_float")
    first = "Tensor or number" + ("; integers are computed in float32" if floats else "")
    others = "Tensor or number; the two shapes broadcast and the dtypes are promoted"
    lines = [f"    {name}: {others if i else first}." for i, name in enumerate(names)]
    kind = "Floating-point tensor of the broadcast shape"
    result = kind if floats else "Tensor of the broadcast shape and promoted dtype"
    return {
        "Args": "\n".join(["Args:", *lines]),
        "Returns": f"Returns:\n    {result}.",
        "Raises": "Raises:\n    ShapeError: if the shapes do not broadcast.",
    }
