"""MindSpore's normalization functions, and their rows.

Rows (layers, groups, instances) are normalized to mean 0 and variance 1 in one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Attrs, AxisLike
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F, sample
from tvmgraph.core.precision import precise
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Layout, Pattern, Traits, equation, letters
from tvmgraph.core.types import Shape, TensorType
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, TvmgraphError, user_source
from tvmgraph.ops.common.arguments import bad, require
from tvmgraph.ops.common.rows import wide_dtype, widen, widened
from tvmgraph.ops.common.window import Point, ints

__all__ = [
    "batch_norm", "group_norm", "l2_normalize", "layer_norm", "lrn", "rms_norm", "row_normalize",
    "row_normalize_grad",
]  # fmt: skip


def _infer_rows(
    x: TensorType, *rest: TensorType, count: int, eps: float, center: bool
) -> TensorType:
    rules.require_dtype(x, dtypes.FLOATS)
    rules.require_same_dtype(x, *rest)
    if not 1 <= count <= x.ndim:
        raise ShapeError(f"{count} axes cannot be normalized of a tensor with {x.ndim} axes")
    rules.kernel_sizes(x, x.ndim - count)  # raises where it needs them
    if any(t.shape != x.shape for t in rest):
        raise ShapeError("all operands must have the same shape")
    return x


def _statistics(
    x: np.ndarray, count: int, eps: float, center: bool
) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
    """Returns axes, centered elements and reciprocal deviations; two passes, so nothing cancels."""
    axes = tuple(range(x.ndim - count, x.ndim))
    centered = x - np.mean(x, axis=axes, keepdims=True) if center else x
    spread = np.mean(centered * centered, axis=axes, keepdims=True)
    return axes, centered, 1 / np.sqrt(spread + x.dtype.type(eps))


def _numpy_rows(x: np.ndarray, *, count: int, eps: float, center: bool) -> np.ndarray:
    if x.size == 0:
        return x
    _, centered, rstd = _statistics(widen(x), count, eps, center)
    return (centered * rstd).astype(x.dtype, copy=False)


def _te_statistics(
    R: Builder, x: Expr, eps: float, center: bool, wide: str
) -> tuple[Expr | None, Expr]:
    """TE: mean and reciprocal deviation of the last axis, accumulated in ``wide``."""
    lead, size = tuple(x.shape[:-1]), x.shape[-1]
    number = R.tir.const(int(size), wide)

    def mean_of(element: Callable[[Point, Expr], Expr], name: str) -> Expr:
        k = R.te.reduce_axis((0, size), name="k")
        total = R.te.compute(lead, lambda *i: R.te.sum(element(i, k), axis=k), name=name)
        return R.te.compute(lead, lambda *i: total[i] / number, name=f"{name}_mean")

    mean = mean_of(lambda i, k: x[(*i, k)].astype(wide), "total") if center else None

    def square(i: Point, k: Expr) -> Expr:
        value = x[(*i, k)].astype(wide)
        value = value if mean is None else value - mean[i]
        return value * value

    spread = mean_of(square, "squares")
    rstd = R.te.compute(
        lead, lambda *i: R.tir.const(1, wide) / R.tir.sqrt(spread[i] + R.tir.const(eps, wide)),
        name="rstd",
    )  # fmt: skip
    return mean, rstd


def _on_rows(R: Builder, compute: Callable[..., Expr], name: str, count: int, *exprs: Expr) -> Expr:
    """Runs a kernel on tensors whose normalized axes are merged into one."""
    t = R.type(exprs[0])
    if t.is_static and t.size == 0:
        return exprs[0]
    rows = (*t.shape[: t.ndim - count], prod(t.shape[t.ndim - count :]))  # pyright: ignore
    merged = [e if count == 1 else R.emit(R.op.reshape(e, R.shape(rows))) for e in exprs]
    y = R.emit_te(compute, *merged, primfunc_name_hint=name)
    return y if count == 1 else R.op.reshape(y, R.shape(t.shape))


def _lower_rows(R: Builder, x: Expr, *, count: int, eps: float, center: bool) -> Expr:
    wide = wide_dtype(R.type(x).dtype).name

    def compute(data: Expr) -> Expr:
        mean, rstd = _te_statistics(R, data, eps, center, wide)

        def element(*i: Expr) -> Expr:
            value = data[i].astype(wide)
            value = value if mean is None else value - mean[i[:-1]]
            return (value * rstd[i[:-1]]).astype(data.dtype)

        return R.te.compute(data.shape, element, name="normalized")

    return _on_rows(R, compute, "row_normalize", count, x)


def _onnx_rows(O: OnnxOps, x: OnnxNamed, *, count: int, eps: float, center: bool) -> OnnxNamed:
    t = x.type
    if center and t.dtype is not dtypes.float16:
        scale = O.full(t.shape[t.ndim - count :], 1, t.dtype)
        return O.LayerNormalization(x, scale, axis=-count, epsilon=eps)
    wide = wide_dtype(t.dtype)
    x = O.Cast(x, to=O.dtype(wide))
    centered, rstd = _onnx_statistics(O, x, count, eps, center, wide)
    return O.Cast(O.Mul(centered, rstd), to=O.dtype(t.dtype))


def _onnx_statistics(
    O: OnnxOps, x: OnnxNamed, count: int, eps: float, center: bool, wide: dtypes.DType
) -> tuple[OnnxNamed, OnnxNamed]:
    axes = np.arange(-count, 0)
    centered = O.Sub(x, O.ReduceMean(x, axes)) if center else x
    spread = O.ReduceMean(O.Mul(centered, centered), axes)
    return centered, O.Reciprocal(O.Sqrt(O.Add(spread, O.const(eps, wide))))


_SAMPLES = [
    sample((3, 5), count=1, eps=1e-5, center=True),
    sample((2, 3, 4), count=2, eps=1e-3, center=True),
    sample((2, 3, 4), count=1, eps=1e-6, center=False),
    sample((7,), count=1, eps=1e-5, center=True),
    sample((2, 17, 33), count=2, eps=1e-5, center=True, grad=False),
    sample((3, 300), count=1, eps=1e-5, center=True, low=1000, high=1001, rtol=1e-3, grad=False),
    sample((0, 4), count=1, eps=1e-5, center=True, grad=False),
    sample((3, 40), count=1, eps=1e-5, center=False, dtype="float16", low=100, high=300,
           grad=False),
    sample((3, 40), count=1, eps=1e-5, center=True, dtype="float16", low=-300, high=300,
           grad=False),
    sample((4, 3), count=1, eps=1e-5, center=True, dtype="float64"),
    sample((4, 3), count=3, eps=1e-5, center=True, raises=ShapeError),
    sample((4, 3), count=1, eps=1e-5, center=True, dtype="int32", raises=DTypeError),
]  # fmt: skip


def _row_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """All but the axes that are normalized."""
    ndim, count = types[0].ndim, attrs["count"]
    words = [*letters(ndim - count), *["."] * count]
    return equation([words] * len(types), [words])


@precise
@primitive(
    infer=_infer_rows,
    traits=Traits(Pattern.OPAQUE, _row_factors, layout=Layout.ROWS),
    eager=_numpy_rows,
    lower=_lower_rows,
    vjp=lambda g, y, x, **attrs: (F.row_normalize_grad(g, x, y, **attrs),),
    onnx=_onnx_rows,
    samples=_SAMPLES,
)
def row_normalize(x: Tensor, count: int, eps: float, center: bool) -> Tensor:
    r"""Normalizes the last ``count`` axes: :math:`y = (x - E[x]) / \sqrt{Var[x] + eps}`.

    Args:
        x: Tensor with at least ``count`` axes, a float dtype; half precision is computed in
            float32.
        count: Number of trailing axes over which the statistics run.
        eps: Added to the variance.
        center: Whether the mean is subtracted; otherwise :math:`y = x / \sqrt{E[x^2] + eps}`.

    Returns:
        Tensor of ``x``'s shape and dtype.

    Raises:
        ShapeError: if ``x`` has fewer than ``count`` axes.

    Example:
        >>> ops.row_normalize(Tensor([[1.0, 3.0]]), 1, 1e-5, True)
        Tensor(shape=[1, 2], dtype=Float32, value=
        [[-9.99994993e-01,  9.99994993e-01]])
    """
    ...


# ---- gradient ---------------------------------------------------------------------------------


def _numpy_rows_grad(
    g: np.ndarray, x: np.ndarray, y: np.ndarray, *, count: int, eps: float, center: bool
) -> np.ndarray:
    if x.size == 0:
        return x
    g, wide, y, dtype = widen(g), widen(x), widen(y), x.dtype
    axes, _, rstd = _statistics(wide, count, eps, center)
    inner = g - y * np.mean(g * y, axis=axes, keepdims=True)
    if center:
        inner -= np.mean(g, axis=axes, keepdims=True)
    return (inner * rstd).astype(dtype, copy=False)


def _lower_rows_grad(
    R: Builder, g: Expr, x: Expr, y: Expr, *, count: int, eps: float, center: bool
) -> Expr:
    wide = wide_dtype(R.type(x).dtype).name

    def compute(grad: Expr, data: Expr, out: Expr) -> Expr:
        _, rstd = _te_statistics(R, data, eps, center, wide)
        lead, size = tuple(data.shape[:-1]), data.shape[-1]
        number = R.tir.const(int(size), wide)

        def total(element: Callable[[Point], Expr], name: str) -> Expr:
            k = R.te.reduce_axis((0, size), name="k")
            return R.te.compute(lead, lambda *i: R.te.sum(element((*i, k)), axis=k), name=name)

        along = total(lambda i: grad[i].astype(wide) * out[i].astype(wide), "along")
        sums = total(lambda i: grad[i].astype(wide), "sums") if center else None

        def element(*i: Expr) -> Expr:
            row = i[:-1]
            value = grad[i].astype(wide) - out[i].astype(wide) * (along[row] / number)
            value = value if sums is None else value - sums[row] / number
            return (value * rstd[row]).astype(data.dtype)

        return R.te.compute(data.shape, element, name="row_normalize_grad")

    return _on_rows(R, compute, "row_normalize_grad", count, g, x, y)


def _onnx_rows_grad(
    O: OnnxOps, g: OnnxNamed, x: OnnxNamed, y: OnnxNamed, *, count: int, eps: float, center: bool
) -> OnnxNamed:
    dtype = x.type.dtype
    wide = wide_dtype(dtype)
    g, x, y = (O.Cast(v, to=O.dtype(wide)) for v in (g, x, y))
    _, rstd = _onnx_statistics(O, x, count, eps, center, wide)
    axes = np.arange(-count, 0)
    inner = O.Sub(g, O.Mul(y, O.ReduceMean(O.Mul(g, y), axes)))
    inner = O.Sub(inner, O.ReduceMean(g, axes)) if center else inner
    return O.Cast(O.Mul(inner, rstd), to=O.dtype(dtype))


def _vjp_rows_grad(
    c: Tensor, dx: Tensor, g: Tensor, x: Tensor, y: Tensor, *, count: int, eps: float, center: bool
) -> tuple[Tensor, Tensor, Tensor]:
    axes = tuple(range(x.ndim - count, x.ndim))

    def mean(v: Tensor) -> Tensor:
        return F.reduce_mean(v, axis=axes, keep_dims=True)

    centered = x - mean(x) if center else x
    rstd = F.rsqrt(mean(centered * centered) + eps)
    along = mean(g * y)
    inner = g - y * along - mean(g) if center else g - y * along
    to_g = F.row_normalize_grad(c, x, y, count=count, eps=eps, center=center)
    to_y = -rstd * (c * along + g * mean(c * y))
    # rstd depends on x: its derivative is -rstd^2 * y / n, where y is recomputed from x
    to_x = -rstd * rstd * rstd * centered * mean(c * inner)
    return to_g, to_x, to_y


@primitive(
    infer=_infer_rows,
    traits=Traits(Pattern.OPAQUE, _row_factors),
    eager=_numpy_rows_grad,
    lower=_lower_rows_grad,
    vjp=_vjp_rows_grad,
    onnx=_onnx_rows_grad,
    samples=[
        sample((3, 5), (3, 5), (3, 5), count=1, eps=1e-2, center=True),
        sample((2, 3, 4), (2, 3, 4), (2, 3, 4), count=2, eps=1e-2, center=True),
        sample((2, 3, 4), (2, 3, 4), (2, 3, 4), count=1, eps=1e-2, center=False),
        sample((2, 17, 33), (2, 17, 33), (2, 17, 33), count=1, eps=1e-5, center=True, grad=False),
        sample((0, 4), (0, 4), (0, 4), count=1, eps=1e-5, center=True, grad=False),
        sample((3, 8), (3, 8), (3, 8), count=1, eps=1e-5, center=True, dtype="float16",
               grad=False),
        sample((3, 5), (3, 5), (3, 4), count=1, eps=1e-2, center=True, raises=ShapeError),
    ],
)  # fmt: skip
def row_normalize_grad(
    grad: Tensor, x: Tensor, y: Tensor, count: int, eps: float, center: bool
) -> Tensor:
    r"""Cotangent of :func:`row_normalize`'s input: :math:`r (g - E[g] - y E[g y])`.

    Args:
        grad: Cotangent of the output.
        x: The input.
        y: The output.
        count: As in :func:`row_normalize`.
        eps: As in :func:`row_normalize`.
        center: As in :func:`row_normalize`; without it the term :math:`E[g]` is missing.

    Returns:
        Tensor of ``x``'s shape and dtype.

    Raises:
        ShapeError: if the shapes differ.
    """
    ...


# ---- functions ----------------------------------------------------------------------------------


def _affine(y: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Shape) -> Tensor:
    """Scales and shifts; the result keeps the dtype of ``y``."""
    dtype = y.dtype
    if weight is not None:
        y = y * F.reshape(weight, shape)
    if bias is not None:
        y = y + F.reshape(bias, shape)
    return F.cast(y, dtype)


def _require_shape(t: Tensor | None, shape: Shape, name: str, op: str) -> None:
    if t is not None and t.aval.shape != tuple(shape):
        raise bad(
            ShapeError, f"{name} must have shape [{','.join(map(str, shape))}]", op,
            f"{name}={t.aval}",
        )  # fmt: skip


def _require_channels(x: Tensor, op: str) -> int:
    channels = x.aval.shape[1] if x.ndim > 1 else None
    if not isinstance(channels, int):
        raise bad(ShapeError, "the input must have a static channel axis", op, f"input={x.aval}")
    return channels


# ---- batch ------------------------------------------------------------------------------------


@precise
def batch_norm(
    input_x: Tensor, running_mean: Tensor, running_var: Tensor, weight: Tensor | None,
    bias: Tensor | None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    r"""Normalizes every channel: :math:`y = (x - mean) / \sqrt{var + eps} \cdot weight + bias`.

    Args:
        input_x: Tensor of shape :math:`(N, C, *)`, a float dtype.
        running_mean: Mean of every channel, :math:`(C,)`; updated in place in training.
        running_var: Variance of every channel, :math:`(C,)`; updated in place in training.
        weight: Scale of every channel, :math:`(C,)`, or ``None``.
        bias: Shift of every channel, :math:`(C,)`, or ``None``.
        training: Whether mean and variance are those of the batch.
        momentum: Share of the batch in the new running statistics, whose variance is unbiased.
        eps: Added to the variance.

    Returns:
        Tensor of ``input_x``'s shape and dtype.

    Raises:
        ShapeError: if a statistic or parameter does not have shape :math:`(C,)`.
        ArgumentError: if ``momentum`` lies outside [0, 1].

    Example:
        >>> x, c = ops.ones((2, 3)), ops.ones((3,))
        >>> ops.batch_norm(x, c, c, c, c)
        Tensor(shape=[2, 3], dtype=Float32, value=
        [[ 1.00000000e+00,  1.00000000e+00,  1.00000000e+00],
         [ 1.00000000e+00,  1.00000000e+00,  1.00000000e+00]])
    """
    op = "batch_norm"
    channels = _require_channels(input_x, op)
    named = {"running_mean": running_mean, "running_var": running_var, "weight": weight,
             "bias": bias}  # fmt: skip
    for name, t in named.items():
        _require_shape(t, (channels,), name, op)
    require(0 <= momentum <= 1, "momentum must lie in [0, 1]", op, ArgumentError, momentum=momentum)
    shape = (channels, *(1,) * (input_x.ndim - 2))
    x = widened(input_x)
    if training:
        y, mean, variance = _batch_statistics(x, weight, bias, float(eps), shape)
        for state, seen in ((running_mean, mean), (running_var, variance)):
            flat = F.stop_gradient(F.cast(F.reshape(seen, state.shape), state.dtype))
            state.rebind(F.cast(state * (1 - momentum) + flat * momentum, state.dtype))
    else:
        y = _fixed_statistics(x, running_mean, running_var, weight, bias, eps)
    return F.cast(y, input_x.dtype)


@fusible
def _fixed_statistics(
    x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor | None, bias: Tensor | None,
    eps: float,
) -> Tensor:  # fmt: skip
    """Returns ``x * scale + shift``: one multiply-add per element, the rest per channel."""
    shape = (x.shape[1], *(1,) * (x.ndim - 2))
    scale = F.rsqrt(widened(variance) + eps)
    if weight is not None:
        scale = scale * widened(weight)
    shift = -widened(mean) * scale
    if bias is not None:
        shift = shift + widened(bias)
    return x * F.reshape(scale, shape) + F.reshape(shift, shape)


@fusible
def _batch_statistics(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, shape: Shape
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalizes by the batch; returns its mean and unbiased variance too."""
    axes = (0, *range(2, x.ndim))
    mean = F.reduce_mean(x, axis=axes, keep_dims=True)
    centered = x - mean
    variance = F.reduce_mean(centered * centered, axis=axes, keep_dims=True)
    count = prod(x.aval.shape[i] for i in axes)  # pyright: ignore[reportArgumentType]
    y = _affine(centered * F.rsqrt(variance + eps), weight, bias, shape)
    return y, mean, variance * count / max(count - 1, 1)


# ---- layer, group -----------------------------------------------------------------------------


@fusible
def _normalized_rows(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, count: int, rows: Shape,
    shape: Shape,
) -> Tensor:  # fmt: skip
    """Normalizes the last ``count`` axes of ``x`` as ``rows``; scale and shift have ``shape``."""
    y = F.row_normalize(F.reshape(x, rows), count=count, eps=eps, center=True)
    return _affine(F.reshape(y, x.shape), weight, bias, shape)


@precise
def layer_norm(
    input: Tensor,
    normalized_shape: object,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Normalizes trailing axes: :math:`y = (x - E[x]) / \sqrt{Var[x] + eps} \cdot weight + bias`.

    Args:
        input: Tensor whose shape ends in ``normalized_shape``, a float dtype.
        normalized_shape: Sizes of the trailing axes over which the statistics run.
        weight: Scale of shape ``normalized_shape``, or ``None``.
        bias: Shift of shape ``normalized_shape``, or ``None``.
        eps: Added to the variance.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Raises:
        ShapeError: if ``input``, ``weight`` or ``bias`` does not fit ``normalized_shape``.

    Example:
        >>> ops.layer_norm(Tensor([[1.0, 2.0, 3.0]]), (3,))
        Tensor(shape=[1, 3], dtype=Float32, value=
        [[-1.22473562e+00,  0.00000000e+00,  1.22473562e+00]])
    """
    op = "layer_norm"
    many = isinstance(normalized_shape, (tuple, list))
    count = len(normalized_shape) if many else 1
    sizes = ints(normalized_shape, count, "normalized_shape", op, 0)
    if not sizes or input.aval.shape[-count:] != sizes:
        raise bad(
            ShapeError, f"the input's shape must end in normalized_shape {sizes}", op,
            f"input={input.aval}", "make normalized_shape equal to input.shape[begin_norm_axis:]",
        )  # fmt: skip
    _require_shape(weight, sizes, "weight", op)
    _require_shape(bias, sizes, "bias", op)
    return _normalized_rows(input, weight, bias, float(eps), count, input.shape, sizes)


@precise
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    r"""Normalizes groups of channels: :math:`y = (x - E[x]) / \sqrt{Var[x] + eps} \cdot w + b`.

    Args:
        input: Tensor of shape :math:`(N, C, *)`, a float dtype.
        num_groups: Number of groups; it divides :math:`C`.
        weight: Scale of every channel, :math:`(C,)`, or ``None``.
        bias: Shift of every channel, :math:`(C,)`, or ``None``.
        eps: Added to the variance.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Raises:
        ShapeError: if ``weight`` or ``bias`` does not have shape :math:`(C,)`.
        ArgumentError: if ``num_groups`` does not divide the channels.

    Example:
        >>> ops.group_norm(ops.ones((1, 4, 2, 2)), 2).shape
        (1, 4, 2, 2)
    """
    op = "group_norm"
    channels = _require_channels(input, op)
    (groups,) = ints(num_groups, 1, "num_groups", op)
    require(channels % groups == 0, f"num_groups {groups} does not divide {channels} channels", op,
            ArgumentError, input=input)  # fmt: skip
    _require_shape(weight, (channels,), "weight", op)
    _require_shape(bias, (channels,), "bias", op)
    full = input.aval.shape
    rest = prod(full[2:])  # pyright: ignore[reportArgumentType]
    rows = (full[0], groups, channels // groups * rest)
    shape = (channels, *(1,) * (input.ndim - 2))
    return _normalized_rows(input, weight, bias, float(eps), 1, rows, shape)


def rms_norm(x: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    r"""Normalizes by the root mean square: :math:`y = x / \sqrt{E[x^2] + epsilon} \cdot gamma`.

    Args:
        x: Tensor whose shape ends in ``gamma``'s, a float dtype.
        gamma: Scale; its axes are the ones over which the mean runs.
        epsilon: Added to the mean.

    Returns:
        The normalized tensor, and the reciprocal root mean square (float32 at least) with size 1
        in the normalized axes.

    Raises:
        ShapeError: if the shape of ``x`` does not end in that of ``gamma``.

    Example:
        >>> ops.rms_norm(Tensor([[1.0, 2.0, 3.0]]), ops.ones((3,)))[0]
        Tensor(shape=[1, 3], dtype=Float32, value=
        [[ 4.62909997e-01,  9.25819993e-01,  1.38873005e+00]])
    """
    count = gamma.ndim
    require(1 <= count <= x.ndim and x.aval.shape[-count:] == gamma.aval.shape,
            "the shape of x must end in the shape of gamma", "rms_norm", x=x,
            gamma=gamma)  # fmt: skip
    return _scaled_rows(x, gamma, float(epsilon))


@fusible
def _scaled_rows(x: Tensor, gamma: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Divides by the root mean square over the axes of ``gamma``; returns its reciprocal too."""
    y = F.row_normalize(x, count=gamma.ndim, eps=eps, center=False)
    wide, axes = widened(x), tuple(range(x.ndim - gamma.ndim, x.ndim))
    rstd = F.rsqrt(F.reduce_mean(wide * wide, axis=axes, keep_dims=True) + eps)
    return _affine(y, gamma, None, gamma.aval.shape), rstd


# ---- local ------------------------------------------------------------------------------------


def lrn(
    x: Tensor, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
    norm_region: str = "ACROSS_CHANNELS",
) -> Tensor:  # fmt: skip
    r"""Divides by the neighbouring channels: :math:`y_c = x_c (k + \alpha \sum x_{c'}^2)^{-\beta}`.

    Args:
        x: Tensor of shape :math:`(N, C, H, W)`, a float dtype.
        depth_radius: How many channels on either side belong to the sum.
        bias: The offset :math:`k`.
        alpha: Scale of the sum.
        beta: The exponent.
        norm_region: ``"ACROSS_CHANNELS"``.

    Returns:
        Tensor of ``x``'s shape and dtype.

    Raises:
        ShapeError: if ``x`` does not have 4 axes.
        ArgumentError: if ``norm_region`` is unknown.

    Example:
        >>> ops.lrn(ops.ones((1, 2, 1, 1)))
        Tensor(shape=[1, 2, 1, 1], dtype=Float32, value=
        [[[[ 5.77350259e-01]],
          [[ 5.77350259e-01]]]])
    """
    op = "lrn"
    require(x.ndim == 4, "x must have 4 axes", op, x=x)
    require(norm_region == "ACROSS_CHANNELS", "norm_region must be 'ACROSS_CHANNELS'", op,
            ArgumentError, norm_region=norm_region)  # fmt: skip
    (r,) = ints(depth_radius, 1, "depth_radius", op, 0)
    n, c, h, w = x.aval.shape
    wide = widened(x)
    planes = F.reshape(wide * wide, (n, 1, c, h * w))  # pyright: ignore[reportOperatorIssue]
    pads = ((r, r), (0, 0))
    sums = F.avg_pool(planes, kernel=(2 * r + 1, 1), stride=(1, 1), padding=pads, counted=pads,
                      divisor=1)  # fmt: skip
    scale = F.pow(F.reshape(sums, x.aval.shape) * alpha + bias, -beta)
    return F.cast(wide * scale, x.dtype)


def l2_normalize(x: Tensor, axis: AxisLike = 0, epsilon: float = 1e-4) -> Tensor:
    r"""Scales to length 1 along axes: :math:`y = x / \sqrt{\max(\sum x^2, epsilon)}`.

    Args:
        x: Tensor of any shape, a float dtype.
        axis: Axis or axes over which the length is taken.
        epsilon: Smallest square length that is divided by.

    Returns:
        Tensor of ``x``'s shape and dtype.

    Raises:
        DTypeError: if ``x`` does not have a float dtype.

    Example:
        >>> ops.l2_normalize(Tensor([3.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 6.00000024e-01,  8.00000012e-01])
    """
    op = "l2_normalize"
    require(x.dtype.is_float, "x must have a float dtype", op, DTypeError, x=x)
    try:
        axes = rules.normalize_axes(axis, x.ndim)
    except TvmgraphError as e:
        raise e.locate(f"ops.{op}", f"x={x.aval}, axis={axis!r}", user_source()) from None
    wide = widened(x)
    square = F.reduce_sum(wide * wide, axis=axes, keep_dims=True)
    return F.cast(wide * F.rsqrt(F.maximum(square, epsilon)), x.dtype)
