"""The processes of a job and what they do together: an MPI library moves the data.

Without a launcher the world has one process, and neither MPI nor mpi4py is needed. All processes
call the same collectives in the same order; one that waits longer than the time limit ends with an
error that names the rank, the collective and whoever has not come to it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from types import TracebackType
from typing import Any

import numpy as np

from tvmgraph.errors import ArgumentError, DeviceError, DTypeError, either, reject

#: Variables by which launchers say how many processes they have started.
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PALS_LOCAL_SIZE")
#: Seconds that a collective may take, and the folder in which ranks of a host note their progress.
TIMEOUT, JOB = "TVMGRAPH_COLLECTIVE_TIMEOUT", "TVMGRAPH_JOB_FOLDER"
_OBJECTS = 32749  # tag of messages with objects
_STUCK = 71  # exit status of a process that gave up
_READ = 0.3  # seconds in which launchers read what was written
WORLD_NAMES = ("world", "hccl_world_group", "nccl_world_group", "mccl_world_group")


@dataclass(frozen=True)
class Group:
    """Some processes in an order of their own.

    Attributes:
        name: How it is called.
        ranks: Their numbers in the world.
        rank: The place of this process among them; -1 where it is none of them.
        comm: Their communicator; None where this process is alone or none of them.
    """

    name: str
    ranks: tuple[int, ...]
    rank: int
    comm: Any

    @property
    def size(self) -> int:
        """How many they are."""
        return len(self.ranks)


@dataclass
class Traffic:
    """What this process took part in: ``calls``, and ``bytes`` of its operands, by collective."""

    calls: dict[str, int]
    bytes: dict[str, int]

    def add(self, kind: str, nbytes: int) -> None:
        """Counts one collective.

        Args:
            kind: Name of the collective.
            nbytes: Bytes that this process gave.
        """
        self.calls[kind] = self.calls.get(kind, 0) + 1
        self.bytes[kind] = self.bytes.get(kind, 0) + nbytes


traffic = Traffic({}, {})


def launched() -> int:
    """Returns how many processes a launcher says it has started; 1 without one."""
    return max((int(os.environ.get(name) or 1) for name in SIZES), default=1)


class _World:
    """All processes of the job."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.subsets: dict[tuple[int, ...], object] = {}
        self.rank, self.size, self.local_rank, self.local_size = 0, 1, 0, 1
        self.comm: Any = None
        if launched() > 1:
            self._join()
        every = Group("world", tuple(range(self.size)), self.rank, self.comm)
        self.groups.update((name, every) for name in WORLD_NAMES)

    def _join(self) -> None:
        try:
            from mpi4py import MPI
        except ImportError as e:
            raise DeviceError(
                f"{launched()} processes were started, but mpi4py is not installed",
                op="communication.init", fix="pip install 'tvmgraph[mpi]'",
            ) from e  # fmt: skip
        self.comm = MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size
        if self.size == 1:
            reject(DeviceError, "communication.init",
                   f"a launcher started {launched()} processes, but MPI sees one: mpi4py was built "
                   "for another MPI library than the launcher's",
                   fix="use tvmgraph-run, or install mpi4py for that MPI")  # fmt: skip
        watchdog.start(self.rank, self.size)
        _abort_on_error(self)
        with watchdog.waiting("comparing versions"):
            found = self.comm.allgather(_versions())
            near = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.local_rank, self.local_size = near.rank, near.size
        if len(set(found)) > 1:
            others = [i for i, v in enumerate(found) if v != found[0]]
            raise DeviceError(
                "the processes run different versions: "
                + ", ".join(f"rank {i}: {found[i]}" for i in (0, *others)),
                op="communication.init", fix="install the same on every machine",
            )  # fmt: skip

    def subset(self, ranks: tuple[int, ...]) -> Any:
        """Returns the communicator of some processes; called by all of them, and by no other."""
        if self.comm is None or self.rank not in ranks or len(ranks) == 1:
            return None
        if ranks == tuple(range(self.size)):
            return self.comm
        found = self.subsets.get(ranks)
        if found is None:
            members = self.comm.group.Incl(ranks)
            with watchdog.waiting(f"making the group {list(ranks)}"):
                found = self.subsets[ranks] = self.comm.Create_group(members, hash(ranks) % 1000)
        return found


def _versions() -> str:
    names = ("tvmgraph", "apache-tvm", "numpy")
    known = []
    for name in names:
        with contextlib.suppress(metadata.PackageNotFoundError):
            known.append(f"{name} {metadata.version(name)}")
    return ", ".join([f"Python {platform.python_version()}", *known])


def _abort_on_error(world: _World) -> None:
    """An error that nobody catches ends all processes: the others would wait for this one."""
    if "ipykernel" in sys.modules or "ipyparallel" in sys.modules:
        return  # there an error is shown, and the process goes on
    before = sys.excepthook

    def ended(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        sys.stderr.write(f"[rank {world.rank}] ends all {world.size} processes because of:\n")
        before(kind, value, trace)
        _until_read()
        world.comm.Abort(1)

    sys.excepthook = ended


def _until_read() -> None:
    """Gives the launcher the time to pass on what was written: it drops the rest at an abort."""
    sys.stderr.flush()
    time.sleep(_READ)


def say_who_leaves(status: int) -> None:
    """Writes that this process leaves with an error, in time for a launcher to pass it on.

    Args:
        status: Its exit status.
    """
    rank, size = world().rank, world().size
    sys.stderr.write(f"[rank {rank}] ends all {size} processes: it left with status {status}\n")
    _until_read()


class Watchdog:
    """Ends this process when a collective takes too long."""

    def __init__(self) -> None:
        self.number, self.until = 0, 0.0
        self.what: object = ""
        self.limit = float(os.environ.get(TIMEOUT) or 300)
        self.rank, self.progress = 0, None

    def start(self, rank: int, size: int) -> None:
        """Begins to watch.

        Args:
            rank: The number of this process.
            size: How many there are.
        """
        self.rank, folder = rank, os.environ.get(JOB)
        if folder and os.path.isdir(folder):
            path = os.path.join(folder, "progress")
            with open(path, "ab") as file:
                file.truncate(8 * size)
            self.progress = np.memmap(path, np.int64, "r+", shape=(size,))
            with open(os.path.join(folder, str(os.getpid())), "w") as file:
                file.write(str(rank))
        threading.Thread(target=self._watchdog, name="tvmgraph-watchdog", daemon=True).start()

    def waiting(self, what: object, limit: float = 0.0) -> Watchdog:
        """Limits the time of what is done in a ``with`` block.

        Args:
            what: What it is, for the error: a text, or a collective with its operand and group.
            limit: Seconds, instead of the usual limit.
        """
        self.number += 1
        if self.progress is not None:
            self.progress[self.rank] = self.number
        self.what, self.until = what, time.monotonic() + (limit or self.limit)
        return self

    def __enter__(self) -> None:
        """Begins; :meth:`waiting` has said with what."""

    def __exit__(self, *_: object) -> None:
        """Ends the time limit."""
        self.until = 0.0

    def _watchdog(self) -> None:
        while True:
            time.sleep(min(0.5, self.limit / 8))
            if self.until and time.monotonic() > self.until:
                sys.stderr.write(self.message() + "\n")
                _until_read()
                os._exit(_STUCK)  # MPI's own way out may wait for the others, too

    def message(self) -> str:
        """Returns what is wrong."""
        late = ""
        if self.progress is not None:
            behind = [i for i, n in enumerate(self.progress) if n < self.number]
            late = f"; not there yet: rank {', '.join(map(str, behind))}" if behind else ""
        what = f"collective #{self.number} {_spoken(self.what)}"
        return (
            f"[rank {self.rank}] DeviceError: {what} was not finished after {self.limit:g} s"
            f"{late}\n  another process died, is stuck, cannot be reached or runs a different "
            "program. Ending the job."
        )


def _spoken(what: Any) -> str:
    if isinstance(what, str):
        return what
    kind, array, group = what
    shape = ",".join(map(str, array.shape))
    return f"{kind}({array.dtype}[{shape}]) of ranks {list(group.ranks)}"


watchdog = Watchdog()


@functools.cache
def world() -> _World:
    """Returns all processes; joins them at the first call."""
    return _World()


def is_joined() -> bool:
    """Whether the processes of a job were joined."""
    return world.cache_info().currsize > 0


# ---- groups -------------------------------------------------------------------------------------


def make_group(name: str, ranks: Sequence[int]) -> Group:
    """Names some processes.

    Args:
        name: The new group.
        ranks: Their numbers in the world, in order.

    Raises:
        ArgumentError: if a rank is not in the world or comes twice.
    """
    every, wanted = world(), tuple(ranks)
    if not wanted or len(set(wanted)) < len(wanted) or not set(wanted) <= set(range(every.size)):
        raise either(ArgumentError, RuntimeError)(
            f"rank_ids must be different numbers from 0 to {every.size - 1}, not {list(ranks)}",
            op="create_group",
        )
    place = wanted.index(every.rank) if every.rank in wanted else -1
    found = every.groups[name] = Group(name, wanted, place, every.subset(wanted))
    return found


def mesh_text(names: Sequence[str], shape: Sequence[int], axes: Sequence[str]) -> str:
    """Returns the name of the groups of processes that differ along some axes of a mesh.

    Args:
        names: Names of the axes.
        shape: Sizes of the axes.
        axes: Along which of them.
    """
    mesh = ",".join(f"{n}={s}" for n, s in zip(names, shape))
    return f"{mesh}/{','.join(axes)}"


def get_group(name: str) -> Group:
    """Returns a group: of the world, one that was made, or this process's of a mesh's axes.

    Args:
        name: A name, or what :func:`mesh_text` returned.

    Raises:
        ArgumentError: if there is none of this name.
        DTypeError: if the name is no text.
    """
    if not isinstance(name, str):
        raise DTypeError(f"group must be a name, not {name!r}", op="communication",
                         fix="pass what new_group returned")  # fmt: skip
    found = world().groups.get(name)
    if found is not None:
        return found
    if "/" not in name:
        reject(either(ArgumentError, RuntimeError), "communication", f"there is no group {name!r}",
               fix="create_group(name, rank_ids)")  # fmt: skip
    return make_group(name, _along(name))


def _along(name: str) -> list[int]:
    mesh, _, axes = name.partition("/")
    sizes = {n: int(s) for n, _, s in (part.partition("=") for part in mesh.split(","))}
    names, wanted = list(sizes), axes.split(",")
    ranks = np.arange(int(np.prod(list(sizes.values())))).reshape(tuple(sizes.values()))
    if ranks.size != world().size:
        reject(DeviceError, "shard",
               f"a mesh of {ranks.size} processes ({mesh}) was asked for, and there are "
               f"{world().size}", fix=f"start them with tvmgraph-run -n {ranks.size}")  # fmt: skip
    here = np.argwhere(ranks == world().rank)[0]
    index = tuple(slice(None) if n in wanted else int(here[i]) for i, n in enumerate(names))
    kept = [n for n in names if n in wanted]
    return ranks[index].transpose([kept.index(a) for a in wanted]).reshape(-1).tolist()


# ---- collectives --------------------------------------------------------------------------------


def _timed(group: Group, kind: str, array: np.ndarray) -> Watchdog:
    traffic.add(kind, array.nbytes)
    return watchdog.waiting((kind, array, group))


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


class _Scratch(threading.local):
    """Where the results of collectives go that compiled code asks for.

    Attributes:
        in_use: Whether results are copied at once, so that the next may have the same memory:
            fresh pages would cost more than the message.
        memory: That memory.
        wanted: Where compiled code wants its only result.
    """

    in_use = False
    memory = np.empty(0, np.uint8)
    wanted: np.ndarray | None = None


scratch = _Scratch()


def _result(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns memory for a result."""
    wanted = scratch.wanted
    if wanted is not None and wanted.shape == shape and wanted.dtype == dtype:
        return wanted
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if not scratch.in_use or not nbytes:
        return np.empty(shape, dtype)
    if scratch.memory.size < nbytes:
        scratch.memory = np.empty(nbytes, np.uint8)
    return scratch.memory[:nbytes].view(dtype).reshape(shape)


def _require_member(group: Group, kind: str) -> None:
    if group.rank < 0:
        raise ArgumentError(
            f"rank {world().rank} is not in the group {group.name!r} of ranks {list(group.ranks)}",
            op=kind,
        )


def all_reduce(x: np.ndarray, name: str, op: str = "sum") -> np.ndarray:
    """Returns the sum (``op``: ``sum``, ``mean``, ``prod``, ``max`` or ``min``) of all arrays.

    Args:
        x: This member's array; all have one shape.
        name: Name of the group.
        op: The word.
    """
    return _reduced("all_reduce", "Allreduce", get_group(name), x, op, x.shape)


def _reduced(
    kind: str, function: str, group: Group, x: np.ndarray, op: str, shape: tuple[int, ...]
) -> np.ndarray:
    """What MPI's ``function`` makes of the arrays of a group."""
    _require_member(group, kind)
    if group.comm is None:
        return x.reshape(shape).copy()
    from mpi4py import MPI

    known = {"sum": MPI.SUM, "mean": MPI.SUM, "prod": MPI.PROD, "max": MPI.MAX, "min": MPI.MIN}
    wide = np.ascontiguousarray(x.astype(_wide(x.dtype), copy=False))
    out = _result(shape or (1,), wide.dtype)
    with _timed(group, kind, x):
        getattr(group.comm, function)(wide, out, known[op])
    if op == "mean":
        out = out / group.size if out.dtype.kind == "f" else out // group.size
    return out.astype(x.dtype, copy=False).reshape(shape)


def _wide(dtype: np.dtype) -> np.dtype | type[np.generic] | None:
    """The dtype in which MPI adds: it knows neither bfloat16 nor, everywhere, float16."""
    if dtype == np.bool_:
        return np.uint8
    return np.float32 if dtype.itemsize == 2 and dtype.kind in "fV" else dtype


def all_gather(x: np.ndarray, name: str) -> np.ndarray:
    """Returns the arrays of all members, stacked along a new first axis.

    Args:
        x: This member's array; all have one shape.
        name: Name of the group.
    """
    group = get_group(name)
    return _moved("all_gather", "Allgather", group, x, (group.size, *x.shape))


def _moved(
    kind: str, function: str, group: Group, x: np.ndarray, shape: tuple[int, ...]
) -> np.ndarray:
    """What MPI's ``function`` brings, of a shape."""
    _require_member(group, kind)
    out = _result(shape, x.dtype)
    if group.comm is None:
        out[...] = x.reshape(shape)
        return out
    with _timed(group, kind, x):
        getattr(group.comm, function)(_bytes(x), _bytes_of(out))
    return out


def _bytes_of(out: np.ndarray) -> np.ndarray:
    return out.reshape(-1).view(np.uint8)


def reduce_scatter(x: np.ndarray, name: str, op: str = "sum") -> np.ndarray:
    """Reduces arrays of shape ``(members, ...)`` and returns this member's row of the result.

    Args:
        x: This member's array.
        name: Name of the group.
        op: ``sum``, ``mean``, ``prod``, ``max`` or ``min``.
    """
    group = get_group(name)
    return _reduced("reduce_scatter", "Reduce_scatter_block", group, x, op, x.shape[1:])


def all_to_all(x: np.ndarray, name: str) -> np.ndarray:
    """Sends row ``i`` of an array of shape ``(members, ...)`` to member ``i``.

    Args:
        x: This member's array.
        name: Name of the group.

    Returns:
        What came, of the same shape.
    """
    return _moved("all_to_all", "Alltoall", get_group(name), x, x.shape)


def broadcast(x: np.ndarray, name: str, root: int = 0) -> np.ndarray:
    """Returns the array of the member ``root``.

    Args:
        x: This member's array; all have one shape and dtype.
        name: Name of the group.
        root: Number of the member in the group.
    """
    group = get_group(name)
    _require_member(group, "broadcast")
    out = np.array(x, order="C")
    if group.comm is not None:
        with _timed(group, "broadcast", x):
            group.comm.Bcast(_bytes_of(out), root)
    return out


@dataclass
class Waiting:
    """Messages on their way.

    Attributes:
        requests: What MPI knows of them.
        what: What they are, for errors.
        kept: Arrays that must live as long.
        done: What is called once they have arrived.
    """

    requests: list[Any]
    what: str
    kept: list[np.ndarray]
    done: Callable[[], object] = lambda: None

    def wait(self) -> None:
        """Waits until they have arrived."""
        requests, self.requests = self.requests, []
        if requests:
            from mpi4py import MPI

            with watchdog.waiting(self.what):
                MPI.Request.Waitall(requests)
        done, self.done = self.done, lambda: None
        done()


def start(
    sent: Sequence[tuple[int, np.ndarray]], received: Sequence[tuple[int, np.ndarray]], name: str,
    tag: int = 0,
) -> Waiting:  # fmt: skip
    """Begins to send arrays to members, and to fill others with what members send.

    Args:
        sent: Member and array.
        received: Member and the array to fill.
        name: The group.
        tag: Messages of equal tags meet.

    Raises:
        ArgumentError: if a process that is alone sends to itself and does not receive.
    """
    group = get_group(name)
    _require_member(group, "exchange")
    if group.comm is None:
        if len(sent) != len(received):
            raise ArgumentError("a process that is alone has nobody to talk to", op="send")
        for (_, a), (_, b) in zip(sent, received):
            b[...] = a
        return Waiting([], "", [])
    traffic.add("exchange", sum(a.nbytes for _, a in received))
    partners = sorted({r for r, _ in (*sent, *received)})
    what = (f"{len(sent)} send(s) and {len(received)} receive(s) with members {partners} of ranks "
            f"{list(group.ranks)}")  # fmt: skip
    outgoing = [(r, _bytes(a)) for r, a in sent]
    waits = [group.comm.Irecv(_bytes_of(a), r, tag) for r, a in received]
    waits += [group.comm.Isend(a, r, tag) for r, a in outgoing]
    return Waiting(waits, what, [a for _, a in outgoing])


def exchange(
    sent: Sequence[tuple[int, np.ndarray]], received: Sequence[tuple[int, np.ndarray]], name: str,
    tag: int = 0,
) -> None:  # fmt: skip
    """Sends and receives as :func:`start` does, and waits.

    Args:
        sent: Members, with the arrays that go to them.
        received: Members, with the arrays that are written with what comes from them.
        name: Name of the group.
        tag: What tells messages of two members apart.
    """
    start(sent, received, name, tag).wait()


def barrier(name: str = "world") -> None:
    """Waits until all members have come here.

    Args:
        name: Name of the group.
    """
    group = get_group(name)
    if group.comm is not None:
        with watchdog.waiting(f"barrier of ranks {list(group.ranks)}"):
            group.comm.Barrier()


def share_object(value: object, name: str = "world", root: int | None = None) -> Any:
    """Returns the objects of all members, or of one (``root``); they are pickled.

    Args:
        value: This member's object.
        name: Name of the group.
        root: Number of the member in the group; ``None`` for all.
    """
    group = get_group(name)
    if group.comm is None:
        return [value] if root is None else value
    what = f"sharing an object with ranks {list(group.ranks)}"
    with watchdog.waiting(what):
        if root is None:
            return group.comm.allgather(value)
        return group.comm.bcast(value, root)


def send_object(value: object, member: int, name: str = "world") -> None:
    """Sends an object, pickled, to a member.

    Args:
        value: The object.
        member: Number of the member in the group.
        name: Name of the group.

    Raises:
        ArgumentError: if it is this process.
    """
    group = get_group(name)
    _require_other(group, member, "send_object_list")
    with watchdog.waiting(f"sending an object to member {member} of ranks {list(group.ranks)}"):
        group.comm.send(value, member, _OBJECTS)


def receive_object(member: int, name: str = "world") -> Any:
    """Returns the object that a member sends.

    Args:
        member: Number of the member in the group.
        name: Name of the group.

    Raises:
        ArgumentError: if it is this process.
    """
    group = get_group(name)
    _require_other(group, member, "recv_object_list")
    with watchdog.waiting(f"receiving an object from member {member} of {list(group.ranks)}"):
        return group.comm.recv(None, member, _OBJECTS)


def _require_other(group: Group, member: int, what: str) -> None:
    _require_member(group, what)
    if member == group.rank:
        raise ArgumentError(f"a process does not talk to itself: member {member} of "
                            f"{group.name!r}", op=what)  # fmt: skip


def in_turns(work: Callable[[], object]) -> Any:
    """Lets the first process of every host do something before its others, which find it cached.

    Args:
        work: What is done.

    Returns:
        What it returned here.
    """
    here = world()
    if here.comm is None or here.local_size == 1:
        return work()
    limit, result = max(1800.0, watchdog.limit), None
    try:
        if here.local_rank == 0:
            result = work()
    finally:
        with watchdog.waiting("waiting for the first process of the host to compile", limit=limit):
            here.comm.Barrier()
    return work() if here.local_rank else result
