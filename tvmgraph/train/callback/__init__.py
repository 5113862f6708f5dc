"""Callbacks of the training loop: what runs at its events, and those that come with it."""

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

__all__ = [
    "Callback", "CheckpointConfig", "EarlyStopping", "History", "LambdaCallback",
    "LearningRateScheduler", "LossMonitor", "ModelCheckpoint", "ProgressBar", "ReduceLROnPlateau",
    "RunContext", "TimeMonitor",
]  # fmt: skip
