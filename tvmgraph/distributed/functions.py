"""Collectives as functions of tensors: what MindSpore's operators and functions are built of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.distributed import engine
from tvmgraph.errors import ArgumentError, DTypeError, LeavesGraph, ShapeError, either, reject

WORLD = "hccl_world_group"


class ReduceOp:
    """How processes reduce."""

    SUM, MAX, MIN, PROD, AVG = "sum", "max", "min", "prod", "mean"


def named(group: str | None) -> str:
    """Returns the name of a group, of all processes for ``None``.

    Args:
        group: The name, or ``None``.
    """
    return WORLD if group is None else group


def where(group: str | None) -> dict[str, Any]:
    """Returns what rows are told of a group.

    Args:
        group: Name of the group; all processes for ``None``.
    """
    name = named(group)
    return {"group": name, "parts": engine.get_group(name).size}


def reduction(op: str) -> str:
    """Returns the name of a reduction as rows know it.

    Args:
        op: MindSpore's word, in upper or lower case.

    Raises:
        ArgumentError: for another word.
    """
    found = {"avg": "mean"}.get(str(op).lower(), str(op).lower())
    if found not in ("sum", "mean", "prod", "max", "min"):
        reject(either(ArgumentError, TypeError), "communication", f"op cannot be {op!r}",
               fix="use ReduceOp.SUM, MAX, MIN, PROD or AVG")  # fmt: skip
    return found


def require_tensor(value: object, name: str = "tensor") -> Tensor:
    """Returns a tensor.

    Args:
        value: What was given.
        name: Name of the argument.

    Raises:
        DTypeError: if it is none.
    """
    if not isinstance(value, Tensor):
        raise DTypeError(f"{name} must be a Tensor, not {type(value).__name__}", op="communication",
                         got=f"{name}={value!r}")  # fmt: skip
    return value


def member(rank: int, group: str | None, name: str = "rank") -> int:
    """Returns the place in a group of a process of the world.

    Args:
        rank: Number of the process in the world.
        group: Name of the group; all processes for ``None``.
        name: Name of the argument.

    Raises:
        ArgumentError: if it is not in the group.
        DTypeError: if it is no integer.
    """
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise DTypeError(f"{name} must be an int, not {type(rank).__name__}", op="communication")
    ranks = engine.get_group(named(group)).ranks
    if rank not in ranks:
        raise ArgumentError(
            f"{name} must be one of the ranks {list(ranks)} of {named(group)!r}, not {rank!r}",
            op="communication",
        )
    return ranks.index(rank)


def eagerly(what: str) -> None:
    """Says that something happens between the compiled pieces of a function.

    Args:
        what: Name of the function.

    Raises:
        LeavesGraph: inside of a capture.
    """
    if state.interpreter is not None:
        reject(LeavesGraph, what, "messages between two processes, and waiting, are done by Python",
               fix="call it outside, or use jit_syntax_level='LAX'")  # fmt: skip


def all_reduce(x: object, op: str = "sum", group: str | None = None) -> Tensor:
    """Returns the reduction of all processes' tensors.

    Args:
        x: This process's tensor; all have one shape.
        op: ``"sum"``, ``"mean"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: Name of the group; all processes for ``None``.
    """
    (found,) = F.all_reduced(require_tensor(x), how=reduction(op), **where(group))
    return found


def all_gather(x: object, group: str | None = None) -> Tensor:
    """Returns all processes' tensors, concatenated along the first axis.

    Args:
        x: This process's tensor; all have one shape.
        group: Name of the group; all processes for ``None``.
    """
    tensor = require_tensor(x)
    return F.all_gathered(F.reshape(tensor, (1,)) if not tensor.ndim else tensor, axis=0,
                          **where(group))  # fmt: skip


def reduce_scatter(x: object, op: str = "sum", group: str | None = None) -> Tensor:
    """Returns this process's shard, along the first axis, of the reduction of all tensors.

    Args:
        x: This process's tensor; the first axis is a multiple of the number of processes.
        op: ``"sum"``, ``"mean"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: Name of the group; all processes for ``None``.
    """
    return F.reduce_scattered(require_tensor(x), axis=0, how=reduction(op), **where(group))


def broadcast(x: object, root: int = 0, group: str | None = None) -> Tensor:
    """Returns the tensor of the process ``root`` of the world.

    Args:
        x: This process's tensor; all have one type.
        root: Number of the process in the world.
        group: Name of the group; all processes for ``None``.
    """
    return F.root_sent(require_tensor(x), root=member(root, group, "root_rank"), **where(group))


def broadcast_all(
    xs: object, root: int = 0, group: str | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Returns the tensors of the process ``root``: of a tuple, or of one tensor.

    Args:
        xs: This process's tensor or tensors.
        root: Number of the process in the world.
        group: Name of the group; all processes for ``None``.
    """
    if isinstance(xs, (tuple, list)):
        return tuple(broadcast(x, root, group) for x in xs)
    return broadcast(xs, root, group)


def reduce(x: Tensor, dst: int = 0, op: str = "sum", group: str | None = None) -> Tensor:
    """Returns the reduction in the process ``dst``, the tensor itself in the others.

    Args:
        x: This process's tensor; all have one shape.
        dst: Number of the process in the world.
        op: ``"sum"``, ``"mean"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: Name of the group; all processes for ``None``.
    """
    found = all_reduce(x, op, group)
    return found if engine.world().rank == dst else x


def all_to_all(x: object, count: int, split: int, concat: int, group: str | None = None) -> Tensor:
    """Exchanges the parts of an axis; what comes is concatenated along another.

    Args:
        x: This process's tensor; all have one shape.
        count: Number of parts, that of the processes.
        split: The axis that is cut.
        concat: The axis along which parts are joined.
        group: Name of the group; all processes for ``None``.

    Raises:
        ArgumentError: if ``count`` is another number.
    """
    here = where(group)
    if count != here["parts"]:
        raise ArgumentError(
            f"split_count must be the number of processes, {here['parts']}, not {count}",
            op="ops.AlltoAll",
        )
    tensor = require_tensor(x)
    return F.parts_exchanged(tensor, split=split % tensor.ndim, concat=concat % tensor.ndim, **here)


def exchange(
    xs: Sequence[Tensor],
    send: Sequence[int],
    receive: Sequence[int],
    shapes: Sequence[Sequence[int]],
    group: str | None = None,
) -> tuple[Tensor, ...]:
    """Sends tensors to processes of a group while receiving some of given shapes.

    Args:
        xs: The tensors that are sent.
        send: Members of the group that they go to.
        receive: Members of the group that something comes from.
        shapes: Shapes of what comes.
        group: Name of the group; all processes for ``None``.
    """
    return F.neighbors_exchanged(
        *xs, send=tuple(send), receive=tuple(receive), shapes=tuple(map(tuple, shapes)),
        **where(group),
    )  # fmt: skip


def barrier(group: str | None = None) -> None:
    """Waits until all processes have come here.

    Args:
        group: Name of the group; all processes for ``None``.
    """
    eagerly("barrier")
    engine.barrier(named(group))


def send(x: object, dst: int, group: str | None = None, tag: int = 0) -> engine.Waiting:
    """Begins to send a tensor to a process of the world.

    Args:
        x: The tensor.
        dst: Number of the process in the world.
        group: Name of the group; all processes for ``None``.
        tag: What tells messages of two processes apart.

    Raises:
        ArgumentError: if it is this process.
    """
    eagerly("send")
    tensor = require_tensor(x)
    if dst == engine.world().rank:
        raise ArgumentError(f"rank {dst} does not send to itself", op="send", got=f"dst={dst}")
    return engine.start([(member(dst, group, "dst"), tensor.asnumpy().copy())], [],
                        named(group), tag)  # fmt: skip


def receive(
    shape: Sequence[int], dtype: DTypeLike, src: int, group: str | None = None, tag: int = 0
) -> tuple[np.ndarray, engine.Waiting]:
    """Begins to receive an array from a process of the world.

    Args:
        shape: Shape of the array.
        dtype: Its dtype.
        src: Number of the process in the world.
        group: Name of the group; all processes for ``None``.
        tag: What tells messages of two processes apart.

    Returns:
        The array, which holds nothing before the waiting is over.
    """
    eagerly("receive")
    found = np.empty(tuple(shape), dtypes.dtype_of(dtype).numpy)
    return found, engine.start([], [(member(src, group, "src"), found)], named(group), tag)


def receive_tensor(
    shape: Sequence[int], dtype: DTypeLike, src: int, tag: int, group: str | None
) -> Tensor:
    """Receives a tensor.

    Args:
        shape: Its shape.
        dtype: Its dtype.
        src: Number of the process in the world.
        tag: What tells messages of two processes apart.
        group: Name of the group; all processes for ``None``.
    """
    found, waiting = receive(shape, dtype, src, group, tag)
    waiting.wait()
    return tensor_from_numpy(found)


def send_tensor(x: Tensor, dst: int, tag: int, group: str | None) -> Tensor:
    """Sends a tensor and returns it.

    Args:
        x: The tensor.
        dst: Number of the process in the world.
        tag: What tells messages of two processes apart.
        group: Name of the group; all processes for ``None``.
    """
    send(x, dst, group, tag).wait()
    return x


def gather(x: Tensor, dst: int, group: str | None = None) -> Tensor:
    """Returns all tensors along the first axis in the process ``dst``, zeros in the others.

    Args:
        x: This process's tensor; all have one shape.
        dst: Number of the process in the world.
        group: Name of the group; all processes for ``None``.
    """
    found = all_gather(x, group)
    return found if engine.world().rank == dst else F.zeros_like(found)


def scatter(x: Tensor, src: int = 0, group: str | None = None) -> Tensor:
    """Returns this process's shard, along the first axis, of the tensor of ``src``.

    Args:
        x: The tensor; in processes other than ``src`` one of the same type.
        src: Number of the process in the world.
        group: Name of the group; all processes for ``None``.
    """
    return F.own_part(broadcast(x, src, group), axis=0, **where(group))


def uneven(
    parts: Sequence[Tensor], shapes: Sequence[Sequence[int]], group: str | None
) -> tuple[Tensor, ...]:
    """Sends the i-th tensor to the i-th member and receives one of each, of these shapes.

    Args:
        parts: The tensors that are sent.
        shapes: Shapes of what comes.
        group: Name of the group; all processes for ``None``.

    Raises:
        ShapeError: if there are not as many tensors as members.
    """
    members = range(where(group)["parts"])
    if len(parts) != len(members) or len(shapes) != len(members):
        raise ShapeError(
            f"{len(parts)} tensors and {len(shapes)} results for {len(members)} processes",
            op="all_to_all",
        )
    return exchange(parts, members, members, shapes, group)


def sizes_of(sizes: Any, name: str, group: str | None) -> list[int]:
    """Returns how many elements every member has.

    Args:
        sizes: The numbers, a sequence or tensor.
        name: Name of the argument.
        group: Name of the group; all processes for ``None``.

    Raises:
        ArgumentError: if it is not one number from 0 on per member.
    """
    known = sizes.asnumpy().tolist() if isinstance(sizes, Tensor) else sizes
    count = where(group)["parts"]
    fits = isinstance(known, (list, tuple)) and len(known) == count
    if not fits or not all(isinstance(n, int) and n >= 0 for n in known):
        raise ArgumentError(f"{name} must have {count} number(s), one per process, not {known!r}",
                            op="communication")  # fmt: skip
    return list(known)


def cut_and_exchange(
    x: object, gives: Sequence[int], takes: Sequence[int], group: str | None = None
) -> Tensor:
    """Sends parts of the first axis to all members; what comes is concatenated along it.

    Args:
        x: What is sent.
        gives: Length of what every member gets.
        takes: Length of what every member sends.
        group: The processes.

    Raises:
        ArgumentError: if the lengths are not one per member, or not those of the tensor.
    """
    tensor = require_tensor(x)
    gives, takes = sizes_of(gives, "send sizes", group), sizes_of(takes, "receive sizes", group)
    _require_sum(tensor, gives)
    ends = np.cumsum(gives)
    parts = [F.narrow(tensor, 0, int(e) - n, n) for e, n in zip(ends, gives)]
    return F.concat(uneven(parts, [(n, *tensor.shape[1:]) for n in takes], group), 0)


def _require_sum(tensor: Tensor, sizes: Sequence[int]) -> None:
    if not tensor.ndim or sum(sizes) != tensor.shape[0]:
        raise ArgumentError(f"the sizes {list(sizes)} do not add up to the first dimension of the "
                            f"shape {tuple(tensor.shape)}", op="communication")  # fmt: skip


def all_to_all_v(
    x: object, gives: object, takes: object, block: int = 1, group: str | None = None
) -> Tensor:
    """Exchanges parts of a vector, whose lengths count blocks of elements.

    Args:
        x: This process's tensor, which is flattened.
        gives: Blocks that go to every member.
        takes: Blocks that come from every member.
        block: Elements of a block.
        group: Name of the group; all processes for ``None``.
    """
    sent, taken = ([n * block for n in sizes_of(s, "numel_list", group)] for s in (gives, takes))
    return cut_and_exchange(F.reshape(require_tensor(x), (-1,)), sent, taken, group)


def all_gather_v(x: object, sizes: object, group: str | None = None) -> Tensor:
    """Returns all processes' tensors, of these lengths, concatenated along the first axis.

    Args:
        x: This process's tensor.
        sizes: Lengths of the first axis, by member.
        group: Name of the group; all processes for ``None``.

    Raises:
        ArgumentError: if this process's tensor has another length.
    """
    tensor, known = require_tensor(x), sizes_of(sizes, "output_split_sizes", group)
    _require_sum(tensor, [known[engine.get_group(named(group)).rank]])
    shapes = [(n, *tensor.shape[1:]) for n in known]
    return F.concat(uneven([tensor] * len(known), shapes, group), 0)


def reduce_scatter_v(x: object, sizes: object, op: str = "sum", group: str | None = None) -> Tensor:
    """Returns this process's shard, of these lengths, of the reduction along the first axis.

    Args:
        x: This process's tensor; all have one shape.
        sizes: Lengths of the shards, by member.
        op: ``"sum"``, ``"mean"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: Name of the group; all processes for ``None``.
    """
    tensor, known = require_tensor(x), sizes_of(sizes, "input_split_sizes", group)
    _require_sum(tensor, known)
    rank = engine.get_group(named(group)).rank
    return F.narrow(all_reduce(tensor, op, group), 0, sum(known[:rank]), known[rank])


def batch(
    xs: Sequence[Tensor],
    kinds: Sequence[str],
    ranks: Sequence[int],
    shapes: Sequence[Sequence[int]],
    types: Sequence[DTypeLike],
    group: str | None = None,
) -> tuple[Tensor, ...]:
    """Sends and receives several tensors at once; what is sent stands as a zero in the result.

    Args:
        xs: The tensors that are sent, in the order of the operations.
        kinds: ``"isend"`` or ``"irecv"`` for every operation.
        ranks: The other process of every operation.
        shapes: Shapes of what is received.
        types: dtypes of what is received.
        group: Name of the group; all processes for ``None``.

    Raises:
        ArgumentError: if the lists do not belong together.
    """
    sent, shapes, types = list(xs), list(shapes or ()), list(types or ())
    counts = [sum(k == kind for k in kinds) for kind in ("isend", "irecv")]
    if [len(sent), len(shapes), len(types), len(ranks)] != [*counts, counts[1], sum(counts)]:
        raise ArgumentError(
            f"{len(sent)} tensors, {len(shapes)} shapes, {len(types)} types and {len(ranks)} ranks "
            f"for the operations {list(kinds)}", op="BatchISendIRecv",
        )  # fmt: skip
    begun: list[tuple[np.ndarray, engine.Waiting]] = []
    coming = iter(zip(shapes, types))
    for kind, rank in zip(kinds, ranks):
        if kind == "isend":
            begun.append((np.zeros((), np.float32), send(sent.pop(0), rank, group)))
        else:
            begun.append(receive(*next(coming), rank, group))
    for _, waiting in begun:
        waiting.wait()
    return tuple(tensor_from_numpy(found) for found, _ in begun)
