"""Non-temporal stores: around the caches, for results too large to be read from there again.

An ordinary store of a line first reads it into the cache; a non-temporal store does not, so that a
pass over large arrays moves up to a third less. Addresses must be aligned to the vector. The
thread pool signals the end of a parallel region by an atomic read-modify-write, which also orders
these stores.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tvm.tirx.script import builder as T

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.choice import choose
from tvmgraph.backend.loop_ir.inline import has_identity_store
from tvmgraph.backend.loop_ir.program import Stage, product, static_shape
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Index
from tvmgraph.machine.processor import CpuModel

#: LLVM's names of the types that such stores know.
_LLVM = {
    "float16": "half", "float32": "float", "float64": "double",
    "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16",
    "int32": "i32", "uint32": "i32", "int64": "i64", "uint64": "i64",
}  # fmt: skip
_any: Any = T


def is_nontemporal(stage: Stage, extent: int, lanes: int, model: CpuModel) -> bool:
    """Whether the results of a stage should go around the caches, and its vectors are aligned.

    Args:
        stage: What is computed.
        extent: Neighbouring elements that are stored in vectors, from aligned addresses on.
        lanes: Elements of a vector.
        model: The processor.
    """
    fits = lanes > 1 and extent % lanes == 0
    return fits and has_identity_store(stage) and are_nontemporal(stage.buffers, model)


def are_nontemporal(buffers: Sequence[Buffer], model: CpuModel) -> bool:
    """Whether results are of types that can be stored around the caches, and large enough.

    Temporaries are not: the kernel itself reads them next.

    Args:
        buffers: The results of a kernel.
        model: The processor. Results of half of its last-level cache or more are; a search may
            decide otherwise.
    """
    if any(str(buffer.dtype) not in _LLVM or emit.is_workspace(buffer) for buffer in buffers):
        return False
    size = sum(product(static_shape(b) or ()) * dtype_bytes(str(b.dtype)) for b in buffers)
    return choose("stores around caches", size >= model.l3_bytes // 2, (True, False))


@contextlib.contextmanager
def nontemporal_stores(buffers: Sequence[Buffer], lanes: int) -> Iterator[None]:
    """Opens a part of a kernel that may call :func:`store_nontemporal` on ``buffers``.

    TVM has no such store; it comes as a function in LLVM's language, which is inlined.

    Args:
        buffers: What is stored; with none it is an ordinary part of a kernel.
        lanes: Lanes of the vectors.
    """
    functions = {_name(buffer, lanes): _function(buffer, lanes) for buffer in buffers}
    text = "\n".join([*functions.values(), "!0 = !{i32 1}"])
    if not functions:
        yield
        return
    with T.attr(0, "pragma_import_llvm", text):
        yield


def store_nontemporal(buffer: Buffer, vector: Expr, indices: Sequence[Index], lanes: int) -> None:
    """Stores a vector of ``lanes`` elements from ``buffer[indices]`` on.

    Args:
        buffer: One of those given to :func:`nontemporal_stores`.
        vector: What is stored.
        indices: Where its first lane goes; the address must be a multiple of the vector's bytes.
        lanes: Lanes of the vector.
    """
    address = _any.address_of(buffer[tuple(indices)])
    _any.evaluate(_any.call_extern("void", _name(buffer, lanes), address, vector))


def write_vector(
    buffers: Sequence[Buffer],
    lanes: int,
    values: Callable[[Expr], Sequence[Expr]],
    indices: Callable[[Expr], Sequence[Expr]],
    *,
    nontemporal: bool,
) -> None:
    """Stores one vector into each of several buffers.

    Args:
        buffers: Where to.
        lanes: Elements of a vector.
        values: What is stored in a lane, per buffer.
        indices: Where in the buffers.
        nontemporal: Whether the caches are left out.
    """
    if nontemporal:
        compute_vector(buffers, lanes, values, indices, nontemporal=True)()
        return
    with emit.lanes_loop(lanes) as lane:
        for buffer, value in zip(buffers, values(lane)):
            emit.store(buffer, value, indices(lane))


def compute_vector(
    buffers: Sequence[Buffer],
    lanes: int,
    values: Callable[[Expr], Sequence[Expr]],
    indices: Callable[[Expr], Sequence[Expr]],
    *,
    nontemporal: bool,
) -> Callable[[], None]:
    """Computes one vector per buffer, as :func:`write_vector`; what it returns stores them.

    Args:
        buffers: The results.
        lanes: Lanes of the vectors.
        values: Computes an element per buffer, given the lane.
        indices: Where it goes in every buffer, given the lane.
        nontemporal: Whether it is stored around the caches, see :func:`store_nontemporal`.
    """
    kept = [emit.stack(lanes, str(buffer.dtype)) for buffer in buffers]
    with emit.lanes_loop(lanes) as lane:
        for register, value in zip(kept, values(lane)):
            emit.store(register, value, [lane])

    def finish() -> None:
        if nontemporal:
            for buffer, vector in zip(buffers, kept):
                store_nontemporal(buffer, vector[emit.ramp(0, lanes)], indices(emit.i64(0)), lanes)
            return
        with emit.lanes_loop(lanes) as lane:
            for buffer, vector in zip(buffers, kept):
                emit.store(buffer, vector[lane], indices(lane))

    return finish


def _name(buffer: Buffer, lanes: int) -> str:
    return f"tvmgraph_nontemporal_{buffer.dtype}x{lanes}"


def _function(buffer: Buffer, lanes: int) -> str:
    dtype = str(buffer.dtype)
    kind, size = f"<{lanes} x {_LLVM[dtype]}>", lanes * dtype_bytes(dtype)
    return (
        f"define internal void @{_name(buffer, lanes)}(ptr %at, {kind} %value) alwaysinline {{\n"
        f"  store {kind} %value, ptr %at, align {size}, !nontemporal !0\n  ret void\n}}"
    )
