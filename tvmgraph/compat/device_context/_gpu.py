"""MindSpore's ``device_context.gpu``."""

from __future__ import annotations

from tvmgraph.compat import hal
from tvmgraph.compat.device_context import without_effect


def is_available() -> bool:
    """Returns whether there is a usable GPU."""
    return hal.is_available("GPU")


def device_count() -> int:
    """Returns the number of usable GPUs."""
    return hal.device_count("GPU")


globals().update(
    without_effect(
        "matmul_allow_tf32", "conv_allow_tf32", "conv_fprop_algo", "conv_wgrad_algo",
        "conv_dgrad_algo",
    )
)  # fmt: skip
