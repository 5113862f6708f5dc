"""Elementwise kernels with operands that are contiguous along another axis than the result.

A block takes a square of 32 by 32 elements, or of 64 by 64 where they are so small that fewer would
not keep memory busy. Warps read rows of the operand and store rows of the result; in between, the
elements change positions in shared memory, whose rows are one word longer so that neither direction
meets a bank twice.

Expected on a device: the bytes of operands and results at nearly the speed of a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm.tirx.script import builder as T

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.body import Body
from tvmgraph.backend.cuda.kernels.device import WARP, div, i32, mod
from tvmgraph.backend.cuda.kernels.iteration import (
    Iteration,
    Loops,
    Position,
    address_of,
    readable,
    same,
)
from tvmgraph.backend.loop_ir.access import dtype_bytes, group_extent
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import Stage, product
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load
from tvmgraph.backend.table import Kernel, Refused
from tvmgraph.backend.target import GpuModel

_THREADS = 256
_WORD = 4
#: Large squares of more operands would not fit into the shared memory of a block.
_MOST_TILES = 4
#: Shorter axes leave most of a square empty.
_SHORTEST = 16


@dataclass(frozen=True)
class Transposed:
    """Operands of a stage to be read in squares.

    Attributes:
        loads: Their elements.
        read_axis: Which group of loops they are contiguous along.
    """

    loads: tuple[Load, ...]
    read_axis: int


def find_transposed(stage: Stage) -> Transposed | None:
    """The operands that are transposed, if all of them are contiguous along the same loops.

    Args:
        stage: An elementwise stage.

    Returns:
        None where axes are shorter than half a square, or operands lie along different loops.
    """
    loops = Loops(stage, stage.axes)
    if len(loops.groups) < 2 or loops.last < _SHORTEST:
        return None
    ends = [sum(map(len, loops.groups[: i + 1])) - 1 for i in range(len(loops.groups))]
    found: list[tuple[Load, int]] = []
    for load in readable(stage):
        address = address_of(load.source, list(load.indices), stage.axes)
        if address is None or address.strides[-1] in (0, 1):
            continue
        contiguous = [g for g, end in enumerate(ends[:-1]) if address.strides[end] == 1]
        if contiguous:
            found.append((load, contiguous[-1]))
    if not found or len({group for _, group in found}) > 1:
        return None
    group = found[0][1]
    if group_extent(loops.groups[group]) < _SHORTEST:
        return None
    return Transposed(tuple(load for load, _ in found), group)


def emit_transposed(stage: Stage, transposed: Transposed) -> None:
    """Writes the kernel.

    Args:
        stage: The stage that was asked about.
        transposed: What was found.
    """
    loops = Loops(stage, stage.axes)
    extents = [group_extent(group) for group in loops.groups]
    itemsize = max(dtype_bytes(str(load.source.dtype)) for load in transposed.loads)
    is_small = itemsize < _WORD and len(transposed.loads) <= _MOST_TILES
    side = 2 * WARP if is_small else WARP
    squares = [
        -(-e // side) if g in _sides(transposed, extents) else e for g, e in enumerate(extents)
    ]
    with device.launch(product(squares), _THREADS) as (block, thread):
        first: list[Expr] = []
        for position, count in reversed(list(enumerate(squares))):
            first.insert(0, device.let(mod(block, count) if position else block))
            block = div(block, count)
        lane, row = device.let(mod(thread, WARP)), device.let(div(thread, WARP))
        pitch = side + max(1, _WORD // itemsize)
        square = _Square(stage, loops, transposed, extents, first, side, pitch)
        tiles = [
            T.alloc_buffer((i32(side * pitch),), str(load.source.dtype), scope="shared")
            for load in transposed.loads
        ]
        square.sweep(
            lambda iteration, at: square.read(tiles, iteration, at), lane, row, transposed.read_axis
        )
        T.evaluate(T.tvm_storage_sync("shared"))
        last = len(extents) - 1
        square.sweep(lambda iteration, at: square.write(tiles, iteration, at), lane, row, last)


def _sides(transposed: Transposed, extents: list[int]) -> tuple[int, int]:
    return transposed.read_axis, len(extents) - 1


@dataclass(frozen=True)
class _Square:
    stage: Stage
    loops: Loops
    transposed: Transposed
    extents: list[int]
    first: list[Expr]  # index of every group; of the sides' groups in squares
    side: int
    pitch: int  # elements from one row of a tile to the next

    def sweep(
        self, body: Callable[[Iteration, Expr], None], lane: Expr, row: Expr, along: int
    ) -> None:
        """Calls ``body(iteration, position in the tile)`` for the elements of a thread.

        Lanes of a warp are neighbours along the group ``along``.
        """
        read, last = _sides(self.transposed, self.extents)
        other = last if along == read else read
        rows, warps = _THREADS // WARP, self.side // WARP
        for turn in range(self.side // rows * warps):
            line = row + i32(turn // warps * rows)
            column = lane + i32(turn % warps * WARP)
            indices = list(self.first)
            for group, offset in ((along, column), (other, line)):
                indices[group] = device.let(self.first[group] * i32(self.side) + offset)
            inside: Expr | None = None
            for group in (along, other):
                if self.extents[group] % self.side:
                    limit = indices[group] < i32(self.extents[group])
                    inside = device.both(inside, limit)
            # the tile's rows run along the operand's contiguous loops
            at = (line, column) if along == read else (column, line)
            iteration = Iteration((self._position(indices),))
            offset = at[0] * i32(self.pitch) + at[1]
            device.only_if(
                inside, lambda iteration=iteration, offset=offset: body(iteration, offset)
            )

    def _position(self, indices: list[Expr]) -> Position:
        whole: Expr = i32(0)
        for index, extent in zip(indices, self.extents):
            whole = whole * i32(extent) + index
        return Position(self.loops, whole, tuple(indices))

    def read(self, tiles: list[Buffer], iteration: Iteration, at: Expr) -> None:
        """Puts elements of the operands into the tiles."""
        for tile, load in zip(tiles, self.transposed.loads):
            device.store(tile, iteration.element(load), [at])

    def write(self, tiles: list[Buffer], iteration: Iteration, at: Expr) -> None:
        """Computes and stores a result."""

        def known(load: Load, _lane: int) -> Expr | None:
            pairs = zip(tiles, self.transposed.loads)
            return next((tile[at] for tile, other in pairs if same(load, other)), None)

        body = Body(self.stage, self.stage.axes)
        body.store(iteration, body.values(iteration, 1, known))


def _match(nest: Nest, _model: GpuModel) -> tuple[Stage, Transposed] | Refused:
    if nest.stage is None or nest.stage.is_reduction:
        return Refused("no single elementwise stage")
    found = find_transposed(nest.stage)
    return Refused("its operands run along the result") if found is None else (nest.stage, found)


KERNEL = Kernel(
    "transpose", _match, lambda found, _plan, _writer: emit_transposed(*found),
    "elementwise, operands that are contiguous along another axis than the result",
)  # fmt: skip
