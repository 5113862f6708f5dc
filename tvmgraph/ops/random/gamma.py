"""Samples of the gamma distribution, and random choices among marked positions."""

from __future__ import annotations

import math
from typing import Any

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.random import Seed
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import as_int, bad, describe
from tvmgraph.ops.random.rows import draw_normal, draw_uniform
from tvmgraph.ops.random.sampling import sample_shape

__all__ = ["choice_with_mask", "gamma", "random_gamma"]

_PROPOSALS = 8  # at least 95 % of them are accepted, so all fail once in 10^10 draws


def _derived(seed: Any, index: int) -> object:
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
    if not a.dtype.is_float:
        raise bad(DTypeError, "alpha must hold floats", op, describe(alpha=alpha))
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
    if input_x.dtype is not dtypes.bool_:
        raise bad(DTypeError, "input_x must be bool", op, describe(input_x=input_x))
    if not 1 <= input_x.ndim <= 5:
        raise bad(ShapeError, f"input_x must have 1 to 5 axes, not {input_x.ndim}", op,
                  describe(input_x=input_x))  # fmt: skip
    if count < 1:
        raise bad(ArgumentError, f"count must be at least 1, not {count}", op, f"count={count}")
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
