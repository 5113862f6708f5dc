"""MindSpore's ``mindspore.common.seed``: one seed for initializers and random operators."""

from __future__ import annotations

import numpy as np

from tvmgraph.core.random import default_generator

_seed: int | None = None


def set_seed(seed: int) -> None:
    """Restarts every random stream: initializers, random operators and NumPy's global one.

    Args:
        seed: A non-negative integer.

    Raises:
        DTypeError: if ``seed`` is not an integer.
        ArgumentError: if it is negative or needs more than 63 bits.

    Example:
        >>> set_seed(7)
        >>> get_seed()
        7
    """
    global _seed
    default_generator.manual_seed(seed)
    np.random.seed(int(seed) % (1 << 32))
    _seed = int(seed)


def get_seed() -> int | None:
    """Returns the seed given to :func:`set_seed`, or ``None`` when there was none."""
    return _seed


def _get_graph_seed(op_seed: int, _kernel_name: str = "") -> tuple[int, int]:
    """Returns the seeds of a random Primitive, as model zoos hand them on."""
    return _seed or 0, op_seed


__all__ = ["get_seed", "set_seed"]
