"""Putting together what the threads of a block have computed, always in the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.schedule.access import dtype_bytes
from tvmgraph.schedule.cuda import device
from tvmgraph.schedule.cuda.device import WARP, div, i32, mod
from tvmgraph.schedule.types import Buffer, Expr, dtype_of

#: Combines the values that two threads hold.
Combine = Callable[[Sequence[Expr], Sequence[Expr]], Sequence[Expr]]


@dataclass(frozen=True)
class Team:
    """Neighbouring threads that work on the same results: a power of two of them, at most a block.

    Attributes:
        size: How many.
        member: Index of the thread among them.
        teams: Teams in the block; more than one only if they are no larger than a warp.
    """

    size: int
    member: Expr
    teams: int = 1

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

    def _exchange(self, held: Sequence[Buffer], combine: Combine, size: int) -> None:
        """Every lane of a group of ``size`` gets the combination of the group."""
        distance = size // 2
        while distance:
            own = [register[i32(0)] for register in held]
            other = [device.let(_from_lane(value, distance)) for value in own]
            results = [device.let(value) for value in combine(own, other)]
            for register, value in zip(held, results):
                device.store(register, value, [0])
            distance //= 2


def _from_lane(value: Expr, mask: int) -> Expr:
    """The value of another lane; words narrower than 4 bytes travel as int32."""
    dtype = dtype_of(value)
    if dtype_bytes(dtype) >= 4:
        return device.shuffle_xor(value, mask)
    return tirx.Cast(dtype, device.shuffle_xor(tirx.Cast("int32", value), mask))


def _shared(size: int, dtype: str) -> Buffer:
    return T.alloc_buffer((i32(size),), dtype, scope="shared")
