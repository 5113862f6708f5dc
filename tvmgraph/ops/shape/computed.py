"""Shapes that tensors of a graph decide: positions are computed, and elements taken there.

What does not fit raises when the graph runs, as far as it can be told by a size; a size below 0
is 0.
"""

from __future__ import annotations

import functools
import operator

from tvmgraph import dtypes
from tvmgraph.core.arguments import Unknown, is_sequence
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import Dim
from tvmgraph.errors import ShapeError
from tvmgraph.ops.common.arguments import as_int, bad, require, split_up, tensor_in

__all__: list[str] = []


def reshape(input: Tensor, shape: object) -> Tensor:
    """Gives the elements another shape of which tensors decide some sizes.

    Args:
        input: Tensor of any shape.
        shape: Ints, 0-d tensors or an integer tensor; one of them is -1 at most.
    """
    given = _entries(shape, "reshape")
    if sum(e.__class__ is int and e == -1 for e in given) > 1:
        raise bad(ShapeError, "more than one -1", "reshape", f"input={input.aval}, shape={shape}")
    total = functools.reduce(operator.mul, input.aval.shape, 1)
    flat = F.reshape(input, (total,))
    count = _number(flat, total)
    product = functools.reduce(operator.mul, [_number(flat, e) for e in given])
    rest = F.floor_div(count, F.maximum(-product, 1))  # what a -1 stands for
    numbers = [
        e if e.__class__ is int and e != -1 else F.where(_number(flat, e) < 0, rest, e)
        for e in given
    ]
    new = [_size(n) for n in numbers]
    product = functools.reduce(operator.mul, [_number(flat, n) for n in numbers])
    flat = _checked(flat, F.equal(product, count))
    places = _positions(new[0])
    for n, size in zip(numbers[1:], new[1:]):
        places = F.expand_dims(places * n, -1) + _positions(size)
    return F.index_get(flat, places, axes=(0,))


def broadcast_to(input: Tensor, shape: object) -> Tensor:
    """Repeats axes of size 1 as often as tensors decide.

    Args:
        input: Tensor of any shape.
        shape: Ints, 0-d tensors or an integer tensor; -1 keeps the size of an axis.
    """
    given = _entries(shape, "broadcast_to")
    lead = len(given) - input.ndim
    new: list[int | Dim] = []
    for i, e in enumerate(given):
        old = input.aval.shape[i - lead] if i >= lead else None
        if not isinstance(e, Tensor):
            new.append(e)
        elif old is None:
            new.append(_size(e))
        elif isinstance(old, Dim) or old != 1:
            input = _checked(input, F.logical_or(e < 0, F.equal(e, _number(input, old))))
            new.append(old)
        else:
            new.append(_size(F.where(e < 0, 1, e)))
    return F.broadcast_to(input, tuple(new))


def tile(input: Tensor, dims: object) -> Tensor:
    """Repeats the whole tensor as often as tensors decide.

    Args:
        input: Tensor of any shape.
        dims: Repetitions per axis: ints, 0-d tensors or an integer tensor.
    """
    given = _entries(dims, "tile")
    known = tuple(1 if isinstance(e, Tensor) else e for e in given)
    x = F.tile(input, known)
    for axis, e in enumerate(given, x.ndim - len(given)):
        if isinstance(e, Tensor):
            n = _number(x, x.aval.shape[axis])
            places = F.floor_mod(_positions(_size(F.maximum(e, 0) * n)), F.maximum(n, 1))
            x = F.index_get(x, places, axes=(axis,))
    return x


def _entries(value: object, op: str) -> list[int | Tensor]:
    value = split_up(value)
    items = value if is_sequence(value) else (value,)
    return [_wide(v, op) if isinstance(v, Unknown) else as_int(v, op, "shape") for v in items]


def _wide(given: Unknown, op: str) -> Tensor:
    value = tensor_in(given)
    require(value.dtype.is_integer and not value.ndim, "sizes are integers", op, shape=value)
    return F.cast(value, dtypes.int64)


def _number(like: Tensor, size: object) -> Tensor:
    """Returns a size as a 0-d tensor."""
    if isinstance(size, Tensor):
        return size
    return F.size_value(like, size=size, dtype=dtypes.int64)


def _size(value: object) -> int | Dim:
    """Returns a 0-d tensor as a size."""
    return value.as_size() if isinstance(value, Unknown) else value  # pyright: ignore[reportReturnType]


def _positions(size: int | Dim) -> Tensor:
    return F.arange_values(0, 1, size, dtypes.int64)


def _checked(x: Tensor, fits: Tensor) -> Tensor:
    """Returns a tensor after checking, when the graph runs, that the sizes fit it."""
    one = F.count_up(F.cast(fits, dtypes.int64), "fitting")
    return F.at_least(x, one, size=one.aval.shape[0], least=1)
