"""The timed rows in PyTorch and JAX, for the machine with the GPU; both are optional."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

Call = tuple[Callable[[], Any], Callable[[Any], np.ndarray]]

#: Rows whose peer is one expression of PyTorch; ``x`` are the arrays as tensors.
_TORCH: dict[str, Callable[[Any, list[Any]], Any]] = {
    "elementwise": lambda torch, x: torch.relu(x[0] * x[1] + x[0]),
    "reduce_all": lambda _, x: x[0].sum(),
    "reduce_columns": lambda _, x: x[0].sum(0),
    "softmax": lambda torch, x: torch.softmax(x[0], -1),
    "transpose": lambda _, x: x[0].T.contiguous() * 2.0,
    "gemm_bf16": lambda _, x: x[0] @ x[1],
    "attention": lambda torch, x: torch.nn.functional.scaled_dot_product_attention(*x, scale=0.125),
    "mlp": lambda torch, x: _mlp(torch, x),
}
#: Rows that move memory: compared with a copy, too.
_MEMORY = ("elementwise", "reduce_all", "reduce_columns", "softmax", "transpose")


def calls(name: str, arrays: list[np.ndarray]) -> dict[str, Call]:
    """Returns the peers of a row by name, with what turns their results into arrays."""
    if name not in _TORCH or importlib.util.find_spec("torch") is None:
        return {}
    import torch

    x = [_tensor(torch, a) for a in arrays]

    def to_numpy(value: Any) -> np.ndarray:
        return value.detach().float().cpu().numpy()

    def run() -> Any:
        return _TORCH[name](torch, x)

    compiled = torch.compile(run, mode="max-autotune")
    made: dict[str, Call] = {"torch": (_quiet(torch, run), to_numpy)}
    made["torch-compile"] = (_quiet(torch, compiled), to_numpy)
    if name == "mlp":
        made["torch-cuda-graph"] = (_graphed(torch, run), to_numpy)
    if name in _MEMORY:
        target = torch.empty_like(x[0])
        made["copy"] = (lambda: target.copy_(x[0]), to_numpy)
    return made | _jax(name, arrays)


def _tensor(torch: Any, array: np.ndarray) -> Any:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).cuda()
    return torch.from_numpy(array).cuda()


def _quiet(torch: Any, run: Callable[[], Any]) -> Callable[[], Any]:
    def call() -> Any:
        with torch.inference_mode():
            return run()

    return call


def _graphed(torch: Any, run: Callable[[], Any]) -> Callable[[], Any]:
    """Returns a function that replays a CUDA graph of ``run``."""
    stream = torch.cuda.Stream()
    with torch.inference_mode(), torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode(), torch.cuda.graph(graph):
        out = run()

    def call() -> Any:
        graph.replay()
        return out

    return call


def _mlp(torch: Any, x: list[Any]) -> Any:
    linear, relu = torch.nn.functional.linear, torch.relu
    by_shape = {tuple(t.shape): t for t in x[1:]}
    weights = [t for t in x[1:] if t.ndim == 2]
    biases = [t for t in x[1:] if t.ndim == 1]
    assert len(by_shape) >= 4
    h = relu(linear(x[0], weights[0], biases[0]))
    return linear(relu(linear(h, weights[1], biases[1])), weights[2], biases[2])


def _jax(name: str, arrays: list[np.ndarray]) -> dict[str, Call]:
    if importlib.util.find_spec("jax") is None:
        return {}
    import os

    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    rows: dict[str, Callable[..., Any]] = {
        "elementwise": lambda x, y: jax.nn.relu(x * y + x),
        "reduce_all": lambda x: x.sum(),
        "reduce_columns": lambda x: x.sum(0),
        "softmax": lambda x: jax.nn.softmax(x, -1),
        "transpose": lambda x: x.T * 2.0,
        "gemm_bf16": lambda x, y: x @ y,
    }
    if name not in rows or jax.default_backend() != "gpu":
        return {}
    function, x = jax.jit(rows[name]), [jax.device_put(a) for a in arrays]
    return {"jax": (lambda: function(*x).block_until_ready(), lambda v: np.asarray(v, np.float32))}
