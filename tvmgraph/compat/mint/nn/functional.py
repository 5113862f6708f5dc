"""MindSpore's ``mindspore.mint.nn.functional``: layers as functions, with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

from tvmgraph import ops
from tvmgraph.compat.paths import look
from tvmgraph.core.arguments import AxisLike, DTypeLike, PerAxis
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, user_source

#: Functions of :mod:`tvmgraph.ops` that are PyTorch's as they are.
SHARED = """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
adaptive_max_pool2d clamp conv_transpose2d cosine_embedding_loss cross_entropy embedding fold gelu
grid_sample group_norm hardshrink hardsigmoid hardswish interpolate l1_loss layer_norm
linear mse_loss pixel_shuffle prelu relu sigmoid soft_margin_loss softplus softshrink tanh unfold
upsample
""".split()  # noqa: SIM905  (one word each)


def __getattr__(name: str) -> Any:
    if name in SHARED:
        return getattr(ops, name)
    return look("tvmgraph.mint.nn.functional", name, __all__)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Writes the ELU into ``input`` and returns it."""
    return _result(input, ops.elu(input, alpha), True)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Returns ``input`` between two bounds; ``inplace`` writes it there."""
    return _result(input, ops.hardtanh(input, min_val, max_val), inplace)


def hardtanh_(input: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    """Writes ``input`` between two bounds into it and returns it."""
    return _result(input, ops.hardtanh(input, min_val, max_val), True)


def sigmoid_(input: Tensor) -> Tensor:
    """Writes the logistic function into ``input`` and returns it."""
    return _result(input, ops.sigmoid(input), True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Writes ``value`` where ``input`` is not above the threshold, and returns it."""
    return _result(input, ops.threshold(input, threshold, value), True)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merges axes into one."""
    return ops.flatten(input, start_dim=start_dim, end_dim=end_dim)


def _result(input: Tensor, new: Tensor, inplace: bool) -> Tensor:
    return input.rebind(new) if inplace else new


def _padded(padding: object) -> tuple[str, object]:
    """Returns ``pad_mode`` and ``padding`` for PyTorch's padding."""
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ArgumentError(f"padding {padding!r} is not known", op="mint.nn.functional.conv",
                                at=user_source(), fix='use "same", "valid" or numbers')  # fmt: skip
        return padding, 0
    return "pad", padding


def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
           padding: object = 0, dilation: PerAxis = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """Convolves signals of shape [N, C, L]."""
    return ops.conv1d(input, weight, bias, stride, *_padded(padding), dilation, groups)


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
           padding: object = 0, dilation: PerAxis = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """Convolves images of shape [N, C, H, W]."""
    return ops.conv2d(input, weight, bias, stride, *_padded(padding), dilation, groups)


def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
           padding: object = 0, dilation: PerAxis = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """Convolves volumes of shape [N, C, D, H, W]."""
    return ops.conv3d(input, weight, bias, stride, *_padded(padding), dilation, groups)


def avg_pool1d(input: Tensor, kernel_size: Any, stride: PerAxis | None = None, padding: object = 0,
               ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:  # fmt: skip
    """Averages windows; the stride is the kernel size by default."""
    step = kernel_size if stride is None else stride
    return ops.avg_pool1d(input, kernel_size, step, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: object = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Averages windows; the stride is the kernel size by default."""
    step = kernel_size if stride is None else stride
    return ops.avg_pool2d(input, kernel_size, step, padding, ceil_mode, count_include_pad,
                          divisor_override or 0)  # fmt: skip


def avg_pool3d(
    input: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: object = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Averages windows; the stride is the kernel size by default."""
    step = kernel_size if stride is None else stride
    return ops.avg_pool3d(input, kernel_size, step, padding, ceil_mode, count_include_pad,
                          divisor_override or 0)  # fmt: skip


def max_pool2d(
    input: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: object = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Returns the maxima of windows, and where they are if asked for."""
    return ops.max_pool2d(input, kernel_size, stride, padding, dilation, return_indices, ceil_mode)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: object = 0,
    output_size: object = None,
) -> Tensor:
    """Puts maxima back to where they came from."""
    return ops.max_unpool2d(input, indices, kernel_size, stride, padding, output_size)


def batch_norm(input: Tensor, running_mean: Tensor, running_var: Tensor,
               weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Normalises channels by running statistics, or by those of the batch in training."""
    count = running_mean.shape[0]
    gain = ops.ones((count,), running_mean.dtype) if weight is None else weight
    shift = ops.zeros((count,), running_mean.dtype) if bias is None else bias
    return ops.batch_norm(input, running_mean, running_var, gain, shift, training, momentum, eps)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability ``p`` and scales the rest by ``1 / (1 - p)``."""
    return _result(input, ops.dropout(input, p, training), inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True,
              inplace: bool = False) -> Tensor:  # fmt: skip
    """Zeroes whole channels with probability ``p``."""
    return _result(input, ops.dropout2d(input, p, training), inplace)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Returns ``x`` where positive, else ``alpha * (exp(x) - 1)``."""
    return _result(input, ops.where(input > 0, input, alpha * ops.expm1(input)), inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Returns ``x`` where positive, else ``negative_slope * x``."""
    return _result(input, ops.leaky_relu(input, negative_slope), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Clips to [0, 6]."""
    return _result(input, ops.relu6(input), inplace)


def relu_(input: Tensor) -> Tensor:
    """Replaces negative elements by 0, in place."""
    return input.rebind(ops.relu(input))


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns the scaled exponential linear unit."""
    return _result(input, ops.selu(input), inplace)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns ``x * sigmoid(x)``."""
    return _result(input, ops.silu(input), inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns ``x * tanh(softplus(x))``."""
    return _result(input, ops.mish(input), inplace)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Returns ``x`` where above a threshold, else a value."""
    return _result(input, ops.threshold(input, threshold, value), inplace)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Returns ``a * sigmoid(b)`` of the two halves of an axis."""
    return ops.glu(input, dim)


def logsigmoid(input: Tensor) -> Tensor:
    """Returns ``log(sigmoid(x))``."""
    return ops.logsigmoid(input)


def softmax(input: Tensor, dim: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the softmax along an axis; without one along axis 0 or 1, as PyTorch chooses."""
    return ops.softmax(input, _implied(input) if dim is None else dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the logarithm of :func:`softmax`."""
    x = input if dtype is None else ops.cast(input, dtype)
    return ops.log_softmax(x, _implied(input) if dim is None else dim)


def _implied(input: Tensor) -> int:
    return 0 if input.ndim in (0, 1, 3) else 1


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None,
                         reduction: str = "mean") -> Tensor:  # fmt: skip
    """Returns ``-(t log(x) + (1 - t) log(1 - x))``, weighted and reduced."""
    return ops.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Returns :func:`binary_cross_entropy` of ``sigmoid(input)``."""
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean",
           log_target: bool = False) -> Tensor:  # fmt: skip
    """Returns ``t * (log t - x)`` of log-probabilities ``x``, reduced.

    Raises:
        ArgumentError: if the reduction is not "none", "mean", "sum" or "batchmean".
    """
    if log_target:
        loss = ops.exp(target) * (target - input)
    else:
        loss = ops.xlogy(target, target) - target * input
    reduced = {"none": lambda: loss, "mean": loss.mean, "sum": loss.sum,
               "batchmean": lambda: loss.sum() / input.shape[0]}  # fmt: skip
    if reduction not in reduced:
        raise ArgumentError(f"the reduction {reduction!r} is not known", op="kl_div",
                            at=user_source(), fix=f"use one of {', '.join(reduced)}")  # fmt: skip
    return reduced[reduction]()


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
             reduction: str = "mean") -> Tensor:  # fmt: skip
    """Returns minus the log-probability of the target classes, reduced."""
    return ops.nll_loss(input, target, weight, ignore_index, reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:  # fmt: skip
    """Returns ``0.5 d^2 / beta`` of small differences and ``|d| - beta / 2`` of others, reduced."""
    return ops.smooth_l1_loss(input, target, beta, reduction)


def normalize(input: Tensor, p: float = 2.0, dim: AxisLike = 1, eps: float = 1e-12) -> Tensor:
    """Divides by the p-norm along an axis, which counts as at least ``eps``."""
    size = ops.norm(input, p, dim=dim, keepdim=True)
    return input / ops.maximum(size, ops.full_like(size, eps))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Returns int64 rows with a one at each index; as many classes as occur by default."""
    count = int(tensor.max()) + 1 if num_classes == -1 else num_classes
    return ops.one_hot(tensor, count).astype("int64")


def pad(input: Tensor, pad: object, mode: str = "constant", value: object = None) -> Tensor:
    """Pads the last axes: ``pad`` has (before, after) of the last axis first."""
    return ops.pad(input, pad, mode, value)


__all__ = [
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "conv1d", "conv2d", "conv3d", "dropout", "dropout2d", "elu",
    "elu_", "flatten", "glu", "hardtanh_", "kl_div", "leaky_relu", "log_softmax", "logsigmoid",
    "max_pool2d", "max_unpool2d", "mish", "nll_loss", "normalize", "one_hot", "pad", "relu6",
    "relu_", "selu", "sigmoid_", "silu", "smooth_l1_loss", "softmax", "threshold", "threshold_",
]  # fmt: skip
__all__ += SHARED  # pyright: ignore[reportUnsupportedDunderAll]

_guard_module(globals(), "mint.nn.functional")
