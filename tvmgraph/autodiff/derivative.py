"""Derivatives of rows in eager code: one piece of machine code where several operators meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvmgraph import hooks
from tvmgraph.core.composed import in_pieces
from tvmgraph.core.costly import LARGE
from tvmgraph.core.op import Op, Reason
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import TvmgraphError

Cotangents = Sequence[Tensor | None]

_LIMIT = 4096  # derivatives remembered
_known: dict[Any, Any] = {}


def derivative(
    op: Op, attrs: dict[str, Any], cotangents: tuple[Tensor, ...], results: tuple[Tensor, ...],
    inputs: tuple[Tensor, ...],
) -> Cotangents:  # fmt: skip
    """Applies the VJP of a row.

    Args:
        op: The row, which has one.
        attrs: Attributes of the call.
        cotangents: One per result.
        results: What the call returned.
        inputs: Its operands.

    Returns:
        One cotangent per operand, ``None`` where there is none.
    """
    tensors = (*cotangents, *results, *inputs)
    if op.regions or not in_pieces() or sum([t.size for t in inputs]) < LARGE:
        return _by_rule(op, attrs, cotangents, results, inputs)
    key = op, tuple(attrs.values()), tuple([t.type for t in tensors])
    found = _known.get(key)
    if found is None:
        if len(_known) >= _LIMIT:
            _known.clear()
        found = _known[key] = _Derivative(op, attrs, len(results))
    return found(tensors)


def _by_rule(
    op: Op, attrs: dict[str, Any], cotangents: Any, results: Any, inputs: Any
) -> Cotangents:
    assert not isinstance(op.vjp, Reason)
    if op.multi:
        return op.vjp(cotangents, results, *inputs, **attrs)
    return op.vjp(cotangents[0], results[0], *inputs, **attrs)


class _Derivative:
    """The derivative of one row for operands of some types."""

    def __init__(self, op: Op, attrs: dict[str, Any], results: int) -> None:
        self._op, self._attrs, self._results = op, attrs, results
        self._uses = 0
        self._piece: Any = None
        self._places: list[int] = []  # of the operands that have a cotangent
        self._operands = 0

    def __call__(self, tensors: tuple[Tensor, ...]) -> Cotangents:
        self._uses += 1
        if self._uses == 2:  # one that is used once is not worth being looked at
            self._piece = self._chained(tensors)
        if self._piece is None:
            return self._plain(tensors)
        found: list[Tensor | None] = [None] * self._operands
        for i, g in zip(self._places, self._piece(tensors)):
            found[i] = g
        return found

    def _plain(self, tensors: tuple[Tensor, ...]) -> Cotangents:
        n = self._results
        parts = tensors[:n], tensors[n : 2 * n], tensors[2 * n :]
        return _by_rule(self._op, self._attrs, *parts)

    def _present(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        found = self._plain(tensors)
        self._operands = len(found)
        self._places = [i for i, g in enumerate(found) if g is not None]
        return tuple([g for g in found if g is not None])

    def _chained(self, tensors: tuple[Tensor, ...]) -> Any:
        """Returns it as a piece if one of its operators computes on the result of another."""

        def rule(*given: Tensor) -> tuple[Tensor, ...]:
            return self._present(*given)

        rule.__name__ = f"{self._op.name}_vjp"
        piece = hooks.eager_piece(rule, tensors)
        try:
            return piece if piece.is_chain() else None
        except (TvmgraphError, AssertionError):  # it looks at elements
            return None


__all__ = ["derivative"]
