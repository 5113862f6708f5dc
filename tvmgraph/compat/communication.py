"""MindSpore's ``communication`` for one process: the group of all processes has one member.

Programs ask it for their rank in order to share out data and to save from one place; collective
operations themselves are absent (see :mod:`.absent`).
"""

from __future__ import annotations

import os

from tvmgraph.errors import ArgumentError, DeviceError, user_source

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"

#: Variables by which launchers say how many processes they have started.
_SIZES = ("WORLD_SIZE", "RANK_SIZE", "MS_WORKER_NUM", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


class GlobalComm:
    """Names of the library and of the group of all processes."""

    BACKEND = "mccl"
    WORLD_COMM_GROUP = MCCL_WORLD_COMM_GROUP
    INITED: bool = False


_groups: dict[str, list[int]] = {}


def init(backend_name: str | None = None) -> None:
    """Begins the communication of the one process.

    Args:
        backend_name: "hccl", "nccl" or "mccl"; none of them is used.

    Raises:
        DeviceError: if a launcher has started several processes.
    """
    count = max((int(os.environ.get(name) or 1) for name in _SIZES), default=1)
    if count > 1:
        raise DeviceError(
            f"{count} processes were started, and several devices are not supported yet",
            op="communication.init", at=user_source(), fix="start one process",
        )  # fmt: skip
    GlobalComm.INITED = True


def release() -> None:
    """Ends the communication."""
    GlobalComm.INITED = False
    _groups.clear()


def _members(group: str) -> list[int]:
    known = (HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP, MCCL_WORLD_COMM_GROUP)
    if group in known:
        return [0]
    if group not in _groups:
        raise ArgumentError(
            f"there is no group {group!r}", op="communication", at=user_source(),
            fix="create_group(name, [0])",
        )  # fmt: skip
    return _groups[group]


def create_group(group: str, rank_ids: list[int], options: object = None) -> None:
    """Makes a group of the one process.

    Raises:
        ArgumentError: if it is to have others.
    """
    if list(rank_ids) != [0]:
        raise ArgumentError(
            f"rank_ids must be [0], the only process, not {rank_ids}", op="create_group",
            at=user_source(),
        )  # fmt: skip
    _groups[group] = [0]


def destroy_group(group: str) -> None:
    """Forgets a group that :func:`create_group` made."""
    _members(group)
    _groups.pop(group, None)


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Returns the number of this process in a group: 0."""
    return _members(group)[0]


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Returns the number of this process among those of its machine: 0."""
    return _members(group)[0]


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Returns how many processes a group has: 1."""
    return len(_members(group))


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Returns how many processes of a group this machine has: 1."""
    return len(_members(group))


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """Returns the number among all processes of a group's member."""
    return _member(group, group_rank_id)


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """Returns the number in a group of one of all processes."""
    return _member(group, world_rank_id)


def _member(group: str, rank: int) -> int:
    if rank not in _members(group):
        raise ArgumentError(f"rank must be 0, not {rank}", op="communication", at=user_source())
    return rank


__all__ = [
    "HCCL_WORLD_COMM_GROUP", "MCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "GlobalComm",
    "create_group", "destroy_group", "get_group_rank_from_world_rank", "get_group_size",
    "get_local_rank", "get_local_rank_size", "get_rank", "get_world_rank_from_group_rank", "init",
    "release",
]  # fmt: skip
