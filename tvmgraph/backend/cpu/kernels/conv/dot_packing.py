"""Operands of a plain convolution of bfloat16, copied in pairs of neighbouring input channels.

A pair is a number of 32 bits; an odd number of channels is filled up with 0. Of other types that
are not those of the sums, the weights are copied in the type of the sums, once instead of in every
tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tvm import tirx

from tvmgraph.backend.cpu.kernels.conv.window import Dimension, Rearranged, rearrange
from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.cpu.kernels.gemm.bf16_dot import as_words, pair, word
from tvmgraph.backend.cpu.kernels.gemm.vnni_packing import dot_type
from tvmgraph.backend.cpu.kernels.product import with_left_copied
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.program import Axis, Stage, substitute
from tvmgraph.backend.loop_ir.types import Expr, Var
from tvmgraph.machine.processor import CpuModel


def dot_axis(contraction: Contraction, dimensions: Sequence[Dimension]) -> Axis | None:
    """The axis of the input channels, where pairs of them can be multiplied."""
    if dot_type(contraction) != "bfloat16":
        return None
    alone = [d.axis for d in dimensions if d.axis and not d.tap and d.index is None]
    found = [axis for axis in contraction.reduce if any(axis is each for each in alone)]
    return found[0] if len(found) == 1 and found[0].extent > 1 else None


def pack_for_dot(
    contraction: Contraction,
    dimensions: Sequence[Dimension],
    padding: Stage | None,
    slack: int,
    channel: Axis,
    model: CpuModel,
) -> tuple[Contraction, Rearranged]:
    """Writes both copies; returns the convolution of pairs and the copy of its input.

    Args:
        contraction: The convolution.
        dimensions: Its input's dimensions.
        padding: The stage that pads the input, if there is one.
        slack: Elements added at the end of every row of the input.
        channel: The axis of which neighbours make pairs.
        model: The processor.
    """
    pairs = Axis(tirx.Var("pair", "int64"), -(-channel.extent // 2))
    source = contraction.right.load.source
    read: Callable[..., Expr] = lambda *at: word(source[at])  # noqa: E731
    if padding:
        words, padding = as_words(padding)
        read = lambda *at: words[at]  # noqa: E731
    place = next(i for i, d in enumerate(dimensions) if d.axis is channel)

    def element(*at: Expr) -> Expr:
        def member(number: Expr) -> Expr:
            return read(*at[:place], number, *at[place + 1 :])

        return _members(member, at[place], channel.extent)

    halved = [Dimension(pairs.extent, pairs) if d.axis is channel else d for d in dimensions]
    copy, stage = rearrange(contraction, halved, padding, slack, element)
    emit_injective(stage, model)
    reduce = tuple(pairs if axis is channel else axis for axis in contraction.reduce)
    contraction = replace(contraction, reduce=reduce)

    def weights(bound: dict[Var, Expr]) -> Expr:
        load = contraction.left.load

        def member(number: Expr) -> Expr:
            there = bound | {channel.var: number}
            return word(load.source[tuple(substitute(index, there) for index in load.indices)])

        return _members(member, bound[pairs.var], channel.extent)

    return with_left_copied(contraction, weights, model), copy


def _members(member: Callable[[Expr], Expr], number: Expr, extent: int) -> Expr:
    """A pair of the members ``2 * number`` and the next one, if that exists."""
    first, second = number * 2, number * 2 + 1
    if extent % 2 == 0:
        return pair(member(first), member(second))
    there = member(tirx.min(second, emit.i64(extent - 1)))
    zero = tirx.const(0, "uint16")
    return pair(member(first), tirx.Select(second < extent, there, zero))
