"""PyTorch's form of the convolutional networks."""

from typing import Any

import torch
from torch import nn

from benchmarks.conv_rows import EPSILON, Node
from benchmarks.workloads import Array, Workload


class _Sum(nn.Module):
    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first = first
        self.second = second

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) + self.second(x)


class _Mean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean((2, 3))


def _fill(module: nn.Module, **arrays: Array | None) -> nn.Module:
    for name, array in arrays.items():
        if array is not None:
            getattr(module, name).copy_(torch.from_numpy(array))
    return module


def _conv(params: dict[str, Array], node: Node) -> nn.Module:
    _, name, stride, dilation, groups = node
    weight, bias = params[f"{name}.w"], params.get(f"{name}.b")
    out, inp, kernel, _ = weight.shape
    module = nn.Conv2d(inp * groups, out, kernel, stride, kernel // 2 * dilation, dilation,
                       groups, bias is not None)  # fmt: skip
    return _fill(module, weight=weight, bias=bias)


def _norm(params: dict[str, Array], name: str) -> nn.Module:
    gamma, beta, mean, var = (params[f"{name}.{p}"] for p in ("gamma", "beta", "mean", "var"))
    module = nn.BatchNorm2d(len(gamma), eps=EPSILON)
    return _fill(module, weight=gamma, bias=beta, running_mean=mean, running_var=var)


def _dense(params: dict[str, Array], name: str) -> nn.Module:
    weight = params[f"{name}.w"]
    module = nn.Linear(weight.shape[1], weight.shape[0])
    return _fill(module, weight=weight, bias=params[f"{name}.b"])


def _build(params: dict[str, Array], node: Node) -> nn.Module:
    kind, *rest = node
    if kind == "seq":
        return nn.Sequential(*(_build(params, inner) for inner in rest))
    if kind == "sum":
        return _Sum(*(_build(params, inner) for inner in rest))
    if kind == "conv":
        return _conv(params, node)
    if kind == "norm":
        return _norm(params, rest[0])
    if kind == "dense":
        return _dense(params, rest[0])
    simple: dict[str, Any] = {"relu": nn.ReLU, "relu6": nn.ReLU6, "maxpool": nn.MaxPool2d,
                              "mean": _Mean}  # fmt: skip
    return simple[kind](*rest)


def network(work: Workload) -> nn.Module:
    """The row's network for inference."""
    return _build(work.params, work.options["tree"]).eval()
