"""3 x 3 convolution on NCHWc images whose weight is also there in Winograd's form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import OPS, Sample, sample
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ShapeError
from tvmgraph.numerics.winograd import transform_weight
from tvmgraph.ops.common.window import Pairs
from tvmgraph.ops.internal.conv_nchwc import nchwc_sums, pack_weight
from tvmgraph.ops.internal.rows import internal_row

__all__ = ["conv_winograd"]

_PLAIN = {"stride": (1, 1), "dilation": (1, 1)}


def _infer(
    input: TensorType, weight: TensorType, transformed: TensorType, *, padding: Pairs
) -> TensorType:
    rules.require_same_dtype(input, weight, transformed)
    rules.require_ndim(input, 5)
    result = OPS["conv_nchwc"].infer(input, weight, padding=padding, **_PLAIN)
    assert isinstance(result, TensorType)
    outer, blocks, kh, kw, inputs, outputs = weight.static_shape
    products, *rest = transformed.static_shape
    if (kh, kw) != (3, 3) or rest != [outer, blocks * inputs, outputs]:
        raise ShapeError(f"the transformed weight {transformed} does not belong to {weight}")
    if math.isqrt(products) ** 2 != products or products < 16:
        raise ShapeError(f"{products} products per window are none of a square of tiles")
    return result


def _eager(
    input: np.ndarray, weight: np.ndarray, transformed: np.ndarray, *, padding: Pairs
) -> np.ndarray:
    return OPS["conv_nchwc"].eager(input, weight, padding=padding, **_PLAIN)


def _lower(R: Builder, input: Expr, weight: Expr, transformed: Expr, *, padding: Pairs) -> Expr:
    t = R.type(input)
    out = _infer(t, R.type(weight), R.type(transformed), padding=padding).shape
    tile = math.isqrt(R.type(transformed).static_shape[0]) - 2
    # whole tiles: the kernel reads, and then drops, what lies beyond the last row and column
    whole = tuple((lo, hi + -o % tile) for (lo, hi), o in zip(padding, out[2:4]))

    def convolve(x: Expr, w: Expr, _transformed: Expr) -> Expr:
        return nchwc_sums(R, x, w, out, whole, **_PLAIN, winograd=tile)

    return R.emit_te(
        convolve, input, weight, transformed, declared=(2,), primfunc_name_hint="conv_winograd"
    )


def _sample(*shapes: object, padding: Pairs = ((1, 1), (1, 1)), **kwargs: Any) -> Sample:
    return sample(*shapes, padding=padding, grad=False, **kwargs)


def _matching(outputs: int, inputs: int, block: int, tile: int) -> tuple[np.ndarray, np.ndarray]:
    """A packed weight, and the transform of the same weight."""
    rng = np.random.default_rng(outputs)
    weight = rng.standard_normal((outputs, inputs, 3, 3)).astype(np.float32)
    return pack_weight(weight, block, block), transform_weight(weight, tile, block)


@internal_row(
    _infer,
    _eager,
    _lower,
    samples=[
        _sample((2, 2, 5, 6, 8), *_matching(24, 16, 8, 2)),
        _sample((1, 1, 9, 7, 16), *_matching(32, 16, 16, 4), padding=((0, 1), (2, 0))),
        _sample((2, 3, 6, 9, 16), *_matching(96, 16, 16, 4)),
        _sample((1, 4, 7, 5, 8), *_matching(48, 16, 8, 2)),
        _sample((1, 2, 4, 5, 8), (1, 2, 3, 3, 8, 8), (20, 1, 16, 8), raises=ShapeError),
        _sample((1, 2, 4, 5, 8), (1, 2, 3, 3, 8, 8), (16, 1, 8, 8), raises=ShapeError),
    ],
)
def conv_winograd(input: Tensor, weight: Tensor, transformed: Tensor, padding: Pairs) -> Tensor:
    r"""Convolution with stride 1 and a 3 x 3 window, by fewer products.

    The sums are those of :func:`conv_nchwc`, computed with
    :math:`A^T [(G g G^T) \odot (B^T d B)] A`. In float32 they differ from plain sums by no more
    than plain sums differ from the true ones; where one of them is not finite the plain sum counts.

    Args:
        input: NCHWc, shape :math:`(N, g I, H, W, j)`, with g groups as in :func:`conv_nchwc`.
        weight: Shape (O, I, 3, 3, j, b).
        transformed: Shape :math:`((m + 2)^2, O, I j, b)`: :math:`G g G^T` of every window g.
        padding: Zeros ``(before, after)``, per spatial axis.

    Returns:
        Tensor of shape (N, O, OH, OW, b).

    Raises:
        ShapeError: if the extents do not fit.

    Example:
        >>> x, w = ops.ones((1, 2, 4, 4, 8)), ops.ones((3, 2, 3, 3, 8, 8))
        >>> u = ops.ones((16, 3, 16, 8))
        >>> ops.conv_winograd(x, w, u, ((0, 0), (0, 0))).shape
        (1, 3, 2, 2, 8)
    """
    ...
