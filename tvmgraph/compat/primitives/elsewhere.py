"""Operators of other processors, which training Cells make on every device and call on theirs."""

from __future__ import annotations

from typing import NoReturn

from tvmgraph.errors import DeviceError, user_source


def float_status(name: str) -> NoReturn:
    """Says that there is no register of overflows to ask.

    Args:
        name: The operator that was called.

    Raises:
        DeviceError: always; MindSpore has these operators for Ascend processors only.
    """
    raise DeviceError(
        f"ops.{name} runs on Ascend processors only", op=name, at=user_source(),
        fix="ask the gradients themselves: amp.all_finite, ops.isfinite, ops.FloatStatus",
    )  # fmt: skip
