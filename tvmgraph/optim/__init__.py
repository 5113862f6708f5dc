"""Optimizers, learning-rate schedules and the cells of a training step."""

from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.optim.accumulated import *  # noqa: F403
from tvmgraph.optim.adaptive import *  # noqa: F403
from tvmgraph.optim.base import *  # noqa: F403
from tvmgraph.optim.gradient import *  # noqa: F403
from tvmgraph.optim.reducer import *  # noqa: F403
from tvmgraph.optim.scaled import *  # noqa: F403
from tvmgraph.optim.schedule import *  # noqa: F403  # noqa: F403
from tvmgraph.optim.step import *  # noqa: F403

__all__ = _public_names(globals())

_guard_module(globals(), "nn")
