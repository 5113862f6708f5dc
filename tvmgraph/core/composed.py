"""Compositions of operators that eager code computes in one piece where their tensors are large.

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
from tvmgraph.core.costly import LARGE, switched_on
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor

R = TypeVar("R")


def composed(function: Callable[..., R], least: int = LARGE) -> Callable[..., R]:
    """Lets eager code compute a composition in one piece.

    Args:
        function: Of tensors, ``None`` and hashable values, all by position, to a tensor or a tuple
            of tensors. It applies operators and does nothing else; indices that it computes are in
            range.
        least: Elements of its tensors from which on: fewer where it is many operators, whose calls
            alone take long.
    """
    known: dict[tuple[object, ...], Callable[[tuple[object, ...]], R]] = {}

    @functools.wraps(function)
    def call(*args: object) -> R:
        if not in_pieces() or sum([a.size for a in args if isinstance(a, Tensor)]) < least:
            return function(*args)
        try:
            key = tuple([a.type if isinstance(a, Tensor) else a for a in args])
            piece = known.get(key)
        except TypeError:  # an argument that is not hashable
            return function(*args)
        if piece is None:
            if len(known) >= _LIMIT:
                known.clear()
            piece = known[key] = hooks.eager_piece(function, args)
        return piece(args)

    return call


def in_pieces() -> bool:
    """Whether eager code may compute several operators of this thread in one piece."""
    return (
        state.interpreter is None
        and not active.watches_eager
        and context.device_target == "CPU"
        and switched_on()
    )


_LIMIT = 1024  # pieces remembered per composition

__all__ = ["composed", "in_pieces"]
