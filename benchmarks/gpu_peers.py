"""The timed rows in PyTorch and JAX, for the machine with the GPU; both are optional."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import gpu_training
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
    "bert_layer": lambda torch, x: encoder_layer(torch, x[0], x.named, ""),
    "bert_base": lambda torch, x: _bert_base(torch, x),
    "resnet50": lambda torch, x: _resnet50(torch, x),
}
#: Ways to compile with PyTorch.
_COMPILED = {"torch-compile-graphs": "reduce-overhead", "torch-compile": "max-autotune"}
#: Rows that move memory: compared with a copy, too.
_MEMORY = ("elementwise", "reduce_all", "reduce_columns", "softmax", "transpose")


def makers(
    group: str, name: str, arrays: list[np.ndarray], labels: list[str]
) -> dict[str, Callable[[], Call]]:
    """Returns what makes some peers of a row, the quickest to make first.

    Args:
        group: ``torch`` (as it is, its CUDA graph, a copy), ``compile`` or ``jax``.
        name: The row.
        arrays: Its inputs.
        labels: Their names.

    Returns:
        By the name of the peer, a function that returns a call and what turns its result into an
        array.
    """
    if group == "jax":
        return _jax(name, arrays)
    training = gpu_training.is_training(name)
    if not (name in _TORCH or training) or importlib.util.find_spec("torch") is None:
        return {}
    import torch

    x = _Inputs([_tensor(torch, a) for a in arrays], labels)
    if training:
        modes = {"torch": ""} if group == "torch" else _COMPILED
        return {
            peer: lambda m=mode: (gpu_training.step_of(torch, name, x, m), _to_numpy)
            for peer, mode in modes.items()
        }

    def run() -> Any:
        return _TORCH[name](torch, x)

    if group == "compile":
        _quiet(torch, run)()  # makes what is made once: memory of a CUDA graph would not last
        return {
            peer: lambda m=mode: (_quiet(torch, torch.compile(run, mode=m)), _to_numpy)
            for peer, mode in _COMPILED.items()
        }
    made: dict[str, Callable[[], Call]] = {
        "torch": lambda: (_quiet(torch, run), _to_numpy),
        "torch-cuda-graph": lambda: (_graphed(torch, run), _to_numpy),
    }
    if name in _MEMORY:
        target = torch.empty_like(x[0])
        made["copy"] = lambda: (lambda: target.copy_(x[0]), _to_numpy)
    return made


class _Inputs(list[Any]):
    """The inputs of a row, also by name.

    Attributes:
        named: By name; what was prepared of one weight in several parts is one tensor again.
        layers: What a peer made of them, for all of its calls.
    """

    def __init__(self, tensors: list[Any], labels: list[str]) -> None:
        super().__init__(tensors)
        parts: dict[str, list[Any]] = {}
        for label, tensor in zip(labels, tensors):
            parts.setdefault(label.removesuffix(".prepared"), []).append(tensor)
        self.named = {k: v[0] if len(v) == 1 else _joined(v) for k, v in parts.items()}
        self.layers: dict[str, Any] = {}


def _joined(parts: list[Any]) -> Any:
    import torch

    return torch.cat(parts)


def _to_numpy(value: Any) -> np.ndarray:
    return value.detach().float().cpu().numpy()


def _tensor(torch: Any, array: np.ndarray) -> Any:
    array = np.asarray(array)
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


def _mlp(torch: Any, x: _Inputs) -> Any:
    linear, relu, w = torch.nn.functional.linear, torch.relu, x.named
    h = relu(linear(x[0], w["0.weight"], w["0.bias"]))
    return linear(relu(linear(h, w["2.weight"], w["2.bias"])), w["4.weight"], w["4.bias"])


def _bert_base(torch: Any, x: _Inputs) -> Any:
    y = x[0]
    for number in range(12):
        y = encoder_layer(torch, y, x.named, f"{number}.")
    return y


def encoder_layer(torch: Any, x: Any, weights: dict[str, Any], prefix: str) -> Any:
    """A layer of BERT-base.

    Args:
        torch: The module.
        x: The tokens.
        weights: By name.
        prefix: What the names of this layer begin with.
    """
    f, (batch, length, width) = torch.nn.functional, x.shape

    def dense(y: Any, name: str) -> Any:
        return f.linear(y, weights[f"{prefix}{name}weight"], weights[f"{prefix}{name}bias"])

    def norm(y: Any, name: str) -> Any:
        factor, offset = (weights[f"{prefix}{name}.{k}"] for k in ("gamma", "beta"))
        return f.layer_norm(y, (width,), factor.to(y.dtype), offset.to(y.dtype), 1e-5)

    joined = dense(x, "self_attn.in_proj_")
    heads = [h.view(batch, length, 12, -1).transpose(1, 2) for h in joined.chunk(3, -1)]
    mixed = f.scaled_dot_product_attention(*heads).transpose(1, 2).reshape(x.shape)
    y = norm(x + dense(mixed, "self_attn.out_proj."), "norm1")
    return norm(y + dense(f.gelu(dense(y, "dense1.")), "dense2."), "norm2")


_STAGES = ((3, 1), (4, 2), (6, 2), (3, 2))  # blocks of ResNet-50, and the stride of the first one


def _resnet50(torch: Any, x: _Inputs) -> Any:
    """ResNet-50 with channels last; batch norms are a factor and an offset, as in inference."""
    f = torch.nn.functional
    layers = _folded(torch, x)

    def conv(y: Any, name: str, stride: int, padding: int) -> Any:
        weight, factor, offset, mean, variance = layers[name]
        y = f.conv2d(y, weight, None, stride, padding)
        return f.batch_norm(y, mean, variance, factor, offset, eps=1e-12)

    y = x[0].to(memory_format=torch.channels_last)
    y = f.pad(torch.relu(conv(y, "stem.0", 2, 3)), (0, 1, 0, 1))
    y, number = f.max_pool2d(y, 3, 2), 0
    for depth, first in _STAGES:
        for stride in (first, *[1] * (depth - 1)):
            name = f"stages.{number}"
            side = conv(y, f"{name}.shortcut", stride, 0) if f"{name}.shortcut" in layers else y
            h = torch.relu(conv(y, f"{name}.convolutions.0", 1, 0))
            h = torch.relu(conv(h, f"{name}.convolutions.2", stride, 1))
            y, number = torch.relu(conv(h, f"{name}.convolutions.4", 1, 0) + side), number + 1
    return f.linear(y.mean((2, 3)), x.named["head.weight"], x.named["head.bias"])


def _folded(torch: Any, x: _Inputs) -> dict[str, tuple[Any, ...]]:
    """The weights of the convolutions by layer, made once: (weight, factor, offset, mean, var)."""
    if x.layers:
        return x.layers
    for label, weight in x.named.items():
        if weight.ndim != 6:
            continue
        name = label.removesuffix(".0.weight")
        plain = weight.flatten(0, 2)  # (KH, KW, I, O)
        norm = [x.named[f"{name}.1.moving_{k}"].flatten() for k in ("variance", "mean")]
        factor, offset = (t.to(weight.dtype) for t in norm)
        mean, variance = torch.zeros_like(factor), torch.ones_like(factor)
        turned = plain.permute(3, 2, 0, 1)[:, : x[0].shape[1] if name == "stem.0" else None]
        turned = turned.contiguous(memory_format=torch.channels_last)
        x.layers[name] = (turned, factor, offset, mean, variance)
    return x.layers


def _jax(name: str, arrays: list[np.ndarray]) -> dict[str, Callable[[], Call]]:
    if importlib.util.find_spec("jax") is None:
        return {}
    import os

    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    relu = jax.nn.relu
    rows: dict[str, Callable[..., Any]] = {
        "elementwise": lambda x, y: jax.nn.relu(x * y + x),
        "reduce_all": lambda x: x.sum(),
        "reduce_columns": lambda x: x.sum(0),
        "softmax": lambda x: jax.nn.softmax(x, -1),
        "transpose": lambda x: x.T * 2.0,
        "gemm_bf16": lambda x, y: x @ y,
        "attention": lambda q, k, v: jax.nn.softmax(q @ k.swapaxes(-1, -2) * 0.125, -1) @ v,
        "mlp": lambda x, *w: relu(relu(x @ w[0].T + w[1]) @ w[2].T + w[3]) @ w[4].T + w[5],
    }
    if name not in rows or jax.default_backend() != "gpu":
        return {}
    function, x = jax.jit(rows[name]), [jax.device_put(a) for a in arrays]

    def call() -> Any:
        return function(*x).block_until_ready()

    return {"jax": lambda: (call, lambda v: np.asarray(v, np.float32))}
