"""ONNX's training operators: one step of an optimizer over several tensors."""

from __future__ import annotations

from collections.abc import Callable

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.onnx.table import NodeCall, converter

_DOMAIN = "ai.onnx.preview.training."


def _each(n: NodeCall, kinds: int, step: Callable[..., tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Applies ``step`` to every tensor.

    Inputs and outputs are grouped: all tensors, all gradients, all of every state.

    Args:
        n: The node; its first two inputs are rate and update count.
        kinds: Groups among the inputs.
        step: Takes one of every group, returns the new tensor and states.
    """
    rest = n.values[2:]
    count = len(rest) // kinds
    groups = [rest[k * count : (k + 1) * count] for k in range(kinds)]
    results = [step(*members) for members in zip(*groups)]
    return tuple(r[k] for k in range(len(results[0])) for r in results)


@converter(_DOMAIN + "Adagrad")
def _adagrad(n: NodeCall, rate: Tensor, t: Tensor, *_: object) -> tuple[Tensor, ...]:
    rate = rate / (1 + F.cast(t, rate.dtype) * n.get("decay_factor"))

    def step(x: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        g = g + n.get("norm_coefficient") * x
        h = h + g * g
        return x - rate * g / (F.sqrt(h) + n.get("epsilon")), h

    return _each(n, 3, step)


@converter(_DOMAIN + "Adam")
def _adam(n: NodeCall, rate: Tensor, t: Tensor, *_: object) -> tuple[Tensor, ...]:
    alpha, beta = n.get("alpha"), n.get("beta")
    time = F.cast(t, rate.dtype)
    corrected = rate * F.sqrt(1 - F.pow(beta, time)) / (1 - F.pow(alpha, time))
    rate = F.where(time > 0, corrected, rate)

    def step(x: Tensor, g: Tensor, v: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        g = g + n.get("norm_coefficient") * x
        v = alpha * v + (1 - alpha) * g
        h = beta * h + (1 - beta) * g * g
        x = x - rate * v / (F.sqrt(h) + n.get("epsilon"))
        return (1 - n.get("norm_coefficient_post")) * x, v, h

    return _each(n, 4, step)


@converter(_DOMAIN + "Momentum")
def _momentum(n: NodeCall, rate: Tensor, t: Tensor, *_: object) -> tuple[Tensor, ...]:
    alpha = n.get("alpha")
    first = F.where(t > 0, n.get("beta"), 1.0)

    def step(x: Tensor, g: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        g = g + n.get("norm_coefficient") * x
        v = alpha * v + first * g
        return x - rate * (g + alpha * v if n.get("mode") == "nesterov" else v), v

    return _each(n, 3, step)
