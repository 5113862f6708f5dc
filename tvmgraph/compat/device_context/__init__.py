"""MindSpore's ``device_context``: settings of one kind of device each.

Those of the CPU count. Of other devices they choose algorithms and precisions that do not exist
here, so they are taken without effect: programs set them before they know where they run.
"""

from __future__ import annotations

from collections.abc import Callable


def without_effect(*names: str) -> dict[str, Callable[..., None]]:
    """Returns settings that take anything, by name.

    Args:
        names: What they are called.
    """

    def setting(name: str) -> Callable[..., None]:
        def take(*values: object, **more: object) -> None:
            """Takes a setting of another device, without effect."""

        take.__name__ = take.__qualname__ = name
        return take

    return {name: setting(name) for name in names}
