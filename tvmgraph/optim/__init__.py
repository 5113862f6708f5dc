"""Optimizers, learning-rate schedules and the cells of a training step."""

from tvmgraph.optim.accumulated import FTRL, Adadelta, Adagrad, RMSProp
from tvmgraph.optim.adaptive import Adam, AdaMax, AdamWeightDecay, Lamb
from tvmgraph.optim.base import Optimizer
from tvmgraph.optim.dynamic_lr import (
    cosine_decay_lr,
    exponential_decay_lr,
    inverse_decay_lr,
    natural_exp_decay_lr,
    piecewise_constant_lr,
    polynomial_decay_lr,
    warmup_lr,
)
from tvmgraph.optim.gradient import ASGD, SGD, Momentum, Rprop
from tvmgraph.optim.schedule import (
    CosineDecayLR,
    ExponentialDecayLR,
    InverseDecayLR,
    LearningRateSchedule,
    NaturalExpDecayLR,
    PolynomialDecayLR,
    WarmUpLR,
)
from tvmgraph.optim.step import (
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    ForwardValueAndGrad,
    ParameterUpdate,
    TrainOneStepCell,
    TrainOneStepWithLossScaleCell,
    update_unless,
)

AdamW = AdamWeightDecay

__all__ = [
    "ASGD", "FTRL", "SGD", "AdaMax", "Adadelta", "Adagrad", "Adam", "AdamW", "AdamWeightDecay",
    "CosineDecayLR", "DynamicLossScaleUpdateCell", "ExponentialDecayLR",
    "FixedLossScaleUpdateCell", "ForwardValueAndGrad", "InverseDecayLR", "Lamb",
    "LearningRateSchedule", "Momentum", "NaturalExpDecayLR", "Optimizer", "ParameterUpdate",
    "PolynomialDecayLR", "RMSProp", "Rprop", "TrainOneStepCell", "TrainOneStepWithLossScaleCell",
    "WarmUpLR", "cosine_decay_lr", "exponential_decay_lr", "inverse_decay_lr",
    "natural_exp_decay_lr", "piecewise_constant_lr", "polynomial_decay_lr",
    "update_unless", "warmup_lr",
]  # fmt: skip
