"""Products, differences, statistics and polynomials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvmgraph import ops
from tvmgraph.core.arguments import AxisLike, DTypeLike
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import complex64, float32
from tvmgraph.errors import ArgumentError, ShapeError, user_source
from tvmgraph.numpy import helpers
from tvmgraph.numpy.arrays import concatenate, result_type
from tvmgraph.numpy.helpers import (
    array_of,
    arrays_of,
    as_dtype,
    axes_of,
    axis_of,
    floats,
    single,
    wide_floats,
)

sum = helpers.sum


def dot(a: object, b: object) -> Tensor:
    """Returns the sums of products over the last axis of ``a`` and the last but one of ``b``.

    Args:
        a: An array.
        b: Another array.
    """
    a, b = array_of(a), array_of(b)
    if a.ndim == 0 or b.ndim == 0:
        return ops.mul(a, b)
    return ops.tensordot(a, b, ((a.ndim - 1,), (max(b.ndim - 2, 0),)))


def multi_dot(arrays: Sequence[object]) -> Tensor:
    """Returns the product of several matrices; the first and last may be vectors.

    Args:
        arrays: The matrices, of shapes that fit one another.
    """
    first, *others = arrays_of(arrays)
    for other in others:
        first = dot(first, other)
    return first


def norm(
    x: object, ord: object = None, axis: AxisLike | None = None, keepdims: bool = False
) -> Tensor:
    """Returns the norm of vectors (one axis) or matrices (two axes).

    Args:
        x: The array.
        ord: Order: None, "fro", "nuc", inf, -inf or a number.
        axis: Axes; None takes all, after flattening when ``ord`` is None.
        keepdims: Whether the axes stay with one element.
    """
    x = floats(array_of(x))
    if axis is None and ord is None:
        found = ops.sqrt(ops.sum(ops.square(ops.abs(wide_floats(x)))))
        return ops.reshape(found, (1,) * x.ndim) if keepdims else found
    axes = axes_of(axis, x.ndim)
    if len(axes) == 1:
        x = x if ord in (math.inf, -math.inf) else wide_floats(x)
        return ops.vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) != 2:
        raise ShapeError("norms are of vectors and matrices", got=f"axis={axis}", at=user_source())
    return ops.matrix_norm(x, "fro" if ord is None else ord, axes, keepdims)


def diff(
    a: object, n: int = 1, axis: int = -1, prepend: object = None, append: object = None
) -> Tensor:
    """Returns the ``n``-th differences of neighbours, after joining what is given at the ends.

    Args:
        a: An array.
        n: How often differences are taken.
        axis: The axis.
        prepend: What comes before ``a`` along the axis.
        append: What comes after it.
    """
    a = array_of(a)
    if n == 0:
        return a
    axis = axis_of(axis, a.ndim)
    ends = [None if e is None else _end(array_of(e, a.dtype), a, axis) for e in (prepend, append)]
    parts = [p for p in (ends[0], a, ends[1]) if p is not None]
    a = concatenate(parts, axis) if len(parts) > 1 else a
    for _ in range(n):
        size = a.shape[axis] - 1
        pair = ops.narrow(a, axis, 1, size), ops.narrow(a, axis, 0, size)
        a = ops.not_equal(*pair) if a.dtype.kind == "b" else ops.sub(*pair)
    return a


def _end(value: Tensor, a: Tensor, axis: int) -> Tensor:
    one = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
    return value if value.ndim else ops.broadcast_to(value, one)


def ediff1d(ary: object, to_end: object = None, to_begin: object = None) -> Tensor:
    """Returns the differences of neighbours in the flat array, between what is given.

    Args:
        ary: An array, of any shape.
        to_end: What follows the differences.
        to_begin: What comes before them.
    """
    ary = array_of(ary)
    parts = [to_begin, diff(ops.ravel(ary)), to_end]
    return concatenate([ops.ravel(array_of(p, ary.dtype)) for p in parts if p is not None])


def gradient(
    f: object, *varargs: object, axis: AxisLike | None = None, edge_order: int = 1
) -> Tensor | list[Tensor]:
    """Returns central differences inside and one-sided ones at the ends.

    Args:
        f: The values.
        varargs: Distance of the values: none for 1, one number, or a number per axis.
        axis: Axes along which to differentiate; None takes all.
        edge_order: Only 1.

    Returns:
        An array, or a list of them for several axes.
    """
    if edge_order != 1:
        raise ArgumentError(f"edge_order must be 1, not {edge_order}", at=user_source())
    f = wide_floats(array_of(f))
    axes = axes_of(axis, f.ndim)
    steps = varargs * len(axes) if len(varargs) == 1 else varargs or (1,) * len(axes)
    found = [_gradient(f, a) / h for a, h in zip(axes, steps)]
    return found[0] if len(found) == 1 else found


def _gradient(f: Tensor, axis: int) -> Tensor:
    size = f.shape[axis]
    near = diff(f, axis=axis)
    inner = (ops.narrow(near, axis, 0, size - 2) + ops.narrow(near, axis, 1, size - 2)) * 0.5
    first, last = ops.narrow(near, axis, 0, 1), ops.narrow(near, axis, size - 2, 1)
    return ops.concat([first, inner, last] if size > 2 else [first, last], axis)


def trapz(y: object, x: object = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """Integrates along an axis by the trapezoidal rule.

    Args:
        y: Values.
        x: Where they are; equal distances by default.
        dx: That distance.
        axis: The axis.
    """
    y = single(array_of(y))
    axis = axis_of(axis, y.ndim)
    if x is not None:
        step = as_dtype(diff(x), y.dtype)
        y = ops.moveaxis(y, axis, -1)
        return ops.sum((y[..., :-1] + y[..., 1:]) * step, -1) / 2
    return ops.trapz(y, dx=dx, dim=axis)


def convolve(a: object, v: object, mode: str = "full") -> Tensor:
    """Returns the convolution of two vectors; see :func:`correlate` for ``mode``.

    Args:
        a: A vector, or a number.
        v: Another vector, or a number.
        mode: ``"full"``, ``"same"`` or ``"valid"``.
    """
    a, v = (ops.reshape(x, (-1,)) if x.ndim == 0 else x for x in (array_of(a), array_of(v)))
    _require_vectors(a, v)
    return _slide(*(a, v) if a.size >= v.size else (v, a), mode)


def correlate(a: object, v: object, mode: str = "valid") -> Tensor:
    """Returns the cross-correlation of two vectors, that of integers in float32.

    Args:
        a: Vector [N].
        v: Vector [M].
        mode: "valid" where they overlap wholly, "same" in the size of the longer, or "full".
    """
    a, v = floats(array_of(a)), floats(array_of(v))
    _require_vectors(a, v)
    if a.size >= v.size:
        return _slide(a, ops.conj(ops.flip(v, (0,))), mode)
    return ops.flip(ops.conj(_slide(v, ops.conj(ops.flip(a, (0,))), mode)), (0,))


def _require_vectors(a: Tensor, v: Tensor) -> None:
    if a.ndim != 1 or v.ndim != 1:
        raise ShapeError("both must be vectors", got=f"a={a.aval}, v={v.aval}", at=user_source())


def _slide(a: Tensor, v: Tensor, mode: str) -> Tensor:
    dtype = result_type(a, v)
    computed = complex64 if dtype.kind == "c" else float32
    count = v.shape[0] - 1
    pads = {"valid": (0, 0), "full": (count, count), "same": (count - count // 2, count // 2)}
    if mode not in pads:
        raise ArgumentError(f"mode must be one of {list(pads)}, not {mode!r}", at=user_source())
    signal = ops.pad(ops.reshape(ops.cast(a, computed), (1, 1, -1)), pads[mode])
    taps = ops.reshape(ops.cast(ops.flip(v, (0,)), computed), (1, 1, -1))
    return as_dtype(ops.reshape(ops.conv1d(signal, taps), (-1,)), dtype)


def average(x: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    """Returns the weighted mean, and with ``returned`` the sum of the weights.

    Args:
        x: An array.
        axis: The axis; None for all.
        weights: Weights, of the shape of ``x`` or of the axis; equal ones by default.
        returned: Whether the sum of the weights follows.
    """
    x = array_of(x)
    if weights is None:
        mean = ops.mean(x if x.dtype.is_integer else floats(x), axis)
        total = ops.full_like(mean, x.size / max(mean.size, 1))
        return (mean, total) if returned else mean
    x, weights = floats(x), array_of(weights)
    if weights.ndim == 1 and x.ndim > 1:
        weights = ops.reshape(weights, (-1,) + (1,) * (x.ndim - axis_of(axis, x.ndim) - 1))
    weights = ops.broadcast_to(weights, x.shape)
    total = ops.sum(weights, axis)
    mean = ops.sum(x * weights, axis) / total
    return (mean, as_dtype(total, mean.dtype)) if returned else mean


def cov(
    m: object,
    y: object = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: object = None,
    aweights: object = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Returns the covariance of variables.

    Args:
        m: Observations, a variable per row (per column unless ``rowvar``).
        y: More variables.
        rowvar: See ``m``.
        bias: Whether to divide by the number of observations instead of one less.
        ddof: What to subtract from that number; overrides ``bias``.
        fweights: How often each observation counts.
        aweights: Importance of each observation.
        dtype: Dtype of the result.
    """
    m = _variables(m, rowvar)
    if y is not None:
        m = ops.concat([m, _variables(y, rowvar)])
    less = (0 if bias else 1) if ddof is None else ddof
    kinds = [None if w is None else array_of(w) for w in (fweights, aweights)]
    found = ops.cov(m, correction=less, fweights=kinds[0], aweights=kinds[1])
    return as_dtype(ops.squeeze(found), dtype)


def _variables(m: object, rowvar: bool) -> Tensor:
    m = single(array_of(m))
    m = m if m.ndim > 1 else ops.reshape(m, (1, -1))
    return m if rowvar or m.shape[0] == 1 else ops.transpose(m, (1, 0))


def corrcoef(
    x: object, y: object = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Tensor:
    """Returns the correlation coefficients of variables; see :func:`cov`.

    Args:
        x: Variables, one per row [V, N], or a vector.
        y: More variables.
        rowvar: Whether variables are rows, else columns.
        dtype: dtype of the result.
    """
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    deviation = ops.sqrt(ops.diagonal(c))
    c = c / ops.expand_dims(deviation, 1) / ops.expand_dims(deviation, 0)
    return as_dtype(ops.clamp(c, -1, 1), dtype)


def interp(x: object, xp: object, fp: object, left: object = None, right: object = None) -> Tensor:
    """Returns the piecewise linear function through points at ``x``.

    Args:
        x: Where.
        xp: Places of the points, rising.
        fp: Their values.
        left: Value before the first point; that of the first unless told.
        right: Value after the last point.
    """
    x = floats(array_of(x))
    xp, fp = (ops.cast(array_of(t), float32) for t in (xp, fp))
    after = ops.clamp(ops.searchsorted(xp, x), 1, xp.shape[0] - 1)
    at = [ops.gather(t, i, 0) for i in (after - 1, after) for t in (xp, fp)]
    share = (x - at[0]) / (at[2] - at[0])
    found = at[1] + (at[3] - at[1]) * share
    found = ops.where(x < xp[0], fp[0] if left is None else array_of(left, float32), found)
    return ops.where(x > xp[-1], fp[-1] if right is None else array_of(right, float32), found)


def unwrap(p: object, discont: float = math.pi, axis: int = -1) -> Tensor:
    """Adds multiples of a full turn so that neighbouring angles differ by less than half a turn.

    Args:
        p: Angles in radians.
        discont: The difference of neighbours from which on something is added.
        axis: The axis.
    """
    p = wide_floats(array_of(p))
    axis = axis_of(axis, p.ndim)
    step = diff(p, axis=axis)
    turn = 2 * math.pi
    near = ops.floor_mod(step + math.pi, turn) - math.pi
    near = ops.where(ops.logical_and(ops.equal(near, -math.pi), step > 0), math.pi, near)
    fix = ops.where(ops.abs(step) < discont, 0.0, near - step)
    rest = ops.narrow(p, axis, 1, p.shape[axis] - 1) + ops.cumsum(fix, axis)
    return ops.concat([ops.narrow(p, axis, 0, 1), rest], axis)


def _polynomial(p: object) -> Tensor:
    p = array_of(p)
    return p if p.ndim else ops.reshape(p, (1,))


def polyadd(a1: object, a2: object) -> Tensor:
    """Adds polynomials, given by their coefficients from the highest power down.

    Args:
        a1: Coefficients [N].
        a2: Coefficients [M].
    """
    parts = [_polynomial(p) for p in (a1, a2)]
    size = max(p.shape[0] for p in parts)
    a, b = (ops.pad(p, (size - p.shape[0], 0)) for p in parts)
    return ops.add(a, b)


def polysub(a1: object, a2: object) -> Tensor:
    """Subtracts polynomials.

    Args:
        a1: Coefficients [N].
        a2: Coefficients [M].
    """
    return polyadd(a1, ops.neg(_polynomial(a2)))


def polymul(a1: object, a2: object) -> Tensor:
    """Multiplies polynomials.

    Args:
        a1: Coefficients [N].
        a2: Coefficients [M].
    """
    return convolve(_polynomial(a1), _polynomial(a2))


def polyder(p: object, m: int = 1) -> Tensor:
    """Returns the ``m``-th derivative of a polynomial.

    Args:
        p: Coefficients [N], from the highest power down.
        m: How often it is taken.
    """
    p = _polynomial(p)
    for _ in range(m):
        powers = ops.arange(p.shape[0] - 1, 0, -1)
        p = ops.mul(p[:-1], as_dtype(powers, p.dtype))
    return p


def polyint(p: object, m: int = 1, k: object = None) -> Tensor:
    """Returns the ``m``-th integral of a polynomial, with the constants ``k``.

    Args:
        p: Coefficients [N], from the highest power down.
        m: How often it is taken.
        k: The constants, a number or one per integral; 0 by default.
    """
    p = _polynomial(p)
    constants = ops.broadcast_to(array_of(0 if k is None else k), (m,)) if m else None
    for i in range(m):
        powers = as_dtype(ops.arange(p.shape[0], 0, -1), p.dtype if p.dtype.is_float else float32)
        assert constants is not None
        p = concatenate((ops.div(p, powers), constants[i : i + 1]))
    return p


def polyval(p: object, x: object) -> Tensor:
    """Returns the values of a polynomial at ``x``.

    Args:
        p: Coefficients [N], from the highest power down.
        x: Numbers, of any shape.
    """
    p, x = _polynomial(p), array_of(x)
    powers = as_dtype(ops.arange(p.shape[0] - 1, -1, -1), float32)
    return ops.sum(p * ops.pow(ops.expand_dims(floats(x), -1), powers), -1)


__all__ = _public_names(globals(), "sum")

_guard_module(globals(), "numpy")
