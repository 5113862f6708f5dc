"""Cells that compute gradients of other Cells."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tvmgraph.core.parameter import ParameterTuple
from tvmgraph.nn.cell import Cell
from tvmgraph.nn.wrap import WithLossCell


class WithGradCell(Cell):
    """Computes the gradients of a network's parameters.

    Args:
        network: The network.
        loss_fn: The loss of its output and the label; None when the network returns the loss.
        sens: Factor of the loss; 1 by default.

    Inputs:
        - **inputs** - Those of the network, then the label.

    Outputs:
        One gradient per trainable parameter.

    Example:
        >>> net = nn.WithGradCell(nn.Dense(3, 2), nn.MSELoss())
        >>> [g.shape for g in net(ops.ones((4, 3)), ops.ones((4, 2)))]
        [(2, 3), (2,)]
    """

    def __init__(self, network: Any, loss_fn: Any = None, sens: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.loss_fn, self.sens = network, loss_fn, sens
        self.weights = ParameterTuple(network.trainable_params())
        grad = importlib.import_module("tvmgraph.autodiff").GradOperation
        self.grad = grad(get_by_list=True, sens_param=sens is not None)
        self.network_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)
        self.network_with_loss.set_train()

    def construct(self, *inputs: object) -> Any:
        sens = () if self.sens is None else (self.sens,)
        return self.grad(self.network_with_loss, self.weights)(*inputs, *sens)


class Jvp(Cell):
    """Computes a function and its derivative in a direction.

    Args:
        fn: The function or Cell.

    Inputs:
        - **inputs** - Those of the function, then the direction, a tuple for several inputs.

    Outputs:
        Result and derivative.

    Example:
        >>> [float(t) for t in nn.Jvp(ops.square)(Tensor(3.0), Tensor(1.0))]
        [9.0, 6.0]
    """

    def __init__(self, fn: Callable[..., object]) -> None:
        super().__init__()
        self.fn = fn

    def construct(self, *args: Any) -> Any:
        *inputs, v = args
        jvp = importlib.import_module("tvmgraph.autodiff").jvp
        if len(inputs) == 1:
            return jvp(self.fn, inputs[0], v)
        return jvp(self.fn, tuple(inputs), tuple(v))


class Vjp(Cell):
    """Computes a function and its gradients, weighted by a factor per element of the result.

    Args:
        fn: The function or Cell.

    Inputs:
        - **inputs** - Those of the function, then the weights.

    Outputs:
        Result and gradient, a tuple of them for several inputs.

    Example:
        >>> [float(t) for t in nn.Vjp(ops.square)(Tensor(3.0), Tensor(2.0))]
        [9.0, 12.0]
    """

    def __init__(self, fn: Callable[..., object]) -> None:
        super().__init__()
        self.fn = fn

    def construct(self, *args: object) -> Any:
        *inputs, v = args
        found, pull = importlib.import_module("tvmgraph.autodiff").vjp(self.fn, *inputs)
        gradients = pull(v)
        if len(inputs) == 1 and isinstance(gradients, tuple):
            gradients = gradients[0]
        return found, gradients


__all__ = ["Jvp", "Vjp", "WithGradCell"]
