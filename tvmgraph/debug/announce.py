"""What the compiler is at, told to whoever must name it should the compiler end or hang."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

Listener = Callable[[str, str], None]

#: What announcements of kernels begin with; others are phases.
KERNEL = "kernel "
_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """Lets ``listener`` hear ``("begins", what)`` and ``("ends", what)``, from any thread.

    Args:
        listener: A function of the kind of an announcement and what it is about.
    """
    _listeners.append(listener)


def leave(listener: Listener) -> None:
    """Ends what :func:`listen` began.

    Args:
        listener: A function of the kind of an announcement and what it is about.
    """
    _listeners.remove(listener)


def tell(kind: str, what: str) -> None:
    """Passes on what another process announced: ``kind`` is ``begins`` or ``ends``.

    Args:
        kind: ``begins`` or ``ends``.
        what: What begins or ends.
    """
    for listener in tuple(_listeners):
        listener(kind, what)


@contextmanager
def announced(what: str) -> Iterator[None]:
    """Announces what a ``with`` block does; nothing ends that leaves it by an exception.

    Args:
        what: What begins and ends.
    """
    tell("begins", what)
    yield
    tell("ends", what)


def kernels_of(names: Iterable[str]) -> str:
    """How the generation of some kernels is announced; see :data:`KERNEL`.

    Args:
        names: Names of the kernels.
    """
    return KERNEL + ", ".join(names)
