"""Arithmetic, comparisons and reductions with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

from tvmgraph import ops
from tvmgraph.core.arguments import AxisLike, DTypeLike, PerAxis
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import promote
from tvmgraph.ops.common.arguments import require_tensor
from tvmgraph.ops.reduction.histogram import bin_sums


def _times(alpha: NumberLike, other: Any, input: object) -> object:
    """Returns ``alpha * other`` in the dtype that ``other`` has in a sum with ``input``."""
    if alpha == 1:
        return other
    if isinstance(input, Tensor) and isinstance(other, Tensor):
        other = ops.cast(other, promote(input.dtype, other.dtype))
    return alpha * other


def add(input: object, other: object, *, alpha: NumberLike = 1) -> Tensor:
    """Returns ``input + alpha * other``."""
    return ops.add(input, _times(alpha, other, input))


def sub(input: object, other: object, *, alpha: NumberLike = 1) -> Tensor:
    """Returns ``input - alpha * other``."""
    return ops.sub(input, _times(alpha, other, input))


def sqrt(input: Tensor) -> Tensor:
    """Returns the square root."""
    return ops.sqrt(input)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Returns int64 counts of the integers from 0 on, or sums of ``weights``."""
    return bin_sums(input, weights, minlength)


def frac(input: Tensor) -> Tensor:
    """Returns the fractional part, with the sign of ``input``."""
    return ops.frac(input)


def isnan(tensor: Tensor) -> Tensor:
    """Returns where elements are NaN."""
    return ops.isnan(tensor)


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Returns the matrix product, broadcast over leading axes."""
    return ops.matmul(input, other)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Returns the matrix products of two batches of shape [B, M, K] and [B, K, N]."""
    return ops.bmm(input, mat2)


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Returns the product of a matrix and a vector."""
    return ops.mv(input, vec)


def dot(input: Tensor, other: Tensor) -> Tensor:
    """Returns the inner product of two vectors."""
    return ops.matmul(input, other)


def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Returns the inner product of two vectors, the first one conjugated."""
    return dot(ops.conj(input) if input.dtype.kind == "c" else input, other)


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements."""
    require_tensor("equal", input)
    require_tensor("equal", other, "other")
    return tuple(input.shape) == tuple(other.shape) and bool(ops.equal(input, other).all())


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08,
             equal_nan: bool = False) -> bool:  # fmt: skip
    """Whether ``|input - other| <= atol + rtol * |other|`` everywhere."""
    return bool(ops.isclose(input, other, rtol, atol, equal_nan).all())


def all(input: Tensor, dim: AxisLike | None = None, keepdim: bool = False) -> Tensor:
    """Returns whether all elements along ``dim`` are true."""
    return ops.all(input, dim, keepdim)


def any(input: Tensor, dim: AxisLike | None = None, keepdim: bool = False) -> Tensor:
    """Returns whether any element along ``dim`` is true."""
    return ops.any(input, dim, keepdim)


def amax(input: Tensor, dim: AxisLike = (), keepdim: bool = False) -> Tensor:
    """Returns the maximum over one or several axes; over all of them by default."""
    return ops.amax(input, None if dim == () else dim, keepdim)


def amin(input: Tensor, dim: AxisLike = (), keepdim: bool = False) -> Tensor:
    """Returns the minimum over one or several axes; over all of them by default."""
    return ops.amin(input, None if dim == () else dim, keepdim)


def max(input: Tensor, dim: AxisLike | None = None, keepdim: bool = False) -> Any:
    """Returns the maximum; with an axis ``(values, indices)``; or of two tensors."""
    if isinstance(dim, Tensor):
        return ops.maximum(input, dim)
    return ops.amax(input) if dim is None else ops.max(input, dim, keepdim)


def min(input: Tensor, dim: AxisLike | None = None, keepdim: bool = False) -> Any:
    """Returns the minimum; with an axis ``(values, indices)``; or of two tensors."""
    if isinstance(dim, Tensor):
        return ops.minimum(input, dim)
    return ops.amin(input) if dim is None else ops.min(input, dim, keepdim)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Returns the int64 index of the minimum."""
    return ops.argmin(input, dim, keepdim).astype("int64")


def mean(
    input: Tensor,
    dim: AxisLike | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Returns the mean over axes."""
    return ops.mean(input if dtype is None else ops.cast(input, dtype), dim, keepdim)


def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Returns the lower median, and with an axis ``(values, indices)``."""
    if dim is None:
        return ops.median(ops.flatten(input, start_dim=0), 0)[0]
    return ops.median(input, dim, keepdim)


def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *,
         dtype: DTypeLike | None = None) -> Tensor:  # fmt: skip
    """Returns the product over an axis."""
    return ops.prod(input, dim, keepdim, dtype)


def nansum(
    input: Tensor,
    dim: AxisLike | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Returns the sum of what is not NaN."""
    return ops.nansum(input, dim, keepdim, dtype=dtype)


def var(
    input: Tensor, dim: AxisLike | None = None, *, correction: int = 1, keepdim: bool = False
) -> Tensor:
    """Returns the variance ``sum((x - mean)^2) / (n - correction)``."""
    return ops.var(input, dim, correction, keepdim)


def std(
    input: Tensor, dim: AxisLike | None = None, *, correction: int = 1, keepdim: bool = False
) -> Tensor:
    """Returns the square root of :func:`var`."""
    return ops.std(input, dim, correction, keepdim)


def var_mean(input: Tensor, dim: AxisLike | None = None, *, correction: int = 1,
             keepdim: bool = False) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Returns variance and mean."""
    return ops.var_mean(input, dim, correction, keepdim)


def std_mean(input: Tensor, dim: AxisLike | None = None, *, correction: int = 1,
             keepdim: bool = False) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Returns standard deviation and mean."""
    return ops.std_mean(input, dim, correction, keepdim)


def norm(input: Tensor, p: object = "fro", dim: AxisLike | None = None, keepdim: bool = False, *,
         dtype: DTypeLike | None = None) -> Tensor:  # fmt: skip
    """Returns the p-norm of the elements over axes; ``"fro"`` is the 2-norm."""
    x = input if dim is not None else ops.flatten(input, start_dim=0)
    found = ops.norm(x, 2 if p == "fro" else p, dim=0 if dim is None else dim,
                     keepdim=keepdim and dim is not None, dtype=dtype)  # fmt: skip
    return ops.reshape(found, (1,) * input.ndim) if keepdim and dim is None else found


def count_nonzero(input: Tensor, dim: AxisLike | None = None) -> Tensor:
    """Returns the int64 number of elements that are not zero."""
    return ops.count_nonzero(input, () if dim is None else dim).astype("int64")


def cumsum(input: Tensor, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the running sum along an axis."""
    return ops.cumsum(input, dim, dtype)


def cummax(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Returns the running maximum along an axis and its int64 indices."""
    values, indices = ops.cummax(input, dim)
    return values, indices.astype("int64")


def cummin(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Returns the running minimum along an axis and its int64 indices."""
    values, indices = ops.cummin(input, dim)
    return values, indices.astype("int64")


def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:  # fmt: skip
    """Returns the n-th difference of neighbours along an axis."""
    return ops.diff(input, n, dim, prepend, append)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0,
          compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:  # fmt: skip
    """Returns the p-norm distances of all pairs of rows; every mode computes the same."""
    return ops.cdist(x1, x2, p)


def softmax(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the softmax along an axis."""
    return ops.softmax(input, dim, dtype=dtype)


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True,
         sorted: bool = True) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Returns the k largest (or smallest) elements along an axis and their int64 indices."""
    values, indices = ops.topk(input, k, dim, largest, sorted)
    return values, indices.astype("int64")


def sort(input: Tensor, *, dim: int = -1, descending: bool = False,
         stable: bool = False) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Returns the sorted elements and their int64 indices; the order of equals is kept."""
    values, indices = ops.sort(input, dim, descending)
    return values, indices.astype("int64")


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Returns the int64 indices that sort along an axis."""
    return ops.argsort(input, dim, descending).astype("int64")


def where(condition: Tensor, input: object = None, other: object = None) -> Any:
    """Returns ``input`` where the condition holds, else ``other``; alone, the indices where."""
    if input is None and other is None:
        return ops.nonzero(condition, as_tuple=True)
    return ops.where(condition, input, other)


def item(input: Tensor) -> Any:
    """Returns the only element as a Python number."""
    return input.item()


def addr_(
    input: Tensor, vec1: Tensor, vec2: Tensor, beta: NumberLike = 1, alpha: NumberLike = 1
) -> Tensor:
    """Writes ``beta * input + alpha * outer(vec1, vec2)`` into ``input`` and returns it."""
    input[...] = ops.addr(input, vec1, vec2, beta=beta, alpha=alpha)
    return input


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
           padding: object = 0, dilation: PerAxis = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """Convolves images; see :func:`mint.nn.functional.conv2d`."""
    from tvmgraph.compat.mint.nn import functional

    return functional.conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolves signals [T, N, C] with weights [K, C, O]: [T', N, O]."""
    x, w = ops.permute(input, (1, 2, 0)), ops.permute(weight, (2, 1, 0))
    return ops.permute(ops.conv1d(x, w, bias, 1, "pad", pad), (2, 0, 1))


def batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Returns the mean of every channel (axis 1), and one by its deviation, in float32."""
    x = ops.reshape(ops.transpose(input.astype("float32"), _channels_first(input)),
                    (input.shape[1], -1))  # fmt: skip
    mean = ops.mean(x, 1)
    return mean, ops.rsqrt(ops.mean(ops.square(x - ops.expand_dims(mean, 1)), 1) + eps)


def batch_norm_elemt(
    input: Tensor, weight: Tensor | None = None, bias: Tensor | None = None,
    mean: Tensor | None = None, invstd: Tensor | None = None, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """Normalises every channel (axis 1); ``invstd`` contains ``eps``, which is ignored."""
    shape = (1, -1, *(1,) * (input.ndim - 2))
    y = input.astype("float32")
    for value, apply in ((mean, ops.sub), (invstd, ops.mul), (weight, ops.mul), (bias, ops.add)):
        y = y if value is None else apply(y, ops.reshape(value, shape))
    return y.astype(input.dtype)


def _channels_first(x: Tensor) -> tuple[int, ...]:
    return (1, 0, *range(2, x.ndim))


__all__ = [
    "add", "addr_", "all", "allclose", "amax", "amin", "any", "argmin", "argsort",
    "batch_norm_elemt", "batch_norm_stats", "bincount", "bmm", "cdist", "conv2d", "conv_tbc",
    "count_nonzero", "cummax", "cummin", "cumsum", "diff", "dot", "equal", "frac", "isnan",
    "item", "matmul", "max", "mean", "median", "min", "mv", "nansum", "norm", "prod", "softmax",
    "sort", "sqrt", "std", "std_mean", "sub", "topk", "var", "var_mean", "vdot", "where",
]  # fmt: skip

_guard_module(globals(), "mint")
