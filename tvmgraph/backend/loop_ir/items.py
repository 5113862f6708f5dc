"""Work items: how loops are divided among the workers, and into tiles."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.point import Bound
from tvmgraph.backend.loop_ir.program import Axis, product
from tvmgraph.backend.loop_ir.types import Expr


class Split(NamedTuple):
    """How a loop is divided.

    Attributes:
        extent: Its iterations.
        item: Those of one work item.
        tile: Those of one tile.
    """

    extent: int
    item: int
    tile: int = 1

    @property
    def items(self) -> int:
        """Number of work items."""
        return -(-self.extent // self.item)


#: First index and number of indices.
Range = tuple[Expr, int]


def write_items(
    loops: Sequence[Axis | Split], parallel: bool, body: Callable[[Bound, list[Range]], None]
) -> None:
    """Loops over work items, the last of which may be smaller and get code of their own.

    Args:
        loops: What is divided, outermost first; of an axis every value is an item.
        parallel: Whether the workers share the items.
        body: Writes an item, given the values of the axes and the ranges of the other loops.
    """
    splits = [Split(loop.extent, 1) if isinstance(loop, Axis) else loop for loop in loops]

    def peel(numbers: Sequence[Expr], bound: Bound, found: list[Range]) -> None:
        at = len(bound) + len(found)
        if at == len(loops):
            body(bound, found)
            return
        loop, split, number = loops[at], splits[at], numbers[at]
        if isinstance(loop, Axis):
            peel(numbers, bound | {loop.var: number}, found)
            return
        emit.peel_last(
            (number, split.items, split.item, split.extent),
            lambda size: peel(numbers, bound, [*found, (number * split.item, size)]),
        )

    items = [split.items for split in splits]
    with emit.parallel(product(items), parallel) as item:
        peel(emit.unfuse(item, items), {}, [])


def tiled(extents: Sequence[int], tile: Sequence[int], cycles: Callable[..., float]) -> float:
    """The sum of ``cycles(*size)`` over the tiles of a space, whole ones and those at its ends.

    Args:
        extents: Size of the space, per dimension.
        tile: Size of a tile.
        cycles: Takes the size of a tile, per dimension.
    """
    segments = [((size, n // size), (n % size, 1)) for n, size in zip(extents, tile)]
    found = (tuple(zip(*combined)) for combined in itertools.product(*segments))
    return sum(product(n) * cycles(*sizes) for sizes, n in found if all((*sizes, *n)))
