"""Collectives as functions of tensors: what MindSpore's operators and functions are built of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.distributed import engine
from tvmgraph.errors import ArgumentError, DTypeError, LeavesGraph, ShapeError, user_source

WORLD = "hccl_world_group"


class ReduceOp:
    """How processes reduce."""

    SUM, MAX, MIN, PROD, AVG = "sum", "max", "min", "prod", "mean"


def where(group: str | None) -> dict[str, Any]:
    """Returns what rows are told of a group."""
    name = group or WORLD
    return {"group": name, "parts": engine.get_group(name).size}


def reduction(op: str) -> str:
    """Returns the name of a reduction as rows know it.

    Raises:
        ArgumentError: for another word.
    """
    found = {"avg": "mean"}.get(str(op).lower(), str(op).lower())
    if found not in ("sum", "mean", "prod", "max", "min"):
        raise ArgumentError(
            f"op cannot be {op!r}", op="communication", at=user_source(),
            fix="use ReduceOp.SUM, MAX, MIN, PROD or AVG",
        )  # fmt: skip
    return found


def require_tensor(value: Any, name: str = "tensor") -> Tensor:
    """Returns a tensor.

    Raises:
        DTypeError: if it is none.
    """
    if not isinstance(value, Tensor):
        raise DTypeError(f"{name} must be a Tensor, not {type(value).__name__}",
                         op="communication", at=user_source())  # fmt: skip
    return value


def member(rank: int, group: str | None, name: str = "rank") -> int:
    """Returns the place in a group of a process of the world.

    Raises:
        ArgumentError: if it is not in the group.
    """
    ranks = engine.get_group(group or WORLD).ranks
    if rank not in ranks:
        raise ArgumentError(
            f"{name} must be one of the ranks {list(ranks)} of {group or WORLD!r}, not {rank!r}",
            op="communication", at=user_source(),
        )  # fmt: skip
    return ranks.index(rank)


def eagerly(what: str) -> None:
    """Says that something happens between the compiled pieces of a function.

    Raises:
        LeavesGraph: inside of a capture.
    """
    if state.interpreter is not None:
        raise LeavesGraph(
            "messages between two processes, and waiting, are done by Python", op=what,
            at=user_source(), fix="call it outside, or use jit_syntax_level='LAX'",
        )  # fmt: skip


def all_reduce(x: Any, op: str = "sum", group: str | None = None) -> Tensor:
    """Returns the reduction of all processes' tensors."""
    (found,) = F.all_reduced(require_tensor(x), how=reduction(op), **where(group))
    return found


def all_gather(x: Any, group: str | None = None) -> Tensor:
    """Returns all processes' tensors, concatenated along the first axis."""
    tensor = require_tensor(x)
    return F.all_gathered(F.reshape(tensor, (1,)) if not tensor.ndim else tensor, axis=0,
                          **where(group))  # fmt: skip


def reduce_scatter(x: Any, op: str = "sum", group: str | None = None) -> Tensor:
    """Returns this process's part, along the first axis, of the reduction of all tensors."""
    return F.reduce_scattered(require_tensor(x), axis=0, how=reduction(op), **where(group))


def broadcast(x: Any, root: int = 0, group: str | None = None) -> Tensor:
    """Returns the tensor of the process ``root`` of the world."""
    return F.root_sent(require_tensor(x), root=member(root, group, "root_rank"), **where(group))


def broadcast_all(xs: Any, root: int = 0, group: str | None = None) -> Any:
    """Returns the tensors of the process ``root``: of a tuple, or of one tensor."""
    if isinstance(xs, (tuple, list)):
        return tuple(broadcast(x, root, group) for x in xs)
    return broadcast(xs, root, group)


def reduce(x: Any, dst: int = 0, op: str = "sum", group: str | None = None) -> Tensor:
    """Returns the reduction in the process ``dst``, the tensor itself in the others."""
    found = all_reduce(x, op, group)
    return found if engine.world().rank == dst else x


def all_to_all(x: Any, count: int, split: int, concat: int, group: str | None = None) -> Tensor:
    """Exchanges the parts of an axis; what comes is concatenated along another."""
    here = where(group)
    if count != here["parts"]:
        raise ArgumentError(
            f"split_count must be the number of processes, {here['parts']}, not {count}",
            op="ops.AlltoAll", at=user_source(),
        )  # fmt: skip
    tensor = require_tensor(x)
    return F.parts_exchanged(tensor, split=split % tensor.ndim, concat=concat % tensor.ndim, **here)


def exchange(
    xs: Sequence[Tensor], send: Sequence[int], receive: Sequence[int], shapes: Sequence[Any],
    group: str | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Sends tensors to processes of a group while receiving some of given shapes."""
    return F.neighbors_exchanged(
        *xs, send=tuple(send), receive=tuple(receive), shapes=tuple(map(tuple, shapes)),
        **where(group),
    )  # fmt: skip


def barrier(group: str | None = None) -> None:
    """Waits until all processes have come here."""
    eagerly("barrier")
    engine.barrier(group or WORLD)


def send(x: Any, dst: int, group: str | None = None, tag: int = 0) -> engine.Waiting:
    """Begins to send a tensor to a process of the world."""
    eagerly("send")
    tensor = require_tensor(x)
    return engine.start([(member(dst, group, "dst"), tensor.asnumpy().copy())], [],
                        group or WORLD, tag)  # fmt: skip


def receive(
    shape: Sequence[int], dtype: Any, src: int, group: str | None = None, tag: int = 0
) -> tuple[np.ndarray, engine.Waiting]:
    """Begins to receive an array from a process of the world."""
    eagerly("receive")
    found = np.empty(tuple(shape), dtypes.dtype_of(dtype).numpy)
    return found, engine.start([], [(member(src, group, "src"), found)], group or WORLD, tag)


def receive_tensor(shape: Any, dtype: Any, src: int, tag: int, group: str | None) -> Tensor:
    """Receives a tensor."""
    found, waiting = receive(shape, dtype, src, group, tag)
    waiting.wait()
    return tensor_from_numpy(found)


def send_tensor(x: Tensor, dst: int, tag: int, group: str | None) -> Tensor:
    """Sends a tensor and returns it."""
    send(x, dst, group, tag).wait()
    return x


def gather(x: Tensor, dst: int, group: str | None = None) -> Tensor:
    """Returns all tensors along the first axis in the process ``dst``, zeros in the others."""
    found = all_gather(x, group)
    return found if engine.world().rank == dst else F.zeros_like(found)


def scatter(x: Tensor, src: int = 0, group: str | None = None) -> Tensor:
    """Returns this process's part, along the first axis, of the tensor of ``src``."""
    return F.own_part(broadcast(x, src, group), axis=0, **where(group))


def uneven(
    parts: Sequence[Tensor], shapes: Sequence[Sequence[int]], group: str | None
) -> tuple[Tensor, ...]:
    """Sends the i-th tensor to the i-th member and receives one of each, of these shapes.

    Raises:
        ShapeError: if there are not as many tensors as members.
    """
    members = range(where(group)["parts"])
    if len(parts) != len(members) or len(shapes) != len(members):
        raise ShapeError(
            f"{len(parts)} tensors and {len(shapes)} results for {len(members)} processes",
            op="all_to_all", at=user_source(),
        )  # fmt: skip
    return exchange(parts, members, members, shapes, group)
