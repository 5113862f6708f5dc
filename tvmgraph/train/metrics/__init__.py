"""Metrics of the evaluation loop, and the functions that find them by name."""

from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.train.metrics.basic import *  # noqa: F403
from tvmgraph.train.metrics.more import *  # noqa: F403
from tvmgraph.train.metrics.rates import *  # noqa: F403
from tvmgraph.train.metrics.similarity import *  # noqa: F403
from tvmgraph.train.metrics.surfaces import *  # noqa: F403

__all__ = _public_names(globals())
