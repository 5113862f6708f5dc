"""Normalization of rows (layers, groups, instances) to mean 0 and variance 1, in one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Attrs
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, sample
from tvmgraph.core.precision import precise
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Layout, Pattern, Traits, equation, letters
from tvmgraph.core.types import TensorType
from tvmgraph.errors import DTypeError, ShapeError
from tvmgraph.ops.common.rows import wide_dtype, widen
from tvmgraph.ops.common.window import Point

__all__ = ["row_normalize", "row_normalize_grad"]


def _infer_rows(
    x: TensorType, *rest: TensorType, count: int, eps: float, center: bool
) -> TensorType:
    rules.require_dtype(x, dtypes.FLOATS)
    rules.require_same_dtype(x, *rest)
    if not 1 <= count <= x.ndim:
        raise ShapeError(f"{count} axes cannot be normalized of a tensor with {x.ndim} axes")
    x.with_shape(x.shape[x.ndim - count :]).static_shape  # noqa: B018  (raises when symbolic)
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
        scale = np.ones(t.shape[t.ndim - count :], t.dtype.numpy)
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
