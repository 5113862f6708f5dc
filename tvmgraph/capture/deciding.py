"""Small tensors of a call whose elements the code needs, which makes them constants of a capture.

An axis, a number of copies or a shape may be given as a small tensor of integers. Where the code
needs its elements, the capture takes those of the call at hand and serves calls with equal ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tvmgraph.core.tensor import Tensor
from tvmgraph.graph import Value

if TYPE_CHECKING:
    from tvmgraph.capture.recorder import Recorder
    from tvmgraph.capture.traced import TracedTensor

_MOST = 8  # elements


class Deciding:
    """The tensors whose elements a capture may take.

    Args:
        values: The values of the graph that stand for the tensor arguments.
        leaves: The tensors of the call.
        everywhere: Whether all code may ask for them, or only operators for their settings.

    Attributes:
        taken: The elements that were taken, by number of the argument.
    """

    def __init__(self, values: Iterable[Value], leaves: Sequence[Tensor], everywhere: bool) -> None:
        self.everywhere = everywhere
        self.taken: dict[int, np.ndarray] = {}
        self._places = {v: i for i, v in enumerate(values)}
        self._leaves = leaves

    def find(self, recorder: Recorder, tensor: TracedTensor) -> Tensor | None:
        """Returns a tensor with its elements where constants and such tensors decide them.

        Args:
            recorder: The capture.
            tensor: A tensor of the capture.
        """
        others = {v: t for t, v in recorder.captured}
        used: dict[Value, Tensor] = {}

        def given(value: Value) -> np.ndarray | None:
            place = self._places.get(value)
            held = others.get(value) if place is None else self._leaves[place]
            if held is None or not _is_small(held):
                return None
            used[value] = held
            return held.array

        found = recorder.known(tensor, given)
        for value, held in used.items() if found is not None else ():
            if value in self._places:
                self.taken[self._places[value]] = np.array(held.array)
            else:
                recorder.read(held)
        return found

    def same(self, leaves: Sequence[Tensor]) -> bool:
        """Whether the arguments of another call have the elements that were taken.

        Args:
            leaves: The tensors among the arguments.
        """
        return all(np.array_equal(leaves[i].array, known) for i, known in self.taken.items())


def settled(tensor: TracedTensor, by_operator: bool) -> Tensor | None:
    """Returns a tensor with its elements where they are known, or may count as constants.

    Args:
        tensor: A tensor of the capture.
        by_operator: Whether an operator needs them for a setting, such as an axis.
    """
    recorder = tensor.recorder
    deciding = recorder.deciding
    if deciding is None or not (by_operator or deciding.everywhere):
        return recorder.known(tensor)
    return deciding.find(recorder, tensor)


def _is_small(tensor: Tensor) -> bool:
    kind = tensor.aval
    return kind.is_static and kind.size <= _MOST and kind.dtype.kind in "biu"
