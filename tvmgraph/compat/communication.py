"""MindSpore's ``communication``: which processes there are; see :mod:`tvmgraph.distributed`.

Without a launcher the world has one process, so that a program runs everywhere unchanged.
"""

from __future__ import annotations

import importlib
from typing import Any

from tvmgraph.distributed import engine
from tvmgraph.errors import ArgumentError, DTypeError, either, reject

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"


class GlobalComm:
    """Names of the library and of the group of all processes."""

    BACKEND = "mccl"
    WORLD_COMM_GROUP = MCCL_WORLD_COMM_GROUP
    INITED: bool = False


def init(backend_name: str | None = None) -> None:
    """Joins the processes that a launcher has started.

    Args:
        backend_name: "hccl", "nccl" or "mccl"; MPI moves the data whatever it is.

    Raises:
        DeviceError: if mpi4py is missing, or processes have other versions.
    """
    if not isinstance(backend_name, (str, type(None))):
        rule = f"backend_name must be a string or None, not {type(backend_name).__name__}"
        reject(DTypeError, "communication.init", rule)
    engine.world()
    GlobalComm.INITED = True


def _is_initialized() -> bool:
    """Whether the processes were joined; programs import it from ``communication._comm_helper``."""
    return GlobalComm.INITED


def _get_group_map() -> dict[str, tuple[int, ...]]:
    """Returns the processes of every group; programs import it from the same place."""
    return {name: tuple(group.ranks) for name, group in engine.world().groups.items()}


def _remove_group_info(group_name: str) -> None:
    """Forgets a group that is gone."""
    engine.world().groups.pop(group_name, None)


def release() -> None:
    """Ends the communication: groups that were made are forgotten."""
    GlobalComm.INITED = False
    known = engine.world().groups
    for name in [n for n in known if n not in engine.WORLD_NAMES]:
        del known[name]


def create_group(group: str, rank_ids: list[int], options: object = None) -> None:
    """Names some processes; called by all of these.

    Args:
        group: The name.
        rank_ids: Their numbers in the world.
        options: Kept for MindSpore programs.

    Raises:
        ArgumentError: if a number is not in the world, or comes twice.
        DTypeError: if the name is no text.
    """
    if not isinstance(group, str):
        reject(DTypeError, "create_group", f"group must be a name, not {group!r}")
    if isinstance(rank_ids, int) or engine.world().rank not in tuple(rank_ids):
        reject(either(ArgumentError, RuntimeError), "create_group",
               f"rank_ids must have this process, {engine.world().rank}, not {rank_ids}",
               fix="call it in the processes of the group only")  # fmt: skip
    engine.make_group(group, rank_ids)


def destroy_group(group: str) -> None:
    """Forgets a group that :func:`create_group` made.

    Args:
        group: Name of the group; that of all processes stays.
    """
    engine.get_group(group)
    if group not in engine.WORLD_NAMES:
        engine.world().groups.pop(group)


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Returns the number of this process in a group.

    Args:
        group: Name of the group.
    """
    return engine.get_group(group).rank


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Returns the number of this process among those of its machine.

    Args:
        group: Name of the group.
    """
    engine.get_group(group)
    return engine.world().local_rank


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Returns how many processes a group has.

    Args:
        group: Name of the group.
    """
    return engine.get_group(group).size


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Returns how many processes this machine has.

    Args:
        group: Name of the group.
    """
    engine.get_group(group)
    return engine.world().local_size


def _require_int(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise DTypeError(f"{name} must be an int, not {type(value).__name__}", op="communication")


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """Returns the number among all processes of a group's member.

    Args:
        group: Name of the group.
        group_rank_id: Rank of the member in the group.

    Raises:
        ArgumentError: if it has no such member.
    """
    ranks = engine.get_group(group).ranks
    _require_int(group_rank_id, "group_rank_id")
    if group_rank_id not in range(len(ranks)):
        reject(ArgumentError, "communication", f"the group {group!r} has no member {group_rank_id}")
    return ranks[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """Returns the number in a group of one of all processes.

    Args:
        world_rank_id: Rank of the process in the world.
        group: Name of the group.

    Raises:
        ArgumentError: if it is not in the group.
    """
    ranks = engine.get_group(group).ranks
    _require_int(world_rank_id, "world_rank_id")
    if world_rank_id not in ranks:
        raise ArgumentError(f"rank {world_rank_id} is not in the group {group!r}",
                            op="communication")  # fmt: skip
    return ranks.index(world_rank_id)


def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """Returns the numbers in the world of a group's members.

    Args:
        group: Name of the group.
    """
    return list(engine.get_group(group).ranks)


def get_comm_name(group: str = HCCL_WORLD_COMM_GROUP) -> str:
    """Returns what the communicator of a group is called.

    Args:
        group: Name of the group.
    """
    return engine.get_group(group).name


def __getattr__(name: str) -> Any:
    if name == "comm_func":
        return importlib.import_module("tvmgraph.compat.comm_func")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "HCCL_WORLD_COMM_GROUP", "MCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "GlobalComm",
    "create_group", "destroy_group", "get_comm_name", "get_group_rank_from_world_rank",
    "get_group_size", "get_local_rank", "get_local_rank_size", "get_process_group_ranks",
    "get_rank", "get_world_rank_from_group_rank", "init", "release",
]  # fmt: skip
