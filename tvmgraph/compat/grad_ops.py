"""``ops.operations._grad_ops``: MindSpore's operators of gradients, by the derivative of others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tvmgraph.compat import primitives
from tvmgraph.compat.absent import not_found
from tvmgraph.compat.primitives import helpers
from tvmgraph.compat.primitives.base import build_class, read_rows
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import float32, float64, int64
from tvmgraph.ops.compositions_images import pool_windows

PATH = "tvmgraph.ops.operations._grad_ops"
ROWS = read_rows("gradients")


class _Helpers:
    """Gradients that are no single expression."""

    ints = staticmethod(helpers.ints)

    @staticmethod
    def back(function: object, x: object, dy: object) -> Tensor:
        """The gradient of the operand; ``dy`` may have another shape of as many elements."""
        y, pullback = F.vjp(function, x)
        return pullback(F.reshape(dy, y.shape))[0]

    @staticmethod
    def spatial(sizes: Sequence[int]) -> Any:
        """Sizes of the last three axes; one int stands for three."""
        return sizes if isinstance(sizes, int) else sizes[-3:]

    @staticmethod
    def windowed(
        x: Tensor, dy: Tensor, rows: Any, columns: Any, overlapping: bool, mean: bool
    ) -> Tensor:
        """The gradient of what was pooled by windows between edges; integers have one, too."""
        wide = float64 if x.dtype.is_integer else x.dtype
        pool = functools.partial(pool_windows, rows=rows, columns=columns,
                                 overlapping=overlapping, mean=mean)  # fmt: skip
        return F.cast(_Helpers.back(pool, F.cast(x, wide), F.cast(dy, wide)), x.dtype)

    @staticmethod
    def scattered(x: Tensor, grad: object, argmax: object) -> Tensor:
        """Adds what came through a pool to the elements that it chose, numbered per channel."""
        flat = (*x.shape[:2], -1)
        zeros = F.zeros_like(F.reshape(x, flat))
        places, grad = F.reshape(argmax, flat), F.reshape(grad, flat)
        return F.reshape(F.tensor_scatter_elements(zeros, places, grad, 2, "add"), x.shape)

    @staticmethod
    def gathered(grad: Tensor, argmax: Tensor) -> Tensor:
        """The elements that a pool chose, numbered per image."""
        flat = (grad.shape[0], -1)
        found = F.gather_elements(F.reshape(grad, flat), 1, F.reshape(argmax, flat))
        return F.reshape(found, argmax.shape)

    @staticmethod
    def resized(resize: Callable[..., Tensor], grads: Tensor, size: object) -> Tensor:
        """The gradient of images of a size; ``resize(images, size)`` made the larger ones."""
        before = F.zeros((*grads.shape[:2], *helpers.ints(size)), grads.dtype)
        return _Helpers.back(lambda t: resize(t, tuple(grads.shape[2:])), before, grads)

    @staticmethod
    def padded(dy: Tensor, paddings: object, mode: str, contiguous: bool) -> Any:
        """The gradient of what was padded."""
        pads = helpers.ints(paddings)
        half = len(pads) // 2
        pairs = zip(pads[::2], pads[1::2]) if contiguous else zip(pads[:half], pads[half:])
        sums = [a + b for a, b in pairs][::-1]
        kept = (*dy.shape[: dy.ndim - half], *(n - s for n, s in zip(dy.shape[-half:], sums)))
        pad = primitives.PadV3(mode, contiguous)
        return _Helpers.back(lambda t: pad(t, pads), F.zeros(kept, dy.dtype), dy)

    @staticmethod
    def mirrored(dy: Tensor, paddings: object, mode: str) -> Tensor:
        """The gradient of what was padded by its own elements."""
        pairs = helpers.ints_nested(paddings)
        before = F.zeros([n - sum(p) for n, p in zip(dy.shape, pairs)], dy.dtype)
        pad = primitives.MirrorPad(mode)
        return _Helpers.back(lambda t: pad(t, paddings), before, dy)

    @staticmethod
    def layer_norm(
        x: object, dy: object, gamma: object, norm_axis: int, params_axis: int
    ) -> tuple[Tensor, ...]:
        """Gradients of the operand, the scale and the shift."""
        norm = primitives.LayerNorm(norm_axis, params_axis)
        return F.vjp(lambda *t: norm(*t)[0], x, gamma, F.zeros_like(gamma))[1](dy)

    @staticmethod
    def layer_norm_kept(
        x: Tensor, dy: Tensor, kept: tuple[Tensor, Tensor], gamma: Tensor, axes: tuple[int, int]
    ) -> tuple[Tensor, ...]:
        """Those gradients from the variance and the mean that are given, whatever they are."""
        norm, params = (a % x.ndim for a in axes)
        over, before = tuple(range(norm, x.ndim)), tuple(range(params))
        shape, precise = (*x.shape[:norm], *(1,) * len(over)), x.dtype is float64
        operand, wide, scale, variance, mean = (
            F.cast(t, float64 if precise else float32) for t in (x, dy, gamma, *kept)
        )
        inverse = F.rsqrt(F.reshape(variance, shape) + 1e-7)
        away, scaled = operand - F.reshape(mean, shape), wide * scale
        pull = F.mean(scaled * away, over, True) * inverse * inverse
        # the mean of what is away from the mean is 0 unless another mean was given
        back = scaled - F.mean(scaled, over, True) - away * pull + F.mean(away, over, True) * pull
        sums = [F.sum(t, before) if before else t for t in (wide * away * inverse, wide)]
        dgamma, dbeta = (F.cast(F.reshape(t, gamma.shape), gamma.dtype) for t in sums)
        return F.cast(back * inverse, x.dtype), dgamma, dbeta

    @staticmethod
    def batch_norm(
        dout: Tensor,
        x: Tensor,
        scale: object,
        mean: NumberLike,
        variance: Tensor,
        training: bool,
        epsilon: float,
        data_format: str,
    ) -> tuple[Tensor, ...]:
        """Gradients of the operand, the scale and the shift, from the statistics kept."""
        channels = 1 if data_format == "NCHW" else x.ndim - 1
        axes = tuple(a for a in range(x.ndim) if a != channels)
        shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
        scale, mean, variance = (F.reshape(t, shape) for t in (scale, mean, variance))
        inverse = F.rsqrt(variance + epsilon)
        normal = (x - mean) * inverse
        dscale, dbias = F.sum(dout * normal, axes, True), F.sum(dout, axes, True)
        if training:
            dout = dout - (dbias + normal * dscale) * (dscale.size / x.size)
        return dout * scale * inverse, F.reshape(dscale, (-1,)), F.reshape(dbias, (-1,))

    @staticmethod
    def concat_offset(inputs: Sequence[Tensor], axis: int) -> Tensor:
        """Where every operand of ``concat`` begins in the result, one row each."""
        rows, start = [], 0
        for x in inputs:
            rows.append([start if a == axis % x.ndim else 0 for a in range(x.ndim)])
            start += x.shape[axis]
        return Tensor(rows, int64)


def __getattr__(name: str) -> Any:
    if name not in ROWS:
        raise not_found(PATH, name, [*ROWS, *primitives.ROWS])
    built = build_class(ROWS[name], PATH, {"P": primitives, "H": _Helpers})
    globals()[name] = built
    return built


def __dir__() -> list[str]:
    return sorted(ROWS)


__all__ = [*ROWS]  # pyright: ignore[reportUnsupportedDunderAll]
