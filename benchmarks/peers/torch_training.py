"""Training steps with PyTorch."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.peers.torch_layers import bert
from benchmarks.training_rows import ADAM, MOMENTUM, resnet18_convs
from benchmarks.workloads import LENET_CONVS, LENET_DENSES, Workload

Params = dict[str, torch.Tensor]
Forward = Callable[[torch.Tensor], torch.Tensor]


def _denses(p: Params, layers: int, x: torch.Tensor) -> torch.Tensor:
    for i in range(layers):
        x = F.linear(x, p[f"w{i}"], p[f"b{i}"])
        x = F.relu(x) if i < layers - 1 else x
    return x


def _mlp(p: Params) -> Forward:
    return lambda x: _denses(p, len(p) // 2, x)


def _lenet(p: Params) -> Forward:
    def forward(x: torch.Tensor) -> torch.Tensor:
        for i in range(len(LENET_CONVS)):
            x = F.max_pool2d(F.relu(F.conv2d(x, p[f"conv{i}.w"], p[f"conv{i}.b"])), 2)
        return _denses(p, len(LENET_DENSES), x.flatten(1))

    return forward


def _resnet18(p: Params) -> Forward:
    convs = {name: (kernel, stride) for name, _, _, kernel, stride in resnet18_convs()}
    dtype = p["w0"].dtype
    running = {
        name: (
            torch.zeros(len(p[f"{name}.gamma"]), dtype=dtype),
            torch.ones(len(p[f"{name}.gamma"]), dtype=dtype),
        )
        for name in convs
    }

    def conv(name: str, x: torch.Tensor) -> torch.Tensor:
        kernel, stride = convs[name]
        y = F.conv2d(x, p[f"{name}.w"], None, stride, kernel // 2)
        mean, variance = running[name]
        return F.batch_norm(
            y, mean, variance, p[f"{name}.gamma"], p[f"{name}.beta"], True, 0.1, 1e-5
        )

    def forward(x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(conv("stem", x)), 3, 2, 1)
        for block in [f"{stage}.{i}" for stage in range(4) for i in range(2)]:
            side = conv(f"{block}.side", x) if f"{block}.side" in convs else x
            x = F.relu(conv(f"{block}.b", F.relu(conv(f"{block}.a", x))) + side)
        return F.linear(x.mean((2, 3)), p["w0"], p["b0"])

    return forward


MODELS = {"mlp": _mlp, "lenet": _lenet, "resnet18": _resnet18, "bert": bert}


def _optimizer(name: str, rate: float, params: list[torch.Tensor]) -> torch.optim.Optimizer:
    if name == "adam":
        betas = (ADAM["beta1"], ADAM["beta2"])
        return torch.optim.Adam(params, rate, betas, ADAM["eps"])
    return torch.optim.SGD(params, rate, MOMENTUM if name == "momentum" else 0.0)


def training_step(
    work: Workload, compiled: bool = False, dtype: torch.dtype = torch.float32
) -> Callable[[], Any]:
    """Return a function that takes one step and returns the loss before it.

    Args:
        work: The row.
        compiled: Whether ``torch.compile`` compiles forward and backward.
        dtype: Type of all floating-point numbers.
    """
    params = {
        name: torch.from_numpy(array.copy()).to(dtype).requires_grad_()
        for name, array in work.params.items()
    }
    forward = MODELS[work.options["model"]](params)
    forward = torch.compile(forward) if compiled else forward
    optimizer = _optimizer(work.options["optimizer"], work.options["rate"], list(params.values()))
    x, target = (torch.from_numpy(a) for a in work.args)
    x = x.to(dtype)
    classes = work.options["loss"] == "cross_entropy"
    target = target.long() if classes else target.to(dtype)
    loss_of = F.cross_entropy if classes else F.mse_loss

    def step() -> torch.Tensor:
        with torch.enable_grad():
            optimizer.zero_grad()
            loss = loss_of(forward(x), target)
            loss.backward()
            optimizer.step()
        return loss.detach()

    return step
