"""Random tensors: uniform, normal, integers, permutations and discrete distributions."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F
from tvmgraph.core.random import Seed
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, TypeOrValueError
from tvmgraph.ops.common.arguments import as_int, bad, describe, require, sizes
from tvmgraph.ops.random.rows import draw_bits, draw_normal, draw_uniform

__all__ = [
    "bernoulli", "choice_with_mask", "gamma", "multinomial", "multinomial_with_replacement",
    "normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
    "random_categorical", "random_gamma", "randperm", "shuffle", "uniform",
]  # fmt: skip


def _float_dtype(dtype: DTypeLike | None, default: dtypes.DType, op: str) -> dtypes.DType:
    wanted = default if dtype is None else dtypes.dtype_of(dtype)
    if not wanted.is_float:
        raise bad(
            TypeOrValueError, f"dtype must be a float, not {wanted.name}", op, f"dtype={dtype}"
        )
    return wanted


def _int_dtype(dtype: DTypeLike | None, default: dtypes.DType, op: str) -> dtypes.DType:
    wanted = default if dtype is None else dtypes.dtype_of(dtype)
    if not wanted.is_integer:
        raise bad(DTypeError, f"dtype must be an integer, not {wanted.name}", op, f"dtype={dtype}")
    return wanted


def _size(size: tuple[object, ...], op: str) -> tuple[int, ...]:
    """Accepts ``f(2, 3)``, ``f((2, 3))`` and, for one element, ``f()``."""
    if not size:
        return (1,)
    found = sizes(size[0] if len(size) == 1 else size, op, "size")
    return cast("tuple[int, ...]", found)  # symbols are sizes as ints are


def sample_shape(shape: object, op: str) -> tuple[int, ...]:
    """Checks the shape of a random tensor.

    Args:
        shape: An int, a sequence of ints or an integer tensor.
        op: Name of the function, for errors.

    Raises:
        ShapeError: if a size is negative.
        DTypeError: if a size is no integer.
    """
    result = cast("tuple[int, ...]", sizes(shape, op, "shape"))  # symbols are sizes as ints are
    if any(d < 0 for d in result):
        raise bad(ShapeError, "the shape must not be negative", op, f"shape={shape}")
    return result


# ---- uniform and normal -------------------------------------------------------------------------


def rand(*size: object, dtype: DTypeLike | None = None, seed: Seed = None) -> Tensor:
    r"""Draws from the uniform distribution on :math:`[0, 1)`.

    Args:
        size: The shape, as ints or one tuple; ``(1,)`` by default.
        dtype: A float dtype, float32 by default.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.

    Returns:
        Tensor of shape ``size``.

    Raises:
        DTypeError: if ``dtype`` is no float.

    Example:
        >>> ops.rand(2, 3).shape
        (2, 3)
    """
    wanted = _float_dtype(dtype, dtypes.float32, "rand")
    return draw_uniform(sample_shape(_size(size, "rand"), "rand"), seed, "rand", wanted)


def rand_like(input: Tensor, seed: Seed = None, *, dtype: DTypeLike | None = None) -> Tensor:
    r"""Draws from the uniform distribution on :math:`[0, 1)`, in ``input``'s shape.

    Args:
        input: Tensor that gives the shape.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.
        dtype: A float dtype, by default that of ``input``.

    Returns:
        Tensor of ``input``'s shape.

    Raises:
        DTypeError: if the dtype is no float.

    Example:
        >>> ops.rand_like(Tensor([1.0, 2.0])).shape
        (2,)
    """
    wanted = _float_dtype(dtype, input.dtype, "rand_like")
    return draw_uniform(input.aval.static_shape, seed, "rand_like", wanted)


def randn(*size: object, dtype: DTypeLike | None = None, seed: Seed = None) -> Tensor:
    r"""Draws from the standard normal distribution.

    Args:
        size: The shape, as ints or one tuple; ``(1,)`` by default.
        dtype: A float dtype, float32 by default.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.

    Returns:
        Tensor of shape ``size``.

    Raises:
        DTypeError: if ``dtype`` is no float.

    Example:
        >>> ops.randn(2, 3).shape
        (2, 3)
    """
    wanted = _float_dtype(dtype, dtypes.float32, "randn")
    return draw_normal(sample_shape(_size(size, "randn"), "randn"), seed, "randn", wanted)


def randn_like(input: Tensor, seed: Seed = None, *, dtype: DTypeLike | None = None) -> Tensor:
    r"""Draws from the standard normal distribution, in ``input``'s shape.

    Args:
        input: Tensor that gives the shape.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.
        dtype: A float dtype, float32 by default, whatever ``input`` holds.

    Returns:
        Tensor of ``input``'s shape.

    Raises:
        DTypeError: if the dtype is no float.

    Example:
        >>> ops.randn_like(Tensor([1.0, 2.0])).shape
        (2,)
    """
    wanted = _float_dtype(dtype, dtypes.float32, "randn_like")
    return draw_normal(input.aval.static_shape, seed, "randn_like", wanted)


def uniform(
    shape: object,
    minval: object,
    maxval: object,
    seed: Seed = None,
    dtype: DTypeLike = dtypes.float32,
) -> Tensor:
    r"""Draws from the uniform distribution on :math:`[minval, maxval)`.

    Args:
        shape: The shape to draw; it broadcasts with the bounds.
        minval: Lower bound, number or tensor (numbers for integer dtypes).
        maxval: Upper bound, number or tensor.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.
        dtype: A float dtype, or an integer dtype for integers.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ArgumentError: if integer bounds are empty.

    Example:
        >>> ops.uniform((2, 3), Tensor(0.0), Tensor(5.0)).shape
        (2, 3)
    """
    wanted = dtypes.dtype_of(dtype)
    size = sample_shape(shape, "uniform")
    if wanted.is_integer:
        low, high = (v.item() if isinstance(v, Tensor) else v for v in (minval, maxval))
        return _integers(low, high, size, seed, wanted, "uniform")
    low, high = (_in_dtype(v, wanted) for v in (minval, maxval))
    full = _with_parameters(size, low, high)
    return low + draw_uniform(full, seed, "uniform", wanted) * (high - low)


def _in_dtype(value: object, dtype: dtypes.DType) -> Any:
    return F.cast(value, dtype) if isinstance(value, Tensor) else value


def _with_parameters(shape: tuple[int, ...], *parameters: object) -> tuple[int, ...]:
    """Returns the shape to draw: that of the numbers, broadcast with the parameters'."""
    shapes = [p.aval.static_shape for p in parameters if isinstance(p, Tensor)]
    return tuple(np.broadcast_shapes(shape, *shapes))


def normal(shape: object, mean: object, stddev: object, seed: Seed = None) -> Tensor:
    r"""Draws from the normal distribution with the given mean and standard deviation.

    Args:
        shape: The shape to draw; it broadcasts with the parameters.
        mean: Mean, number or tensor.
        stddev: Standard deviation, number or tensor.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.

    Returns:
        float32 tensor of the broadcast shape.

    Example:
        >>> ops.normal((2, 3), 0.0, 1.0).shape
        (2, 3)
    """
    center, scale = (_in_dtype(v, dtypes.float32) for v in (mean, stddev))
    full = _with_parameters(sample_shape(shape, "normal"), center, scale)
    return center + draw_normal(full, seed, "normal") * scale


# ---- integers -----------------------------------------------------------------------------------


def _integers(
    low: object, high: object, shape: tuple[int, ...], seed: object, dtype: dtypes.DType, op: str
) -> Tensor:
    first, last = as_int(low, op, "low"), as_int(high, op, "high")
    got = f"low={low}, high={high}, dtype={dtype.name}"
    if first >= last:
        raise bad(ArgumentError, "low must be less than high", op, got)
    if last - first > 1 << 32:
        raise bad(ArgumentError, "the range must not be wider than 2**32", op, got)
    bits = draw_bits(math.prod(shape), seed, op)
    return F.reshape(F.bits_to_integers(bits, first, last, dtype), shape)


def randint(
    low: int, high: int, size: object, seed: Seed = None, *, dtype: DTypeLike | None = None
) -> Tensor:
    r"""Draws integers uniformly from :math:`[low, high)`.

    Args:
        low: Smallest integer.
        high: One more than the largest integer.
        size: The shape.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.
        dtype: An integer dtype, int64 by default.

    Returns:
        Tensor of shape ``size``.

    Raises:
        ArgumentError: if ``low`` is not less than ``high``.

    Example:
        >>> ops.randint(0, 10, (2, 3)).shape
        (2, 3)
    """
    wanted = _int_dtype(dtype, dtypes.int64, "randint")
    return _integers(low, high, sample_shape(size, "randint"), seed, wanted, "randint")


def randint_like(
    input: Tensor, low: int, high: int, seed: Seed = None, *, dtype: DTypeLike | None = None
) -> Tensor:
    r"""Draws integers uniformly from :math:`[low, high)`, in ``input``'s shape.

    Args:
        input: Tensor that gives the shape.
        low: Smallest integer.
        high: One more than the largest integer.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.
        dtype: An integer dtype, by default that of ``input``.

    Returns:
        Tensor of ``input``'s shape.

    Raises:
        ArgumentError: if ``low`` is not less than ``high``.

    Example:
        >>> ops.randint_like(Tensor([1, 2]), 0, 10).shape
        (2,)
    """
    wanted = _int_dtype(dtype, input.dtype, "randint_like")
    return _integers(low, high, input.aval.static_shape, seed, wanted, "randint_like")


def randperm(n: object, seed: int = 0, offset: int = 0, dtype: DTypeLike = dtypes.int64) -> Tensor:
    """Draws a random permutation of the integers below ``n``.

    Args:
        n: Number of integers.
        seed: 0 or -1 continues the global stream; another int gives the same order every time.
        offset: Selects another order for the same ``seed``.
        dtype: A dtype of integers or floats.

    Returns:
        Tensor of shape ``(n,)``.

    Raises:
        ArgumentError: if ``n`` or ``offset`` is negative.

    Example:
        >>> ops.randperm(4).shape
        (4,)
    """
    (count,) = sizes(n, "randperm", "n")
    wanted = dtypes.dtype_of(dtype)
    if not wanted.is_float:
        wanted = _int_dtype(wanted, dtypes.int64, "randperm")
    require(count >= 0 and offset >= 0, "n and offset must not be negative", "randperm",
            ArgumentError, n=n, offset=offset)  # fmt: skip
    fixed = seed not in (0, -1) or offset
    own = (as_int(seed, "randperm", "seed") + 1 << 16) + offset if fixed else None
    order = dtypes.int64 if wanted.is_float else wanted
    found = F.bits_to_permutation(draw_bits(count, own, "randperm"), order)
    return F.cast(found, wanted) if wanted.is_float else found


def shuffle(x: Tensor, seed: Seed = None) -> Tensor:
    """Puts the slices along axis 0 in random order.

    Args:
        x: Tensor with at least one axis.
        seed: ``None`` continues the global stream; an int gives the same order every time.

    Returns:
        Tensor of ``x``'s type.

    Example:
        >>> ops.shuffle(Tensor([[1, 2], [3, 4]])).shape
        (2, 2)
    """
    if x.ndim == 0:
        return x
    order = F.bits_to_permutation(draw_bits(x.shape[0], seed, "shuffle"), dtypes.int64)
    return F.gather(x, order, 0)


# ---- discrete distributions ---------------------------------------------------------------------


def bernoulli(input: Tensor, p: NumberLike = 0.5, seed: Seed = None) -> Tensor:
    r"""Draws 1 with probability ``p`` and 0 otherwise.

    Args:
        input: Tensor that gives shape and dtype.
        p: Probability, a number in :math:`[0, 1]` or a tensor that broadcasts to the shape.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ArgumentError: if ``p`` is a number outside :math:`[0, 1]`.

    Example:
        >>> ops.bernoulli(ops.ones((2, 3)), 0.3).shape
        (2, 3)
    """
    if not isinstance(p, Tensor) and not 0 <= p <= 1:
        raise bad(ArgumentError, "p must be in [0, 1]", "bernoulli", describe(input=input, p=p))
    u = draw_uniform(input.aval.static_shape, seed, "bernoulli")
    return F.cast(u < _in_dtype(p, dtypes.float32), input.dtype)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = True, seed: Seed = None
) -> Tensor:
    r"""Draws indices with probabilities proportional to weights.

    Args:
        input: Tensor of weights, of shape :math:`(C,)` or :math:`(N, C)`; not negative.
        num_samples: Number of indices per row.
        replacement: Whether an index may be drawn again.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.

    Returns:
        int32 tensor of shape ``(num_samples,)`` or ``(N, num_samples)``.

    Raises:
        ShapeError: if ``input`` does not have one or two axes.
        ArgumentError: if there are fewer categories than samples without replacement.

    Example:
        >>> ops.multinomial(Tensor([0.2, 0.8]), 3).shape
        (3,)
    """
    got = describe(input=input, num_samples=num_samples)
    if input.ndim not in (1, 2):
        raise bad(ShapeError, f"input must have 1 or 2 axes, not {input.ndim}", "multinomial", got)
    count = as_int(num_samples, "multinomial", "num_samples")
    if count < 1 or (not replacement and count > input.shape[-1]):
        raise bad(ArgumentError, "num_samples must be positive and, without replacement, at most "
                  "the number of categories", "multinomial", got)  # fmt: skip
    weights = F.cast(input, dtypes.float32)
    pick = _with_replacement if replacement else _without_replacement
    return pick(weights, count, seed, "multinomial")


def _with_replacement(weights: Tensor, count: int, seed: object, op: str) -> Tensor:
    """Inverts the cumulative distribution: the index is the number of sums that lie below."""
    u = draw_uniform((*weights.aval.static_shape[:-1], count), seed, op)
    return _inverse_distribution(weights, u)


@fusible
def _inverse_distribution(weights: Tensor, share: Tensor) -> Tensor:
    """Returns the indices at which the cumulative sum of the weights exceeds shares of it."""
    sums = F.cumsum(weights, -1)
    *_, total = F.split_at(sums, (weights.shape[-1] - 1,), weights.ndim - 1)
    below = F.expand_dims(sums, -2) <= F.expand_dims(share * total, -1)
    index = F.reduce_sum(F.cast(below, dtypes.int32), axis=(weights.ndim,), keep_dims=False)
    return F.minimum(index, _last_positive(weights))


def _last_positive(weights: Tensor) -> Tensor:
    """The last index that can be drawn, in case rounding carries past it."""
    size = weights.shape[-1]
    position = F.arange(size, dtype=dtypes.int32)
    reachable = F.where(weights > 0, position, F.zeros_like(position))
    return F.cast(F.amax(reachable, -1, True), dtypes.int32)


def _without_replacement(weights: Tensor, count: int, seed: object, op: str) -> Tensor:
    """Takes the largest keys: adding Gumbel noise to log weights draws in proportion to them."""
    keys = F.log(weights) + gumbel_noise(weights.aval.static_shape, seed, op)
    order = F.argsort(keys, -1, True)
    first = F.split_at(order, (count,), weights.ndim - 1)[0]
    return F.cast(first, dtypes.int32)


def gumbel_noise(shape: tuple[int, ...], seed: object, op: str) -> Tensor:
    r"""Draws from the standard Gumbel distribution: :math:`-\log(-\log u)`.

    Args:
        shape: Shape of the result.
        seed: ``None`` for the global stream, a Generator for another; an int gives the same numbers
            every time.
        op: Name of the calling function, for errors.
    """
    u = draw_uniform(shape, seed, op) + 2.0**-25  # in (0, 1)
    return -F.log(-F.log(u))


def multinomial_with_replacement(
    x: Tensor, seed: int, offset: int, numsamples: int, replacement: bool = False
) -> Tensor:
    """Draws indices, always with replacement, with probabilities proportional to weights.

    Args:
        x: Tensor of weights, of shape :math:`(C,)` or :math:`(N, C)`.
        seed: The seed, an int or a tensor of one; -1 with offset 0 continues the global stream.
        offset: Selects other numbers for the same seed.
        numsamples: Number of indices per row.
        replacement: Accepted for compatibility.

    Returns:
        int64 tensor of shape ``(numsamples,)`` or ``(N, numsamples)``.

    Example:
        >>> ops.multinomial_with_replacement(Tensor([0.2, 0.8]), 1, 0, 3).shape
        (3,)
    """
    seed, offset = int(seed), int(offset)
    own = None if seed == -1 and offset == 0 else (seed + 1 << 16) + offset
    return F.cast(multinomial(x, numsamples, True, own), dtypes.int64)


def random_categorical(
    logits: Tensor, num_sample: int, seed: int = 0, dtype: DTypeLike = dtypes.int64
) -> Tensor:
    r"""Draws indices with probabilities :math:`softmax(logits)`.

    Args:
        logits: Tensor of shape :math:`(N, C)`.
        num_sample: Number of indices per row.
        seed: 0 continues the global stream; another int gives the same numbers every time.
        dtype: int16, int32 or int64.

    Returns:
        Tensor of shape ``(N, num_sample)``.

    Raises:
        ShapeError: if ``logits`` does not have two axes.

    Example:
        >>> ops.random_categorical(Tensor([[0.1, 0.9]]), 3).shape
        (1, 3)
    """
    require(logits.ndim == 2, f"logits must have 2 axes, not {logits.ndim}", "random_categorical",
            logits=logits)  # fmt: skip
    wanted = _int_dtype(dtype, dtypes.int64, "random_categorical")
    weights = F.softmax(F.cast(logits, dtypes.float32), -1)
    count = as_int(num_sample, "random_categorical", "num_sample")
    return F.cast(_with_replacement(weights, count, seed or None, "random_categorical"), wanted)


# ---- samples of the gamma distribution, and random choices among marked positions ----------------

_PROPOSALS = 8  # at least 95 % of them are accepted, so all fail once in 10^10 draws


def _derived(seed: object, index: int) -> object:
    """A stream of its own for every draw of a function that is given a seed."""
    return seed * 4 + index if type(seed) is int else seed


def _standard_gamma(shape: tuple[int, ...], alpha: Tensor, seed: object, op: str) -> Tensor:
    """Marsaglia and Tsang (2000): a transformed normal number, accepted if a uniform one allows.

    A fixed number of proposals is drawn at once, so that the same graph serves all values; of them
    the first accepted one counts. Orders below 1 are raised by 1 and the result is scaled by a
    uniform number's power.
    """
    raised = F.where(alpha < 1, alpha + 1, alpha)
    d = raised - 1 / 3
    z = draw_normal((_PROPOSALS, *shape), _derived(seed, 0), op, alpha.dtype)
    u = 1 - draw_uniform((_PROPOSALS, *shape), _derived(seed, 1), op, alpha.dtype)
    root = z / F.sqrt(d * 9) + 1
    positive = root > 0
    v = F.where(positive, root, 1.0)
    v = v * v * v
    accepted = F.logical_and(positive, F.log(u) < z * z * 0.5 + d * (1 - v + F.log(v)))
    first = F.cast(F.argmax(F.cast(accepted, dtypes.int32), 0), dtypes.int64)
    chosen = F.squeeze(F.gather_elements(v, 0, F.expand_dims(first, 0)), 0)
    power = 1 - draw_uniform(shape, _derived(seed, 2), op, alpha.dtype)
    scale = F.where(alpha < 1, F.pow(power, 1 / alpha), 1.0)
    return d * chosen * scale


def _order(alpha: object, op: str) -> Tensor:
    a = alpha if isinstance(alpha, Tensor) else Tensor(alpha, dtypes.float32)
    require(a.dtype.is_float, "alpha must hold floats", op, DTypeError, alpha=alpha)
    return a


def random_gamma(shape: object, alpha: Tensor, seed: Seed = None) -> Tensor:
    r"""Draws from gamma distributions of rate 1: :math:`p(x) \propto x^{\alpha-1} e^{-x}`.

    Args:
        shape: How many numbers to draw per distribution.
        alpha: Orders of the distributions, a float tensor with positive elements.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.

    Returns:
        Tensor of shape ``(*shape, *alpha.shape)`` and of ``alpha``'s dtype.

    Raises:
        DTypeError: if ``alpha`` holds no floats.

    Example:
        >>> ops.random_gamma((2, 3), Tensor([0.5, 2.0])).shape
        (2, 3, 2)
    """
    a = _order(alpha, "random_gamma")
    wide = a if a.dtype is dtypes.float64 else F.cast(a, dtypes.float32)
    full = (*sample_shape(shape, "random_gamma"), *a.shape)
    return F.cast(_standard_gamma(full, wide, seed, "random_gamma"), a.dtype)


def gamma(shape: object, alpha: object, beta: object, seed: Seed = None) -> Tensor:
    r"""Draws from gamma distributions.

    .. math::
        p(x) = \frac{\beta^\alpha}{\Gamma(\alpha)} x^{\alpha-1} e^{-\beta x}

    Args:
        shape: How many numbers to draw per distribution.
        alpha: Orders, a positive number or tensor.
        beta: Rates, a positive number or tensor that broadcasts with ``alpha``.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.

    Returns:
        float32 tensor of shape ``shape`` followed by that of the parameters.

    Raises:
        DTypeError: if ``alpha`` or ``beta`` holds no floats.

    Example:
        >>> ops.gamma((2,), Tensor([1.0, 2.0]), Tensor(3.0)).shape
        (2, 2)
    """
    a, b = _order(alpha, "gamma"), _order(beta, "gamma")
    orders = F.cast(a + F.zeros_like(b), dtypes.float32)
    return random_gamma(shape, orders, seed) / F.cast(b, dtypes.float32)


def choice_with_mask(input_x: Tensor, count: int = 256, seed: Seed = None) -> tuple[Tensor, Tensor]:
    r"""Chooses ``count`` positions of true elements at random, each at most once.

    Args:
        input_x: bool tensor with 1 to 5 axes.
        count: Number of positions.
        seed: ``None`` continues the global stream; an int gives the same choice every time.

    Returns:
        An int32 tensor of shape (count, axes) with the positions, and a bool tensor of shape
        (count,) that is false where there were too few true elements; such positions are zeros.

    Raises:
        DTypeError: if ``input_x`` is not bool.
        ShapeError: if it is 0-d or has more than five axes.
        ArgumentError: if ``count`` is not positive.

    Example:
        >>> index, mask = ops.choice_with_mask(Tensor([[True, False], [True, True]]), 3)
    """
    op = "choice_with_mask"
    count = as_int(count, op, "count")
    require(input_x.dtype is dtypes.bool_, "input_x must be bool", op, DTypeError, input_x=input_x)
    require(1 <= input_x.ndim <= 5, f"input_x must have 1 to 5 axes, not {input_x.ndim}", op,
            input_x=input_x)  # fmt: skip
    require(count >= 1, f"count must be at least 1, not {count}", op, ArgumentError, count=count)
    size = math.prod(input_x.shape)
    flat = F.reshape(input_x, (-1,))
    keys = F.where(flat, 1 - draw_uniform((size,), seed, op), 0.0)  # in (0, 1] where true
    best, position = F.topk(keys, min(count, size))
    chosen = best > 0
    missing = count - min(count, size)
    if missing:
        position = F.pad(F.cast(position, dtypes.int32), (0, missing))
        chosen = F.cast(F.pad(F.cast(chosen, dtypes.int32), (0, missing)), dtypes.bool_)
    position = F.where(chosen, F.cast(position, dtypes.int32), 0)
    columns = []
    for extent in reversed(input_x.shape):
        columns.append(F.floor_mod(position, max(extent, 1)))
        position = F.floor_div(position, max(extent, 1))
    return F.stack(columns[::-1], 1), chosen
