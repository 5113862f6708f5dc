"""Cells that put a network and a loss together, or compute the gradients of another Cell.

Others give a network its batch in parts and add up what it returns.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from tvmgraph import dtypes
from tvmgraph.compat.paths import as_package
from tvmgraph.core.op import F
from tvmgraph.core.parameter import ParameterTuple
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.nn._checks import boolean, reject
from tvmgraph.nn.cell import Cell

__all__ = [
    "GradAccumulationCell", "Jvp", "MicroBatchInterleaved", "PipelineCell", "Vjp", "WithEvalCell",
    "WithGradCell", "WithLossCell",
]  # fmt: skip


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


__path__, __getattr__ = as_package(__name__, "nn")  # a package in MindSpore


# ---- cells that compute gradients of other Cells -------------------------------------------------


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


# ---- parts of a batch ---------------------------------------------------------------------------


class _MicroBatch(Cell):
    """One of several equal parts of batches: ``_MicroBatch(4)(0, x, y)`` is the first quarter."""

    def __init__(self, micro_size: int) -> None:
        super().__init__()
        self.micro_size = micro_size

    def construct(self, i: int, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Returns the parts.

        Args:
            i: Which of them.
            inputs: The batches.

        Raises:
            ShapeError: if a batch has no such number of equal parts.
        """
        for x in inputs:
            if x.shape[0] % self.micro_size:
                reject(ShapeError, "_MicroBatch",
                       f"{x.shape[0]} rows are not {self.micro_size} equal parts")  # fmt: skip
        sizes = [x.shape[0] // self.micro_size for x in inputs]
        return tuple(F.narrow(x, 0, i * n, n) for x, n in zip(inputs, sizes))


class _InParts(Cell):
    """A network whose results for the parts of a batch are added up."""

    #: What the number of parts is called.
    COUNT = "micro_size"

    def __init__(self, network: Cell, count: int) -> None:
        super().__init__(auto_prefix=False)
        name = type(self).__name__
        if not isinstance(network, Cell):
            reject(DTypeError, name, f"network must be a Cell, not a {type(network).__name__}")
        if not isinstance(count, int):
            reject(DTypeError, name, f"{self.COUNT} must be an int, not a {type(count).__name__}")
        if count <= 0:
            reject(ArgumentError, name, f"{self.COUNT} must be positive, not {count}")
        self.network = network
        self._part = _MicroBatch(count)

    def construct(self, *inputs: Tensor) -> Any:
        result = self.network(*self._part(0, *inputs))
        for i in range(1, self._part.micro_size):
            result = result + self.network(*self._part(i, *inputs))
        return result


class GradAccumulationCell(_InParts):
    r"""Adds up the losses of the parts of a batch, so that their gradients add up.

    .. math::
        y = \sum_i network(x_i)

    Args:
        network: The network with its loss.
        micro_size: In how many parts the batch is cut along its first axis.

    Inputs:
        - **inputs** (Tensor) - What the network takes; all are cut.

    Outputs:
        The sum.

    Raises:
        DTypeError: If `network` is no Cell or `micro_size` no int.
        ArgumentError: If `micro_size` is not positive.
        ShapeError: If a batch cannot be cut in so many equal parts.

    Example:
        >>> nn.GradAccumulationCell(nn.SmoothL1Loss(reduction="sum"), 2)(
        ...     Tensor([1.0, 4.0]), Tensor([1.0, 2.0])).item()
        1.5
    """

    def __init__(self, network: Cell, micro_size: int) -> None:
        super().__init__(network, micro_size)
        self.micro_size = micro_size


class PipelineCell(GradAccumulationCell):
    """Adds up the losses of the parts of a batch, which pass the stages one after the other.

    Here every stage is on the one device.

    Args:
        network: The network with its loss.
        micro_size: In how many parts the batch is cut along its first axis.
        stage_config: Names of Cells -> number of their stage, which Cells keep as
            ``pipeline_stage``.
        segment_config: Names of Cells -> number of their segment, kept as ``pipeline_segment``.

    Inputs:
        - **inputs** (Tensor) - What the network takes; all are cut.

    Outputs:
        The sum.

    Raises:
        DTypeError: If `network` is no Cell or `micro_size` no int.
        ArgumentError: If `micro_size` is not positive, or the network has no Cell of a name.
        ShapeError: If a batch cannot be cut in so many equal parts.

    Example:
        >>> net = nn.PipelineCell(nn.SmoothL1Loss(reduction="sum"), 2)
        >>> net(Tensor([1.0, 4.0]), Tensor([1.0, 2.0])).item()
        1.5
    """

    def __init__(
        self,
        network: Cell,
        micro_size: int,
        stage_config: Mapping[str, int] | None = None,
        segment_config: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(network, micro_size)
        cells = dict(network.cells_and_names())
        for word, numbers in (("stage", stage_config), ("segment", segment_config)):
            for name, number in (numbers or {}).items():
                if name not in cells:
                    reject(ArgumentError, "PipelineCell",
                           f"{word}_config: the network has no Cell {name!r}")  # fmt: skip
                setattr(cells[name], f"pipeline_{word}", number)


class MicroBatchInterleaved(_InParts):
    """Adds up what a network returns for the parts of a batch.

    On several devices one part is computed while another one is sent.

    Args:
        network: The network with its loss.
        interleave_num: In how many parts the batch is cut along its first axis.

    Inputs:
        - **inputs** (Tensor) - What the network takes; all are cut.

    Outputs:
        The sum.

    Raises:
        DTypeError: If `network` is no Cell or `interleave_num` no int.
        ArgumentError: If `interleave_num` is not positive.
        ShapeError: If a batch cannot be cut in so many equal parts.

    Example:
        >>> net = nn.MicroBatchInterleaved(nn.SmoothL1Loss(reduction="sum"))
        >>> net(Tensor([1.0, 4.0]), Tensor([1.0, 2.0])).item()
        1.5
    """

    COUNT = "interleave_num"

    def __init__(self, network: Cell, interleave_num: int = 2) -> None:
        super().__init__(network, interleave_num)
        self.interleave_num = interleave_num


class _VirtualDatasetCell(Cell):
    """A network, around which MindSpore splits the data over devices.

    Args:
        backbone: The network.
    """

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *args: object, **kwargs: object) -> Any:
        """Computes the network."""
        return self._backbone(*args, **kwargs)


class _OutputTo32(_VirtualDatasetCell):
    """A network whose results are cast to float32; it has the network's attributes, too.

    Args:
        backbone: The network.
    """

    def __init__(self, backbone: Cell) -> None:
        super().__init__(backbone)
        self.set_output_float(dtypes.float32)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_"):
                raise
            return getattr(self._backbone, name)
