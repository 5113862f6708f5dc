"""The plainest passes over memory, which show what it can deliver right now.

A kernel that moves bytes is compared with a pass that moves as many and does nothing else: one that
only reads (sums), copies, or reads several arrays and writes one. Results are stored around the
caches, as no copy can be faster than without reading what it overwrites.
"""

from __future__ import annotations

from collections.abc import Callable

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
from tvmgraph.backend.target import make_target
from tvmgraph.core.storage import aligned_copy
from tvmgraph.machine.processor import cpu_model

_DTYPE, _ITEMSIZE = "float32", 4
#: Vectors per step of a loop: enough sums in flight to hide the latency of an addition.
_UNROLL = 4
#: Writing less than this share of what is read counts as reading only.
_MIN_WRITTEN = 1 / 8


def memory_pass(read: int, written: int, threads: int) -> Callable[[], None]:
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
    kernel = _kernel(inputs, writes, length, threads, lanes)
    library = tvm.tirx.build(tvm.IRModule({"pass": kernel}), target=make_target())
    sizes = [length] * inputs + [length if writes else threads * lanes]
    arrays = [tvm.runtime.from_dlpack(aligned_copy(np.ones(n, np.float32))) for n in sizes]
    function = library["pass"]
    return lambda: function(*arrays)


def _kernel(inputs: int, writes: bool, length: int, threads: int, lanes: int) -> tirx.PrimFunc:
    share = length // threads
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("pass")
        given = [_argument(f"in{i}", length) for i in range(inputs)]
        out = _argument("out", length if writes else threads * lanes)
        with T.sblock("root"):
            T.reads()
            T.writes()
            with nontemporal_stores([out], lanes), emit.parallel(threads, threads > 1) as worker:
                if writes:
                    _write(given, out, worker * share, share, lanes)
                else:
                    _sum(given[0], out, (worker * share, share), worker * lanes, lanes)
    function = builder.get()
    assert isinstance(function, tirx.PrimFunc)
    return function.with_attrs({"global_symbol": "pass", "tirx.noalias": True})


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


def _argument(name: str, length: int) -> tirx.Buffer:
    return T.arg(name, T.buffer((emit.i64(length),), _DTYPE))
