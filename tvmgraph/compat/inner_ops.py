"""``ops.operations._inner_ops``: operators that MindSpore has for its own use and its tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvmgraph.compat.absent import not_found
from tvmgraph.compat.primitives.base import build_class, read_rows
from tvmgraph.core.arguments import AxisLike
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor

PATH = "tvmgraph.ops.operations._inner_ops"
ROWS = read_rows("inner")


class _Helpers:
    """Operators that are no single expression."""

    @staticmethod
    def clip_by_norm(x: Tensor, clip_norm: NumberLike, axis: AxisLike) -> Tensor:
        """Scales what is longer than ``clip_norm`` along the axes to that length."""
        length = F.sqrt(F.sum(x * x, axis, keepdim=True))
        return x * clip_norm / F.maximum(length, clip_norm)

    @staticmethod
    def flatten_concat(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Returns one tensor per dtype, with the elements of all tensors of that dtype."""
        flat = [F.reshape(t, (-1,)) for t in tensors]
        dtypes = dict.fromkeys(t.dtype for t in flat)
        return tuple(F.concat([t for t in flat if t.dtype == d]) for d in dtypes)

    @staticmethod
    def shift(x: Tensor, fill_value: object, periods: int, axis: int) -> Tensor:
        """Moves the elements along an axis and fills the places that became free."""
        count = min(abs(periods), x.shape[axis])
        kept = F.narrow(x, axis, count if periods < 0 else 0, x.shape[axis] - count)
        filled = F.full_like(F.narrow(x, axis, 0, count), fill_value)
        return F.concat((kept, filled) if periods < 0 else (filled, kept), axis)

    @staticmethod
    def copy_slices(
        x: object, value: object, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]
    ) -> Tensor:
        """Returns ``x`` with a slice of its own replaced by ``value``."""
        found = F.identity(x)
        found[tuple(map(slice, begin, end, strides))] = value
        return found


def __getattr__(name: str) -> Any:
    if name not in ROWS:
        raise not_found(PATH, name, ROWS)
    built = build_class(ROWS[name], PATH, {"H": _Helpers, "Tensor": Tensor})
    globals()[name] = built
    return built


def __dir__() -> list[str]:
    return sorted(ROWS)


__all__ = [*ROWS]  # pyright: ignore[reportUnsupportedDunderAll]
