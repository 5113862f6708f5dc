"""Functions of integers that repeat a step until it changes nothing: powers, common divisors.

Blocking: a vector of elements goes through the steps together until the last of its lanes is done,
so that small numbers take few steps. Chunks of the elements are divided among the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx import op
from tvm.tirx.script import builder as T

from tvmgraph.backend.cpu.intrinsics.lanes import Lanes
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func, scalar_of
from tvmgraph.machine.processor import CpuModel

State = Sequence[Expr]
Registers = Callable[[int, str], Buffer]

#: Below this many elements a kernel stays on the calling thread.
_MIN_PARALLEL = 8 * 1024
#: Elements of one chunk of a kernel that is divided.
_CHUNK = 1024


@dataclass(frozen=True)
class Steps:
    """A function of two integers.

    Attributes:
        start: The state that two operands start from. Its last member is 0 where a lane is done.
        step: The next state; where a lane is done, the same but for what no result depends on.
        result: The value that a final state stands for.
    """

    start: Callable[[Lanes, Expr, Expr], State]
    step: Callable[..., State]
    result: Callable[..., Expr]


def _start_power(v: Lanes, base: Expr, exponent: Expr) -> State:
    """Of negative exponents: 1 / base rounded towards 0, to a power of 0 or 1."""
    kind = scalar_of(base)
    zero, one = v.of(0, kind), v.of(1, kind)
    if kind.startswith("uint"):
        return [one, base, exponent]
    negative = exponent < zero
    unit = tirx.any(base == one, base == v.of(-1, kind))
    odd = op.bitwise_and(exponent, one)
    result = tirx.Select(tirx.all(negative, tirx.Not(unit)), zero, one)
    exponent = tirx.Select(negative, tirx.Select(unit, odd, zero), exponent)
    return [result, base, exponent]


def _step_power(v: Lanes, result: Expr, square: Expr, exponent: Expr) -> State:
    one = v.of(1, scalar_of(exponent))
    odd = op.bitwise_and(exponent, one) == one
    product = tirx.Select(odd, result * square, result)
    return [product, square * square, op.shift_right(exponent, one)]


def _start_divisor(v: Lanes, a: Expr, b: Expr) -> State:
    """The magnitudes, the larger one first; of the smaller one and both, how often 2 divides."""
    a, b = _magnitude(v, a), _magnitude(v, b)
    large, small = tirx.max(a, b), tirx.min(a, b)
    if v.lanes == 1:
        return [large, small]
    twos = _twos(v, op.bitwise_or(a, b))
    return [twos, op.shift_right(large, _twos(v, large)), small]


def _step_divisor(v: Lanes, *state: Expr) -> State:
    """Euclid's step of single numbers; of vectors, which have no division, the binary one."""
    if v.lanes == 1:
        large, small = state
        return [small, tirx.truncmod(large, small)]
    twos, a, b = state
    zero = v.of(0, scalar_of(b))
    odd = op.shift_right(b, _twos(v, b))
    done = b == zero
    least: Expr = tirx.min(a, odd)
    most: Expr = tirx.max(a, odd)
    return [twos, tirx.Select(done, a, least), tirx.Select(done, zero, most - least)]


def _divisor(v: Lanes, *state: Expr) -> Expr:
    return state[0] if v.lanes == 1 else op.shift_left(state[1], state[0])


def _magnitude(v: Lanes, x: Expr) -> Expr:
    """|x| as an unsigned number, which that of the least integer is too."""
    kind = scalar_of(x)
    if kind.startswith("uint"):
        return x
    bits = 8 * dtype_bytes(kind)
    sign = op.shift_right(x, v.of(bits - 1, kind))
    flipped, one = op.bitwise_xor(x, sign), op.bitwise_and(sign, v.of(1, kind))
    return v.cast(flipped, f"uint{bits}") + v.cast(one, f"uint{bits}")


def _twos(v: Lanes, x: Expr) -> Expr:
    """How often 2 divides a number; of 0, 0."""
    kind = scalar_of(x)
    count = op.call_llvm_pure_intrin(v.type(kind), "llvm.cttz", x, tirx.IntImm("bool", 0))
    return op.bitwise_and(count, v.of(8 * dtype_bytes(kind) - 1, kind))


#: The functions by name.
STEPS: dict[str, Steps] = {
    "power": Steps(_start_power, _step_power, lambda _, *state: state[0]),
    "divisor": Steps(_start_divisor, _step_divisor, _divisor),
}


def emit_repeated(func: Func, settings: str, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes two integer tensors of one shape, or of a single element, and gives a third.
        settings: A key of :data:`STEPS`.
        model: The processor.
    """
    size = emit.size_of(func.params[-1])
    *operands, target = map(emit.flat, func.params)
    lanes = model.lanes_of(dtype_bytes(str(target.dtype)))
    small = isinstance(size, tirx.IntImm) and int(size) < _MIN_PARALLEL
    steps = STEPS[str(settings)]
    emit.chunks_of_vectors(
        size, lanes, _CHUNK, model.threads > 1 and not small,
        lambda first, count: write_repeated(steps, operands, target, first, count),
    )  # fmt: skip


def write_repeated(
    steps: Steps,
    operands: Sequence[Buffer],
    target: Buffer,
    at: Expr,
    lanes: int,
    registers: Registers = emit.stack,
) -> None:
    """Writes the steps of one vector.

    Args:
        steps: The function.
        operands: Flat tensors, or single numbers.
        target: The flat result.
        at: Where the vector starts.
        lanes: Its elements.
        registers: Makes room for as many elements of a type.
    """
    place = emit.ramp(at, lanes)
    values = [_operand(buffer, place, lanes) for buffer in operands]
    v = Lanes(values[0])
    state = steps.start(v, *values)
    held = [registers(lanes, scalar_of(value)) for value in state]
    whole = emit.ramp(0, lanes)

    def keep(state: State) -> None:
        fresh = [registers(lanes, scalar_of(value)) for value in state]
        for pairs in (zip(fresh, state), zip(held, [buffer[whole] for buffer in fresh])):
            for buffer, value in pairs:
                emit.store(buffer, value, [whole])

    keep(state)
    last = held[-1][whole]
    name, scalar = "llvm.vector.reduce.or", scalar_of(last)
    some = last if lanes == 1 else op.call_llvm_pure_intrin(scalar, name, last)
    with T.While(some != tirx.const(0, scalar)):
        keep(steps.step(v, *[buffer[whole] for buffer in held]))
    result = steps.result(v, *[buffer[whole] for buffer in held])
    emit.store(target, v.cast(result, str(target.dtype)), [place])


def _operand(buffer: Buffer, place: Expr, lanes: int) -> Expr:
    (size,) = buffer.shape
    single = isinstance(size, tirx.IntImm) and int(size) == 1
    return emit.broadcast(buffer[0], lanes) if single else buffer[place]
