"""MindSpore's ``mindspore.mint.special``."""

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
