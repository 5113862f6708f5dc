"""MindSpore's ``device_context.cpu``."""

from __future__ import annotations

from tvmgraph.config import set_context


def is_available() -> bool:
    """Returns that there is a processor."""
    return True


def device_count() -> int:
    """Returns that it counts as one device."""
    return 1


def threads_num(num: int) -> None:
    """Chooses how many threads compute, as ``set_context(runtime_num_threads=num)``.

    Args:
        num: The number.

    Raises:
        ConfigError: if it is negative; 0 stands for as many as there are cores.
    """
    set_context(runtime_num_threads=num)
