"""What fusion gains: unfused, with TVM's own fusion, and with rows and siblings joined.

``python -m benchmarks.fusion [size]`` prints the best of several interleaved runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tvmgraph import JitConfig, Tensor, jit, nn, ops

REPEATS = 9
CONFIGS = {
    "unfused (O0)": JitConfig(jit_level="O0"),
    "TVM's fusion": JitConfig(jit_level="O2", options={"graph_kernel_flags": "--opt_level=0"}),
    "O2": JitConfig(jit_level="O2"),
}


class MyOp(nn.Cell):
    """A user's composite."""

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return ops.sub(ops.pow(x, 2.0), y)


class MyNet(nn.Cell):
    """A Cell around it."""

    def __init__(self) -> None:
        super().__init__()
        self.op = MyOp()

    def construct(self, x: Tensor) -> Tensor:
        a = ops.mul(x, 2.0)
        return ops.mul(a, self.op(a, x))


def normalization(x: Tensor) -> Tensor:
    """A layer normalization written by hand."""
    d = x - x.mean(-1, keep_dims=True)
    return d * ops.rsqrt((d * d).mean(-1, keep_dims=True) + 1e-5) * 1.5 + 0.5


CASES: dict[str, Callable[..., Any]] = {
    "mul, add, relu, mul": lambda x: ops.relu(x * 2.0 + 1.0) * x,
    "MyNet with MyOp": MyNet(),
    "hand-written normalization": normalization,
    "exp, mean": lambda x: ops.exp(x).mean(-1),
    "mul, softmax": lambda x: ops.softmax(x * 0.125, -1),
    "exp, tanh, mul of one tensor": lambda x: (ops.exp(x), ops.tanh(x), x * 2.0),
    "sum, sum of squares, max": lambda x: (x.sum(-1), (x * x).sum(-1), ops.amax(x, -1)),
}


def measure(body: Callable[..., Any], x: Tensor) -> dict[str, tuple[float, int]]:
    """Returns milliseconds and kernels for every configuration."""
    functions = {name: jit(body, jit_config=config) for name, config in CONFIGS.items()}
    best = dict.fromkeys(functions, float("inf"))
    for f in functions.values():
        f(x)
    for _ in range(REPEATS):
        for name, f in functions.items():
            start = time.perf_counter()
            result = f(x)
            best[name] = min(best[name], time.perf_counter() - start)
            del result
    return {name: (best[name] * 1e3, len(f.kernels())) for name, f in functions.items()}


def main(size: int = 4096) -> None:
    """Prints a Markdown table."""
    x = Tensor(np.random.default_rng(0).normal(size=(size, size)).astype(np.float32))
    print(f"| {size} x {size} | " + " | ".join(CONFIGS) + " |")
    print("|---" * (len(CONFIGS) + 1) + "|")
    for name, body in CASES.items():
        cells = [f"{ms:.1f} ({kernels})" for ms, kernels in measure(body, x).values()]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
