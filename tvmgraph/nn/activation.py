"""Rectifying, shrinking and clipping activation layers, and activations by name."""

from __future__ import annotations

import numpy as np

import tvmgraph.nn.activation_smooth as smooth
from tvmgraph import dtypes
from tvmgraph.common.initializer import initializer
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, either
from tvmgraph.nn._checks import choice, is_real, positive, real, reject
from tvmgraph.nn.cell import Cell


class ReLU(Cell):
    r"""Rectified linear unit, elementwise: :math:`y = \max(x, 0)`.

    Inputs:
        - **input** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.ReLU()(Tensor([-1.0, 2.0])).asnumpy().tolist()
        [0.0, 2.0]
    """

    def construct(self, input: Tensor) -> Tensor:
        return F.relu(input)


class ReLU6(Cell):
    r"""Rectified linear unit cut at 6, elementwise: :math:`y = \min(\max(x, 0), 6)`.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.ReLU6()(Tensor([-1.0, 9.0])).asnumpy().tolist()
        [0.0, 6.0]
    """

    def construct(self, x: Tensor) -> Tensor:
        return F.relu6(x)


class LeakyReLU(Cell):
    r"""Leaky rectified linear unit, elementwise: :math:`y = x` if :math:`x \ge 0`, else
    :math:`\alpha x`.

    Args:
        alpha: Slope for negative elements.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.LeakyReLU(0.5)(Tensor([-1.0, 2.0])).asnumpy().tolist()
        [-0.5, 2.0]
    """

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        self.alpha = real("LeakyReLU", "alpha", alpha)

    def construct(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, self.alpha)


class RReLU(Cell):
    r"""Randomised leaky ReLU: the slope of negative elements is drawn from
    :math:`U(lower, upper)` in training and is :math:`(lower + upper) / 2` otherwise.

    Args:
        lower: Smallest slope.
        upper: Largest slope.

    Inputs:
        - **x** (Tensor) - Any shape, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if ``lower > upper``.

    Note:
        MindSpore 2.10 draws slopes in evaluation too.

    Example:
        >>> nn.RReLU(0.25, 0.75)(Tensor([-1.0, 2.0])).asnumpy().tolist()
        [-0.5, 2.0]
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3) -> None:
        super().__init__()
        self.lower, self.upper = real("RReLU", "lower", lower), real("RReLU", "upper", upper)
        if lower > upper:
            reject(ArgumentError, "RReLU", f"lower={lower} must not exceed upper={upper}")

    def construct(self, x: Tensor) -> Tensor:
        if self.training:
            return F.rrelu(x, self.lower, self.upper)
        return F.leaky_relu(x, (self.lower + self.upper) / 2)


class ELU(Cell):
    r"""Exponential linear unit, elementwise: :math:`y = x` if :math:`x > 0`, else
    :math:`\alpha (e^x - 1)`.

    Args:
        alpha: Factor of the negative part.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.ELU()(Tensor([0.0, 2.0])).asnumpy().tolist()
        [0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = real("ELU", "alpha", alpha)

    def construct(self, x: Tensor) -> Tensor:
        return F.elu(x, self.alpha)


class CELU(Cell):
    r"""Continuous exponential linear unit, elementwise:
    :math:`y = \max(0, x) + \min(0, \alpha (e^{x / \alpha} - 1))`.

    Args:
        alpha: Scale of the negative part; not zero.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if ``alpha`` is zero.

    Example:
        >>> nn.CELU()(Tensor([0.0, 2.0])).asnumpy().tolist()
        [0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = real("CELU", "alpha", alpha)
        if alpha == 0:
            reject(ArgumentError, "CELU", "alpha must not be 0")

    def construct(self, x: Tensor) -> Tensor:
        return F.celu(x, self.alpha)


class SeLU(Cell):
    r"""Scaled exponential linear unit, elementwise: :math:`y = s \cdot ELU(x, \alpha)` with
    :math:`s = 1.0507`, :math:`\alpha = 1.6733`.

    Inputs:
        - **input_x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.SeLU()(Tensor([0.0])).asnumpy().tolist()
        [0.0]
    """

    def construct(self, input_x: Tensor) -> Tensor:
        return F.selu(input_x)


class SoftShrink(Cell):
    r"""Soft shrinkage, elementwise: :math:`y = sign(x) \max(|x| - \lambda, 0)`.

    Args:
        lambd: Width of the zero zone; not negative.

    Inputs:
        - **input** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.SoftShrink()(Tensor([-0.1, 1.5])).asnumpy().tolist()
        [0.0, 1.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = real("SoftShrink", "lambd", lambd, 0)

    def construct(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class HShrink(Cell):
    r"""Hard shrinkage, elementwise: :math:`y = x` if :math:`|x| > \lambda`, else 0.

    Args:
        lambd: Width of the zero zone.

    Inputs:
        - **input** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.HShrink()(Tensor([-0.1, 1.5])).asnumpy().tolist()
        [0.0, 1.5]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = real("HShrink", "lambd", lambd)

    def construct(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Hardtanh(Cell):
    r"""Clipped identity, elementwise: :math:`y = \min(\max(x, min\_val), max\_val)`.

    Args:
        min_val: Smallest result.
        max_val: Largest result.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if ``min_val >= max_val``.

    Example:
        >>> nn.Hardtanh()(Tensor([-3.0, 0.5])).asnumpy().tolist()
        [-1.0, 0.5]
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        self.min_val = real("Hardtanh", "min_val", min_val)
        self.max_val = real("Hardtanh", "max_val", max_val)
        if min_val >= max_val:
            reject(ArgumentError, "Hardtanh",
                   f"min_val={min_val} must be smaller than max_val={max_val}")  # fmt: skip

    def construct(self, x: Tensor) -> Tensor:
        return F.hardtanh(x, self.min_val, self.max_val)


class PReLU(Cell):
    r"""Leaky ReLU with learned slopes: :math:`y = \max(0, x) + w \min(0, x)`.

    Args:
        channel: Number of slopes: 1, or the size of axis 1 of the input.
        w: First value of the slopes: a number, a list or a Tensor.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, *)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if ``channel`` is not positive or ``w`` has another length.

    Example:
        >>> nn.PReLU()(Tensor([-1.0, 2.0])).asnumpy().tolist()
        [-0.25, 2.0]
    """

    def __init__(self, channel: int = 1, w: object = 0.25) -> None:
        super().__init__()
        channel = positive("PReLU", "channel", channel)
        first = initializer(w, (channel,)) if is_real(w) else _slopes(w, channel)
        self.w = Parameter(first, name="a")

    def construct(self, x: Tensor) -> Tensor:
        return F.prelu(x, self.compute(self.w))


def _slopes(w: object, channel: int) -> Tensor:
    if not isinstance(w, (list, Tensor)):
        reject(DTypeError, "PReLU", f"w must be a number, list or Tensor, not {type(w).__name__}")
    first = w if isinstance(w, Tensor) else Tensor(np.array(w, np.float32))
    if first.shape != (channel,):
        reject(ArgumentError, "PReLU", f"w must have channel={channel} elements", f"w={first.aval}")
    if not first.dtype.is_float:
        first = F.cast(first, dtypes.float32)
    return first


class Threshold(Cell):
    r"""Replaces small elements: :math:`y = x` if :math:`x > threshold`, else :math:`value`.

    Args:
        threshold: Largest element that is replaced.
        value: What replaces it.

    Inputs:
        - **input_x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.Threshold(0.5, 9.0)(Tensor([0.0, 1.0])).asnumpy().tolist()
        [9.0, 1.0]
    """

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self.threshold = real("Threshold", "threshold", threshold)
        self.value = real("Threshold", "value", value)

    def construct(self, input_x: Tensor) -> Tensor:
        return F.threshold(input_x, self.threshold, self.value)


class LRN(Cell):
    r"""Local response normalisation over neighbouring channels.

    Args:
        depth_radius: Channels on either side that count.
        bias: Offset that avoids a division by zero.
        alpha: Scale of the squared sum.
        beta: Exponent.
        norm_region: Only ``"ACROSS_CHANNELS"``.

    Inputs:
        - **input_x** (Tensor) - Shape :math:`(N, C, H, W)`.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.LRN()(ops.ones((1, 2, 1, 1))).shape
        (1, 2, 1, 1)
    """

    def __init__(
        self,
        depth_radius: int = 5,
        bias: float = 1.0,
        alpha: float = 1.0,
        beta: float = 0.5,
        norm_region: str = "ACROSS_CHANNELS",
    ) -> None:
        super().__init__()
        self.depth_radius = positive("LRN", "depth_radius", depth_radius)
        self.bias, self.alpha = real("LRN", "bias", bias), real("LRN", "alpha", alpha)
        self.beta = real("LRN", "beta", beta)
        self.norm_region = choice("LRN", "norm_region", norm_region, ("ACROSS_CHANNELS",))

    def construct(self, input_x: Tensor) -> Tensor:
        return F.lrn(input_x, self.depth_radius, self.bias, self.alpha, self.beta)


_activation: dict[str, type[Cell]] = {
    "softmin": smooth.Softmin, "softmax": smooth.Softmax, "softmax2d": smooth.Softmax2d,
    "logsoftmax": smooth.LogSoftmax, "relu": ReLU, "relu6": ReLU6, "rrelu": RReLU,
    "silu": smooth.SiLU, "tanh": smooth.Tanh, "tanhshrink": smooth.Tanhshrink,
    "hardtanh": Hardtanh, "gelu": smooth.GELU, "fast_gelu": smooth.FastGelu, "elu": ELU,
    "celu": CELU, "selu": SeLU, "sigmoid": smooth.Sigmoid, "softsign": smooth.Softsign,
    "prelu": PReLU, "leakyrelu": LeakyReLU, "hswish": smooth.HSwish, "hsigmoid": smooth.HSigmoid,
    "logsigmoid": smooth.LogSigmoid, "softshrink": SoftShrink, "hshrink": HShrink,
    "mish": smooth.Mish, "glu": smooth.GLU,
}  # fmt: skip


def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """Builds an activation layer from its lower-case name.

    Args:
        name: The name; ``None`` gives ``None``.
        prim_name: Name of the layer that asks, for the error message.

    Returns:
        A new layer with default arguments.

    Raises:
        ArgumentError: if there is no such activation; the message lists the names.

    Example:
        >>> nn.get_activation("relu")
        ReLU()
    """
    if name is None:
        return None
    if name not in _activation:
        reject(either(ArgumentError, KeyError), prim_name or "get_activation",
               f"there is no activation {name!r}",
               fix="use one of " + ", ".join(_activation))  # fmt: skip
    return _activation[name]()


__all__ = [
    "CELU", "ELU", "LRN", "HShrink", "Hardtanh", "LeakyReLU", "PReLU", "RReLU", "ReLU", "ReLU6",
    "SeLU", "SoftShrink", "Threshold", "get_activation",
]  # fmt: skip
