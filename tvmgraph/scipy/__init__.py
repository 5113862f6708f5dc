"""MindSpore's ``mindspore.scipy``: SciPy's linear algebra and optimization over tensors."""

from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.scipy import linalg, optimize

__all__ = ["linalg", "optimize"]

_guard_module(globals(), "scipy")
