"""The pipeline of stages in shared memory through which tiles reach the products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tvm import tirx

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.copies import Copier
from tvmgraph.backend.cuda.kernels.device import i32, mod
from tvmgraph.backend.cuda.kernels.gemm_plan import Extents, GemmPlan
from tvmgraph.backend.loop_ir.types import Expr


class Core(Protocol):
    """What multiplies the tiles."""

    @property
    def lag(self) -> int:
        """Products that are still under way when the next ones are asked for."""
        ...

    def publish(self) -> None:
        """Lets what this thread has copied be seen by the products, after the next barrier."""

    def multiply(self, left: Expr, right: Expr) -> None:
        """Adds the products of the tiles at two places in shared memory.

        Args:
            left: Offset of the left tile in shared memory, in bytes.
            right: Offset of the right one.
        """

    def settle(self) -> None:
        """Waits until no more than ``lag`` products are under way."""

    def complete(self) -> None:
        """Waits for products that are under way."""


@dataclass(frozen=True)
class MultistagePipeline:
    """Slots of shared memory that tiles pass through.

    Attributes:
        copiers: Fill the slots, one per factor.
        plan: Says how many there are, and how deep.
        extents: Sizes of the products.
        start: Where the first slot lies.
    """

    copiers: list[Copier]
    plan: GemmPlan
    extents: Extents
    start: Expr

    def run(self, split_index: Expr, core: Core) -> None:
        """Multiplies all steps of a split of K.

        One barrier per step does for two: when all threads have passed it, the tile is there, and
        the slot whose products were complete before it is free to be filled again.

        Args:
            split_index: Which split of K.
            core: Multiplies tiles that are in shared memory.
        """
        for copier in self.copiers:
            copier.prepare()
        ahead = self.plan.stages - 1 - core.lag
        total = -(-self.extents.k_size // self.plan.k_block)
        whole = self.plan.slots(self.extents)
        first = split_index * i32(whole)
        count: Expr = i32(total)
        if self.plan.splits > 1:
            count = device.let(tirx.min(i32(whole), i32(total) - first))
        for step in range(ahead):
            self._fetch(first, i32(step), count, finish=True)
        with device.loop(count) as step:
            device.await_copies(ahead - 1)
            core.publish()
            device.barrier()
            if core.lag:
                core.multiply(*self._slots(step))
            self._fetch(first, step + i32(ahead), count)
            if not core.lag:
                core.multiply(*self._slots(step))
            core.settle()
            self._finish(step + i32(ahead), count)
        core.complete()
        device.await_copies(0)

    def _slots(self, step: Expr) -> list[Expr]:
        """Where the tiles of a step begin."""
        slot = device.let(mod(step, self.plan.stages))
        places, start = [], self.start
        for copier in self.copiers:
            places.append(slot * i32(copier.tile.size) + start)
            start = start + i32(copier.tile.size * self.plan.stages)
        return places

    def _fetch(self, first: Expr, step: Expr, count: Expr, finish: bool = False) -> None:
        def start() -> None:
            k = device.let((first + step) * i32(self.plan.k_block))
            for copier, slot in zip(self.copiers, self._slots(step)):
                copier.start(k, slot)
                if finish:
                    copier.finish(slot)

        device.only_if(step < count, start)
        device.close_copies()  # an empty group too: the number of groups counts the steps

    def _finish(self, step: Expr, count: Expr) -> None:
        if all(copier.route.is_async for copier in self.copiers):
            return

        def finish() -> None:
            for copier, slot in zip(self.copiers, self._slots(step)):
                copier.finish(slot)

        device.only_if(step < count, finish)
