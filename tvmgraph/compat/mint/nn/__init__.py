"""MindSpore's ``mindspore.mint.nn``: layers with PyTorch's arguments and parameter names.

A layer without parameters holds the arguments of its function in :mod:`.functional`; the class is
made from the function's signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tvmgraph import nn
from tvmgraph.compat.absent import not_found
from tvmgraph.compat.mint.nn import functional, parametric
from tvmgraph.compat.mint.nn.parametric import *  # noqa: F403
from tvmgraph.core import kinds
from tvmgraph.core.arguments import PerAxis
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import (
    ArgumentError,
    DTypeError,
    TypeOrValueError,
    reject,
    user_source,
)

#: Layers of :mod:`tvmgraph.nn` that are PyTorch's as they are.
SHARED = """
BCELoss Cell CellDict CellList ConstantPad1d ConstantPad2d ConstantPad3d CrossEntropyLoss Flatten
Identity ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d
ReplicationPad3d SequentialCell ZeroPad1d ZeroPad2d ZeroPad3d
""".split()  # noqa: SIM905  (one word each)
#: Layers without parameters and their functions, by how many tensors those take.
_LAYERS = {
    1: """
        AdaptiveAvgPool1d=adaptive_avg_pool1d AdaptiveAvgPool2d=adaptive_avg_pool2d
        AdaptiveAvgPool3d=adaptive_avg_pool3d AdaptiveMaxPool1d=adaptive_max_pool1d
        AdaptiveMaxPool2d=adaptive_max_pool2d AvgPool1d=avg_pool1d AvgPool2d=avg_pool2d
        AvgPool3d=avg_pool3d ELU=elu Fold=fold GELU=gelu GLU=glu Hardshrink=hardshrink
        Hardsigmoid=hardsigmoid Hardswish=hardswish Hardtanh=hardtanh LeakyReLU=leaky_relu
        LogSigmoid=logsigmoid LogSoftmax=log_softmax MaxPool2d=max_pool2d Mish=mish
        PixelShuffle=pixel_shuffle ReLU=relu ReLU6=relu6 SELU=selu SiLU=silu Sigmoid=sigmoid
        Softmax=softmax Softplus=softplus Softshrink=softshrink Tanh=tanh Threshold=threshold
        Unfold=unfold Upsample=upsample
    """,
    2: """
        BCEWithLogitsLoss=binary_cross_entropy_with_logits KLDivLoss=kl_div L1Loss=l1_loss
        MSELoss=mse_loss NLLLoss=nll_loss SmoothL1Loss=smooth_l1_loss
        SoftMarginLoss=soft_margin_loss
    """,
    3: "CosineEmbeddingLoss=cosine_embedding_loss",
}
#: Layer -> its function and how many tensors it takes.
FUNCTIONS = {
    layer: (function, count)
    for count, rows in _LAYERS.items()
    for layer, _, function in (row.partition("=") for row in rows.split())
}


#: Layer -> its arguments, where their order is not that of its function.
_ORDERS = {
    "MaxPool2d": ("kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode")
}


class _Layer(nn.Cell):
    """A function with its arguments given beforehand."""

    _function: str
    _inputs: int

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()
        signature: inspect.Signature = type(self).__signature__  # pyright: ignore
        try:
            bound = signature.bind(*args, **kwargs)
            for name, value in bound.arguments.items():
                if name != "reduction":
                    kinds.require(name, value, kinds.words(signature.parameters[name].annotation))
        except TypeError as e:
            raise DTypeError(f"mint.nn.{type(self).__name__}: {e}", at=user_source()) from None
        self._require_reduction(bound.arguments.get("reduction", "mean"))
        self.given = tuple(bound.arguments)
        bound.apply_defaults()
        self.settings = tuple(bound.arguments)
        for name, value in bound.arguments.items():
            setattr(self, name, value)

    def _require_reduction(self, value: object) -> None:
        """Makes sure of one of the words, which MindSpore's are wrong values without."""
        words = ("mean", "sum", "none", "batchmean")[: 4 if self._function == "kl_div" else 3]
        if value not in words:
            kind = ArgumentError if isinstance(value, str) else TypeOrValueError
            rule = f"reduction must be one of {', '.join(words)}, not {value!r}"
            reject(kind, f"mint.nn.{type(self).__name__}", rule)

    def construct(self, *tensors: Tensor) -> Any:
        settings = {name: getattr(self, name) for name in self.settings}
        return getattr(functional, self._function)(*tensors, **settings)

    def extend_repr(self) -> str:
        """Returns the arguments that were given."""
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.given)


class _Dropout(nn.Cell):
    """Dropout in training, else nothing."""

    _function: Callable[..., object]
    _shown = "p"

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.p, self.inplace = p, inplace

    def construct(self, input: Tensor) -> Any:
        return type(self)._function(input, self.p, self.training, self.inplace)


class Dropout(_Dropout):
    """Zeroes elements with probability ``p`` while training."""

    _function = staticmethod(functional.dropout)


class Dropout2d(_Dropout):
    """Zeroes channels with probability ``p`` while training."""

    _function = staticmethod(functional.dropout2d)


class MaxUnpool2d(nn.Cell):
    """Puts maxima back to where a pooling with these windows found them; the rest is zero."""

    _shown = "kernel_size stride padding"

    def __init__(
        self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def construct(self, input: Tensor, indices: Tensor, output_size: object = None) -> Tensor:
        return functional.max_unpool2d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class _Upsampling(nn.Cell):
    """Upsampling of images to a size, or by a factor."""

    _mode: tuple[str, bool | None]

    def __init__(
        self, size: PerAxis | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__()
        self.size, self.scale_factor = size, scale_factor

    def construct(self, input: Tensor) -> Any:
        mode, align = self._mode
        return functional.interpolate(input, self.size, self.scale_factor, mode, align)


class UpsamplingNearest2d(_Upsampling):
    """Repeats pixels: images of a ``size``, or ``scale_factor`` times as large."""

    _mode = ("nearest", None)


class UpsamplingBilinear2d(_Upsampling):
    """Interpolates between pixels, corners on corners; see :class:`UpsamplingNearest2d`."""

    _mode = ("bilinear", True)


def _layer(name: str) -> type[nn.Cell]:
    """Returns the class of a layer without parameters."""
    function, inputs = FUNCTIONS[name]
    chosen = getattr(functional, function)
    arguments = list(inspect.signature(chosen).parameters.values())[inputs:]
    if name in _ORDERS:
        arguments.sort(key=lambda p: _ORDERS[name].index(p.name))
    places = {
        "__doc__": f"The layer of :func:`functional.{function}`.",
        "__module__": __name__, "_function": function, "_inputs": inputs,
        "__signature__": inspect.Signature(arguments),
    }  # fmt: skip
    return type(name, (_Layer,), places)


def __getattr__(name: str) -> type[nn.Cell]:
    if name in SHARED:
        return getattr(nn, name)
    if name not in FUNCTIONS:
        raise not_found("tvmgraph.mint.nn", name, __all__)
    made = globals()[name] = _layer(name)
    return made


def __dir__() -> list[str]:
    return list(__all__)


__all__ = [
    "Dropout", "Dropout2d", "MaxUnpool2d", "UpsamplingBilinear2d", "UpsamplingNearest2d",
    "functional", *parametric.__all__, *SHARED, *FUNCTIONS,
]  # fmt: skip

_guard_module(globals(), "mint.nn")
