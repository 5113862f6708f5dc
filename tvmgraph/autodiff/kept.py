"""Forward passes that are kept for a gradient of the same call.

Training cells that programs write call the network for the loss, and ``grad(network, weights)``
with the same arguments for the gradients. That is one forward pass, not two: running statistics
move once and masks of dropout are the same, as in MindSpore.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable
from weakref import WeakKeyDictionary

from tvmgraph.autodiff.tape import GradTape, recording, snapshot
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor

R = TypeVar("R")


@runtime_checkable
class Trained(Protocol):
    """A Cell, as far as this file looks at one."""

    def trainable_params(self) -> Sequence[Tensor]:
        """Returns what training updates."""
        ...


@dataclass(frozen=True)
class Kept:
    """One forward pass.

    Attributes:
        tape: What was recorded.
        value: What was returned: a tensor, or a tuple of them.
        given: What the arguments and trained parameters denoted.
    """

    tape: GradTape
    value: Tensor | tuple[Tensor, ...]
    given: tuple[object, ...]


_kept: WeakKeyDictionary[object, Kept] = WeakKeyDictionary()
_captured: WeakKeyDictionary[object, Kept] = WeakKeyDictionary()  # a capture may yet be refused


def _table() -> WeakKeyDictionary[object, Kept]:
    return _kept if state.interpreter is None else _captured


def keeping(cell: Trained, call: Callable[..., R], args: tuple[object, ...]) -> R:
    """Calls a Cell, and keeps the pass until the next one or until its gradient is taken.

    Args:
        cell: The Cell.
        call: What computes its result.
        args: Its positional arguments.
    """
    known = _table()
    known.pop(cell, None)
    given, tape = _denoted(args, cell.trainable_params()), GradTape()
    with recording(tape):
        value = call(*args)
    results: tuple[object, ...] = value if isinstance(value, tuple) else (value,)
    parts = tuple(snapshot(v) for v in results if isinstance(v, Tensor))
    if len(parts) == len(results):
        known[cell] = Kept(tape, parts if isinstance(value, tuple) else parts[0], given)
    return value


def taken(fn: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Kept | None:
    """Returns and forgets the kept pass of a Cell if nothing it was given has changed since.

    Args:
        fn: The Cell that is differentiated.
        args: Positional arguments of the call.
        kwargs: Its keyword arguments.
    """
    if kwargs or not isinstance(fn, Trained):
        return None
    found = _table().pop(fn, None)
    if found is None or state.tapes:
        return None
    now = _denoted(args, fn.trainable_params())
    same = len(now) == len(found.given) and all(a is b for a, b in zip(now, found.given))
    return found if same else None


def _denoted(args: tuple[object, ...], params: Sequence[object]) -> tuple[object, ...]:
    return tuple(snapshot(a).token if isinstance(a, Tensor) else a for a in (*args, *params))
