"""Adapter for JAX: jitted functions that take the weights as arguments."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.peers import Call
from benchmarks.peers import jax_layers as layers
from benchmarks.peers.jax_networks import network
from benchmarks.peers.jax_training import resnet18, training_step
from benchmarks.workloads import LENET_CONVS, LENET_DENSES, Workload

Params = dict[str, Any]


def _add(params: Params, x: Any, y: Any) -> Any:
    return x + y


def _mynet(params: Params, x: Any) -> Any:
    return x * 2.0 + 1.0


def _myop(params: Params, x: Any, y: Any) -> Any:
    power = (x * 2.0) ** 3.0
    return (power - y) * power


def _dense_stack(params: Params, x: Any, layers: int) -> Any:
    for i in range(layers):
        x = x @ params[f"w{i}"] + params[f"b{i}"]
        x = jax.nn.relu(x) if i < layers - 1 else x
    return x


def _mlp(params: Params, x: Any) -> Any:
    return _dense_stack(params, x, len(params) // 2)


def _lenet(params: Params, x: Any) -> Any:
    for i in range(len(LENET_CONVS)):
        x = lax.conv_general_dilated(
            x, params[f"conv{i}.w"], (1, 1), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW")
        )
        x = jax.nn.relu(x + params[f"conv{i}.b"][:, None, None])
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return _dense_stack(params, x.reshape(x.shape[0], -1), len(LENET_DENSES))


BUILDERS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "mynet": _mynet,
    "myop": _myop,
    "mlp": _mlp,
    "lenet": _lenet,
    **layers.BUILDERS,
}


class JaxPeer:
    """Runs a row on the CPU device and blocks until the result is ready."""

    def version(self) -> str:
        """Return the version of JAX."""
        return jax.__version__

    def build(self, work: Workload) -> Call:
        """Compile the row; dense weights are stored (in, out), as JAX libraries do."""
        dense = {k for k in work.params if k.startswith("w")}
        params = {
            k: jnp.asarray(np.ascontiguousarray(v.T) if k in dense else v)
            for k, v in work.params.items()
        }
        if work.model == "train":
            forwards = {**BUILDERS, "resnet18": resnet18}
            return training_step(work, forwards[work.options["model"]], params)
        forward = network(work) if work.model == "network" else BUILDERS[work.model]
        run = jax.jit(forward)
        args = [jnp.asarray(a) for a in work.args]
        return lambda: run(params, *args).block_until_ready()

    def to_numpy(self, result: Any) -> np.ndarray:
        """Return a device array as NumPy."""
        return np.asarray(result)


def create(variant: str, threads: int) -> JaxPeer:
    """Create the adapter; threads are limited by the worker's CPU affinity and XLA_FLAGS."""
    jax.config.update("jax_platforms", "cpu")
    return JaxPeer()
