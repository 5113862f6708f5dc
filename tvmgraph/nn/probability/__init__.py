"""MindSpore's ``nn.probability``: distributions and the maps that transform them."""

from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.nn.probability import bijector, distribution

__all__ = ["bijector", "distribution"]

_guard_module(globals(), "nn.probability")
