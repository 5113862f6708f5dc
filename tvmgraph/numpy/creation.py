"""Arrays made of numbers, and random ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph import ops
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import DType, float32, int32
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, user_source
from tvmgraph.numpy import helpers
from tvmgraph.numpy.helpers import array_of, as_dtype, axis_of, dtype_of, floats


def array(obj: object, dtype: DTypeLike | None = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """Returns a new array of ``obj`` with at least ``ndmin`` axes; ``copy=False`` shares it.

    Args:
        obj: An array, a number, or nested sequences of both.
        dtype: The dtype.
        copy: Whether the elements are copied where it is an array.
        ndmin: Number of axes at least; new ones come first.
    """
    found = array_of(obj, dtype)
    if found.ndim < ndmin:
        found = ops.reshape(found, (1,) * (ndmin - found.ndim) + tuple(found.shape))
    return found.copy() if copy and isinstance(obj, Tensor) else found


def asarray(a: object, dtype: DTypeLike | None = None) -> Tensor:
    """Returns ``a`` as an array, itself where it is one of that dtype.

    Args:
        a: An array, a number, or nested sequences of both.
        dtype: The dtype.
    """
    return array_of(a, dtype)


def arange(
    start: object, stop: object = None, step: object = None, dtype: DTypeLike | None = None
) -> Tensor:
    """Returns ``start, start + step, ...`` below ``stop``; int32 or float32 unless told.

    Args:
        start: The first number, or with it alone the end of a range from 0.
        stop: The end, which is not included.
        step: The distance of neighbours, 1 by default.
        dtype: The dtype.
    """
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    whole = all(isinstance(n, int) for n in (start, stop, step))
    return ops.arange(start, stop, step, dtype=dtype_of(dtype or ("int32" if whole else "float32")))


def zeros(shape: object, dtype: DTypeLike = float32) -> Tensor:
    """Returns an array of zeros.

    Args:
        shape: Sizes, an int or a sequence.
        dtype: The dtype.
    """
    return helpers.full(shape, 0, dtype)


def ones(shape: object, dtype: DTypeLike = float32) -> Tensor:
    """Returns an array of ones.

    Args:
        shape: Sizes, an int or a sequence.
        dtype: The dtype.
    """
    return helpers.full(shape, 1, dtype)


def empty(shape: object, dtype: DTypeLike = float32) -> Tensor:
    """Returns an array whose elements are to be written; they are zeros.

    Args:
        shape: Sizes, an int or a sequence.
        dtype: The dtype.
    """
    return helpers.full(shape, 0, dtype)


def full(shape: object, fill_value: object, dtype: DTypeLike | None = None) -> Tensor:
    """Returns an array of one value, or of an array that broadcasts to ``shape``.

    Args:
        shape: Sizes, an int or a sequence.
        fill_value: A number or an array.
        dtype: The dtype.
    """
    return helpers.full(shape, fill_value, dtype)


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float32) -> Tensor:  # noqa: N803
    """Returns a matrix with ones on its ``k``-th diagonal.

    Args:
        N: Number of rows.
        M: Number of columns; ``N`` by default.
        k: Which diagonal: above the main one if positive, below it if negative.
        dtype: The dtype.
    """
    return Tensor(np.eye(N, M, k), dtype_of(dtype))


def identity(n: int, dtype: DTypeLike = float32) -> Tensor:
    """Returns the identity matrix.

    Args:
        n: Number of rows and columns.
        dtype: The dtype.
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float32) -> Tensor:  # noqa: N803
    """Returns a matrix with ones on and below its ``k``-th diagonal.

    Args:
        N: Number of rows.
        M: Number of columns; ``N`` by default.
        k: Which diagonal: above the main one if positive, below it if negative.
        dtype: The dtype.
    """
    return Tensor(np.tri(N, M, k), dtype_of(dtype))


def _spaced(start: object, stop: object) -> tuple[Tensor, Tensor]:
    return tuple(floats(t) for t in helpers.ops_broadcast(array_of(start), array_of(stop)))  # pyright: ignore


def linspace(
    start: object,
    stop: object,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Any:
    """Returns ``num`` evenly spaced numbers along a new axis.

    Args:
        start: First number, or an array of them.
        stop: Last number, left out unless ``endpoint``.
        num: How many.
        endpoint: Whether ``stop`` is the last one.
        retstep: Whether to return the distance too.
        dtype: Dtype of the result; float32 unless told.
        axis: Where the new axis is.
    """
    if num < 1:
        raise ArgumentError(f"num must be at least 1, not {num}", at=user_source())
    first, last = _spaced(start, stop)
    axis = axis_of(axis, first.ndim + 1)
    steps = num - 1 if endpoint else num
    delta = (last - first) / steps if steps else ops.full_like(first, float("nan"))
    count = ops.reshape(ops.arange(num, dtype=float32), (num,) + (1,) * first.ndim)
    found = first + (count * delta if num > 1 else count)
    if endpoint and num > 1:  # exactly, whatever the steps round to
        found = ops.where(ops.equal(count, steps), last, found)
    found = as_dtype(ops.moveaxis(found, 0, axis), dtype)
    return (found, delta) if retstep else found


def logspace(start: object, stop: object, num: int = 50, endpoint: bool = True, base: float = 10.0,
             dtype: DTypeLike | None = None, axis: int = 0) -> Tensor:  # fmt: skip
    """Returns ``base ** linspace(start, stop)``.

    Args:
        start: The first exponent.
        stop: The last exponent.
        num: How many numbers.
        endpoint: Whether ``stop`` is the last number; otherwise the one after it.
        base: The base.
        dtype: The dtype.
        axis: The axis of the result along which the numbers lie, where the ends are arrays.
    """
    return as_dtype(ops.pow(float(base), linspace(start, stop, num, endpoint, axis=axis)), dtype)


def geomspace(
    start: object,
    stop: object,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """Returns ``num`` numbers whose quotients are equal, from ``start`` to ``stop``.

    Args:
        start: The first number.
        stop: The last number.
        num: How many numbers.
        endpoint: Whether ``stop`` is the last number; otherwise the one after it.
        dtype: The dtype.
        axis: The axis of the result along which the numbers lie, where the ends are arrays.
    """
    first, last = _spaced(start, stop)
    root = num - 1 if endpoint else num
    power = linspace(ops.zeros_like(first), ops.full_like(first, root), num, endpoint, axis=axis)
    place = axis_of(axis, first.ndim + 1)
    base = ops.expand_dims(ops.pow(last / first, 1.0 / root), place)
    return as_dtype(ops.pow(base, power) * ops.expand_dims(first, place), dtype)


def vander(x: object, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """Returns the matrix of powers of a vector, the highest first unless ``increasing``.

    Args:
        x: A vector [M].
        N: Number of columns; M by default.
        increasing: Whether the lowest power comes first.
    """
    x = array_of(x)
    powers = np.arange(N or x.shape[0])
    powers = Tensor(powers if increasing else powers[::-1].copy(), x.dtype)
    return ops.pow(ops.expand_dims(x, 1), ops.expand_dims(powers, 0))


def meshgrid(*xi: object, sparse: bool = False, indexing: str = "xy") -> list[Tensor]:
    """Returns coordinate arrays of vectors.

    Args:
        xi: The vectors.
        sparse: Whether to leave out the repetitions.
        indexing: "xy", where the second axis is the first vector's, or "ij".
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"indexing must be 'xy' or 'ij', not {indexing!r}", at=user_source())
    found = []
    for place, x in enumerate(helpers.arrays_of(xi)):
        at = 1 - place if indexing == "xy" and len(xi) > 1 and place < 2 else place
        found.append(ops.reshape(x, (1,) * at + (-1,) + (1,) * (len(xi) - at - 1)))
    return list(found if sparse else helpers.ops_broadcast(*found))


def indices(
    dimensions: Sequence[int], dtype: DTypeLike = int32, sparse: bool = False
) -> list[Tensor]:
    """Returns the index arrays of a shape, one per axis.

    Args:
        dimensions: The shape.
        dtype: The dtype.
        sparse: Whether each array has other axes of size 1.
    """
    return list(
        meshgrid(*(arange(d, dtype=dtype) for d in dimensions), sparse=sparse, indexing="ij")
    )


def ix_(*args: object) -> tuple[Tensor, ...]:
    """Returns vectors as an open mesh that indexes their product.

    Args:
        *args: Vectors of integers or bools.
    """
    return tuple(meshgrid(*args, sparse=True, indexing="ij"))


def bartlett(M: int) -> Tensor:  # noqa: N803
    """Returns Bartlett's window of ``M`` points.

    Args:
        M: Number of points.
    """
    return Tensor(np.bartlett(M), float32)


def blackman(M: int) -> Tensor:  # noqa: N803
    """Returns Blackman's window of ``M`` points.

    Args:
        M: Number of points.
    """
    return Tensor(np.blackman(M), float32)


def hamming(M: int) -> Tensor:  # noqa: N803
    """Returns Hamming's window of ``M`` points.

    Args:
        M: Number of points.
    """
    return Tensor(np.hamming(M), float32)


def hanning(M: int) -> Tensor:  # noqa: N803
    """Returns Hann's window of ``M`` points.

    Args:
        M: Number of points.
    """
    return Tensor(np.hanning(M), float32)


def _pairs(rows: Sequence[np.ndarray]) -> tuple[Tensor, ...]:
    return tuple(Tensor(r.astype(np.int32)) for r in rows)


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """Returns the indices of the main diagonal of an array of size ``n`` along each axis.

    Args:
        n: The size.
        ndim: Number of axes.
    """
    return _pairs(np.diag_indices(n, ndim))


def tril_indices(n: float, k: float = 0, m: float | None = None) -> tuple[Tensor, ...]:
    """Returns the indices of the lower triangle of an ``n`` by ``m`` array.

    Args:
        n: Number of rows.
        k: Which diagonal: above the main one if positive, below it if negative.
        m: Number of columns; ``n`` by default.
    """
    return _pairs(np.tril_indices(n, k, m))  # pyright: ignore[reportArgumentType]


def triu_indices(n: float, k: float = 0, m: float | None = None) -> tuple[Tensor, ...]:
    """Returns the indices of the upper triangle of an ``n`` by ``m`` array.

    Args:
        n: Number of rows.
        k: Which diagonal: above the main one if positive, below it if negative.
        m: Number of columns; ``n`` by default.
    """
    return _pairs(np.triu_indices(n, k, m))  # pyright: ignore[reportArgumentType]


def _matrix_sizes(arr: object, k: float) -> tuple[int, float, int]:
    shape = array_of(arr).shape
    if len(shape) != 2:
        raise ShapeError(f"a matrix is needed, not {list(shape)}", at=user_source())
    return shape[0], k, shape[1]


def tril_indices_from(arr: object, k: float = 0) -> tuple[Tensor, ...]:
    """Returns the indices of the lower triangle of a matrix.

    Args:
        arr: A matrix.
        k: Which diagonal: above the main one if positive, below it if negative.
    """
    return tril_indices(*_matrix_sizes(arr, k))


def triu_indices_from(arr: object, k: float = 0) -> tuple[Tensor, ...]:
    """Returns the indices of the upper triangle of a matrix.

    Args:
        arr: A matrix.
        k: Which diagonal: above the main one if positive, below it if negative.
    """
    return triu_indices(*_matrix_sizes(arr, k))


class _Grid:
    """Coordinate arrays by slices: ``mgrid[0:3, 0:1:5j]``.

    Args:
        make: NumPy's object that does it.
    """

    def __init__(self, make: Any) -> None:
        self._make = make

    def __getitem__(self, keys: Any) -> Any:
        found = self._make[keys]
        return list(map(self._narrow, found)) if isinstance(found, (list, tuple)) else (
            self._narrow(found))  # fmt: skip

    @staticmethod
    def _narrow(found: np.ndarray) -> Tensor:
        return Tensor(found.astype(np.float32 if found.dtype.kind == "f" else np.int32))

    def __repr__(self) -> str:
        return f"<{type(self._make).__name__}>"


mgrid = _Grid(np.mgrid)
ogrid = _Grid(np.ogrid)


def _shape(shape: tuple[Any, ...]) -> tuple[int, ...]:
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    wrong = [s for s in given if not isinstance(s, int)]
    if wrong:
        raise DTypeError(f"shape must hold integers, not {wrong[0]!r}", at=user_source())
    return tuple(given)


def _of_kind(dtype: DTypeLike, kind: str) -> DType:
    """Returns the dtype if it is of a kind: "i", integers, or "f", floats."""
    found = dtype_of(dtype)
    if found.kind != kind:
        raise ArgumentError(f"dtype must be {'an integer' if kind == 'i' else 'a float'} dtype",
                            got=f"dtype={dtype}", at=user_source())  # fmt: skip
    return found


def rand(*shape: object, dtype: DTypeLike = float32) -> Tensor:
    """Returns uniform random numbers between 0 and 1.

    Args:
        *shape: Sizes, one after the other or in one tuple.
        dtype: The dtype.
    """
    return as_dtype(ops.rand(_shape(shape) if shape else (1,)), _of_kind(dtype, "f"))


def randn(*shape: object, dtype: DTypeLike = float32) -> Tensor:
    """Returns random numbers of the standard normal distribution.

    Args:
        *shape: Sizes, one after the other or in one tuple.
        dtype: The dtype.
    """
    return as_dtype(ops.randn(_shape(shape) if shape else (1,)), _of_kind(dtype, "f"))


def randint(minval: int, maxval: int | None = None, shape: object = None,
            dtype: DTypeLike = int32) -> Tensor:  # fmt: skip
    """Returns random integers of ``minval`` to ``maxval - 1``, or below ``minval`` alone.

    Args:
        minval: The smallest number, or with it alone the first that is too large.
        maxval: The first number that is too large.
        shape: Sizes, an int or a sequence.
        dtype: The dtype.
    """
    low, high = (0, minval) if maxval is None else (minval, maxval)
    if low >= high:
        raise ArgumentError(f"no integers from {low} to {high - 1}", at=user_source())
    size = (1,) if shape is None else _shape((shape,))
    return as_dtype(ops.randint(low, high, size), _of_kind(dtype, "i"))


__all__ = _public_names(globals())

_guard_module(globals(), "numpy")
