"""Adapter for PyTorch, eager and through torch.compile."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.peers import Call
from benchmarks.peers import torch_layers as layers
from benchmarks.peers.torch_networks import network
from benchmarks.peers.torch_training import training_step
from benchmarks.workloads import LENET_CONVS, LENET_DENSES, Array, Workload


def _add(work: Workload) -> Callable[..., Any]:
    return lambda x, y: x + y


def _mynet(work: Workload) -> Callable[..., Any]:
    return lambda x: x * 2.0 + 1.0


def _myop(work: Workload) -> Callable[..., Any]:
    def myop(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        power = (x * 2.0) ** 3.0
        return (power - y) * power

    return myop


def _dense_stack(params: dict[str, Array], layers: int) -> list[nn.Module]:
    modules: list[nn.Module] = []
    for i in range(layers):
        out, inp = params[f"w{i}"].shape
        dense = nn.Linear(inp, out)
        dense.weight.copy_(torch.from_numpy(params[f"w{i}"]))
        dense.bias.copy_(torch.from_numpy(params[f"b{i}"]))
        modules += [dense, nn.ReLU()]
    return modules[:-1]


def _mlp(work: Workload) -> Callable[..., Any]:
    return nn.Sequential(*_dense_stack(work.params, len(work.params) // 2)).eval()


def _lenet(work: Workload) -> Callable[..., Any]:
    modules: list[nn.Module] = []
    for i, (out, inp) in enumerate(LENET_CONVS):
        conv = nn.Conv2d(inp, out, 5)
        conv.weight.copy_(torch.from_numpy(work.params[f"conv{i}.w"]))
        conv.bias.copy_(torch.from_numpy(work.params[f"conv{i}.b"]))
        modules += [conv, nn.ReLU(), nn.MaxPool2d(2, 2)]
    modules += [nn.Flatten(), *_dense_stack(work.params, len(LENET_DENSES))]
    return nn.Sequential(*modules).eval()


BUILDERS = {
    "add": _add,
    "mynet": _mynet,
    "myop": _myop,
    "mlp": _mlp,
    "lenet": _lenet,
    "network": network,
    **layers.BUILDERS,
}


class TorchPeer:
    """Runs a row with gradients switched off for the whole process."""

    def __init__(self, compiled: bool, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.compiled = compiled

    def version(self) -> str:
        """Return the version of PyTorch."""
        return torch.__version__

    def build(self, work: Workload) -> Call:
        """Build, and for ``torch-compile`` compile, the row."""
        if work.model == "train":
            return training_step(work, self.compiled)
        function = BUILDERS[work.model](work)
        run = torch.compile(function) if self.compiled else function
        args = [torch.from_numpy(a) for a in work.args]
        return lambda: run(*args)

    def to_numpy(self, result: Any) -> np.ndarray:
        """Return a tensor as an array."""
        return result.numpy()


def create(variant: str, threads: int) -> TorchPeer:
    """Create the adapter for variant ``eager`` or ``compile``."""
    return TorchPeer(variant == "compile", threads)
