"""MindSpore's ``experimental.optim``: optimizers of ``param_groups``; see :mod:`.lr_scheduler`."""

from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.experimental.optim.adaptive import Adam, Adamax, AdamW, NAdam, RAdam
from tvmgraph.experimental.optim.base import Optimizer
from tvmgraph.experimental.optim.gradient import ASGD, SGD, Adadelta, Adagrad, RMSprop, Rprop

from tvmgraph.experimental.optim import lr_scheduler as lr_scheduler  # isort: skip

__all__ = [
    "ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam",
    "RMSprop", "Rprop",
]  # fmt: skip

_guard_module(globals(), "experimental.optim")
