"""Functions of Python numbers and of what a tensor is, under MindSpore's names."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, reject
from tvmgraph.ops.common.arguments import require_tensor

#: Bits of the largest power of integers; a tensor holds 64.
_MOST_BITS = 1 << 20


def _power(x: int, y: int) -> int | float:
    whole = isinstance(x, int) and isinstance(y, int)
    if whole and y > 0 and x.bit_length() > 1 and x.bit_length() * y > _MOST_BITS:
        raise ArgumentError(
            f"x={x}, y={y}: the power has more than {_MOST_BITS:,} bits", op="ops.scalar_pow",
            fix="use floats",
        )  # fmt: skip
    return operator.pow(x, y)


_SCALAR: dict[str, tuple[Callable[..., object], str]] = {
    "scalar_add": (operator.add, "x + y"),
    "scalar_div": (operator.truediv, "x / y"),
    "scalar_eq": (operator.eq, "x == y"),
    "scalar_floordiv": (operator.floordiv, "x // y"),
    "scalar_ge": (operator.ge, "x >= y"),
    "scalar_gt": (operator.gt, "x > y"),
    "scalar_le": (operator.le, "x <= y"),
    "scalar_lt": (operator.lt, "x < y"),
    "scalar_max": (max, "max(x, y)"),
    "scalar_min": (min, "min(x, y)"),
    "scalar_mod": (operator.mod, "x % y"),
    "scalar_mul": (operator.mul, "x * y"),
    "scalar_ne": (operator.ne, "x != y"),
    "scalar_pow": (_power, "x ** y"),
    "scalar_sub": (operator.sub, "x - y"),
}

__all__ = [
    *_SCALAR, "deepcopy", "dtype", "hyper_add", "is_nonzero", "mixed_precision_cast", "move_to",
    "scalar_log", "scalar_uadd", "scalar_usub", "shape_mul",
]  # fmt: skip


def _number(value: object, op: str) -> Any:
    if isinstance(value, Tensor) or not dtypes.is_number(value):
        reject(DTypeError, f"ops.{op}",
               f"the arguments must be Python numbers, not {type(value).__name__}",
               fix="use the function without 'scalar_' for tensors")  # fmt: skip
    return value


def _scalar(
    name: str, function: Callable[..., object], formula: str
) -> Callable[[object, object], object]:
    def compute(x: object, y: object) -> object:
        return function(_number(x, name), _number(y, name))

    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = (
        f"Computes ``{formula}`` of two Python numbers.\n\n"
        "Raises:\n    DTypeError: if an argument is no number.\n\n"
        f"Example:\n    >>> ops.{name}(7, 2)\n    {function(7, 2)}\n"
    )
    return compute


globals().update({name: _scalar(name, *row) for name, row in _SCALAR.items()})


def scalar_log(x: object) -> float:
    """Natural logarithm of a Python number.

    Args:
        x: A positive int or float.

    Example:
        >>> ops.scalar_log(1)
        0.0
    """
    return math.log(_number(x, "scalar_log"))


def scalar_uadd(x: object) -> int | float:
    """Returns a Python number unchanged.

    Args:
        x: An int or float.

    Example:
        >>> ops.scalar_uadd(2)
        2
    """
    return +_number(x, "scalar_uadd")


def scalar_usub(x: object) -> int | float:
    """Negates a Python number.

    Args:
        x: An int or float.

    Example:
        >>> ops.scalar_usub(2)
        -2
    """
    return -_number(x, "scalar_usub")


def dtype(x: Tensor) -> dtypes.DType:
    """Returns the dtype of a tensor.

    Args:
        x: Tensor, COOTensor or CSRTensor.

    Raises:
        DTypeError: if ``x`` is no tensor.

    Example:
        >>> ops.dtype(Tensor([1.0]))
        tvmgraph.float32
    """
    kind = getattr(x, "dtype", None)
    if not isinstance(kind, dtypes.DType):
        raise DTypeError(f"x must be a Tensor, not {type(x).__name__}", op="ops.dtype")
    return kind


def shape_mul(shape: tuple[int, ...]) -> int:
    """Returns the product of sizes.

    Args:
        shape: Tuple of ints.

    Example:
        >>> ops.shape_mul((2, 3))
        6
    """
    return math.prod(shape)


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element of a tensor is not zero.

    Args:
        input: Tensor with one element.

    Raises:
        ShapeError: if there is not exactly one element.

    Example:
        >>> ops.is_nonzero(Tensor([2.0]))
        True
    """
    if input.size != 1:
        reject(ShapeError, "ops.is_nonzero", f"the input must have one element, not {input.size}",
               f"input={input.aval}")  # fmt: skip
    return bool(input)


def deepcopy(input_x: Tensor) -> Tensor:
    """Returns a tensor with the same elements; gradients flow through it.

    Args:
        input_x: Tensor.

    Example:
        >>> ops.deepcopy(Tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])
    """
    return require_tensor("deepcopy", input_x, "input_x").copy()


def move_to(input: Tensor, to: str = "CPU", blocking: bool = True) -> Tensor:
    """Moves a tensor to a device; see :meth:`Tensor.to`.

    Args:
        input: Tensor.
        to: Device name.
        blocking: Kept for MindSpore programs; the move is always finished on return.

    Raises:
        DeviceError: if the tensor cannot live there.

    Example:
        >>> ops.move_to(Tensor([1.0]), "CPU")
        Tensor(shape=[1], dtype=Float32, value= [ 1.00000000e+00])
    """
    return input.to(device=to)


def mixed_precision_cast(dst_dtype: object, x: object) -> Any:
    """Converts every float tensor in nested tuples, lists and dicts to ``dst_dtype``.

    Args:
        dst_dtype: A float dtype.
        x: Tensor or nested container; everything else is returned as it is.

    Example:
        >>> ops.mixed_precision_cast(ms.float16, (Tensor([1.0]), 2))
        (Tensor(shape=[1], dtype=Float16, value= [ 1.0000e+00]), 2)
    """
    if isinstance(x, Tensor):
        return F.cast(x, dtypes.dtype_of(dst_dtype)) if x.dtype.is_float else x
    if isinstance(x, dict):
        return {k: mixed_precision_cast(dst_dtype, v) for k, v in x.items()}
    if isinstance(x, (tuple, list)):
        return type(x)(mixed_precision_cast(dst_dtype, v) for v in x)
    return x


def hyper_add(x: object, y: object) -> Any:
    """Adds corresponding tensors of two nested tuples.

    Args:
        x: Tensor or nested tuple of tensors.
        y: The same structure.

    Raises:
        ShapeError: if the structures differ.

    Example:
        >>> ops.hyper_add((Tensor(1), Tensor(2)), (3, 4))
        (Tensor(shape=[], dtype=Int64, value= 4), Tensor(shape=[], dtype=Int64, value= 6))
    """
    return F.HyperMap()(F.add, x, y)
