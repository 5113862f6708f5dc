"""Building the parameters of layers."""

from __future__ import annotations

import math

from tvmgraph import dtypes
from tvmgraph.common.initializer import HeUniform, Uniform, initializer
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.errors import TvmgraphError


def new_parameter(
    op: str,
    name: str,
    init: object,
    shape: tuple[int, ...],
    dtype: dtypes.DType = dtypes.float32,
    requires_grad: bool = True,
) -> Parameter:
    """Builds a parameter; errors name the layer and the argument.

    Args:
        op: Name of the layer.
        name: Name of the parameter and of the argument.
        init: Name of an initializer, number, Initializer, or Tensor of ``shape``.
        shape: Its shape.
        dtype: Its dtype, unless ``init`` is a Tensor of floats.
        requires_grad: Whether it is trained.

    Raises:
        ShapeError: if a given tensor has another shape.
        ArgumentError: if an initializer's name is unknown.
    """
    try:
        value = initializer(init, shape, dtype)
    except TvmgraphError as e:
        e.op = op
        e.message = f"{name}: {e.message}"
        raise
    if not value.dtype.is_float:
        value = F.cast(value, dtype)
    return Parameter(value, name=name, requires_grad=requires_grad)


def default_weight() -> HeUniform:
    r"""Returns MindSpore's default, :math:`U(-b, b)` with :math:`b = 1 / \sqrt{n_{in}}`."""
    return HeUniform(math.sqrt(5))


def default_bias(fan_in: int) -> Uniform:
    r"""Returns MindSpore's default, :math:`U(-b, b)` with :math:`b = 1 / \sqrt{n_{in}}`.

    Args:
        fan_in: Number :math:`n_{in}` of inputs of one output.
    """
    return Uniform(1 / math.sqrt(fan_in) if fan_in else 0.0)
