"""The LSTM operator, whose weights are one flat tensor."""

from __future__ import annotations

import itertools

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ShapeError


def lstm(
    x: Tensor, h: Tensor, c: Tensor, w: Tensor, width: int, units: int, layers: int,
    has_bias: bool, bidirectional: bool, dropout: float, projected: int = 0,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Runs all layers; the last two results are what MindSpore keeps for its derivative.

    Args:
        x: Inputs [time, batch, width].
        h: First outputs [layers * directions, batch, units], or ``projected`` of them.
        c: First states [layers * directions, batch, units].
        w: Weights of inputs of all layers and directions, then those of states, then those of
            projections, then biases.
        width: Input elements.
        units: Elements of a state.
        layers: Number of layers.
        has_bias: Whether there are biases.
        bidirectional: Whether every layer also runs backwards.
        dropout: Share of the elements that are dropped between layers.
        projected: Elements that every output is projected to; 0 leaves it as it is.
    """
    flat, gates, directions = F.reshape(w, (-1,)), 4 * units, 2 if bidirectional else 1
    out = projected or units
    widths = [n for k in range(layers) for n in [out * directions if k else width] * directions]
    count = len(widths)
    sizes = [gates * n for n in (*widths, *[out] * count)]
    sizes += [projected * units] * count * bool(projected) + [gates] * count * has_bias
    edges = [0, *itertools.accumulate(sizes)]
    if flat.shape[0] < edges[-1]:
        raise ShapeError(f"these sizes need {edges[-1]} weights", op="ops.LSTM", got=f"w={w.aval}")
    parts = [flat[a:b] for a, b in itertools.pairwise(edges)]
    lasts: list[tuple[Tensor, ...]] = []
    for layer in range(layers):
        sides = []
        for side in range(directions):
            k = layer * directions + side
            w_ih, w_hh = F.reshape(parts[k], (gates, -1)), F.reshape(parts[count + k], (gates, -1))
            inputs = F.dense(x, w_ih, parts[k - count] if has_bias else None)
            w_hr = F.reshape(parts[2 * count + k], (out, units)) if projected else None
            y, *last = _steps(inputs, w_hh, w_hr, h[k], c[k], side == 1)
            sides.append(y)
            lasts.append(tuple(last))
        x = F.concat(sides, -1) if len(sides) > 1 else sides[0]
        if dropout and layer + 1 < layers:
            x = F.dropout(x, dropout)
    kept = F.zeros((1, 1), x.dtype)
    return x, *(F.stack([s[i] for s in lasts], 0) for i in (0, 1)), kept, kept


def _steps(
    inputs: Tensor, w_hh: Tensor, w_hr: Tensor | None, h: Tensor, c: Tensor, backwards: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns all outputs, the last one and the last state of one direction of one layer."""
    steps = F.unstack(inputs, 0)
    outputs = []
    for step in reversed(steps) if backwards else steps:
        i, f, g, o = F.chunk(step + F.dense(h, w_hh, None), 4, -1)
        c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
        h = F.sigmoid(o) * F.tanh(c)
        h = h if w_hr is None else F.dense(h, w_hr, None)
        outputs.append(h)
    return F.stack(outputs[::-1] if backwards else outputs, 0), h, c
