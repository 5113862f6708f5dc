"""What the compiler is at, told to whoever must name it should the compiler end or hang."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

Listener = Callable[[str, str], None]

#: What announcements of kernels begin with; others are phases.
KERNEL = "kernel "
_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """Lets ``listener`` hear ``("begins", what)`` and ``("ends", what)``, from any thread."""
    _listeners.append(listener)


@contextmanager
def announced(what: str) -> Iterator[None]:
    """Announces what a ``with`` block does; nothing ends that leaves it by an exception."""
    for listener in _listeners:
        listener("begins", what)
    yield
    for listener in _listeners:
        listener("ends", what)


def kernels_of(names: Iterable[str]) -> str:
    """How the generation of some kernels is announced; see :data:`KERNEL`."""
    return KERNEL + ", ".join(names)
