"""Elements that are computed when somebody looks at them, of a whole tensor or of a part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


class Deferred:
    """Stands where a tensor on a GPU has its storage there, until somebody looks at the elements.

    Args:
        make: Computes the elements, the same ones in every call: those inside of some slices, or
            all of them for None.
    """

    copied = True  # it is no storage on a GPU
    handle = index = None

    def __init__(self, make: Callable[[tuple[slice, ...] | None], np.ndarray]) -> None:
        self._make = make

    def numpy(self, implicit: bool = True) -> np.ndarray:
        """Returns all elements.

        Args:
            implicit: Whether nobody asked for the copy, which storage on a GPU may count.
        """
        return self._make(None)

    def part(self, where: tuple[slice, ...]) -> np.ndarray:
        """Returns the elements inside of slices, one per dimension, in memory of their own.

        Args:
            where: Slices with steps of 1.
        """
        return self._make(where)
