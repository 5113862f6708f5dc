"""Evaluating the body of a stage for one vector of iterations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import group_extent
from tvmgraph.backend.loop_ir.program import Axis, Stage, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Var, dtype_of

Bound = dict[Var, Expr]


class Point:
    """The body of a stage, ready to be written inside of a loop over lanes.

    Values that the body names are kept in one register each. The registers are declared by the
    constructor, so it must be called outside of the loop over lanes.
    """

    def __init__(self, stage: Stage, lanes: int) -> None:
        self._stage = stage
        self._registers = [emit.stack(lanes, dtype_of(var)) for var, _ in stage.lets]

    def values(
        self, mapping: Mapping[Var, Expr], lane: Expr, rewrite: Callable[[Expr], Expr] | None = None
    ) -> list[Expr]:
        """Writes the named values and returns what the stage stores.

        Args:
            mapping: Values of the stage's axes.
            lane: The loop variable of the lanes.
            rewrite: Applied to every expression last, to redirect reads of intermediates.
        """
        bound = dict(mapping)

        def resolve(value: Expr) -> Expr:
            value = substitute(value, bound)
            return rewrite(value) if rewrite else value

        for register, (var, value) in zip(self._registers, self._stage.lets):
            emit.store(register, resolve(value), [lane])
            bound[var] = register[lane]
        return [resolve(value) for value in self._stage.values]

    def indices(self, mapping: Mapping[Var, Expr]) -> list[Expr]:
        """Where the stage stores.

        Args:
            mapping: Loop variable -> its value.
        """
        return [substitute(index, mapping) for index in self._stage.indices]


def bind_group(group: Sequence[Axis], value: Expr) -> Bound:
    """The axes of a merged loop, given its index.

    Args:
        group: The loops that the merged one stands for, outermost first.
        value: Its index.

    Returns:
        An index expression per loop variable.
    """
    indices = emit.unfuse(value, [axis.extent for axis in group])
    return {axis.var: index for axis, index in zip(group, indices)}


def nest(
    loops: Sequence[Sequence[Axis]], body: Callable[[Bound], None], bound: Bound | None = None
) -> None:
    """Serial loops over groups of axes around ``body(values of the axes)``.

    Args:
        loops: Groups of loops, outermost first; each group becomes one loop.
        body: Writes what they run; takes the indices by loop variable.
        bound: Indices of loops that are already open.
    """
    bound = bound or {}
    if not loops:
        body(bound)
        return
    with emit.serial(group_extent(loops[0])) as value:
        nest(loops[1:], body, bound | bind_group(loops[0], value))


def vectors(
    start: Expr, length: int, lanes: int, body: Callable[[Expr, int, int], None], unroll: int = 1
) -> None:
    """Cuts ``length`` iterations from ``start`` on into vectors.

    Args:
        start: The first index.
        length: How many.
        lanes: The widest vector; a shorter one takes the rest.
        body: Called with the first index, the number of lanes, and the position of the vector
            within an unrolled step.
        unroll: Vectors per step of the loop.
    """
    step = lanes * unroll
    full = length // step
    if full > 1:
        with emit.serial(full) as position:
            for slot in range(unroll):
                body(start + position * step + slot * lanes, lanes, slot)
    elif full == 1:
        for slot in range(unroll):
            body(start + slot * lanes, lanes, slot)
    done, slot = full * step, 0
    while length - done >= lanes:
        body(start + done, lanes, slot)
        done, slot = done + lanes, slot + 1
    if length > done:
        body(start + done, length - done, slot % unroll)


def fill(
    buffer: Buffer, value: Expr, start: Expr, length: int, lanes: int, unroll: int = 1
) -> None:
    """Stores a value in neighbouring elements of a flat buffer, vector by vector.

    Args:
        buffer: Where.
        value: The value.
        start: The first element.
        length: How many.
        lanes: As for :func:`vectors`.
        unroll: As for :func:`vectors`.
    """

    def vector(at: Expr, lanes: int, _slot: int) -> None:
        emit.store(buffer, emit.broadcast(value, lanes), [emit.ramp(at, lanes)])

    vectors(start, length, lanes, vector, unroll)
