"""MindSpore's ``mint.distributed``: collectives that write into tensors they are given.

With ``async_op`` they return a handle; they have finished when they return all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvmgraph.compat import comm_func, communication
from tvmgraph.compat.comm_func import CommHandle, P2POp, batch_isend_irecv
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.distributed import engine, functions
from tvmgraph.distributed.functions import WORLD, ReduceOp
from tvmgraph.errors import ArgumentError, DTypeError, user_source

_made = [0]  # groups without a name of their own


def init_process_group(
    backend: str | None = "hccl", init_method: Any = None, timeout: Any = None,
    world_size: int = -1, rank: int = -1, store: Any = None, group_name: str = "",
    pg_options: Any = None, device_id: Any = None,
) -> None:  # fmt: skip
    """Joins the processes that a launcher has started, which knows their number and addresses."""
    communication.init(backend)


def destroy_process_group(group: str | None = None) -> None:
    """Forgets a group, by default all that were made."""
    communication.release() if group is None else communication.destroy_group(group)


def is_available() -> bool:
    """Whether there are collectives: always, as a process that is alone is a group of one."""
    return True


def is_initialized() -> bool:
    """Whether the processes were joined."""
    return communication.GlobalComm.INITED


def get_backend(group: str | None = None) -> str:
    """Returns the name of the library."""
    engine.get_group(group or WORLD)
    return communication.GlobalComm.BACKEND


def get_rank(group: str | None = None) -> int:
    """Returns the number of this process in a group."""
    return engine.get_group(group or WORLD).rank


def get_world_size(group: str | None = None) -> int:
    """Returns how many processes a group has."""
    return engine.get_group(group or WORLD).size


def get_global_rank(group: str, group_rank: int) -> int:
    """Returns the number in the world of a group's member."""
    return communication.get_world_rank_from_group_rank(group, group_rank)


def get_group_rank(group: str, global_rank: int) -> int:
    """Returns the number in a group of a process of the world."""
    return communication.get_group_rank_from_world_rank(global_rank, group)


def get_process_group_ranks(group: str | None = None) -> list[int]:
    """Returns the numbers in the world of a group's members."""
    return list(engine.get_group(group or WORLD).ranks)


def new_group(
    ranks: Sequence[int] | None = None, timeout: Any = None, backend: str | None = None,
    pg_options: Any = None, use_local_synchronization: bool = False, group_desc: str | None = None,
) -> str:  # fmt: skip
    """Makes a group of processes, called by all processes; returns its name, ``""`` outside."""
    if not isinstance(ranks, (list, tuple, range, type(None))):
        raise DTypeError(f"ranks must be a list of ranks or None, not {type(ranks).__name__}",
                         op="mint.distributed.new_group", at=user_source())  # fmt: skip
    wanted = list(range(engine.world().size)) if ranks is None else list(ranks)
    _made[0] += 1
    name = f"group {_made[0]}"
    if engine.world().rank not in wanted:
        return ""
    engine.make_group(name, wanted)
    return name


def _done(async_op: bool) -> CommHandle | None:
    return CommHandle() if async_op else None


def _fill(tensors: Sequence[Tensor], found: Sequence[Tensor]) -> None:
    given = tensors if isinstance(tensors, (list, tuple)) else []
    if len(given) != len(found) or not all(isinstance(t, Tensor) for t in given):
        raise ArgumentError(
            f"the list must hold {len(found)} tensor(s), one per process", got=repr(tensors)[:80],
            op="communication", at=user_source(),
        )  # fmt: skip
    for tensor, value in zip(tensors, found, strict=True):
        tensor.rebind(F.reshape(value, tensor.shape))


def _members(group: str | None) -> int:
    return functions.where(group)["parts"]


def all_reduce(
    tensor: Tensor, op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False
) -> Any:
    """Replaces a tensor by the reduction of all processes' tensors."""
    tensor.rebind(functions.all_reduce(tensor, op, group))
    return _done(async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: str | None = None, async_op: bool = False
) -> Any:
    """Fills a tensor with all processes' tensors along the first axis."""
    _fill([output_tensor], [functions.all_gather(input_tensor, group)])
    return _done(async_op)


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: str | None = None, async_op: bool = False
) -> Any:
    """Fills every tensor of a list with that of one process."""
    found = functions.all_gather(F.unsqueeze(tensor, 0), group)
    _fill(tensor_list, [found[i] for i in range(found.shape[0])])
    return _done(async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: str = ReduceOp.SUM, group: str | None = None,
    async_op: bool = False,
) -> Any:  # fmt: skip
    """Fills a tensor with this process's part of the reduction."""
    _fill([output], [functions.reduce_scatter(input, op, group)])
    return _done(async_op)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: str = ReduceOp.SUM,
    group: str | None = None, async_op: bool = False,
) -> Any:  # fmt: skip
    """Fills a tensor with the reduction of the tensors that stand at this process's place."""
    return reduce_scatter_tensor(output, F.stack(list(input_list)), op, group, async_op)


def broadcast(tensor: Tensor, src: int, group: str | None = None, async_op: bool = False) -> Any:
    """Replaces a tensor by that of the process ``src``."""
    tensor.rebind(functions.broadcast(tensor, src, group))
    return _done(async_op)


def reduce(
    tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: str | None = None,
    async_op: bool = False,
) -> Any:  # fmt: skip
    """Replaces the tensor of the process ``dst`` by the reduction of all."""
    tensor.rebind(functions.reduce(tensor, dst, op, group))
    return _done(async_op)


def gather(
    tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int = 0,
    group: str | None = None, async_op: bool = False,
) -> Any:  # fmt: skip
    """Fills the list of the process ``dst`` with all tensors."""
    found = functions.all_gather(F.unsqueeze(tensor, 0), group)
    if engine.world().rank == dst:
        _fill(gather_list or [], [found[i] for i in range(_members(group))])
    return _done(async_op)


def scatter(
    tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int = 0,
    group: str | None = None, async_op: bool = False,
) -> Any:  # fmt: skip
    """Fills every process's tensor with the one at its place of the list of ``src``."""
    count = _members(group)
    given = list(scatter_list or []) if engine.world().rank == src else [tensor] * count
    found = functions.broadcast(F.stack(given), src, group)
    tensor.rebind(found[get_rank(group)])
    return _done(async_op)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor],
    group: str | None = None, async_op: bool = False,
) -> Any:  # fmt: skip
    """Sends a tensor to every process and fills a list with those that come."""
    shapes = [t.shape for t in output_tensor_list]
    _fill(output_tensor_list, functions.uneven(list(input_tensor_list), shapes, group))
    return _done(async_op)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: str | None = None,
    async_op: bool = False,
) -> Any:  # fmt: skip
    """Sends parts of the first axis to all processes; fills a tensor with what comes.

    Args:
        output: The tensor that is filled.
        input: What is sent.
        output_split_sizes: Length of what every process sends, equal ones by default.
        input_split_sizes: Length of what every process gets, equal ones by default.
        group: The processes.
        async_op: Whether a handle is returned.
    """
    sizes = output_split_sizes, input_split_sizes
    output.rebind(comm_func.split_and_exchange(input, output.shape, *sizes, group))
    return _done(async_op)


def barrier(group: str | None = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Waits until all processes have come here."""
    functions.barrier(group)
    return _done(async_op)


def send(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> None:
    """Sends a tensor to the process ``dst`` and waits until it may be changed."""
    comm_func.send(tensor, dst, group or WORLD, tag)


def recv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> int:
    """Fills a tensor with what the process ``src`` sends; returns 0."""
    tensor.rebind(comm_func.recv(tensor, src, group or WORLD, tag))
    return 0


def isend(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> CommHandle:
    """Begins to send a tensor to the process ``dst``; the handle waits for the end."""
    return comm_func.isend(tensor, dst, group or WORLD, tag)


def irecv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> CommHandle:
    """Begins to receive from ``src`` into ``tensor``, which holds it after ``handle.wait()``."""
    return comm_func.irecv(tensor, src, group or WORLD, tag)[1]


def all_gather_object(object_list: list[Any], obj: Any, group: str | None = None) -> None:
    """Fills a list with the objects of all processes."""
    functions.eagerly("all_gather_object")
    object_list[:] = engine.share_object(obj, group or WORLD)


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: str | None = None
) -> None:
    """Fills the list of the process ``dst`` with the objects of all."""
    found = engine.share_object(obj, group or WORLD)
    if engine.world().rank == dst and object_gather_list is not None:
        object_gather_list[:] = found


def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None
) -> None:
    """Replaces the objects of a list by those of the process ``src``."""
    functions.eagerly("broadcast_object_list")
    root = functions.member(src, group, "src")
    object_list[:] = engine.share_object(object_list, group or WORLD, root)


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None,
    src: int = 0, group: str | None = None,
) -> None:  # fmt: skip
    """Puts this process's object of the list of ``src`` into a list.

    Raises:
        ArgumentError: if ``src`` has not one object per process.
    """
    root = functions.member(src, group, "src")
    found = engine.share_object(scatter_object_input_list, group or WORLD, root)
    if found is None or len(found) != _members(group):
        raise ArgumentError("scatter_object_input_list needs one object per process",
                            op="scatter_object_list", at=user_source())  # fmt: skip
    scatter_object_output_list[0:1] = [found[get_rank(group)]]


def gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, dst: int = 0, group: str | None = None,
    async_op: bool = False,
) -> Any:  # fmt: skip
    """Fills the tensor of the process ``dst`` with all tensors along the first axis."""
    found = functions.all_gather(input_tensor, group)
    if engine.world().rank == dst:
        _fill([output_tensor], [found])
    return _done(async_op)


def scatter_tensor(
    output_tensor: Tensor, input_tensor: Tensor, src: int = 0, group: str | None = None,
    async_op: bool = False,
) -> Any:  # fmt: skip
    """Fills a tensor with this process's part of the tensor of ``src``."""
    _fill([output_tensor], [comm_func.scatter_tensor(input_tensor, src, group or WORLD)])
    return _done(async_op)


__all__ = [
    "CommHandle", "P2POp", "ReduceOp", "all_gather", "all_gather_into_tensor",
    "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single", "barrier",
    "batch_isend_irecv", "broadcast", "broadcast_object_list", "destroy_process_group", "gather",
    "gather_into_tensor", "gather_object", "get_backend", "get_global_rank", "get_group_rank",
    "get_process_group_ranks", "get_rank", "get_world_size", "init_process_group", "irecv",
    "is_available", "is_initialized", "isend", "new_group", "recv", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "scatter_object_list", "scatter_tensor", "send",
]  # fmt: skip

_guard_module(globals(), "mint.distributed")
