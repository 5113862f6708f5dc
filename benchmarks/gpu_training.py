"""The training steps of the check on a GPU in PyTorch: float32 weights, products of halves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Losses = dict[str, Callable[[Any, Any, dict[str, Any]], Any]]
_LOSS_SCALE = 1024.0  # as in gpu_cases
_STATISTICS = ("moving_mean", "moving_variance")
#: What the optimizers keep; PyTorch's make their own.
_STATE = ("moment", "beta1_power", "beta2_power", "learning_rate", "global_step", "accum", "stat.")


def is_training(name: str) -> bool:
    """Whether a row is a training step."""
    return name in _LOSSES


def step_of(torch: Any, name: str, x: Any, compiled: str = "") -> Callable[[], Any]:
    """Returns a function that runs one step and returns the loss.

    Args:
        torch: The module.
        name: The row.
        x: Its inputs, also by name.
        compiled: Mode of ``torch.compile``; empty for eager.
    """
    w = {k: v.clone() for k, v in x.named.items() if not k.startswith(("inputs_", *_STATE))}
    if name.startswith("resnet"):
        w = {k: _channels_last(torch, v) for k, v in w.items()}
    trained = [v.requires_grad_() for k, v in w.items() if not k.endswith(_STATISTICS)]
    optimizer = _optimizer(torch, name, trained)

    def loss() -> Any:
        with torch.autocast("cuda", torch.bfloat16 if name.startswith("bert") else torch.float16):
            return _LOSSES[name](torch, x, w)

    forward = torch.compile(loss, mode=compiled) if compiled else loss

    def step() -> Any:
        value = forward()
        (value * _LOSS_SCALE).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return value

    return step


def _optimizer(torch: Any, name: str, weights: list[Any]) -> Any:
    if name.startswith("bert"):
        return torch.optim.Adam(weights, 1e-4, fused=True)
    return torch.optim.SGD(weights, 1e-3 / _LOSS_SCALE, 0.9, fused=True)


def _channels_last(torch: Any, tensor: Any) -> Any:
    is_weight = tensor.ndim == 4
    return tensor.to(memory_format=torch.channels_last) if is_weight else tensor


def _resnet18(torch: Any, x: Any, w: dict[str, Any]) -> Any:
    f = torch.nn.functional

    def conv(y: Any, name: str, stride: int) -> Any:
        weight, norm = w[f"{name}.0.weight"], [w[f"{name}.1.{k}"] for k in _STATISTICS]
        y = f.conv2d(y, weight, None, stride, weight.shape[-1] // 2)
        gamma, beta = w[f"{name}.1.gamma"], w[f"{name}.1.beta"]
        return f.batch_norm(y, *norm, gamma, beta, training=True, momentum=0.1, eps=1e-5)

    y = x[0].to(memory_format=torch.channels_last)
    y = f.max_pool2d(f.pad(torch.relu(conv(y, "stem.0", 2)), (0, 1, 0, 1)), 3, 2)
    for number in range(8):
        name, stride = f"stages.{number}", 2 if number in (2, 4, 6) else 1
        side = conv(y, f"{name}.shortcut", stride) if f"{name}.shortcut.0.weight" in w else y
        h = torch.relu(conv(y, f"{name}.convolutions.0", stride))
        y = torch.relu(conv(h, f"{name}.convolutions.2", 1) + side)
    logits = f.linear(y.mean((2, 3)), w["head.weight"], w["head.bias"])
    return f.cross_entropy(logits.float(), x[1].long())


def _bert(torch: Any, x: Any, w: dict[str, Any]) -> Any:
    from gpu_peers import encoder_layer

    return torch.nn.functional.mse_loss(encoder_layer(torch, x[0], w, "").float(), x[1])


_LOSSES: Losses = {"resnet18_training": _resnet18, "bert_training": _bert}
