"""Helpers of the reduction, sorting and indexing rows and of their public functions."""

from __future__ import annotations

from typing import Any, NoReturn

from tvmgraph.core import rules
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.errors import DTypeError, TvmgraphError, user_source


def fail(
    kind: type[TvmgraphError], name: str, rule: str, got: Any, fix: str | None = None
) -> NoReturn:
    """Raises ``kind`` with the four lines of every error message."""
    raise kind(rule, op=f"ops.{name}", got=str(got), at=user_source(), fix=fix)


def require_tensor(name: str, x: Any, argument: str = "input") -> Tensor:
    """Returns ``x``.

    Raises:
        DTypeError: if it is not a Tensor.
    """
    if not isinstance(x, Tensor):
        fail(
            DTypeError, name, f"argument {argument!r} must be a Tensor, not {type(x).__name__}",
            f"{argument}={x!r:.60}", "wrap it in Tensor(...)",
        )  # fmt: skip
    return x


_ALL = tuple(tuple(range(n)) for n in range(8))  # by number of axes


def resolve_axes(name: str, x: Any, axis: Any, argument: str = "axis") -> tuple[int, ...]:
    """Returns ``axis`` (None and ``()`` mean all) as sorted non-negative axes of ``x``."""
    require_tensor(name, x)
    ndim = len(x.type.shape)
    if axis is None:
        return _ALL[ndim] if ndim < len(_ALL) else tuple(range(ndim))
    if axis.__class__ is int and 0 <= axis < ndim:
        return (axis,)
    try:
        return rules.normalize_axes(axis, ndim)
    except TvmgraphError as e:
        got = f"input={x.type}, {argument}={axis!r}"
        raise e.locate(f"ops.{name}", got, user_source()) from None


def resolve_axis(name: str, x: Any, axis: Any, argument: str = "axis") -> int:
    """Returns ``axis`` as a non-negative axis of ``x`` (0 when ``x`` is 0-d)."""
    require_tensor(name, x)
    try:
        return rules.normalize_axis(axis, x.ndim, argument)
    except TvmgraphError as e:
        got = f"input={x.type}, {argument}={axis!r}"
        raise e.locate(f"ops.{name}", got, user_source()) from None


def lower_full(R: Any, x: Any, t: TensorType, value: Any = 0) -> Any:
    """Emits a tensor of type ``t`` filled with ``value``.

    It takes ``x``, any tensor at hand, as an operand that it does not read: TVM would otherwise
    fold it to a constant, and cannot store empty ones. ``relax.op.full`` also rejects NaN.
    """

    def full(_: Any) -> Any:
        return R.te.compute(
            R.shape(t.shape), lambda *i: R.tir.const(value, t.dtype.name), name="full"
        )

    return R.emit_te(full, x)
