"""Derivatives of rows in eager code: fused where several operators follow each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tvmgraph import hooks
from tvmgraph.capture.replay import replay
from tvmgraph.core.costly import LARGE
from tvmgraph.core.fusible import may_fuse
from tvmgraph.core.op import Op, Reason
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import TvmgraphError
from tvmgraph.graph import Graph
from tvmgraph.graph.simplify import dce

Cotangents = Sequence[Tensor | None]

Tensors = tuple[Tensor | None, ...]
_LIMIT = 4096  # derivatives remembered
_known: dict[tuple[object, ...], _Derivative] = {}


def derivative(
    op: Op, attrs: dict[str, object], cotangents: Tensors,
    results: tuple[Tensor, ...], inputs: tuple[Tensor, ...], wanted: tuple[bool, ...] | None = None,
) -> Cotangents:  # fmt: skip
    """Applies the VJP of a row.

    Args:
        op: The row, which has one.
        attrs: Attributes of the call.
        cotangents: One per result; ``None`` only for rows that have regions or keep a result.
        results: What the call returned.
        inputs: Its operands.
        wanted: Which of them need a cotangent; by default all.

    Returns:
        One cotangent per operand, ``None`` where there is none; where none is wanted, maybe.
    """
    tensors = (*cotangents, *results, *inputs)
    if op.regions or not may_fuse() or sum([t.size for t in inputs]) < LARGE:
        return _by_rule(op, attrs, cotangents, results, inputs)
    types = tuple([None if t is None else t.aval for t in tensors])
    key = op, tuple(attrs.values()), types, wanted
    found = _known.get(key)
    if found is None:
        if len(_known) >= _LIMIT:
            _known.clear()
        found = _known[key] = _Derivative(op, attrs, len(results), wanted)
    return found(tensors)


def _by_rule(
    op: Op, attrs: dict[str, object], cotangents: Tensors, results: Tensors, inputs: Tensors
) -> Cotangents:  # fmt: skip
    assert not isinstance(op.vjp, Reason)
    if op.multi:
        return op.vjp(cotangents, results, *inputs, **attrs)
    return op.vjp(cotangents[0], results[0], *inputs, **attrs)


class _Derivative:
    """The derivative of one row for operands of some types."""

    def __init__(
        self, op: Op, attrs: dict[str, object], results: int, wanted: tuple[bool, ...] | None
    ) -> None:
        self._op, self._attrs, self._results, self._wanted = op, attrs, results, wanted
        self._uses = 0
        self._fused: Callable[[Tensors], Sequence[Tensor]] | None = None
        self._indices: list[int] = []  # of the operands that have a cotangent
        self._operands = 0

    def __call__(self, tensors: Tensors) -> Cotangents:
        self._uses += 1
        if self._uses == 2:  # one that is used once is not worth being looked at
            self._fused = self._fuse(tensors)
        if self._fused is None:
            return self._plain(tensors)
        found: list[Tensor | None] = [None] * self._operands
        for i, g in zip(self._indices, self._fused(tensors)):
            found[i] = g
        return found

    def _plain(self, tensors: Tensors) -> Cotangents:
        n = self._results
        cotangents, results, inputs = tensors[:n], tensors[n : 2 * n], tensors[2 * n :]
        return _by_rule(self._op, self._attrs, cotangents, results, inputs)

    def _present(self, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        found = self._plain(tensors)
        self._operands = len(found)
        wanted = self._wanted or [True] * len(found)
        present = {i: g for i, g in enumerate(found) if g is not None and wanted[i]}
        self._indices = list(present)
        return tuple(present.values())

    def _fuse(self, tensors: Tensors) -> Callable[[Tensors], Sequence[Tensor]] | None:
        """Returns it fused if one of its operators computes on the result of another.

        Else it is what the wanted cotangents take, where the rule computes more.
        """

        def rule(*given: Tensor | None) -> tuple[Tensor, ...]:
            return self._present(*given)

        rule.__name__ = f"{self._op.name}_vjp"
        fusion = hooks.eager_fusion(rule, tensors)
        try:
            graph = fusion.graph()
        except (TvmgraphError, AssertionError):  # it looks at elements
            return None
        least = dce(graph)
        if len(least.nodes) < len(graph.nodes):
            fusion = hooks.eager_fusion(replaying(least), tensors)
            return fusion if fusion.is_chain() else partial(_apply, least)
        return fusion if fusion.is_chain() else None


def replaying(graph: Graph) -> Callable[..., tuple[Tensor, ...]]:
    """Returns a function, of the graph's name, that applies its operators.

    Args:
        graph: Its parameters are the arguments of the function that are not ``None``.
    """

    def function(*tensors: Tensor | None) -> tuple[Tensor, ...]:
        return _apply(graph, tensors)

    function.__name__ = graph.name
    return function


def _apply(graph: Graph, tensors: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    return tuple(replay(graph, [t for t in tensors if t is not None]))
