"""Mixed precision: levels, loss scalers, training cells that use them, and rounded weights."""

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
from tvmgraph.amp.weights import quantize_weights
from tvmgraph.core.guard import guard_module as _guard_module

__all__ = [
    "DynamicLossScaleManager", "DynamicLossScaler", "FixedLossScaleManager", "LossScaleManager",
    "LossScaler", "StaticLossScaler", "all_finite", "auto_mixed_precision",
    "build_train_network", "custom_mixed_precision", "get_black_list", "get_white_list",
    "quantize_weights",
]  # fmt: skip

_guard_module(globals(), "amp")
