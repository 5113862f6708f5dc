"""Cells that give a network its batch in parts and add up what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.nn._checks import reject
from tvmgraph.nn.cell import Cell


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


__all__ = ["GradAccumulationCell", "MicroBatchInterleaved", "PipelineCell"]
