"""Putting together what the threads of a block have computed, always in the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import WARP, div, i32, mod
from tvmgraph.backend.loop_ir.types import Buffer, Expr, dtype_of

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
            before = device.let(device.shuffle("up", held[i32(0)], distance))
            own = held[i32(0)]
            joined = tirx.Select(lane >= i32(distance), combine(before, own), own)
            device.store(held, device.let(joined), [0])
            distance *= 2
        whole = device.let(held[i32(0)])
        before = device.let(device.shuffle("up", whole, 1))
        before = tirx.Select(lane > i32(0), before, identity)
        if self.size <= WARP:
            return device.let(before), device.let(device.shuffle("", whole, width - 1))
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
        earlier, every = (device.fill(device.registers(1, dtype), identity) for _ in range(2))
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
            other = [device.let(device.shuffle("xor", value, distance)) for value in own]
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


@dataclass(frozen=True)
class SplitResults:
    """Results of which blocks have computed parts, for a kernel that combines these.

    Attributes:
        count: How many.
        splits: Parts of each.
        threads_x: Threads of a block that have results of their own.
        threads_y: Threads that share the parts of one.
    """

    count: int
    splits: int
    threads_x: int
    threads_y: int

    def write(
        self, registers: Callable[[], Sequence[Buffer]],
        add: Callable[[Sequence[Buffer], Expr, Expr], None], combine: Combine,
        store: Callable[[Sequence[Buffer], Expr], None],
    ) -> None:  # fmt: skip
        """Writes the kernel, which always combines them in the same order.

        Args:
            registers: Gives the registers of a thread.
            add: Adds a part, of a number, of a result to them.
            combine: What combines those of two threads.
            store: Stores a result.
        """
        blocks, threads = -(-self.count // self.threads_x), self.threads_x * self.threads_y
        with device.launch(blocks, threads) as (block, thread):
            column, row = mod(thread, self.threads_x), device.let(div(thread, self.threads_x))
            at = device.let(block * i32(self.threads_x) + column)
            inside = None if self.count % self.threads_x == 0 else at < i32(self.count)
            held = registers()
            with device.loop(-(-self.splits // self.threads_y)) as turn:
                part = device.let(turn * i32(self.threads_y) + row)
                exists = None if self.splits % self.threads_y == 0 else part < i32(self.splits)
                device.only_if(device.both(inside, exists), lambda: add(held, part, at))
            if self.threads_x == 1:
                ThreadGroup(self.threads_y, row).combine(held, combine)
            else:
                StridedThreadGroup(self.threads_y, row, self.threads_x, column).combine(
                    held, combine
                )
            leads = None if self.threads_y == 1 else tirx.EQ(row, i32(0))
            device.only_if(device.both(inside, leads), lambda: store(held, at))


def _shared(size: int, dtype: str) -> Buffer:
    return T.alloc_buffer((i32(size),), dtype, scope="shared")
