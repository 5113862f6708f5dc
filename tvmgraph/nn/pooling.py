"""Maximum and average pooling."""

from __future__ import annotations

from typing import Any

from tvmgraph.core.arguments import PerAxis
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError
from tvmgraph.nn._checks import boolean, choice, int_tuple, positive, reject, require_axes
from tvmgraph.nn.cell import Cell
from tvmgraph.ops.common.window import Pairs, ceil_padding, resolve_padding

_FORMATS = ("NCHW", "NHWC")


class _Pool(Cell):
    """What all pooling layers share: the window and its padding."""

    _axes = 2
    _any_ceil = False  # whether ceil_mode goes with every pad_mode
    data_format = "NCHW"
    _shown = "kernel_size stride pad_mode"

    def __init__(
        self,
        kernel_size: PerAxis,
        stride: PerAxis,
        pad_mode: str,
        padding: Any,
        dilation: PerAxis,
        ceil_mode: bool,
    ) -> None:
        super().__init__()
        op, axes = type(self).__name__, self._axes
        self._kernel = int_tuple(op, "kernel_size", kernel_size, axes)
        self._stride = int_tuple(op, "stride", stride, axes)
        self._dilation = int_tuple(op, "dilation", dilation, axes)
        self.kernel_size = (1, *self._kernel) if axes == 1 else kernel_size
        self.stride = (1, *self._stride) if axes == 1 else stride
        mode = pad_mode.lower() if isinstance(pad_mode, str) else pad_mode
        self.pad_mode = choice(op, "pad_mode", mode, ("same", "valid", "pad")).upper()
        self.padding = padding
        self.ceil_mode = boolean(op, "ceil_mode", ceil_mode)
        pads = self._pairs(padding)
        padded = any(any(p) for p in pads) or (ceil_mode and not self._any_ceil)
        if mode != "pad" and (padded or self._dilated()):
            need = "padding needs" if self._any_ceil else "padding, dilation and ceil_mode need"
            reject(ArgumentError, op, f"{need} pad_mode='pad', not {pad_mode!r}",
                   f"padding={padding!r}, dilation={dilation!r}, ceil_mode={ceil_mode}",
                   "pass pad_mode='pad'")  # fmt: skip
        for k, pair in zip(self._kernel, pads):
            if max(pair) > k // 2:
                reject(ArgumentError, op, "padding must be at most half the kernel size",
                       f"padding={padding!r}, kernel_size={kernel_size!r}")  # fmt: skip

    def _dilated(self) -> bool:
        return any(d != 1 for d in self._dilation)

    def _pairs(self, padding: object) -> Pairs:
        """Returns a padding as one (before, after) pair per axis."""
        return tuple((p, p) for p in
                     int_tuple(type(self).__name__, "padding", padding, self._axes, 0))  # fmt: skip

    def _prepare(self, x: Tensor) -> tuple[Tensor, bool, Pairs, Pairs]:
        """Returns the input with batch and channels first, whether a batch axis was added, the
        padding, and the part of it that was asked for."""
        op, rank = type(self).__name__, self._axes + 2
        require_axes(op, x, rank, rank - 1)
        single = x.ndim == rank - 1
        x = F.expand_dims(x, 0) if single else x
        if self.data_format == "NHWC":
            x = F.transpose(x, (0, 3, 1, 2))
        pads = counted = self._pairs(self.padding)
        if self.pad_mode == "SAME":
            pads = resolve_padding("same", 0, x, self._kernel, self._stride, self._dilation, op)
        elif self.ceil_mode:
            pads = ceil_padding(x.shape[2:], self._kernel, self._stride, pads, self._dilation)
        return x, single, pads, counted

    def _finish(self, y: Tensor, single: bool) -> Tensor:
        if self.data_format == "NHWC":
            y = F.transpose(y, (0, 2, 3, 1))
        return F.squeeze(y, 0) if single else y


class _MaxPool(_Pool):
    def __init__(
        self,
        kernel_size: PerAxis = 1,
        stride: PerAxis = 1,
        pad_mode: str = "valid",
        padding: object = 0,
        dilation: PerAxis = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, ceil_mode)
        self.return_indices = boolean(type(self).__name__, "return_indices", return_indices)
        if return_indices and self.pad_mode != "PAD":
            reject(ArgumentError, type(self).__name__, "return_indices needs pad_mode='pad'",
                   f"pad_mode={pad_mode!r}", "pass pad_mode='pad'")  # fmt: skip

    def construct(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        x, single, pads, _ = self._prepare(x)
        window = (self._kernel, self._stride, pads, self._dilation)
        y = self._finish(F.max_pool(x, *window), single)
        if not self.return_indices:
            return y
        return y, self._finish(F.max_pool_index(x, *window), single)


class MaxPool1d(_MaxPool):
    r"""Largest element of every window of a sequence.

    Args:
        kernel_size: Size of the window.
        stride: Step of the window.
        pad_mode: ``"valid"`` (no padding), ``"same"`` (:math:`\lceil L / stride \rceil` outputs)
            or ``"pad"`` (by ``padding``).
        padding: What is added on both sides, at most half a window; only with ``"pad"``.
        dilation: Distance between window elements; only with ``"pad"``.
        return_indices: Whether the positions of the maxima are returned too; only with ``"pad"``.
        ceil_mode: Whether a partial last window counts; only with ``"pad"``.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, L)` or :math:`(C, L)`.

    Outputs:
        Tensor of shape :math:`(N, C, L_{out})`, or a tuple of it and int64 positions.

    Raises:
        ArgumentError: if arguments are out of range or contradict each other.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.MaxPool1d(2, 2)(ops.ones((1, 2, 6))).shape
        (1, 2, 3)
    """

    _axes = 1


class MaxPool2d(_MaxPool):
    r"""Largest element of every window of an image.

    Args:
        kernel_size: Size of the window: an int or ``(h, w)``.
        stride: Step of the window: an int or ``(h, w)``.
        pad_mode: ``"valid"`` (no padding), ``"same"`` (:math:`\lceil size / stride \rceil`
            outputs) or ``"pad"`` (by ``padding``).
        padding: An int or ``(h, w)``, at most half a window; only with ``"pad"``.
        dilation: Distance between window elements; only with ``"pad"``.
        return_indices: Whether the positions of the maxima are returned too; only with ``"pad"``.
        ceil_mode: Whether partial last windows count; only with ``"pad"``.
        data_format: ``"NCHW"`` or ``"NHWC"``.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, H, W)` or :math:`(C, H, W)`.

    Outputs:
        Tensor of shape :math:`(N, C, H_{out}, W_{out})`, or a tuple of it and int64 positions in
        :math:`H \cdot W`.

    Raises:
        ArgumentError: if arguments are out of range or contradict each other.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.MaxPool2d(2, 2)(ops.ones((1, 2, 6, 4))).shape
        (1, 2, 3, 2)
    """

    def __init__(
        self,
        kernel_size: PerAxis = 1,
        stride: PerAxis = 1,
        pad_mode: str = "valid",
        padding: object = 0,
        dilation: PerAxis = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, return_indices,
                         ceil_mode)  # fmt: skip
        self.data_format = choice(type(self).__name__, "data_format", data_format, _FORMATS)


class MaxPool3d(_MaxPool):
    r"""Largest element of every window of a volume.

    Args:
        kernel_size: Size of the window: an int or ``(d, h, w)``.
        stride: Step of the window: an int or ``(d, h, w)``.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``.
        padding: An int or ``(d, h, w)``, at most half a window; only with ``"pad"``.
        dilation: Distance between window elements; only with ``"pad"``.
        return_indices: Whether the positions of the maxima are returned too; only with ``"pad"``.
        ceil_mode: Whether partial last windows count; only with ``"pad"``.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, D, H, W)` or :math:`(C, D, H, W)`.

    Outputs:
        Tensor of shape :math:`(N, C, D_{out}, H_{out}, W_{out})`, or a tuple of it and int64
        positions.

    Raises:
        ArgumentError: if arguments are out of range or contradict each other.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.MaxPool3d(2, 2)(ops.ones((1, 1, 4, 4, 4))).shape
        (1, 1, 2, 2, 2)
    """

    _axes = 3


class _AvgPool(_Pool):
    _any_ceil = True

    def __init__(
        self,
        kernel_size: PerAxis = 1,
        stride: PerAxis = 1,
        pad_mode: str = "valid",
        padding: object = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, 1, ceil_mode)
        op = type(self).__name__
        self.data_format = choice(op, "data_format", data_format, _FORMATS)
        self.count_include_pad = boolean(op, "count_include_pad", count_include_pad)
        self.divisor_override = divisor_override
        if divisor_override is not None:
            positive(op, "divisor_override", divisor_override)

    def construct(self, x: Tensor) -> Tensor:
        x, single, pads, counted = self._prepare(x)
        if self.ceil_mode and self.pad_mode == "SAME":
            counted = pads
        if not self.count_include_pad or (self.pad_mode == "SAME" and not self.ceil_mode):
            counted = tuple((0, 0) for _ in pads)
        divisor = self.divisor_override or 0
        return self._finish(
            F.avg_pool(x, self._kernel, self._stride, pads, counted, divisor), single
        )


class AvgPool1d(_AvgPool):
    r"""Mean of every window of a sequence.

    Args:
        kernel_size: Size of the window.
        stride: Step of the window.
        pad_mode: ``"valid"`` (no padding), ``"same"`` (:math:`\lceil L / stride \rceil` outputs;
            padding does not count) or ``"pad"`` (by ``padding``).
        padding: Zeros on both sides, at most half a window; only with ``"pad"``.
        ceil_mode: Whether a partial last window counts; with ``"same"``, padding counts then.
        count_include_pad: Whether padding counts in the mean.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, L)` or :math:`(C, L)`, a float dtype.

    Outputs:
        Tensor of shape :math:`(N, C, L_{out})`.

    Raises:
        ArgumentError: if arguments are out of range or contradict each other.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.AvgPool1d(2, 2)(ops.ones((1, 2, 6))).shape
        (1, 2, 3)
    """

    _axes = 1

    def __init__(
        self,
        kernel_size: int = 1,
        stride: int = 1,
        pad_mode: str = "valid",
        padding: object = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad)


class AvgPool2d(_AvgPool):
    r"""Mean of every window of an image.

    Args:
        kernel_size: Size of the window: an int or ``(h, w)``.
        stride: Step of the window: an int or ``(h, w)``.
        pad_mode: ``"valid"`` (no padding), ``"same"`` (:math:`\lceil size / stride \rceil`
            outputs; padding does not count) or ``"pad"`` (by ``padding``).
        padding: An int or ``(h, w)``, at most half a window; only with ``"pad"``.
        ceil_mode: Whether partial last windows count; only with ``"pad"``.
        count_include_pad: Whether padding counts in the mean.
        divisor_override: What sums are divided by, instead of the number of elements.
        data_format: ``"NCHW"`` or ``"NHWC"``.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, H, W)` or :math:`(C, H, W)`, a float dtype.

    Outputs:
        Tensor of shape :math:`(N, C, H_{out}, W_{out})`.

    Raises:
        ArgumentError: if arguments are out of range or contradict each other.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.AvgPool2d(2, 2)(ops.ones((1, 2, 6, 4))).shape
        (1, 2, 3, 2)
    """


class AvgPool3d(_AvgPool):
    r"""Mean of every window of a volume.

    Args:
        kernel_size: Size of the window: an int or ``(d, h, w)``.
        stride: Step of the window: an int or ``(d, h, w)``.
        pad_mode: ``"valid"``, ``"same"`` (padding does not count) or ``"pad"``.
        padding: An int or ``(d, h, w)``, at most half a window; only with ``"pad"``.
        ceil_mode: Whether partial last windows count; only with ``"pad"``.
        count_include_pad: Whether padding counts in the mean.
        divisor_override: What sums are divided by, instead of the number of elements.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, D, H, W)` or :math:`(C, D, H, W)`, a float dtype.

    Outputs:
        Tensor of shape :math:`(N, C, D_{out}, H_{out}, W_{out})`.

    Raises:
        ArgumentError: if arguments are out of range or contradict each other.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.AvgPool3d(2, 2)(ops.ones((1, 1, 4, 4, 4))).shape
        (1, 1, 2, 2, 2)
    """

    _axes = 3

    def __init__(
        self,
        kernel_size: PerAxis = 1,
        stride: PerAxis = 1,
        pad_mode: str = "valid",
        padding: object = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad,
                         divisor_override)  # fmt: skip


__all__ = ["AvgPool1d", "AvgPool2d", "AvgPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d"]
