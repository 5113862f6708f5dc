"""Resizing of signals, images and volumes."""

from __future__ import annotations

import math
from typing import Any

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.sizes import Dim, same_form
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.ops.common.arguments import bad
from tvmgraph.ops.common.window import Ints, ints, spatial_of
from tvmgraph.ops.image.resample import axis_order

__all__ = ["interpolate", "upsample"]

#: Resampling mode and accepted numbers of axes of every interpolation mode.
_MODES: dict[str, tuple[str, tuple[int, ...]]] = {
    "nearest": ("nearest", (3, 4, 5)),
    "nearest-exact": ("nearest_exact", (3, 4, 5)),
    "linear": ("linear", (3,)),
    "bilinear": ("linear", (4,)),
    "trilinear": ("linear", (5,)),
    "bicubic": ("cubic", (4,)),
    "area": ("mean", (3, 4, 5)),
}
_ALIGNABLE = ("linear", "bilinear", "trilinear", "bicubic")


def _check(
    input: Tensor, mode: str, align_corners: bool | None, size: object, scale: object
) -> None:
    op = "interpolate"
    if mode not in _MODES:
        raise bad(ArgumentError, f"mode must be one of {', '.join(_MODES)}", op, f"mode={mode!r}")
    if input.ndim not in _MODES[mode][1]:
        ranks = " or ".join(map(str, _MODES[mode][1]))
        raise bad(
            ShapeError, f"mode {mode!r} needs an input with {ranks} axes, not {input.ndim}", op,
            f"input={input.aval}",
        )  # fmt: skip
    if align_corners is not None and mode not in _ALIGNABLE:
        raise bad(
            ArgumentError, f"align_corners has no meaning in mode {mode!r}", op,
            f"align_corners={align_corners}", f"leave it out, or use {', '.join(_ALIGNABLE)}",
        )  # fmt: skip
    if (size is None) == (scale is None):
        raise bad(
            ArgumentError, "exactly one of size and scale_factor must be given", op,
            f"size={size}, scale_factor={scale}",
        )  # fmt: skip


def _scaled(sizes: Ints, scale_factor: Any) -> tuple[Ints, tuple[float, ...]]:
    """Returns the sizes and the factors of a scale."""
    op, count = "interpolate", len(sizes)
    many = isinstance(scale_factor, (tuple, list))
    factors = tuple(map(float, scale_factor)) if many else (float(scale_factor),) * count
    if len(factors) != count or any(not f > 0 for f in factors):
        raise bad(
            ArgumentError, f"scale_factor must be a positive number or {count} of them", op,
            f"scale_factor={scale_factor!r}",
        )  # fmt: skip
    return tuple(map(_times, sizes, factors)), factors


def _times(size: int, factor: float) -> int:
    """Returns how many elements an axis has that is scaled."""
    if isinstance(size, Dim) and factor.is_integer():
        return size * int(factor)
    if isinstance(size, Dim) and (1 / factor).is_integer():
        return size // int(1 / factor)
    return math.floor(size * factor)


def interpolate(
    input: Tensor, size: object = None, scale_factor: object = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
) -> Tensor:  # fmt: skip
    r"""Resizes the spatial axes.

    Args:
        input: Tensor of shape :math:`(N, C, L)`, :math:`(N, C, H, W)` or :math:`(N, C, D, H, W)`,
            a float dtype.
        size: The new sizes: an int or one per spatial axis.
        scale_factor: Or how much larger they become: a number or one per spatial axis.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"linear"`` (3 axes), ``"bilinear"`` (4),
            ``"trilinear"`` (5), ``"bicubic"`` (4) or ``"area"``.
        align_corners: Whether the corner pixels of both grids coincide (linear and cubic modes).
        recompute_scale_factor: Whether positions follow from the rounded sizes instead of
            ``scale_factor``.

    Returns:
        Tensor of shape :math:`(N, C, *size)` or
        :math:`(N, C, *\lfloor size \cdot scale\_factor \rfloor)`.

    Raises:
        ShapeError: if the number of axes does not fit the mode.
        ArgumentError: if an argument is not valid.

    Note:
        Cubic weights use a = -0.5 (without ``align_corners``) or a = -0.75, as in MindSpore.

    Example:
        >>> ops.interpolate(Tensor([[[1.0, 2.0]]]), size=4)
        Tensor(shape=[1, 1, 4], dtype=Float32, value=
        [[[ 1.00000000e+00,  1.00000000e+00,  2.00000000e+00,  2.00000000e+00]]])
    """
    cubic = "cubic" if align_corners else "keys"
    return interpolated(
        input, size, scale_factor, mode, align_corners, recompute_scale_factor, cubic
    )


def interpolated(
    input: Tensor, size: object, scale_factor: object, mode: str, align_corners: bool | None,
    recompute_scale_factor: bool | None, cubic: str,
) -> Tensor:  # fmt: skip
    """Resizes the spatial axes, see :func:`interpolate`.

    Args:
        input: As there; so are those that are not described here.
        size: The new sizes.
        scale_factor: Or how much larger they become.
        mode: How values between the points are found.
        align_corners: Whether the corners of both grids coincide.
        recompute_scale_factor: Whether positions follow from the rounded sizes.
        cubic: The mode of :func:`tvmgraph.ops.resample` that ``"bicubic"`` is.
    """
    op = "interpolate"
    _check(input, mode, align_corners, size, scale_factor)
    if recompute_scale_factor and size is not None:
        raise bad(ArgumentError, "recompute_scale_factor needs scale_factor", op, f"size={size}")
    count = input.ndim - 2
    old = spatial_of(input, count, op)
    steps = (0.0,) * count
    if size is None:
        new, factors = _scaled(old, scale_factor)
        if not recompute_scale_factor and mode != "area":
            steps = tuple(1.0 / f for f in factors)
    else:
        new = ints(size, count, "size", op)
    align = bool(align_corners)
    kind = cubic if mode == "bicubic" else _MODES[mode][0]
    return resize(input, old, new, kind, align, steps)


def resize(
    x: Tensor, old: Ints, new: Ints, mode: str, align: bool, steps: tuple[float, ...]
) -> Tensor:
    """Resamples the last axes one after the other, in the order of :func:`axis_order`.

    Args:
        x: Tensor whose last axes are resized.
        old: Their sizes.
        new: Their new sizes.
        mode: A mode of :func:`tvmgraph.ops.resample`.
        align: Whether the first and last points of both grids coincide; otherwise pixels are areas.
        steps: Old points per new one of every axis; 0 for the ratio of the sizes.
    """
    first = x.ndim - len(old)
    symbolic = any(isinstance(n, Dim) for n in (*old, *new))
    for i in range(len(old)) if symbolic else axis_order(old, new):
        if same_form(old[i : i + 1], new[i : i + 1]) and steps[i] in (0.0, 1.0):
            continue
        x = F.resample(x, axis=first + i, size=new[i], mode=mode, align_corners=align,
                       scale=steps[i], transposed=False)  # fmt: skip
    pixels = mode.startswith("nearest") and x.dtype is dtypes.uint8
    return x if pixels or x.dtype.kind in "fc" else F.cast(x, dtypes.float32)


upsample = interpolate
