"""MindSpore's ``device_context.ascend``, of which there is none here."""

from __future__ import annotations

from tvmgraph.compat.device_context import without_effect


def is_available() -> bool:
    """Returns that there is no Ascend processor."""
    return False


def device_count() -> int:
    """Returns 0."""
    return 0


globals().update(
    without_effect(
        "precision_mode", "op_precision_mode", "matmul_allow_hf32", "conv_allow_hf32",
        "op_compile", "aoe_tune_mode", "aoe_job_type", "aclnn_cache", "execute_timeout",
        "debug_option", "aclinit_config",
    )
)  # fmt: skip
