"""Joining, cutting, indexing and moving axes with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

from tvmgraph import ops
from tvmgraph.core import rules
from tvmgraph.core.arguments import AxisLike
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError
from tvmgraph.ops.indexing.scatter import index_added


def cat(tensors: object, dim: int = 0) -> Tensor:
    """Joins tensors along an axis.

    Args:
        tensors: A list or tuple of tensors; all sizes are equal but, for ``cat``, that of the axis.
        dim: The axis.
    """
    return ops.cat(tensors, dim)


concat = cat


def stack(tensors: object, dim: int = 0) -> Tensor:
    """Joins tensors along a new axis.

    Args:
        tensors: A list or tuple of tensors of one shape.
        dim: The axis.
    """
    return ops.stack(tensors, dim)


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Cuts a tensor into at most ``chunks`` parts along an axis.

    Args:
        input: Tensor with at least one axis.
        chunks: How many parts at most; the last may be smaller.
        dim: The axis.
    """
    return ops.chunk(input, chunks, dim)


def split(tensor: Tensor, split_size_or_sections: object, dim: int = 0) -> tuple[Tensor, ...]:
    """Cuts a tensor into parts of one size, or of the given sizes.

    Args:
        tensor: Tensor of any shape.
        split_size_or_sections: Size of every part but the last, or a list of sizes.
        dim: The axis.
    """
    return ops.split(tensor, split_size_or_sections, dim)


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Returns ``length`` elements of an axis from ``start`` on.

    Args:
        input: Tensor of at least one axis.
        dim: The axis.
        start: The first element.
        length: How many elements.
    """
    return ops.narrow(input, dim, start, length)


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Returns the slice at one index of an axis, without that axis.

    Args:
        input: Tensor or number taken where the condition holds.
        dim: The axis.
        index: The index, counted from the end if negative.
    """
    if index.__class__ is not int:
        return ops.gather(input, Tensor(index), dim)
    axis = rules.normalize_axis(dim, input.ndim, "dim")
    return ops.getitem(input, (*(slice(None),) * axis, index))


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Returns the slices at the given indices of an axis.

    Args:
        input: Tensor of at least one axis.
        dim: The axis.
        index: Indices [K].
    """
    return ops.index_select(input, dim, index)


def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: NumberLike = 1
) -> Tensor:
    """Returns ``input`` with ``alpha * source`` added at the given indices of an axis.

    Args:
        input: Tensor of any shape.
        dim: The axis.
        index: Indices [K].
        source: What is added: the shape of ``input`` with K elements along the axis.
        alpha: Factor of ``source``.
    """
    added = source if alpha == 1 else source * alpha
    return index_added(input, index.astype("int32"), added, dim)


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Returns ``input[..., index[i], ...]`` along an axis, element by element of ``index``.

    Args:
        input: Tensor of any shape.
        dim: The axis.
        index: Indices, of as many axes as ``input``.
    """
    return ops.gather_elements(input, dim, index)


def scatter(input: Tensor, dim: int, index: Tensor, src: object) -> Tensor:
    """Returns ``input`` with elements along an axis replaced by those of ``src``.

    Args:
        input: Tensor of at least one axis.
        dim: The axis.
        index: Indices, of as many axes as ``input``.
        src: The values, a number or a tensor as large as ``index``.
    """
    return ops.scatter(input, dim, index, src)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Returns ``input`` with elements of ``src`` added along an axis.

    Args:
        input: Tensor of any shape.
        dim: The axis.
        index: Indices, of as many axes as ``input``.
        src: The values, a tensor as large as ``index``.
    """
    return ops.tensor_scatter_elements(input, index, src, dim, "add")


def squeeze(input: Tensor, dim: AxisLike | None = None) -> Tensor:
    """Drops axes of size 1; an axis of another size stays.

    Args:
        input: Tensor of any shape.
        dim: Axis or axes; all of size 1 by default.
    """
    return ops.squeeze(input, dim)


def permute(input: Tensor, dims: AxisLike) -> Tensor:
    """Returns the tensor with its axes in another order.

    Args:
        input: Tensor of any shape.
        dims: The old axis that stands at every place.
    """
    return ops.permute(input, dims)


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchanges two axes.

    Args:
        input: Tensor of any shape.
        dim0: The one axis.
        dim1: The other one.
    """
    return ops.swapaxes(input, dim0, dim1)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Joins a range of axes into one.

    Args:
        input: Tensor of any shape; one with fewer than two axes gives one axis.
        start_dim: The first axis.
        end_dim: The last axis, which is included.
    """
    return ops.flatten(input, start_dim=start_dim, end_dim=end_dim)


def repeat_interleave(input: Tensor, repeats: object, dim: int | None = None, *,
                      output_size: int | None = None) -> Tensor:  # fmt: skip
    """Repeats every element along an axis, or of the flat tensor.

    Args:
        input: Tensor of any shape.
        repeats: How often, one number or one per element of the axis.
        dim: The axis; the flat tensor by default.
        output_size: Kept for MindSpore programs.
    """
    return ops.repeat_interleave(input, repeats, dim)


def meshgrid(*tensors: object, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Returns coordinate grids of vectors, indexed ``"ij"`` unless ``"xy"`` is asked for.

    Args:
        *tensors: Vectors, or one list of them.
        indexing: ``"ij"`` (the first vector along axis 0) or ``"xy"`` (along axis 1).
    """
    vectors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    return ops.meshgrid(*vectors, indexing=indexing or "ij")


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Returns the matrix with a vector on a diagonal, or the diagonal of a matrix.

    Args:
        input: Vector [N] or matrix [M, N].
        diagonal: Which diagonal: above the main one if positive, below it if negative.
    """
    if input.ndim == 1:
        return ops.diagflat(input, diagonal)
    if input.ndim == 2:
        return ops.diagonal(input, diagonal)
    raise ArgumentError(f"diag takes a vector or a matrix, not {input.ndim} axes", op="mint.diag")


def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False,
           return_counts: bool = False, dim: int | None = None) -> Any:  # fmt: skip
    """Returns the distinct elements in order, with their positions and counts if asked for.

    Args:
        input: Tensor of any shape.
        sorted: Kept for MindSpore programs: the elements are always in order.
        return_inverse: Whether the position of every element of ``input`` in the result follows.
        return_counts: Whether it follows how often every element occurs.
        dim: Not offered.

    Raises:
        ArgumentError: if ``dim`` is given: distinct slices are not offered.
    """
    if dim is not None:
        raise ArgumentError("distinct slices along an axis are not offered", op="mint.unique",
                            fix="leave dim out")  # fmt: skip
    flat = ops.flatten(input, start_dim=0)
    order = ops.argsort(flat) if return_inverse else None
    ordered = ops.sort(flat)[0] if order is None else ops.gather(flat, order, 0)
    values, inverse, counts = ops.unique_consecutive(ordered, True, True)
    found: tuple[Tensor, ...] = (values,)
    if order is not None:
        ranks = ops.tensor_scatter_elements(
            ops.zeros_like(order), order, inverse.astype("int32"), 0
        )
        found += (ranks.reshape(input.shape).astype("int64"),)
    if return_counts:
        found += (counts.astype("int64"),)
    return found if len(found) > 1 else values


def clone(input: Tensor) -> Tensor:
    """Returns a copy.

    Args:
        input: Tensor of any shape.
    """
    return input.clone()


__all__ = _public_names(globals())

_guard_module(globals(), "mint")
