"""Transposed convolution as plain ones: the residues of the output positions apart.

With stride s, position :math:`y = s q + r` of the output takes part only in the taps
:math:`k = r + s j`. Residues r with equally many taps are computed side by side, as channels of one
convolution of stride 1, without the products with zeros that spreading the input would add.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tvmgraph.core.columns import Builder, Expr
from tvmgraph.ops.common.window import Ints, Pairs

#: Multiplications of an image, and channels of the output, from which residues with more taps are
#: computed apart from those with fewer.
_MIN_APART, _MIN_CHANNELS = 5_000_000, 8


@dataclass(frozen=True)
class Phases:
    """Some residues of one spatial axis.

    Attributes:
        stride: s.
        kernel: Taps k of the transposed convolution.
        start: The first residue.
        residues: How many residues, all of which see a tap.
        taps: Taps of each residue; the last one is beyond the kernel for some, unless apart.
        dilation: Distance between those.
        first: The quotient q that the first position of the plain convolution stands for.
        padding: Zeros around the input.
        cut: Positions cut off before the first of the output.
    """

    stride: int
    kernel: int
    start: int
    residues: int
    taps: int
    dilation: int
    first: int
    padding: tuple[int, int]
    cut: int


#: The phases of every axis.
Axes = Sequence[Sequence[Phases]]


def phases_of(
    spatial: Ints,
    out: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Pairs,
    dilation: Ints,
    work: tuple[int, int],
) -> list[list[Phases]] | None:
    """The phases of every axis, or None where an axis has both a stride and a dilation.

    Args:
        spatial: Size of the input.
        out: Size of the output.
        kernel: Number of taps.
        stride: Distance between windows in the output.
        padding: What is cut off.
        dilation: Distance between taps.
        work: Elements of an image, and channels of the output that each takes part in.
    """
    if any(s > 1 and d > 1 for s, d in zip(stride, dilation)):
        return None
    elements, channels = work
    taps = prod(-(-k // s) * s for k, s in zip(kernel, stride))
    apart = channels >= _MIN_CHANNELS and elements * channels * taps >= _MIN_APART
    found: list[list[Phases]] = []
    for n, o, k, s, (lo, _), d in zip(spatial, out, kernel, stride, padding, dilation):
        rest = k % s
        ranges = [(0, min(s, k), -(-k // s))]
        if apart and k > s and rest:
            ranges = [(0, rest, k // s + 1), (rest, s - rest, k // s)]
        found.append([])
        for start, residues, count in ranges:
            reach = (count - 1) * d
            first = min(max(0, -(-(lo - start - residues + 1) // s)), reach)
            last = max((lo + o - 1 - start) // s, n - 1)
            pads = (reach - first, last - (n - 1))
            found[-1].append(Phases(s, k, start, residues, count, d, first, pads, lo))
    return found


def residue_weight(R: Builder, phases: Sequence[Phases], groups: int) -> Callable[..., Expr]:
    """TE: (I, O / groups, *kernel) to (O * residues, I / groups, *taps), taps reversed.

    Args:
        R: The builder.
        phases: Residues and taps per spatial axis.
        groups: Groups of channels.
    """
    residues = prod(p.residues for p in phases)

    def compute(w: Expr) -> Expr:
        inputs, outputs = (int(v) for v in w.shape[:2])
        per_group = inputs // groups

        def element(channel: Expr, i: Expr, *taps: Expr) -> Expr:
            o, rest = channel // residues, channel % residues
            at: list[Expr] = []
            for p, tap in reversed(list(zip(phases, taps))):
                at.append(p.start + rest % p.residues + p.stride * (p.taps - 1 - tap))
                rest = rest // p.residues
            at.reverse()
            inside = [k < p.kernel for k, p in zip(at, phases) if _reach(p) > p.kernel]
            value = w[(o // outputs * per_group + i, o % outputs, *at)]
            zero = R.tir.const(0, w.dtype)
            return R.tir.if_then_else(R.tir.all(*inside), value, zero) if inside else value

        shape = (groups * outputs * residues, per_group, *(p.taps for p in phases))
        return R.te.compute(shape, element, name="residue_weight")

    return compute


def _reach(p: Phases) -> int:
    """One more than the largest tap that the residues of a phase would see."""
    return p.start + p.residues + p.stride * (p.taps - 1)


def join_residues(R: Builder, axes: Axes, out: Ints) -> Callable[..., Expr]:
    """TE: puts the channels of the residues back where they belong in the output.

    The operands are the convolutions of all combinations of phases, in their order.

    Args:
        R: The builder.
        axes: Phases per spatial axis.
        out: Sizes of the spatial axes of the output.
    """
    combined = list(itertools.product(*axes))

    def compute(*parts: Expr) -> Expr:
        outputs = parts[0].shape[1] // prod(p.residues for p in combined[0])

        def element(n: Expr, o: Expr, *at: Expr) -> Expr:
            moved = [position + axis[0].cut for position, axis in zip(at, axes)]

            def value(chosen: tuple[Phases, ...]) -> Any:
                channel: Expr = o
                for p, position in zip(chosen, moved):
                    channel = channel * p.residues + (position % p.stride - p.start)
                place = [m // p.stride - p.first for p, m in zip(chosen, moved)]
                return parts[combined.index(chosen)][(n, channel, *place)]

            def select(chosen: tuple[Phases, ...]) -> Expr:
                if len(chosen) == len(axes):
                    return value(chosen)
                axis = axes[len(chosen)]
                found = select((*chosen, axis[-1]))
                if len(axis) > 1:
                    residue = moved[len(chosen)] % axis[0].stride
                    earlier = select((*chosen, axis[0]))
                    found = R.tir.if_then_else(residue < axis[1].start, earlier, found)
                return found

            seen = [
                m % axis[-1].stride < axis[-1].start + axis[-1].residues
                for m, axis in zip(moved, axes)
                if axis[-1].start + axis[-1].residues < axis[-1].stride
            ]
            zero = R.tir.const(0, parts[0].dtype)
            return R.tir.if_then_else(R.tir.all(*seen), select(()), zero) if seen else select(())

        return R.te.compute((parts[0].shape[0], outputs, *out), element, name="join")

    return compute


def pixel_weight(R: Builder, out: Ints, cut: Ints, groups: int) -> Callable[..., Expr]:
    """TE: transposed convolution of images of one pixel, whose output is the weighted kernel.

    Args:
        R: The builder.
        out: Size of the output.
        cut: Taps before the first one that counts, per spatial axis.
        groups: Number of groups.
    """

    def compute(x: Expr, w: Expr) -> Expr:
        inputs, outputs = (int(v) for v in w.shape[:2])
        per_group = inputs // groups
        channels = R.te.reduce_axis((0, per_group), name="i")

        def element(n: Expr, o: Expr, *at: Expr) -> Expr:
            channel = channels if groups == 1 else o // outputs * per_group + channels
            member = o if groups == 1 else o % outputs
            taps = [a + c for a, c in zip(at, cut)]
            return R.te.sum(x[(n, channel, *[0] * len(at))] * w[(channel, member, *taps)], channels)

        shape = (x.shape[0], groups * outputs, *out)
        return R.te.compute(shape, element, name="pixel_weight")

    return compute
