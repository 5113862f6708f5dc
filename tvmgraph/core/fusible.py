"""Compositions of operators that eager code fuses into one compiled function once that pays.

NumPy computes them operator by operator. What takes it long gets machine code of its own, as
:mod:`.costly` says, and then the whole composition is one call, which a tape records as one entry.
"""

from __future__ import annotations

import functools
import inspect
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
        function: Of tensors, ``None`` and hashable values to a tensor or a tuple of tensors. It
            applies operators and does nothing else; indices that it computes are in range.
    """
    names, defaults = _parameters(function)
    known: dict[tuple[object, ...], Callable[[tuple[object, ...]], R]] = {}

    @functools.wraps(function)
    def call(*args: object, **named: object) -> R:
        if not may_fuse():
            return function(*args, **named)
        try:
            if named or len(args) < len(names):
                rest = names[len(args) :]
                if not named.keys() <= set(rest):
                    return function(*args, **named)  # which raises
                args = (*args, *[named[n] if n in named else defaults[n] for n in rest])
            # numbers by their class, too: 1 equals 1.0 and True
            key = tuple([a.aval if isinstance(a, Tensor) else (a.__class__, a) for a in args])
            fusion = known.get(key)
        except (TypeError, KeyError):  # an argument that is not hashable, or none
            return function(*args, **named)
        if fusion is None:
            if len(known) >= _LIMIT:
                known.clear()
            fusion = known[key] = hooks.eager_fusion(function, args)
        return fusion(args)

    return call


def _parameters(function: Callable[..., object]) -> tuple[tuple[str, ...], dict[str, object]]:
    """Returns the names of a function's parameters, and the defaults of those that have one."""
    parameters = inspect.signature(function).parameters
    found = {n: p.default for n, p in parameters.items() if p.default is not p.empty}
    return tuple(parameters), found


def may_fuse() -> bool:
    """Whether eager code may fuse operators of this thread: nobody traces or watches them."""
    return (
        state.interpreter is None
        and state.precision is None
        and not active.watches_eager
        and context.device_target == "CPU"
        and switched_on()
    )


_LIMIT = 1024  # fusions remembered per composition
