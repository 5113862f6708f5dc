"""The sections of docstrings that all elementwise rows share."""

from __future__ import annotations

import inspect
import re

from tvmgraph.core.traits import Pattern, Traits

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
    floats = promote in ("common_float", "scaled_float")
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
