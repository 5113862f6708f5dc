"""Mixed precision: levels, loss scalers, training cells that use them, and rounded weights."""

from tvmgraph.amp.levels import *  # noqa: F403
from tvmgraph.amp.network import *  # noqa: F403
from tvmgraph.amp.scaler import *  # noqa: F403
from tvmgraph.amp.weights import *  # noqa: F403
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names

__all__ = _public_names(globals(), "all_finite")

_guard_module(globals(), "amp")
