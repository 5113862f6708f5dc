"""Operators of other processors, which programs make on every device and call on theirs."""

from __future__ import annotations

from typing import NoReturn

from tvmgraph.errors import DeviceError


def refuse(name: str, processors: str, instead: str) -> NoReturn:
    """Says that an operator was called which there is on other processors only.

    Args:
        name: The operator.
        processors: Where MindSpore has it.
        instead: What to call here.

    Raises:
        DeviceError: always.
    """
    raise DeviceError(f"ops.{name} runs on {processors} only", op=name, fix=f"call {instead}")


def float_status(name: str) -> NoReturn:
    """Says that there is no register of overflows to ask.

    Args:
        name: The operator that was called.

    Raises:
        DeviceError: always.
    """
    refuse(name, "Ascend processors", "amp.all_finite or ops.isfinite with the gradients")
