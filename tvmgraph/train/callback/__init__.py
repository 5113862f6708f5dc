"""Callbacks of the training loop: what runs at its events, and those that come with it."""

import importlib
from typing import Any

from tvmgraph.compat.paths import look
from tvmgraph.compat.private import set_cur_net
from tvmgraph.train.callback.base import (
    Callback,
    Callbacks,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    RunArguments,
    RunContext,
    TimeMonitor,
    loss_value,
)
from tvmgraph.train.callback.checkpoint import BackupAndRestore, CheckpointConfig, ModelCheckpoint
from tvmgraph.train.callback.control import EarlyStopping, ProgressBar, ReduceLROnPlateau
from tvmgraph.train.callback.leaving import OnRequestExit

_CallbackManager, _InternalCallbackParam, _handle_loss = Callbacks, RunArguments, loss_value
_set_cur_net = set_cur_net


def __getattr__(name: str) -> Any:
    if name == "SummaryCollector":
        return importlib.import_module("tvmgraph.train.summary").SummaryCollector
    return look(__name__, name, __all__)


__all__ = [
    "BackupAndRestore", "Callback", "CheckpointConfig", "EarlyStopping", "History",
    "LambdaCallback", "LearningRateScheduler", "LossMonitor", "ModelCheckpoint", "OnRequestExit",
    "ProgressBar", "ReduceLROnPlateau", "RunContext", "SummaryCollector", "TimeMonitor",
]  # fmt: skip
