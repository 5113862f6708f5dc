"""How rows of the table act on a whole batch: the rules of :func:`tvmgraph.autodiff.vmap`.

A rule is ``(op, tensors, batched, attrs, size) -> results or None``; ``batched`` tells which
tensors carry the batch as their first axis, and None asks for the general way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvmgraph.core.dispatch import apply
from tvmgraph.core.op import F, Op
from tvmgraph.core.tensor import Tensor

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


def _shifted(key: str, attrs: dict[str, Any]) -> dict[str, Any] | None:
    value = attrs[key]
    if isinstance(value, int):
        return {**attrs, key: value + 1} if value >= 0 else None
    if isinstance(value, tuple) and all(isinstance(v, int) and v >= 0 for v in value):
        return {**attrs, key: tuple(v + 1 for v in value)}
    return None


def _by_axis(key: str) -> Rule:
    """A row that names axes in the attribute ``key`` and leaves all others alone."""

    def rule(
        op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, Any], size: int
    ) -> list[Tensor] | None:
        if any(a.ndim == b for a, b in zip(args, batched)):
            return None  # a 0-d element has no axis to name
        moved = _shifted(key, attrs)
        return None if moved is None else _apply(op, _spread(args, batched, size), moved)

    return rule


def _matrices(
    op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, Any], size: int
) -> list[Tensor] | None:
    """A row that works on the last two axes and broadcasts those before."""
    ranks = [a.ndim - b for a, b in zip(args, batched)]
    if min(ranks) < 2:
        return None
    return _apply(op, _aligned(args, batched, max(ranks)), attrs)


def _reshape(
    op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, Any], size: int
) -> list[Tensor]:
    return _apply(op, args, {"shape": (size, *attrs["shape"])})


def _broadcast(
    op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, Any], size: int
) -> list[Tensor]:
    shape = attrs["shape"]
    return _apply(op, _aligned(args, batched, len(shape)), {"shape": (size, *shape)})


def _transpose(
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


_RULES: dict[str, Rule] = {
    "cast": _elementwise, "where": _elementwise, "gelu": _elementwise, "celu": _elementwise,
    "identity": _elementwise, "gradient_barrier": _elementwise,
    "matmul": _matrices, "inverse": _matrices, "cholesky": _matrices, "matrix_exp": _matrices,
    "det": _matrices, "tril": _matrices, "triu": _matrices,
    "reshape": _reshape, "broadcast_to": _broadcast, "transpose": _transpose,
    "convolution": _images, "max_pool": _images, "avg_pool": _images,
    "flip": _by_axis("dims"), "roll": _by_axis("dims"),
}  # fmt: skip
_RULES.update(
    dict.fromkeys(
        ("reduce_sum", "reduce_mean", "reduce_prod", "reduce_all", "reduce_any", "reduce_max",
         "reduce_min", "softmax", "log_softmax", "arg_extreme", "concat", "gather_along",
         "running_sum", "running_product", "running_logsumexp", "running_arg_extreme",
         "scatter_along", "arg_sort", "split_at"),
        _by_axis("axis"),
    )
)  # fmt: skip


def find_rule(op: Op) -> Rule | None:
    """Returns the rule of a row, or None where it is applied element by element."""
    if op.infer.__qualname__.startswith("elementwise."):
        return _elementwise
    return _RULES.get(op.name)
