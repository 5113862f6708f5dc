"""MindSpore's ``mint.distributed``: collectives that write into tensors they are given.

With ``async_op`` they return a handle; they have finished when they return all the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from tvmgraph.compat import comm_func, communication
from tvmgraph.compat.comm_func import CommHandle, P2POp, all_to_all_v_c, batch_isend_irecv
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.distributed import engine, functions
from tvmgraph.distributed.functions import WORLD, ReduceOp
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either, reject


def init_process_group(
    backend: str | None = "hccl", init_method: object = None, timeout: object = None,
    world_size: int = -1, rank: int = -1, store: object = None, group_name: str = "",
    pg_options: object = None, device_id: object = None,
) -> None:  # fmt: skip
    """Joins the processes that a launcher has started, which knows their number and addresses.

    Args:
        backend: "hccl", "nccl" or "mccl"; MPI moves the data whatever it is.
        init_method, timeout, world_size, rank, store, group_name, pg_options, device_id: Kept for
            MindSpore programs.
    """
    communication.init(backend)


def destroy_process_group(group: str | None = None) -> None:
    """Forgets a group, by default all that were made.

    Args:
        group: Name of the group; all processes by default.
    """
    communication.release() if group is None else communication.destroy_group(group)


def is_available() -> bool:
    """Whether there are collectives: always, as a process that is alone is a group of one."""
    return True


def is_initialized() -> bool:
    """Whether the processes were joined."""
    return communication.GlobalComm.INITED


def get_backend(group: str | None = None) -> str:
    """Returns the name of the library.

    Args:
        group: Name of the group; all processes by default.
    """
    engine.get_group(functions.named(group))
    return communication.GlobalComm.BACKEND


def get_rank(group: str | None = None) -> int:
    """Returns the number of this process in a group.

    Args:
        group: Name of the group; all processes by default.
    """
    return engine.get_group(functions.named(group)).rank


def get_world_size(group: str | None = None) -> int:
    """Returns how many processes a group has.

    Args:
        group: Name of the group; all processes by default.
    """
    return engine.get_group(functions.named(group)).size


def get_global_rank(group: str, group_rank: int) -> int:
    """Returns the number in the world of a group's member.

    Args:
        group: Name of the group.
        group_rank: Rank of a member in the group.
    """
    return communication.get_world_rank_from_group_rank(functions.named(group), group_rank)


def get_group_rank(group: str, global_rank: int) -> int:
    """Returns the number in a group of a process of the world.

    Args:
        group: Name of the group.
        global_rank: Rank of a process in the world.
    """
    return functions.member(global_rank, group, "global_rank")


def get_process_group_ranks(group: str | None = None) -> list[int]:
    """Returns the numbers in the world of a group's members.

    Args:
        group: Name of the group; all processes by default.
    """
    return list(engine.get_group(functions.named(group)).ranks)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: object = None,
    backend: str | None = None,
    pg_options: object = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
) -> str:
    """Makes a group of processes, called by all processes; returns its name, ``""`` outside.

    Args:
        ranks: Ranks of the members in the world; all by default.
        timeout: Kept for MindSpore programs.
        backend: First part of the name.
        pg_options, use_local_synchronization, group_desc: Kept for MindSpore programs.
    """
    if ranks is None:
        return WORLD
    if not isinstance(ranks, (list, tuple, range)):
        raise DTypeError(f"ranks must be a list of ranks or None, not {type(ranks).__name__}",
                         op="mint.distributed.new_group")  # fmt: skip
    wanted = sorted(ranks)
    if engine.world().rank not in wanted:
        return ""
    digest = hashlib.sha1("_".join(map(str, wanted)).encode()).hexdigest()
    name = f"{backend or 'hccl'}_{len(wanted)}_{digest}"  # MindSpore's: equal ranks, equal name
    if name not in engine.world().groups:
        engine.make_group(name, wanted)
    return name


def _done(async_op: bool) -> CommHandle | None:
    return CommHandle() if async_op else None


def _check(async_op: bool, *given: object) -> None:
    """Looks at arguments before anything is sent: an error after that leaves others waiting."""
    if not isinstance(async_op, bool):
        raise DTypeError(f"async_op must be a bool, not {type(async_op).__name__}",
                         op="communication")  # fmt: skip
    for value in given:
        functions.require_tensor(value)


def _require_fit(output: Tensor, shape: Sequence[int], like: Tensor) -> None:
    functions.require_tensor(output, "output")
    if output.shape != tuple(shape) or output.dtype is not like.dtype:
        reject(either(ShapeError, TypeError), "communication",
               f"the result has the shape {tuple(shape)} and the dtype {like.dtype}",
               f"output={output.aval}", "pass a tensor like that")  # fmt: skip


def _scaled(tensor: Tensor, group: str | None, scatters: bool = False) -> tuple[int, ...]:
    """The shape of all processes' tensors along the first axis, or of one process's part."""
    count, (first, *rest) = _members(group), tensor.shape or (1,)
    return (first // count if scatters else first * count, *rest)


def _require_objects(op: str, *lists: object) -> None:
    """Checks lists of objects, which no graph can pass on."""
    functions.eagerly(op)
    for objects in lists:
        if not isinstance(objects, list) or not objects:
            raise DTypeError(f"a list with objects is needed, not {objects!r:.60}", op=op)


def _require_list(tensors: object, group: str | None) -> list[Tensor]:
    """Checks a list of one tensor per process."""
    count, given = _members(group), tensors if isinstance(tensors, (list, tuple)) else []
    if len(given) != count or not all(isinstance(t, Tensor) for t in given):
        raise either(ArgumentError, TypeError)(
            f"the list must hold {count} tensor(s), one per process", got=repr(tensors)[:80],
            op="communication",
        )  # fmt: skip
    if len({t.dtype for t in given}) > 1:
        raise DTypeError("the tensors of the list must have one dtype", op="communication",
                         got=repr(tensors)[:80])  # fmt: skip
    return list(given)


def _fill(tensors: Sequence[Tensor], found: Sequence[Tensor]) -> None:
    for tensor, value in zip(tensors, found, strict=True):
        tensor.rebind(F.reshape(value, tensor.shape))


def _members(group: str | None) -> int:
    return functions.where(group)["parts"]


def all_reduce(
    tensor: Tensor, op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Replaces a tensor by the reduction of all processes' tensors.

    Args:
        tensor: Tensor of the same shape in every process; it is written.
        op: The reduction: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.
    """
    _check(async_op, tensor)
    tensor.rebind(functions.all_reduce(tensor, op, group))
    return _done(async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Fills a tensor with all processes' tensors along the first axis.

    Args:
        output_tensor: Tensor [P * N, ...] of P processes, which is filled.
        input_tensor: Tensor [N, ...] of this process.
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.
    """
    _check(async_op, input_tensor)
    _require_fit(output_tensor, _scaled(input_tensor, group), input_tensor)
    _fill([output_tensor], [functions.all_gather(input_tensor, group)])
    return _done(async_op)


def _even(sizes: Sequence[int] | None, length: int, group: str | None) -> Sequence[int]:
    count = _members(group)
    return [length // count] * count if sizes is None else sizes


def all_gather_into_tensor_uneven(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    group: str | None = None, async_op: bool = False,
) -> CommHandle | None:  # fmt: skip
    """Fills a tensor with all processes' tensors, of these lengths, along the first axis.

    Args:
        output: Tensor that is filled; its first axis is the sum of the lengths.
        input: Tensor of this process.
        output_split_sizes: Length of every process's tensor; equal ones by default.
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.

    Raises:
        ArgumentError: if the lengths are not those of the tensors.
    """
    _check(async_op, output, input)
    sizes = _even(output_split_sizes, output.shape[0], group)
    _require_fit(output, (sum(sizes), *input.shape[1:]), input)
    _fill([output], [functions.all_gather_v(input, sizes, group)])
    return _done(async_op)


def reduce_scatter_tensor_uneven(
    output: Tensor, input: Tensor, input_split_sizes: Sequence[int] | None = None,
    op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False,
) -> CommHandle | None:  # fmt: skip
    """Fills a tensor with this process's part, of these lengths, of the reduction.

    Args:
        output: Tensor that is filled.
        input: Tensor of the same shape in every process; its first axis is the sum of the lengths.
        input_split_sizes: Length of every process's part; equal ones by default.
        op: The reduction: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.

    Raises:
        ArgumentError: if the lengths are not those of the tensors.
    """
    _check(async_op, output, input)
    sizes = functions.sizes_of(_even(input_split_sizes, input.shape[0], group),
                               "input_split_sizes", group)  # fmt: skip
    _require_fit(output, (sizes[get_rank(group)], *input.shape[1:]), input)
    _fill([output], [functions.reduce_scatter_v(input, sizes, op, group)])
    return _done(async_op)


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Fills every tensor of a list with that of one process.

    Args:
        tensor_list: One tensor per process, which are filled.
        tensor: Tensor of this process.
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.
    """
    _check(async_op, tensor)
    given = _require_list(tensor_list, group)
    _require_fit(given[get_rank(group)], tensor.shape, tensor)
    if len({t.shape for t in given}) > 1:
        found = functions.uneven([tensor] * len(given), [t.shape for t in given], group)
    else:
        found = functions.all_gather(F.unsqueeze(tensor, 0), group)
    _fill(given, [found[i] for i in range(len(given))])
    return _done(async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: str = ReduceOp.SUM, group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:  # fmt: skip
    """Fills a tensor with this process's part of the reduction.

    Args:
        output: Tensor [N, ...] that is filled.
        input: Tensor [P * N, ...] of P processes.
        op: The reduction: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.
    """
    _check(async_op, input)
    _require_fit(output, _scaled(input, group, scatters=True), input)
    _fill([output], [functions.reduce_scatter(input, op, group)])
    return _done(async_op)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: str = ReduceOp.SUM,
    group: str | None = None, async_op: bool = False,
) -> CommHandle | None:  # fmt: skip
    """Fills a tensor with the reduction of the tensors that stand at this process's place.

    Args:
        output: Tensor that is filled.
        input_list: One tensor per process.
        op: The reduction: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.
    """
    _check(async_op, output)
    given = _require_list(input_list, group)
    own = given[get_rank(group)]
    _require_fit(output, own.shape, own)
    if len({t.shape for t in given}) > 1:
        flat = F.concat([F.reshape(t, (-1,)) for t in given], 0)
        found = functions.reduce_scatter_v(flat, [t.size for t in given], op, group)
    else:
        found = functions.reduce_scatter(F.stack(given), op, group)
    _fill([output], [found])
    return _done(async_op)


def broadcast(
    tensor: Tensor, src: int, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Replaces a tensor by that of the process ``src``.

    Args:
        tensor: Tensor of the same shape in every process; it is written.
        src: Rank of the process, counted in the world.
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.
    """
    _check(async_op, tensor)
    tensor.rebind(functions.broadcast(tensor, src, group))
    return _done(async_op)


def reduce(
    tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:  # fmt: skip
    """Replaces the tensor of the process ``dst`` by the reduction of all.

    Args:
        tensor: Tensor of the same shape in every process; that of ``dst`` is written.
        dst: Rank of the process, counted in the world.
        op: The reduction: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.
    """
    _check(async_op, tensor)
    tensor.rebind(functions.reduce(tensor, dst, op, group))
    return _done(async_op)


def gather(
    tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int = 0,
    group: str | None = None, async_op: bool = False,
) -> CommHandle | None:  # fmt: skip
    """Fills the list of the process ``dst`` with all tensors.

    Args:
        tensor: Tensor of the same shape in every process.
        gather_list: In the process ``dst`` one tensor per process, which are filled.
        dst: Rank of the process, counted in the world.
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.
    """
    _check(async_op, tensor)
    here = functions.member(dst, group, "dst") == get_rank(group)
    given = _require_list(gather_list, group) if here else []
    found = functions.all_gather(F.unsqueeze(tensor, 0), group)
    _fill(given, [found[i] for i in range(len(given))])
    return _done(async_op)


def scatter(
    tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int = 0,
    group: str | None = None, async_op: bool = False,
) -> CommHandle | None:  # fmt: skip
    """Fills every process's tensor with the one at its place of the list of ``src``.

    Args:
        tensor: Tensor that is filled.
        scatter_list: In the process ``src`` one tensor per process.
        src: Rank of the process, counted in the world.
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.
    """
    _check(async_op, tensor)
    here = functions.member(src, group, "src") == get_rank(group)
    given = _require_list(scatter_list, group) if here else [tensor] * _members(group)
    _require_fit(tensor, given[0].shape, given[0])
    found = functions.broadcast(F.stack(given), src, group)
    tensor.rebind(found[get_rank(group)])
    return _done(async_op)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor],
    group: str | None = None, async_op: bool = False,
) -> CommHandle | None:  # fmt: skip
    """Sends a tensor to every process and fills a list with those that come.

    Args:
        output_tensor_list: One tensor per process, which are filled.
        input_tensor_list: The tensor that every process is sent.
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.
    """
    _check(async_op)
    into, given = (_require_list(x, group) for x in (output_tensor_list, input_tensor_list))
    own = get_rank(group)
    _require_fit(into[own], given[own].shape, given[own])
    _fill(into, functions.uneven(given, [t.shape for t in into], group))
    return _done(async_op)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:  # fmt: skip
    """Sends parts of the first axis to all processes; fills a tensor with what comes.

    Args:
        output: The tensor that is filled.
        input: What is sent.
        output_split_sizes: Length of what every process sends, equal ones by default.
        input_split_sizes: Length of what every process gets, equal ones by default.
        group: The processes.
        async_op: Whether a handle is returned.
    """
    _check(async_op, output, input)
    sizes = output_split_sizes, input_split_sizes
    _require_fit(output, output.shape, input)
    output.rebind(comm_func._split_and_exchange(input, output.shape, *sizes, group))
    return _done(async_op)


def barrier(
    group: str | None = None, async_op: bool = False, device_ids: object = None
) -> CommHandle | None:
    """Waits until all processes have come here.

    Args:
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.
        device_ids: Kept for MindSpore programs.
    """
    _check(async_op)
    functions.barrier(group)
    return _done(async_op)


def send(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> None:
    """Sends a tensor to the process ``dst`` and waits until it may be changed.

    Args:
        tensor: What is sent.
        dst: Rank of the process, counted in the world.
        group: Name of the group; all processes by default.
        tag: Messages of equal tags meet.
    """
    comm_func.send(tensor, dst, functions.named(group), tag)


def recv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> int:
    """Fills a tensor with what the process ``src`` sends; returns 0.

    Args:
        tensor: Tensor that is filled, of the shape and dtype of what is sent.
        src: Rank of the process, counted in the world.
        group: Name of the group; all processes by default.
        tag: Messages of equal tags meet.
    """
    tensor.rebind(comm_func.recv(tensor, src, functions.named(group), tag))
    return 0


def isend(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> CommHandle:
    """Begins to send a tensor to the process ``dst``; the handle waits for the end.

    Args:
        tensor: What is sent.
        dst: Rank of the process, counted in the world.
        group: Name of the group; all processes by default.
        tag: Messages of equal tags meet.
    """
    return comm_func.isend(tensor, dst, functions.named(group), tag)


def irecv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> CommHandle:
    """Begins to receive from ``src`` into ``tensor``, which holds it after ``handle.wait()``.

    Args:
        tensor: Tensor that is filled, of the shape and dtype of what is sent.
        src: Rank of the process, counted in the world.
        group: Name of the group; all processes by default.
        tag: Messages of equal tags meet.
    """
    return comm_func.irecv(tensor, src, functions.named(group), tag)[1]


def all_gather_object(object_list: list[object], obj: object, group: str | None = None) -> None:
    """Fills a list with the objects of all processes.

    Args:
        object_list: A list with one place per process.
        obj: What this process gives; it can be pickled.
        group: Name of the group; all processes by default.
    """
    _require_objects("all_gather_object", object_list)
    object_list[:] = engine.share_object(obj, functions.named(group))


def gather_object(
    obj: object,
    object_gather_list: list[object] | None = None,
    dst: int = 0,
    group: str | None = None,
) -> None:
    """Fills the list of the process ``dst`` with the objects of all.

    Args:
        obj: What this process gives; it can be pickled.
        object_gather_list: In the process ``dst`` a list with one place per process.
        dst: Rank of the process, counted in the world.
        group: Name of the group; all processes by default.
    """
    here = functions.member(dst, group, "dst") == get_rank(group)
    _require_objects("gather_object", *([object_gather_list] if here else []))
    found = engine.share_object(obj, functions.named(group))
    if here and object_gather_list is not None:
        object_gather_list[:] = found


def broadcast_object_list(
    object_list: list[object], src: int = 0, group: str | None = None, device: object = None
) -> None:
    """Replaces the objects of a list by those of the process ``src``.

    Args:
        object_list: A list of the same length in every process.
        src: Rank of the process, counted in the world.
        group: Name of the group; all processes by default.
        device: Kept for MindSpore programs.
    """
    _require_objects("broadcast_object_list", object_list)
    root = functions.member(src, group, "src")
    object_list[:] = engine.share_object(object_list, functions.named(group), root)


def scatter_object_list(
    scatter_object_output_list: list[object], scatter_object_input_list: Sequence[object] | None,
    src: int = 0, group: str | None = None,
) -> None:  # fmt: skip
    """Puts this process's object of the list of ``src`` into a list.

    Args:
        scatter_object_output_list: A list whose first element is replaced.
        scatter_object_input_list: In the process ``src`` one object per process.
        src: Rank of the process, counted in the world.
        group: Name of the group; all processes by default.

    Raises:
        ArgumentError: if ``src`` has not one object per process.
    """
    _require_objects("scatter_object_list", scatter_object_output_list)
    root = functions.member(src, group, "src")
    if root == get_rank(group):
        _require_objects("scatter_object_list", scatter_object_input_list)
    found = engine.share_object(scatter_object_input_list, functions.named(group), root)
    if found is None or len(found) != _members(group):
        raise ArgumentError("scatter_object_input_list needs one object per process",
                            op="scatter_object_list")  # fmt: skip
    scatter_object_output_list[0:1] = [found[get_rank(group)]]


def send_object_list(
    object_list: Sequence[object], dst: int, group: str | None = None, device: object = None
) -> None:
    """Sends objects that can be pickled to the process ``dst``.

    Args:
        object_list: The objects.
        dst: Rank of the process, counted in the world.
        group: Name of the group; all processes by default.
        device: Kept for MindSpore programs.
    """
    _require_objects("send_object_list", object_list)
    engine.send_object(object_list, functions.member(dst, group, "dst"), functions.named(group))


def recv_object_list(
    object_list: list[object], src: int = 0, group: str | None = None, device: object = None
) -> int:
    """Replaces the objects of a list by those that the process ``src`` sends; returns 0.

    Args:
        object_list: A list as long as the one that is sent.
        src: Rank of the process, counted in the world.
        group: Name of the group; all processes by default.
        device: Kept for MindSpore programs.
    """
    _require_objects("recv_object_list", object_list)
    object_list[:] = engine.receive_object(
        functions.member(src, group, "src"), functions.named(group)
    )
    return 0


def gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, dst: int = 0, group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:  # fmt: skip
    """Fills the tensor of the process ``dst`` with all tensors along the first axis.

    Args:
        output_tensor: In the process ``dst`` a tensor [P * N, ...] for P processes.
        input_tensor: Tensor [N, ...] of this process.
        dst: Rank of the process, counted in the world.
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.
    """
    _check(async_op, input_tensor)
    here = functions.member(dst, group, "dst") == get_rank(group)
    if here:
        _require_fit(output_tensor, _scaled(input_tensor, group), input_tensor)
    found = functions.all_gather(input_tensor, group)
    if here:
        _fill([output_tensor], [found])
    return _done(async_op)


def scatter_tensor(
    output_tensor: Tensor, input_tensor: Tensor, src: int = 0, group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:  # fmt: skip
    """Fills a tensor with this process's part of the tensor of ``src``.

    Args:
        output_tensor: Tensor [N, ...] that is filled.
        input_tensor: In the process ``src`` a tensor [P * N, ...] for P processes.
        src: Rank of the process, counted in the world.
        group: Name of the group; all processes by default.
        async_op: Whether a handle is returned; the operation has finished all the same.
    """
    _check(async_op, output_tensor, input_tensor)
    _fill([output_tensor], [comm_func.scatter_tensor(input_tensor, src, functions.named(group))])
    return _done(async_op)


__all__ = [
    "CommHandle", "P2POp", "ReduceOp", "all_gather", "all_gather_into_tensor",
    "all_gather_into_tensor_uneven", "all_gather_object", "all_reduce", "all_to_all",
    "all_to_all_single", "all_to_all_v_c", "barrier", "batch_isend_irecv", "broadcast",
    "broadcast_object_list",
    "destroy_process_group", "gather", "gather_into_tensor", "gather_object", "get_backend",
    "get_global_rank", "get_group_rank", "get_process_group_ranks", "get_rank", "get_world_size",
    "init_process_group", "irecv", "is_available", "is_initialized", "isend", "new_group", "recv",
    "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor",
    "reduce_scatter_tensor_uneven", "scatter", "scatter_object_list", "scatter_tensor", "send",
    "send_object_list",
]  # fmt: skip

_guard_module(globals(), "mint.distributed")
