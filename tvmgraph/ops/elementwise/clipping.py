"""Clipping of gradients by norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, user_source

__all__ = ["all_finite", "clip_by_global_norm", "clip_by_norm"]


def _list(op: str, name: str, value: Any) -> list[Tensor]:
    items = [value] if isinstance(value, Tensor) else value
    if not isinstance(items, (tuple, list)) or not all(isinstance(v, Tensor) for v in items):
        raise DTypeError(
            f"{name} must be a Tensor or a tuple or list of Tensors", op=f"ops.{op}",
            got=f"{name}: {type(value).__name__}", at=user_source(),
        )  # fmt: skip
    if not items:
        raise ArgumentError(f"{name} must not be empty", op=f"ops.{op}", at=user_source())
    return list(items)


def _like(value: Any, items: list[Tensor]) -> Any:
    if isinstance(value, Tensor):
        return items[0]
    return tuple(items) if isinstance(value, tuple) else items


def _sum(parts: Sequence[Tensor]) -> Tensor:
    total = parts[0]
    for p in parts[1:]:
        total = total + p
    return total


def clip_by_global_norm(x: Any, clip_norm: float = 1.0, use_norm: None = None) -> Any:
    r"""Scales tensors together so that their common norm is at most ``clip_norm``:
    :math:`x_i \cdot c / \max(\sqrt{\sum_j \|x_j\|^2}, c)`.

    Args:
        x: Tuple or list of float tensors of any shapes.
        clip_norm: :math:`c`, positive.
        use_norm: Must be None.

    Returns:
        The scaled tensors, in a tuple or list as given.

    Raises:
        DTypeError: if ``x`` is no sequence of tensors.
        ArgumentError: if ``clip_norm`` is not positive or ``use_norm`` is given.

    Example:
        >>> ops.clip_by_global_norm((Tensor([3.0]), Tensor([4.0])), 1.0)[0].shape
        (1,)
    """
    op = "clip_by_global_norm"
    if use_norm is not None:
        raise ArgumentError("use_norm must be None", op=f"ops.{op}", at=user_source())
    if not clip_norm > 0:
        raise ArgumentError(f"clip_norm must be positive, not {clip_norm}", op=f"ops.{op}",
                            at=user_source())  # fmt: skip
    items = _list(op, "x", x)
    total = _sum([F.sum(F.square(F.cast(t, dtypes.float32))) for t in items])
    factor = clip_norm / F.maximum(F.sqrt(total), float(clip_norm))
    return _like(x, [F.cast(t * factor, t.dtype) for t in items])


def clip_by_norm(
    x: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Any:
    r"""Scales tensors together so that their common p-norm is at most ``max_norm``:
    :math:`x_i \cdot \min(1, m / (\|x\|_p + 10^{-6}))`.

    Args:
        x: Tensor, or tuple or list of float tensors of any shapes.
        max_norm: :math:`m`.
        norm_type: :math:`p`; ``inf`` for the largest magnitude.
        error_if_nonfinite: Whether a norm that is infinite or NaN is an error; eager code only.

    Returns:
        The scaled tensors, in the structure given.

    Raises:
        DTypeError: if ``x`` holds something else than tensors.
        ArgumentError: if the norm is not finite and ``error_if_nonfinite`` is set.

    Example:
        >>> ops.clip_by_norm(Tensor([3.0, 4.0]), 5.0).shape
        (2,)
    """
    items = _list("clip_by_norm", "x", x)
    floats = [F.abs(F.cast(t, dtypes.float32)) for t in items]
    if norm_type == float("inf"):
        norm = F.amax(F.stack([F.amax(t) for t in floats]))
    else:
        norm = F.pow(_sum([F.sum(F.pow(t, norm_type)) for t in floats]), 1.0 / norm_type)
    if error_if_nonfinite and not bool(F.isfinite(norm)):
        raise ArgumentError("the norm is not finite", op="ops.clip_by_norm", at=user_source(),
                            fix="pass error_if_nonfinite=False to scale anyway")  # fmt: skip
    factor = F.minimum(max_norm / (norm + 1e-6), 1.0)
    scaled = [t * factor for t in items]
    return _like(x, [F.cast(y, t.dtype) if t.dtype.is_float else y for t, y in zip(items, scaled)])


def all_finite(inputs: Any) -> Tensor:
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
