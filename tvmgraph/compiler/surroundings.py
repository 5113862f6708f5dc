"""What decides about a compile beside its arguments, to be the same in another process."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass, fields

from tvmgraph.config import Context, context
from tvmgraph.config.flag_registry import REGISTRY, active

#: Settings that stand for live objects, or have done their work before a graph is compiled.
_LEFT_OUT = ("jit_config", "device_target", "device_id", "check_numerics")


@dataclass(frozen=True)
class Surroundings:
    """Settings of a process.

    Attributes:
        environment: Its environment variables.
        folder: Its current folder.
        settings: What was given to ``set_context``.
        flags: The debugging flags in force.
        terminal: Whether what it prints is seen on a terminal.
    """

    environment: dict[str, str]
    folder: str
    settings: dict[str, object]
    flags: dict[str, int]
    terminal: bool

    def apply(self) -> None:
        """Makes them those of this process."""
        if self.environment != os.environ:
            os.environ.clear()
            os.environ.update(self.environment)
        with contextlib.suppress(OSError):  # it was deleted
            os.chdir(self.folder)
        for name, value in self.settings.items():
            setattr(context, name, value)
        active.replace(**self.flags)


def surroundings() -> Surroundings:
    """Those of this process."""
    settings = {f.name: getattr(context, f.name) for f in fields(Context)}
    for name in _LEFT_OUT:
        del settings[name]
    flags = {name: getattr(active, name) for name in REGISTRY}
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return Surroundings(dict(os.environ), _current_folder(), settings, flags, terminal)


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return os.sep
