"""Operators with an effect: assignment to parameters and printing."""

from __future__ import annotations

from typing import Any

from tvmgraph.core import rules
from tvmgraph.core.op import F, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import ELEMENTWISE, Pattern, Traits
from tvmgraph.errors import DTypeError
from tvmgraph.ops.common.arguments import require_same_kind

__all__ = ["assign", "assign_add", "assign_sub", "print_"]


def _target(variable: object, op: str) -> Tensor:
    if not isinstance(variable, Tensor):
        raise DTypeError(
            f"variable must be a Parameter or Tensor, not {type(variable).__name__}",
            op=f"ops.{op}", got=repr(variable)[:80],
        )  # fmt: skip
    return variable


def _like(value: Tensor, variable: Tensor) -> Tensor:
    if value.ndim != variable.ndim and value.size == variable.size == 1:
        value = F.reshape(value, variable.shape)
    return value if value.dtype is variable.dtype else F.cast(value, variable.dtype)


def values_of(*variables: Tensor) -> Any:
    """Returns what variables denote now, as tensors of their own; that of a single one alone.

    Args:
        *variables: Parameters, at least one.
    """
    values = [v.snapshot() for v in variables]
    return tuple(values) if len(values) > 1 else values[0]


def _set(variable: Tensor, value: Tensor) -> Tensor:
    return values_of(variable.rebind(value))


def assign(variable: Tensor, value: object) -> Tensor:
    """Gives a parameter a new value.

    Args:
        variable: Parameter or Tensor.
        value: Tensor of the same shape, a tensor of one element, or a number; converted to the
            variable's dtype.

    Returns:
        The new value, as a tensor of its own.

    Raises:
        ShapeError: if the shapes differ.
        DTypeError: if ``variable`` is no tensor, or integers are given floats.

    Example:
        >>> ops.assign(ms.Parameter(Tensor([1.0, 2.0])), Tensor([3.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  4.00000000e+00])
    """
    target = _target(variable, "assign")
    require_same_kind("assign", value, target)
    new = _like(value if isinstance(value, Tensor) else Tensor(value, target.dtype), target)
    if new.size == 1 and new.shape != target.shape:
        new = F.broadcast_to(F.reshape(new, ()), target.shape)
    return _set(target, new)


def assign_add(variable: Tensor, value: object) -> Tensor:
    r"""Adds to a parameter: :math:`variable = variable + value`.

    Args:
        variable: Parameter or Tensor.
        value: Tensor that broadcasts to the variable's shape, or a number.

    Returns:
        The new value, as a tensor of its own.

    Raises:
        ShapeError: if the sum has another shape than the variable.
        DTypeError: if ``variable`` is no tensor, or integers are given floats.

    Example:
        >>> ops.assign_add(ms.Parameter(Tensor([1.0, 2.0])), 1)
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  3.00000000e+00])
    """
    target = _target(variable, "assign_add")
    require_same_kind("assign_add", value, target)
    return _set(target, _like(F.add(target, value), target))


def assign_sub(variable: Tensor, value: object) -> Tensor:
    r"""Subtracts from a parameter: :math:`variable = variable - value`.

    Args:
        variable: Parameter or Tensor.
        value: Tensor that broadcasts to the variable's shape, or a number.

    Returns:
        The new value, as a tensor of its own.

    Raises:
        ShapeError: if the difference has another shape than the variable.
        DTypeError: if ``variable`` is no tensor, or integers are given floats.

    Example:
        >>> ops.assign_sub(ms.Parameter(Tensor([1.0, 2.0])), 1)
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.00000000e+00])
    """
    target = _target(variable, "assign_sub")
    require_same_kind("assign_sub", value, target)
    return _set(target, _like(F.sub(target, value), target))


def print_(*input_x: object) -> None:
    """Prints each argument on a line of its own; tensors with their shapes and dtypes.

    Args:
        input_x: Tensors, numbers, strings and tuples.

    Example:
        >>> ops.print_("loss:", Tensor(1.5))
        loss:
        Tensor(shape=[], dtype=Float32, value= 1.5)
    """
    for x in input_x:
        print(repr(x) if isinstance(x, Tensor) else x, flush=state.interpreter is None)


@primitive(
    infer=rules.same_as_first,
    traits=Traits(Pattern.VIEW, ELEMENTWISE.factors, alias=True),
    eager=lambda before, value: value,
    lower=lambda R, before, value: value,
    vjp=lambda g, y, before, value: (g, None),
    onnx=lambda O, before, value: O.Identity(value),
    samples=[sample(s, s, grad=False) for s in ((3, 4), (), (0, 2))],
)
def leaf_value(before: Tensor, value: Tensor) -> Tensor:
    """Returns the value that a Parameter is given: its cotangent is the Parameter's own.

    Args:
        before: What the Parameter was, of any shape.
        value: What it becomes, of the same shape and dtype.

    Returns:
        ``value``.
    """
    ...
