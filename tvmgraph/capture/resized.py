"""A tensor of another size on each side of a branch: one whose sizes the condition decides.

Both sides are filled up to the larger size inside of the branch, and cut to the right one outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tvmgraph import dtypes
from tvmgraph.capture.traced_number import as_scalar
from tvmgraph.core.op import F
from tvmgraph.core.symbols import text_of
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import Dim

if TYPE_CHECKING:
    from tvmgraph.capture.merge import Merger
    from tvmgraph.capture.recorder import Recorder

Build = Callable[[list[Tensor]], Tensor]


@dataclass
class _Axis:
    """An axis whose size differs.

    Attributes:
        place: Which one.
        sizes: Its size on each side.
        limits: How small and large it may be.
    """

    place: int
    sizes: tuple[int | Dim, int | Dim]
    limits: tuple[int, int]


def resized(merger: Merger, a: Tensor, b: Tensor) -> Build | None:
    """Returns how to build the one tensor; ``None`` if more than sizes that are known differs.

    Args:
        merger: What merges the two sides.
        a: The tensor of the one side.
        b: That of the other one.
    """
    axes = _axes(merger.recorder, a, b)
    if axes is None:
        return None
    filled = []
    for side, x in enumerate((a, b)):
        with merger.recorder.recording_into(merger.regions[side]):
            for axis in axes:
                x = _filled(x, axis, axis.sizes[side])
            filled.append(x)
    whole = merger.add(*filled)
    sizes = [_size(merger, axis) for axis in axes]

    def cut(outs: list[Tensor]) -> Tensor:
        x = whole(outs)
        for axis, size_of in zip(axes, sizes):
            places = F.count_up(size_of(outs), "counted")
            (size,) = places.aval.shape
            merger.recorder.limits[text_of(size)] = axis.limits
            x = x[(*[slice(None)] * axis.place, places)]
        return x

    return cut


def _axes(recorder: Recorder, a: Tensor, b: Tensor) -> list[_Axis] | None:
    shapes = a.aval.shape, b.aval.shape
    if a.dtype is not b.dtype or len(shapes[0]) != len(shapes[1]):
        return None
    found = []
    for i, sizes in enumerate(zip(*shapes)):
        if text_of(sizes[0]) == text_of(sizes[1]):
            continue
        first, second = (_limits(recorder, s) for s in sizes)
        if first is None or second is None:
            return None
        found.append(_Axis(i, sizes, (min(first[0], second[0]), max(first[1], second[1]))))
    return found


def _limits(recorder: Recorder, size: int | Dim) -> tuple[int, int] | None:
    """Returns how small and large a size may be; no axis is filled up that may be empty."""
    if isinstance(size, Dim):
        found = recorder.limits.get(size.text)
        return found if found is not None and found[0] else None
    return size, size


def _filled(x: Tensor, axis: _Axis, size: int | Dim) -> Tensor:
    """Returns a tensor with more elements, of whatever value, along an axis."""
    most = axis.limits[1]
    if isinstance(size, Dim):
        last = as_scalar(size, dtypes.int64) - 1
        return x[(*[slice(None)] * axis.place, F.minimum(Tensor(np.arange(most)), last))]
    pads = [(0, most - size if i == axis.place else 0) for i in range(x.ndim)]
    return F.pad_constant(x, pads=tuple(pads), value=0)


def _size(merger: Merger, axis: _Axis) -> Build:
    """Returns how to build the size of an axis: of the condition alone, where that is enough."""
    if not any(isinstance(s, Dim) for s in axis.sizes):
        return lambda outs: F.where(
            merger.condition, *[as_scalar(s, dtypes.int64) for s in axis.sizes]
        )
    pair = []
    for region, size in zip(merger.regions, axis.sizes):
        with merger.recorder.recording_into(region):
            pair.append(as_scalar(size, dtypes.int64))
    return merger.add(*pair)
