"""Gradients of several processes that each train on their own batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.distributed import functions
from tvmgraph.distributed.context import settings
from tvmgraph.nn.cell import Cell

#: Bytes of gradients that travel together; messages of this size move at full speed.
_BUCKET = 4 << 20


class DistributedGradReducer(Cell):
    r"""Reduces gradients over processes: :math:`g = \sum_r g_r`, or their mean.

    Several gradients travel in one message.

    Args:
        parameters: The parameters that are trained.
        mean: Whether gradients are averaged; by default as ``gradients_mean`` of
            :func:`set_auto_parallel_context` says.
        degree: What the sum is divided by for a mean; by default the number of processes.
        fusion_type: Kept for MindSpore programs.
        group: The processes, by default all.

    Inputs:
        - **grads** (tuple of Tensor) - One gradient per parameter.

    Outputs:
        Tuple of Tensors of the same shapes.

    Raises:
        ArgumentError: if there is no such group.

    Example:
        >>> reducer = nn.DistributedGradReducer([], mean=True)
        >>> reducer((ops.ones((2,)),))[0].shape
        (2,)
    """

    def __init__(
        self,
        parameters: object,
        mean: bool | None = None,
        degree: int | None = None,
        fusion_type: int = 1,
        group: str = functions.WORLD,
    ) -> None:
        super().__init__(auto_prefix=False)
        self.mean = settings.gradients_mean if mean is None else mean
        self.place = functions.where(group)
        self.degree = self.place["parts"] if degree is None else degree

    def construct(self, grads: Any) -> tuple[Tensor, ...]:
        found: list[Any] = [None] * len(grads)
        for bucket in _buckets(grads):
            sums = F.all_reduced(*[grads[i] for i in bucket], how="sum", **self.place)
            for i, total in zip(bucket, sums):
                found[i] = total / self.degree if self.mean else total
        return tuple(found)


def _buckets(grads: Sequence[Tensor]) -> list[list[int]]:
    """Numbers of gradients of one dtype that travel together; the last layers' are first."""
    found: list[list[int]] = []
    open_: dict[object, tuple[list[int], int]] = {}
    for i in reversed(range(len(grads))):
        kind, size = grads[i].dtype, grads[i].size * grads[i].itemsize
        bucket, held = open_.get(kind, ([], _BUCKET))
        if held + size > _BUCKET:
            bucket, held = [], 0
            found.append(bucket)
        bucket.append(i)
        open_[kind] = bucket, held + size
    return found


__all__ = ["DistributedGradReducer"]
