"""The reductions kernels know how to reorder: what combines, and what to start from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tvm import tirx

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.program import Stage
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, as_dtype

_Combined: TypeAlias = tirx.Add | tirx.Mul | tirx.Max | tirx.Min
_COMBINE: dict[type[_Combined], Callable[[Expr, Expr], Expr]] = {
    tirx.Add: lambda a, b: a + b,
    tirx.Mul: lambda a, b: a * b,
    tirx.Max: tirx.max,
    tirx.Min: tirx.min,
}
#: Sums of these are kept in float32: a float16 sum of ones stops growing at 2048.
_HALF_TYPES = ("float16", "bfloat16")


@dataclass(frozen=True)
class Reducer:
    """``buffer = combine(buffer, term)``.

    Attributes:
        combine: Combines two values or two vectors.
        term: What every iteration contributes.
        identity: What an accumulator starts from.
        start: Combined into the result once at the end, or None.
        dtype: Type of the accumulators.
    """

    combine: Callable[[Expr, Expr], Expr]
    term: Expr
    identity: Expr
    start: Expr | None
    dtype: str

    def contribution(self, term: Expr) -> Expr:
        """A term in the accumulator's type.

        Args:
            term: What an iteration adds, of any type.
        """
        return as_dtype(term, self.dtype)


def accumulator_dtype(dtype: str) -> str:
    """The type in which elements of ``dtype`` are summed.

    Args:
        dtype: TVM's name of the element type.
    """
    return "float32" if dtype in _HALF_TYPES else dtype


def match_reducer(stage: Stage) -> Reducer | None:
    """The reducer of a stage that sums, multiplies or takes a maximum or minimum.

    Args:
        stage: A loop nest with ``init`` and one value.

    Returns:
        The function that combines, the term per iteration, what to start from and the type to
        accumulate in; None for sums of bool and for anything else.
    """
    if stage.inits is None or len(stage.values) != 1:
        return None
    value, init = stage.value, stage.inits[0]
    if not isinstance(value, _Combined) or not isinstance(init, tirx.FloatImm | tirx.IntImm):
        return None
    term = _other(stage, value)
    if term is None:
        return None
    dtype = str(stage.buffer.dtype)
    if dtype == "bool":
        return None
    if isinstance(value, (tirx.Max, tirx.Min)):
        return Reducer(_COMBINE[type(value)], term, init, None, dtype)
    wide = accumulator_dtype(dtype)
    neutral = 0 if isinstance(value, tirx.Add) else 1
    start = None if float(init.value) == neutral else tirx.const(init.value, wide)
    return Reducer(_COMBINE[type(value)], term, tirx.const(neutral, wide), start, wide)


def _other(stage: Stage, value: _Combined) -> Expr | None:
    """The operand that is not the accumulator, if exactly one is."""
    left, right = value.a, value.b
    is_own = [isinstance(e, Load) and e.source.same_as(stage.buffer) for e in (left, right)]
    if is_own == [True, False]:
        return right
    if is_own == [False, True]:
        return left
    return None


def horizontal(
    combine: Callable[[Expr, Expr], Expr], accumulators: Buffer, size: int, lanes: int, dtype: str
) -> Expr:
    """Combines ``size`` accumulators, in vectors of ``lanes``, to one value.

    Vectors are combined pairwise, then the halves of the last one; a power of two of lanes is
    expected. The shuffles stay in registers.

    Args:
        combine: An associative function of two values or vectors.
        accumulators: A flat buffer of at least ``size`` elements, which is overwritten.
        size: Accumulators in it, a multiple of ``lanes``.
        lanes: Lanes of a vector, a power of two.
        dtype: Their type.

    Returns:
        An expression of the one value.
    """
    count = size // lanes
    while count > 1:
        half = count // 2
        for position in range(half):
            here = emit.ramp(position * lanes, lanes)
            there = emit.ramp((position + count - half) * lanes, lanes)
            emit.store(accumulators, combine(accumulators[here], accumulators[there]), [here])
        count -= half
    source = accumulators
    while lanes > 1:
        vector = source[emit.ramp(0, lanes)]
        lanes //= 2
        halves = [_half(vector, offset, lanes) for offset in (0, lanes)]
        source = emit.stack(lanes, dtype)
        emit.store(source, combine(*halves), [emit.ramp(0, lanes)])
    return source[0]


def _half(vector: Expr, offset: int, lanes: int) -> Expr:
    return emit.shuffle([vector], range(offset, offset + lanes))
