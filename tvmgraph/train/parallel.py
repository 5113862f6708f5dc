"""Training cells as one program over all processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tvmgraph.compat.parallel import ParallelMode
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.distributed import engine
from tvmgraph.distributed.api import data_axes, mesh_for, shard
from tvmgraph.distributed.context import AutoParallelContext, settings
from tvmgraph.distributed.layout import Layout, Mesh, layout_of, spec_of
from tvmgraph.distributed.sharded import DTensor
from tvmgraph.errors import ArgumentError, DTypeError, reject
from tvmgraph.nn.cell import Cell


class Shared:
    """A cell over all processes, for ``parallel_mode="semi_auto_parallel"``.

    Args:
        cell: A training or evaluating cell.
        options: How it is shared out.
    """

    def __init__(self, cell: Cell, options: AutoParallelContext = settings) -> None:
        self.cell, self.options = cell, options
        self._runs: dict[int, Callable[..., object]] = {}

    def __call__(self, *batch: object) -> Any:
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
        before = settings.enable_parallel_optimizer
        settings.enable_parallel_optimizer = self.options.enable_parallel_optimizer
        try:
            return run(*batch)
        finally:
            settings.enable_parallel_optimizer = before

    def _layouts(self, batch: tuple[object, ...]) -> list[Any]:
        given = self.options.dataset_strategy
        if not isinstance(given, str):
            if len(given) != len(batch):
                rule = f"dataset_strategy has {len(given)} entries for {len(batch)} columns"
                reject(ArgumentError, "Model.train", rule)
            mesh = mesh_for(given) or data_axes(self.cell)[0]
            return [_layout(s, b, mesh) for s, b in zip(given, batch)]
        mesh, axes = data_axes(self.cell)
        whole = Layout(mesh.shape, mesh.names)
        return [
            whole(axes, *["None"] * (b.ndim - 1)) if isinstance(b, Tensor) and b.ndim else None
            for b in batch
        ]


def _layout(strategy: Any, part: Any, mesh: Mesh) -> Any:
    """Returns the layout of a column of which this process has a part."""
    if strategy is None or isinstance(strategy, Layout) or not isinstance(part, Tensor):
        return strategy
    whole = [n * c for n, c in zip(part.shape, strategy)]
    return layout_of(mesh, spec_of(strategy, whole, mesh, "dataset_strategy", "Model.train"))


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
                             op="AutoParallel")  # fmt: skip
        if parallel_mode not in self._MODES:
            modes = ", ".join(self._MODES)
            reject(ArgumentError, "AutoParallel",
                   f"parallel_mode must be one of {modes}, not {parallel_mode!r}")  # fmt: skip
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
            rule = f"config must be 'data_parallel', 'full_batch' or a tuple, not {config!r}"
            reject(ArgumentError, "AutoParallel.dataset_strategy", rule)
        self.options.dataset_strategy = config

    def hsdp(
        self, shard_size: int = -1, threshold: int = 64, optimizer_level: str = "level1"
    ) -> None:
        """Splits the states of the optimizer among processes that have the same parameters.

        Args:
            shard_size: Kept for MindSpore programs; all these processes take part.
            threshold: Kept for MindSpore programs.
            optimizer_level: Kept for MindSpore programs.

        Raises:
            ArgumentError: if an argument is none that MindSpore has.
        """
        numbers = isinstance(shard_size, int) and isinstance(threshold, int)
        sized = numbers and (shard_size > 0 or shard_size == -1) and threshold >= 0
        if not sized or optimizer_level not in ("level1", "level2", "level3"):
            raise ArgumentError(
                "shard_size is positive or -1, threshold not negative, and optimizer_level one of "
                "level1, level2 and level3", op="AutoParallel.hsdp",
            )  # fmt: skip
        self.options.enable_parallel_optimizer = True

    def pipeline(
        self, stages: int = 1, output_broadcast: bool = False, interleave: bool = False,
        scheduler: str = "1f1b",
    ) -> None:  # fmt: skip
        """Takes one stage only, as pipelines are not offered.

        Args:
            stages: Number of stages.
            output_broadcast: Left aside with one stage.
            interleave: Left aside with one stage.
            scheduler: Left aside with one stage.

        Raises:
            ArgumentError: for more stages.
        """
        if stages != 1:
            raise ArgumentError(f"there is one stage, not {stages}", op="AutoParallel.pipeline",
                                fix="split tensors instead")  # fmt: skip

    def get_pipeline_stages(self) -> int:
        """Returns 1."""
        return 1

    def construct(self, *batch: object) -> object:
        return self._shared(*batch)


def _keep(name: str) -> None:
    def kept(self: AutoParallel, *_: object, **__: object) -> None:
        """Kept for MindSpore programs; it changes nothing here."""

    kept.__name__, kept.__qualname__ = name, f"AutoParallel.{name}"
    setattr(AutoParallel, name, kept)


for _name in (  # how messages are joined and what is written about splits; see context.py
    "comm_fusion", "disable_gradient_fp32_sync", "disable_loss_repeated_mean",
    "disable_strategy_file_only_for_trainable_params", "enable_fp32_communication",
    "enable_gradients_mean", "load_operator_strategy_file", "load_param_strategy_file",
    "no_init_parameters_in_compile", "save_operator_strategy_file", "save_param_strategy_file",
    "set_group_ckpt_save_file", "transformer_opt",
):  # fmt: skip
    _keep(_name)


def begin(cell: Cell) -> None:
    """Gives all processes the parameters of rank 0, where the settings ask for it.

    Args:
        cell: The Cell whose parameters they are.
    """
    world = engine.world()
    if world.size > 1 and settings.parameter_broadcast:
        for p in cell.get_parameters():
            p.set_data(F.root_sent(p.value(), root=0, group="world", parts=world.size))


__all__ = ["AutoParallel", "Shared", "begin"]
