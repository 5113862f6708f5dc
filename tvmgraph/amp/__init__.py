"""Mixed precision: levels, loss scalers, and training cells that use them."""

from tvmgraph.amp.levels import (
    auto_mixed_precision,
    custom_mixed_precision,
    get_black_list,
    get_white_list,
)
from tvmgraph.amp.network import build_train_network
from tvmgraph.amp.scaler import (
    DynamicLossScaleManager,
    DynamicLossScaler,
    FixedLossScaleManager,
    LossScaleManager,
    LossScaler,
    StaticLossScaler,
    all_finite,
)
from tvmgraph.core.guard import guard_module as _guard_module

__all__ = [
    "DynamicLossScaleManager", "DynamicLossScaler", "FixedLossScaleManager", "LossScaleManager",
    "LossScaler", "StaticLossScaler", "all_finite", "auto_mixed_precision",
    "build_train_network", "custom_mixed_precision", "get_black_list", "get_white_list",
]  # fmt: skip

_guard_module(globals(), "amp")
