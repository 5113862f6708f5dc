"""New tensors, constant and random, with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

from tvmgraph import dtypes, ops
from tvmgraph.core import rules
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.core.random import Generator
from tvmgraph.core.tensor import Tensor


def _sizes(size: tuple[Any, ...]) -> tuple[int, ...]:
    first = size[0] if len(size) == 1 else size
    return tuple(first) if isinstance(first, (list, tuple)) else (first,)


def _placed(tensor: Tensor, device: str | None) -> Tensor:
    return tensor if device is None else tensor.to(device)


def zeros(size: object, *more: int, dtype: DTypeLike | None = None) -> Tensor:
    """Returns zeros.

    Args:
        size: Sizes, in one tuple or tensor, or one after the other.
        *more: The other ones.
        dtype: The dtype, float32 by default.
    """
    return ops.zeros(size if isinstance(size, Tensor) else _sizes((size, *more)), dtype)


def ones(size: object, *more: int, dtype: DTypeLike | None = None) -> Tensor:
    """Returns ones.

    Args:
        size: Sizes, in one tuple or tensor, or one after the other.
        *more: The other ones.
        dtype: The dtype, float32 by default.
    """
    return ops.ones(size if isinstance(size, Tensor) else _sizes((size, *more)), dtype)


def full(size: object, fill_value: object, *, dtype: DTypeLike | None = None) -> Tensor:
    """Returns a tensor of one number, by default of the number's dtype.

    Args:
        size: Shape of the result.
        fill_value: The number.
        dtype: The dtype.
    """
    known = dtype is not None or not dtypes.is_number(fill_value)
    return ops.full(size, fill_value, dtype=dtype if known else dtypes.scalar_dtype(fill_value))


def rand(
    *size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None
) -> Tensor:
    """Returns uniform numbers in [0, 1).

    Args:
        *size: Sizes, one after the other or in one tuple.
        generator: Where random numbers come from; the global generator by default.
        dtype: The dtype, float32 by default.
        device: Where the result is kept; the current device by default.
    """
    return _placed(ops.rand(*_sizes(size), dtype=dtype, seed=generator), device)


def randn(
    *size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None
) -> Tensor:
    """Returns standard normal numbers.

    Args:
        *size: Sizes, one after the other or in one tuple.
        generator: Where random numbers come from; the global generator by default.
        dtype: The dtype, float32 by default.
        device: Where the result is kept; the current device by default.
    """
    return _placed(ops.randn(*_sizes(size), dtype=dtype, seed=generator), device)


def rand_like(input: Tensor, *, dtype: DTypeLike | None = None, device: object = None) -> Tensor:
    """Returns uniform numbers in [0, 1) of a tensor's shape.

    Args:
        input: Tensor whose shape is taken.
        dtype: The dtype, that of ``input`` by default.
        device: Kept for MindSpore programs.
    """
    return ops.rand_like(input, dtype=dtype)


def randn_like(input: Tensor, *, dtype: DTypeLike | None = None, device: object = None) -> Tensor:
    """Returns standard normal numbers of a tensor's shape.

    Args:
        input: Tensor whose shape is taken.
        dtype: The dtype, that of ``input`` by default.
        device: Kept for MindSpore programs.
    """
    return ops.randn_like(input, dtype=dtype)


def randint(
    *args: Any,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: Any = None,
) -> Tensor:
    """Returns integers: ``randint(high, size)`` or ``randint(low, high, size)``, int64.

    Args:
        *args: ``[low,] high, size``: the smallest number, the first that is too large, and the
            shape.
        generator: Where random numbers come from; the global generator by default.
        dtype: The dtype.
        device: Where the result is kept; the current device by default.
    """
    low, high, size = args if len(args) == 3 else (0, *args)
    found = ops.randint(low, high, tuple(size), generator, dtype=dtype or dtypes.int64)
    return _placed(found, device)


def randint_like(
    input: Tensor, *bounds: int, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Returns integers of a tensor's shape: ``randint_like(input, [low,] high)``.

    Args:
        input: Tensor whose shape is taken.
        *bounds: The smallest number, 0 if it is left out, and the first that is too large.
        dtype: The dtype, that of ``input`` by default.
        device: Where the elements are; that of the context by default.
    """
    low, high = bounds if len(bounds) == 2 else (0, *bounds)
    found = ops.randint_like(input, low, high, dtype=dtype)
    return found if device is None else found.move_to(device)


def randperm(
    n: int, *, generator: Generator | None = None, dtype: DTypeLike = dtypes.int64
) -> Tensor:
    """Returns the integers below ``n`` in random order.

    Args:
        n: How many numbers.
        generator: Where random numbers come from; the global generator by default.
        dtype: The dtype.
    """
    keys = ops.rand(n, seed=generator)
    return ops.argsort(keys).astype(dtype)


def normal(mean: NumberLike = 0.0, std: NumberLike = 1.0, size: Any = None,
           generator: Generator | None = None) -> Tensor:  # fmt: skip
    """Returns normal numbers of the given means and standard deviations.

    Args:
        mean: Means, a number or a tensor.
        std: Standard deviations, a number or a tensor of a shape that fits the means.
        size: Shape of the result if both are numbers.
        generator: Where random numbers come from; the global generator by default.
    """
    if size is None:
        size = rules.broadcast_shapes(*(tuple(getattr(v, "shape", ())) for v in (mean, std)))
    return ops.randn(*tuple(size), seed=generator) * std + mean


def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Returns 1 with the probability that each element states, else 0.

    Args:
        input: Probabilities in [0, 1], of any shape.
        generator: Where random numbers come from; the global generator by default.
    """
    draws = ops.rand(*input.shape, seed=generator)
    return (draws < input).astype(input.dtype)


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *,
                generator: Generator | None = None) -> Tensor:  # fmt: skip
    """Returns int64 indices drawn with the weights of each row.

    Args:
        input: Weights [N] or [B, N], not negative; they need not add up to 1.
        num_samples: How many indices per row.
        replacement: Whether an index may be drawn again.
        generator: Where random numbers come from; the global generator by default.
    """
    return ops.multinomial(input, num_samples, replacement, generator).astype("int64")


__all__ = _public_names(globals())

_guard_module(globals(), "mint")
