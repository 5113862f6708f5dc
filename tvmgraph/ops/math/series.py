"""Differences and integrals along an axis, covariances, and clipping by norm."""

from __future__ import annotations

from typing import Any

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import AxisLike
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import as_int, bad, describe, require

__all__ = ["bidense", "clip_by_global_norm", "clip_by_norm", "cov", "diff", "trapz"]


def _neighbours(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """All but the first and all but the last element along an axis."""
    before = (slice(None),) * axis
    return x[(*before, slice(1, None))], x[(*before, slice(None, -1))]


def _axis(axis: AxisLike, x: Tensor, op: str) -> int:
    try:
        return rules.normalize_axis(axis, x.ndim)
    except (ArgumentError, DTypeError) as e:
        raise e.locate(f"ops.{op}", str(describe(x=x, axis=axis)), "") from None


def diff(
    x: Tensor, n: int = 1, axis: int = -1, prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:  # fmt: skip
    r"""Differences of neighbours along an axis: :math:`out_i = x_{i+1} - x_i`, n times over.

    Args:
        x: Tensor with at least one axis.
        n: How often to take differences.
        axis: The axis.
        prepend: Tensor to put in front of ``x`` along the axis first.
        append: Tensor to put behind it.

    Returns:
        Tensor with n elements less along the axis; bool gives differences of int64.

    Raises:
        ArgumentError: if ``n`` is negative or exceeds what the axis holds.
        ShapeError: if ``x`` is 0-d, or what is put around it does not fit.

    Example:
        >>> ops.diff(Tensor([1, 3, 2]))
        Tensor(shape=[2], dtype=Int64, value= [ 2, -1])
    """
    n = as_int(n, "diff", "n")
    require(x.ndim != 0, "x must have at least one axis", "diff", x=x)
    axis = _axis(axis, x, "diff")
    parts = [p for p in (prepend, x, append) if p is not None]
    y = F.concat(parts, axis) if len(parts) > 1 else x
    if n < 0 or -1 < y.shape[axis] < n:  # a symbolic size reads -1
        rule = f"n must lie between 0 and the axis' {y.shape[axis]} elements, not {n}"
        raise bad(ArgumentError, rule, "diff", describe(x=x, axis=axis))
    return _differences(y, n, axis)


@fusible
def _differences(y: Tensor, n: int, axis: int) -> Tensor:
    for _ in range(n):
        later, earlier = _neighbours(y, axis)
        y = F.not_equal(later, earlier) if y.dtype.kind == "b" else later - earlier
    return y


def trapz(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    r"""Integral along an axis by the trapezoidal rule.

    .. math::
        out = \sum_i \frac{y_{i+1} + y_i}{2} (x_{i+1} - x_i)

    Args:
        y: Tensor of values, with at least one axis.
        x: Where they lie: of ``y``'s shape, or one number per element of the axis.
        dx: Their distance where ``x`` is not given.
        dim: The axis.

    Returns:
        Tensor without the axis: of float16 without ``x`` float16, of other reals float32.

    Raises:
        ShapeError: if ``y`` is 0-d or ``x`` does not fit.

    Example:
        >>> ops.trapz(Tensor([1.0, 2.0, 3.0]))
        Tensor(shape=[], dtype=Float32, value= 4)
    """
    require(y.ndim != 0, "y must have at least one axis", "trapz", y=y)
    axis = _axis(dim, y, "trapz")
    half = y.dtype is dtypes.float16 and x is None
    y = y if half or y.dtype.kind == "c" else F.cast(y, dtypes.float32)
    x = F.cast(x, y.dtype) if x is not None and x.dtype.is_float else x
    return F.sum(y, axis) if y.shape[axis] == 0 else _area(y, x, dx, axis)


@fusible
def _area(y: Tensor, x: Tensor | None, dx: float, axis: int) -> Tensor:
    later, earlier = _neighbours(y, axis)
    heights = (later + earlier) * 0.5
    if x is None:
        return F.sum(heights, axis) * dx
    if x.ndim == 1:
        shape = [1] * y.ndim
        shape[axis] = -1
        x = F.reshape(x, tuple(shape))
    last, first = _neighbours(x, axis if x.ndim == y.ndim else axis - y.ndim + x.ndim)  # pyright: ignore[reportArgumentType, reportOptionalMemberAccess]
    return F.sum(heights * (last - first), axis)


def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:  # fmt: skip
    r"""Covariance matrix of the rows of a matrix, whose columns are observations.

    .. math::
        c_{ij} = \frac{\sum_k w_k (x_{ik} - \mu_i)(x_{jk} - \mu_j)}{W - correction}

    where :math:`\mu` are the weighted means and W is the sum of the weights; with ``aweights`` the
    correction is scaled by :math:`\sum_k w_k a_k / W`.

    Args:
        input: Tensor of shape (variables, observations), (observations,) or ().
        correction: What is taken from the number of observations: 1 for the unbiased estimate.
        fweights: How often every observation counts, integers of shape (observations,).
        aweights: Importance of every observation, floats of that shape.

    Returns:
        Tensor of shape (variables, variables), 0-d for one variable; float32 where ``input`` is
        of lower precision or holds integers.

    Raises:
        ShapeError: if ``input`` has more than two axes.

    Example:
        >>> ops.cov(Tensor([[0.0, 5.0, 7.0], [3.0, 5.0, 0.0]]))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 1.30000000e+01, -3.50000000e+00],
         [-3.50000000e+00,  6.33333349e+00]])
    """
    require(input.ndim <= 2, f"input must have at most 2 axes, not {input.ndim}", "cov",
            input=input)  # fmt: skip
    wide = input.dtype is dtypes.float64 or input.dtype.kind == "c"
    x = input if wide else F.cast(input, dtypes.float32)
    rows = F.reshape(x, (-1, x.shape[-1] if x.ndim else 1)) if x.ndim < 2 else x
    given = [F.cast(w, x.dtype).reshape((-1,)) for w in (fweights, aweights) if w is not None]
    if not given:
        centered = rows - F.mean(rows, 1, True)
        products = F.matmul(centered, F.conj(centered), transpose_b=True)
        result = products / max(rows.shape[1] - correction, 0)
    else:
        w = given[0] if len(given) == 1 else given[0] * given[1]
        total = F.sum(w)
        centered = rows - F.sum(rows * w, 1, keepdim=True) / total
        taken = correction if aweights is None else correction * F.sum(w * given[-1]) / total
        products = F.matmul(centered * w, F.conj(centered), transpose_b=True)
        result = products / F.maximum(total - taken, 0)
    return result if input.ndim == 2 and rows.shape[0] > 1 else F.reshape(result, ())


def bidense(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    r"""Bilinear form per output channel: :math:`out_o = x_1^T W_o x_2 + b_o`.

    Args:
        input1: Tensor of shape ``(*, in1_channels)``.
        input2: Tensor of shape ``(*, in2_channels)`` with the same leading axes.
        weight: Tensor of shape (out_channels, in1_channels, in2_channels).
        bias: Tensor of shape (out_channels,) or ().

    Returns:
        Tensor of shape ``(*, out_channels)``.

    Raises:
        ShapeError: if the sizes do not fit.

    Example:
        >>> ops.bidense(Tensor([[1.0, 2.0]]), Tensor([[3.0]]), Tensor([[[1.0], [1.0]]]))
        Tensor(shape=[1, 1], dtype=Float32, value=
        [[ 9.00000000e+00]])
    """
    if weight.ndim != 3 or input1.shape[:-1] != input2.shape[:-1] or weight.shape[1:] != (
        input1.shape[-1], input2.shape[-1]
    ):  # fmt: skip
        raise bad(
            ShapeError, "weight must be (out, in1, in2) and the inputs (*, in1) and (*, in2)",
            "bidense", describe(input1=input1, input2=input2, weight=weight),
        )  # fmt: skip
    lead = input1.shape[:-1]
    a, b = (F.reshape(x, (-1, x.shape[-1])) for x in (input1, input2))
    columns = F.reshape(F.permute(weight, (1, 0, 2)), (a.shape[-1], -1))
    rows = F.reshape(F.matmul(a, columns), (-1, weight.shape[0], b.shape[-1]))
    y = F.reshape(F.sum(rows * F.expand_dims(b, 1), -1), (*lead, weight.shape[0]))
    return y if bias is None else y + bias


# ---- clipping ------------------------------------------------------------------------------------


def clip_by_norm(
    x: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Any:
    r"""Scales tensors down so that the norm of all their elements is at most ``max_norm``.

    .. math::
        out = x \cdot \min(1, \frac{max\_norm}{\lVert x \rVert + 10^{-6}})

    Args:
        x: A float tensor, or a list or tuple of them.
        max_norm: The largest norm.
        norm_type: The order of the norm; infinity for the largest magnitude.
        error_if_nonfinite: Whether a norm that is infinite or NaN is an error (eager code only).

    Returns:
        Tensor, or tuple of tensors, of the same types.

    Raises:
        ArgumentError: if the norm is not finite and ``error_if_nonfinite`` is set.

    Example:
        >>> ops.clip_by_norm(Tensor([3.0, 4.0]), 1.0)
        Tensor(shape=[2], dtype=Float32, value= [ 5.99999905e-01,  7.99999833e-01])
    """
    tensors = [x] if isinstance(x, Tensor) else list(x)
    if not tensors:
        return x
    norms = F.stack([F.norm(F.reshape(t, (-1,)), norm_type) for t in tensors])
    total = F.norm(norms, norm_type)
    if error_if_nonfinite and not bool(F.isfinite(total)):
        raise bad(ArgumentError, f"the norm is {total.item()}", "clip_by_norm", describe(x=x))
    scale = F.minimum(max_norm / (total + 1e-6), 1.0)
    scaled = [t * scale for t in tensors]
    clipped = [F.cast(y, t.dtype) if t.dtype.is_float else y for y, t in zip(scaled, tensors)]
    return clipped[0] if isinstance(x, Tensor) else tuple(clipped)


def clip_by_global_norm(
    x: Any, clip_norm: float = 1.0, use_norm: None = None
) -> Tensor | tuple[Tensor, ...]:
    r"""Scales a group of tensors by one factor so that their joint norm is at most ``clip_norm``.

    .. math::
        out = x \cdot \frac{clip\_norm}{\max(\lVert x \rVert_2, clip\_norm)}

    Args:
        x: Tuple or list of float tensors, or a single one.
        clip_norm: The largest norm, greater than 0.
        use_norm: Only ``None``.

    Returns:
        Tuple of tensors of the same types; a tensor for a single one.

    Raises:
        ArgumentError: if ``clip_norm`` is not positive, or ``use_norm`` is given.

    Example:
        >>> ops.clip_by_global_norm((Tensor([3.0]), Tensor([4.0])), 1.0)
        (Tensor(shape=[1], dtype=Float32, value= [ 6.00000024e-01]), Tensor(shape=[1],
         dtype=Float32, value= [ 8.00000012e-01]))
    """
    if use_norm is not None or not clip_norm > 0:
        raise bad(ArgumentError, "clip_norm must be positive and use_norm None",
                  "clip_by_global_norm", f"clip_norm={clip_norm}, use_norm={use_norm}")  # fmt: skip
    tensors = (x,) if isinstance(x, Tensor) else tuple(x)
    squares = [F.sum(F.square(F.cast(t, dtypes.float32))) for t in tensors]
    if not tensors:
        return ()
    total = F.sqrt(F.addn(squares))
    factor = clip_norm / F.maximum(total, clip_norm)
    clipped = tuple(F.cast(t * factor, t.dtype) for t in tensors)
    return clipped[0] if isinstance(x, Tensor) else clipped
