"""The training loop: Model, callbacks, metrics, checkpoints."""

from tvmgraph.amp import (
    DynamicLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
    build_train_network,
)
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
from tvmgraph.train.interchange import load_torch, torch_names
from tvmgraph.train.metrics import (
    F1,
    MAE,
    MSE,
    ROC,
    Accuracy,
    BleuScore,
    ConfusionMatrix,
    CosineSimilarity,
    Dice,
    Fbeta,
    Loss,
    Metric,
    Perplexity,
    Precision,
    Recall,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
    auc,
    get_metric_fn,
    names,
)
from tvmgraph.train.model import Model
from tvmgraph.train.serialization import (
    CheckpointError,
    load_checkpoint,
    load_param_into_net,
    save_checkpoint,
)

__all__ = [
    "F1", "MAE", "MSE", "ROC", "Accuracy", "BleuScore", "Callback", "CheckpointConfig",
    "CheckpointError", "ConfusionMatrix", "CosineSimilarity", "Dice", "DynamicLossScaleManager",
    "EarlyStopping", "Fbeta", "FixedLossScaleManager", "History", "LambdaCallback",
    "LearningRateScheduler", "Loss", "LossMonitor", "LossScaleManager", "Metric", "Model",
    "ModelCheckpoint", "Perplexity", "Precision", "ProgressBar", "Recall", "ReduceLROnPlateau",
    "RunContext", "TimeMonitor", "Top1CategoricalAccuracy", "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy", "auc", "build_train_network", "get_metric_fn", "load_checkpoint",
    "load_param_into_net", "load_torch", "names", "save_checkpoint", "torch_names",
]  # fmt: skip
