"""Optimizers, learning-rate schedules and the cells of a training step."""

from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.optim.accumulated import FTRL, Adadelta, Adagrad, ProximalAdagrad, RMSProp
from tvmgraph.optim.adaptive import Adam, AdaMax, AdamOffload, AdamWeightDecay, Lamb, LazyAdam
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
from tvmgraph.optim.reducer import DistributedGradReducer
from tvmgraph.optim.scaled import LARS, AdaFactor
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
    "ASGD", "FTRL", "LARS", "SGD", "AdaFactor", "AdaMax", "Adadelta", "Adagrad", "Adam",
    "AdamOffload", "AdamW", "AdamWeightDecay",
    "CosineDecayLR", "DistributedGradReducer", "DynamicLossScaleUpdateCell", "ExponentialDecayLR",
    "FixedLossScaleUpdateCell", "ForwardValueAndGrad", "InverseDecayLR", "Lamb",
    "LazyAdam", "LearningRateSchedule", "Momentum", "NaturalExpDecayLR", "Optimizer",
    "ParameterUpdate", "PolynomialDecayLR", "ProximalAdagrad", "RMSProp", "Rprop",
    "TrainOneStepCell", "TrainOneStepWithLossScaleCell", "WarmUpLR", "cosine_decay_lr",
    "exponential_decay_lr", "inverse_decay_lr", "natural_exp_decay_lr", "piecewise_constant_lr",
    "polynomial_decay_lr", "update_unless", "warmup_lr",
]  # fmt: skip

_guard_module(globals(), "nn")
