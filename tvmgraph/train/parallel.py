"""Training cells as one program over all processes."""

from __future__ import annotations

from typing import Any, ClassVar

from tvmgraph.compat.parallel import ParallelMode
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.distributed import engine
from tvmgraph.distributed.api import data_axes, shard
from tvmgraph.distributed.context import AutoParallelContext, settings
from tvmgraph.distributed.layout import Layout
from tvmgraph.distributed.sharded import DTensor
from tvmgraph.errors import ArgumentError, DTypeError, user_source
from tvmgraph.nn.cell import Cell


class Shared:
    """A cell over all processes, for ``parallel_mode="semi_auto_parallel"``.

    Args:
        cell: A training or evaluating cell.
        options: How it is shared out.
    """

    def __init__(self, cell: Cell, options: AutoParallelContext = settings) -> None:
        self.cell, self.options = cell, options
        self._runs: dict[int, Any] = {}

    def __call__(self, *batch: Any) -> Any:
        """Runs the cell on a batch: the whole one, or this process's part of it."""
        layouts = self._layouts(batch)
        if self.options.dataset_strategy != "full_batch":
            batch = tuple(
                DTensor.from_local(b, layout) if isinstance(b, Tensor) and engine.world().size > 1
                else b for b, layout in zip(batch, layouts)
            )  # fmt: skip
        run = self._runs.get(len(batch))
        if run is None:
            planned = self.options.parallel_mode == ParallelMode.AUTO_PARALLEL
            strategy: Any = "auto" if planned else tuple(layouts)
            run = self._runs[len(batch)] = shard(self.cell, strategy)
        return run(*batch)

    def _layouts(self, batch: tuple[Any, ...]) -> list[Any]:
        given = self.options.dataset_strategy
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


class AutoParallel(Cell):
    """A network as one program over all processes, called or given to :class:`.Model`.

    Args:
        network: The network, or a training cell.
        parallel_mode: ``"semi_auto"``: what the user has split is split as asked;
            ``"sharding_propagation"`` or ``"recursive_programming"``: the planner splits it.

    Inputs:
        - The network's; tensors are this process's part of the batch unless
          :meth:`dataset_strategy` says otherwise.

    Raises:
        DTypeError: if ``network`` is no Cell.
        ArgumentError: if there is no such mode.

    Example:
        >>> net = ms.parallel.AutoParallel(nn.Dense(2, 3))
        >>> net(ops.ones((4, 2))).shape
        (4, 3)
    """

    _MODES: ClassVar = {
        "semi_auto": ParallelMode.SEMI_AUTO_PARALLEL,
        "sharding_propagation": ParallelMode.AUTO_PARALLEL,
        "recursive_programming": ParallelMode.AUTO_PARALLEL,
    }

    def __init__(self, network: Cell, parallel_mode: str = "semi_auto") -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(network, Cell):
            raise DTypeError(f"network must be a Cell, not {type(network).__name__}",
                             op="AutoParallel", at=user_source())  # fmt: skip
        if parallel_mode not in self._MODES:
            raise ArgumentError(
                f"parallel_mode must be one of {', '.join(self._MODES)}, not {parallel_mode!r}",
                op="AutoParallel", at=user_source(),
            )  # fmt: skip
        self.network = network
        self.options = AutoParallelContext(parallel_mode=self._MODES[parallel_mode])
        self._shared = Shared(network, self.options)

    def dataset_strategy(self, config: str | tuple[Any, ...]) -> None:
        """Says which part of the batch every process has.

        Args:
            config: ``"data_parallel"``: its own part; ``"full_batch"``: the whole one; a tuple: its
                part by a :class:`Layout` for every input.

        Raises:
            ArgumentError: if it is something else.
        """
        if not isinstance(config, tuple) and config not in ("data_parallel", "full_batch"):
            raise ArgumentError(
                f"config must be 'data_parallel', 'full_batch' or a tuple, not {config!r}",
                op="AutoParallel.dataset_strategy", at=user_source(),
            )  # fmt: skip
        self.options.dataset_strategy = config

    def construct(self, *batch: Any) -> Any:
        return self._shared(*batch)


def begin(cell: Cell) -> None:
    """Gives all processes the parameters of rank 0, where the settings ask for it."""
    world = engine.world()
    if world.size > 1 and settings.parameter_broadcast:
        for p in cell.get_parameters():
            p.set_data(F.root_sent(p.value(), root=0, group="world", parts=world.size))


__all__ = ["AutoParallel", "Shared", "begin"]
