"""The measured rows: inputs, weights and a NumPy reference, with no framework in sight.

A row names a *model* (what is computed) and a size. Every peer in ``benchmarks.peers`` has one
builder per model, so a new size is one line here and a new model is one builder per peer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

Array = np.ndarray
Reference = Callable[["Workload"], Array]

MLP_SIZES = (784, 512, 512, 10)
LENET_CONVS = ((6, 1), (16, 6))
LENET_DENSES = ((120, 400), (84, 120), (10, 84))


@dataclass(frozen=True)
class Workload:
    """One row of the benchmark.

    Attributes:
        name: Key used on the command line.
        title: Text of the row in the report.
        model: Which builder of a peer runs it.
        args: Arrays given to the compiled function on every call.
        params: Weights, fixed when the function is built.
        reference: Computes the expected output with NumPy.
        rtol: Relative tolerance of the check made before timing.
        atol: Absolute tolerance of the check made before timing.
        options: Settings of the model that are no arrays.
        flops: Floating-point operations of a call where they bound its time, else 0.
        bytes: Memory traffic of a call, everything read and written once, where it bounds its
            time, else 0.
        written: How much of that traffic is writing.
        calls: How many successive results are compared with the reference.
    """

    name: str
    title: str
    model: str
    args: tuple[Array, ...]
    reference: Reference
    params: dict[str, Array] = field(default_factory=dict)
    rtol: float = 1e-4
    atol: float = 1e-5
    options: dict[str, Any] = field(default_factory=dict)
    flops: int = 0
    bytes: int = 0
    written: int = 0
    calls: int = 1

    def expected(self) -> Array:
        """Return the output computed by NumPy."""
        return self.reference(self)


def _uniform(rng: np.random.RandomState, *shape: int, bound: float = 1.0) -> Array:
    return rng.uniform(-bound, bound, shape).astype(np.float32)


def _dense(rng: np.random.RandomState, out: int, inp: int) -> tuple[Array, Array]:
    bound = 1.0 / float(np.sqrt(inp))
    return _uniform(rng, out, inp, bound=bound), _uniform(rng, out, bound=bound)


def _relu(x: Array) -> Array:
    return np.maximum(x, 0.0)


def _reference_add(work: Workload) -> Array:
    return work.args[0] + work.args[1]


def _reference_mynet(work: Workload) -> Array:
    return work.args[0] * np.float32(2.0) + np.float32(1.0)


def _reference_myop(work: Workload) -> Array:
    x, y = work.args
    power = (x * np.float32(2.0)) ** 3
    return (power - y) * power


def _reference_mlp(work: Workload) -> Array:
    x = work.args[0]
    layers = len(MLP_SIZES) - 1
    for i in range(layers):
        x = x @ work.params[f"w{i}"].T + work.params[f"b{i}"]
        x = _relu(x) if i < layers - 1 else x
    return x


def _conv_valid(x: Array, weight: Array, bias: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, weight, optimize=True) + bias[:, None, None]


def _pool2(x: Array) -> Array:
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def _reference_lenet(work: Workload) -> Array:
    x, p = work.args[0], work.params
    for i in range(len(LENET_CONVS)):
        x = _pool2(_relu(_conv_valid(x, p[f"conv{i}.w"], p[f"conv{i}.b"])))
    x = x.reshape(len(x), -1)
    for i in range(len(LENET_DENSES)):
        x = x @ p[f"w{i}"].T + p[f"b{i}"]
        x = _relu(x) if i < len(LENET_DENSES) - 1 else x
    return x


def add_tiny() -> Workload:
    """3x3 addition: what a call costs when there is nothing to compute."""
    rng = np.random.RandomState(0)
    args = (_uniform(rng, 3, 3), _uniform(rng, 3, 3))
    return Workload("add-3x3", "x + y, 3 x 3 (call overhead)", "add", args, _reference_add)


def mynet(size: int = 4096) -> Workload:
    """Multiply and add: one pass over memory when fused."""
    args = (_uniform(np.random.RandomState(1), size, size),)
    title = f"MyNet: 2x + 1, {size} x {size}"
    return Workload(f"mynet-{size}", title, "mynet", args, _reference_mynet)


def myop(size: int = 4096) -> Workload:
    """Mul, pow, sub, mul: the composite operator of the graph-kernel tutorial."""
    rng = np.random.RandomState(2)
    args = (_uniform(rng, size, size), _uniform(rng, size, size))
    title = f"MyOp: (b - y) * b with b = (2x) ** 3, {size} x {size}"
    return Workload(f"myop-{size}", title, "myop", args, _reference_myop)


def mlp(batch: int) -> Workload:
    """Three dense layers with ReLU between them."""
    rng = np.random.RandomState(3)
    params: dict[str, Array] = {}
    for i, (inp, out) in enumerate(pairwise(MLP_SIZES)):
        params[f"w{i}"], params[f"b{i}"] = _dense(rng, out, inp)
    title = f"MLP {'-'.join(map(str, MLP_SIZES))}, batch {batch}"
    args = (_uniform(rng, batch, MLP_SIZES[0]),)
    return Workload(f"mlp-b{batch}", title, "mlp", args, _reference_mlp, params, atol=1e-4)


def lenet(batch: int = 64) -> Workload:
    """LeNet-5 on 32 x 32 images: two convolutions with pooling, three dense layers."""
    rng = np.random.RandomState(4)
    params: dict[str, Array] = {}
    for i, (out, inp) in enumerate(LENET_CONVS):
        bound = 1.0 / float(np.sqrt(inp * 25))
        params[f"conv{i}.w"] = _uniform(rng, out, inp, 5, 5, bound=bound)
        params[f"conv{i}.b"] = _uniform(rng, out, bound=bound)
    for i, (out, inp) in enumerate(LENET_DENSES):
        params[f"w{i}"], params[f"b{i}"] = _dense(rng, out, inp)
    title = f"LeNet-5, 32 x 32, batch {batch}"
    args = (_uniform(rng, batch, 1, 32, 32),)
    return Workload(f"lenet-b{batch}", title, "lenet", args, _reference_lenet, params, atol=1e-4)


BASIC: dict[str, Callable[[], Workload]] = {
    "add-3x3": add_tiny,
    "mlp-b1": lambda: mlp(1),
    "mlp-b64": lambda: mlp(64),
    "mynet-4096": mynet,
    "myop-4096": myop,
    "lenet-b64": lenet,
}
