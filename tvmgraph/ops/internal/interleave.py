"""Images put together from pixels of several ones: how transposed convolutions end."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import prod

import numpy as np

from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import sample
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import INTERNAL, Layout, Pattern
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ShapeError
from tvmgraph.ops.common.window import Ints
from tvmgraph.ops.internal.rows import internal_row

__all__ = ["interleave"]


def _infer(*parts: TensorType, steps: Ints) -> TensorType:
    if len(parts) != prod(steps):
        raise ShapeError(f"steps {steps} need {prod(steps)} parts, got {len(parts)}")
    first = parts[0]
    rules.require_ndim(first, (2 + len(steps), 3 + len(steps)), "parts")
    for part in parts[1:]:
        rules.require_same_dtype(first, part)
        if not rules.same_shape(part.shape, first.shape):
            raise ShapeError(f"parts differ: {first} and {part}")
    outer = list(first.shape)
    for axis, step in enumerate(steps, 2):
        outer[axis] = outer[axis] * step  # pyright: ignore[reportOperatorIssue]
    return first.with_shape(tuple(outer))


def _eager(*parts: np.ndarray, steps: Ints) -> np.ndarray:
    n, c, *spatial = parts[0].shape[: 2 + len(steps)]
    sizes = [extent * step for extent, step in zip(spatial, steps)]
    joined = np.empty((n, c, *sizes, *parts[0].shape[2 + len(steps) :]), parts[0].dtype)
    for part, offsets in zip(parts, itertools.product(*map(range, steps))):
        joined[(slice(None), slice(None), *(slice(o, None, s) for o, s in zip(offsets, steps)))] = (
            part
        )
    return joined


def _lower(R: Builder, *parts: Expr, steps: Ints) -> Expr:
    out = _infer(*map(R.type, parts), steps=steps).shape

    def join(*parts: Expr) -> Expr:
        def element(n: Expr, c: Expr, *at: Expr) -> Expr:
            spatial, rest = at[: len(steps)], at[len(steps) :]
            place = (n, c, *(p // s for p, s in zip(spatial, steps)), *rest)
            numbers = itertools.product(*map(range, steps))
            *earlier, last = zip(parts, numbers)
            value = last[0][place]
            for part, offsets in reversed(earlier):
                here = [p % s == o for p, s, o in zip(spatial, steps, offsets) if s > 1]
                value = R.tir.if_then_else(R.tir.all(*here), part[place], value)
            return value

        return R.te.compute(out, element, name="interleave")

    return R.emit_te(join, *parts, primfunc_name_hint="interleave")


@internal_row(
    _infer,
    _eager,
    _lower,
    traits=replace(INTERNAL, pattern=Pattern.GATHER, layout=Layout.INTERLEAVE),
    samples=[
        sample(*[(2, 3, 2, 5)] * 4, steps=(2, 2), grad=False),
        sample(*[(1, 2, 3, 4, 8)] * 6, steps=(3, 2), grad=False),
        sample(*[(1, 2, 3, 17)] * 2, steps=(1, 2), dtype="float64", grad=False),
        sample((1, 2, 3, 4), steps=(1, 1), grad=False),
        sample((1, 2, 3, 4), (1, 2, 3, 5), steps=(2, 1), raises=ShapeError),
        sample((1, 2, 3, 4), steps=(2, 1), raises=ShapeError),
    ],
)
def interleave(*parts: Tensor, steps: Ints) -> Tensor:
    r"""Puts images together pixel by pixel, :math:`y_{n,c,s i + r} = x^{(r)}_{n,c,i}`.

    Args:
        parts: One image per offset r within a step, the last axis' offsets first, all of shape
            (N, C, H, W), or (N, C / b, H, W, b) in blocks of channels.
        steps: The step s per spatial axis; their product is the number of parts.

    Returns:
        Tensor whose spatial axes are ``steps`` times as long.

    Raises:
        ShapeError: if the parts differ in shape, or are not as many as the steps need.
    """
    ...
