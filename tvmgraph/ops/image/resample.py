"""The resampling row: every separable linear map between grids of one axis, and its transpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypedDict, Unpack

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Sample, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Layout, along_axis
from tvmgraph.core.types import Dim, TensorType
from tvmgraph.errors import ArgumentError, ExportError, ShapeError
from tvmgraph.ops.common.rows import wide_dtype, widen
from tvmgraph.ops.common.window import UNROLL, Point

__all__ = ["resample"]

Table = tuple[np.ndarray, np.ndarray]  # positions and weights, [points, taps]


class _Map(TypedDict):
    """Attributes that say how positions and weights follow from the sizes."""

    mode: str
    align_corners: bool
    scale: float
    transposed: bool


_CUBIC = ("cubic", "cubic_exact", "cubic_asymmetric", "keys")


# ---- which elements, with which weights -------------------------------------------------------


def _positions(inputs: int, outputs: int, mode: str, align: bool, scale: float) -> np.ndarray:
    """Where the output points lie on the input axis."""
    # in single precision where rounding a position decides weights, as in other frameworks
    i = np.arange(outputs, dtype=np.float32 if mode in _CUBIC else np.float64)
    if align:
        return i * i.dtype.type((inputs - 1) / (outputs - 1) if outputs > 1 else 0.0)
    step = i.dtype.type(scale or inputs / outputs)
    if mode == "cubic_asymmetric":
        return i * step
    if mode == "nearest":
        # in single precision, as the positions of other frameworks: rounding decides the element
        return np.floor(i.astype(np.float32) * np.float32(step)).astype(np.float64)
    return (i + i.dtype.type(0.5)) * step - i.dtype.type(0.5)


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """The cubic convolution kernel."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


def _mean_table(inputs: int, outputs: int) -> Table:
    i = np.arange(outputs)
    start, stop = i * inputs // outputs, -(-(i + 1) * inputs // outputs)
    taps = np.arange(int((stop - start).max(initial=1)))
    index = start[:, None] + taps
    inside = index < stop[:, None]
    weight = np.where(inside, 1.0 / (stop - start)[:, None], 0.0)
    return np.where(inside, index, start[:, None]), weight


def _forward_table(inputs: int, outputs: int, mode: str, align: bool, scale: float) -> Table:
    if mode == "mean":
        return _mean_table(inputs, outputs)
    at = _positions(inputs, outputs, mode, align, scale)
    if mode in ("nearest", "nearest_exact"):
        at = np.floor(at + 0.5) if mode == "nearest_exact" else at
        return np.clip(at, 0, inputs - 1).astype(np.int64)[:, None], np.ones((outputs, 1))
    if mode == "linear":
        at = np.clip(at, 0, inputs - 1)
        low = np.floor(at).astype(np.int64)
        part = at - low
        index = np.stack([low, np.minimum(low + 1, inputs - 1)], 1)
        return index, np.stack([1 - part, part], 1)
    low = np.floor(at)
    part = at - low
    if mode != "cubic_exact":  # weights are those of a table of 1024 steps
        part = np.rint(part * 1024) / 1024
    taps = np.arange(-1, 3)
    index = low.astype(np.int64)[:, None] + taps
    weight = _cubic(np.abs(part[:, None] - taps), -0.5 if mode == "keys" else -0.75)
    if mode == "keys":  # points outside count nothing, the others share their weight
        weight = np.where((index >= 0) & (index < inputs), weight, 0.0)
        weight /= weight.sum(1, keepdims=True)
    return np.clip(index, 0, inputs - 1), weight


def _transposed(table: Table, points: int) -> Table:
    """The table of the transposed map: for every input its outputs."""
    index, weight = table
    source = np.broadcast_to(np.arange(len(index))[:, None], index.shape)
    keep = weight.ravel() != 0
    target, origin, value = index.ravel()[keep], source.ravel()[keep], weight.ravel()[keep]
    order = np.argsort(target, kind="stable")
    target, origin, value = target[order], origin[order], value[order]
    counts = np.bincount(target, minlength=points)
    place = np.arange(len(target)) - np.repeat(np.cumsum(counts) - counts, counts)
    taps = max(int(counts.max(initial=0)), 1)
    new_index = np.zeros((points, taps), np.int64)
    new_weight = np.zeros((points, taps))
    new_index[target, place] = origin
    new_weight[target, place] = value
    return new_index, new_weight


@lru_cache(maxsize=256)
def _table(
    size: int, length: int, mode: str, align_corners: bool, scale: float, transposed: bool
) -> Table:
    """Positions and weights for ``size`` results from ``length`` elements."""
    if transposed:
        return _transposed(_forward_table(size, length, mode, align_corners, scale), size)
    return _forward_table(length, size, mode, align_corners, scale)


def resampling_matrix(
    inputs: int, outputs: int, mode: str, align_corners: bool, scale: float
) -> np.ndarray:
    """Returns the map of :func:`resample` as a matrix of shape (outputs, inputs).

    Args:
        inputs: Elements of the axis.
        outputs: Its new size.
        mode: As for :func:`resample`.
        align_corners: The same.
        scale: The same.
    """
    return _matrix(*_table(outputs, inputs, mode, align_corners, scale, False), inputs)


def axis_order(old: Sequence[int], new: Sequence[int]) -> list[int]:
    """Returns the positions of axes in the order in which resampling them costs least.

    Those that shrink come first. Of axes that grow alike the last comes first: its elements are
    gathered one by one, those of the others a row at a time, so it is resampled while the others
    are small. Of axes that shrink alike it comes last, for the same reason.

    Args:
        old: Sizes of the axes.
        new: Their new sizes.
    """
    ratio = [n / max(o, 1) for o, n in zip(old, new)]
    return sorted(range(len(ratio)), key=lambda i: (ratio[i], -i if ratio[i] > 1 else i))


def _matrix(index: np.ndarray, weight: np.ndarray, inputs: int) -> np.ndarray:
    matrix = np.zeros((len(index), inputs))
    np.add.at(matrix, (np.arange(len(index))[:, None], index), weight)
    return matrix


# ---- the row ----------------------------------------------------------------------------------

_MODES = ("nearest", "nearest_exact", "linear", *_CUBIC, "mean")


def _infer_resample(
    x: TensorType, *, axis: int, size: int, mode: str, align_corners: bool, scale: float,
    transposed: bool,
) -> TensorType:  # fmt: skip
    chosen = mode.startswith("nearest")  # elements are copied: pixels may stay pixels
    rules.require_dtype(x, (*dtypes.FLOATS, dtypes.uint8) if chosen else dtypes.FLOATS)
    axis = rules.normalize_axis(axis, x.ndim)
    if mode not in _MODES:
        raise ArgumentError(f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
    (length,) = rules.kernel_sizes(x, axis, axis + 1)
    if size < 1 or length < 1:
        raise ShapeError(f"an axis of size {length} cannot be resampled to {size}")
    return x.with_shape((*x.shape[:axis], size, *x.shape[axis + 1 :]))


def _numpy_resample(x: np.ndarray, *, axis: int, size: int, **table: object) -> np.ndarray:
    index, weight = _table(size, x.shape[axis], **table)
    wide = widen(x)
    weight = weight.astype(wide.dtype)
    shape = [1] * x.ndim
    shape[axis] = size
    y = None
    for t in range(index.shape[1]):
        part = np.take(wide, index[:, t], axis)
        w = weight[:, t]
        if (w != 1).any():
            part *= w.reshape(shape)
        if (w == 0).any():  # not even an infinite element counts then
            part[(*[slice(None)] * axis, w == 0)] = 0
        y = part if y is None else np.add(y, part, out=y)
    assert y is not None
    return y.astype(x.dtype, copy=False)


def _lower_resample(R: Builder, x: Expr, *, axis: int, size: int, **table: Any) -> Expr:
    t = R.type(x)
    result = _infer_resample(t, axis=axis, size=size, **table)
    if 0 in result.shape:
        return R.op.zeros(R.shape(result.shape), result.dtype.name)
    index, weight = _table(size, int(t.shape[axis]), **table)
    wide = wide_dtype(t.dtype).name
    taps = index.shape[1]
    whole, plain = bool((weight != 0).all()), bool((weight == 1).all())

    def compute(data: Expr, where: Expr, factor: Expr) -> Expr:
        def term(point: Point, k: Expr | int) -> Expr:
            i = point[axis]
            at = (*point[:axis], where[i, k], *point[axis + 1 :])
            value = data[at].astype(wide)
            if plain:
                return value
            product = value * factor[i, k]
            zero = R.tir.const(0, wide)
            return product if whole else R.tir.Select(factor[i, k] == zero, zero, product)

        def unrolled(*point: Expr) -> Expr:
            value = term(point, 0)
            for k in range(1, taps):
                value = value + term(point, k)
            return value.astype(data.dtype)

        shape = (*data.shape[:axis], size, *data.shape[axis + 1 :])
        if taps <= UNROLL:
            return R.te.compute(shape, unrolled, name="resample")
        k = R.te.reduce_axis((0, taps), name="k")
        y = R.te.compute(
            shape, lambda *point: R.te.sum(term(point, k), axis=k), name="resample_sum"
        )
        return R.te.compute(shape, lambda *i: y[i].astype(data.dtype), name="resample")

    return R.emit_te(compute, x, R.const(index, "int64"), R.const(weight, wide),
                     primfunc_name_hint="resample")  # fmt: skip


def _onnx_resample(
    O: OnnxOps, x: OnnxNamed, *, axis: int, size: int | Dim, **table: Unpack[_Map]
) -> OnnxNamed:
    t = x.type
    wide = wide_dtype(t.dtype)
    x = O.Cast(x, to=O.dtype(wide))
    if isinstance(size, Dim) or isinstance(t.shape[axis], Dim):
        x.type = t.with_dtype(wide)
        return O.Cast(_onnx_resize(O, x, axis, size, **table), to=O.dtype(t.dtype))
    index, weight = _table(size, int(t.shape[axis]), **table)
    if index.shape[1] > 8:  # many taps: the whole matrix is smaller than as many gathers
        matrix = _matrix(index, weight, int(t.shape[axis])).T
        perm = [i for i in range(t.ndim) if i != axis] + [axis]
        y = O.MatMul(O.Transpose(x, perm=perm), matrix.astype(wide.numpy))
        y = O.Transpose(y, perm=[perm.index(i) for i in range(t.ndim)])
        return O.Cast(y, to=O.dtype(t.dtype))
    shape = [1] * t.ndim
    shape[axis] = size
    y = None
    for k in range(index.shape[1]):
        part = O.Gather(x, index[:, k], axis=axis)
        if (weight[:, k] != 1).any():
            part = O.Mul(part, weight[:, k].reshape(shape).astype(wide.numpy))
        y = part if y is None else O.Add(y, part)
    return O.Cast(y, to=O.dtype(t.dtype))


#: ONNX's attributes of a mode. Other cubic ones round positions to 1/1024, which ONNX cannot.
_RESIZE: dict[str, dict[str, object]] = {
    "linear": {"mode": "linear"},
    "cubic_exact": {"mode": "cubic", "cubic_coeff_a": -0.75},
}


def _onnx_resize(
    O: OnnxOps, x: OnnxNamed, axis: int, size: int | Dim, mode: str, align_corners: bool,
    scale: float, transposed: bool,
) -> OnnxNamed:  # fmt: skip
    """An axis whose size is not known: ONNX's own operator, or elements where it rounds else."""
    if not transposed and mode.startswith("nearest"):
        index = _onnx_nearest(O, x.type.shape[axis], size, mode, align_corners, scale)
        return O.Gather(x, index, axis=axis)
    if transposed or mode not in _RESIZE:
        raise ExportError(f"its mode {mode!r} needs axes of known sizes in ONNX")
    how = "align_corners" if align_corners else "half_pixel"
    scales = np.array([1 / scale], np.float32) if scale else None
    return O.Resize(
        x, None, scales, None if scale else O.shape([size]), axes=[axis],
        coordinate_transformation_mode=how, **_RESIZE[mode],
    )  # fmt: skip


def _onnx_nearest(
    O: OnnxOps, inputs: int | Dim, outputs: int | Dim, mode: str, align: bool, scale: float
) -> OnnxNamed:
    """The elements that :func:`_positions` chooses, computed as it does."""

    def wide(size: int | Dim) -> OnnxNamed:
        return O.Cast(O.size(size), to=O.dtype(dtypes.float64))

    half, one = np.float64(0.5), np.float64(1)
    i = O.Range(wide(0), wide(outputs), wide(1))
    if align:
        at = O.Mul(i, O.Div(wide(inputs - 1), O.Max(wide(outputs - 1), one)))
    else:
        step = O.const(scale, dtypes.float64) if scale else O.Div(wide(inputs), wide(outputs))
        if mode == "nearest":
            at = O.Mul(*(O.Cast(v, to=O.dtype(dtypes.float32)) for v in (i, step)))
        else:
            at = O.Sub(O.Mul(O.Add(i, half), step), half)
    if mode == "nearest_exact":
        at = O.Add(at, half)
    index = O.Cast(O.Floor(at), to=O.dtype(dtypes.int64))
    return O.Clip(index, O.size(0), O.size(inputs - 1))


def _vjp_resample(
    g: Tensor, y: Tensor, x: Tensor, *, axis: int, size: int, mode: str, align_corners: bool,
    scale: float, transposed: bool,
) -> tuple[Tensor]:  # fmt: skip
    back = F.resample(g, axis=axis, size=x.shape[axis], mode=mode, align_corners=align_corners,
                      scale=scale, transposed=not transposed)  # fmt: skip
    return (back,)


def _resample_sample(*shapes: object, axis: int, size: int, mode: str, align_corners: bool = False,
                     scale: float = 0.0, transposed: bool = False,
                     **kwargs: Any) -> Sample:  # fmt: skip
    return sample(*shapes, axis=axis, size=size, mode=mode, align_corners=align_corners,
                  scale=scale, transposed=transposed, **kwargs)  # fmt: skip


@primitive(
    infer=_infer_resample,
    traits=replace(along_axis(), layout=Layout.AXIS),
    eager=_numpy_resample,
    lower=_lower_resample,
    vjp=_vjp_resample,
    onnx=_onnx_resample,
    samples=[
        *(_resample_sample((2, 5, 3), axis=1, size=7, mode=m) for m in _MODES),
        *(_resample_sample((1, 7, 2), axis=1, size=4, mode=m) for m in _MODES),
        *(_resample_sample((2, 5), axis=1, size=7, mode=m, transposed=True) for m in _MODES),
        _resample_sample((2, 5), axis=1, size=9, mode="linear", align_corners=True),
        _resample_sample((2, 5), axis=1, size=3, mode="cubic", align_corners=True),
        _resample_sample((2, 5), axis=1, size=8, mode="linear", scale=0.6),
        _resample_sample((3, 1), axis=1, size=40, mode="nearest"),
        _resample_sample((3, 40), axis=1, size=1, mode="nearest", transposed=True),
        _resample_sample((40, 3), axis=0, size=1, mode="mean"),
        _resample_sample((0, 4), axis=1, size=8, mode="linear", grad=False),
        _resample_sample((2, 4), axis=1, size=8, mode="cubic", dtype="float16", grad=False),
        _resample_sample((2, 4), axis=1, size=7, mode="cubic_exact"),
        _resample_sample((2, 4), axis=1, size=8, mode="linear", dtype="float64"),
        _resample_sample((2, 4), axis=1, size=0, mode="linear", raises=ShapeError),
        _resample_sample((2, 4), axis=1, size=3, mode="magic", raises=ArgumentError),
    ],
)  # fmt: skip
def resample(
    input: Tensor, axis: int, size: int, mode: str, align_corners: bool, scale: float,
    transposed: bool,
) -> Tensor:  # fmt: skip
    r"""Resamples one axis with fixed weights: :math:`y_i = \sum_t w_{i,t} x_{j_{i,t}}`.

    Args:
        input: Tensor of any shape, a float dtype.
        axis: The axis.
        size: Its new size.
        mode: ``"nearest"``, ``"nearest_exact"`` (of pixel centres), ``"linear"``, ``"cubic"``
            (a = -0.75, edges repeated, positions in steps of 1/1024), ``"cubic_exact"`` (the same
            at any position), ``"cubic_asymmetric"`` (``"cubic"``, but pixels are points that
            start together), ``"keys"`` (a = -0.5, edges renormalized) or ``"mean"`` (of the
            elements under every point, as adaptive pooling).
        align_corners: Whether the first and last points of both grids coincide; otherwise pixels
            are areas.
        scale: Input elements per output element; 0 for the ratio of the sizes.
        transposed: Whether the transposed map (from ``size`` to the input's size) is applied, which
            is how cotangents go back.

    Returns:
        Tensor with ``size`` elements along ``axis``.

    Raises:
        ShapeError: if a size is not positive.
        ArgumentError: if ``mode`` is unknown.

    Example:
        >>> ops.resample(Tensor([1.0, 3.0]), 0, 4, "linear", False, 0.0, False)
        Tensor(shape=[4], dtype=Float32, value= [ 1.00000000e+00,  1.50000000e+00,  2.50000000e+00,
        3.00000000e+00])
    """
    ...
