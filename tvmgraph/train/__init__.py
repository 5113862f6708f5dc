"""The training loop: Model, callbacks, metrics, checkpoints."""

import importlib
from typing import Any

from tvmgraph.amp import (
    DynamicLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
    build_train_network,
)
from tvmgraph.compat.paths import look
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.train.callback import (
    Callback,
    CheckpointConfig,
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    ModelCheckpoint,
    ProgressBar,
    ReduceLROnPlateau,
    RunContext,
    TimeMonitor,
)
from tvmgraph.train.conversion import (
    async_ckpt_thread_status,
    ckpt_to_safetensors,
    load_checkpoint_async,
    safetensors_to_ckpt,
)
from tvmgraph.train.interchange import load_torch, torch_names
from tvmgraph.train.metrics import (
    F1,
    MAE,
    MSE,
    ROC,
    Accuracy,
    BleuScore,
    ConfusionMatrix,
    ConfusionMatrixMetric,
    CosineSimilarity,
    Dice,
    Fbeta,
    HausdorffDistance,
    Loss,
    MeanSurfaceDistance,
    Metric,
    OcclusionSensitivity,
    Perplexity,
    Precision,
    Recall,
    RootMeanSquareDistance,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
    auc,
    get_metric_fn,
    get_metrics,
    names,
    rearrange_inputs,
)
from tvmgraph.train.model import Model
from tvmgraph.train.serialization import (
    CheckpointError,
    load_checkpoint,
    load_param_into_net,
    save_checkpoint,
)
from tvmgraph.train.sink import DatasetHelper, connect_network_with_dataset, data_sink


def __getattr__(name: str) -> Any:
    if name in ("export", "load"):
        return getattr(importlib.import_module("tvmgraph.export.api"), name)
    if name in ("SummaryCollector", "SummaryRecord"):
        return getattr(importlib.import_module("tvmgraph.train.summary"), name)
    return look(__name__, name, __all__)


__all__ = [
    "F1",
    "MAE",
    "MSE",
    "ROC",
    "Accuracy",
    "BleuScore",
    "Callback",
    "CheckpointConfig",
    "CheckpointError",
    "ConfusionMatrix",
    "ConfusionMatrixMetric",
    "CosineSimilarity",
    "DatasetHelper",
    "Dice",
    "DynamicLossScaleManager",
    "EarlyStopping",
    "Fbeta",
    "FixedLossScaleManager",
    "HausdorffDistance",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "Loss",
    "LossMonitor",
    "LossScaleManager",
    "MeanSurfaceDistance",
    "Metric",
    "Model",
    "ModelCheckpoint",
    "OcclusionSensitivity",
    "Perplexity",
    "Precision",
    "ProgressBar",
    "Recall",
    "ReduceLROnPlateau",
    "RootMeanSquareDistance",
    "RunContext",
    "SummaryCollector",
    "SummaryRecord",
    "TimeMonitor",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "async_ckpt_thread_status",
    "auc",
    "build_train_network",
    "ckpt_to_safetensors",
    "connect_network_with_dataset",
    "data_sink",
    "get_metric_fn",
    "get_metrics",
    "load_checkpoint",
    "load_checkpoint_async",
    "load_param_into_net",
    "load_torch",
    "names",
    "rearrange_inputs",
    "safetensors_to_ckpt",
    "save_checkpoint",
    "torch_names",
]  # fmt: skip

_guard_module(globals(), "train")
