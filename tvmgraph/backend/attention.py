"""Attention and its derivative as the kernels of every backend are asked for them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Self

from tvm import tirx

from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func, Index

_AXES = "BNSD"


@dataclass(frozen=True)
class Operand:
    """A tensor with its axes in any order.

    Attributes:
        buffer: The tensor.
        layout: The order.
        merged: Heads of one row each that are taken as the rows of one head.
    """

    buffer: Buffer
    layout: str
    merged: int = 1

    def extent(self, axis: str) -> Index:
        """Extent of the axis B, N, S or D, an expression where it is symbolic.

        Args:
            axis: ``"B"``, ``"N"``, ``"S"`` or ``"D"``: batch, heads, sequence, head size.
        """
        extent = self.buffer.shape[self.layout.index(axis)]
        if not isinstance(extent, tirx.IntImm):
            return extent
        size = int(extent)
        if axis == "S":
            return size * self.merged
        return size // self.merged if axis == "N" else size

    def fixed(self, axis: str) -> int:
        """Extent of an axis that is never symbolic: N or D.

        Args:
            axis: ``"N"`` or ``"D"``.
        """
        extent = self.extent(axis)
        assert isinstance(extent, int)
        return extent

    def line(self, head: Expr, row: Expr) -> tuple[Expr, Expr]:
        """The head and the row of it as they are stored.

        Args:
            head: The head.
            row: The position in the sequence.
        """
        if self.merged == 1:
            return head, row
        return head * self.merged + row, tirx.IntImm("int64", 0)

    def at(self, batch: Expr, head: Expr, row: Expr, column: Expr) -> tuple[Expr, ...]:
        """Indices of an element.

        Args:
            batch: The number of the sequence.
            head: The head.
            row: The position in the sequence.
            column: The element of the head.
        """
        head, row = self.line(head, row)
        named = dict(zip(_AXES, (batch, head, row, column)))
        return tuple(named[axis] for axis in self.layout)


@dataclass(frozen=True)
class Problem:
    """What is computed, see ``ops.fused_attention``.

    Attributes:
        query: Queries.
        key: Keys.
        value: Values.
        out: Results.
        mask: What is added to the scores, or where they are replaced.
        scale: Factor of the scores.
        diagonal: Query i sees the keys up to i + ``diagonal``.
        fill: What replaces a score under a bool mask.
        statistics: Largest score and one over the sum of exponentials of every query, B N S 2.
    """

    query: Operand
    key: Operand
    value: Operand
    out: Operand
    mask: Buffer | None
    scale: float
    diagonal: int | None
    fill: float | None
    statistics: Buffer | None = None

    @classmethod
    def of(cls, func: Func, settings: str) -> Self:
        """Reads the parameters of a function.

        Args:
            func: Takes query, key, value, perhaps a mask, the result, and perhaps its statistics.
            settings: The attributes of ``ops.fused_attention`` as JSON, and whether there are
                ``statistics``.
        """
        said, buffers = json.loads(settings), list(func.params)
        statistics = buffers.pop() if said.get("statistics") else None
        operands = zip((*buffers[:3], buffers[-1]), said["layouts"])
        query, key, value, out = (Operand(*pair) for pair in operands)
        mask = buffers[3] if len(buffers) == 5 else None
        return cls(
            query, key, value, out, mask, said["scale"], said["diagonal"], said["fill"], statistics
        )

    @property
    def queries(self) -> Index:
        """Queries of a head."""
        return self.query.extent("S")

    @property
    def keys(self) -> Index:
        """Keys of a head."""
        return self.key.extent("S")

    def with_merged_heads(self) -> Problem:
        """The same with the heads of a single query that share keys as queries of one head."""
        sharing, rows = self.query.fixed("N") // self.key.fixed("N"), self.query.extent("S")
        if sharing == 1 or not isinstance(rows, int) or rows > 1:
            return self
        query, out = (replace(operand, merged=sharing) for operand in (self.query, self.out))
        return replace(self, query=query, out=out)

    @property
    def dtype(self) -> str:
        """Type of the sums."""
        return "float64" if str(self.query.buffer.dtype) == "float64" else "float32"

    def masked(self, score: Expr, batch: Expr, head: Expr, row: Expr, key: Expr) -> Expr:
        """A scaled score under the mask; the diagonal is another matter.

        Args:
            score: The scaled product of query and key.
            batch: The number of the sequence.
            head: The head of the query.
            row: The position of the query.
            key: The position of the key.
        """
        if self.mask is None:
            return score
        value = self.mask_at(batch, head, row, key)
        if self.fill is None:
            return score + tirx.Cast(self.dtype, value)
        return tirx.Select(value, tirx.const(self.fill, self.dtype), score)

    def mask_at(self, batch: Expr, head: Expr, row: Expr, key: Expr) -> Expr:
        """The element of the mask that belongs to a query and a key, both of which exist.

        Args:
            batch: The number of the sequence.
            head: The head of the query.
            row: The position of the query.
            key: The position of the key.
        """
        assert self.mask is not None
        index = (batch, *self.query.line(head, row), key)
        return self.mask[
            tuple(
                tirx.IntImm("int64", 0) if isinstance(e, tirx.IntImm) and int(e) == 1 else i
                for i, e in zip(index, self.mask.shape)
            )
        ]


@dataclass(frozen=True)
class Derivative:
    """The derivative of an attention.

    Attributes:
        problem: The attention, with its statistics.
        cotangent: Cotangent of its result.
        results: Cotangents of query, key and value.
    """

    problem: Problem
    cotangent: Operand
    results: tuple[Operand, Operand, Operand]

    @classmethod
    def of(cls, func: Func, settings: str) -> Self:
        """Reads the parameters of a function.

        Args:
            func: Takes query, key, value, perhaps a mask, the result, its statistics and its
                cotangent, and gives the cotangents of query, key and value.
            settings: The attributes of ``ops.attention_gradient`` as JSON.
        """
        said, buffers = json.loads(settings), list(func.params)
        mask = buffers.pop(3) if len(buffers) == 10 else None
        kept = buffers.pop(4)
        query, key, value, out, cotangent, *results = map(Operand, buffers, said["layouts"])
        problem = Problem(
            query, key, value, out, mask, said["scale"], said["diagonal"], said["fill"], kept
        )
        return cls(problem, cotangent, (results[0], results[1], results[2]))
