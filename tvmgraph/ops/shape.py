"""Shape movement."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvmgraph.core import rules
from tvmgraph.core.op import F, primitive, sample
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ShapeError
from tvmgraph.ops._shared import sum_to

__all__ = ["broadcast_to", "reshape"]


def _infer_reshape(input: TensorType, *, shape: tuple[int, ...]) -> TensorType:
    unknown = [i for i, d in enumerate(shape) if d == -1]
    size = input.size
    rest = math.prod(d for d in shape if d != -1)
    if len(unknown) > 1:
        raise ShapeError(f"shape {list(shape)} has more than one -1")
    if unknown and rest and size % rest == 0:
        shape = tuple(size // rest if d == -1 else d for d in shape)
    if any(d < 0 for d in shape) or math.prod(shape) != size:
        raise ShapeError(
            f"{size} elements do not fit shape {list(shape)}",
            fix="make the product of the new shape equal to the number of elements",
        )
    return input.with_shape(shape)


def _lower_reshape(R: Any, x: Any, *, shape: tuple[int, ...]) -> Any:
    return R.op.reshape(x, R.shape(_infer_reshape(R.type(x), shape=shape).shape))


@primitive(
    infer=_infer_reshape,
    eager=lambda x, *, shape: np.reshape(x, shape),
    lower=_lower_reshape,
    vjp=lambda g, y, x, *, shape: (F.reshape(g, x.shape),),
    onnx=lambda O, x, *, shape: O.Reshape(x, np.array(shape, np.int64), allowzero=1)
    if -1 not in shape
    else O.Reshape(x, np.array(shape, np.int64)),
    samples=[
        sample((3, 4), shape=(2, 6)),
        sample((2, 3, 4), shape=(-1, 4)),
        sample((1,), shape=()),
        sample((), shape=(1, 1)),
        sample((0, 3), shape=(3, 0), grad=False),
        sample((3, 4), shape=(5, -1), raises=ShapeError),
        sample((3, 4), shape=(3, 5), raises=ShapeError),
    ],
)
def reshape(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    r"""Gives the elements, in row-major order, another shape.

    Args:
        input: Tensor of any shape.
        shape: The new shape; one entry may be -1 and is computed.

    Returns:
        Tensor of shape ``shape``.

    Raises:
        ShapeError: if the number of elements differs.

    Example:
        >>> ops.reshape(Tensor([[1, 2], [3, 4]]), (4,))
    """
    ...


def _infer_broadcast(input: TensorType, *, shape: tuple[int, ...]) -> TensorType:
    if len(shape) < input.ndim:
        raise ShapeError(f"shape {list(shape)} has fewer axes than the input")
    lead = len(shape) - input.ndim
    full = tuple(
        input.shape[i - lead] if d == -1 and i >= lead else d for i, d in enumerate(shape)
    )
    if rules.broadcast_shapes(input.shape, full) != full:
        raise ShapeError(f"[{','.join(map(str, input.shape))}] does not broadcast to {list(shape)}")
    return input.with_shape(full)


def _eager_broadcast(x: np.ndarray, *, shape: tuple[int, ...]) -> np.ndarray:
    lead = len(shape) - x.ndim
    return np.broadcast_to(x, [x.shape[i - lead] if d == -1 else d for i, d in enumerate(shape)])


def _lower_broadcast(R: Any, x: Any, *, shape: tuple[int, ...]) -> Any:
    return R.op.broadcast_to(x, R.shape(_infer_broadcast(R.type(x), shape=shape).shape))


@primitive(
    infer=_infer_broadcast,
    eager=_eager_broadcast,
    lower=_lower_broadcast,
    vjp=lambda g, y, x, *, shape: (sum_to(g, x),),
    onnx=lambda O, x, *, shape: O.Expand(x, np.array([1 if d == -1 else d for d in shape])),
    samples=[
        sample((3, 1), shape=(2, 3, 4)),
        sample((3, 1), shape=(-1, 5)),
        sample((), shape=(2, 2)),
        sample((1, 2), shape=(0, 2), grad=False),
        sample((3,), shape=(4,), raises=ShapeError),
    ],
)
def broadcast_to(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    r"""Repeats axes of size 1 (and leading ones) to reach ``shape``.

    Args:
        input: Tensor whose shape broadcasts to ``shape``.
        shape: The new shape; -1 keeps the size of an existing axis.

    Returns:
        Tensor of shape ``shape``.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.broadcast_to(Tensor([[1], [2]]), (2, 3))
    """
    ...
