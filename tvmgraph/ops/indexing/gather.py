"""Taking slices and elements by integer tensors, as users call it."""

from __future__ import annotations

from typing import Any

from tvmgraph import dtypes
from tvmgraph.core import promotion, rules
from tvmgraph.core.dispatch import lift
from tvmgraph.core.op import F
from tvmgraph.core.symbols import Symbol
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from tvmgraph.ops.common.arguments import bad, require, require_tensor, resolve_axis
from tvmgraph.ops.indexing.advanced import index_get
from tvmgraph.ops.indexing.elements import gather_along

__all__ = [
    "choose", "embedding", "gather", "gather_d", "gather_elements", "gather_nd", "index_select",
    "reverse_sequence", "take",
]  # fmt: skip


def as_index(name: str, index: object, argument: str) -> Tensor:
    """Returns an index argument (a tensor, or an int or sequence of ints) as an integer tensor.

    Args:
        name: Name of the function.
        index: The argument.
        argument: Its name.

    Raises:
        DTypeError: if it does not hold integers.
    """
    if isinstance(index, Symbol):
        index = lift(index, dtypes.int64)
    index = index if isinstance(index, Tensor) else Tensor(index)
    if not index.aval.dtype.is_integer:
        raise bad(DTypeError, f"{argument} must hold integers, not {index.aval.dtype.name}", name,
                  f"{argument}={index.aval}", "cast it to int64")  # fmt: skip
    return index


def gather(input_params: Tensor, input_indices: Tensor, axis: int, batch_dims: int = 0) -> Tensor:
    r"""Takes slices along an axis: :math:`out_{i, j, k} = params_{i, indices_j, k}`.

    Args:
        input_params: Tensor of at least one axis.
        input_indices: Integer Tensor of any shape; negative entries count from the end.
        axis: Axis the indices address.
        batch_dims: Number of leading axes that both tensors share.

    Returns:
        Tensor of shape ``params.shape[:axis] + indices.shape[batch_dims:] +
        params.shape[axis + 1:]``.

    Raises:
        OutOfRangeError: if an axis does not exist, or an index lies outside it.
        ShapeError: if the batch axes differ.

    Example:
        >>> ops.gather(Tensor([[1, 2], [3, 4], [5, 6]]), Tensor([2, 0]), 0)
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[5, 6],
         [1, 2]])
    """
    x = require_tensor("gather", input_params, "input_params")
    index = as_index("gather", input_indices, "input_indices")
    axis = resolve_axis("gather", x, int(axis))
    batch = batch_dims + index.ndim if batch_dims < 0 else batch_dims
    if not batch:
        return index_get(x, index, axes=(axis,))
    require(batch <= axis and x.aval.shape[:batch] == index.aval.shape[:batch],
            f"the first {batch} axes must agree and lie before axis {axis}", "gather",
            input_params=x, input_indices=index, batch_dims=batch_dims)  # fmt: skip
    # the batch axes become indices of their own; the axes in between move behind the indices
    order = [*range(batch), axis, *range(batch, axis), *range(axis + 1, x.ndim)]
    moved = F.transpose(x, tuple(order)) if order != sorted(order) else x
    places = [
        F.reshape(F.arange(0, n, 1, dtype=dtypes.int64), (n,) + (1,) * (index.ndim - a - 1))
        for a, n in enumerate(x.aval.static_shape[:batch])
    ]
    y = index_get(moved, *places, index, axes=tuple(range(batch + 1)))
    between, inner = axis - batch, index.ndim - batch
    back = [
        *range(batch), *range(index.ndim, index.ndim + between),
        *range(batch, batch + inner), *range(index.ndim + between, y.ndim),
    ]  # fmt: skip
    return F.transpose(y, tuple(back)) if back != sorted(back) else y


def gather_elements(input: Tensor, dim: int, index: Tensor) -> Tensor:
    r"""Takes one element per index along an axis: :math:`out_{ij} = input_{index_{ij}, j}`.

    Args:
        input: Tensor of at least one axis.
        dim: Axis the indices address.
        index: Integer Tensor of as many axes, nowhere larger than ``input`` except along ``dim``;
            negative entries count from the end.

    Returns:
        Tensor of ``index``'s shape and ``input``'s dtype.

    Raises:
        OutOfRangeError: if the axis does not exist, or an index lies outside it.
        ShapeError: if the shapes do not fit.

    Example:
        >>> ops.gather_elements(Tensor([[1, 2], [3, 4]]), 1, Tensor([[0, 0], [1, 0]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 1],
         [4, 3]])
    """
    axis = resolve_axis("gather_elements", input, dim, "dim")
    return gather_along(input, as_index("gather_elements", index, "index"), axis)


def gather_d(x: Tensor, dim: int, index: Tensor) -> Tensor:
    r"""Takes one element per index along an axis: :math:`out_{ij} = x_{index_{ij}, j}`.

    Args:
        x: Tensor of at least one axis.
        dim: Axis the indices address.
        index: Integer Tensor of as many axes, nowhere larger than ``x`` except along ``dim``.

    Returns:
        Tensor of ``index``'s shape and ``x``'s dtype.

    Raises:
        OutOfRangeError: if the axis does not exist, or an index lies outside it.

    Example:
        >>> ops.gather_d(Tensor([[1, 2], [3, 4]]), 1, Tensor([[0, 0], [1, 0]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 1],
         [4, 3]])
    """
    return gather_elements(x, dim, index)


def split_columns(name: str, x: Tensor, indices: object) -> list[Tensor]:
    """Splits the last axis of ``indices`` into one index tensor per leading axis of ``x``.

    Args:
        name: Name of the function.
        x: The tensor that is indexed.
        indices: Integers of shape :math:`(*, K)` with :math:`K` up to the number of ``x``'s axes.

    Raises:
        ShapeError: if there are more coordinates or none.
    """
    indices = as_index(name, indices, "indices")
    depth = indices.aval.shape[-1] if indices.ndim else 0
    if not isinstance(depth, int):
        depth = indices.aval.static_shape[-1]  # raises: the number of coordinates decides the form
    require(1 <= depth <= x.ndim, f"indices need 1 to {x.ndim} coordinates, not {depth}", name,
            input_x=x, indices=indices)  # fmt: skip
    whole = ((0, None, 1),) * (indices.ndim - 1)
    return [F.basic_index(indices, index=(*whole, k)) for k in range(depth)]


def gather_nd(input_x: Tensor, indices: Tensor) -> Tensor:
    r"""Takes the slices whose coordinates stand in the last axis of ``indices``.

    Args:
        input_x: Tensor of at least one axis.
        indices: Integer Tensor of shape :math:`(..., k)` with :math:`k` coordinates per slice.

    Returns:
        Tensor of shape ``indices.shape[:-1] + input_x.shape[k:]``.

    Raises:
        ShapeError: if there are more coordinates than axes.
        OutOfRangeError: if a coordinate lies outside its axis.

    Example:
        >>> ops.gather_nd(Tensor([[1, 2], [3, 4]]), Tensor([[0, 1], [1, 0]]))
        Tensor(shape=[2], dtype=Int64, value= [2, 3])
    """
    require_tensor("gather_nd", input_x, "input_x")
    columns = split_columns("gather_nd", input_x, indices)
    return index_get(input_x, *columns, axes=tuple(range(len(columns))))


def take(input: Tensor, index: Tensor) -> Tensor:
    r"""Takes elements by their position in row-major order.

    Args:
        input: Tensor of any shape.
        index: Integer Tensor; negative entries count from the end.

    Returns:
        Tensor of ``index``'s shape and ``input``'s dtype.

    Raises:
        OutOfRangeError: if an index lies outside the elements.

    Example:
        >>> ops.take(Tensor([[1, 2], [3, 4]]), Tensor([3, 0]))
        Tensor(shape=[2], dtype=Int64, value= [4, 1])
    """
    require_tensor("take", input)
    return index_get(F.reshape(input, (-1,)), as_index("take", index, "index"), axes=(0,))


def index_select(input: Tensor, axis: int, index: Tensor) -> Tensor:
    r"""Takes slices along an axis, in the order of a 1-d index.

    Args:
        input: Tensor of at least one axis.
        axis: Axis the indices address.
        index: 1-d (or 0-d) integer Tensor.

    Returns:
        Tensor of ``input``'s shape with ``index``'s size on ``axis``.

    Raises:
        OutOfRangeError: if the axis does not exist, or an index lies outside it.
        ShapeError: if ``index`` has more than one axis.

    Example:
        >>> ops.index_select(Tensor([[1, 2], [3, 4]]), 1, Tensor([1]))
        Tensor(shape=[2, 1], dtype=Int64, value=
        [[2],
         [4]])
    """
    axis = resolve_axis("index_select", input, axis)
    index = as_index("index_select", index, "index")
    require(index.ndim <= 1, "index must be 1-d", "index_select", index=index)
    return index_get(input, F.reshape(index, (-1,)), axes=(axis,))


def choose(input: Tensor, choices: object, mode: str = "clip") -> Tensor:
    r"""Chooses elementwise among tensors: :math:`out_i = choices_{input_i, i}`.

    Args:
        input: Integer Tensor.
        choices: Tensor whose first axis counts the choices, or a sequence of tensors or numbers;
            they broadcast with ``input``.
        mode: What happens to an index outside the choices: ``"clip"``, ``"wrap"`` or ``"raise"``
            (outside compiled code).

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ArgumentError: if ``mode`` is none of these.

    Example:
        >>> ops.choose(Tensor([0, 1]), [Tensor([1, 2]), Tensor([3, 4])])
        Tensor(shape=[2], dtype=Int64, value= [1, 4])
    """
    index = as_index("choose", input, "input")
    if mode not in ("clip", "wrap", "raise"):
        raise bad(ArgumentError, "mode must be clip, wrap or raise", "choose", f"mode={mode!r}")
    parts = choices if isinstance(choices, Tensor) else _stacked(choices)
    count = parts.aval.static_shape[0]
    if mode == "clip":
        index = F.minimum(F.maximum(index, 0), count - 1)
    elif mode == "wrap":
        index = F.floor_mod(index, count)
    # the index and every choice take the common shape
    common = rules.broadcast_shapes(index.aval.shape, parts.aval.shape[1:])
    lead = (1,) * (len(common) - parts.ndim + 1)
    parts = F.broadcast_to(F.reshape(parts, (count, *lead, *parts.shape[1:])), (count, *common))
    taken = gather_along(parts, F.expand_dims(F.broadcast_to(index, common), 0), 0)
    return F.squeeze(taken, 0)


def _stacked(choices: Any) -> Tensor:
    """Stacks tensors and numbers of different shapes and dtypes along a new first axis."""
    parts = [c if isinstance(c, Tensor) else Tensor(c) for c in choices]
    shape = rules.broadcast_shapes(*(p.aval.shape for p in parts))
    dtype = promotion.common([p.aval.dtype for p in parts])
    return F.stack([F.broadcast_to(F.cast(p, dtype), shape) for p in parts])


def reverse_sequence(x: Tensor, seq_lengths: Tensor, seq_dim: int, batch_dim: int = 0) -> Tensor:
    r"""Reverses the first ``seq_lengths[i]`` elements of every sequence of a batch.

    Args:
        x: Tensor of at least two axes.
        seq_lengths: 1-d integer Tensor, one length per batch entry.
        seq_dim: Axis of the sequences.
        batch_dim: Axis of the batch.

    Returns:
        Tensor of ``x``'s type.

    Raises:
        ArgumentError: if the two axes are equal.
        ShapeError: if there is not one length per batch entry.

    Example:
        >>> ops.reverse_sequence(Tensor([[1, 2, 3]]), Tensor([2]), 1)
        Tensor(shape=[1, 3], dtype=Int64, value=
        [[2, 1, 3]])
    """
    seq = resolve_axis("reverse_sequence", x, seq_dim, "seq_dim")
    batch = resolve_axis("reverse_sequence", x, batch_dim, "batch_dim")
    lengths = F.cast(as_index("reverse_sequence", seq_lengths, "seq_lengths"), dtypes.int64)
    got = f"x={x.aval}, seq_lengths={lengths.aval}, seq_dim={seq_dim}, batch_dim={batch_dim}"
    if seq == batch:
        raise bad(ArgumentError, "seq_dim and batch_dim must differ", "reverse_sequence", got)
    if lengths.aval.shape != (x.aval.shape[batch],):
        raise bad(ShapeError, "there must be one length per batch entry", "reverse_sequence", got)
    count, steps = x.aval.static_shape[batch], x.aval.static_shape[seq]
    step = F.arange(0, steps, 1, dtype=dtypes.int64)
    entry = F.reshape(F.arange(0, count, 1, dtype=dtypes.int64), (count, 1))
    ends = F.reshape(lengths, (count, 1))
    source = F.where(F.less(step, ends), ends - 1 - step, step)
    if batch > seq:
        y = index_get(x, F.transpose(source, (1, 0)), F.transpose(entry, (1, 0)), axes=(seq, batch))
    else:
        y = index_get(x, entry, source, axes=(batch, seq))
    first, second = sorted((batch, seq))
    if second - first == 1:
        return y
    return F.moveaxis(y, (0, 1), (first, second))  # indices apart from each other come out in front


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> Tensor:
    r"""Looks up rows of a table: :math:`out_i = weight_{input_i}`.

    Args:
        input: Integer Tensor of any shape.
        weight: Tensor of shape :math:`(rows, width)`.
        padding_idx: Row that gets no gradient.
        max_norm: Rows that are looked up are first scaled down, in ``weight`` itself, to at most
            this norm.
        norm_type: The order of that norm.
        scale_grad_by_freq: Whether the gradient of a row is divided by how often it was looked up.

    Returns:
        Tensor of shape ``input.shape + (width,)`` and ``weight``'s dtype.

    Raises:
        ShapeError: if ``weight`` is not 2-d.
        OutOfRangeError: if ``padding_idx`` or an index is no row.

    Example:
        >>> ops.embedding(Tensor([1, 0]), Tensor([[1.0, 2.0], [3.0, 4.0]]))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 3.00000000e+00,  4.00000000e+00],
         [ 1.00000000e+00,  2.00000000e+00]])
    """
    ids = as_index("embedding", input, "input")
    require_tensor("embedding", weight, "weight")
    require(weight.ndim == 2, "weight must be 2-d", "embedding", weight=weight)
    rows = weight.aval.static_shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise bad(OutOfRangeError, f"padding_idx must lie in [{-rows}, {rows})", "embedding",
                  f"padding_idx={padding_idx}")  # fmt: skip
    if max_norm is not None:
        weight.rebind(_limit_rows(ids, weight, float(max_norm), float(norm_type)))
    y = index_get(weight, ids, axes=(0,))
    if scale_grad_by_freq:
        share = 1 / F.cast(_occurrences(ids, rows), y.dtype)
        fixed = F.stop_gradient(y)
        y = fixed + (y - fixed) * F.expand_dims(index_get(share, ids, axes=(0,)), -1)
    if padding_idx is not None:
        padded = F.expand_dims(F.equal(F.floor_mod(ids, rows), padding_idx % rows), -1)
        y = F.where(padded, F.stop_gradient(y), y)
    return y


def _occurrences(ids: Tensor, rows: int) -> Tensor:
    """Counts how often every row is looked up."""
    flat = F.reshape(ids, (-1,))
    ones = F.ones_like(flat, dtype=dtypes.int64)
    return F.index_update(F.zeros((rows,), dtypes.int64), ones, flat, axes=(0,), mode="add")


def _limit_rows(ids: Tensor, weight: Tensor, most: float, order: float) -> Tensor:
    """Scales the rows that are looked up down to a norm."""
    norm = F.norm(F.stop_gradient(weight), order, 1, True)
    used = F.expand_dims(F.greater(_occurrences(ids, weight.aval.static_shape[0]), 0), -1)
    too_long = F.logical_and(used, F.greater(norm, most))
    return F.where(too_long, weight * F.cast(most / (norm + 1e-7), weight.dtype), weight)
