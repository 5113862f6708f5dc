"""PyTorch's form of the kernel, transformer and recurrent rows."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.network_rows import HEADS, LSTM_LAYERS, LSTM_SIZE
from benchmarks.workloads import Workload


def _simple(function: Callable[..., Any]) -> Callable[[Workload], Callable[..., Any]]:
    return lambda work: function


def _params(work: Workload) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in work.params.items()}


def _dense(work: Workload) -> Callable[..., Any]:
    weight = _params(work)["w0"]
    return lambda x: F.linear(x, weight)


def _layernorm(work: Workload) -> Callable[..., Any]:
    p = _params(work)
    return lambda x: F.layer_norm(x, x.shape[-1:], p["gamma"], p["beta"])


def _heads(x: torch.Tensor) -> torch.Tensor:
    return x.view(*x.shape[:2], HEADS, -1).transpose(1, 2)


def _join(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(1, 2).flatten(2)


def bert(p: dict[str, torch.Tensor]) -> Callable[..., Any]:
    """BERT's layer with these weights."""

    def dense(part: str, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, p[f"w{part}"], p[f"b{part}"])

    def layer(x: torch.Tensor) -> torch.Tensor:
        mixed = F.scaled_dot_product_attention(*(_heads(dense(part, x)) for part in "qkv"))
        x = F.layer_norm(x + dense("o", _join(mixed)), x.shape[-1:], p["gamma1"], p["beta1"])
        y = dense("2", F.gelu(dense("1", x)))
        return F.layer_norm(x + y, x.shape[-1:], p["gamma2"], p["beta2"])

    return layer


def _gpt2(work: Workload) -> Callable[..., Any]:
    p = _params(work)

    def dense(part: str, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, p[f"w{part}"], p[f"b{part}"])

    def layer(x: torch.Tensor, past_k: torch.Tensor, past_v: torch.Tensor) -> torch.Tensor:
        normed = F.layer_norm(x, x.shape[-1:], p["gamma1"], p["beta1"])
        q, k, v = (_heads(dense(part, normed)) for part in "qkv")
        k, v = torch.cat((past_k, k), 2), torch.cat((past_v, v), 2)
        x = x + dense("o", _join(F.scaled_dot_product_attention(q, k, v)))
        hidden = dense("1", F.layer_norm(x, x.shape[-1:], p["gamma2"], p["beta2"]))
        return x + dense("2", F.gelu(hidden))

    return layer


def _lstm(work: Workload) -> Callable[..., Any]:
    p = _params(work)
    net = nn.LSTM(LSTM_SIZE, LSTM_SIZE, LSTM_LAYERS).eval()
    for layer in range(LSTM_LAYERS):
        getattr(net, f"weight_ih_l{layer}").copy_(p[f"ih{layer}"])
        getattr(net, f"weight_hh_l{layer}").copy_(p[f"hh{layer}"])
        getattr(net, f"bias_ih_l{layer}").copy_(p[f"b{layer}"])
        getattr(net, f"bias_hh_l{layer}").zero_()
    return lambda x: net(x)[0]


BUILDERS: dict[str, Callable[[Workload], Callable[..., Any]]] = {
    "dense": _dense,
    "matmul": _simple(torch.matmul),
    "muladd": _simple(lambda x, y, z: torch.addcmul(z, x, y)),
    "gelu": _simple(F.gelu),
    "softmax": _simple(lambda x: F.softmax(x, -1)),
    "logsoftmax": _simple(lambda x: F.log_softmax(x, -1)),
    "layernorm": _layernorm,
    "transpose": _simple(lambda x: x.t().contiguous()),
    "sum0": _simple(lambda x: x.sum(0)),
    "sum1": _simple(lambda x: x.sum(1)),
    "argmax": _simple(lambda x: x.argmax(1)),
    "cumsum": _simple(lambda x: x.cumsum(1)),
    "gather": _simple(lambda table, ids: F.embedding(ids, table)),
    "bert": lambda work: bert(_params(work)),
    "gpt2": _gpt2,
    "attention": _simple(lambda *qkv: F.scaled_dot_product_attention(*qkv, is_causal=True)),
    "lstm": _lstm,
}
