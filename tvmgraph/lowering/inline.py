"""Lowering a row as a composition of other rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tvmgraph.core.op import Op
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.lowering.builder import is_empty, unpack

if TYPE_CHECKING:
    from tvmgraph.lowering.builder import RelaxBuilder


class _Lowered(Tensor):
    """A tensor that stands for a Relax expression."""

    __slots__ = ("expr",)

    def __init__(self, expr: Any, type: TensorType) -> None:
        self.expr, self.type, self._ffi = expr, type, None

    @property
    def shape(self) -> tuple[Any, ...]:
        """Size of every axis."""
        return self.type.shape

    @property
    def size(self) -> Any:
        """Number of elements."""
        return math.prod(self.type.shape)


class _Inline:
    """The interpreter that lowers every operator as it is applied."""

    symbols = None  # sizes are compared as they are written

    def __init__(self, R: RelaxBuilder) -> None:
        self.R = R

    def run(
        self, op: Op, args: tuple[Tensor, ...], attrs: Mapping[str, object],
        types: tuple[TensorType, ...],
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Lowers one operator."""
        exprs = [self._expr(a) for a in args]
        if all(map(is_empty, types)):
            results = [self.R.empty(t) for t in types]
        else:
            results = unpack(self.R.apply(op, exprs, attrs), len(types))
        return tuple([_Lowered(self.R.emit(e), t) for e, t in zip(results, types)])

    def created(self, tensor: Tensor) -> None:
        """Host data become constants."""

    def snapshot(self, tensor: Tensor) -> Tensor:
        """Returns the tensor, which nothing changes."""
        return tensor

    def _expr(self, tensor: Tensor) -> Any:
        if isinstance(tensor, _Lowered):
            return tensor.expr
        return self.R.const(tensor.array, tensor.type.dtype.name)


def inline(
    R: RelaxBuilder, function: Callable[..., Any], args: Sequence[Any], attrs: Mapping[str, object]
) -> Any:
    """Lowers what a function does with operators.

    Args:
        R: The builder.
        function: Takes tensors and attributes.
        args: The expressions that the tensors stand for.
        attrs: The attributes.

    Returns:
        The expression of its result, or a list of several.
    """
    interpreter = _Inline(R)
    tensors = [_Lowered(a, R.type(a)) for a in args]
    with state.interpreting(interpreter):
        result = function(*tensors, **attrs)
    if isinstance(result, Tensor):
        return interpreter._expr(result)
    return [interpreter._expr(t) for t in result]
