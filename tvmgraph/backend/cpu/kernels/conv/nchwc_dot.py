"""Convolution of blocked images of bfloat16 with instructions that sum two products per lane.

Blocking is that of :mod:`.blocked`. Per step a tile multiplies a pair of neighbours in memory
instead of one pixel: two channels of a block, or two taps of a row of an image without blocks. The
weights are stored in the same pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm.tirx.script import builder as T

from tvmgraph.backend.cpu.kernels.conv.nchwc import NchwcConv, NchwcPlan, plan_blocks
from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.cpu.kernels.gemm.bf16_dot import as_words, dot_functions, load_pairs
from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile, multiply_tile
from tvmgraph.backend.cpu.kernels.gemm.vnni_packing import dot_type
from tvmgraph.backend.cpu.kernels.product import contraction_of, padding_of
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound
from tvmgraph.backend.loop_ir.program import Stage, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel


def is_packed_dot(contraction: Contraction) -> bool:
    """Whether a contraction is a convolution of an NCHWc image whose channels come in pairs."""
    known, strides = contraction.convolution, contraction.strides(contraction.left)
    if known is None or known.dot != 2 or dot_type(contraction) != "bfloat16":
        return False
    return strides is not None and strides[contraction.reduce[-1].var] == 1


@dataclass(frozen=True)
class _DotConv(NchwcConv):
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


def _match(nest: Nest, _model: CpuModel) -> tuple[Contraction, Stage | None] | Refused:
    found = contraction_of(nest)
    if isinstance(found, Refused):
        return found
    if not is_packed_dot(found):
        return Refused("no convolution of bfloat16 of an NCHWc image with pairs of channels")
    padding = padding_of(found, found.left)
    return padding if isinstance(padding, Refused) else (found, padding)


def _plan(found: tuple[Contraction, Stage | None], model: CpuModel) -> NchwcPlan:
    return plan_blocks(found[0], model)


def _emit(
    found: tuple[Contraction, Stage | None], plan: NchwcPlan, writer: Writer[CpuModel]
) -> None:
    contraction, padding = found
    image = contraction.left.load
    if padding:
        copy, stage = as_words(padding)
        emit_injective(stage, writer.model)
        image = copy[tuple(image.indices)]
    with T.attr(0, "pragma_import_llvm", dot_functions(plan.lanes, writer.model)):
        _DotConv(contraction, plan, image).write()


KERNEL = Kernel(
    "conv_nchwc_vnni", _match, _emit, "convolution of an NCHWc image of bfloat16, dot products",
    _plan, ("conv tile", "conv parallel", "conv weights outside"),
)  # fmt: skip
