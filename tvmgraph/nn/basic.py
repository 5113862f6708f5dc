"""Dense layers, layers that reshape, and dropout."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeGuard

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.nn._checks import boolean, float_dtype, integer, is_int, positive, real, reject
from tvmgraph.nn._parameters import default_bias, default_weight, new_parameter
from tvmgraph.nn.activation import get_activation
from tvmgraph.nn.cell import Cell


def check_last_axis(op: str, x: Tensor, size: int, name: str) -> None:
    """Makes sure that the last axis of a tensor has a given size.

    Args:
        op: Name of the layer.
        x: The tensor.
        size: The size.
        name: Name of the layer's argument that gave it.

    Raises:
        ShapeError: if it has another one, or ``x`` has no axes.
    """
    if x.ndim == 0 or x.shape[-1] not in (size, -1):
        found = x.shape[-1] if x.ndim else "no axes"
        reject(ShapeError, op, f"the last axis must have {name}={size} elements, not {found}",
               f"x={x.aval}", f"check {op}({name}=...) or the layer before")  # fmt: skip


def _is_called(value: object) -> TypeGuard[Callable[..., Tensor]]:
    return callable(value) and not isinstance(value, type)


def activation_of(op: str, activation: object) -> Callable[..., Tensor] | None:
    """Returns the layer that an ``activation`` argument denotes: a Cell, or an operator class's.

    Args:
        op: Name of the layer.
        activation: Name of an activation, a Cell, or ``None`` for none.

    Raises:
        DTypeError: if it is neither a name nor an object that is called.
        ArgumentError: if the name is unknown.
    """
    if activation is None or _is_called(activation):
        return activation
    if not isinstance(activation, str):
        reject(DTypeError, op,
               f"activation must be a name or a Cell, not {type(activation).__name__}",
               fix="pass 'relu' or nn.ReLU()")  # fmt: skip
    return get_activation(activation, op)


class Dense(Cell):
    r"""Fully connected layer: :math:`y = activation(x W^T + b)`.

    Args:
        in_channels: Size of the input's last axis.
        out_channels: Size of the output's last axis.
        weight_init: Initial weight: name, number, Initializer or Tensor of shape
            :math:`(out, in)`; :math:`U(-1/\sqrt{in}, 1/\sqrt{in})` by default.
        bias_init: Initial bias, of shape :math:`(out,)`; the same distribution by default.
        has_bias: Whether there is a bias.
        activation: Name of an activation, or a Cell.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(*, in)`.

    Outputs:
        Tensor of shape :math:`(*, out)`.

    Raises:
        DTypeError: if an argument has the wrong class.
        ArgumentError: if a size is not positive or a name unknown.
        ShapeError: if a given tensor has the wrong shape.

    Example:
        >>> nn.Dense(3, 4)(ops.ones((2, 3))).shape
        (2, 4)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: object = None,
        bias_init: object = None,
        has_bias: bool = True,
        activation: object = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        self.in_channels = positive("Dense", "in_channels", in_channels)
        self.out_channels = positive("Dense", "out_channels", out_channels)
        self.has_bias = boolean("Dense", "has_bias", has_bias)
        kind = float_dtype("Dense", dtype)
        weight = default_weight() if weight_init is None else weight_init
        self.weight = new_parameter("Dense", "weight", weight, (out_channels, in_channels), kind)
        self.bias = None
        if has_bias:
            bias = default_bias(in_channels) if bias_init is None else bias_init
            self.bias = new_parameter("Dense", "bias", bias, (out_channels,), kind)
        self.activation = activation_of("Dense", activation)
        self.activation_flag = self.activation is not None

    def construct(self, x: Tensor) -> Tensor:
        check_last_axis("Dense", x, self.in_channels, "in_channels")
        bias = self.compute(self.bias) if self.bias is not None and self.has_bias else None
        y = F.dense(x, self.compute(self.weight), bias)
        return y if self.activation is None else self.activation(y)

    def extend_repr(self) -> str:
        """Returns the sizes."""
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        if self.has_bias:
            text += f", has_bias={self.has_bias}"
        if self.activation_flag:
            text += f", activation={self.activation}"
        return text


class Linear(Cell):
    r"""Fully connected layer under its other name: :math:`y = x W^T + b`.

    Args:
        in_features: Size of the input's last axis.
        out_features: Size of the output's last axis.
        bias: Whether there is a bias.
        weight_init: Initial weight, as for :class:`Dense`.
        bias_init: Initial bias, as for :class:`Dense`.
        dtype: Type of the parameters; float32 by default.

    Inputs:
        - **x** (Tensor) - Shape :math:`(*, in)`.

    Outputs:
        Tensor of shape :math:`(*, out)`.

    Raises:
        DTypeError: if an argument has the wrong class.
        ArgumentError: if a size is not positive.

    Example:
        >>> nn.Linear(3, 4)(ops.ones((2, 3))).shape
        (2, 4)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        weight_init: object = None,
        bias_init: object = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.in_features = positive("Linear", "in_features", in_features)
        self.out_features = positive("Linear", "out_features", out_features)
        kind = float_dtype("Linear", dtypes.float32 if dtype is None else dtype)
        weight = default_weight() if weight_init is None else weight_init
        self.weight = new_parameter("Linear", "weight", weight, (out_features, in_features), kind)
        self.bias = None
        if boolean("Linear", "bias", bias):
            first = default_bias(in_features) if bias_init is None else bias_init
            self.bias = new_parameter("Linear", "bias", first, (out_features,), kind)

    def construct(self, x: Tensor) -> Tensor:
        check_last_axis("Linear", x, self.in_features, "in_features")
        bias = None if self.bias is None else self.compute(self.bias)
        return F.dense(x, self.compute(self.weight), bias)

    def extend_repr(self) -> str:
        """Returns the sizes."""
        text = f"input_features={self.in_features}, output_features={self.out_features}"
        return text if self.bias is None else text + ", has_bias=True"


class BiDense(Cell):
    r"""Bilinear layer: :math:`y_o = x_1^T W_o x_2 + b_o`.

    Args:
        in1_channels: Size of the first input's last axis.
        in2_channels: Size of the second input's last axis.
        out_channels: Size of the output's last axis.
        weight_init: Initial weight of shape :math:`(out, in_1, in_2)`.
        bias_init: Initial bias of shape :math:`(out,)`.
        has_bias: Whether there is a bias.
        dtype: Type of the parameters.

    Inputs:
        - **input1** (Tensor) - Shape :math:`(*, in_1)`.
        - **input2** (Tensor) - Shape :math:`(*, in_2)`, the same leading axes.

    Outputs:
        Tensor of shape :math:`(*, out)`.

    Raises:
        DTypeError: if an argument has the wrong class.
        ArgumentError: if a size is not positive.

    Example:
        >>> nn.BiDense(2, 3, 4)(ops.ones((5, 2)), ops.ones((5, 3))).shape
        (5, 4)
    """

    def __init__(
        self,
        in1_channels: int,
        in2_channels: int,
        out_channels: int,
        weight_init: object = None,
        bias_init: object = None,
        has_bias: bool = True,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        self.in1_channels = positive("BiDense", "in1_channels", in1_channels)
        self.in2_channels = positive("BiDense", "in2_channels", in2_channels)
        self.out_channels = positive("BiDense", "out_channels", out_channels)
        self.has_bias = boolean("BiDense", "has_bias", has_bias)
        kind = float_dtype("BiDense", dtype)
        default = default_bias(in1_channels)
        weight = default if weight_init is None else weight_init
        shape = (out_channels, in1_channels, in2_channels)
        self.weight = new_parameter("BiDense", "weight", weight, shape, kind)
        self.bias = None
        if has_bias:
            bias = default if bias_init is None else bias_init
            self.bias = new_parameter("BiDense", "bias", bias, (out_channels,), kind)

    def construct(self, input1: Tensor, input2: Tensor) -> Tensor:
        check_last_axis("BiDense", input1, self.in1_channels, "in1_channels")
        check_last_axis("BiDense", input2, self.in2_channels, "in2_channels")
        lead, rows = input1.shape[:-1], math.prod(input1.shape[:-1])
        weight = self.compute(self.weight)
        o, i, j = self.out_channels, self.in1_channels, self.in2_channels
        # (rows, in1) x (in1, out * in2), then the product with input2 is summed over in2
        flat = F.reshape(F.transpose(weight, (1, 0, 2)), (i, o * j))
        left = F.reshape(F.matmul(F.reshape(input1, (rows, i)), flat), (rows, o, j))
        right = F.reshape(input2, (rows, j, 1))
        y = F.reshape(F.matmul(left, right), (*lead, o))
        return y + self.compute(self.bias) if self.bias is not None and self.has_bias else y

    def extend_repr(self) -> str:
        """Returns the sizes."""
        text = (
            f"in1_channels={self.in1_channels}, in2_channels={self.in2_channels}, "
            f"output_channels={self.out_channels}"
        )
        return text + (f", has_bias={self.has_bias}" if self.has_bias else "")


class Flatten(Cell):
    r"""Joins the axes from ``start_dim`` to ``end_dim`` into one.

    Args:
        start_dim: First axis that is joined.
        end_dim: Last axis that is joined.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor of shape :math:`(x_0, \prod_{i > 0} x_i)` with the default arguments.

    Raises:
        DTypeError: if an argument is not an int.

    Example:
        >>> nn.Flatten()(ops.ones((2, 3, 4))).shape
        (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = integer("Flatten", "start_dim", start_dim)
        self.end_dim = integer("Flatten", "end_dim", end_dim)

    def construct(self, x: Tensor) -> Tensor:
        return F.flatten(x, start_dim=self.start_dim, end_dim=self.end_dim)


class Unflatten(Cell):
    r"""Splits an axis into several.

    Args:
        axis: The axis.
        unflattened_size: Sizes of the new axes; one of them may be -1.

    Inputs:
        - **input_x** (Tensor) - Shape :math:`(*, n, *)`.

    Outputs:
        Tensor of shape :math:`(*, n_1, n_2, \dots, *)`.

    Raises:
        DTypeError: if an argument has the wrong class.
        ArgumentError: if ``axis`` is out of range.

    Example:
        >>> nn.Unflatten(1, (2, 3))(ops.ones((4, 6))).shape
        (4, 2, 3)
    """

    def __init__(self, axis: int, unflattened_size: object) -> None:
        super().__init__()
        self.axis = integer("Unflatten", "axis", axis)
        sizes = unflattened_size
        if not isinstance(sizes, (tuple, list)) or not all(is_int(s) for s in sizes):
            reject(DTypeError, "Unflatten", "unflattened_size must be a tuple of ints",
                   f"unflattened_size={sizes!r}")  # fmt: skip
        self.unflattened_size = tuple(sizes)

    def construct(self, input_x: Tensor) -> Tensor:
        if not -input_x.ndim <= self.axis < input_x.ndim:
            reject(ArgumentError, "Unflatten", f"axis {self.axis} is out of range",
                   f"input_x={input_x.aval}")  # fmt: skip
        axis = self.axis % input_x.ndim
        shape = input_x.shape
        return F.reshape(input_x, (*shape[:axis], *self.unflattened_size, *shape[axis + 1 :]))


class Identity(Cell):
    """Returns its input.

    Args:
        args: Ignored, so that it can take the place of another layer.
        kwargs: Ignored.

    Inputs:
        - **input** (Any) - Anything.

    Outputs:
        The input.

    Example:
        >>> nn.Identity()(Tensor([1.0])).asnumpy().tolist()
        [1.0]
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def construct(self, input: Any) -> Any:
        return input


# ---- dropout layers: random zeros in training, nothing otherwise ---------------------------------


class Dropout(Cell):
    r"""Sets elements to zero with probability :math:`p` in training and divides the others by
    :math:`1 - p`.

    Args:
        keep_prob: :math:`1 - p`, in (0, 1]; read when ``p`` is not given.
        p: Probability of a zero, in [0, 1).
        dtype: Kept for MindSpore programs; the result has the input's dtype.

    Inputs:
        - **x** (Tensor) - Any shape, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        DTypeError: if a probability is not a number.
        ArgumentError: if it is out of range.

    Example:
        >>> nn.Dropout(p=0.2)(Tensor([1.0, 2.0])).asnumpy().tolist()
        [1.0, 2.0]
    """

    def __init__(
        self, keep_prob: float = 0.5, p: float | None = None, dtype: DTypeLike = dtypes.float32
    ) -> None:
        super().__init__()
        self.p, self.keep_prob = p, keep_prob
        if p is None:
            self._rate = 1.0 - real("Dropout", "keep_prob", keep_prob, 0, 1, "(]")
        else:
            self._rate = float(real("Dropout", "p", p, 0, 1, "[)"))

    def construct(self, x: Tensor) -> Tensor:
        if not isinstance(x, Tensor):
            raise DTypeError(f"x must be a Tensor, not {type(x).__name__}")
        # an attribute that is set later can switch dropout off, but not change its probability
        if not self.training or self._rate == 0 or self.keep_prob == 1 or self.p == 0:
            return x
        return F.dropout(x, p=self._rate, training=True)

    def extend_repr(self) -> str:
        """Returns the probability."""
        return f"keep_prob={self.keep_prob}" if self.p is None else f"p={self.p}"


class _ChannelDropout(Cell):
    _function: str
    _ranks: tuple[int, ...]
    _shown = "p"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = float(real(type(self).__name__, "p", p, 0, 1))

    def construct(self, x: Tensor) -> Tensor:
        ndim = x.ndim  # what has none is no tensor
        if not self.training:
            return x
        if ndim not in self._ranks:
            axes = " or ".join(map(str, self._ranks))
            reject(ShapeError, type(self).__name__,
                   f"the input must have {axes} axes, not {ndim}", f"x={x.aval}")  # fmt: skip
        return getattr(F, self._function)(x, self.p) if self.p else x


class Dropout1d(_ChannelDropout):
    r"""Sets whole channels of sequences to zero with probability :math:`p` in training.

    Args:
        p: Probability of a zero channel, in [0, 1].

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, L)` or :math:`(C, L)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if ``p`` is out of range.

    Example:
        >>> nn.Dropout1d(p=0.2)(ops.ones((1, 2, 3))).shape
        (1, 2, 3)
    """

    _function, _ranks = "dropout1d", (3, 2)


class Dropout2d(_ChannelDropout):
    r"""Sets whole channels of images to zero with probability :math:`p` in training.

    Args:
        p: Probability of a zero channel, in [0, 1].

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, H, W)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if ``p`` is out of range.

    Example:
        >>> nn.Dropout2d(p=0.2)(ops.ones((1, 2, 3, 3))).shape
        (1, 2, 3, 3)
    """

    _function, _ranks = "dropout2d", (4,)


class Dropout3d(_ChannelDropout):
    r"""Sets whole channels of volumes to zero with probability :math:`p` in training.

    Args:
        p: Probability of a zero channel, in [0, 1].

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, D, H, W)`, a float dtype.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if ``p`` is out of range.

    Example:
        >>> nn.Dropout3d(p=0.2)(ops.ones((1, 2, 3, 3, 3))).shape
        (1, 2, 3, 3, 3)
    """

    _function, _ranks = "dropout3d", (5,)


__all__ = [
    "BiDense", "Dense", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "Flatten", "Identity",
    "Linear", "Unflatten",
]  # fmt: skip
