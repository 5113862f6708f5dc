"""MindSpore's ``experimental.optim``: optimizers of ``param_groups``; see :mod:`.lr_scheduler`."""

from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.experimental.optim.base import Optimizer as Optimizer
from tvmgraph.experimental.optim.optimizers import *  # noqa: F403

from tvmgraph.experimental.optim import lr_scheduler as lr_scheduler  # isort: skip

__all__ = _public_names(globals())

_guard_module(globals(), "experimental.optim")
