"""What JitConfig changes: time per call, kernels and time to compile by level and by exec_mode.

``python -m benchmarks.jit_config`` prints two Markdown tables, the best of several interleaved
rounds. The second one is where ``auto`` gets its thresholds from.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tvmgraph import JitConfig, Tensor, jit, nn, ops
from tvmgraph.compiler.compile import clear_cache

ROUNDS = 7
SECONDS = 0.02  # of a sample

LEVELS = {level: JitConfig(jit_level=level) for level in ("O0", "O1", "O2", "O3")}
MODES = {
    "no_sink": JitConfig(exec_mode="no_sink"),
    "auto": JitConfig(),
    "sink": JitConfig(exec_mode="sink"),
}


def perceptron() -> nn.Cell:
    """Three dense layers."""
    layers = [nn.Dense(784, 512), nn.ReLU(), nn.Dense(512, 512), nn.ReLU(), nn.Dense(512, 10)]
    return nn.SequentialCell(*layers).set_train(False)


def block() -> nn.Cell:
    """Two convolutions with batch normalization and a sum over the image."""
    layers: list[nn.Cell] = []
    for channels in (32, 64):
        layers += [nn.Conv2d(32, channels, 3, pad_mode="same"), nn.BatchNorm2d(channels), nn.ReLU()]
    return nn.SequentialCell(*layers).set_train(False)


def normalization(x: Tensor) -> Tensor:
    """A layer normalization written by hand."""
    d = x - x.mean(-1, keep_dims=True)
    return d * ops.rsqrt((d * d).mean(-1, keep_dims=True) + 1e-5) * 1.5 + 0.5


def recurrence(steps: int) -> Callable[[Tensor], Tensor]:
    """Many small kernels: ``steps`` products and sums of a small matrix."""

    def run(x: Tensor) -> Tensor:
        for _ in range(steps):
            x = ops.softmax(ops.matmul(x, x))
        return x

    return run


def tensor(*shape: int) -> Tensor:
    """Random numbers."""
    return Tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32))


CASES: dict[str, tuple[Callable[..., Any], Tensor]] = {
    "perceptron, 64 rows": (perceptron(), tensor(64, 784)),
    "convolutions, 56 x 56": (block(), tensor(1, 32, 56, 56)),
    "normalization, 1024 x 1024": (normalization, tensor(1024, 1024)),
}
CALLS: dict[str, tuple[Callable[..., Any], Tensor]] = {
    "8 x 8, 4 operators": (recurrence(2), tensor(8, 8)),
    "8 x 8, 40 operators": (recurrence(20), tensor(8, 8)),
    "8 x 8, 200 operators": (recurrence(100), tensor(8, 8)),
    "128 x 128, 40 operators": (recurrence(20), tensor(128, 128)),
}


def measure(
    body: Callable[..., Any], x: Tensor, configs: dict[str, JitConfig]
) -> dict[str, tuple[float, int, float]]:
    """Returns microseconds, kernels and seconds to compile for every configuration."""
    found: dict[str, tuple[float, int, float]] = {}
    functions = {}
    for name, config in configs.items():
        clear_cache()
        functions[name] = jit(lambda x: body(x), jit_config=config)
        with tempfile.TemporaryDirectory() as folder:  # nothing of what others compiled
            os.environ["TVMGRAPH_CACHE_DIR"] = os.environ["TVMGRAPH_TUNING_DIR"] = folder
            functions[name](x)
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, f in functions.items():
            best[name] = min(best[name], _sample(f, x))
    for name, f in functions.items():
        found[name] = (best[name] * 1e6, len(f.kernels()), f.history[0].compile_seconds)
    return found


def _sample(f: Callable[..., Any], x: Tensor) -> float:
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS:
        f(x)
        calls += 1
    return (time.perf_counter() - start) / calls


def main() -> None:
    """Prints the tables."""
    for title, cases, configs in (("jit_level", CASES, LEVELS), ("exec_mode", CALLS, MODES)):
        print(f"| {title}: us (kernels, s to compile) | " + " | ".join(configs) + " |")
        print("|---" * (len(configs) + 1) + "|")
        for name, (body, x) in cases.items():
            cells = [
                f"{us:.0f} ({kernels}, {seconds:.2f})"
                for us, kernels, seconds in measure(body, x, configs).values()
            ]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        print()


if __name__ == "__main__":
    main()
