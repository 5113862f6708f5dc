"""The training loop: Model, callbacks, metrics, checkpoints."""

from tvmgraph.train.callback import (
    Callback,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    RunContext,
    TimeMonitor,
)
from tvmgraph.train.callback_control import (
    CheckpointConfig,
    EarlyStopping,
    ModelCheckpoint,
    ProgressBar,
    ReduceLROnPlateau,
)
from tvmgraph.train.interchange import load_torch, torch_names
from tvmgraph.train.metrics import (
    F1,
    MAE,
    MSE,
    Accuracy,
    Fbeta,
    Loss,
    Metric,
    Precision,
    Recall,
)
from tvmgraph.train.metrics_more import (
    ROC,
    ConfusionMatrix,
    Perplexity,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
    auc,
    get_metric_fn,
    names,
)
from tvmgraph.train.metrics_similarity import BleuScore, CosineSimilarity, Dice
from tvmgraph.train.model import Model
from tvmgraph.train.serialization import (
    CheckpointError,
    load_checkpoint,
    load_param_into_net,
    save_checkpoint,
)

__all__ = [
    "F1", "MAE", "MSE", "ROC", "Accuracy", "BleuScore", "Callback", "CheckpointConfig",
    "CheckpointError", "ConfusionMatrix", "CosineSimilarity", "Dice", "EarlyStopping",
    "Fbeta", "History", "LambdaCallback",
    "LearningRateScheduler", "Loss", "LossMonitor", "Metric", "Model", "ModelCheckpoint",
    "Perplexity", "Precision", "ProgressBar", "Recall", "ReduceLROnPlateau", "RunContext",
    "TimeMonitor", "Top1CategoricalAccuracy", "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy", "auc", "get_metric_fn", "load_checkpoint", "load_param_into_net",
    "load_torch", "names", "save_checkpoint", "torch_names",
]  # fmt: skip
