"""Metrics of the evaluation loop, and the functions that find them by name."""

from tvmgraph.train.metrics.basic import (
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
from tvmgraph.train.metrics.more import (
    ROC,
    ConfusionMatrix,
    Perplexity,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
    auc,
    get_metric_fn,
    get_metrics,
    names,
    rearrange_inputs,
)
from tvmgraph.train.metrics.rates import ConfusionMatrixMetric
from tvmgraph.train.metrics.similarity import BleuScore, CosineSimilarity, Dice
from tvmgraph.train.metrics.surfaces import (
    HausdorffDistance,
    MeanSurfaceDistance,
    OcclusionSensitivity,
    RootMeanSquareDistance,
)

__all__ = [
    "F1",
    "MAE",
    "MSE",
    "ROC",
    "Accuracy",
    "BleuScore",
    "ConfusionMatrix",
    "ConfusionMatrixMetric",
    "CosineSimilarity",
    "Dice",
    "Fbeta",
    "HausdorffDistance",
    "Loss",
    "MeanSurfaceDistance",
    "Metric",
    "OcclusionSensitivity",
    "Perplexity",
    "Precision",
    "Recall",
    "RootMeanSquareDistance",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "auc",
    "get_metric_fn",
    "get_metrics",
    "names",
    "rearrange_inputs",
]  # fmt: skip
