"""Compositions of operators that eager code fuses into one compiled function once that pays.

NumPy computes them operator by operator. What takes it long gets machine code of its own, as
:mod:`.costly` says, and then the whole composition is one call, which a tape records as one entry.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from tvmgraph import hooks
from tvmgraph.config import context
from tvmgraph.config.flag_registry import active
from tvmgraph.core.costly import switched_on
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor

R = TypeVar("R")


def fusible(function: Callable[..., R]) -> Callable[..., R]:
    """Lets eager code fuse a composition of operators.

    Args:
        function: Of tensors, ``None`` and hashable values, all by position, to a tensor or a tuple
            of tensors. It applies operators and does nothing else; indices that it computes are in
            range.
    """
    known: dict[tuple[object, ...], Callable[[tuple[object, ...]], R]] = {}

    @functools.wraps(function)
    def call(*args: object) -> R:
        if not may_fuse():
            return function(*args)
        try:
            key = tuple([a.type if isinstance(a, Tensor) else a for a in args])
            fusion = known.get(key)
        except TypeError:  # an argument that is not hashable
            return function(*args)
        if fusion is None:
            if len(known) >= _LIMIT:
                known.clear()
            fusion = known[key] = hooks.eager_fusion(function, args)
        return fusion(args)

    return call


def may_fuse() -> bool:
    """Whether eager code may fuse operators of this thread: nobody traces or watches them."""
    return (
        state.interpreter is None
        and not active.watches_eager
        and context.device_target == "CPU"
        and switched_on()
    )


_LIMIT = 1024  # fusions remembered per composition

__all__ = ["fusible", "may_fuse"]
