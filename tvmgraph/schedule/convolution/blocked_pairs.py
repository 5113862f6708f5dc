"""Convolution of blocked images of bfloat16 with instructions that sum two products per lane.

Blocking is that of :mod:`.blocked`. Per step a tile multiplies a pair of neighbours in memory
instead of one pixel: two channels of a block, or two taps of a row of an image without blocks. The
weights are stored in the same pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.schedule import emit
from tvmgraph.schedule.analysis.contraction import Contraction
from tvmgraph.schedule.analysis.program import Stage, is_choice, static_shape, substitute
from tvmgraph.schedule.convolution.blocked import BlockedConv, plan_blocks
from tvmgraph.schedule.convolution.lines import unguarded
from tvmgraph.schedule.elementwise.injective import emit_injective
from tvmgraph.schedule.point import Bound
from tvmgraph.schedule.products.groups import call, narrow_type
from tvmgraph.schedule.products.microkernel import Tile, kept
from tvmgraph.schedule.products.pairs import pair_functions
from tvmgraph.schedule.target import CpuModel
from tvmgraph.schedule.types import Buffer, Expr, Load

#: Indices of a cut weight in pairs; the last one is that of the member of a pair.
_WEIGHT_INDICES = 7

_any: Any = T


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
        copy, stage = _as_words(padding)
        emit_injective(stage, model)
        image = copy[tuple(image.indices)]
    with T.attr(0, "pragma_import_llvm", pair_functions(plan.lanes, model)):
        _PairedConv(contraction, plan, image).write()


def _as_words(stage: Stage) -> tuple[Buffer, Stage]:
    """A temporary for a stage, and the stage that writes it; TVM would widen one of bfloat16."""
    copy = emit.workspace(static_shape(stage.buffer) or (), "uint16")
    value = stage.value
    words = _any.reinterpret("uint16", unguarded(value))
    if is_choice(value):
        words = _any.if_then_else(value.args[0], words, tirx.const(0, "uint16"))
    return copy, replace(stage, buffers=(copy,), values=(words,))


@dataclass(frozen=True)
class _PairedConv(BlockedConv):
    image: Load

    def _sums(
        self, tile: Tile, position: Callable[[int], Bound], channels: Sequence[Bound]
    ) -> Buffer:
        contraction, lanes = self.contraction, tile.lanes
        total = emit.stack(tile.size, tile.dtype)
        for at in self._places(tile):
            emit.store(total, emit.broadcast(emit.zero(tile.dtype), lanes), [at])

        def step(taps: Sequence[Expr]) -> None:
            """Multiplies a pair of every position with a vector of pairs per vector of channels."""
            bound = self._taps([*taps, emit.i64(0)])
            weights = [
                kept(
                    _at(f"int32x{lanes}", f"load{lanes}", contraction.right.load, c | bound),
                    lanes,
                    "int32",
                )
                for c in channels
            ]
            for row in range(tile.rows):
                pixel = _at("int32", "pair", self.image, position(row) | bound)
                pixel = emit.broadcast(kept(pixel, 1, "int32"), lanes)
                for vector, weight in enumerate(weights):
                    at = tile.at(row, vector)
                    old = total[at]
                    value = call(f"{tile.dtype}x{lanes}", f"pairs{lanes}", old, weight, pixel)
                    emit.store(total, value, [at])

        emit.nest([axis.extent for axis in contraction.reduce[:-1]], step)
        return total

    def _places(self, tile: Tile) -> list[Expr]:
        return [tile.at(row, vector) for row in range(tile.rows) for vector in range(tile.vectors)]


def _at(dtype: str, name: str, load: Load, bound: Bound) -> Expr:
    """What a function loads from where an element is."""
    indices = tuple(substitute(index, bound) for index in load.indices)
    return call(dtype, name, _any.address_of(load.source[indices]))
