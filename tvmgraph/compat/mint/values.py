"""Arithmetic, comparisons and reductions with PyTorch's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvmgraph import ops
from tvmgraph.core.arguments import AxisLike, DTypeLike, PerAxis
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import promote
from tvmgraph.errors import DTypeError, user_source
from tvmgraph.ops.common.arguments import require_tensor
from tvmgraph.ops.reduction.statistics import bin_sums


def _times(alpha: NumberLike, other: Any, input: object) -> object:
    """Returns ``alpha * other`` in the dtype that ``other`` has in a sum with ``input``."""
    if alpha == 1:
        return other
    if isinstance(input, Tensor) and isinstance(other, Tensor):
        other = ops.cast(other, promote(input.dtype, other.dtype))
    return alpha * other


def add(input: object, other: object, *, alpha: NumberLike = 1) -> Tensor:
    """Returns ``input + alpha * other``.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes are broadcast.
        alpha: Factor of ``other``.
    """
    return ops.add(input, _times(alpha, other, input))


def sub(input: object, other: object, *, alpha: NumberLike = 1) -> Tensor:
    """Returns ``input - alpha * other``.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes are broadcast.
        alpha: Factor of ``other``.
    """
    return ops.sub(input, _times(alpha, other, input))


def sqrt(input: Tensor) -> Tensor:
    """Returns the square root.

    Args:
        input: Tensor of any shape; integers are computed in float32.
    """
    return ops.sqrt(input)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Returns int64 counts of the integers from 0 on, or sums of ``weights``.

    Args:
        input: Integers of shape [N], none negative.
        weights: What each integer adds to its place [N]; 1 by default.
        minlength: Length of the result at least.
    """
    return bin_sums(input, weights, minlength)


def frac(input: Tensor) -> Tensor:
    """Returns the fractional part, with the sign of ``input``.

    Args:
        input: Tensor of any shape.
    """
    return ops.frac(input)


def isnan(tensor: Tensor) -> Tensor:
    """Returns where elements are NaN.

    Args:
        tensor: Tensor of any shape.
    """
    return ops.isnan(tensor)


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Returns the matrix product, broadcast over leading axes.

    Args:
        input: Tensor [..., M, K], or a vector [K].
        other: Tensor [..., K, N], or a vector [K].
    """
    return ops.matmul(input, other)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Returns the matrix products of two batches of shape [B, M, K] and [B, K, N].

    Args:
        input: Matrices [B, M, K].
        mat2: Matrices [B, K, N].
    """
    return ops.bmm(input, mat2)


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Returns the product of a matrix and a vector.

    Args:
        input: Matrix [M, K].
        vec: Vector [K].
    """
    return ops.mv(input, vec)


def dot(input: Tensor, other: Tensor) -> Tensor:
    """Returns the inner product of two vectors.

    Args:
        input: Vector [N].
        other: Vector [N] of the same dtype.
    """
    return ops.matmul(input, other)


def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Returns the inner product of two vectors, the first one conjugated.

    Args:
        input: Vector [N].
        other: Vector [N] of the same dtype.
    """
    return dot(ops.conj(input) if input.dtype.kind == "c" else input, other)


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements.

    Args:
        input: Tensor or number.
        other: The tensor it is compared with.
    """
    require_tensor("equal", input)
    require_tensor("equal", other, "other")
    return tuple(input.shape) == tuple(other.shape) and bool(ops.equal(input, other).all())


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08,
             equal_nan: bool = False) -> bool:  # fmt: skip
    """Whether ``|input - other| <= atol + rtol * |other|`` everywhere.

    Args:
        input: Tensor of any shape.
        other: Tensor of a shape that can be broadcast to that of ``input``.
        rtol: Allowed difference relative to ``other``.
        atol: Allowed absolute difference.
        equal_nan: Whether two NaN count as equal.
    """
    return bool(ops.isclose(input, other, rtol, atol, equal_nan).all())


def all(input: Tensor, dim: AxisLike | None = None, keepdim: bool = False) -> Tensor:
    """Returns whether all elements along ``dim`` are true.

    Args:
        input: Tensor of any shape and dtype.
        dim: Axis or axes; all of them by default.
        keepdim: Whether reduced axes stay with size 1.
    """
    return ops.all(input, dim, keepdim)


def any(input: Tensor, dim: AxisLike | None = None, keepdim: bool = False) -> Tensor:
    """Returns whether any element along ``dim`` is true.

    Args:
        input: Tensor of any shape and dtype.
        dim: Axis or axes; all of them by default.
        keepdim: Whether reduced axes stay with size 1.
    """
    return ops.any(input, dim, keepdim)


def amax(input: Tensor, dim: AxisLike = (), keepdim: bool = False) -> Tensor:
    """Returns the maximum over one or several axes; over all of them by default.

    Args:
        input: Tensor of any shape.
        dim: Axis or axes; all of them by default.
        keepdim: Whether reduced axes stay with size 1.
    """
    return ops.amax(input, None if dim == () else dim, keepdim)


def amin(input: Tensor, dim: AxisLike = (), keepdim: bool = False) -> Tensor:
    """Returns the minimum over one or several axes; over all of them by default.

    Args:
        input: Tensor of any shape.
        dim: Axis or axes; all of them by default.
        keepdim: Whether reduced axes stay with size 1.
    """
    return ops.amin(input, None if dim == () else dim, keepdim)


def _require_axis(name: str, dim: AxisLike | None, keepdim: bool) -> None:
    if dim is None and keepdim is not False:
        raise DTypeError("keepdim needs dim", op=f"mint.{name}", at=user_source())


def max(input: Tensor, dim: AxisLike | None = None, keepdim: bool = False) -> Any:
    """Returns the maximum; with an axis ``(values, indices)``; or of two tensors.

    Args:
        input: Tensor of any shape.
        dim: An axis, a tensor to compare with element by element, or None for all elements.
        keepdim: Whether reduced axes stay with size 1.
    """
    if isinstance(dim, Tensor):
        return ops.maximum(input, dim)
    _require_axis("max", dim, keepdim)
    return ops.amax(input) if dim is None else ops.max(input, dim, keepdim)


def min(input: Tensor, dim: AxisLike | None = None, keepdim: bool = False) -> Any:
    """Returns the minimum; with an axis ``(values, indices)``; or of two tensors.

    Args:
        input: Tensor of any shape.
        dim: An axis, a tensor to compare with element by element, or None for all elements.
        keepdim: Whether reduced axes stay with size 1.
    """
    if isinstance(dim, Tensor):
        return ops.minimum(input, dim)
    _require_axis("min", dim, keepdim)
    return ops.amin(input) if dim is None else ops.min(input, dim, keepdim)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Returns the int64 index of the minimum.

    Args:
        input: Tensor of any shape.
        dim: The axis; the flat tensor by default.
        keepdim: Whether reduced axes stay with size 1.
    """
    return ops.argmin(input, dim, keepdim).astype("int64")


def mean(
    input: Tensor,
    dim: AxisLike | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Returns the mean over axes.

    Args:
        input: Tensor of any shape.
        dim: Axis or axes; all of them by default.
        keepdim: Whether reduced axes stay with size 1.
        dtype: The dtype of the computation and the result; that of ``input`` by default.
    """
    return ops.mean(input if dtype is None else ops.cast(input, dtype), dim, keepdim)


def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Returns the lower median, and with an axis ``(values, indices)``.

    Args:
        input: Tensor of any shape.
        dim: The axis; all elements by default.
        keepdim: Whether reduced axes stay with size 1.
    """
    if dim is None:
        return ops.median(ops.flatten(input, start_dim=0), 0)[0]
    return ops.median(input, dim, keepdim)


def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *,
         dtype: DTypeLike | None = None) -> Tensor:  # fmt: skip
    """Returns the product over an axis.

    Args:
        input: Tensor of any shape.
        dim: The axis; all elements by default.
        keepdim: Whether reduced axes stay with size 1.
        dtype: dtype of product and result; by default ``input``'s, and int64 for integers and
            bools.
    """
    return ops.prod(input, dim, keepdim, dtype)


def nansum(
    input: Tensor,
    dim: AxisLike | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Returns the sum of what is not NaN.

    Args:
        input: Tensor of any shape.
        dim: Axis or axes; all of them by default.
        keepdim: Whether reduced axes stay with size 1.
        dtype: dtype of sum and result; by default ``input``'s, int64 for bools.
    """
    return ops.nansum(input, dim, keepdim, dtype=dtype)


def var(
    input: Tensor, dim: AxisLike | None = None, *, correction: int = 1, keepdim: bool = False
) -> Tensor:
    """Returns the variance ``sum((x - mean)^2) / (n - correction)``.

    Args:
        input: Tensor of any shape; integers are computed in float32.
        dim: Axis or axes; all of them by default.
        correction: What is taken from the number of elements in the divisor.
        keepdim: Whether reduced axes stay with size 1.
    """
    return ops.var(input, dim, correction, keepdim)


def std(
    input: Tensor, dim: AxisLike | None = None, *, correction: int = 1, keepdim: bool = False
) -> Tensor:
    """Returns the square root of :func:`var`.

    Args:
        input: Tensor of any shape; integers are computed in float32.
        dim: Axis or axes; all of them by default.
        correction: What is taken from the number of elements in the divisor.
        keepdim: Whether reduced axes stay with size 1.
    """
    return ops.std(input, dim, correction, keepdim)


def var_mean(input: Tensor, dim: AxisLike | None = None, *, correction: int = 1,
             keepdim: bool = False) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Returns variance and mean.

    Args:
        input: Tensor of any shape; integers are computed in float32.
        dim: Axis or axes; all of them by default.
        correction: What is taken from the number of elements in the divisor.
        keepdim: Whether reduced axes stay with size 1.
    """
    return ops.var_mean(input, dim, correction, keepdim)


def std_mean(input: Tensor, dim: AxisLike | None = None, *, correction: int = 1,
             keepdim: bool = False) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Returns standard deviation and mean.

    Args:
        input: Tensor of any shape; integers are computed in float32.
        dim: Axis or axes; all of them by default.
        correction: What is taken from the number of elements in the divisor.
        keepdim: Whether reduced axes stay with size 1.
    """
    return ops.std_mean(input, dim, correction, keepdim)


def norm(input: Tensor, p: object = "fro", dim: AxisLike | None = None, keepdim: bool = False, *,
         dtype: DTypeLike | None = None) -> Tensor:  # fmt: skip
    """Returns the p-norm of the elements over axes, as of one vector.

    Args:
        input: Tensor of any shape.
        p: Order of the norm; ``inf`` and ``-inf`` are maximum and minimum of the absolute values,
            ``"fro"`` is 2, and ``"nuc"`` the sum of the singular values of matrices.
        dim: The axes; ``None`` takes all.
        keepdim: Whether the axes stay with size 1.
        dtype: dtype of computation and result; by default ``input``'s.
    """
    if p == "nuc":
        return ops.norm(input, p, dim=dim, keepdim=keepdim, dtype=dtype)
    return ops.vector_norm(input, 2 if p == "fro" else p, dim, keepdim, dtype=dtype)


def count_nonzero(input: Tensor, dim: AxisLike | None = None) -> Tensor:
    """Returns the int64 number of elements that are not zero.

    Args:
        input: Tensor of any shape.
        dim: Axis or axes; all of them by default.
    """
    return ops.count_nonzero(input, () if dim is None else dim).astype("int64")


def cumsum(input: Tensor, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the running sum along an axis.

    Args:
        input: Tensor of any shape.
        dim: The axis.
        dtype: dtype of sums and result; by default ``x``'s, int64 for bools.
    """
    return ops.cumsum(input, dim, dtype)


def cummax(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Returns the running maximum along an axis and its int64 indices.

    Args:
        input: Tensor of at least one axis.
        dim: The axis.
    """
    values, indices = ops.cummax(input, dim)
    return values, indices.astype("int64")


def cummin(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Returns the running minimum along an axis and its int64 indices.

    Args:
        input: Tensor of at least one axis.
        dim: The axis.
    """
    values, indices = ops.cummin(input, dim)
    return values, indices.astype("int64")


def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:  # fmt: skip
    """Returns the n-th difference of neighbours along an axis.

    Args:
        input: Tensor of any shape.
        n: How often differences are taken.
        dim: The axis.
        prepend: What comes before ``input`` along the axis.
        append: What comes after it.
    """
    return ops.diff(input, n, dim, prepend, append)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0,
          compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:  # fmt: skip
    """Returns the p-norm distances of all pairs of rows; every mode computes the same.

    Args:
        x1: Points [..., P, M].
        x2: Points [..., R, M].
        p: Order of the norm.
        compute_mode: Kept for MindSpore programs.
    """
    return ops.cdist(x1, x2, p)


def _with_an_axis(function: Callable[[Tensor], Tensor], input: Tensor) -> Tensor:
    """Returns ``function(input)`` of a function along an axis: one element is a vector to it.

    Args:
        function: Keeps the shape.
        input: Tensor of any shape.
    """
    return function(input) if input.ndim else function(input.reshape(1)).reshape(())


def softmax(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the softmax along an axis.

    Args:
        input: Tensor of any shape; integers are computed in float32.
        dim: The axis whose elements become parts of 1.
        dtype: ``input`` is converted to this dtype first, unless it is ``None``.
    """
    return _with_an_axis(lambda x: ops.softmax(x, dim, dtype=dtype), input)


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True,
         sorted: bool = True) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Returns the k largest (or smallest) elements along an axis and their int64 indices.

    Args:
        input: Tensor of any shape.
        k: How many elements.
        dim: The axis.
        largest: Whether the largest are returned, else the smallest.
        sorted: Whether the order matters; see :func:`tvmgraph.ops.topk`.
    """
    values, indices = ops.topk(input, k, dim, largest, sorted)
    return values, indices.astype("int64")


def sort(input: Tensor, *, dim: int = -1, descending: bool = False,
         stable: bool = False) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Returns the sorted elements and their int64 indices; the order of equals is kept.

    Args:
        input: Tensor of any shape.
        dim: The axis.
        descending: Whether the largest comes first.
        stable: Kept for MindSpore programs: the order of equals is always kept.
    """
    values, indices = ops.sort(input, dim, descending)
    return values, indices.astype("int64")


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Returns the int64 indices that sort along an axis.

    Args:
        input: Tensor of any shape.
        dim: The axis.
        descending: Whether the largest comes first.
        stable: Kept for MindSpore programs: the order of equals is always kept.
    """
    return ops.argsort(input, dim, descending).astype("int64")


def where(condition: Tensor, input: object = None, other: object = None) -> Any:
    """Returns ``input`` where the condition holds, else ``other``; alone, the indices where.

    Args:
        condition: Bools of any shape.
        input: Tensor or number; broadcast with the condition and ``other``.
        other: Tensor or number.
    """
    if input is None and other is None:
        return ops.nonzero(condition, as_tuple=True)
    return ops.where(condition, input, other)


def item(input: Tensor) -> Any:
    """Returns the only element as a Python number.

    Args:
        input: Tensor of one element.
    """
    return input.item()


def addr_(
    input: Tensor, vec1: Tensor, vec2: Tensor, beta: NumberLike = 1, alpha: NumberLike = 1
) -> Tensor:
    """Writes ``beta * input + alpha * outer(vec1, vec2)`` into ``input`` and returns it.

    Args:
        input: Matrix [M, N], which is written.
        vec1: Vector [M].
        vec2: Vector [N].
        beta: Factor of ``input``.
        alpha: Factor of the outer product.
    """
    input[...] = ops.addr(input, vec1, vec2, beta=beta, alpha=alpha)
    return input


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
           padding: object = 0, dilation: PerAxis = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """Convolves images; see :func:`mint.nn.functional.conv2d`.

    Args:
        input: Images [N, C, H, W].
        weight: Kernels [O, C / groups, h, w].
        bias: One number per output channel [O].
        stride: Steps of the window in pixels, for both axes or each.
        padding: Zeros on every side, for both axes or each, or ``"same"`` or ``"valid"``.
        dilation: Distance of a kernel's elements in pixels, for both axes or each.
        groups: Into how many groups channels are split.
    """
    from tvmgraph.compat.mint.nn import functional

    return functional.conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolves signals [T, N, C] with weights [K, C, O]: [T', N, O].

    Args:
        input: Signals [T, N, C].
        weight: Kernels [K, C, O].
        bias: One number per output channel [O].
        pad: Zeros before and after the signal.
    """
    x, w = ops.permute(input, (1, 2, 0)), ops.permute(weight, (2, 1, 0))
    return ops.permute(ops.conv1d(x, w, bias, 1, "pad", pad), (2, 0, 1))


def batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Returns the mean of every channel (axis 1), and one by its deviation, in float32.

    Args:
        input: Tensor [N, C, ...].
        eps: What is added to the variance.
    """
    x = ops.reshape(ops.transpose(input.astype("float32"), _channels_first(input)),
                    (input.shape[1], -1))  # fmt: skip
    mean = ops.mean(x, 1)
    return mean, ops.rsqrt(ops.mean(ops.square(x - ops.expand_dims(mean, 1)), 1) + eps)


def batch_norm_elemt(
    input: Tensor, weight: Tensor | None = None, bias: Tensor | None = None,
    mean: Tensor | None = None, invstd: Tensor | None = None, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """Normalises every channel (axis 1); ``invstd`` contains ``eps``, which is ignored.

    Args:
        input: Tensor [N, C, ...].
        weight: Factor per channel [C]; none by default.
        bias: What is added per channel [C].
        mean: What is subtracted per channel [C].
        invstd: One by the standard deviation per channel [C].
        eps: Kept for MindSpore programs.
    """
    shape = (1, -1, *(1,) * (input.ndim - 2))
    y = input.astype("float32")
    for value, apply in ((mean, ops.sub), (invstd, ops.mul), (weight, ops.mul), (bias, ops.add)):
        y = y if value is None else apply(y, ops.reshape(value, shape))
    return y.astype(input.dtype)


def _channels_first(x: Tensor) -> tuple[int, ...]:
    return (1, 0, *range(2, x.ndim))


__all__ = _public_names(globals())

_guard_module(globals(), "mint")
