"""MindSpore's ``mindspore.mint.special``."""

from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.mint.nn.functional import log_softmax
from tvmgraph.ops import (  # pyright: ignore[reportAttributeAccessIssue]
    erfc,
    exp2,
    expm1,
    log1p,
    round,
    sinc,
)

__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc"]

_guard_module(globals(), "mint.special")
