"""What converting an array to another dtype means, the same for every size, level and machine.

Hardware and NumPy leave open what a float becomes that does not fit an integer: the answer would
depend on the instruction, and so on the number of elements. Here it becomes the nearest value that
fits, and NaN becomes 0, as the instructions of ARM and of GPUs have it.
"""

from __future__ import annotations

import numpy as np

from tvmgraph.dtypes import DType
from tvmgraph.errors import ArgumentError, either


def integer_bounds(dtype: np.dtype) -> tuple[int, int]:
    """Returns the least value of an integer dtype, and the least one above all of its values.

    Args:
        dtype: NumPy's dtype of signed or unsigned integers.
    """
    bits = 8 * dtype.itemsize
    return (-(2 ** (bits - 1)), 2 ** (bits - 1)) if dtype.kind == "i" else (0, 2**bits)


def largest_within(kind: str, dtype: str) -> float:
    """Returns the largest number of a floating-point dtype that fits an integer dtype.

    Args:
        kind: Name of the floating-point dtype.
        dtype: Name of the integer dtype.
    """
    end = integer_bounds(np.dtype(dtype))[1]
    number = np.dtype(kind).type
    exact = end - 1 <= 2 ** (np.finfo(kind).nmant + 1)
    return float(number(end - 1) if exact else np.nextafter(number(end), number(0)))


def converted(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Returns a copy of an array with elements of another dtype.

    Floats become the nearest float; of integers that are too wide the low bits remain. Floats lose
    their fraction when they become integers; those that do not fit become the least or the largest
    value, and NaN becomes 0. Complex numbers lose their imaginary part. Everything but 0 is true.

    Args:
        x: Any array.
        dtype: The new dtype.
    """
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x != 0 if dtype.kind == "b" else np.real(x)
    if dtype.kind not in "iu" or x.dtype.kind in "biu":
        return x.astype(dtype.numpy)
    return _saturated(x, dtype.numpy)


_FEW = 32  # elements up to which Python compares faster than two reductions


def _is_within(x: np.ndarray, low: int, end: int) -> bool:
    if x.size <= _FEW:
        return all([low <= v < end for v in x.ravel().tolist()])
    return bool(x.min() >= low and x.max() < end)  # NaN is neither


def _saturated(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if x.dtype.itemsize == 2:
        x = x.astype(np.float32)
    low, end = integer_bounds(dtype)
    if _is_within(x, low, end):
        return x.astype(dtype)
    inside = (x >= low) & (x < end)
    y = np.where(inside, x, 0).astype(dtype)
    y[x < low] = low
    y[x >= end] = end - 1
    return y


def require_fit(source: np.ndarray, dtype: DType, data: object) -> None:
    """Makes sure that an integer dtype can hold the numbers that stand in Python code.

    Of complex numbers it is to hold the real parts, as in MindSpore.

    Args:
        source: The numbers as an array.
        dtype: The integer dtype.
        data: What the user wrote, for the message.

    Raises:
        ArgumentError: if it cannot; of NaN and infinities a TypeError, too.
    """
    low, end = integer_bounds(dtype.numpy)
    source = np.real(source)
    with np.errstate(invalid="ignore"):
        fits = (source > low - 1) & (source < end)
    if not np.all(fits):
        wrong = source[~np.asarray(fits)].flat[0]
        raise (ArgumentError if np.isfinite(wrong) else either(ArgumentError, TypeError))(
            f"{wrong} does not fit {dtype.name}, which holds {low} to {end - 1}", op="Tensor",
            got=f"input_data={data!r:.60}",
            fix="use a wider dtype, or ops.cast for the nearest number",
        )  # fmt: skip
