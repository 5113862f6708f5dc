"""``set_auto_parallel_context``: how training is shared out among processes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from tvmgraph.compat.parallel import ParallelMode
from tvmgraph.distributed import engine
from tvmgraph.errors import ConfigError, reject

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
        dataset_strategy: ``"data_parallel"``: batches are this process's shard; ``"full_batch"``:
            every process has the whole batch; a tuple: every column is this process's shard by its
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
#: Settings of MindSpore that change nothing here, with their defaults: how messages are joined,
#: how splits are searched for and in which precision gradients travel is decided by the package,
#: and checkpoints are whole, so that nothing about splits is written beside them.
_KEPT: dict[str, object] = {
    "all_reduce_fusion_config": [], "auto_parallel_search_mode": "recursive_programming",
    "comm_fusion": {}, "communi_parallel_mode": "all_group_parallel", "enable_alltoall": False,
    "force_fp32_communication": False, "full_batch_is_set": False, "gradient_fp32_sync": True,
    "group_ckpt_save_file": "", "init_param_in_compile": True, "loss_repeated_mean": True,
    "optimizer_weight_shard_aggregated_save": False, "optimizer_weight_shard_size": -1,
    "parallel_optimizer_config": {}, "pipeline_config": {}, "pipeline_result_broadcast": False,
    "search_mode": "recursive_programming", "sharding_propagation": False,
    "strategy_ckpt_config": {}, "strategy_ckpt_load_file": "", "strategy_ckpt_save_file": "",
}  # fmt: skip
#: Settings of MindSpore whose other values are not offered.
_FIXED: dict[str, object] = {
    "auto_pipeline": False, "dump_device_local_norm": False, "dump_local_norm": False,
    "dump_local_norm_path": "", "grad_accumulation_step": 1, "pipeline_interleave": False,
    "pipeline_scheduler": "1f1b", "pipeline_stages": 1,
}  # fmt: skip
#: How MindSpore searches for splits, with its defaults; the planner here asks nobody.
_SEARCH: dict[str, object] = {
    "algo_approxi_epsilon": 0.1, "elementwise_op_strategy_follow": False,
    "enable_algo_approxi": False, "fully_use_devices": False, "tensor_slice_align_enable": False,
    "tensor_slice_align_size": 16,
}  # fmt: skip
_kept: dict[str, object] = {}
_search = dict(_SEARCH)
_WORDS = {
    "parallel_mode": ParallelMode.MODE_LIST, "dataset_strategy": ("data_parallel", "full_batch"),
}  # fmt: skip


def set_auto_parallel_context(**given: object) -> None:
    """Says how training is shared out among the processes of the job.

    Args:
        **given: Fields of :class:`AutoParallelContext`. MindSpore's other settings are taken and
            change nothing; of a few, such as ``pipeline_stages``, only the default is taken.

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
    others = {n: v for n, v in given.items() if n in _KEPT or n in _FIXED}
    for name, value in others.items():
        _check_kept("set_auto_parallel_context", name, value)
    given = {n: v for n, v in given.items() if n not in others}
    for name, value in given.items():
        if name not in known:
            reject(ConfigError, "set_auto_parallel_context", f"there is no setting {name!r}",
                   fix=f"use {', '.join(known)}")  # fmt: skip
        allowed = _WORDS.get(name)
        if name == "dataset_strategy" and isinstance(value, tuple):
            continue
        if not isinstance(value, known[name]) or (allowed and value not in allowed):
            wanted = ", ".join(map(repr, allowed)) if allowed else f"a {known[name].__name__}"
            raise ConfigError(f"{name} cannot be {value!r}", op="set_auto_parallel_context",
                              fix=f"use {wanted}")  # fmt: skip
        if facts.get(name, value) != value:
            reject(ConfigError, "set_auto_parallel_context",
                   f"{name} is {facts[name]}, not {value}",
                   fix="tvmgraph-run -n decides it; leave it out")  # fmt: skip
    _kept.update(others)
    for name, value in given.items():
        setattr(settings, name, value)
    if "full_batch" in given and "dataset_strategy" not in given:
        settings.dataset_strategy = "full_batch" if settings.full_batch else "data_parallel"
    settings.full_batch = settings.dataset_strategy == "full_batch"


def _check_kept(op: str, name: str, value: object) -> None:
    default = {**_KEPT, **_FIXED, **_SEARCH}[name]
    wanted = f"{default!r}" if name in _FIXED else f"a {type(default).__name__}"
    fits = value == default if name in _FIXED else isinstance(value, type(default))
    if not fits:
        raise ConfigError(f"{name} cannot be {value!r}", op=op, fix=f"use {wanted}")


def get_auto_parallel_context(attr_key: str) -> Any:
    """Returns a setting.

    Args:
        attr_key: Name of the setting.

    Raises:
        ConfigError: if there is none of this name.
    """
    known = [f.name for f in fields(settings)]
    if attr_key in _KEPT or attr_key in _FIXED:
        return _kept.get(attr_key, _KEPT.get(attr_key, _FIXED.get(attr_key)))
    if attr_key not in known:
        raise ConfigError(f"there is no setting {attr_key!r}", op="get_auto_parallel_context",
                          fix=f"use {', '.join(known)}")  # fmt: skip
    facts = {"device_num": engine.world().size, "global_rank": engine.world().rank}
    return facts.get(attr_key, getattr(settings, attr_key))


def reset_auto_parallel_context() -> None:
    """Puts every setting back to its default."""
    _kept.clear()
    for f in fields(settings):
        setattr(settings, f.name, f.default)


def _require_search(op: str, name: str) -> None:
    if name not in _SEARCH:
        raise ConfigError(f"there is no setting {name!r}", op=op, fix=f"use {', '.join(_SEARCH)}")


def set_algo_parameters(**kwargs: object) -> None:
    """Takes how MindSpore searches for splits, which changes nothing here.

    Args:
        **kwargs: MindSpore's settings by name, such as ``fully_use_devices``.

    Raises:
        ConfigError: for an unknown name or a value of another kind; nothing is changed then.

    Example:
        >>> ms.set_algo_parameters(elementwise_op_strategy_follow=True)
        >>> ms.get_algo_parameters("elementwise_op_strategy_follow")
        True
        >>> ms.reset_algo_parameters()
    """
    for name, value in kwargs.items():
        _require_search("set_algo_parameters", name)
        _check_kept("set_algo_parameters", name, value)
    _search.update(kwargs)


def get_algo_parameters(attr_key: str) -> Any:
    """Returns a setting of :func:`set_algo_parameters`.

    Args:
        attr_key: Name of the setting.

    Raises:
        ConfigError: if there is none of this name.
    """
    _require_search("get_algo_parameters", attr_key)
    return _search[attr_key]


def reset_algo_parameters() -> None:
    """Puts every setting of :func:`set_algo_parameters` back to its default."""
    _search.update(_SEARCH)


__all__ = [
    "AutoParallelContext", "get_algo_parameters", "get_auto_parallel_context",
    "reset_algo_parameters", "reset_auto_parallel_context", "set_algo_parameters",
    "set_auto_parallel_context",
]  # fmt: skip
