"""Smooth activation layers: sigmoids, softmaxes and the gates built from them."""

from __future__ import annotations

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError
from tvmgraph.nn._checks import boolean, is_int, reject, require_axes
from tvmgraph.nn.cell import Cell


class Sigmoid(Cell):
    r"""Logistic function, elementwise: :math:`y = 1 / (1 + e^{-x})`.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.Sigmoid()(Tensor([0.0])).asnumpy().tolist()
        [0.5]
    """

    def construct(self, x: Tensor) -> Tensor:
        return F.sigmoid(x)


class LogSigmoid(Cell):
    r"""Logarithm of the logistic function, elementwise: :math:`y = -\log(1 + e^{-x})`.

    Inputs:
        - **input_x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.LogSigmoid()(Tensor([0.0])).shape
        (1,)
    """

    def construct(self, input_x: Tensor) -> Tensor:
        return F.logsigmoid(input_x)


class Tanh(Cell):
    r"""Hyperbolic tangent, elementwise: :math:`y = \tanh(x)`.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.Tanh()(Tensor([0.0])).asnumpy().tolist()
        [0.0]
    """

    def construct(self, x: Tensor) -> Tensor:
        return F.tanh(x)


class Tanhshrink(Cell):
    r"""Tanh shrinkage, elementwise: :math:`y = x - \tanh(x)`.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.Tanhshrink()(Tensor([0.0])).asnumpy().tolist()
        [0.0]
    """

    def construct(self, x: Tensor) -> Tensor:
        return F.tanhshrink(x)


class _AlongAxis(Cell):
    """A function along one axis, which may be given in a tuple."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
        if not is_int(self.axis):
            reject(DTypeError, type(self).__name__, f"axis must be an int, not {axis!r}")


class Softmax(_AlongAxis):
    r"""Normalised exponentials along an axis: :math:`y_i = e^{x_i} / \sum_j e^{x_j}`.

    Args:
        axis: The axis over which the result sums to one.

    Inputs:
        - **input** (Tensor) - Any shape, a float dtype.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.Softmax()(Tensor([1.0, 1.0])).asnumpy().tolist()
        [0.5, 0.5]
    """

    def construct(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.axis)


class LogSoftmax(_AlongAxis):
    r"""Logarithm of the softmax: :math:`y_i = x_i - \log \sum_j e^{x_j}`.

    Args:
        axis: The axis over which the exponentials of the result sum to one.

    Inputs:
        - **x** (Tensor) - Any shape, a float dtype.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.LogSoftmax()(Tensor([1.0, 1.0])).shape
        (2,)
    """

    def construct(self, x: Tensor) -> Tensor:
        return F.log_softmax(x, self.axis)


class Softmin(_AlongAxis):
    r"""Softmax of the negated input: :math:`y_i = e^{-x_i} / \sum_j e^{-x_j}`.

    Args:
        axis: The axis over which the result sums to one.

    Inputs:
        - **x** (Tensor) - Any shape, a float dtype.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.Softmin()(Tensor([1.0, 1.0])).asnumpy().tolist()
        [0.5, 0.5]
    """

    def construct(self, x: Tensor) -> Tensor:
        return F.softmax(-x, self.axis)


class Softmax2d(Cell):
    r"""Softmax over the channels of images.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, H, W)` or :math:`(C, H, W)`.

    Outputs:
        Tensor of the same shape.

    Raises:
        ShapeError: if the input has another number of axes.

    Example:
        >>> nn.Softmax2d()(ops.ones((1, 2, 1, 1))).shape
        (1, 2, 1, 1)
    """

    def construct(self, x: Tensor) -> Tensor:
        require_axes("Softmax2d", x, 3, 4)
        return F.softmax(x, -3)


class Softsign(Cell):
    r"""Softsign, elementwise: :math:`y = x / (1 + |x|)`.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.Softsign()(Tensor([1.0])).asnumpy().tolist()
        [0.5]
    """

    def construct(self, x: Tensor) -> Tensor:
        return F.softsign(x)


class GELU(Cell):
    r"""Gaussian error linear unit, elementwise: :math:`y = x \Phi(x)`.

    Args:
        approximate: Whether :math:`\Phi` is approximated by tanh.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.GELU()(Tensor([0.0])).asnumpy().tolist()
        [0.0]
    """

    def __init__(self, approximate: bool = True) -> None:
        super().__init__()
        self.approximate = boolean("GELU", "approximate", approximate)

    def construct(self, x: Tensor) -> Tensor:
        return F.gelu(x, approximate="tanh" if self.approximate else "none")


class FastGelu(Cell):
    r"""Fast Gaussian error linear unit, elementwise:
    :math:`y = \frac{x}{1 + e^{-1.702 |x|}} e^{0.851 (x - |x|)}`.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.FastGelu()(Tensor([0.0])).asnumpy().tolist()
        [0.0]
    """

    def construct(self, x: Tensor) -> Tensor:
        return F.fast_gelu(x)


class SiLU(Cell):
    r"""Sigmoid linear unit, elementwise: :math:`y = x \sigma(x)`.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.SiLU()(Tensor([0.0])).asnumpy().tolist()
        [0.0]
    """

    def construct(self, x: Tensor) -> Tensor:
        return F.silu(x)


class Mish(Cell):
    r"""Mish, elementwise: :math:`y = x \tanh(\log(1 + e^x))`.

    Inputs:
        - **input_x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.Mish()(Tensor([0.0])).asnumpy().tolist()
        [0.0]
    """

    def construct(self, input_x: Tensor) -> Tensor:
        return F.mish(input_x)


class HSwish(Cell):
    r"""Hard swish, elementwise: :math:`y = x \cdot \min(\max(x + 3, 0), 6) / 6`.

    Inputs:
        - **input** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.HSwish()(Tensor([0.0, 3.0, 4.0])).asnumpy().tolist()
        [0.0, 3.0, 4.0]
    """

    def construct(self, input: Tensor) -> Tensor:
        return F.hardswish(input)


class HSigmoid(Cell):
    r"""Hard sigmoid, elementwise: :math:`y = \min(\max(x + 3, 0), 6) / 6`.

    Inputs:
        - **input** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.HSigmoid()(Tensor([-4.0, 0.0, 4.0])).asnumpy().tolist()
        [0.0, 0.5, 1.0]
    """

    def construct(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input)


class GLU(_AlongAxis):
    r"""Gated linear unit: splits into halves :math:`a, b` and gives :math:`a \sigma(b)`.

    Args:
        axis: The axis to split; of even size.

    Inputs:
        - **x** (Tensor) - Shape :math:`(*, 2 N, *)`, a float dtype.

    Outputs:
        Tensor of shape :math:`(*, N, *)`.

    Example:
        >>> nn.GLU()(Tensor([4.0, 0.0])).asnumpy().tolist()
        [2.0]
    """

    def construct(self, x: Tensor) -> Tensor:
        return F.glu(x, self.axis)


__all__ = [
    "GELU", "GLU", "FastGelu", "HSigmoid", "HSwish", "LogSigmoid", "LogSoftmax", "Mish", "SiLU",
    "Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softsign", "Tanh", "Tanhshrink",
]  # fmt: skip
