"""Names of :mod:`tvmgraph.nn` that higher rooms provide, found when they are first used."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from tvmgraph.compat import paths
from tvmgraph.compat.absent import not_found

HIGHER = {
    "tvmgraph.optim": (
        "ASGD", "FTRL", "LARS", "SGD", "AdaFactor", "AdaMax", "Adadelta", "Adagrad", "Adam",
        "AdamOffload", "AdamW", "LazyAdam", "ProximalAdagrad",
        "AdamWeightDecay", "CosineDecayLR", "DynamicLossScaleUpdateCell", "ExponentialDecayLR",
        "FixedLossScaleUpdateCell", "ForwardValueAndGrad", "InverseDecayLR", "Lamb",
        "LearningRateSchedule", "Momentum", "NaturalExpDecayLR", "Optimizer", "ParameterUpdate",
        "PolynomialDecayLR", "RMSProp", "Rprop", "TrainOneStepCell",
        "DistributedGradReducer",
        "TrainOneStepWithLossScaleCell", "WarmUpLR", "cosine_decay_lr", "exponential_decay_lr",
        "inverse_decay_lr", "natural_exp_decay_lr", "piecewise_constant_lr",
        "polynomial_decay_lr", "warmup_lr",
    ),
    "tvmgraph.train": (
        "F1", "MAE", "MSE", "ROC", "Accuracy", "BleuScore", "ConfusionMatrix",
        "ConfusionMatrixMetric",
        "CosineSimilarity", "Dice", "Fbeta", "HausdorffDistance", "MeanSurfaceDistance",
        "OcclusionSensitivity", "RootMeanSquareDistance",
        "Loss", "Metric", "Perplexity", "Precision", "Recall", "Top1CategoricalAccuracy",
        "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "auc", "get_metric_fn", "get_metrics",
        "names", "rearrange_inputs",
    ),
}  # fmt: skip


#: Layers with PyTorch's arguments; ``XExt`` is the room's ``X``.
EXTENDED = (
    "AvgPool1dExt", "AvgPool2dExt", "AvgPool3dExt", "Dropout2dExt", "DropoutExt", "EmbeddingExt",
    "L1LossExt", "LayerNormExt", "LogSoftmaxExt", "MaxPool2dExt", "PReLUExt",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in EXTENDED:
        return getattr(importlib.import_module("tvmgraph.mint.nn"), name.removesuffix("Ext"))
    for module, names in HIGHER.items():
        if name in names:
            found = getattr(importlib.import_module(module), name)
            setattr(sys.modules["tvmgraph.nn"], name, found)
            return found
    if name == "probability":
        return importlib.import_module("tvmgraph.nn.probability")
    path = paths.find("tvmgraph.nn", name)
    if path is not None:
        return path
    raise not_found("tvmgraph.nn", name, __dir__())


def __dir__() -> list[str]:
    return sorted({*vars(sys.modules["tvmgraph.nn"]), *EXTENDED,
                   *(n for v in HIGHER.values() for n in v)})  # fmt: skip
