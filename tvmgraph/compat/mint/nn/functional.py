"""MindSpore's ``mindspore.mint.nn.functional``: layers as functions, with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

from tvmgraph import ops
from tvmgraph.compat.mint import values
from tvmgraph.compat.paths import look
from tvmgraph.core.arguments import AxisLike, DTypeLike, PerAxis
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError
from tvmgraph.ops.image.interpolate import interpolated
from tvmgraph.ops.pooling.functions import batched, unbatched

#: Functions of :mod:`tvmgraph.ops` that are PyTorch's as they are.
SHARED = """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
adaptive_max_pool2d clamp conv_transpose2d cosine_embedding_loss cross_entropy embedding fold gelu
grid_sample group_norm hardshrink hardsigmoid hardswish l1_loss layer_norm
linear mse_loss pixel_shuffle prelu relu sigmoid soft_margin_loss softplus softshrink tanh unfold
upsample
""".split()  # noqa: SIM905  (one word each)


def __getattr__(name: str) -> Any:
    if name in SHARED:
        return getattr(ops, name)
    return look("tvmgraph.mint.nn.functional", name, __all__)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Writes the ELU into ``input`` and returns it.

    Args:
        input: Tensor of any shape.
        alpha: Factor of negative elements' result.
    """
    return _result(input, ops.elu(input, alpha), True)


def interpolate(
    input: Tensor, size: object = None, scale_factor: object = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
) -> Tensor:  # fmt: skip
    """Resizes the spatial axes as :func:`tvmgraph.ops.interpolate`, with PyTorch's cubic weights.

    Args:
        input: Tensor of shape (N, C, L), (N, C, H, W) or (N, C, D, H, W), a float dtype.
        size: The new sizes: an int or one per spatial axis.
        scale_factor: Or how much larger they become: a number or one per spatial axis.
        mode: A mode of :func:`tvmgraph.ops.interpolate`; ``"bicubic"`` has a = -0.75.
        align_corners: Whether the corner pixels of both grids coincide (linear and cubic modes).
        recompute_scale_factor: Whether positions follow from the rounded sizes instead of
            ``scale_factor``.
    """
    return interpolated(
        input, size, scale_factor, mode, align_corners, recompute_scale_factor, "cubic_exact"
    )


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Returns ``input`` between two bounds; ``inplace`` writes it there.

    Args:
        input: Tensor of any shape.
        min_val: Lower bound.
        max_val: Upper bound.
        inplace: Whether the result is written into ``input``, which is returned then.
    """
    return _result(input, ops.hardtanh(input, min_val, max_val), inplace)


def hardtanh_(input: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    """Writes ``input`` between two bounds into it and returns it.

    Args:
        input: Tensor of any shape.
        min_val: Lower bound.
        max_val: Upper bound.
    """
    return _result(input, ops.hardtanh(input, min_val, max_val), True)


def sigmoid_(input: Tensor) -> Tensor:
    """Writes the logistic function into ``input`` and returns it.

    Args:
        input: Tensor of any shape.
    """
    return _result(input, ops.sigmoid(input), True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Writes ``value`` where ``input`` is not above the threshold, and returns it.

    Args:
        input: Tensor of any shape.
        threshold: Elements that are greater stay.
        value: What other elements become.
    """
    return _result(input, ops.threshold(input, threshold, value), True)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merges axes into one.

    Args:
        input: Tensor of any shape; one with fewer than two axes gives one axis.
        start_dim: The first axis.
        end_dim: The last axis, which is included.
    """
    return ops.flatten(input, start_dim=start_dim, end_dim=end_dim)


def _result(input: Tensor, new: Tensor, inplace: bool) -> Tensor:
    return input.rebind(new) if inplace else new


def _padded(padding: object) -> tuple[str, object]:
    """Returns ``pad_mode`` and ``padding`` for PyTorch's padding."""
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ArgumentError(f"padding {padding!r} is not known", op="mint.nn.functional.conv",
                                fix='use "same", "valid" or numbers')  # fmt: skip
        return padding, 0
    return "pad", padding


def _convolved(axes: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: PerAxis,
               padding: object, dilation: PerAxis, groups: int) -> Tensor:  # fmt: skip
    """Convolves a batch, or what lacks its axis."""
    x, added = batched(input, axes, f"conv{axes}d")
    convolve = getattr(ops, f"conv{axes}d")
    return unbatched(convolve(x, weight, bias, stride, *_padded(padding), dilation, groups), added)


def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
           padding: object = 0, dilation: PerAxis = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """Convolves signals of shape [N, C, L], or one of [C, L].

    Args:
        input: Signals [N, C, L].
        weight: Kernels [O, C / groups, l].
        bias: One number per output channel [O].
        stride: Step of the window.
        padding: Zeros on every side, one number or one per axis, or ``"same"`` or ``"valid"``.
        dilation: Distance between kernel taps.
        groups: Number of blocks into which the channels are split.
    """
    return _convolved(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
           padding: object = 0, dilation: PerAxis = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """Convolves images of shape [N, C, H, W], or one of [C, H, W].

    Args:
        input: Images [N, C, H, W].
        weight: Kernels [O, C / groups, h, w].
        bias: One number per output channel [O].
        stride: Step of the window: an int or one per axis.
        padding: Zeros on every side, one number or one per axis, or ``"same"`` or ``"valid"``.
        dilation: Distance between kernel taps: an int or one per axis.
        groups: Number of blocks into which the channels are split.
    """
    return _convolved(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
           padding: object = 0, dilation: PerAxis = 1, groups: int = 1) -> Tensor:  # fmt: skip
    """Convolves volumes of shape [N, C, D, H, W], or one of [C, D, H, W].

    Args:
        input: Volumes [N, C, D, H, W].
        weight: Kernels [O, C / groups, d, h, w].
        bias: One number per output channel [O].
        stride: Step of the window: an int or one per axis.
        padding: Zeros on every side, one number or one per axis, or ``"same"`` or ``"valid"``.
        dilation: Distance between kernel taps: an int or one per axis.
        groups: Number of blocks into which the channels are split.
    """
    return _convolved(3, input, weight, bias, stride, padding, dilation, groups)


def avg_pool1d(input: Tensor, kernel_size: Any, stride: PerAxis | None = None, padding: object = 0,
               ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:  # fmt: skip
    """Averages windows; the stride is the kernel size by default.

    Args:
        input: Signals [N, C, L].
        kernel_size: Window size.
        stride: Steps of the window; its size by default.
        padding: Zeros on both sides.
        ceil_mode: Whether a partial last window counts.
        count_include_pad: Whether the padding counts as elements of the mean.
    """
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
    """Averages windows; the stride is the kernel size by default.

    Args:
        input: Images [N, C, H, W].
        kernel_size: Window size: an int or ``(h, w)``.
        stride: Steps of the window; its size by default.
        padding: Zeros: an int, ``(h, w)`` or ``(top, bottom, left, right)``.
        ceil_mode: Whether a partial last window counts.
        count_include_pad: Whether the padding counts as elements of the mean.
        divisor_override: What sums are divided by instead, unless 0.
    """
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
    """Averages windows; the stride is the kernel size by default.

    Args:
        input: Volumes [N, C, D, H, W].
        kernel_size: Window size: an int or ``(d, h, w)``.
        stride: Steps of the window; its size by default.
        padding: Zeros: an int, one per axis, or ``(before, after)`` for each axis.
        ceil_mode: Whether a partial last window counts.
        count_include_pad: Whether the padding counts as elements of the mean.
        divisor_override: What sums are divided by instead, unless 0.
    """
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
    """Returns the maxima of windows, and where they are if asked for.

    Args:
        input: Images [N, C, H, W].
        kernel_size: Window size: an int or ``(h, w)``.
        stride: Steps of the window; its size by default.
        padding: Cells on every side that are never the maximum.
        dilation: Distance between window elements.
        ceil_mode: Whether a partial last window counts.
        return_indices: Whether the places of the maxima follow, counted in the image.
    """
    return ops.max_pool2d(input, kernel_size, stride, padding, dilation, return_indices, ceil_mode)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: object = 0,
    output_size: object = None,
) -> Tensor:
    """Puts maxima back to where they came from.

    Args:
        input: Maxima [N, C, H, W].
        indices: Where they were in the image, as :func:`max_pool2d` returns it.
        kernel_size: Window size of the pooling.
        stride: Steps of the window; its size by default.
        padding: Its padding.
        output_size: Shape of the result where several are possible.
    """
    return ops.max_unpool2d(input, indices, kernel_size, stride, padding, output_size)


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
               weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Normalises channels by running statistics, or by those of the batch in training.

    Args:
        input: Tensor [N, C, ...].
        running_mean: Mean per channel [C], updated in training; None keeps none.
        running_var: Variance per channel [C], updated in training; None keeps none.
        weight: Factor per channel [C]; 1 by default.
        bias: What is added per channel [C]; 0 by default.
        training: Whether the statistics are those of the batch.
        momentum: Share of the batch in the running statistics.
        eps: What is added to the variance.
    """
    zeros, ones = (f(input.shape[1:2], input.dtype) for f in (ops.zeros, ops.ones))
    mean = zeros if running_mean is None else running_mean
    variance = ones if running_var is None else running_var
    gain, shift = ones if weight is None else weight, zeros if bias is None else bias
    return ops.batch_norm(input, mean, variance, gain, shift, training, momentum, eps)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability ``p`` and scales the rest by ``1 / (1 - p)``.

    Args:
        input: Float tensor of any shape.
        p: Probability of dropping an element.
        training: Whether to drop; otherwise ``input`` is returned.
        inplace: Whether the result is written into ``input``, which is returned then.
    """
    return _result(input, ops.dropout(input, p, training), inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True,
              inplace: bool = False) -> Tensor:  # fmt: skip
    """Zeroes whole channels with probability ``p``.

    Args:
        input: Tensor [N, C, ...].
        p: Probability of dropping a channel.
        training: Whether to drop; otherwise ``input`` is returned.
        inplace: Whether the result is written into ``input``, which is returned then.
    """
    return _result(input, ops.dropout2d(input, p, training), inplace)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Returns ``x`` where positive, else ``alpha * (exp(x) - 1)``.

    Args:
        input: Tensor of any shape.
        alpha: Depth of the negative part.
        inplace: Whether the result is written into ``input``, which is returned then.
    """
    return _result(input, ops.elu(input, alpha), inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Returns ``x`` where positive, else ``negative_slope * x``.

    Args:
        input: Tensor of any shape; on integers the result keeps their dtype.
        negative_slope: Factor of negative elements.
        inplace: Whether the result is written into ``input``, which is returned then.
    """
    return _result(input, ops.leaky_relu(input, negative_slope), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Clips to [0, 6].

    Args:
        input: Tensor of any shape.
        inplace: Whether the result is written into ``input``, which is returned then.
    """
    return _result(input, ops.relu6(input), inplace)


def relu_(input: Tensor) -> Tensor:
    """Replaces negative elements by 0, in place.

    Args:
        input: Tensor of any shape.
    """
    return input.rebind(ops.relu(input))


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns the scaled exponential linear unit.

    Args:
        input: Tensor of any shape.
        inplace: Whether the result is written into ``input``, which is returned then.
    """
    return _result(input, ops.selu(input), inplace)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns ``x * sigmoid(x)``.

    Args:
        input: Tensor of any shape; integers are computed in float32.
        inplace: Whether the result is written into ``input``, which is returned then.
    """
    return _result(input, ops.silu(input), inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns ``x * tanh(softplus(x))``.

    Args:
        input: Tensor of any shape.
        inplace: Whether the result is written into ``input``, which is returned then.
    """
    return _result(input, ops.mish(input), inplace)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Returns ``x`` where above a threshold, else a value.

    Args:
        input: Tensor of any shape.
        threshold: Elements that are greater stay.
        value: What replaces the other elements.
        inplace: Whether the result is written into ``input``, which is returned then.
    """
    return _result(input, ops.threshold(input, threshold, value), inplace)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Returns ``a * sigmoid(b)`` of the two halves of an axis.

    Args:
        input: Tensor whose axis has an even size.
        dim: The axis.
    """
    return ops.glu(input, dim)


def logsigmoid(input: Tensor) -> Tensor:
    """Returns ``log(sigmoid(x))``.

    Args:
        input: Tensor of any shape.
    """
    return ops.logsigmoid(input)


def softmax(input: Tensor, dim: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the softmax along an axis; without one along axis 0 or 1, as PyTorch chooses.

    Args:
        input: Tensor of any shape; integers are computed in float32.
        dim: The axis; by default 0 of 0, 1 or 3 axes, else 1.
        dtype: ``input`` is converted to this dtype first, unless it is ``None``.
    """
    return values.softmax(input, _implied(input) if dim is None else dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Returns the logarithm of :func:`softmax`.

    Args:
        input: Tensor of any shape.
        dim: The axis; by default 0 of 0, 1 or 3 axes, else 1.
        dtype: The dtype of the computation and the result.
    """
    x = input if dtype is None else ops.cast(input, dtype)
    axis = _implied(input) if dim is None else dim
    return values._with_an_axis(lambda x: ops.log_softmax(x, axis), x)


def _implied(input: Tensor) -> int:
    return 0 if input.ndim in (0, 1, 3) else 1


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None,
                         reduction: str = "mean") -> Tensor:  # fmt: skip
    """Returns ``-(t log(x) + (1 - t) log(1 - x))``, weighted and reduced.

    Args:
        input: Probabilities, of any shape.
        target: Probabilities, of the shape of ``input``.
        weight: Factor of every element, broadcast.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
    """
    return ops.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Returns :func:`binary_cross_entropy` of ``sigmoid(input)``.

    Args:
        input: Logits, of any shape.
        target: Probabilities, of the shape of ``input``.
        weight: Factor of every element, broadcast.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
        pos_weight: Factor of the positive targets, broadcast.
    """
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean",
           log_target: bool = False) -> Tensor:  # fmt: skip
    """Returns ``t * (log t - x)`` of log-probabilities ``x``, reduced.

    Args:
        input: Log-probabilities, of any shape.
        target: Probabilities, of the shape of ``input``.
        reduction: ``"none"``, ``"mean"``, ``"sum"`` or ``"batchmean"``, which divides by the batch.
        log_target: Whether ``target`` are log-probabilities, too.

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
                            fix=f"use one of {', '.join(reduced)}")  # fmt: skip
    return reduced[reduction]()


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
             reduction: str = "mean") -> Tensor:  # fmt: skip
    """Returns minus the log-probability of the target classes, reduced.

    Args:
        input: Log-probabilities [N, C, ...].
        target: Classes [N, ...], integers.
        weight: Factor per class [C].
        ignore_index: The class whose targets do not count.
        reduction: ``"none"``, ``"mean"`` (weighted) or ``"sum"``.
    """
    return ops.nll_loss(input, target, weight, ignore_index, reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:  # fmt: skip
    """Returns ``0.5 d^2 / beta`` of small differences and ``|d| - beta / 2`` of others, reduced.

    Args:
        input: Tensor of any shape.
        target: Tensor of the shape of ``input``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
        beta: Where squares end.
    """
    return ops.smooth_l1_loss(input, target, beta, reduction)


def normalize(input: Tensor, p: float = 2.0, dim: AxisLike = 1, eps: float = 1e-12) -> Tensor:
    """Divides by the p-norm along an axis, which counts as at least ``eps``.

    Args:
        input: Tensor of any shape.
        p: Order of the norm.
        dim: Axis or axes.
        eps: The norm at least.
    """
    size = ops.norm(input, p, dim=dim, keepdim=True)
    return input / ops.maximum(size, ops.full_like(size, eps))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Returns int64 rows with a one at each index; as many classes as occur by default.

    Args:
        tensor: Indices of any shape, int32 or int64.
        num_classes: Size of the last axis of the result; -1 for one more than the largest index.
    """
    count = int(tensor.max()) + 1 if num_classes == -1 else num_classes
    return ops.one_hot(tensor, count).astype("int64")


def pad(input: Tensor, pad: object, mode: str = "constant", value: object = None) -> Tensor:
    """Pads the last axes: ``pad`` has (before, after) of the last axis first.

    Args:
        input: Tensor of any shape.
        pad: Numbers of elements, (before, after) of the last axis, then of the one before.
        mode: ``"constant"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        value: The constant, 0 by default.
    """
    return ops.pad(input, pad, mode, value)


__all__ = [
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "conv1d", "conv2d", "conv3d", "dropout", "dropout2d",
    "elu", "elu_", "flatten", "glu", "hardtanh_", "interpolate", "kl_div", "leaky_relu",
    "log_softmax", "logsigmoid", "max_pool2d", "max_unpool2d", "mish", "nll_loss", "normalize",
    "one_hot", "pad", "relu6", "relu_", "selu", "sigmoid_", "silu", "smooth_l1_loss", "softmax",
    "threshold", "threshold_",
]  # fmt: skip
__all__ += SHARED  # pyright: ignore[reportUnsupportedDunderAll]

_guard_module(globals(), "mint.nn.functional")
