"""MindSpore's ``mindspore.mint.special``."""

from tvmgraph.compat.mint.nn.functional import log_softmax
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.ops import erfc, exp2, expm1, log1p, round, sinc  # pyright: ignore

__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc"]

_guard_module(globals(), "mint.special")
