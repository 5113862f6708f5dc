"""MindSpore's ``mindspore.nn.utils``: networks whose weights a checkpoint is going to replace."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def no_init_parameters() -> Iterator[None]:
    """Cells made inside are as outside: parameters get their values when they are made.

    MindSpore puts that off here, to save the time and the memory.

    Example:
        >>> with nn.utils.no_init_parameters():
        ...     net = nn.Dense(2, 3)
    """
    yield


__all__ = ["no_init_parameters"]
