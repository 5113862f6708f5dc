"""Callbacks of the training loop: what runs at its events, and those that come with it."""

import importlib
from typing import Any

from tvmgraph.compat.paths import look
from tvmgraph.train.callback.base import (
    Callback,
    History,
    InternalCallbackParam,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    RunContext,
    TimeMonitor,
)
from tvmgraph.train.callback.control import (
    CheckpointConfig,
    EarlyStopping,
    ModelCheckpoint,
    ProgressBar,
    ReduceLROnPlateau,
)

_InternalCallbackParam = InternalCallbackParam  # its name in MindSpore 1.x


def __getattr__(name: str) -> Any:
    if name == "SummaryCollector":
        return importlib.import_module("tvmgraph.train.summary").SummaryCollector
    return look(__name__, name, __all__)


__all__ = [
    "Callback", "CheckpointConfig", "EarlyStopping", "History", "LambdaCallback",
    "LearningRateScheduler", "LossMonitor", "ModelCheckpoint", "ProgressBar", "ReduceLROnPlateau",
    "RunContext", "SummaryCollector", "TimeMonitor",
]  # fmt: skip
