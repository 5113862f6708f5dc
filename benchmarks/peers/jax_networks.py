"""JAX's form of the convolutional networks."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.conv_rows import EPSILON, Node
from benchmarks.workloads import Workload

Params = dict[str, Any]


def _conv(params: Params, node: Node, x: Any) -> Any:
    _, name, stride, dilation, groups = node
    weight = params[f"{name}.w"]
    padding = weight.shape[2] // 2 * dilation
    y = lax.conv_general_dilated(
        x, weight, (stride, stride), [(padding, padding)] * 2, rhs_dilation=(dilation, dilation),
        dimension_numbers=("NCHW", "OIHW", "NCHW"), feature_group_count=groups,
    )  # fmt: skip
    bias = params.get(f"{name}.b")
    return y if bias is None else y + bias[:, None, None]


def _norm(params: Params, name: str, x: Any) -> Any:
    gamma, beta, mean, var = (params[f"{name}.{p}"] for p in ("gamma", "beta", "mean", "var"))
    scale = gamma * lax.rsqrt(var + EPSILON)
    return x * scale[:, None, None] + (beta - mean * scale)[:, None, None]


def _pool(x: Any, size: int, stride: int, padding: int) -> Any:
    window, steps = (1, 1, size, size), (1, 1, stride, stride)
    pads = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    return lax.reduce_window(x, -jnp.inf, lax.max, window, steps, pads)


def _apply(params: Params, node: Node, x: Any) -> Any:
    kind, *rest = node
    if kind == "seq":
        for inner in rest:
            x = _apply(params, inner, x)
        return x
    if kind == "sum":
        return _apply(params, rest[0], x) + _apply(params, rest[1], x)
    if kind == "conv":
        return _conv(params, node, x)
    if kind == "norm":
        return _norm(params, rest[0], x)
    if kind == "dense":
        return x @ params[f"{rest[0]}.w"].T + params[f"{rest[0]}.b"]
    if kind == "maxpool":
        return _pool(x, *rest)
    return {"relu": jax.nn.relu, "relu6": jax.nn.relu6, "mean": lambda v: v.mean((2, 3))}[kind](x)


def network(work: Workload) -> Callable[[Params, Any], Any]:
    """The row's network as a function of its weights and the image."""
    return lambda params, x: _apply(params, work.options["tree"], x)
