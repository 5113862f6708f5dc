"""Whether gradients are finite."""

from __future__ import annotations

from tvmgraph.core.arguments import is_sequence
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, reject

__all__ = ["all_finite"]


def _list(op: str, name: str, value: object) -> list[Tensor]:
    given = [value] if isinstance(value, Tensor) else value
    items = [v for v in given if isinstance(v, Tensor)] if is_sequence(given) else []
    if not is_sequence(given) or len(items) < len(given):
        reject(DTypeError, f"ops.{op}", f"{name} must be a Tensor or a tuple or list of Tensors",
               f"{name}: {type(value).__name__}")  # fmt: skip
    if not items:
        raise ArgumentError(f"{name} must not be empty", op=f"ops.{op}")
    return items


def all_finite(inputs: object) -> Tensor:
    """Whether no element of any tensor is infinite or NaN.

    Args:
        inputs: Tensor, or tuple or list of tensors of any shapes.

    Returns:
        Tensor of bool, 0-d.

    Raises:
        DTypeError: if ``inputs`` holds something else than tensors.

    Example:
        >>> bool(ops.all_finite((Tensor([1.0]), Tensor([float("inf")]))))
        False
    """
    items = _list("all_finite", "inputs", inputs)
    found = F.all(F.isfinite(items[0]))
    for t in items[1:]:
        found = F.logical_and(found, F.all(F.isfinite(t)))
    return found
