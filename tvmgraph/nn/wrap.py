"""Cells that put a network and a loss together."""

from __future__ import annotations

from collections.abc import Callable

from tvmgraph import dtypes
from tvmgraph.compat.paths import as_package
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError
from tvmgraph.nn._checks import boolean, reject
from tvmgraph.nn.cell import Cell


def _require_callables(op: str, **parts: object) -> None:
    for name, part in parts.items():
        if not callable(part):
            reject(DTypeError, op, f"{name} must be a Cell or a function, "
                   f"not {type(part).__name__}")  # fmt: skip


class WithLossCell(Cell):
    r"""Computes the loss of a network: :math:`loss(backbone(data), label)`.

    Args:
        backbone: The network.
        loss_fn: The loss, of the output and the label.

    Inputs:
        - **data** (Tensor) - Input of the network.
        - **label** (Tensor) - Second input of the loss.

    Outputs:
        What the loss returns.

    Raises:
        DTypeError: if an argument cannot be called.

    Example:
        >>> net = nn.WithLossCell(nn.Dense(3, 2), nn.MSELoss())
        >>> net(ops.ones((4, 3)), ops.ones((4, 2))).shape
        ()
    """

    def __init__(self, backbone: Callable[..., object], loss_fn: Callable[..., Tensor]) -> None:
        super().__init__(auto_prefix=False)
        _require_callables("WithLossCell", backbone=backbone, loss_fn=loss_fn)
        self._backbone = backbone
        self._loss_fn = loss_fn

    @property
    def backbone_network(self) -> Callable[..., object]:
        """The network."""
        return self._backbone

    def construct(self, data: Tensor, label: Tensor) -> Tensor:
        return self._loss_fn(self._backbone(data), label)


class WithEvalCell(Cell):
    r"""Computes loss, output and label for metrics.

    Args:
        network: The network.
        loss_fn: The loss, of the output and the label.
        add_cast_fp32: Whether output and float labels are cast to float32 before the loss.

    Inputs:
        - **data** (Tensor) - Input of the network.
        - **label** (Tensor) - Second input of the loss.

    Outputs:
        Tuple of loss, output and label.

    Raises:
        DTypeError: if an argument cannot be called.

    Example:
        >>> net = nn.WithEvalCell(nn.Dense(3, 2), nn.MSELoss())
        >>> len(net(ops.ones((4, 3)), ops.ones((4, 2))))
        3
    """

    def __init__(
        self,
        network: Callable[..., object],
        loss_fn: Callable[..., Tensor],
        add_cast_fp32: bool = False,
    ) -> None:
        super().__init__(auto_prefix=False)
        _require_callables("WithEvalCell", network=network, loss_fn=loss_fn)
        self._network = network
        self._loss_fn = loss_fn
        self.add_cast_fp32 = boolean("WithEvalCell", "add_cast_fp32", add_cast_fp32)

    def construct(self, data: Tensor, label: Tensor) -> tuple[Tensor, object, Tensor]:
        output = self._network(data)
        if self.add_cast_fp32:
            output = F.cast(output, dtypes.float32)
            if label.dtype.is_float:  # class numbers stay integers
                label = F.cast(label, dtypes.float32)
        return self._loss_fn(output, label), output, label


__all__ = ["WithEvalCell", "WithLossCell"]


class _VirtualDatasetCell(Cell):
    """Calls a network; where MindSpore splits the batch among devices, the program is given it."""

    def __init__(self, backbone: Callable[..., object]) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *inputs: Tensor) -> object:
        return self._backbone(*inputs)


__path__, __getattr__ = as_package(__name__, "nn")  # a package in MindSpore
