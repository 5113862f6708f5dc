"""What this machine can do: measured peaks that profiles and benchmarks compare with.

The peaks are measured, not computed from a data sheet: clocks, containers and other tenants decide
what a program can reach. They are measured once per processor, number of threads and version and
kept beside the compiled executables.

The plainest passes over memory, which show what it can deliver right now.

A kernel that moves bytes is compared with a pass that moves as many and does nothing else: one that
only reads (sums), copies, or reads several arrays and writes one. Results are stored around the
caches, as no copy can be faster than without reading what it overwrites.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import tvm
from tvm import ir, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

from tvmgraph.backend.cpu.kernels.elementwise.nontemporal import (
    nontemporal_stores,
    store_nontemporal,
)
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.target import host_cpu, make_target
from tvmgraph.compiler.cache import disk
from tvmgraph.compiler.compile import compile_graph
from tvmgraph.config import context
from tvmgraph.core.op import get_op
from tvmgraph.core.storage import aligned_copy
from tvmgraph.core.tensor import tensor_from_numpy
from tvmgraph.core.types import tensor_type
from tvmgraph.debug.profile import Peaks
from tvmgraph.graph import GraphBuilder
from tvmgraph.machine.processor import cpu_model
from tvmgraph.machine.threads import configure_threads
from tvmgraph.runtime import trust
from tvmgraph.version import PACKAGE

#: Accumulators in flight: more than latency x instructions per cycle of any current processor, few
#: enough to stay in registers.
_CHAINS = 12
_STEPS = 20_000  # multiply-adds per accumulator and call: some tens of microseconds
_STREAM_BYTES = 64 << 20  # of each of the three arrays; beyond any cache a core sees
_ROUNDS = 7
#: Seconds of idling between two rounds, so that one burst of other work does not spoil them all.
_PAUSE = 0.01


_known: dict[int, Peaks] = {}


def peaks(again: bool = False) -> Peaks:
    """Returns the machine's peaks, measuring them (under a second) if nobody has.

    Args:
        again: Measure even if they are known. The larger figure stays: other work on the machine
            can only make a measurement too small.
    """
    threads = configure_threads(context.thread_num or None)
    found = _known.get(threads) or _load(threads)
    if found is None or again:
        found = _larger(measure(threads), found)
        _save(found)
    _known[threads] = found
    return found


def _larger(new: Peaks, old: Peaks | None) -> Peaks:
    if old is None:
        return new
    return replace(
        new, float32=max(new.float32, old.float32), float64=max(new.float64, old.float64),
        bandwidth=max(new.bandwidth, old.bandwidth),
    )  # fmt: skip


def measure(threads: int) -> Peaks:
    """Measures the peaks; the best of a few rounds counts.

    Args:
        threads: Workers that take part.

    Returns:
        GFLOP/s per dtype and GB/s.
    """
    return Peaks(
        _arithmetic("float32", threads), _arithmetic("float64", threads), _bandwidth(),
        threads, host_cpu(),
    )  # fmt: skip


def _best(run: Callable[[], object]) -> float:
    run()  # wakes the workers and touches the memory
    best = float("inf")
    for _ in range(_ROUNDS):
        time.sleep(_PAUSE)
        for _ in range(3):
            start = time.perf_counter()
            run()
            best = min(best, time.perf_counter() - start)
    return best


# ---- arithmetic ---------------------------------------------------------------------------------


def _arithmetic(dtype: str, threads: int) -> float:
    lanes = cpu_model("host", threads).lanes_of(np.dtype(dtype).itemsize)
    shape = (threads, _CHAINS * lanes)
    function = _built(_chains(dtype, lanes, threads))
    # factors that keep the sums finite: x <- x * 0.5 + 1 tends to 2
    given = [aligned_copy(np.full(lanes, v, dtype)) for v in (0.5, 1.0)]
    out = aligned_copy(np.zeros(shape, dtype))
    arrays = [tvm.runtime.from_dlpack(a) for a in (*given, out)]
    operations = 2.0 * out.size * _STEPS
    return operations / _best(lambda: function(*arrays)) / 1e9


def _chains(dtype: str, lanes: int, threads: int) -> tirx.PrimFunc:
    """Every worker runs independent chains ``x = x * a + b`` that stay in registers."""

    def write(a: tirx.Buffer, b: tirx.Buffer, out: tirx.Buffer) -> None:
        with emit.parallel(threads, threads > 1) as worker:
            total = emit.stack(_CHAINS * lanes, dtype)
            places = [emit.ramp(i * lanes, lanes) for i in range(_CHAINS)]
            for place in places:
                emit.store(total, emit.broadcast(emit.zero(dtype), lanes), [place])
            with emit.serial(_STEPS):
                every = emit.ramp(0, lanes)
                for place in places:
                    emit.store(total, total[place] * a[every] + b[every], [place])
            for place in places:
                emit.store(out, total[place], [worker, place])

    return _function([(lanes,), (lanes,), (threads, _CHAINS * lanes)], dtype, write)


def _function(
    shapes: Sequence[tuple[int, ...]], dtype: str, write: Callable[..., None]
) -> tirx.PrimFunc:
    """A function of arrays, whose loops ``write`` writes."""
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("measured")
        arrays = [
            T.arg(f"array{i}", T.buffer(tuple(emit.i64(d) for d in shape), dtype))
            for i, shape in enumerate(shapes)
        ]
        with T.sblock("root"):
            T.reads()
            T.writes()
            write(*arrays)
    function = builder.get()
    assert isinstance(function, tirx.PrimFunc)
    return function.with_attrs({"global_symbol": "measured", "tirx.noalias": True})


def _built(function: tirx.PrimFunc) -> Callable[..., object]:
    return tvm.tirx.build(tvm.IRModule({"measured": function}), target=make_target())["measured"]


# ---- memory -------------------------------------------------------------------------------------


def _bandwidth() -> float:
    add, mul = get_op("add"), get_op("mul")
    kind = tensor_type((_STREAM_BYTES // 4,), "float32")
    builder = GraphBuilder("stream")
    b, c, s = builder.param(kind), builder.param(kind), builder.param(tensor_type((), "float32"))
    (scaled,) = builder.node(mul, [c, s], {}, [kind])
    (total,) = builder.node(add, [b, scaled], {}, [kind])
    executable, _ = compile_graph(builder.build([total]))
    values = [np.ones(kind.shape, np.float32), np.ones(kind.shape, np.float32), np.float32(0.5)]
    args = [tensor_from_numpy(aligned_copy(np.asarray(v))) for v in values]
    return 3 * _STREAM_BYTES / _best(lambda: executable.run(args, [kind])) / 1e9


# ---- keeping them -------------------------------------------------------------------------------


def _path(threads: int) -> Path:
    name = f"machine-{PACKAGE}-{host_cpu()}-{threads}.json"
    return disk.folder() / name


def _load(threads: int) -> Peaks | None:
    if disk.why_not() is not None:
        return None
    if not trust.is_trusted(_path(threads)):
        return None
    try:
        return Peaks(**json.loads(_path(threads).read_text()))
    except (OSError, ValueError, TypeError):  # absent or damaged: measured again
        return None


def _save(found: Peaks) -> None:
    if disk.why_not() is not None:
        return
    try:
        disk.write_private(_path(found.threads), json.dumps(asdict(found), indent=1))
    except OSError:  # a full or read-only disk is no reason not to know the peaks now
        return


# ---- streams ------------------------------------------------------------------------------------


_DTYPE, _ITEMSIZE = "float32", 4
#: Vectors per step of a loop: enough sums in flight to hide the latency of an addition.
_UNROLL = 4
#: Writing less than this share of what is read counts as reading only.
_MIN_WRITTEN = 1 / 8


def memory_pass(read: int, written: int, threads: int) -> Callable[[], object]:
    """Returns a function that reads and writes so many bytes.

    It has one array to write to, if any, and as many of its size to read as fit (at least one).

    Args:
        read: Bytes to read, at least as many as ``written``.
        written: Bytes to write; next to none for a pass that only reads.
        threads: Workers, each of which takes a part of every array from one end to the other.
    """
    lanes = cpu_model("host", threads).lanes_of(_ITEMSIZE)
    step = threads * _UNROLL * lanes
    writes = written >= read * _MIN_WRITTEN
    inputs = max(1, round(read / written)) if writes else 1
    length = max(1, round(read / inputs / _ITEMSIZE / step)) * step
    function = _built(_kernel(inputs, writes, length, threads, lanes))
    sizes = [length] * inputs + [length if writes else threads * lanes]
    arrays = [tvm.runtime.from_dlpack(aligned_copy(np.ones(n, np.float32))) for n in sizes]
    return lambda: function(*arrays)


def _kernel(inputs: int, writes: bool, length: int, threads: int, lanes: int) -> tirx.PrimFunc:
    share = length // threads

    def write(*arrays: tirx.Buffer) -> None:
        *given, out = arrays
        with nontemporal_stores([out], lanes), emit.parallel(threads, threads > 1) as worker:
            if writes:
                _write(given, out, worker * share, share, lanes)
            else:
                _sum(given[0], out, (worker * share, share), worker * lanes, lanes)

    results = length if writes else threads * lanes
    return _function([*[(length,)] * inputs, (results,)], _DTYPE, write)


def _write(
    given: list[tirx.Buffer], out: tirx.Buffer, start: ir.Expr, share: int, lanes: int
) -> None:
    with emit.serial(share // (_UNROLL * lanes)) as position:
        for slot in range(_UNROLL):
            at = start + (position * _UNROLL + slot) * lanes
            total = given[0][emit.ramp(at, lanes)]
            for array in given[1:]:
                total = total + array[emit.ramp(at, lanes)]
            store_nontemporal(out, total, [at], lanes)


def _sum(
    array: tirx.Buffer, out: tirx.Buffer, share: tuple[object, int], to: object, lanes: int
) -> None:
    start, length = share
    total = emit.stack(_UNROLL * lanes, _DTYPE)
    slots = [emit.ramp(slot * lanes, lanes) for slot in range(_UNROLL)]
    for here in slots:
        emit.store(total, emit.broadcast(emit.zero(_DTYPE), lanes), [here])
    with emit.serial(length // (_UNROLL * lanes)) as position:
        for slot, here in enumerate(slots):
            at = start + (position * _UNROLL + slot) * lanes
            emit.store(total, total[here] + array[emit.ramp(at, lanes)], [here])
    result = total[slots[0]]
    for here in slots[1:]:
        result = result + total[here]
    emit.store(out, result, [emit.ramp(to, lanes)])
