"""Putting together what the threads of a block have computed, always in the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import WARP, div, i32, mod
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.types import Buffer, Expr, dtype_of

_any: Any = tirx

#: Combines the values that two threads hold.
Combine = Callable[[Sequence[Expr], Sequence[Expr]], Sequence[Expr]]


@dataclass(frozen=True)
class ThreadGroup:
    """Neighbouring threads that work on the same results: a power of two of them, at most a block.

    Attributes:
        size: How many.
        member: Index of the thread among them.
        groups: Groups in the block; more than one only if they are no larger than a warp.
    """

    size: int
    member: Expr
    groups: int = 1

    def combine(self, held: Sequence[Buffer], combine: Combine) -> None:
        """Leaves the combination of all members' values in the registers of every member.

        Args:
            held: One register for each value.
            combine: What combines two members; it may not depend on their order.
        """
        self._exchange(held, combine, min(self.size, WARP))
        if self.size <= WARP:
            return
        warps = self.size // WARP
        kept = [_shared(warps, str(register.dtype)) for register in held]
        lane, warp = mod(self.member, WARP), div(self.member, WARP)

        def publish() -> None:
            for memory, register in zip(kept, held):
                device.store(memory, register[i32(0)], [warp])

        device.only_if(tirx.EQ(lane, i32(0)), publish)
        T.evaluate(T.tvm_storage_sync("shared"))
        for memory, register in zip(kept, held):
            device.store(register, memory[mod(lane, warps)], [0])
        self._exchange(held, combine, warps)

    def scan(
        self, held: Buffer, combine: Callable[[Expr, Expr], Expr], identity: Expr
    ) -> tuple[Expr, Expr]:
        """Combines what the members before this one hold, in their order.

        Args:
            held: One register.
            combine: What combines the values of two members.
            identity: What the first member gets.

        Returns:
            The combination of all members before this one, and that of all members.
        """
        lane = mod(self.member, min(self.size, WARP))
        distance, width = 1, min(self.size, WARP)
        while distance < width:
            before = device.let(_from_lower_lane(held[i32(0)], distance))
            own = held[i32(0)]
            joined = tirx.Select(lane >= i32(distance), combine(before, own), own)
            device.store(held, device.let(joined), [0])
            distance *= 2
        whole = device.let(held[i32(0)])
        before = device.let(_from_lower_lane(whole, 1))
        before = tirx.Select(lane > i32(0), before, identity)
        if self.size <= WARP:
            return device.let(before), device.let(_from_lane_number(whole, width - 1))
        return self._scan_warps(whole, before, combine, identity)

    def _scan_warps(
        self, whole: Expr, before: Expr, combine: Callable[[Expr, Expr], Expr], identity: Expr
    ) -> tuple[Expr, Expr]:
        warps, dtype = self.size // WARP, dtype_of(whole)
        totals = _shared(warps, dtype)
        lane, warp = mod(self.member, WARP), device.let(div(self.member, WARP))

        def publish() -> None:
            device.store(totals, whole, [warp])

        T.evaluate(T.tvm_storage_sync("shared"))  # everybody has read what was there before
        device.only_if(tirx.EQ(lane, i32(WARP - 1)), publish)
        T.evaluate(T.tvm_storage_sync("shared"))
        earlier, every = device.registers(1, dtype), device.registers(1, dtype)
        device.store(earlier, identity, [0])
        device.store(every, identity, [0])
        for other in range(warps):
            joined = combine(earlier[i32(0)], totals[i32(other)])
            kept = tirx.Select(warp > i32(other), joined, earlier[i32(0)])
            device.store(earlier, kept, [0])
            device.store(every, combine(every[i32(0)], totals[i32(other)]), [0])
        return device.let(combine(earlier[i32(0)], before)), device.let(every[i32(0)])

    def _exchange(self, held: Sequence[Buffer], combine: Combine, size: int) -> None:
        """Every lane of a group of ``size`` gets the combination of the group."""
        distance = size // 2
        while distance:
            own = [register[i32(0)] for register in held]
            other = [device.let(_shuffle("xor", value, distance)) for value in own]
            results = [device.let(value) for value in combine(own, other)]
            for register, value in zip(held, results):
                device.store(register, value, [0])
            distance //= 2


@dataclass(frozen=True)
class StridedThreadGroup:
    """Threads that work on the same result and lie ``stride`` apart; neighbours have others'.

    Attributes:
        size: How many.
        member: Index of the thread among them.
        stride: Groups side by side.
        group: Which of these the thread is in.
    """

    size: int
    member: Expr
    stride: int
    group: Expr

    def combine(self, held: Sequence[Buffer], combine: Combine) -> None:
        """As :meth:`ThreadGroup.combine`; every member adds in the order of the members.

        Args:
            held: One buffer per accumulator.
            combine: From two sets of accumulators to one.
        """
        if self.size == 1:
            return
        kept = [_shared(self.size * self.stride, str(register.dtype)) for register in held]
        for memory, register in zip(kept, held):
            device.store(memory, register[i32(0)], [self.member * i32(self.stride) + self.group])
        T.evaluate(T.tvm_storage_sync("shared"))
        for memory, register in zip(kept, held):
            device.store(register, memory[self.group], [0])
        with device.loop(self.size - 1) as other:
            place = device.let((other + i32(1)) * i32(self.stride) + self.group)
            values = [device.let(memory[place]) for memory in kept]
            results = combine([register[i32(0)] for register in held], values)
            for register, value in zip(held, [device.let(value) for value in results]):
                device.store(register, value, [0])


def _from_lower_lane(value: Expr, distance: int) -> Expr:
    return _shuffle("up", value, distance)


def _from_lane_number(value: Expr, lane: int) -> Expr:
    return _shuffle("", value, lane)


def _shuffle(kind: str, value: Expr, operand: int) -> Expr:
    dtype = dtype_of(value)
    if dtype_bytes(dtype) < 4:
        return tirx.Cast(dtype, _shuffle(kind, tirx.Cast("int32", value), operand))
    name = f"tirx.cuda.__shfl_{kind}_sync" if kind else "tirx.cuda.__shfl_sync"
    everybody = device.u32(0xFFFFFFFF)
    return _any.call_intrin(dtype, name, everybody, value, i32(operand), i32(WARP))


def _shared(size: int, dtype: str) -> Buffer:
    return T.alloc_buffer((i32(size),), dtype, scope="shared")
