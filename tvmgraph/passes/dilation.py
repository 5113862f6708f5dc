"""Convolutions whose taps are so far apart that many of them read nothing but padding.

A dilated convolution that keeps the size of its image (the branches of DeepLab's pyramid, say) pads
by its dilation: with a dilation of 24 on 28 x 28, three of four products are with zeros. Along an
axis, the positions of the output fall into ranges that see the same taps; each range is a
convolution of its own, without padding, of the part of the image and the taps that it sees.

Products with the zeros of the padding are left out, so that a weight that is not finite reaches
only the positions whose windows have an element of the image under it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from tvmgraph.graph.ir import Graph, Value
from tvmgraph.passes.rewrite import rewrite
from tvmgraph.passes.rules import Match, Rule

#: The share of an axis' taps that see the image up to which ranges pay, and the products with zeros
#: from which they do: 3 x 3, 28 x 28, 960 to 256 channels on one core (Zen 5), all taps and ranges:
#: dilation 2 (share 0.95) 15.6 and 14.7 ms, 6 (0.86) 25.6 and 13.1, 12 18.2 and 10.8, 24 22.4 and
#: 3.9, 36 24.9 and 1.7.
_MAX_SHARE, _MIN_SKIPPED = 0.9, 1 << 21
_MAX_RANGES = 9  # of all axes together; each is a kernel


@dataclass(frozen=True)
class Range:
    """Positions of the output, one after the other along an axis, that see the same taps.

    Attributes:
        image: What they read, along the axis.
        taps: What they multiply it with.
        length: How many they are.
        padding: Zeros around what they read.
    """

    image: slice
    taps: slice
    length: int
    padding: tuple[int, int] = (0, 0)

    @property
    def products(self) -> int:
        """How often a tap is multiplied with something."""
        return self.length * (self.taps.stop - self.taps.start)


def ranges_of(size: int, taps: int, stride: int, padding: tuple[int, int], dilation: int
              ) -> list[Range] | None:  # fmt: skip
    """Returns the ranges of an axis; None if some position sees nothing but padding.

    Args:
        size: Of the image.
        taps: Of the weight.
        stride: Distance between windows.
        padding: Zeros before and after the image.
        dilation: Distance between taps.
    """
    found: list[Range] = []
    windows = (size + sum(padding) - dilation * (taps - 1) - 1) // stride + 1
    starts = [i * stride - padding[0] for i in range(windows)]

    def seen(start: int) -> tuple[int, int]:
        first = max(0, -(start // dilation))
        return first, min(taps, (size - 1 - start) // dilation + 1)

    for (first, end), group in itertools.groupby(starts, seen):
        if first >= end:
            return None
        begin, *rest = group
        last = rest[-1] if rest else begin
        image = slice(begin + first * dilation, last + (end - 1) * dilation + 1)
        found.append(Range(image, slice(first, end), len(rest) + 1))
    return found


def skip_padding(graph: Graph) -> Graph:
    """Returns the graph with such convolutions by ranges; itself if it has none that pays.

    Args:
        graph: A graph of any operators.
    """
    return rewrite(graph, [_RULE])


def _by_ranges(m: Match) -> Value | None:
    (x, weight), attrs = m.inputs, m.node.attrs
    result = m.node.outputs[0].type
    if attrs["groups"] > 1 or max(attrs["dilation"]) == 1 or not x.type.is_static:
        return None
    if not result.size:
        return None
    outputs, depth, *kernel = weight.type.static_shape
    axes: list[list[Range]] = []
    rest = zip(kernel, attrs["stride"], attrs["padding"], attrs["dilation"])
    for size, (taps, stride, padding, dilation), length in zip(
        x.type.static_shape[2:], rest, result.static_shape[2:]
    ):
        whole = Range(slice(0, size), slice(0, taps), length, padding)
        ranges = ranges_of(size, taps, stride, padding, dilation)
        if ranges is None:
            return None
        pays = sum(r.products for r in ranges) <= _MAX_SHARE * whole.products
        axes.append(ranges if pays else [whole])
    wanted = math.prod(sum(r.products for r in axis) for axis in axes)
    points = math.prod(n * k for n, k in zip(result.static_shape[2:], kernel))
    skipped = (points - wanted) * outputs * depth * result.static_shape[0]
    few = math.prod(map(len, axes)) <= _MAX_RANGES
    return _joined(m, axes, ()) if few and skipped >= _MIN_SKIPPED else None


def _joined(m: Match, axes: list[list[Range]], chosen: tuple[Range, ...]) -> Value:
    """The part of the result in the ranges chosen along the first axes."""
    if len(chosen) < len(axes):
        results = [_joined(m, axes, (*chosen, r)) for r in axes[len(chosen)]]
        return results[0] if len(results) == 1 else m.call("concat", *results, axis=2 + len(chosen))
    (x, weight), attrs = m.inputs, m.node.attrs
    return m.call(
        "convolution", _slice(m, x, [r.image for r in chosen]),
        _slice(m, weight, [r.taps for r in chosen]), stride=attrs["stride"],
        padding=tuple(r.padding for r in chosen), dilation=attrs["dilation"], groups=1,
    )  # fmt: skip


def _slice(m: Match, value: Value, spatial: list[slice]) -> Value:
    """Elements of an image or a weight, whose first two axes stay whole."""
    sizes = value.type.static_shape[2:]
    if all(s.start == 0 and s.stop == n for s, n in zip(spatial, sizes)):
        return value
    index = ((0, None, 1),) * 2 + tuple((s.start, s.stop, 1) for s in spatial)
    return m.call("basic_index", value, index=index)


_RULE = Rule("skip_padding", False, ("convolution",), _by_ranges)
