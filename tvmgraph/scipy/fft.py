"""SciPy's discrete cosine transforms, as MindSpore has them: type 2, orthonormal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError
from tvmgraph.ops.common.arguments import bad, describe, require_tensor

__all__ = ["dct", "dctn", "idct", "idctn"]


def dct(
    x: Tensor, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Tensor:
    r"""Discrete cosine transform along an axis.

    .. math::
        y_k = \sqrt{\frac{2 - \delta_{k0}}{n}} \sum_{i=0}^{n-1} x_i \cos\frac{\pi k (2i + 1)}{2n}

    Args:
        x: Tensor of any shape.
        type: Only 2.
        n: The length that the axis is cut or padded with zeros to.
        axis: The axis.
        norm: ``"ortho"``, which ``None`` means too.

    Returns:
        Tensor of ``x``'s shape with ``n`` elements along ``axis``; float32 for integers and halves.

    Raises:
        ArgumentError: for another type or norm, or a length below 1.

    Example:
        >>> ms.scipy.fft.dct(Tensor([1.0, 1.0, 1.0, 1.0]))[0]
        Tensor(shape=[], dtype=Float32, value= 2)
    """
    return _transform("dct", _forward, x, type, None if n is None else (n,), (axis,), norm)


def idct(
    x: Tensor, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Tensor:
    """Undoes :func:`dct`, whose arguments it takes.

    Args:
        x: Tensor of any shape.
        type: The type, 2.
        n: Size of the axis: it is cut, or padded with zeros; by default as it is.
        axis: The axis.
        norm: ``"ortho"``; ``None`` means the same.

    Example:
        >>> ms.scipy.fft.idct(Tensor([2.0, 0.0, 0.0, 0.0]))[0]
        Tensor(shape=[], dtype=Float32, value= 1)
    """
    return _transform("idct", _inverse, x, type, None if n is None else (n,), (axis,), norm)


def dctn(
    x: Tensor, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Tensor:  # fmt: skip
    """Transforms several axes by :func:`dct`.

    Args:
        x: Tensor of any shape.
        type: Only 2.
        s: The lengths that the axes are cut or padded with zeros to.
        axes: The axes; by default the last ``len(s)``, or all.
        norm: ``"ortho"``, which ``None`` means too.

    Raises:
        ArgumentError: for another type or norm, a length below 1, or ``s`` and ``axes`` of
            different lengths.

    Example:
        >>> ms.scipy.fft.dctn(ops.ones((2, 2)))[0, 0]
        Tensor(shape=[], dtype=Float32, value= 2)
    """
    return _transform("dctn", _forward, x, type, s, axes, norm)


def idctn(
    x: Tensor, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Tensor:  # fmt: skip
    """Undoes :func:`dctn`, whose arguments it takes.

    Args:
        x: Tensor of any shape.
        type: The type, 2.
        s: Sizes of the axes: they are cut, or padded with zeros; by default as they are.
        axes: The axes; by default all, or the last ones that ``s`` counts.
        norm: ``"ortho"``; ``None`` means the same.

    Example:
        >>> ms.scipy.fft.idctn(Tensor([[2.0, 0.0], [0.0, 0.0]])).tolist()[0][0]
        1.0
    """
    return _transform("idctn", _inverse, x, type, s, axes, norm)


def _transform(
    op: str, matrix: Callable[[int], np.ndarray], x: Tensor, type: int, s: Sequence[int] | None,
    axes: Sequence[int] | None, norm: str | None,
) -> Tensor:  # fmt: skip
    require_tensor(op, x)
    if axes is None:
        axes = range(-len(s if s is not None else x.shape), 0)
    sizes = tuple(x.shape[a] for a in axes) if s is None else tuple(s)
    if type != 2 or norm not in (None, "ortho") or min(sizes, default=1) < 1:
        raise bad(ArgumentError, "only type 2 with norm 'ortho' is known, of at least 1 element",
                  op, describe(x=x, type=type, n=sizes, norm=norm))  # fmt: skip
    if len(sizes) != len(axes):
        raise bad(ArgumentError, "s and axes must be of one length", op, describe(s=s, axes=axes))
    if x.dtype not in (dtypes.float64, dtypes.complex64, dtypes.complex128):
        x = F.cast(x, dtypes.float32)
    for axis, size in zip(axes, sizes):
        y = F.moveaxis(x, axis, -1)
        y = F.pad(y[..., :size], (0, max(0, size - y.shape[-1])))
        x = F.moveaxis(F.matmul(y, Tensor(matrix(size), x.dtype)), -1, axis)
    return x


def _forward(n: int) -> np.ndarray:
    return _inverse(n).T


def _inverse(n: int) -> np.ndarray:
    """The orthonormal matrix whose row k holds the cosine of frequency k."""
    k, i = np.arange(n)[:, None], np.arange(n)
    return np.sqrt((2 - (k == 0)) / n) * np.cos(np.pi * k * (2 * i + 1) / (2 * n))


_guard_module(globals(), "scipy.fft")
