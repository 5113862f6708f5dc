"""Eager code that nobody follows: NumPy may compute at once what is several operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from tvmgraph.config.flag_registry import active
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.core.types import Shape


def is_followed(args: tuple[Tensor, ...]) -> bool:
    """Whether somebody has to see operators on tensors: a capture, a tape, a listener or a GPU.

    Args:
        args: The tensors.
    """
    watched = state.interpreter is not None or bool(state.tapes) or active.watches_eager
    return watched or any([a.on_gpu for a in args])


def by_numpy(function: Callable[[np.ndarray], np.ndarray], x: Tensor) -> Tensor | None:
    """Returns a function of a tensor's elements; ``None`` where somebody has to see operators.

    Args:
        function: Of NumPy arrays; its result may share memory with the argument.
        x: The tensor.
    """
    if is_followed((x,)):
        return None
    return tensor_from_numpy(function(x.array))


def each_by_numpy(
    function: Callable[[np.ndarray], Iterable[np.ndarray]], x: Tensor, shape: Shape
) -> tuple[Tensor, ...] | None:
    """Returns several arrays that NumPy makes of a tensor's elements; as :func:`by_numpy`.

    Args:
        function: Of NumPy arrays; its results may share memory with the argument.
        x: The tensor.
        shape: That of every result, whose dtype is the tensor's.
    """
    if is_followed((x,)):
        return None
    t = x.aval.with_shape(shape)
    return tuple([tensor_from_numpy(a, t) for a in function(x.array)])
