"""How rows of the table act on a whole batch: the rules of ``vmap``, by the row's trait.

A rule is ``(op, tensors, batched, attrs, size) -> results or None``; ``batched`` tells which
tensors carry the batch as their first axis, and None asks for the general way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvmgraph.core.dispatch import apply
from tvmgraph.core.op import F, Op
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Batch, Pattern

Rule = Callable[[Op, list[Tensor], list[bool], dict[str, Any], int], list[Tensor] | None]


def _apply(op: Op, args: list[Tensor], attrs: dict[str, Any]) -> list[Tensor]:
    result = apply(op, tuple(args), attrs)
    return list(result) if op.multi else [result]


def _aligned(args: list[Tensor], batched: list[bool], rank: int) -> list[Tensor]:
    """Inserts axes after the batch so that all elements have ``rank`` axes."""
    result = []
    for a, b in zip(args, batched):
        missing = rank - (a.ndim - 1)
        if b and missing:
            a = F.reshape(a, (a.shape[0], *(1,) * missing, *a.shape[1:]))
        result.append(a)
    return result


def _elementwise(
    op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, Any], size: int
) -> list[Tensor]:
    rank = max(a.ndim - b for a, b in zip(args, batched))
    return _apply(op, _aligned(args, batched, rank), attrs)


def _spread(args: list[Tensor], batched: list[bool], size: int) -> list[Tensor]:
    return [a if b else F.broadcast_to(a, (size, *a.shape)) for a, b in zip(args, batched)]


def _shifted(key: str, attrs: Mapping[str, object]) -> dict[str, Any] | None:
    value = attrs[key]
    if isinstance(value, int):
        return {**attrs, key: value + 1} if value >= 0 else None
    if isinstance(value, tuple) and all(isinstance(v, int) and v >= 0 for v in value):
        return {**attrs, key: tuple(v + 1 for v in value)}
    return None


def _matrices(
    op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, Any], size: int
) -> list[Tensor] | None:
    """A row that works on the last two axes and broadcasts those before."""
    ranks = [a.ndim - b for a, b in zip(args, batched)]
    if min(ranks) < 2:
        return None
    return _apply(op, _aligned(args, batched, max(ranks)), attrs)


def _sized(
    op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, Any], size: int
) -> list[Tensor]:
    """A row that is told the sizes of its result; those of a repeated operand align at the end."""
    sizes = attrs[op.traits.sized]
    if op.traits.pattern is Pattern.BROADCAST:
        args = _aligned(args, batched, len(sizes))
    return _apply(op, args, {op.traits.sized: (size, *sizes)})


def _permutation(
    op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, Any], size: int
) -> list[Tensor]:
    return _apply(op, args, {"dims": (0, *(d + 1 for d in attrs["dims"]))})


def _images(
    op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, Any], size: int
) -> list[Tensor] | None:
    """A row whose first axis is already a batch of images, with weights shared."""
    x = args[0]
    if not batched[0] or any(batched[1:]) or x.ndim < 3:
        return None
    merged = F.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
    results = _apply(op, [merged, *args[1:]], attrs)
    return [F.reshape(r, (*x.shape[:2], *r.shape[1:])) for r in results]


def _by_axis(
    op: Op, args: list[Tensor], batched: list[bool], attrs: Mapping[str, object], size: int
) -> list[Tensor] | None:
    """A row that names axes in an attribute and leaves all others alone."""
    if any(a.ndim == b for a, b in zip(args, batched)):
        return None  # a 0-d element has no axis to name
    moved = _shifted("axis" if "axis" in attrs else "dims", attrs)
    return None if moved is None else _apply(op, _spread(args, batched, size), moved)


_RULES: dict[Batch, Rule] = {
    Batch.ELEMENTWISE: _elementwise,
    Batch.MATRICES: _matrices,
    Batch.AXIS: _by_axis,
    Batch.PERMUTATION: _permutation,
    Batch.SIZED: _sized,
    Batch.IMAGES: _images,
}


def find_rule(op: Op) -> Rule | None:
    """Returns the rule of a row, or None where it is applied element by element.

    Args:
        op: The row, whose traits say how it is batched.
    """
    return _RULES[op.traits.batch] if op.traits.batch else None
