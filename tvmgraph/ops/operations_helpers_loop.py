"""Loops as operator classes. Captured functions unroll them, so their counts must be known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvmgraph.errors import ArgumentError, DTypeError, user_source


def _require_callable(function: Any, name: str, op: str) -> None:
    if not callable(function):
        raise DTypeError(
            f"{name} must be a function, not {type(function).__name__}",
            op=f"ops.{op}", at=user_source(),
        )  # fmt: skip


def while_loop(cond_func: Callable[[Any], Any], loop_func: Callable[[Any], Any], value: Any) -> Any:
    """Applies ``loop_func`` to the value as long as ``cond_func`` of it is true."""
    _require_callable(cond_func, "cond_func", "WhileLoop")
    _require_callable(loop_func, "loop_func", "WhileLoop")
    while cond_func(value):
        value = loop_func(value)
    return value


def fori_loop(lower: Any, upper: Any, loop_func: Callable[[int, Any], Any], value: Any) -> Any:
    """Applies ``value = loop_func(i, value)`` for every i from ``lower`` to below ``upper``."""
    _require_callable(loop_func, "loop_func", "ForiLoop")
    for i in range(int(lower), int(upper)):
        value = loop_func(i, value)
    return value


def scan_loop(
    loop_func: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Sequence[Any] | None,
    length: int | None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Applies ``carry, y = loop_func(carry, x)`` to every x; returns the carry and all y.

    Raises:
        ArgumentError: if neither ``xs`` nor ``length`` is given.
    """
    _require_callable(loop_func, "loop_func", "Scan")
    if xs is None and length is None:
        raise ArgumentError("xs or length is needed", op="ops.Scan", at=user_source())
    ys = []
    for x in [None] * (length or 0) if xs is None else xs:
        carry, y = loop_func(carry, x)
        ys.append(y)
    return carry, ys
