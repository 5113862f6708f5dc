"""The order of axes: transpose and its relatives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvmgraph.core import rules
from tvmgraph.core.arguments import Attrs, AxisLike
from tvmgraph.core.op import F, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Batch, Pattern, Traits, equation, letters
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.ops.common.arguments import (
    as_int,
    bad,
    describe,
    int_tuple,
    named,
    require,
    require_tensor,
    wrap_axes,
)
from tvmgraph.ops.shape.rows import shape_text

__all__ = ["moveaxis", "movedim", "permute", "swapaxes", "swapdims", "t", "transpose"]


def _infer_transpose(input: TensorType, *, dims: tuple[int, ...]) -> TensorType:
    if sorted(dims) != list(range(input.ndim)):
        raise ShapeError(
            f"dims {shape_text(dims)} is not a permutation of the {input.ndim} axes",
            fix="name every axis exactly once",
        )
    return input.with_shape(input.shape[d] for d in dims)


def _transpose_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """Every dimension."""
    names = letters(types[0].ndim)
    return equation([names], [[names[d] for d in attrs["dims"]]])


@primitive(
    infer=_infer_transpose,
    traits=Traits(Pattern.VIEW, _transpose_factors, batch=Batch.PERMUTATION, alias=True),
    eager=lambda x, *, dims: x.transpose(dims),
    lower=lambda R, x, *, dims: R.op.permute_dims(x, list(dims)) if dims else x,
    vjp=lambda g, y, x, *, dims: (F.transpose(g, tuple(int(i) for i in np.argsort(dims))),),
    onnx=lambda O, x, *, dims: O.Transpose(x, perm=list(dims)) if dims else O.Identity(x),
    samples=[
        sample((3, 4), dims=(1, 0)),
        sample((2, 3, 5), dims=(2, 0, 1)),
        sample((17, 1, 3), dims=(0, 2, 1), dtype="int32"),
        sample((4,), dims=(0,)),
        sample((), dims=()),
        sample((0, 3), dims=(1, 0), grad=False),
        sample((3, 4), dims=(0, 0), raises=ShapeError),
        sample((3, 4), dims=(0,), raises=ShapeError),
    ],
)
@named("transpose")
def _transpose(input: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Permutes the axes: axis ``i`` of the result is axis ``dims[i]`` of the input.

    Args:
        input: Tensor of any shape.
        dims: Non-negative permutation of the axes.

    Returns:
        Tensor with permuted axes.
    """
    ...


def transpose(input: Tensor, dims: AxisLike) -> Tensor:
    r"""Permutes the axes: :math:`out.shape_i = input.shape_{dims_i}`.

    Args:
        input: Tensor of any shape.
        dims: A permutation of the axes; negative ones count from the end.

    Returns:
        Tensor with permuted axes.

    Raises:
        ShapeError: if ``dims`` does not name every axis once.

    Example:
        >>> ops.transpose(Tensor([[1, 2, 3]]), (1, 0))
        Tensor(shape=[3, 1], dtype=Int64, value=
        [[1],
         [2],
         [3]])
    """
    return _transpose(input, wrap_axes(int_tuple(dims, "transpose", "dims"), input.ndim))


def permute(input: Tensor, axis: AxisLike) -> Tensor:
    """Permutes the axes; another name of :func:`transpose`.

    Args:
        input: Tensor of any shape.
        axis: A permutation of the axes.

    Returns:
        Tensor with permuted axes.

    Example:
        >>> ops.permute(Tensor([[1, 2, 3]]), (1, 0))
        Tensor(shape=[3, 1], dtype=Int64, value=
        [[1],
         [2],
         [3]])
    """
    return transpose(input, axis)


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Exchanges two axes.

    Args:
        input: Tensor of any shape.
        axis0: One axis.
        axis1: The other axis.

    Returns:
        Tensor with the two axes exchanged.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.swapaxes(Tensor([[1, 2, 3]]), 0, 1)
        Tensor(shape=[3, 1], dtype=Int64, value=
        [[1],
         [2],
         [3]])
    """
    dims = list(range(input.ndim))
    a, b = _existing_axes((axis0, axis1), input, "swapaxes")
    dims[a], dims[b] = b, a
    return _transpose(input, tuple(dims))


def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchanges two axes; another name of :func:`swapaxes`.

    Args:
        input: Tensor of any shape.
        dim0: One axis.
        dim1: The other axis.

    Returns:
        Tensor with the two axes exchanged.

    Example:
        >>> ops.swapdims(Tensor([[1, 2, 3]]), 0, 1)
        Tensor(shape=[3, 1], dtype=Int64, value=
        [[1],
         [2],
         [3]])
    """
    return swapaxes(input, dim0, dim1)


def _existing_axes(axes: object, input: Tensor, op: str) -> list[int]:
    ndim = input.ndim
    items = [as_int(a, op, "axis") for a in (axes if isinstance(axes, (tuple, list)) else (axes,))]
    for a in items:
        if not -ndim <= a < ndim:
            raise bad(
                rules.AxisError, f"axis {a} is outside [{-ndim}, {ndim})", op,
                describe(input=input, axis=axes),
            )  # fmt: skip
    return [a % ndim for a in items]


def moveaxis(x: Tensor, source: object, destination: object) -> Tensor:
    """Moves axes to other positions; the others keep their order.

    Args:
        x: Tensor of any shape.
        source: The axis or axes to move.
        destination: Their positions in the result.

    Returns:
        Tensor with moved axes.

    Raises:
        ArgumentError: if the two differ in length or repeat an axis.

    Example:
        >>> ops.moveaxis(Tensor([[[1, 2, 3]]]), 2, 0).shape
        (3, 1, 1)
    """
    start = _existing_axes(source, x, "moveaxis")
    end = _existing_axes(destination, x, "moveaxis")
    require(len(start) == len(end) and len(set(start)) == len(start) and len(set(end)) == len(end),
            "source and destination must name as many different axes", "moveaxis", ArgumentError,
            x=x, source=source, destination=destination)  # fmt: skip
    order = [i for i in range(x.ndim) if i not in start]
    for d, s in sorted(zip(end, start)):
        order.insert(d, s)
    return _transpose(x, tuple(order))


movedim = moveaxis


def t(input: Tensor) -> Tensor:
    """Transposes a matrix; a tensor with fewer than two axes is returned as it is.

    Args:
        input: Tensor with at most two axes.

    Returns:
        Tensor of shape :math:`(m, n)` for an input of shape :math:`(n, m)`.

    Raises:
        ShapeError: if the input has more than two axes.

    Example:
        >>> ops.t(Tensor([[1, 2, 3]]))
        Tensor(shape=[3, 1], dtype=Int64, value=
        [[1],
         [2],
         [3]])
    """
    require(input.ndim <= 2, f"input must have at most 2 axes, not {input.ndim}", "t", input=input,
            fix="use ops.transpose")  # fmt: skip
    return _transpose(input, (1, 0)) if require_tensor("t", input).ndim == 2 else input
