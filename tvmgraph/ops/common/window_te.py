"""Sliding windows as tensor expressions, for the ``lower`` column of pooling rows."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

from tvmgraph.core.columns import Builder, Expr
from tvmgraph.ops.common.window import Ints, Pairs

#: Windows of up to this many taps become one expression, which fuses and vectorizes.
UNROLL = 16

#: A position: one index expression per axis.
Point: TypeAlias = tuple[Expr, ...]
#: A place in a window, where its taps are written out one by one.
Tap: TypeAlias = tuple[int, ...] | Point
Combine = Callable[[Expr, Expr], Expr]
Fold = Callable[[list[Expr]], Expr]


def te_pad(R: Builder, x: Expr, padding: Pairs, value: Expr) -> Expr:
    """TE: pads the spatial axes of ``[N, C, *spatial]`` with a constant.

    Args:
        R: The builder.
        x: TE tensor ``[N, C, *spatial]``.
        padding: Elements before and after every spatial axis.
        value: What they are.
    """
    if not any(lo or hi for lo, hi in padding):
        return x
    before = [0, 0, *(lo for lo, _ in padding)]
    return R.topi.nn.pad(x, before, [0, 0, *(hi for _, hi in padding)], value)


def te_fold(
    R: Builder, lead: tuple[object, ...], out: Ints, taps: Ints, term: Callable[[Point, Tap], Expr],
    combine: Combine, identity: Callable[[str], Expr], name: str, fold: Fold | None = None,
) -> Expr:  # fmt: skip
    """TE: combines ``term(point, tap)`` over all taps, at every point of ``[*lead, *out]``.

    Args:
        R: The builder.
        lead: Leading sizes.
        out: Spatial sizes of the result.
        taps: Sizes of the window.
        term: ``(point, tap) -> value``, called with index expressions.
        combine: An associative function of two values.
        identity: Neutral element of ``combine`` for a dtype.
        name: Name of the stage.
        fold: Combines a list of values, where repeating ``combine`` would repeat its operands.
    """
    if prod(taps) <= UNROLL:

        def unrolled(*point: Expr) -> Expr:
            window = itertools.product(*(range(t) for t in taps))
            items = [term(point, at) for at in window]
            return fold(items) if fold else functools.reduce(combine, items)

        return R.te.compute((*lead, *out), unrolled, name=name)
    axes = [R.te.reduce_axis((0, t), name=f"r{i}") for i, t in enumerate(taps)]

    # TVM wants functions of exactly two and one arguments
    def pair(a: Expr, b: Expr) -> Expr:
        return combine(a, b)

    def neutral(dtype: str) -> Expr:
        return identity(dtype)

    def reduced(*point: Expr) -> Expr:
        return reducer(term(point, tuple(axes)), axis=axes)

    reducer = R.te.comm_reducer(pair, neutral, name=f"{name}_reduce")
    return R.te.compute((*lead, *out), reduced, name=name)


def te_isnan(R: Builder, value: Expr, dtype: str) -> Expr:
    """TE: whether a float is NaN; TVM cannot ask a bfloat16.

    Args:
        R: The builder.
        value: A float.
        dtype: Name of its dtype.
    """
    return R.tir.isnan(value.astype("float32") if dtype == "bfloat16" else value)


def te_max(R: Builder, dtype: str) -> tuple[Combine, Callable[[str], Expr], Fold]:
    """Returns the maximum in which NaN wins, as in NumPy: pairwise, neutral element, of a list.

    Args:
        R: The builder.
        dtype: Name of the elements' dtype.
    """

    def largest(items: Sequence[Expr]) -> Expr:
        return functools.reduce(R.tir.max, items)

    if "float" not in dtype:
        return R.tir.max, R.tir.min_value, largest

    def combine(a: Expr, b: Expr) -> Expr:
        # isnan and not a != a, which TVM simplifies to false
        return R.tir.Select(R.tir.any(a > b, te_isnan(R, a, dtype)), a, b)

    def fold(items: Sequence[Expr]) -> Expr:
        spoiled = R.tir.any(*(te_isnan(R, i, dtype) for i in items))
        return R.tir.Select(spoiled, R.tir.const(float("nan"), dtype), largest(items))

    return combine, lambda d: R.tir.const(float("-inf"), d), fold


def te_transposed(
    R: Builder, lead: tuple[object, ...], spatial: Ints, out: Ints, reach: Ints, stride: Ints,
    padding: Pairs, term: Callable[[Point, Point, Point], Expr], dtype: str, name: str,
) -> Expr:  # fmt: skip
    """TE: sums over every element's windows: what a pooling's output cotangent sends back.

    Every element asks its (few) windows, so nothing is written twice and all elements are
    independent.

    Args:
        R: The builder.
        lead: Leading sizes.
        spatial: Spatial sizes of the result.
        out: Number of windows per axis.
        reach: Size of a window, dilation included.
        stride: Step of the windows.
        padding: Padding of the windows.
        term: ``(point, window, offset) -> value`` for a window that holds the point.
        dtype: dtype of the sum.
        name: Name of the stage.
    """
    counts = tuple(-(-r // s) for r, s in zip(reach, stride))

    def one(point: Point, back: Tap) -> Expr:
        moved = [p + lo for p, (lo, _) in zip(point[len(lead) :], padding)]
        window = tuple(m // s - b for m, s, b in zip(moved, stride, back))
        offset = tuple(m - w * s for m, w, s in zip(moved, window, stride))
        moving = [r > 1 or s > 1 or pads != (0, 0) for r, s, pads in zip(reach, stride, padding)]
        inside = [w >= 0 for w, moves in zip(window, moving) if moves]
        inside += [w < o for w, o, moves in zip(window, out, moving) if moves]
        inside += [f < r for f, r, s in zip(offset, reach, stride) if r % s]
        value = term(point, window, offset)
        if not inside:
            return value
        return R.tir.if_then_else(R.tir.all(*inside), value, R.tir.const(0, dtype))

    return te_fold(
        R, lead, spatial, counts, one, lambda a, b: a + b, lambda d: R.tir.const(0, d), name
    )
