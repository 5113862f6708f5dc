"""ONNX columns that hold subgraphs: If, Loop for loops and their derivative, Scan for
running products.."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.columns import OnnxNamed, OnnxOps
from tvmgraph.core.types import tensor_type
from tvmgraph.graph import Graph

_COUNTER = tensor_type((), dtypes.int64)
_FLAG = tensor_type((), dtypes.bool_)


def branch(
    O: OnnxOps, condition: OnnxNamed, *xs: OnnxNamed, then: Graph, orelse: Graph
) -> tuple[OnnxNamed, ...]:
    """``If``: both regions read the operands from outside.

    Args:
        O: The model so far.
        condition: A bool without axes.
        *xs: Operands of both regions.
        then: The region for true.
        orelse: The region for false.
    """
    sides = [O.subgraph(r.name, (), lambda r=r: O.inline(r, xs)) for r in (then, orelse)]
    count = len(then.outputs)
    found = O.If(condition, then_branch=sides[0], else_branch=sides[1], outputs=count)
    return found if count > 1 else (found,)


def loop(O: OnnxOps, *xs: OnnxNamed, cond: Graph, body: Graph) -> tuple[OnnxNamed, ...]:
    """``Loop`` without a trip count; its condition is computed at the end of every iteration.

    Args:
        O: The model so far.
        *xs: The state first, then what stays as it is.
        cond: Computes whether there is another iteration.
        body: Computes the next state.
    """
    found = _loop(O, xs, cond, body, stacked=False)
    return found if isinstance(found, tuple) else (found,)


def _loop(O: OnnxOps, xs: tuple[OnnxNamed, ...], cond: Graph, body: Graph, stacked: bool) -> Any:
    """Adds the loop; ``stacked`` also gives the state before every iteration, along axis 0."""
    count = len(body.outputs)
    state, fixed = xs[:count], xs[count:]

    def step(_: OnnxNamed, __: OnnxNamed, *before: OnnxNamed) -> list[OnnxNamed]:
        after = O.inline(body, [*before, *fixed])
        return [*O.inline(cond, [*after, *fixed]), *after, *(before if stacked else ())]

    types = [_COUNTER, _FLAG, *(v.type for v in body.outputs)]
    (first,) = O.inline(cond, xs)
    return O.Loop(
        None, first, *state, body=O.subgraph(body.name, types, step),
        outputs=2 * count if stacked else count,
    )  # fmt: skip


def loop_grad(
    O: OnnxOps, *xs: OnnxNamed, cond: Graph, body: Graph, pull_back: Graph
) -> tuple[OnnxNamed, ...]:
    """A ``Loop`` that keeps the state of every iteration, then one that runs backwards.

    Args:
        O: The model so far.
        *xs: Operands of the loop, then the cotangents of its results.
        cond: Computes whether there is another iteration.
        body: Computes the next state.
        pull_back: Computes the cotangents before an iteration of those after it.
    """
    count, forward = len(body.outputs), len(body.params)
    fixed, start = xs[count:forward], xs[forward:]
    stacks = _loop(O, xs[:forward], cond, body, stacked=True)[count:]
    trips = O.Gather(O.Shape(stacks[0]), O.const(np.int64(0)))
    last = O.Sub(trips, O.const(np.int64(1)))

    def back(i: OnnxNamed, going: OnnxNamed, *found: OnnxNamed) -> list[OnnxNamed]:
        at = O.Sub(last, i)
        before = [O.Gather(s, at, axis=0) for s in stacks]
        return [going, *O.inline(pull_back, [*before, *fixed, *found])]

    types = [_COUNTER, _FLAG, *(v.type for v in pull_back.outputs)]
    graph = O.subgraph(pull_back.name, types, back)
    found = O.Loop(trips, O.const(np.array(True)), *start, body=graph, outputs=len(start))
    return found if isinstance(found, tuple) else (found,)


def running(
    O: OnnxOps,
    x: OnnxNamed,
    axis: int,
    start: float,
    combine: Callable[[OnnxNamed, OnnxNamed], OnnxNamed],
) -> OnnxNamed:
    """``Scan``: ``y[i] = combine(y[i - 1], x[i])`` along an axis.

    Args:
        O: The model so far.
        x: A value of known type.
        axis: The axis.
        start: What ``y[-1]`` is.
        combine: Combines two rows.
    """
    shape = [d for i, d in enumerate(x.type.shape) if i != axis % x.type.ndim]
    row = tensor_type(shape, x.type.dtype)

    def step(before: OnnxNamed, element: OnnxNamed) -> list[OnnxNamed]:
        after = combine(before, element)
        after.type = row
        return [after, after]

    first = O.full(shape, start, x.type.dtype)
    _, rows = O.Scan(
        first, x, body=O.subgraph("running", [row, row], step), num_scan_inputs=1,
        scan_input_axes=[axis], scan_output_axes=[axis], outputs=2,
    )  # fmt: skip
    return rows
