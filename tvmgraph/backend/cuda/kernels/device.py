"""Writing kernels for CUDA devices: blocks, threads, and the instructions that C has no words for.

All arithmetic on indices is in int32, which is what the devices compute with; only offsets into
tensors of 2^31 elements or more are int64. Instructions are PTX, see NVIDIA's "Parallel Thread
Execution ISA", chapter 9.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.emit import Frame
from tvmgraph.backend.loop_ir.program import Axis, loads_of, map_loads, product, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Index, Load, Var, dtype_of

WARP = 32
#: Bytes that one thread moves at most with one instruction.
VECTOR_BYTES = 16
#: From this many elements on int32 cannot count them, nor those of threads behind the last one.
LARGE = (1 << 31) - (1 << 16)

_any: Any = T


def i32(value: Index) -> Expr:
    """An index constant, or an index expression as it is.

    Args:
        value: A number, or an expression, which stays.
    """
    return tirx.IntImm("int32", value) if isinstance(value, int) else value


def wide(value: Expr, extent: int) -> Expr:
    """An index of int32 as it is, or as int64 where what it counts is too much for int32.

    Args:
        value: An int32 expression.
        extent: Number of elements that it counts.
    """
    return value if extent < LARGE else tirx.Cast("int64", value)


def u32(value: int) -> Expr:
    """An unsigned constant.

    Args:
        value: A number that is not negative.
    """
    return tirx.IntImm("uint32", value)


@contextmanager
def launch(blocks: Index, threads: int) -> Iterator[tuple[Expr, Expr]]:
    """A kernel of its own; gives the index of the block and of the thread in it.

    Args:
        blocks: Blocks of the grid.
        threads: Threads of a block.
    """
    block = T.thread_binding(i32(blocks), thread="blockIdx.x")
    thread = T.thread_binding(i32(threads), thread="threadIdx.x")
    with block as of_grid, thread as of_block:
        assert isinstance(of_grid, Var) and isinstance(of_block, Var)
        yield of_grid, of_block


def each_thread(count: Index, threads: int, body: Callable[[Expr], None]) -> None:
    """A kernel of its own, in which every thread runs a body with its number.

    Args:
        count: Threads that do; those behind them in the last block do nothing. Numbers are int64
            where it is an expression.
        threads: Threads of a block.
        body: What a thread does.
    """
    if not isinstance(count, int):
        blocks = tirx.Cast("int32", tirx.floordiv(count + (threads - 1), emit.i64(threads)))
        with launch(blocks, threads) as (block, thread):
            number = let(tirx.Cast("int64", block * i32(threads) + thread))
            only_if(number < count, lambda: body(number))
        return
    with launch(-(-count // threads), threads) as (block, thread):
        at = let(block * i32(threads) + thread)
        only_if(None if count % threads == 0 else at < i32(count), lambda: body(at))


def registers(size: int, dtype: str) -> Buffer:
    """Registers of the thread. Every index must be a constant, or they end up in memory.

    Args:
        size: Elements.
        dtype: TVM's name of the element type.
    """
    return T.alloc_buffer((i32(size),), dtype, scope="local")


def fill(held: Buffer, value: Expr | float = 0) -> Buffer:
    """Stores one value in all registers of a buffer; returns the buffer.

    Args:
        held: Registers.
        value: A number, or a value of their type.
    """
    value = tirx.const(value, str(held.dtype)) if isinstance(value, int | float) else value
    for at in range(int(held.shape[0])):
        store(held, value, [at])
    return held


def shared(size: int) -> Buffer:
    """Bytes of shared memory; a kernel asks for them once, and divides them itself.

    Args:
        size: Bytes.
    """
    return T.alloc_buffer((i32(size),), "uint8", scope="shared.dyn")


def let(value: Expr) -> Expr:
    """Computes a value once, here.

    Args:
        value: An expression.

    Returns:
        The variable that stands for it.
    """
    return T.bind(value)


def loop(extent: Index) -> Frame:
    """A loop that stays one.

    Args:
        extent: Its iterations.
    """
    return T.serial(i32(extent))


def vector(lanes: int) -> Frame:
    """A loop whose iterations move neighbouring elements as one; of one iteration for one lane.

    Args:
        lanes: Iterations; together they must be 1, 2, 4, 8 or 16 bytes.
    """
    return T.vectorized(i32(lanes)) if lanes > 1 else T.serial(i32(1))


def only_if(condition: Expr | None, body: Callable[[], None]) -> None:
    """Runs a body where the condition holds; always where there is none.

    Args:
        condition: A bool of the thread, or None.
        body: Writes what runs.
    """
    if condition is None:
        body()
        return
    with T.If(condition), T.Then():
        body()


def store(buffer: Buffer, value: Expr, indices: Sequence[Index]) -> None:
    """``buffer[indices] = value``.

    Args:
        buffer: Where to.
        value: An element, or a vector.
        indices: One index per dimension, which become int32.
    """
    T.buffer_store(buffer, value, [i32(index) for index in indices])


def move(target: Buffer, to: Index, source: Buffer, at: Index, lanes: int) -> None:
    """Copies ``lanes`` neighbouring elements of flat buffers.

    Args:
        target: A flat buffer.
        to: First index in it.
        source: A flat buffer.
        at: First index in it.
        lanes: Elements, moved by one instruction.
    """
    with vector(lanes) as lane:
        store(target, source[i32(at) + lane], [i32(to) + lane])


def put(element: Load, values: Sequence[Expr]) -> None:
    """Stores neighbouring values in shared memory.

    Shared memory is accessed by instructions only: TVM adds barriers of its own between plain
    accesses, also where those of a warp suffice.

    Args:
        element: The first element in shared memory.
        values: 1, 2 or 4 registers of 32 bits.
    """
    ptx(f"st.shared{_vector_type(values)}", address(element), *values)


def put_global(element: Load, values: Sequence[Expr]) -> None:
    """Stores neighbouring words in device memory, whatever the type of the tensor is.

    Args:
        element: The first element in device memory.
        values: 1, 2 or 4 registers of 32 bits.
    """
    ptx(f"st.global{_vector_type(values)}", address(element), *values)


def get(element: Load, values: Sequence[Expr]) -> None:
    """Loads neighbouring values from shared memory into registers.

    Args:
        element: The first element in shared memory.
        values: Registers, which are written.
    """
    ptx(f"ld.shared{_vector_type(values)}", *values, address(element))


def get_global(element: Load, values: Sequence[Expr]) -> None:
    """Loads neighbouring values from device memory into registers.

    Args:
        element: The first element in device memory.
        values: Registers, which are written.
    """
    ptx(f"ld.global{_vector_type(values)}", *values, address(element))


def _vector_type(values: Sequence[Expr]) -> str:
    width = f".v{len(values)}" if len(values) > 1 else ""
    return f"{width}.b{8 * dtype_bytes(dtype_of(values[0]))}"


def flat(buffer: Buffer, offset: Expr) -> Load:
    """Element ``offset`` of a tensor of any rank, counted in memory.

    Args:
        buffer: A buffer; its last dimension is indexed beyond its end.
        offset: Elements from its start.
    """
    return buffer[(*[i32(0)] * (len(buffer.shape) - 1), offset)]


def address(element: Load) -> Expr:
    """Where an element lies.

    Args:
        element: An element in any memory.
    """
    return T.address_of(element)


def shared_address(element: Load) -> Expr:
    """Where an element lies in shared memory, as a number.

    Args:
        element: An element in shared memory.

    Returns:
        A uint32, as ``wgmma`` and barriers take it.
    """
    return _any.cuda.cvta_generic_to_shared(address(element))


def ptx(name: str, *operands: object) -> None:
    """Writes one PTX instruction; registers that it writes come first.

    Args:
        name: The instruction as PTX writes it, such as ``cp.async.wait_group``.
        *operands: Expressions and numbers.
    """
    T.evaluate(_any.ptx[name](*operands))


def barrier() -> None:
    """All threads of the block have come here, and see what the others wrote to shared memory."""
    T.evaluate(T.tvm_storage_sync("shared.dyn"))


def warp_barrier() -> None:
    """The same for the threads of a warp."""
    T.evaluate(_any.cuda.warp_sync())


def shuffle(kind: str, value: Expr, operand: int) -> Expr:
    """The value of another lane of the warp.

    Args:
        kind: Which: ``"xor"`` for the one whose number differs in the bits of ``operand``,
            ``"up"`` for the one so many lanes before, ``""`` for the one of that number.
        value: The register that every lane of the warp gives.
        operand: A number below 32.
    """
    dtype = dtype_of(value)
    if dtype_bytes(dtype) < 4:
        return tirx.Cast(dtype, shuffle(kind, tirx.Cast("int32", value), operand))
    name = f"tirx.cuda.__shfl_{kind}_sync" if kind else "tirx.cuda.__shfl_sync"
    return tirx.call_intrin(dtype, name, u32(0xFFFFFFFF), value, i32(operand), i32(WARP))


def copy_async(to: Load, source: Load, size: int, valid: Expr | None) -> None:
    """Starts a copy of 4, 8 or 16 bytes into shared memory; zeros where ``valid`` is false.

    Sixteen bytes bypass the first-level cache: what tiles hold is not read again through it.

    Args:
        to: The first element in shared memory.
        source: The first element in device memory.
        size: Bytes: 4, 8 or 16, to which both addresses must be aligned.
        valid: Whether there is something to copy; None for always.
    """
    name = f"cp.async.{'cg' if size == VECTOR_BYTES else 'ca'}.shared.global"
    operands = [address(to), address(source), size]
    if valid is not None:
        operands.append(tirx.Select(valid, u32(size), u32(0)))
    ptx(name, *operands)


def close_copies() -> None:
    """Makes one group of the copies started since the last call."""
    ptx("cp.async.commit_group")


def await_copies(pending: int) -> None:
    """Waits until at most ``pending`` groups of this thread's copies are under way.

    Args:
        pending: Groups that may still be under way.
    """
    ptx("cp.async.wait_group", pending)


# ---- index arithmetic ------------------------------------------------------------------------


def div(value: Expr, by: int) -> Expr:
    """Quotient of an index that is not negative.

    Args:
        value: An index.
        by: A positive number; of a power of two a shift is written.
    """
    if by == 1:
        return value
    if by & (by - 1) == 0:
        return value >> tirx.const(by.bit_length() - 1, dtype_of(value))
    return tirx.truncdiv(value, tirx.const(by, dtype_of(value)))


def mod(value: Expr, by: int) -> Expr:
    """Remainder of an index that is not negative.

    Args:
        value: An index.
        by: A positive number; of a power of two a mask is written.
    """
    if by == 1:
        return i32(0)
    if by & (by - 1) == 0:
        return value & tirx.const(by - 1, dtype_of(value))
    return tirx.truncmod(value, tirx.const(by, dtype_of(value)))


def split(value: Expr, axes: Sequence[Axis]) -> dict[Var, Expr]:
    """The values of axes that one index runs through, the last one fastest.

    Args:
        value: An index below the product of the extents.
        axes: The axes, outermost first.
    """
    values: dict[Var, Expr] = {}
    for position, axis in reversed(list(enumerate(axes))):
        values[axis.var] = mod(value, axis.extent) if position else value
        value = div(value, axis.extent)
    return values


def both(left: Expr | None, right: Expr | None) -> Expr | None:
    """Both conditions; one that always holds is None.

    Args:
        left: A condition, or None.
        right: A condition, or None.
    """
    if left is None or right is None:
        return right if left is None else left
    return tirx.And(left, right)


_BINARY = (
    tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod, tirx.Min,
    tirx.Max, tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.And, tirx.Or,
)  # fmt: skip


def to_int32(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    """An index or condition, given in int64, at values of its axes, in int32 where they are.

    Args:
        expr: An expression of constants, axes and arithmetic; anything else is converted at its
            end.
        values: What stands in the place of an axis, in int32.
    """
    if isinstance(expr, tirx.IntImm):
        return i32(int(expr)) if dtype_of(expr) == "int64" and abs(int(expr)) < LARGE else expr
    if isinstance(expr, tirx.Var):
        return next((new for old, new in values.items() if old.same_as(expr)), expr)
    if isinstance(expr, _BINARY):
        left, right = to_int32(expr.a, values), to_int32(expr.b, values)
        if {dtype_of(left), dtype_of(right)} == {"int32", "int64"}:
            left, right = (tirx.Cast("int64", side) for side in (left, right))
        return type(expr)(left, right)
    if isinstance(expr, tirx.Not):
        return tirx.Not(to_int32(expr.a, values))
    found = substitute(expr, _wide(values))
    return tirx.Cast("int32", found) if dtype_of(found) == "int64" else found


def at_point(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    """An expression at values of its axes, with the indices of what it reads in int32.

    What it binds gets new names: a kernel may compute it at several points.

    Args:
        expr: The body of a stage or a part of it.
        values: What stands in the place of an axis, in int32.
    """

    def visit(load: Load) -> Expr:
        if elements(load.source) >= LARGE or loads_of(*load.indices):
            return load
        return load.source[tuple(to_int32(index, values) for index in load.indices)]

    bound = tvm_ffi.structural_map(map_loads(expr, visit), (tirx.Let, _renamed))
    return substitute(bound, _wide(values))


def _renamed(binding: tirx.Let) -> tirx.Let:
    fresh = tirx.Var(binding.var.name, binding.var.ty)
    return tirx.Let(fresh, binding.value, substitute(binding.body, {binding.var: fresh}))


def _wide(values: Mapping[Var, Expr]) -> dict[Var, Expr]:
    return {
        var: value if dtype_of(value) == "int64" else tirx.Cast("int64", value)
        for var, value in values.items()
    }


def elements(buffer: Buffer) -> int:
    """Number of elements.

    Args:
        buffer: A buffer of known extents.
    """
    return product(int(extent) for extent in buffer.shape)


def device_memory(shape: Sequence[int], dtype: str) -> Buffer:
    """Memory of the device for an intermediate.

    TVM shrinks what it allocates to the region that indices seem to touch: not through a view.

    Args:
        shape: Extents.
        dtype: TVM's name of the element type.
    """
    memory = emit.workspace([product(shape)], dtype)
    return T.decl_buffer([emit.index(extent) for extent in shape], dtype, data=memory.data)
