"""What programs ask of parameters that MindSpore splits over devices: here they are whole."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import NoReturn

from tvmgraph.compat.primitives.elsewhere import refuse
from tvmgraph.core.tensor import Tensor
from tvmgraph.distributed import engine
from tvmgraph.distributed.layout import Layout
from tvmgraph.errors import DeviceError, reject
from tvmgraph.nn.cell import Cell

#: Parameter -> groups of the processes that hold the same part of it.
Holders = Mapping[str, Sequence[Sequence[int]]]


def _get_merged_param_data(
    net: object, parameter_layout_dict: object, param_name: str, param_data: Tensor,
    integrated_save: bool,
) -> Tensor:  # fmt: skip
    """Returns the whole of a parameter, which is what is given."""
    return param_data


def get_parameter_redundancy(layout_obj: Cell, initial_rank: int | None = None) -> Holders:
    """Returns which processes hold the same values of every parameter: all of them.

    Args:
        layout_obj: The network.
        initial_rank: Kept for MindSpore programs.

    Raises:
        DeviceError: if a file of MindSpore's strategies is given.
    """
    if not isinstance(layout_obj, Cell):
        rule = "MindSpore's files of strategies are not read"
        reject(DeviceError, "get_parameter_redundancy", rule, fix="give it the network")
    groups = (tuple(range(engine.world().size)),)
    return dict.fromkeys(sorted(p.name for _, p in layout_obj.parameters_and_names()), groups)


def remove_param_redundancy(
    param_redundancy_dict: Holders, keep_redundancy: int = 1
) -> dict[int, set[str]]:
    """Returns which parameters every process saves, so that each is saved once.

    Args:
        param_redundancy_dict: Which processes hold the same.
        keep_redundancy: By how many processes each is saved.
    """
    saved: dict[int, set[str]] = {}
    for name, groups in param_redundancy_dict.items():
        for group in groups:
            for rank in group:
                saved.setdefault(rank, set())
            fewest = sorted(group, key=lambda rank: len(saved[rank]))
            for rank in fewest[:keep_redundancy]:
                saved[rank].add(name)
    return saved


class _DistributedTensorInfo:
    """How one tensor is split: its layout and the number of parts along every axis."""

    def __init__(self, distributed_info: Layout) -> None:
        self.layout = self.distributed_info = distributed_info

    @property
    def sharding_strategy(self) -> list[int]:
        """In how many parts every axis is cut."""
        sizes = dict(zip(self.layout.mesh.names, self.layout.mesh.shape))
        return [math.prod(sizes[a] for a in axes) for axes in self.layout.spec or ()]


def get_strategy_metadata(network: object, rank_id: int | None = None) -> None:
    """Returns how parameters are split, None where they are not.

    Args:
        network: The network.
        rank_id: Which process is asked for.
    """


get_current_strategy_metadata = get_strategy_metadata


def enable_save_strategy_online() -> None:
    """Keeps how parameters are split, which they are not."""


clear_strategy_metadata = enable_save_strategy_online


def mindio_preload(ckpt_file_name: str) -> bool:
    """Returns whether MindIO reads a checkpoint before it is asked for; it is not here.

    Args:
        ckpt_file_name: The checkpoint.
    """
    return False


def set_mindio_server_info(data_block_pool_capacity_in_gb: int = 100) -> None:
    """Takes how much memory MindIO gets, which changes nothing here.

    Args:
        data_block_pool_capacity_in_gb: How much.
    """


def get_ckpt_path_with_strategy(cur_ckpt_path: str, cur_strategy_path: str) -> str | None:
    """Returns the checkpoint of the process, None where there is none.

    Args:
        cur_ckpt_path: Its path.
        cur_strategy_path: MindSpore's file of how parameters are split; they are whole.
    """
    return cur_ckpt_path if os.path.isfile(cur_ckpt_path) else None


def get_squared_device_local_norm_param() -> NoReturn:
    """The norm of one device's part of the gradients, which MindSpore's compiler computes.

    Raises:
        DeviceError: always.
    """
    refuse("get_squared_device_local_norm_param", "Ascend processors", "ops.norm")


def swap_cache(host: Tensor, device: Tensor, blocks: Tensor, kind: bool) -> NoReturn:
    """Moves blocks of a cache between the host and a device.

    Args:
        host, device: The caches.
        blocks: Which.
        kind: Which way.

    Raises:
        DeviceError: always.
    """
    refuse("swap_cache", "Ascend processors", "Tensor.to(device)")


def flops_collection(phase: str = "train") -> NoReturn:
    """Returns how many operations a network takes, as MindSpore's compiler counts them.

    Args:
        phase: Which compiled form.

    Raises:
        DeviceError: always.
    """
    refuse("flops_collection", "Ascend processors", "fn.explain(), which says what a kernel costs")


def stress_detect(detect_type: str = "aic") -> NoReturn:
    """Looks for faults of a processor by running it hot.

    Args:
        detect_type: What is looked at.

    Raises:
        DeviceError: always.
    """
    refuse("stress_detect", "Ascend processors", "the test of the machine's maker")
