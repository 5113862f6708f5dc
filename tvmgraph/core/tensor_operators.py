"""The operator methods of tensors, each resolved in the table at its first call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tvmgraph.core.op import F

if TYPE_CHECKING:
    from tvmgraph.core.tensor import Tensor


def binary(name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Builds a binary operator method that calls the table's function ``name``."""
    function: Any = None  # found at the first call

    def call(self: Tensor, other: object) -> Any:
        nonlocal function
        if function is None:
            function = getattr(F, name)
        return function(self, other)

    def call_reflected(self: Tensor, other: object) -> Any:
        nonlocal function
        if function is None:
            function = getattr(F, name)
        return function(other, self)

    return call_reflected if reflected else call


def unary(name: str) -> Callable[[Any], Any]:
    """Builds a unary operator method that calls the table's function ``name``."""

    def call(self: Tensor) -> Any:
        return getattr(F, name)(self)

    return call
