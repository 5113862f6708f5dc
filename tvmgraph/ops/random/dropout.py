"""Dropout, and distributions that are transforms of uniform numbers."""

from __future__ import annotations

import math
from typing import Any

from tvmgraph import dtypes
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F
from tvmgraph.core.random import Seed
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import Shape
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either
from tvmgraph.ops.common.arguments import bad, describe, require
from tvmgraph.ops.random.rows import draw_bits, draw_normal, draw_uniform, uniform_of
from tvmgraph.ops.random.sampling import gumbel_noise, sample_shape

__all__ = [
    "dropout", "dropout1d", "dropout2d", "dropout3d", "gumbel_softmax", "laplace",
    "standard_laplace", "standard_normal",
]  # fmt: skip


def _check_p(p: object, input: Tensor, op: str) -> None:
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise bad(DTypeError, f"p must be a float, not {type(p).__name__}", op,
                  describe(input=input, p=p))  # fmt: skip
    if not 0 <= p <= 1:
        kind = either(ArgumentError, RuntimeError if isinstance(p, float) else TypeError)
        raise bad(kind, "p must be in [0, 1]", op, describe(input=input, p=p))


def _drop(input: Tensor, p: float, shape: Shape, seed: object, op: str) -> Tensor:
    """Keeps and scales elements where a uniform number of ``shape`` is at least ``p``."""
    if p == 0:
        return input
    if p == 1:
        return F.zeros_like(input)
    count: Any = math.prod(shape)  # pyright: ignore[reportArgumentType, reportCallIssue]
    return _scaled_where(input, draw_bits(count, seed, op), p, shape)


@fusible
def _scaled_where(x: Tensor, bits: Tensor, p: float, shape: Shape) -> Tensor:
    """Scales elements by 1 / (1 - p) where their random words say at least ``p``, else 0."""
    return F.where(uniform_of(bits, shape) >= p, x * (1.0 / (1.0 - p)), 0.0)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, seed: Seed = None) -> Tensor:
    r"""Sets elements to zero with probability ``p`` and scales the rest by :math:`1 / (1 - p)`.

    Args:
        input: Float tensor of any shape.
        p: Probability of dropping an element.
        training: Whether to drop; otherwise ``input`` is returned.
        seed: ``None`` continues the global stream; an int drops the same elements every time.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        DTypeError: if ``input`` is no float tensor.
        ArgumentError: if ``p`` lies outside :math:`[0, 1]`.

    Example:
        >>> ops.dropout(ops.ones((2, 3)), p=0.5).shape
        (2, 3)
    """
    _check_p(p, input, "dropout")
    require(input.dtype.is_float, f"input must be a float tensor, not {input.dtype.name}",
            "dropout", DTypeError, input=input, fix="cast it to float32")  # fmt: skip
    return _drop(input, p, input.aval.shape, seed, "dropout") if training else input


def _drop_channels(
    input: Tensor, p: float, training: bool, ndims: tuple[int, ...], op: str
) -> Tensor:
    _check_p(p, input, op)
    if input.ndim not in ndims:
        raise bad(ShapeError, f"input must have {' or '.join(map(str, ndims))} axes, "
                  f"not {input.ndim}", op, describe(input=input))  # fmt: skip
    if not training:
        return input
    shape = input.aval.shape
    lead = 2 if input.ndim == ndims[-1] else 1
    dropped = _drop(input, p, (*shape[:lead], *(1,) * (input.ndim - lead)), None, op)
    return dropped if dropped.dtype is input.dtype else F.cast(dropped, input.dtype)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    r"""Sets whole channels to zero with probability ``p`` and scales the rest.

    Args:
        input: Tensor of shape :math:`(N, C, L)` or :math:`(C, L)`.
        p: Probability of dropping a channel.
        training: Whether to drop; otherwise ``input`` is returned.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if ``input`` has another number of axes.

    Example:
        >>> ops.dropout1d(ops.ones((2, 3, 4))).shape
        (2, 3, 4)
    """
    return _drop_channels(input, p, training, (2, 3), "dropout1d")


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    r"""Sets whole channels to zero with probability ``p`` and scales the rest.

    Args:
        input: Tensor of shape :math:`(N, C, H, W)`.
        p: Probability of dropping a channel.
        training: Whether to drop; otherwise ``input`` is returned.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if ``input`` has another number of axes.

    Example:
        >>> ops.dropout2d(ops.ones((2, 3, 4, 4))).shape
        (2, 3, 4, 4)
    """
    return _drop_channels(input, p, training, (4,), "dropout2d")


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    r"""Sets whole channels to zero with probability ``p`` and scales the rest.

    Args:
        input: Tensor of shape :math:`(N, C, D, H, W)`.
        p: Probability of dropping a channel.
        training: Whether to drop; otherwise ``input`` is returned.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if ``input`` has another number of axes.

    Example:
        >>> ops.dropout3d(ops.ones((2, 3, 2, 2, 2))).shape
        (2, 3, 2, 2, 2)
    """
    return _drop_channels(input, p, training, (5,), "dropout3d")


def standard_normal(shape: object, seed: Seed = None) -> Tensor:
    r"""Draws from the standard normal distribution.

    Args:
        shape: The shape.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.

    Returns:
        float32 tensor of shape ``shape``.

    Raises:
        ShapeError: if the shape is negative.

    Example:
        >>> ops.standard_normal((2, 3)).shape
        (2, 3)
    """
    return draw_normal(sample_shape(shape, "standard_normal"), seed, "standard_normal")


def standard_laplace(shape: object, seed: Seed = None) -> Tensor:
    r"""Draws from the Laplace distribution with mean 0 and scale 1.

    Args:
        shape: The shape.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.

    Returns:
        float32 tensor of shape ``shape``.

    Raises:
        ShapeError: if the shape is negative.

    Example:
        >>> ops.standard_laplace((2, 3)).shape
        (2, 3)
    """
    return _laplace(sample_shape(shape, "standard_laplace"), seed, "standard_laplace")


def _laplace(shape: tuple[int, ...], seed: object, op: str) -> Tensor:
    """Inverts the distribution function at a number in (-1, 1) that is never 0."""
    u = draw_uniform(shape, seed, op) * 2.0 - (1.0 - 2.0**-24)
    return -F.sign(u) * F.log(1.0 - F.abs(u))


def laplace(shape: object, mean: NumberLike, lambda_param: NumberLike, seed: Seed = None) -> Tensor:
    r"""Draws from the Laplace distribution: density :math:`e^{-|x - mean| / \lambda} / 2\lambda`.

    Args:
        shape: The shape to draw; it broadcasts with the parameters.
        mean: Mean, tensor or number.
        lambda_param: Scale, tensor or number.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.

    Returns:
        float32 tensor of the broadcast shape.

    Example:
        >>> ops.laplace((2, 3), Tensor(0.0), Tensor(1.0)).shape
        (2, 3)
    """
    noise = _laplace(sample_shape(shape, "laplace"), seed, "laplace")
    return noise * lambda_param + mean


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Tensor:
    r"""Draws a relaxed one-hot vector: :math:`softmax((logits + g) / \tau)` with Gumbel noise.

    Args:
        logits: Float tensor of unnormalised log probabilities.
        tau: Temperature, positive.
        hard: Whether the result is one-hot; the derivative stays that of the soft sample.
        dim: The axis of the categories.

    Returns:
        Tensor of ``logits``' type.

    Raises:
        DTypeError: if ``logits`` is no float tensor.
        ArgumentError: if ``tau`` is not positive.

    Example:
        >>> ops.gumbel_softmax(Tensor([[1.0, 2.0]])).shape
        (1, 2)
    """
    got = describe(logits=logits, tau=tau)
    if not logits.dtype.is_float:
        raise bad(DTypeError, "logits must be a float tensor", "gumbel_softmax", got)
    if not tau > 0:
        raise bad(ArgumentError, "tau must be positive", "gumbel_softmax", got)
    noise = F.cast(gumbel_noise(logits.aval.static_shape, None, "gumbel_softmax"), logits.dtype)
    soft = F.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    axis = dim % logits.ndim
    best = F.argmax(soft, axis)
    size = logits.shape[axis]
    lone = tuple(size if i == axis else 1 for i in range(logits.ndim))
    position = F.reshape(F.arange(size, dtype=dtypes.int64), lone)
    one_hot = F.cast(F.expand_dims(F.cast(best, dtypes.int64), axis) == position, logits.dtype)
    return F.stop_gradient(one_hot - soft) + soft
