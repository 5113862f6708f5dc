"""What zoos use of ``mindspore.boost``: gradients of several steps are summed before an update."""

from __future__ import annotations

from typing import Any

from tvmgraph.compat.composite import HyperMap
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, reject
from tvmgraph.nn import Cell


def gradient_accumulation_op(step: Any, cumulative_grad: Parameter, grad: Tensor) -> Tensor:
    """Adds a part of a gradient to a sum and returns the sum.

    Args:
        step: Number of steps, by which the gradient is divided.
        cumulative_grad: The sum, which is written.
        grad: The gradient, of the same shape.
    """
    return F.assign_add(cumulative_grad, F.cast(grad / step, cumulative_grad.dtype))


def gradient_clear_op(cumulative_grad: object) -> Tensor:
    """Makes a sum of gradients zero and returns it.

    Args:
        cumulative_grad: The sum, a parameter that is written.
    """
    return F.assign(cumulative_grad, F.zeros_like(cumulative_grad))


class GradientAccumulation(Cell):
    """Updates the parameters after several steps, by the sum of their gradients.

    Args:
        max_accumulation_step: Steps per update.
        optimizer: What updates.

    Inputs:
        The loss, which is returned, and the gradients of the optimizer's parameters.
    """

    def __init__(self, max_accumulation_step: int, optimizer: Cell) -> None:
        super().__init__()
        if isinstance(max_accumulation_step, bool) or max_accumulation_step < 1:
            rule = f"max_accumulation_step must be at least 1, not {max_accumulation_step!r}"
            reject(ArgumentError, "GradientAccumulation", rule)
        self._max_accumulation_step = max_accumulation_step
        self.optimizer = optimizer
        self.hyper_map = HyperMap()
        self._grad_accumulation = optimizer.parameters.clone("grad_accumulation", "zeros")
        self._accumulation_step = 0

    def construct(self, loss: Tensor, grads: tuple[Tensor, ...]) -> Tensor:
        """Adds gradients to the sum, and updates where it is complete."""
        for total, grad in zip(self._grad_accumulation, grads):
            gradient_accumulation_op(self._max_accumulation_step, total, grad)
        self._accumulation_step += 1
        if self._accumulation_step >= self._max_accumulation_step:
            self.optimizer(tuple(self._grad_accumulation))
            for total in self._grad_accumulation:
                gradient_clear_op(total)
            self._accumulation_step = 0
        return loss


class AutoBoost:
    """Leaves networks as they are: MindSpore's level ``"O0"``.

    Args:
        level: ``"O0"``.
        boost_config_dict: Settings of other levels.

    Raises:
        ArgumentError: for other levels, which change what is computed.
    """

    def __init__(self, level: str = "O0", boost_config_dict: object = "") -> None:
        if level != "O0":
            raise ArgumentError(
                f"level {level!r} freezes layers and merges normalizations, which is not offered",
                op="AutoBoost", fix="use 'O0'; amp and recompute save time",
            )  # fmt: skip
        self.level = level
        self.boost_config = boost_config_dict or {}

    def network_auto_process_train(
        self, network: object, optimizer: object
    ) -> tuple[object, object]:
        """Returns a network and its optimizer for training.

        Args:
            network: The network.
            optimizer: The optimizer.
        """
        return network, optimizer

    def network_auto_process_eval(self, network: object) -> object:
        """Returns a network for evaluation.

        Args:
            network: The network.
        """
        return network


__all__ = [
    "AutoBoost", "GradientAccumulation", "gradient_accumulation_op", "gradient_clear_op",
]  # fmt: skip
