"""MindSpore's ``communication.comm_func``: collectives that return their result, and a handle.

Collectives have finished when they return; ``isend`` and ``irecv`` have not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.distributed import engine, functions
from tvmgraph.distributed.functions import WORLD
from tvmgraph.errors import ArgumentError, DTypeError


class CommHandle:
    """What an operation that may go on is waited for with.

    Args:
        *waiting: Messages on their way.
    """

    def __init__(self, *waiting: engine.Waiting | CommHandle) -> None:
        self._waiting = waiting

    def wait(self) -> None:
        """Waits until the operation has finished."""
        for waiting in self._waiting:
            waiting.wait()


Found = tuple[Tensor, CommHandle | None]


def _with_handle(found: Tensor, async_op: bool) -> Found:
    return found, CommHandle() if async_op else None


def all_reduce(
    tensor: Tensor, op: str = "sum", group: str = WORLD, async_op: bool = False
) -> Found:
    """Returns the reduction of all processes' tensors, and a handle if ``async_op``.

    Args:
        tensor: Tensor of the same shape in every process.
        op: The reduction: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: Name of the group.
        async_op: Whether a handle follows.
    """
    return _with_handle(functions.all_reduce(tensor, op, group), async_op)


def all_gather_into_tensor(tensor: Tensor, group: str = WORLD, async_op: bool = False) -> Found:
    """Returns all processes' tensors along the first axis, and a handle if ``async_op``.

    Args:
        tensor: Tensor [N, ...] of this process.
        group: Name of the group.
        async_op: Whether a handle follows.
    """
    return _with_handle(functions.all_gather(tensor, group), async_op)


def reduce_scatter_tensor(
    tensor: Tensor, op: str = "sum", group: str = WORLD, async_op: bool = False
) -> Found:
    """Returns this process's part of the reduction, and a handle if ``async_op``.

    Args:
        tensor: Tensor [P * N, ...] of P processes.
        op: The reduction: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: Name of the group.
        async_op: Whether a handle follows.
    """
    return _with_handle(functions.reduce_scatter(tensor, op, group), async_op)


def reduce(tensor: Tensor, dst: int, op: str = "sum", group: str = WORLD) -> Tensor:
    """Returns the reduction in the process ``dst``, the tensor itself in the others.

    Args:
        tensor: Tensor of the same shape in every process.
        dst: Rank of the process, counted in the world.
        op: The reduction: ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: Name of the group.
    """
    return functions.reduce(tensor, dst, op, group)


def broadcast(tensor: Tensor, src: int = 0, group: str = WORLD) -> Tensor:
    """Returns the tensor of the process ``src``.

    Args:
        tensor: Tensor of the same shape in every process.
        src: Rank of the process, counted in the world.
        group: Name of the group.
    """
    return functions.broadcast(tensor, src, group)


def gather_into_tensor(tensor: Tensor, dst: int = 0, group: str = WORLD) -> Tensor:
    """Returns all tensors along the first axis in the process ``dst``, zeros in the others.

    Args:
        tensor: Tensor [N, ...] of this process.
        dst: Rank of the process, counted in the world.
        group: Name of the group.
    """
    return functions.gather(tensor, dst, group)


def scatter_tensor(tensor: Tensor, src: int = 0, group: str = WORLD) -> Tensor:
    """Returns this process's part, along the first axis, of the tensor of ``src``.

    Args:
        tensor: Tensor [P * N, ...] of P processes; that of ``src`` is split.
        src: Rank of the process, counted in the world.
        group: Name of the group.
    """
    return functions.scatter(tensor, src, group)


def all_to_all_with_output_shape(
    output_shape_list: Sequence[Any], input_tensor_list: Sequence[Tensor], group: str | None = None,
    async_op: bool = False,
) -> tuple[tuple[Tensor, ...], CommHandle | None]:  # fmt: skip
    """Sends a tensor to every process and returns those that come, of the given shapes.

    Args:
        output_shape_list: Per process the shape of what it sends, or a tensor of that shape.
        input_tensor_list: Per process the tensor that it is sent.
        group: Name of the group.
        async_op: Whether a handle follows.
    """
    shapes = [s.shape if isinstance(s, Tensor) else tuple(s) for s in output_shape_list]
    found = functions.uneven(list(input_tensor_list), shapes, group)
    return found, CommHandle() if async_op else None


def all_to_all_single_with_output_shape(
    output_shape: Any, tensor: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: str | None = None,
    async_op: bool = False,
) -> Found:  # fmt: skip
    """Sends parts of the first axis and concatenates what comes; see ``mint.distributed``.

    Args:
        output_shape: Shape of the result, or a tensor of that shape.
        tensor: What is sent.
        output_split_sizes: Length of what every process sends, equal ones by default.
        input_split_sizes: Length of what every process gets, equal ones by default.
        group: Name of the group.
        async_op: Whether a handle follows.
    """
    shape = output_shape.shape if isinstance(output_shape, Tensor) else tuple(output_shape)
    found = _split_and_exchange(tensor, shape, output_split_sizes, input_split_sizes, group)
    return _with_handle(found, async_op)


def _split_and_exchange(
    tensor: Tensor, shape: Sequence[int], takes: Sequence[int] | None,
    gives: Sequence[int] | None, group: str | None,
) -> Tensor:  # fmt: skip
    """Sends parts of the first axis to all members; what comes is concatenated along it.

    Args:
        tensor: What is sent.
        shape: Shape of the result.
        takes: Length of what every member sends, equal ones by default.
        gives: Length of what every member gets, equal ones by default.
        group: The processes.
    """
    count = functions.where(group)["parts"]
    sent = list(gives or [tensor.shape[0] // count] * count)
    taken = list(takes or [shape[0] // count] * count)
    return functions.cut_and_exchange(tensor, sent, taken, group)


def all_to_all_v_c(
    output: Tensor, input: Tensor, send_count_matrix: Sequence[int], group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:  # fmt: skip
    """Sends parts of the first axis to all processes; fills a tensor with what comes.

    Args:
        output: The tensor that is filled.
        input: What is sent.
        send_count_matrix: For every process how much it sends to every process, row by row.
        group: The processes.
        async_op: Whether a handle is returned.

    Raises:
        ArgumentError: if there are not as many numbers, or they do not fit the tensor.
    """
    count, rank = functions.where(group)["parts"], engine.get_group(functions.named(group)).rank
    rows = [send_count_matrix[i * count : (i + 1) * count] for i in range(count)]
    gives = functions.sizes_of(rows[rank], "a row of send_count_matrix", group)
    takes = functions.sizes_of([row[rank] for row in rows if len(row) == count],
                               "a column of send_count_matrix", group)  # fmt: skip
    found = functions.cut_and_exchange(input, gives, takes, group)
    output.rebind(F.reshape(found, output.shape))
    return CommHandle() if async_op else None


def send(tensor: Tensor, dst: int = 0, group: str = WORLD, tag: int = 0) -> None:
    """Sends a tensor to the process ``dst`` and waits until it may be changed.

    Args:
        tensor: What is sent.
        dst: Rank of the process, counted in the world.
        group: Name of the group.
        tag: Messages of equal tags meet.
    """
    functions.send(tensor, dst, group, tag).wait()


def recv(tensor: Tensor, src: int = 0, group: str = WORLD, tag: int = 0) -> Tensor:
    """Returns what the process ``src`` sends, of the shape and dtype of ``tensor``.

    Args:
        tensor: Tensor of the shape and dtype of what is sent.
        src: Rank of the process, counted in the world.
        group: Name of the group.
        tag: Messages of equal tags meet.
    """
    wanted = functions.require_tensor(tensor)
    return functions.receive_tensor(wanted.shape, wanted.dtype, src, tag, group)


def isend(tensor: Tensor, dst: int = 0, group: str = WORLD, tag: int = 0) -> CommHandle:
    """Begins to send a tensor to the process ``dst``; the handle waits for the end.

    Args:
        tensor: What is sent.
        dst: Rank of the process, counted in the world.
        group: Name of the group.
        tag: Messages of equal tags meet.
    """
    return CommHandle(functions.send(tensor, dst, group, tag))


def irecv(
    tensor: Tensor, src: int = 0, group: str = WORLD, tag: int = 0
) -> tuple[Tensor, CommHandle]:
    """Begins to receive from ``src`` into ``tensor``, which holds it after ``handle.wait()``.

    Args:
        tensor: Tensor of the shape and dtype of what is sent.
        src: Rank of the process, counted in the world.
        group: Name of the group.
        tag: Messages of equal tags meet.
    """
    wanted = functions.require_tensor(tensor)
    found, waiting = functions.receive(wanted.shape, wanted.dtype, src, group, tag)
    waiting.done = lambda: tensor.rebind(tensor_from_numpy(found))
    return tensor, CommHandle(waiting)


def barrier(group: str = WORLD) -> None:
    """Waits until all processes have come here.

    Args:
        group: Name of the group.
    """
    functions.barrier(group)


class P2POp:
    """One message of :func:`batch_isend_irecv`.

    Args:
        op: ``"isend"`` or ``"irecv"``, or the function.
        tensor: What is sent; of a receiver the tensor that is filled.
        peer: The other process.
        group: The processes.
        tag: Messages of equal tags meet.
        recv_dtype: Kept for MindSpore programs.
    """

    def __init__(
        self, op: object, tensor: Any, peer: int, group: str | None = None, tag: int = 0, *,
        recv_dtype: object = None,
    ) -> None:  # fmt: skip
        name = op if isinstance(op, str) else getattr(op, "__name__", "")
        if name not in ("isend", "irecv"):
            raise ArgumentError(f"op must be 'isend' or 'irecv', not {op!r}", op="P2POp")
        self.op, self.tensor, self.peer, self.group, self.tag = name, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[CommHandle]:
    """Begins several messages; returns a list with one handle, which waits for all of them.

    Args:
        p2p_op_list: The messages.

    Raises:
        DTypeError: if it is no list of messages, or an empty one.
    """
    ops = p2p_op_list if isinstance(p2p_op_list, (list, tuple)) else []
    if not ops or not all(isinstance(p, P2POp) for p in ops):
        raise DTypeError(f"p2p_op_list must hold P2POps, not {p2p_op_list!r}",
                         op="batch_isend_irecv")  # fmt: skip
    handles = []
    for p in ops:
        if p.op == "isend":
            handles.append(isend(p.tensor, p.peer, functions.named(p.group), p.tag))
        else:
            handles.append(irecv(p.tensor, p.peer, functions.named(p.group), p.tag)[1])
    return [CommHandle(*handles)]


__all__ = _public_names(globals())

_guard_module(globals(), "communication.comm_func")
