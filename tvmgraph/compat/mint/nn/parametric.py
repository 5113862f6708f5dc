"""Layers with parameters, named and initialised as PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvmgraph import dtypes, nn, ops
from tvmgraph.common.initializer import HeUniform, Initializer, Uniform, initializer
from tvmgraph.compat.mint.nn import functional
from tvmgraph.core.arguments import DTypeLike, PerAxis
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, reject


def _parameter(
    init: object, shape: tuple[int, ...], dtype: DTypeLike | None, trained: bool = True
) -> Parameter:
    return Parameter(initializer(init, shape, dtype or dtypes.float32), requires_grad=trained)


def _fan_in(shape: tuple[int, ...]) -> Initializer:
    """Uniform in ``1 / sqrt(fan_in)``, PyTorch's initial bias."""
    return Uniform(1 / math.sqrt(max(1, math.prod(shape[1:]))))


class Linear(nn.Cell):
    """``y = x W^T + b`` with a weight of shape [out_features, in_features]."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True,
                 weight_init: object = None, bias_init: object = None,
                 dtype: DTypeLike | None = None) -> None:  # fmt: skip
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        shape = (out_features, in_features)
        drawn = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = _parameter(drawn, shape, dtype)
        drawn = _fan_in(shape) if bias_init is None else bias_init
        self.bias = _parameter(drawn, (out_features,), dtype) if bias else None

    def construct(self, input: Tensor) -> Tensor:
        return functional.linear(input, self.weight, self.bias)  # pyright: ignore

    def extend_repr(self) -> str:
        """Returns the sizes."""
        bias = "" if self.bias is None else ", has_bias=True"
        return f"input_features={self.in_features}, output_features={self.out_features}{bias}"


class _Conv(nn.Cell):
    """Convolution over ``axes`` axes."""

    axes = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        padding: Any = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        if in_channels % groups or out_channels % groups:
            reject(ArgumentError, f"mint.nn.{self.cls_name}",
                   f"groups={groups} must divide in_channels={in_channels} and "
                   f"out_channels={out_channels}")  # fmt: skip
        modes = ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise ArgumentError(f"padding_mode {padding_mode!r} is not known",
                                op=f"mint.nn.{self.cls_name}",
                                fix=f"use one of {', '.join(modes)}")  # fmt: skip
        self.padding_mode = padding_mode
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = kernel = _spread(kernel_size, self.axes)
        self.stride, self.dilation = _spread(stride, self.axes), _spread(dilation, self.axes)
        self.padding = padding if isinstance(padding, str) else _spread(padding, self.axes)
        self.output_padding: PerAxis = (0,) * self.axes
        self.settings = (stride, padding, dilation, groups)
        shape = self._weight_shape(in_channels, out_channels, groups, kernel)
        self.weight = _parameter(HeUniform(math.sqrt(5)), shape, dtype)
        self.bias = _parameter(_fan_in(shape), (out_channels,), dtype) if bias else None

    @staticmethod
    def _weight_shape(i: int, o: int, groups: int, kernel: tuple[int, ...]) -> tuple[int, ...]:
        return (o, i // groups, *kernel)

    def construct(self, input: Tensor) -> Tensor:
        stride, padding, dilation, groups = self.settings
        if self.padding_mode != "zeros" and not isinstance(padding, str):
            input, padding = ops.pad(input, self._reversed_padding, self.padding_mode), 0
        convolve = getattr(functional, f"conv{self.axes}d")
        return convolve(input, self.weight, self.bias, stride, padding, dilation, groups)

    @property
    def _reversed_padding(self) -> list[int]:
        return [p for n in reversed(_spread(self.padding, self.axes)) for p in (n, n)]

    def extend_repr(self) -> str:
        """Returns the main arguments."""
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, groups={self.groups}, bias={self.bias is not None}"
        )


def _spread(value: Any, count: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


class Conv1d(_Conv):
    """Convolution of signals of shape [N, C, L]."""

    axes = 1
    conv1d = staticmethod(functional.conv1d)


class Conv2d(_Conv):
    """Convolution of images of shape [N, C, H, W]."""

    conv2d = staticmethod(functional.conv2d)


class Conv3d(_Conv):
    """Convolution of volumes of shape [N, C, D, H, W]."""

    axes = 3
    conv3d = staticmethod(functional.conv3d)


class ConvTranspose2d(_Conv):
    """Transposed convolution of images; the weight has shape [in, out / groups, kh, kw]."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        padding: object = 0,
        output_padding: PerAxis = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: PerAxis = 1,
        padding_mode: str = "zeros",
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation,
                         groups, bias, padding_mode, dtype)  # fmt: skip
        self.output_padding = _spread(output_padding, self.axes)

    @staticmethod
    def _weight_shape(i: int, o: int, groups: int, kernel: tuple[int, ...]) -> tuple[int, ...]:
        return (i, o // groups, *kernel)

    def construct(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        stride, padding, dilation, groups = self.settings
        more = self.output_padding if output_size is None else self._missing(input, output_size)
        return ops.conv_transpose2d(input, self.weight, self.bias, stride, padding,
                                    more, groups, dilation)  # fmt: skip

    def _missing(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """How many rows and columns the smallest result lacks."""
        stride, padding, dilation = (_spread(v, 2) for v in self.settings[:3])
        smallest = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                input.shape[-2:], stride, padding, dilation, self.weight.shape[2:]
            )
        ]
        more = tuple(want - least for want, least in zip(output_size[-2:], smallest))
        if len(output_size) not in (2, input.ndim) or not all(
            0 <= m < s for m, s in zip(more, stride)
        ):
            reject(ArgumentError, "mint.nn.ConvTranspose2d",
                   f"output_size {tuple(output_size)} must be one of {smallest} to "
                   f"{[least + s - 1 for least, s in zip(smallest, stride)]}",
                   f"input={input.aval}")  # fmt: skip
        return more


class Embedding(nn.Cell):
    """Rows of a table of shape [num_embeddings, embedding_dim], by index.

    Raises:
        ArgumentError: if ``max_norm`` is given: rows are not renormalised.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False,
                 _weight: Tensor | None = None, _freeze: bool = False,
                 dtype: DTypeLike | None = None) -> None:  # fmt: skip
        super().__init__()
        if max_norm is not None or scale_grad_by_freq:
            raise ArgumentError("max_norm and scale_grad_by_freq are not offered",
                                op="mint.nn.Embedding")  # fmt: skip
        shape = (num_embeddings, embedding_dim)
        start = initializer("normal" if _weight is None else _weight, shape,
                            dtype or dtypes.float32) * (100 if _weight is None else 1)  # fmt: skip
        self.num_embeddings, self.embedding_dim, self.padding_idx = *shape, padding_idx
        if padding_idx is not None and _weight is None:
            start[padding_idx] = 0.0
        self.weight = Parameter(start, requires_grad=not _freeze)

    def construct(self, input: Tensor) -> Tensor:
        return functional.embedding(input, self.weight, self.padding_idx)  # pyright: ignore

    def extend_repr(self) -> str:
        """Returns the main arguments."""
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"padding_idx={self.padding_idx}, max_norm=None, norm_type=2.0, "
            f"scale_grad_by_freq=False, dtype={self.weight.dtype}"
        )


class _BatchNorm(nn.Cell):
    """Normalises channels over the batch; running statistics are buffers without gradient."""

    _shown = "num_features eps momentum affine track_running_stats"

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
                 affine: bool = True, track_running_stats: bool = True,
                 dtype: DTypeLike | None = None) -> None:  # fmt: skip
        super().__init__()
        shape = (num_features,)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight = _parameter("ones", shape, dtype) if affine else None
        self.bias = _parameter("zeros", shape, dtype) if affine else None
        self.running_mean = self.running_var = self.num_batches_tracked = None
        if track_running_stats:
            self.running_mean = _parameter("zeros", shape, dtype, False)
            self.running_var = _parameter("ones", shape, dtype, False)
            self.num_batches_tracked = _parameter("zeros", (), dtypes.int64, False)

    def construct(self, input: Tensor) -> Tensor:
        momentum = self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked += 1
            if momentum is None:  # the mean of all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        from_batch = self.training or self.running_mean is None
        return functional.batch_norm(input, self.running_mean, self.running_var, self.weight,
                                     self.bias, from_batch, momentum or 0.0, self.eps)  # fmt: skip


class BatchNorm1d(_BatchNorm):
    """Batch norm of shape [N, C] or [N, C, L]."""


class BatchNorm2d(_BatchNorm):
    """Batch norm of shape [N, C, H, W]."""


class BatchNorm3d(_BatchNorm):
    """Batch norm of shape [N, C, D, H, W]."""


class LayerNorm(nn.Cell):
    """Normalises the last axes, of sizes ``normalized_shape``."""

    _shown = "normalized_shape eps elementwise_affine"

    def __init__(self, normalized_shape: object, eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, dtype: DTypeLike | None = None) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape, self.eps = _spread(normalized_shape, 1), eps
        self.elementwise_affine = elementwise_affine
        self.weight = self.bias = None
        if elementwise_affine:
            self.weight = _parameter("ones", self.normalized_shape, dtype)
            self.bias = _parameter("zeros", self.normalized_shape, dtype) if bias else None

    def construct(self, input: Tensor) -> Tensor:
        return functional.layer_norm(  # pyright: ignore
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )


class GroupNorm(nn.Cell):
    """Normalises groups of channels."""

    _shown = "num_groups num_channels eps affine"

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5,
                 affine: bool = True, dtype: DTypeLike | None = None) -> None:  # fmt: skip
        super().__init__()
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        self.weight = _parameter("ones", (num_channels,), dtype, affine)
        self.bias = _parameter("zeros", (num_channels,), dtype, affine)

    def construct(self, input: Tensor) -> Tensor:
        return functional.group_norm(  # pyright: ignore
            input, self.num_groups, self.weight, self.bias, self.eps
        )


class PReLU(nn.Cell):
    """``x`` where positive, else a learned slope times ``x``."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, dtype: DTypeLike | None = None
    ) -> None:
        super().__init__()
        self.weight = _parameter(init, (num_parameters,), dtype)

    def construct(self, input: Tensor) -> Tensor:
        return functional.prelu(input, self.weight)  # pyright: ignore


__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d",
    "Embedding", "GroupNorm", "LayerNorm", "Linear", "PReLU",
]  # fmt: skip

_guard_module(globals(), "mint.nn")
