"""Training cells in mixed precision."""

from __future__ import annotations

from collections.abc import Callable

from tvmgraph.amp.levels import auto_mixed_precision
from tvmgraph.amp.scaler import LossScaleManager
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import DType, float32
from tvmgraph.errors import DTypeError, reject, require_offered
from tvmgraph.nn.cell import Cell
from tvmgraph.nn.wrap import WithLossCell, _OutputTo32
from tvmgraph.optim import TrainOneStepCell, TrainOneStepWithLossScaleCell


def build_train_network(
    network: Cell,
    optimizer: object,
    loss_fn: Callable[..., Tensor] | None = None,
    level: str = "O0",
    boost_level: str = "O0",
    loss_scale_manager: LossScaleManager | None = None,
    **options: object,
) -> Cell:
    """Puts network, loss and optimizer together into one training step.

    Args:
        network: The network; changed by :func:`auto_mixed_precision`.
        optimizer: The optimizer.
        loss_fn: The loss; None if the network returns it.
        level: See :func:`auto_mixed_precision`.
        boost_level: Kept for MindSpore programs.
        loss_scale_manager: How the loss is scaled; not at all for None.
        options: ``keep_batchnorm_fp32`` and ``cast_model_type``, kept for MindSpore programs.

    Returns:
        A Cell that takes one step, in training mode.

    Raises:
        DTypeError: if ``loss_scale_manager`` is something else.
        ArgumentError: for any other option.

    Example:
        >>> net = nn.Dense(3, 2)
        >>> optimizer = nn.SGD(net.trainable_params(), 0.1)
        >>> step = ms.amp.build_train_network(net, optimizer, nn.MSELoss(), level="O2")
        >>> step(ops.ones((4, 3)), ops.ones((4, 2))).shape
        ()
    """
    require_offered("build_train_network", options, ("cast_model_type", "keep_batchnorm_fp32"))
    network = auto_mixed_precision(network, level)
    whole = network if loss_fn is None else WithLossCell(network, loss_fn)
    if loss_scale_manager is None:
        return TrainOneStepCell(whole, optimizer).set_train()
    if not isinstance(loss_scale_manager, LossScaleManager):
        reject(DTypeError, "build_train_network",
               f"loss_scale_manager is a {type(loss_scale_manager).__name__}",
               fix="use FixedLossScaleManager or DynamicLossScaleManager")  # fmt: skip
    cell = loss_scale_manager.get_update_cell()
    if cell is None:  # the optimizer divides by its own loss_scale
        sens = loss_scale_manager.get_loss_scale()
        return TrainOneStepCell(whole, optimizer, sens=sens).set_train()
    return TrainOneStepWithLossScaleCell(whole, optimizer, cell).set_train()


def _add_loss_network(network: Cell, loss_fn: Cell, cast_model_type: DType) -> Cell:
    """Returns network and loss, which is computed in float32, by MindSpore's name."""
    return WithLossCell(network if cast_model_type == float32 else _OutputTo32(network), loss_fn)


__all__ = ["build_train_network"]
