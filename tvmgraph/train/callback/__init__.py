"""Callbacks of the training loop: what runs at its events, and those that come with it."""

from typing import Any

from tvmgraph.compat.paths import look
from tvmgraph.train.callback.base import (
    Callback,
    History,
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


def __getattr__(name: str) -> Any:
    return look(__name__, name, __all__)


__all__ = [
    "Callback", "CheckpointConfig", "EarlyStopping", "History", "LambdaCallback",
    "LearningRateScheduler", "LossMonitor", "ModelCheckpoint", "ProgressBar", "ReduceLROnPlateau",
    "RunContext", "TimeMonitor",
]  # fmt: skip
