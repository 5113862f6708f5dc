"""Kronecker and cross products, powers of matrices, Vandermonde matrices, distances."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import as_int, bad, countable, describe

__all__ = ["adjoint", "cdist", "cross", "dist", "kron", "matrix_power", "vander"]


def _require(op: str, rule: bool, message: str, **tensors: Tensor) -> None:
    if not rule:
        raise bad(ShapeError, message, op, describe(**tensors))


def kron(input: Tensor, other: Tensor) -> Tensor:
    r"""Kronecker product: every element of ``input`` times the whole of ``other``.

    Args:
        input: Tensor of shape :math:`(a_1, ..., a_n)`.
        other: Tensor of shape :math:`(b_1, ..., b_n)`; missing leading axes count as size 1.

    Returns:
        Tensor of shape :math:`(a_1 b_1, ..., a_n b_n)`.

    Example:
        >>> ops.kron(Tensor([1, 2]), Tensor([1, 10]))
        Tensor(shape=[4], dtype=Int64, value= [ 1, 10,  2, 20])
    """
    ndim = max(input.ndim, other.ndim)
    a = (1,) * (ndim - input.ndim) + input.shape
    b = (1,) * (ndim - other.ndim) + other.shape
    left = F.reshape(input, tuple(itertools.chain.from_iterable((d, 1) for d in a)))
    right = F.reshape(other, tuple(itertools.chain.from_iterable((1, d) for d in b)))
    return F.reshape(left * right, tuple(x * y for x, y in zip(a, b)))


@fusible
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    r"""Cross product of vectors with three elements.

    Args:
        input: Tensor with an axis of size 3.
        other: Tensor whose shape broadcasts with that of ``input``.
        dim: The axis of the vectors; by default the first of size 3.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ShapeError: if the shapes do not broadcast or the axis does not have size 3.

    Example:
        >>> ops.cross(Tensor([1.0, 0.0, 0.0]), Tensor([0.0, 1.0, 0.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  0.00000000e+00,  1.00000000e+00])
    """
    if input.type.shape != other.type.shape:
        shape = rules.broadcast_shapes(input.type.shape, other.type.shape)
        input, other = F.broadcast_to(input, shape), F.broadcast_to(other, shape)
    axis = next((i for i, d in enumerate(input.shape) if d == 3), None) if dim is None else dim
    if axis is None or not -input.ndim <= axis < input.ndim or input.shape[axis] != 3:
        raise bad(ShapeError, "the axis of the vectors must have size 3", "cross",
                  describe(input=input, other=other, dim=dim))  # fmt: skip
    axis %= input.ndim

    def rolled(x: Tensor, by: int) -> Tensor:
        return F.roll(x, -by, axis)

    return rolled(input, 1) * rolled(other, 2) - rolled(input, 2) * rolled(other, 1)


def adjoint(x: Tensor) -> Tensor:
    """Exchanges the last two axes and takes complex conjugates.

    Args:
        x: Tensor of shape :math:`(..., M, N)`.

    Returns:
        Tensor of shape :math:`(..., N, M)`.

    Example:
        >>> ops.adjoint(Tensor([[1.0, 2.0]]))
        Tensor(shape=[2, 1], dtype=Float32, value=
        [[ 1.00000000e+00],
         [ 2.00000000e+00]])
    """
    return F.swapaxes(F.conj(x), -1, -2)


def matrix_power(input: Tensor, n: int) -> Tensor:
    """Power of square matrices by repeated squaring.

    Args:
        input: Tensor of shape :math:`(..., m, m)`.
        n: The exponent; 0 gives the identity, a negative one inverts first.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if the matrices are not square.

    Example:
        >>> ops.matrix_power(Tensor([[[1.0, 1.0], [0.0, 1.0]]]), 3)
        Tensor(shape=[1, 2, 2], dtype=Float32, value=
        [[[ 1.00000000e+00,  3.00000000e+00],
          [ 0.00000000e+00,  1.00000000e+00]]])
    """
    square = input.ndim >= 2 and input.type.shape[-1] == input.type.shape[-2]
    _require("matrix_power", square, "input must hold square matrices", input=input)
    exponent = as_int(n, "matrix_power", "n")
    base = F.inverse(input) if exponent < 0 else input
    result, exponent = None, abs(exponent)
    while exponent:
        if exponent & 1:
            result = base if result is None else F.matmul(result, base)
        exponent >>= 1
        if exponent:
            base = F.matmul(base, base)
    if result is None:
        return F.broadcast_to(F.eye(input.shape[-1], None, input.dtype), input.type.shape)
    return result


def vander(x: Tensor, N: int | None = None) -> Tensor:
    r"""Vandermonde matrix: column :math:`j` holds :math:`x^{N - 1 - j}`.

    Args:
        x: Tensor of shape :math:`(n,)`.
        N: Number of columns, :math:`n` by default.

    Returns:
        Tensor of shape :math:`(n, N)`; int64 where ``x`` holds integers.

    Raises:
        ShapeError: if ``x`` does not have one axis.
        ArgumentError: if ``N`` is not positive.

    Example:
        >>> ops.vander(Tensor([1.0, 2.0, 3.0]))
        Tensor(shape=[3, 3], dtype=Float32, value=
        [[ 1.00000000e+00,  1.00000000e+00,  1.00000000e+00],
         [ 4.00000000e+00,  2.00000000e+00,  1.00000000e+00],
         [ 9.00000000e+00,  3.00000000e+00,  1.00000000e+00]])
    """
    _require("vander", x.ndim == 1, f"x must have 1 axis, not {x.ndim}", x=x)
    count = x.shape[0] if N is None else countable(as_int(N, "vander", "N"), "vander", "N")
    if count < 1:
        raise bad(ArgumentError, "N must be positive", "vander", describe(x=x, N=N))
    x = F.cast(x, dtypes.int64) if x.dtype.is_integer else x
    columns = [F.ones_like(x)]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)  # exact for integers, unlike a power
    return F.stack(columns[::-1], 1)


# ---- distances ----------------------------------------------------------------------------------


def _p_norm(difference: Tensor, p: float, axis: tuple[int, ...]) -> Tensor:
    size = F.abs(difference)
    if p == 0:
        counted = F.cast(size != 0, difference.dtype)
        return F.reduce_sum(counted, axis=axis, keep_dims=False)
    if p == math.inf:
        return F.amax(size, axis)
    if p == 1:
        return F.reduce_sum(size, axis=axis, keep_dims=False)
    if p == 2:
        total = F.reduce_sum(difference * difference, axis=axis, keep_dims=False)
        return _smooth(total, F.sqrt)
    total = F.reduce_sum(_smooth(size, lambda s: F.pow(s, p)), axis=axis, keep_dims=False)
    return _smooth(total, lambda t: F.pow(t, 1.0 / p))


def _smooth(x: Tensor, power: Callable[[Tensor], Tensor]) -> Tensor:
    """Applies a power that keeps 0, with the derivative 0 there, as that of a norm."""
    zero = x == 0
    safe = F.where(zero, F.ones_like(x), x)
    return F.where(zero, F.zeros_like(x), power(safe))


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    r"""Distances between all pairs of rows: :math:`\|x1_i - x2_j\|_p`.

    Args:
        x1: Float tensor of shape :math:`(..., P, M)`.
        x2: Float tensor of shape :math:`(..., R, M)`.
        p: Order of the norm, at least 0; may be infinite.

    Returns:
        Tensor of shape :math:`(..., P, R)`.

    Raises:
        ShapeError: if the rows differ in length.
        ArgumentError: if ``p`` is negative.

    Example:
        >>> ops.cdist(Tensor([[0.0, 0.0]]), Tensor([[3.0, 4.0]]))
        Tensor(shape=[1, 1], dtype=Float32, value=
        [[ 5.00000000e+00]])
    """
    fits = x1.ndim > 1 and x2.ndim > 1 and x1.type.shape[-1] == x2.type.shape[-1]
    _require("cdist", fits, "both operands must hold rows of one length", x1=x1, x2=x2)
    if not p >= 0:
        raise bad(ArgumentError, "p must not be negative", "cdist", f"p={p}")
    if not (x1.dtype.is_float and x2.dtype.is_float):
        raise bad(DTypeError, "both operands must be float tensors", "cdist",
                  describe(x1=x1, x2=x2))  # fmt: skip
    return _pair_distances(x1, x2, float(p))


@fusible
def _pair_distances(x1: Tensor, x2: Tensor, p: float) -> Tensor:
    difference = F.expand_dims(x1, -2) - F.expand_dims(x2, -3)
    return _p_norm(difference, p, (difference.ndim - 1,))


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    r"""Norm of a difference: :math:`\|input - other\|_p` over all elements.

    Args:
        input: Float tensor.
        other: Tensor that broadcasts with ``input``.
        p: Order of the norm, at least 0; may be infinite.

    Returns:
        0-d tensor.

    Raises:
        ArgumentError: if ``p`` is negative.

    Example:
        >>> ops.dist(Tensor([0.0, 0.0]), Tensor([3.0, 4.0]))
        Tensor(shape=[], dtype=Float32, value= 5)
    """
    if not p >= 0:
        raise bad(ArgumentError, "p must not be negative", "dist", f"p={p}")
    return _distance(input, other, float(p))


@fusible
def _distance(input: Tensor, other: Tensor, p: float) -> Tensor:
    difference = input - other
    return _p_norm(difference, p, tuple(range(difference.ndim)))
