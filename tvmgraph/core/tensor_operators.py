"""The operator methods of tensors, each resolved in the table at its first call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tvmgraph.core.op import F

if TYPE_CHECKING:
    from tvmgraph.core.tensor import Tensor


def binary(name: str, reflected: bool = False) -> Callable[[Tensor, object], Tensor]:
    """Builds a binary operator method that calls the table's function ``name``."""
    function: Callable[[object, object], Tensor] | None = None

    def find() -> Callable[[object, object], Tensor]:  # at the first call
        nonlocal function
        function = getattr(F, name)
        assert function is not None
        return function

    def call(self: Tensor, other: object) -> Tensor:
        return (function or find())(self, other)

    def call_reflected(self: Tensor, other: object) -> Tensor:
        return (function or find())(other, self)

    return call_reflected if reflected else call


def unary(name: str) -> Callable[[Tensor], Tensor]:
    """Builds a unary operator method that calls the table's function ``name``."""

    def call(self: Tensor) -> Tensor:
        return getattr(F, name)(self)

    return call
