"""MindSpore's ``mindspore.log``: functions over one :mod:`logging` logger called ``tvmgraph``.

The level is that of ``GLOG_v`` (0 debug, 1 info, 2 warning, 3 error, 4 critical; 2 unless set), as
in MindSpore; handlers are those that the program gives to :mod:`logging`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

_LEVELS = {
    "0": logging.DEBUG, "1": logging.INFO, "2": logging.WARNING, "3": logging.ERROR,
    "4": logging.CRITICAL,
}  # fmt: skip

logger = logging.getLogger("tvmgraph")
logger.setLevel(_LEVELS.get(os.environ.get("GLOG_v", "2"), logging.WARNING))  # noqa: SIM112

debug = logger.debug
info = logger.info
warning = logger.warning
error = logger.error
critical = logger.critical


def get_level() -> str:
    """Returns the level as MindSpore counts it, ``"0"`` to ``"4"``."""
    return next(name for name, level in _LEVELS.items() if level >= logger.level)


def get_log_config() -> dict[str, str]:
    """Returns the settings of the log under MindSpore's names: its level, and that it is shown."""
    return {"GLOG_v": get_level(), "GLOG_logtostderr": "1"}


def _get_logger() -> logging.Logger:
    return logger


class _LogActionOnce:
    """Decorates what MindSpore announces when it is called first; here it only runs.

    Args:
        logger: Where it is announced.
        key: What is announced once.
        no_warning: Whether nothing is.
    """

    def __init__(self, logger: logging.Logger, key: str, no_warning: bool = False) -> None:
        self.logger, self.key, self.no_warning = logger, key, no_warning

    def __call__(self, func: Callable[..., object]) -> Callable[..., Any]:
        return func


__all__ = [
    "critical", "debug", "error", "get_level", "get_log_config", "info", "logger", "warning",
]  # fmt: skip
