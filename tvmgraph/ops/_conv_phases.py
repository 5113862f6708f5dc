"""Transposed convolution as a plain one: all residues of the output positions side by side.

With stride s, position :math:`y = s q + r` of the output takes part only in the taps
:math:`k = r + s j`. A convolution of stride 1 with about k / s taps computes the s residues r as
channels of its own, and none of the products with zeros that spreading the input would add.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from tvmgraph.ops._window import Ints, Pairs


@dataclass(frozen=True)
class Phases:
    """How one spatial axis is walked.

    Attributes:
        stride: s.
        kernel: Taps k of the transposed convolution.
        residues: Residues that see a tap, min(s, k).
        taps: Taps of each residue.
        dilation: Distance between those.
        first: The quotient q that the first position of the plain convolution stands for.
        padding: Zeros around the input.
        cut: Positions cut off before the first of the output.
    """

    stride: int
    kernel: int
    residues: int
    taps: int
    dilation: int
    first: int
    padding: tuple[int, int]
    cut: int


def phases_of(
    spatial: Ints, out: Ints, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
) -> list[Phases] | None:
    """The phases of every axis, or None where an axis has both a stride and a dilation."""
    if any(s > 1 and d > 1 for s, d in zip(stride, dilation)):
        return None
    found: list[Phases] = []
    for n, o, k, s, (lo, _), d in zip(spatial, out, kernel, stride, padding, dilation):
        taps = -(-k // s)
        reach = (taps - 1) * d
        first = min(lo // s, reach)
        last = max((lo + o - 1) // s, n - 1)
        pads = (reach - first, last - (n - 1))
        found.append(Phases(s, k, min(s, k), taps, d, first, pads, lo))
    return found


def residue_weight(R: Any, phases: list[Phases], groups: int) -> Any:
    """TE: (I, O / groups, *kernel) to (O * residues, I / groups, *taps), taps reversed."""
    residues = prod(p.residues for p in phases)

    def compute(w: Any) -> Any:
        inputs, outputs = (int(v) for v in w.shape[:2])
        per_group = inputs // groups

        def element(channel: Any, i: Any, *taps: Any) -> Any:
            o, rest = channel // residues, channel % residues
            at: list[Any] = []
            for p, tap in reversed(list(zip(phases, taps))):
                at.append(rest % p.residues + p.stride * (p.taps - 1 - tap))
                rest = rest // p.residues
            at.reverse()
            inside = [k < p.kernel for k, p in zip(at, phases) if p.taps * p.residues > p.kernel]
            value = w[(o // outputs * per_group + i, o % outputs, *at)]
            zero = R.tir.const(0, w.dtype)
            return R.tir.if_then_else(R.tir.all(*inside), value, zero) if inside else value

        shape = (groups * outputs * residues, per_group, *(p.taps for p in phases))
        return R.te.compute(shape, element, name="residue_weight")

    return compute


def join_residues(R: Any, phases: list[Phases], out: Ints) -> Any:
    """TE: puts the channels of the residues back where they belong in the output."""
    residues = prod(p.residues for p in phases)

    def compute(y: Any) -> Any:
        def element(n: Any, o: Any, *at: Any) -> Any:
            channel: Any = o
            place: list[Any] = []
            inside: list[Any] = []
            for p, position in zip(phases, at):
                moved = position + p.cut
                residue = moved % p.stride
                if p.residues < p.stride:
                    inside.append(residue < p.residues)
                channel = channel * p.residues + residue
                place.append(moved // p.stride - p.first)
            value = y[(n, channel, *place)]
            zero = R.tir.const(0, y.dtype)
            return R.tir.if_then_else(R.tir.all(*inside), value, zero) if inside else value

        return R.te.compute((y.shape[0], y.shape[1] // residues, *out), element, name="join")

    return compute
