"""In which float type operators compute: chosen operator by operator, or for a Cell's weights.

``state.precision`` holds the choice, which the dispatch point asks for every operator. Operators
say by their traits what mixed precision does with them: products are contractions, and those that
lose too much in a short type are ``precise``. Functions of several operators that MindSpore counts
as one say it here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tvmgraph import dtypes
from tvmgraph.core.dispatch import cast
from tvmgraph.core.op import Op
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern
from tvmgraph.dtypes import DType

R = TypeVar("R")
#: A Tensor, or a number where the row promotes it.
Operand = object


@dataclass(frozen=True)
class Mixed:
    """Products compute in a short float type, what loses too much in float32.

    Attributes:
        short: The short float type.
    """

    short: DType

    def operands(self, op: Op, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """Returns the operands of an operator in the type it computes in.

        Args:
            op: The row.
            args: Its operands.
        """
        if op.traits.precise:
            return _as_floats(args, dtypes.float32)
        return _as_floats(args, self.short) if op.traits.pattern is Pattern.CONTRACTION else args


@dataclass(frozen=True)
class Weights:
    """Operators take Parameters in another float type than they are stored in.

    Attributes:
        dtype: The type.
    """

    dtype: DType

    def operands(self, op: Op, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """Returns the operands of an operator, of which Parameters are cast.

        Args:
            op: The row.
            args: Its operands.
        """
        if "dtype" in op.attrs or not any([isinstance(a, Parameter) for a in args]):
            return args  # what converts is told to which type
        return tuple([
            cast(a, self.dtype) if isinstance(a, Parameter) and a.aval.dtype.is_float else a
            for a in args
        ])  # fmt: skip


#: One object each, so that compiled code tells them apart by identity.
mixed = functools.cache(Mixed)
weights = functools.cache(Weights)


def _as_floats(args: Sequence[Operand], dtype: DType) -> tuple[Operand, ...]:
    """Returns arguments with the tensors of floats among them in one dtype."""
    return tuple([
        cast(a, dtype) if isinstance(a, Tensor) and a.aval.dtype.is_float else a for a in args
    ])  # fmt: skip


def precise(function: Callable[..., R]) -> Callable[..., R]:
    """Lets mixed precision compute a function in float32.

    Args:
        function: The function of a row, or one of several operators.
    """
    op = getattr(function, "op", None)
    if isinstance(op, Op):
        op.traits = replace(op.traits, precise=True)
        return function
    return _computed(function, lambda short, args: dtypes.float32)


def short(function: Callable[..., R]) -> Callable[..., R]:
    """Lets mixed precision compute a function of several operators in the short float type.

    Args:
        function: The function.
    """
    return _computed(function, lambda short, args: short)


def widest(function: Callable[..., R]) -> Callable[..., R]:
    """Lets mixed precision compute a function in the widest type of its operands.

    Args:
        function: The function.
    """
    return _computed(function, lambda short, args: _widest(args))


def _widest(args: Sequence[object]) -> DType:
    given = [a.aval.dtype for a in args if isinstance(a, Tensor)]
    return functools.reduce(dtypes.promote, given)


def _computed(
    function: Callable[..., R], chosen: Callable[[DType, Sequence[object]], DType]
) -> Callable[..., R]:
    @functools.wraps(function)
    def call(*args: object, **named: object) -> R:
        precision = state.precision
        if precision is None:
            return function(*args, **named)
        given = (*args, *named.values())
        values = given  # statistics that a Cell keeps are no weights: such functions cast these
        if isinstance(precision, Mixed):
            values = _as_floats(given, chosen(precision.short, given))
        with state.computing_in(None):
            return function(*values[: len(args)], **dict(zip(named, values[len(args) :])))

    return call
