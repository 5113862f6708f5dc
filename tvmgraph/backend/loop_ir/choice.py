"""Decisions that a search may overrule.

Where a kernel is shaped by a model of the processor (the register tile, what is divided among the
workers, stores around the caches), it asks :func:`choose`. The model's answer counts, except while
:func:`deciding` is open: then the decisions given there do, and all that come up are written down.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tvmgraph.core.arguments import is_sequence

T = TypeVar("T")


@dataclass(frozen=True)
class Decision:
    """A point where a kernel could be written differently.

    Attributes:
        taken: What was chosen.
        default: What the model chooses.
        options: What may be chosen: numbers, booleans or tuples of them.
    """

    taken: object
    default: object
    options: tuple[object, ...]


@dataclass
class Decisions:
    """What is decided while one kernel is written.

    Attributes:
        given: Choices by name; one that is no option any more is not heeded.
        found: All decisions that came up, by name, in order.
    """

    given: Mapping[str, object] = field(default_factory=dict[str, object])
    found: dict[str, Decision] = field(default_factory=dict)


_open = threading.local()


@contextlib.contextmanager
def deciding(given: Mapping[str, object] | None = None) -> Generator[Decisions]:
    """Overrules decisions of the kernels that this thread writes inside.

    Args:
        given: Choices by name of the decision.
    """
    before = getattr(_open, "decisions", None)
    _open.decisions = decisions = Decisions({k: _frozen(v) for k, v in (given or {}).items()})
    try:
        yield decisions
    finally:
        _open.decisions = before


def choose(name: str, default: T, options: Sequence[T]) -> T:
    """Returns ``default``, or what an open :func:`deciding` says.

    A kernel that asks the same question several times is answered the same every time.

    Args:
        name: What is decided, such as ``"gemm tile"``.
        default: The model's choice.
        options: All choices; each must give a correct kernel.
    """
    decisions: Decisions | None = getattr(_open, "decisions", None)
    if decisions is None:
        return default
    wanted = decisions.given.get(name, default)
    taken = next((o for o in options if o == wanted), default)
    if name not in decisions.found:
        decisions.found[name] = Decision(taken, default, tuple(options))
    return taken


def ranked(costs: Mapping[T, float], count: int = 6) -> list[T]:
    """The ``count`` cheapest keys, cheapest first; of equal ones the first is first.

    Args:
        costs: Estimated cost per candidate; only their order counts, in whatever unit.
        count: How many to keep. Searches compile and measure each of them.
    """
    return sorted(costs, key=lambda key: costs[key])[:count]


def _frozen(value: object) -> object:
    """Lists, as JSON has them, as tuples."""
    return tuple(map(_frozen, value)) if is_sequence(value) else value
