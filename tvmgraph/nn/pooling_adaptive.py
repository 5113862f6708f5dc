"""Pooling to a given output size, power-mean pooling, and the inverse of maximum pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvmgraph.core.arguments import PerAxis
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, TypeOrValueError
from tvmgraph.nn._checks import boolean, int_tuple, is_int, is_real, positive, reject, require_axes
from tvmgraph.nn.cell import Cell


def _output_size(op: str, value: object, count: int) -> Any:
    """Checks an output size: an int, or per axis an int or None (as the input)."""
    if count == 1:
        return positive(op, "output_size", value)
    sizes = (value,) * count if is_int(value) or value is None else value
    if not isinstance(sizes, (tuple, list)) or not all(s is None or is_int(s) for s in sizes):
        reject(TypeOrValueError, op, "output_size must be an int or a tuple of ints and None",
               f"output_size={value!r}")  # fmt: skip
    if len(sizes) != count:
        reject(ArgumentError, op, f"output_size must have {count} elements, not {len(sizes)}",
               f"output_size={value!r}")  # fmt: skip
    for s in sizes:
        if s is not None:
            positive(op, "output_size", s)
    return tuple(sizes)


class _Adaptive(Cell):
    _axes = 2

    def __init__(self, output_size: object) -> None:
        super().__init__()
        self.output_size = _output_size(type(self).__name__, output_size, self._axes)

    def _check(self, x: Tensor) -> None:
        require_axes(type(self).__name__, x, self._axes + 2, self._axes + 1)


class _AdaptiveAvg(_Adaptive):
    def construct(self, input: Tensor) -> Tensor:
        self._check(input)
        return getattr(F, f"adaptive_avg_pool{self._axes}d")(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvg):
    r"""Means over windows chosen so that the output has a given length.

    Args:
        output_size: The length.

    Inputs:
        - **input** (Tensor) - Shape :math:`(N, C, L)` or :math:`(C, L)`, a float dtype.

    Outputs:
        Tensor of shape :math:`(N, C, output\_size)`.

    Raises:
        ArgumentError: if the size is not positive.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.AdaptiveAvgPool1d(2)(ops.ones((1, 2, 5))).shape
        (1, 2, 2)
    """

    _axes = 1


class AdaptiveAvgPool2d(_AdaptiveAvg):
    r"""Means over windows chosen so that the output has a given size.

    Args:
        output_size: An int or ``(h, w)``; ``None`` keeps the input's size.

    Inputs:
        - **input** (Tensor) - Shape :math:`(N, C, H, W)` or :math:`(C, H, W)`, a float dtype.

    Outputs:
        Tensor of shape :math:`(N, C, h, w)`.

    Raises:
        ArgumentError: if a size is not positive.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.AdaptiveAvgPool2d((1, 2))(ops.ones((1, 2, 5, 4))).shape
        (1, 2, 1, 2)
    """


class AdaptiveAvgPool3d(_AdaptiveAvg):
    r"""Means over windows chosen so that the output has a given size.

    Args:
        output_size: An int or ``(d, h, w)``; ``None`` keeps the input's size.

    Inputs:
        - **input** (Tensor) - Shape :math:`(N, C, D, H, W)` or :math:`(C, D, H, W)`.

    Outputs:
        Tensor of shape :math:`(N, C, d, h, w)`.

    Raises:
        ArgumentError: if a size is not positive.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.AdaptiveAvgPool3d(1)(ops.ones((1, 2, 3, 4, 5))).shape
        (1, 2, 1, 1, 1)
    """

    _axes = 3


class AdaptiveMaxPool1d(_Adaptive):
    r"""Maxima over windows chosen so that the output has a given length.

    Args:
        output_size: The length.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, L)` or :math:`(C, L)`.

    Outputs:
        Tensor of shape :math:`(N, C, output\_size)`.

    Raises:
        ArgumentError: if the size is not positive.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.AdaptiveMaxPool1d(2)(ops.ones((1, 2, 5))).shape
        (1, 2, 2)
    """

    _axes = 1

    def construct(self, x: Tensor) -> Tensor:
        self._check(x)
        return F.adaptive_max_pool1d(x, self.output_size)


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size: object, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = boolean(type(self).__name__, "return_indices", return_indices)

    def construct(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        self._check(input)
        function = getattr(F, f"adaptive_max_pool{self._axes}d")
        return function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMax):
    r"""Maxima over windows chosen so that the output has a given size.

    Args:
        output_size: An int or ``(h, w)``; ``None`` keeps the input's size.
        return_indices: Whether the positions of the maxima are returned too.

    Inputs:
        - **input** (Tensor) - Shape :math:`(N, C, H, W)` or :math:`(C, H, W)`.

    Outputs:
        Tensor of shape :math:`(N, C, h, w)`, or a tuple of it and int64 positions.

    Raises:
        ArgumentError: if a size is not positive.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.AdaptiveMaxPool2d(2)(ops.ones((1, 2, 5, 4))).shape
        (1, 2, 2, 2)
    """


class AdaptiveMaxPool3d(_AdaptiveMax):
    r"""Maxima over windows chosen so that the output has a given size.

    Args:
        output_size: An int or ``(d, h, w)``; ``None`` keeps the input's size.
        return_indices: Whether the positions of the maxima are returned too.

    Inputs:
        - **input** (Tensor) - Shape :math:`(N, C, D, H, W)` or :math:`(C, D, H, W)`.

    Outputs:
        Tensor of shape :math:`(N, C, d, h, w)`, or a tuple of it and int64 positions.

    Raises:
        ArgumentError: if a size is not positive.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.AdaptiveMaxPool3d(1)(ops.ones((1, 2, 3, 4, 5))).shape
        (1, 2, 1, 1, 1)
    """

    _axes = 3


class _LPPool(Cell):
    _axes = 2

    def __init__(
        self,
        norm_type: float,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        if not is_real(norm_type):
            reject(DTypeError, op, f"norm_type must be a number, not {type(norm_type).__name__}")
        if norm_type == 0:
            reject(ArgumentError, op, "norm_type must not be 0")
        self.norm_type = float(norm_type)
        int_tuple(op, "kernel_size", kernel_size, self._axes)
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        int_tuple(op, "stride", self.stride, self._axes)
        self.ceil_mode = boolean(op, "ceil_mode", ceil_mode)

    def construct(self, x: Tensor) -> Tensor:
        function = getattr(F, f"lp_pool{self._axes}d")
        return function(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPool):
    r"""Power sum of every window of a sequence: :math:`(\sum x^p)^{1/p}`.

    Args:
        norm_type: :math:`p`; not 0.
        kernel_size: Size of the window.
        stride: Step of the window; the window's size by default.
        ceil_mode: Whether a partial last window counts.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, L)` or :math:`(C, L)`, a float dtype.

    Outputs:
        Tensor of shape :math:`(N, C, L_{out})`.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> nn.LPPool1d(1, 2)(ops.ones((1, 1, 4))).asnumpy().tolist()
        [[[2.0, 2.0]]]
    """

    _axes = 1


class LPPool2d(_LPPool):
    r"""Power sum of every window of an image: :math:`(\sum x^p)^{1/p}`.

    Args:
        norm_type: :math:`p`; not 0.
        kernel_size: Size of the window: an int or ``(h, w)``.
        stride: Step of the window; the window's size by default.
        ceil_mode: Whether partial last windows count.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, H, W)` or :math:`(C, H, W)`, a float dtype.

    Outputs:
        Tensor of shape :math:`(N, C, H_{out}, W_{out})`.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> nn.LPPool2d(1, 2)(ops.ones((1, 1, 2, 2))).asnumpy().tolist()
        [[[[4.0]]]]
    """


class _MaxUnpool(Cell):
    _axes = 2

    def __init__(
        self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: Any = 0
    ) -> None:
        super().__init__()
        op = type(self).__name__
        int_tuple(op, "kernel_size", kernel_size, self._axes)
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        int_tuple(op, "stride", self.stride, self._axes)
        int_tuple(op, "padding", padding, self._axes, 0)
        self.padding = padding

    def construct(
        self, x: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        function = getattr(F, f"max_unpool{self._axes}d")
        return function(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    r"""Puts maxima back to where they were in a sequence; zeros elsewhere.

    Args:
        kernel_size: Size of the pooling window.
        stride: Step of the window; the window's size by default.
        padding: Padding of the pooling.

    Inputs:
        - **x** (Tensor) - Maxima, shape :math:`(N, C, L)` or :math:`(C, L)`.
        - **indices** (Tensor) - Their positions, the same shape.
        - **output_size** (tuple) - The shape before pooling, where it is not unique.

    Outputs:
        Tensor of the shape before pooling.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> nn.MaxUnpool1d(2)(Tensor([[[4.0]]]), Tensor([[[1]]])).asnumpy().tolist()
        [[[0.0, 4.0]]]
    """

    _axes = 1


class MaxUnpool2d(_MaxUnpool):
    r"""Puts maxima back to where they were in an image; zeros elsewhere.

    Args:
        kernel_size: Size of the pooling window.
        stride: Step of the window; the window's size by default.
        padding: Padding of the pooling.

    Inputs:
        - **x** (Tensor) - Maxima, shape :math:`(N, C, H, W)` or :math:`(C, H, W)`.
        - **indices** (Tensor) - Their positions in :math:`H \cdot W`, the same shape.
        - **output_size** (tuple) - The shape before pooling, where it is not unique.

    Outputs:
        Tensor of the shape before pooling.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> nn.MaxUnpool2d(2)(Tensor([[[[4.0]]]]), Tensor([[[[3]]]])).shape
        (1, 1, 2, 2)
    """


class MaxUnpool3d(_MaxUnpool):
    r"""Puts maxima back to where they were in a volume; zeros elsewhere.

    Args:
        kernel_size: Size of the pooling window.
        stride: Step of the window; the window's size by default.
        padding: Padding of the pooling.

    Inputs:
        - **x** (Tensor) - Maxima, shape :math:`(N, C, D, H, W)` or :math:`(C, D, H, W)`.
        - **indices** (Tensor) - Their positions, the same shape.
        - **output_size** (tuple) - The shape before pooling, where it is not unique.

    Outputs:
        Tensor of the shape before pooling.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> nn.MaxUnpool3d(1)(ops.ones((1, 1, 1, 1, 1)), ops.zeros((1, 1, 1, 1, 1), ms.int64)).shape
        (1, 1, 1, 1, 1)
    """

    _axes = 3


class _FractionalMaxPool(Cell):
    _function: str

    def __init__(
        self, kernel_size: PerAxis, output_size: object = None, output_ratio: object = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.output_size = kernel_size, output_size
        self.output_ratio, self._random_samples = output_ratio, _random_samples
        self.return_indices = boolean(type(self).__name__, "return_indices", return_indices)

    def construct(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        return getattr(F, self._function)(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPool):
    r"""Takes the largest elements of windows that random steps place.

    Args:
        kernel_size: Size of the windows.
        output_size: Height and width of the result.
        output_ratio: Their shares of those of the input instead.
        return_indices: Whether places in the image come, too.

    Inputs:
        - **input** (Tensor) - Shape :math:`(N, C, H, W)` or :math:`(C, H, W)`.

    Outputs:
        Tensor of shape :math:`(N, C, *output\_size)`, and the places where asked for.

    Raises:
        ArgumentError: when called, unless one of output_size and output_ratio is given.

    Example:
        >>> nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.5))(ops.ones((1, 1, 4, 4))).shape
        (1, 1, 2, 2)
    """

    _function = "fractional_max_pool2d"


class FractionalMaxPool3d(_FractionalMaxPool):
    r"""Takes the largest elements of windows of volumes; see :class:`FractionalMaxPool2d`.

    Args:
        kernel_size: Size of the windows.
        output_size: Depth, height and width of the result.
        output_ratio: Their shares of those of the input instead.
        return_indices: Whether places in the volume come, too.

    Inputs:
        - **input** (Tensor) - Shape :math:`(N, C, D, H, W)` or :math:`(C, D, H, W)`.

    Outputs:
        Tensor of shape :math:`(N, C, *output\_size)`, and the places where asked for.

    Raises:
        ArgumentError: when called, unless one of output_size and output_ratio is given.

    Example:
        >>> nn.FractionalMaxPool3d(1, output_size=(1, 2, 2))(ops.ones((1, 1, 2, 4, 4))).shape
        (1, 1, 1, 2, 2)
    """

    _function = "fractional_max_pool3d"


__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip
