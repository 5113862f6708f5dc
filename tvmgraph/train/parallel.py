"""Training cells as one program over all processes."""

from __future__ import annotations

from typing import Any

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.distributed import engine
from tvmgraph.distributed.api import data_axes, shard
from tvmgraph.distributed.context import settings
from tvmgraph.distributed.layout import Layout
from tvmgraph.distributed.sharded import DTensor
from tvmgraph.errors import ArgumentError, user_source
from tvmgraph.nn.cell import Cell


class Shared:
    """A cell over all processes, for ``parallel_mode="semi_auto_parallel"``.

    Args:
        cell: A training or evaluating cell.
    """

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self._runs: dict[int, Any] = {}

    def __call__(self, *batch: Any) -> Any:
        """Runs the cell on a batch: the whole one, or this process's part of it."""
        layouts = self._layouts(batch)
        if settings.dataset_strategy != "full_batch":
            batch = tuple(
                DTensor.from_local(b, layout) if isinstance(b, Tensor) and engine.world().size > 1
                else b for b, layout in zip(batch, layouts)
            )  # fmt: skip
        run = self._runs.get(len(batch))
        if run is None:
            strategy: Any = "auto" if settings.parallel_mode == "auto_parallel" else tuple(layouts)
            run = self._runs[len(batch)] = shard(self.cell, strategy)
        return run(*batch)

    def _layouts(self, batch: tuple[Any, ...]) -> list[Any]:
        given = settings.dataset_strategy
        if not isinstance(given, str):
            if len(given) != len(batch):
                raise ArgumentError(
                    f"dataset_strategy has {len(given)} entries for {len(batch)} columns",
                    op="Model.train", at=user_source(),
                )  # fmt: skip
            return list(given)
        mesh, axes = data_axes(self.cell)
        whole = Layout(mesh.shape, mesh.names)
        return [
            whole(axes, *["None"] * (b.ndim - 1)) if isinstance(b, Tensor) and b.ndim else None
            for b in batch
        ]


def begin(cell: Cell) -> None:
    """Gives all processes the parameters of rank 0, where the settings ask for it."""
    world = engine.world()
    if world.size > 1 and settings.parameter_broadcast:
        for p in cell.get_parameters():
            p.set_data(F.root_sent(p.value(), root=0, group="world", parts=world.size))


__all__ = ["Shared", "begin"]
