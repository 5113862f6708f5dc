"""Functions of MindSpore that are a few other operators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tvmgraph import dtypes, hooks
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.unfollowed import by_numpy
from tvmgraph.errors import ArgumentError
from tvmgraph.ops.common.arguments import bad, countable
from tvmgraph.ops.math.complex_columns import parts_of


def view_as_real(input: Tensor) -> Tensor:
    """Returns a complex tensor as a real one whose last axis holds both parts.

    Args:
        input: complex64 or complex128 tensor of shape :math:`(*)`.

    Returns:
        float32 or float64 tensor of shape :math:`(*, 2)`.
    """
    found = by_numpy(parts_of, input) if input.dtype in dtypes.COMPLEX else None
    return F.stack((F.real(input), F.imag(input)), -1) if found is None else found


def reshape_(input: Tensor, shape: object) -> Tensor:
    """Returns ``input`` in another shape; see :func:`reshape`.

    Args:
        input: Tensor of any shape.
        shape: The shape; one size may be -1.
    """
    return F.reshape(input, shape)


def add_flags(fn: Any = None, **flags: object) -> Any:
    """Gives a Cell or a function flags that can be read back.

    Args:
        fn: What gets the flags; without it, a decorator is returned.
        **flags: The flags.
    """
    if fn is None:
        return lambda function: add_flags(function, **flags)
    if hasattr(fn, "add_flags"):
        return fn.add_flags(**flags)
    fn._func_graph_flags = getattr(fn, "_func_graph_flags", {}) | flags
    return fn


def diff_ext(input: Tensor, n: int = 1, dim: int = -1, prepend: object = None,
             append: object = None) -> Tensor:  # fmt: skip
    """Returns the ``n``-th differences of neighbours; see :func:`diff`.

    Args:
        input: Tensor of any shape.
        n: How often neighbours are subtracted.
        dim: The axis.
        prepend: Tensor that comes before ``input`` along the axis.
        append: Tensor that comes after it.
    """
    return F.diff(input, n, dim, prepend, append)


def rotary_position_embedding(x: Tensor, cos: Tensor, sin: Tensor, mode: int = 0) -> Tensor:
    """Turns pairs of elements by angles.

    Args:
        x: Tensor [..., D].
        cos: Cosines of the angles, broadcast to ``x``.
        sin: Their sines.
        mode: 0 pairs element i with i + D/2, 1 pairs neighbours.

    Raises:
        ArgumentError: for another mode.
    """
    if mode not in (0, 1):
        raise bad(ArgumentError, "mode must be 0 or 1", "rotary_position_embedding", f"mode={mode}")
    half = x.shape[-1] // 2
    if mode == 0:
        rotated = F.concat((F.neg(F.narrow(x, -1, half, half)), F.narrow(x, -1, 0, half)), -1)
    else:
        pairs = F.reshape(x, (*x.shape[:-1], half, 2))
        first, second = F.narrow(pairs, -1, 0, 1), F.narrow(pairs, -1, 1, 1)
        rotated = F.reshape(F.concat((F.neg(second), first), -1), x.shape)
    return x * cos + rotated * sin


def add_layer_norm(x1: Tensor, x2: Tensor, gamma: Tensor, beta: Tensor, epsilon: float = 1e-5,
                   additional_output: bool = False) -> tuple[Tensor, ...]:  # fmt: skip
    """Returns the layer norm of a sum, its mean and reciprocal deviation, and the sum.

    Args:
        x1: Tensor [..., D].
        x2: Tensor of that shape.
        gamma: Factors [D].
        beta: Offsets [D].
        epsilon: Added to the variance.
        additional_output: Whether the sum is wanted; zeros stand for it otherwise.
    """
    total = x1 + x2
    wide = F.cast(total, dtypes.float32)
    mean = F.mean(wide, -1, True)
    rate = F.rsqrt(F.mean(F.square(wide - mean), -1, True) + epsilon)
    found = F.cast((wide - mean) * rate, total.dtype) * gamma + beta
    return found, mean, rate, total if additional_output else F.zeros_like(total)


def add_rms_norm(x1: Tensor, x2: Tensor, gamma: Tensor,
                 epsilon: float = 1e-6) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    r"""Normalizes a sum: :math:`y = \gamma x / \sqrt{mean(x^2) + \epsilon}` with :math:`x = x_1 +
    x_2`.

    Args:
        x1: Tensor of shape :math:`(*, D)`.
        x2: Tensor of the same shape.
        gamma: Factors of shape :math:`(D)`, or of more of the last axes, over which the mean is
            taken.
        epsilon: What is added to the mean square.

    Returns:
        The normalized sum, the reciprocal root, and the sum.
    """
    total = x1 + x2
    found, rate = F.rms_norm(total, gamma, epsilon)
    return found, rate, total


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True,
              unpack_pivots: bool = True) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Returns permutation, lower and upper matrix of a packed factorization.

    Args:
        LU_data: Both triangles [..., M, N].
        LU_pivots: Row swapped with each row, from 1, [..., min(M, N)].
        unpack_data: Whether the triangles are wanted; empty tensors stand for them otherwise.
        unpack_pivots: Whether the permutation is wanted.
    """
    rows, columns = LU_data.shape[-2:]
    size = min(rows, columns)
    none = F.zeros((0,), LU_data.dtype)
    lower = upper = permutation = none
    if unpack_data:
        eye = F.eye(rows, size, LU_data.dtype)
        lower = F.tril(F.narrow(LU_data, -1, 0, size), -1) + eye
        upper = F.triu(F.narrow(LU_data, -2, 0, size))
    if unpack_pivots:
        permutation = _swapped(LU_pivots, rows, LU_data.dtype)
    return permutation, lower, upper


def _swapped(pivots: Tensor, rows: int, dtype: dtypes.DType) -> Tensor:
    """Returns the matrices that undo swaps of rows."""
    lead = tuple(pivots.shape[:-1])
    order = F.broadcast_to(F.arange(rows), (*lead, rows))
    places = F.arange(rows)
    for i in range(pivots.shape[-1]):
        other = F.cast(F.narrow(pivots, -1, i, 1), order.dtype) - 1
        here, there = F.narrow(order, -1, i, 1), F.gather_elements(order, -1, other)
        order = F.where(F.equal(places, i), there, F.where(F.equal(places, other), here, order))
    return F.swapaxes(F.cast(F.one_hot(order, rows), dtype), -1, -2)


def derivative(fn: Callable[..., Tensor], primals: Any, order: int) -> tuple[Any, Any]:
    """Returns a function's value and its derivative of some order as all inputs grow alike.

    Args:
        fn: Function of tensors.
        primals: The tensor, or a tuple of several.
        order: Order of the derivative, at least 1.

    Raises:
        ArgumentError: if ``order`` is below 1 or there is no input.
    """
    inputs = primals if isinstance(primals, tuple) else (primals,)
    if order < 1 or not inputs:
        raise bad(ArgumentError, "an input and an order of at least 1 are needed", "derivative",
                  f"order={order}, {len(inputs)} inputs")  # fmt: skip

    def slope(of: Callable[[Tensor], object], t: Tensor) -> Tensor:
        return hooks.jvp(of, t, F.ones_like(t))[1]

    change: Any = lambda t: fn(*(x + t for x in inputs))  # noqa: E731
    for _ in range(countable(order, "derivative", "order")):
        change = functools.partial(slope, change)
    return fn(*inputs), change(Tensor(0, inputs[0].dtype))


class ReduceOp:
    """Names of what operators of several devices do with values."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


__all__ = [
    "ReduceOp", "add_flags", "add_layer_norm", "add_rms_norm", "derivative", "diff_ext",
    "lu_unpack", "reshape_", "rotary_position_embedding", "view_as_real",
]  # fmt: skip
