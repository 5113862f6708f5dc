"""MindSpore's ``mindspore.scipy``: linear algebra, optimization, cosine transforms over tensors."""

from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.scipy import fft, linalg, optimize

__all__ = ["fft", "linalg", "optimize"]

_guard_module(globals(), "scipy")
