"""Functions of integers: common divisors and multiples, and the number of one bits."""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Expr
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError, ShapeError
from tvmgraph.ops.common.arguments import as_tensor
from tvmgraph.ops.common.pointwise import TirMath, pointwise
from tvmgraph.ops.common.repeated import lower_repeated

__all__ = ["gcd", "lcm", "population_count"]

_INTEGER = Reason("the result is an integer, which has no derivative")


@primitive(
    infer=rules.elementwise(dtypes.INTEGERS),
    promote="common",
    eager=np.gcd,
    lower=lambda R, a, b: lower_repeated(R, "divisor", a, b),
    vjp=_INTEGER,
    onnx=Reason("ONNX has no greatest common divisor and no loop over elements"),
    samples=[
        sample((3, 4), (3, 4), dtype="int64", low=-99, high=99),
        sample((2, 1, 3), (5, 1), dtype="int32", low=0, high=60),
        sample((), (3,), dtype=("int8", "uint8"), low=0, high=99),
        sample((0, 2), (1, 2), dtype="int32"),
        sample(np.array([-(2**63), 0, 7540113804746346429, 6]),
               np.array([12, 0, 4660046610375530309, 0])),
        sample((2, 3), (2, 4), dtype="int32", raises=ShapeError),
        sample((2,), (2,), raises=DTypeError),
    ],
)  # fmt: skip
def gcd(input: Tensor, other: Tensor) -> Tensor:
    r"""Greatest common divisor, elementwise, never negative; :math:`gcd(0, 0) = 0`.

    Args:
        input: Integer tensor or number.
        other: Integer tensor or number; the shapes broadcast and the dtypes are promoted.

    Raises:
        DTypeError: if an operand holds no integers.
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.gcd(Tensor([12, 18]), Tensor([8, 27]))
        Tensor(shape=[2], dtype=Int64, value= [4, 9])
    """
    ...


def lcm(input: Tensor, other: Tensor) -> Tensor:
    r"""Least common multiple, elementwise: :math:`out = |input \cdot other| / gcd(input, other)`.

    Args:
        input: Integer tensor or number.
        other: Integer tensor or number; the shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype; 0 where an operand is 0.

    Raises:
        DTypeError: if an operand holds no integers.
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.lcm(Tensor([4, 6]), Tensor([6, 9]))
        Tensor(shape=[2], dtype=Int64, value= [12, 18])
    """
    divisor = F.gcd(input, other)
    input, other = (F.cast(as_tensor(x), divisor.dtype) for x in (input, other))
    product = F.floor_div(input, F.where(divisor == 0, 1, divisor)) * other
    return F.where(F.logical_xor(input < 0, other < 0), -product, product)


def _bits(x: np.ndarray) -> np.ndarray:
    # NumPy counts the bits of the magnitude; of a negative number its two's complement is meant
    return np.bitwise_count(x.astype(f"uint{x.dtype.itemsize * 8}")).astype(np.uint8)


def _population_count(m: TirMath, x: Expr) -> Expr:
    unsigned = m.tir.Cast(f"uint{np.dtype(m.dtype).itemsize * 8}", x)
    return m.tir.popcount(m.tir.Cast("uint64", unsigned))


@primitive(
    infer=rules.elementwise(dtypes.INTEGERS, dtypes.uint8),
    eager=_bits,
    lower=pointwise("population_count", _population_count, out="uint8"),
    vjp=_INTEGER,
    onnx=Reason("ONNX has no operator that counts bits"),
    samples=[
        sample((3, 4), dtype="int16", low=-99, high=99),
        sample((17,), dtype="int64", low=-(2**40), high=2**40),
        sample((), dtype="uint8", low=0, high=255),
        sample((0, 2), dtype="int8"),
        sample((5,), dtype="uint32", low=0, high=2**31),
        sample((2,), raises=DTypeError),
    ],
)
def population_count(input_x: Tensor) -> Tensor:
    r"""Number of one bits in the two's complement form of every element.

    Args:
        input_x: Integer tensor of any shape.

    Returns:
        uint8 tensor of ``input_x``'s shape.

    Raises:
        DTypeError: if ``input_x`` holds no integers.

    Example:
        >>> ops.population_count(Tensor([0, 1, 3, -1], ms.int16))
        Tensor(shape=[4], dtype=UInt8, value= [ 0,  1,  2, 16])
    """
    ...
