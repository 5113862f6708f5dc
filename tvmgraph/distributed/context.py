"""``set_auto_parallel_context``: how training is shared out among processes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from tvmgraph.compat.parallel import ParallelMode
from tvmgraph.distributed import engine
from tvmgraph.errors import ConfigError, user_source

_GRADIENTS = (ParallelMode.DATA_PARALLEL, ParallelMode.HYBRID_PARALLEL)
_PROGRAM = (ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL)


@dataclass
class AutoParallelContext:
    """Settings of training with several processes.

    Attributes:
        parallel_mode: ``"stand_alone"``; ``"data_parallel"``: every process trains on its own
            batches and gradients are reduced; ``"semi_auto_parallel"``: a training step is one
            program over all processes, of which the user splits some tensors;
            ``"auto_parallel"``: the planner splits them.
        device_num: Number of processes; it must be what was started.
        global_rank: Number of this process; it must be what the launcher says.
        gradients_mean: Whether gradients are averaged instead of added (``"data_parallel"``).
        parameter_broadcast: Whether all begin with the parameters of rank 0.
        dataset_strategy: ``"data_parallel"``: batches are this process's part; ``"full_batch"``:
            every process has the whole batch; a tuple: every column is this process's part by its
            :class:`Layout`. For ``"semi_auto_parallel"``.
        full_batch: The same as a bool.
        enable_parallel_optimizer: Whether the states of the optimizer are split among processes
            that have the same parameters (``"semi_auto_parallel"``).
    """

    parallel_mode: str = ParallelMode.STAND_ALONE
    device_num: int = 1
    global_rank: int = 0
    gradients_mean: bool = False
    parameter_broadcast: bool = False
    dataset_strategy: Any = "data_parallel"
    full_batch: bool = False
    enable_parallel_optimizer: bool = False

    @property
    def reduces_gradients(self) -> bool:
        """Whether every process has a program of its own and gradients are reduced."""
        return self.parallel_mode in _GRADIENTS

    @property
    def one_program(self) -> bool:
        """Whether a training step is one program over all processes."""
        return self.parallel_mode in _PROGRAM


settings = AutoParallelContext()
_WORDS = {
    "parallel_mode": ParallelMode.MODE_LIST, "dataset_strategy": ("data_parallel", "full_batch"),
}  # fmt: skip


def set_auto_parallel_context(**given: Any) -> None:
    """Says how training is shared out among the processes of the job.

    Args:
        **given: Fields of :class:`AutoParallelContext`.

    Raises:
        ConfigError: for an unknown name or value, or numbers that are not the launcher's; nothing
            is changed then.

    Example:
        >>> ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
        >>> ms.reset_auto_parallel_context()
    """
    world = engine.world()
    known = {f.name: type(f.default) for f in fields(settings)}
    facts = {"device_num": world.size, "global_rank": world.rank}
    for name, value in given.items():
        if name not in known:
            raise ConfigError(
                f"there is no setting {name!r}", op="set_auto_parallel_context", at=user_source(),
                fix=f"use {', '.join(known)}",
            )  # fmt: skip
        allowed = _WORDS.get(name)
        if name == "dataset_strategy" and isinstance(value, tuple):
            continue
        if not isinstance(value, known[name]) or (allowed and value not in allowed):
            wanted = ", ".join(map(repr, allowed)) if allowed else f"a {known[name].__name__}"
            raise ConfigError(f"{name} cannot be {value!r}", op="set_auto_parallel_context",
                              at=user_source(), fix=f"use {wanted}")  # fmt: skip
        if facts.get(name, value) != value:
            raise ConfigError(
                f"{name} is {facts[name]}, not {value}", op="set_auto_parallel_context",
                at=user_source(), fix="tvmgraph-run -n decides it; leave it out",
            )  # fmt: skip
    for name, value in given.items():
        setattr(settings, name, value)
    if "full_batch" in given and "dataset_strategy" not in given:
        settings.dataset_strategy = "full_batch" if settings.full_batch else "data_parallel"
    settings.full_batch = settings.dataset_strategy == "full_batch"


def get_auto_parallel_context(attr_key: str) -> Any:
    """Returns a setting.

    Raises:
        ConfigError: if there is none of this name.
    """
    known = [f.name for f in fields(settings)]
    if attr_key not in known:
        raise ConfigError(f"there is no setting {attr_key!r}", op="get_auto_parallel_context",
                          at=user_source(), fix=f"use {', '.join(known)}")  # fmt: skip
    facts = {"device_num": engine.world().size, "global_rank": engine.world().rank}
    return facts.get(attr_key, getattr(settings, attr_key))


def reset_auto_parallel_context() -> None:
    """Puts every setting back to its default."""
    for f in fields(settings):
        setattr(settings, f.name, f.default)


__all__ = [
    "AutoParallelContext", "get_auto_parallel_context", "reset_auto_parallel_context",
    "set_auto_parallel_context",
]  # fmt: skip
