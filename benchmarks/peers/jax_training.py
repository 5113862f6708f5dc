"""Training steps with JAX: one jitted function whose old parameters are given up."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.training_rows import ADAM, MOMENTUM, resnet18_convs
from benchmarks.workloads import Workload

Params = dict[str, Any]
Forward = Callable[..., Any]


def resnet18(params: Params, x: Any) -> tuple[Any, Params]:
    """ResNet-18 in training: the logits, and the new running statistics."""
    convs = {name: (kernel, stride) for name, _, _, kernel, stride in resnet18_convs()}
    statistics: Params = {}

    def conv(name: str, x: Any) -> Any:
        kernel, stride = convs[name]
        y = lax.conv_general_dilated(
            x, params[f"{name}.w"], (stride, stride), [(kernel // 2, kernel // 2)] * 2,
            dimension_numbers=("NCHW", "OIHW", "NCHW"),
        )  # fmt: skip
        mean, variance = y.mean((0, 2, 3)), y.var((0, 2, 3))
        statistics[name] = (mean, variance)
        scale = params[f"{name}.gamma"] * lax.rsqrt(variance + 1e-5)
        shift = params[f"{name}.beta"] - mean * scale
        return y * scale[:, None, None] + shift[:, None, None]

    x = jax.nn.relu(conv("stem", x))
    padding = ((0, 0), (0, 0), (1, 1), (1, 1))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), padding)
    for block in [f"{stage}.{i}" for stage in range(4) for i in range(2)]:
        side = conv(f"{block}.side", x) if f"{block}.side" in convs else x
        x = jax.nn.relu(conv(f"{block}.b", jax.nn.relu(conv(f"{block}.a", x))) + side)
    return x.mean((2, 3)) @ params["w0"] + params["b0"], statistics


def _update(name: str, rate: float, params: Params, grads: Params, state: Params) -> Any:
    tree = jax.tree.map
    if name == "sgd":
        return tree(lambda p, g: p - rate * g, params, grads), state
    if name == "momentum":
        moments = tree(lambda m, g: MOMENTUM * m + g, state["m"], grads)
        return tree(lambda p, m: p - rate * m, params, moments), {"m": moments}
    b1, b2, eps = ADAM["beta1"], ADAM["beta2"], ADAM["eps"]
    count = state["t"] + 1
    m = tree(lambda m, g: b1 * m + (1 - b1) * g, state["m"], grads)
    v = tree(lambda v, g: b2 * v + (1 - b2) * g * g, state["v"], grads)
    size = rate * jnp.sqrt(1 - b2**count) / (1 - b1**count)
    params = tree(lambda p, m, v: p - size * m / (jnp.sqrt(v) + eps), params, m, v)
    return params, {"m": m, "v": v, "t": count}


def _state(name: str, params: Params) -> Params:
    zeros = jax.tree.map(jnp.zeros_like, params)
    if name == "adam":
        return {"m": zeros, "v": jax.tree.map(jnp.zeros_like, params), "t": jnp.zeros(())}
    return {"m": zeros} if name == "momentum" else {}


def training_step(work: Workload, forward: Forward, params: Params) -> Callable[[], Any]:
    """Return a function that takes one step and returns the loss before it.

    Args:
        work: The row.
        forward: ``(params, x)`` to the output, or to the output and new statistics.
        params: The parameters as JAX arrays.
    """
    name, rate = work.options["optimizer"], work.options["rate"]
    momentum = 0.9

    def loss_of(params: Params, x: Any, target: Any) -> tuple[Any, Any]:
        found = forward(params, x)
        y, statistics = found if isinstance(found, tuple) else (found, {})
        if work.options["loss"] == "mse":
            return jnp.mean((y - target) ** 2), statistics
        picked = jnp.take_along_axis(jax.nn.log_softmax(y), target[:, None], 1)
        return -picked.mean(), statistics

    def step(params: Params, state: Params, running: Any, x: Any, target: Any) -> Any:
        (loss, found), grads = jax.value_and_grad(loss_of, has_aux=True)(params, x, target)
        running = jax.tree.map(lambda r, s: momentum * r + (1 - momentum) * s, running, found)
        return loss, *_update(name, rate, params, grads, state), running

    run = jax.jit(step, donate_argnums=(0, 1, 2))
    x, target = (jnp.asarray(a) for a in work.args)
    shapes = jax.eval_shape(lambda p: loss_of(p, x, target)[1], params)
    held = [params, _state(name, params), jax.tree.map(lambda s: jnp.zeros(s.shape), shapes)]

    def call() -> Any:
        loss, *held[:] = run(*held, x, target)
        jax.block_until_ready(held)
        return loss

    return call
