"""Convolution of blocked images of bfloat16 with instructions that sum two products per lane.

Blocking is that of :mod:`.blocked`. Per step a tile multiplies a pair of neighbours in memory
instead of one pixel: two channels of a block, or two taps of a row of an image without blocks. The
weights are stored in the same pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm.tirx.script import builder as T

from tvmgraph.processor import CpuModel
from tvmgraph.schedule import emit
from tvmgraph.schedule.analysis.contraction import Contraction
from tvmgraph.schedule.analysis.program import Stage, substitute
from tvmgraph.schedule.convolution.blocked import BlockedConv, plan_blocks
from tvmgraph.schedule.elementwise.injective import emit_injective
from tvmgraph.schedule.point import Bound
from tvmgraph.schedule.products.groups import narrow_type
from tvmgraph.schedule.products.microkernel import Tile, multiply_tile
from tvmgraph.schedule.products.pairs import as_words, load_pairs, pair_functions
from tvmgraph.schedule.types import Buffer, Expr, Load

#: Indices of a cut weight in pairs; the last one is that of the member of a pair.
_WEIGHT_INDICES = 7


def is_paired_conv(contraction: Contraction) -> bool:
    """Whether :func:`emit_paired_conv` applies."""
    indices, columns = contraction.right.load.indices, list(contraction.columns)
    if narrow_type(contraction) != "bfloat16" or not 1 <= len(columns) <= 2:
        return False
    if len(indices) != _WEIGHT_INDICES or not indices[-2].same_as(columns[-1].var):
        return False
    member = contraction.reduce[-1].var
    strides = contraction.strides(contraction.left)
    return bool(indices[-1].same_as(member)) and strides is not None and strides[member] == 1


def emit_paired_conv(contraction: Contraction, padding: Stage | None, model: CpuModel) -> None:
    """Writes the kernel; ``padding`` is the stage that pads the input, if there is one."""
    plan = plan_blocks(contraction, model)
    image = contraction.left.load
    if padding:
        copy, stage = as_words(padding)
        emit_injective(stage, model)
        image = copy[tuple(image.indices)]
    with T.attr(0, "pragma_import_llvm", pair_functions(plan.lanes, model)):
        _PairedConv(contraction, plan, image).write()


@dataclass(frozen=True)
class _PairedConv(BlockedConv):
    image: Load

    def _sums(
        self, tile: Tile, position: Callable[[int], Bound], channels: Sequence[Bound]
    ) -> Buffer:
        weights = self.contraction.right.load

        def pixel(number: int, taps: Sequence[Expr]) -> Expr:
            return load_pairs(_element(self.image, position(number) | self._pair(taps)))

        def weight(taps: Sequence[Expr], vector: int, lanes: int) -> Expr:
            return load_pairs(_element(weights, channels[vector] | self._pair(taps)), lanes)

        depth = [axis.extent for axis in self.contraction.reduce[:-1]] or [1]
        return multiply_tile(tile, depth, 1, pixel, weight, pairs=True)

    def _pair(self, taps: Sequence[Expr]) -> Bound:
        """Where a pair starts."""
        return self._taps([*taps, emit.i64(0)])


def _element(load: Load, bound: Bound) -> Load:
    return load.source[tuple(substitute(index, bound) for index in load.indices)]
