"""The training loop: Model, callbacks, metrics, checkpoints."""

import importlib
from typing import Any

from tvmgraph.amp import (  # noqa: F401
    DynamicLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
    build_train_network,
)
from tvmgraph.compat.paths import look
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.train.callback.base import *  # noqa: F403
from tvmgraph.train.callback.checkpoint import *  # noqa: F403
from tvmgraph.train.callback.control import *  # noqa: F403
from tvmgraph.train.callback.leaving import *  # noqa: F403
from tvmgraph.train.metrics import *  # noqa: F403
from tvmgraph.train.model import *  # noqa: F403
from tvmgraph.train.serialization import *  # noqa: F403
from tvmgraph.train.sink import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name in ("export", "load"):
        return getattr(importlib.import_module("tvmgraph.export.api"), name)
    if name in ("SummaryCollector", "SummaryRecord"):
        return getattr(importlib.import_module("tvmgraph.train.summary"), name)
    if name == "get_ckpt_path_with_strategy":
        return importlib.import_module("tvmgraph.compat.whole").get_ckpt_path_with_strategy
    return look(__name__, name, __all__)


__all__ = _public_names(
    globals(), "DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager",
    "SummaryCollector", "SummaryRecord", "build_train_network",
)  # fmt: skip

_guard_module(globals(), "train")


def __dir__() -> list[str]:
    return list(__all__)
