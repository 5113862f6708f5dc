"""Sorting, selection by rank and search in sorted sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.symbols import Symbol
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits, along_axis, equation, letters
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from tvmgraph.ops.common.arguments import bad, is_unknown, require, require_tensor, resolve_axis
from tvmgraph.ops.common.rows import LOW_PRECISION, NOT_DIFFERENTIABLE, lower_full
from tvmgraph.ops.indexing.elements import gather_along

__all__ = [
    "arg_top", "argsort", "bucketize", "intopk", "kthvalue", "msort", "searchsorted", "sort",
    "top_k", "topk",
]  # fmt: skip

#: Selecting more elements than this sorts all of them.
_MOST_SELECTED = 256


def _infer_sort(x: TensorType, *, axis: int, descending: bool) -> TensorType:
    rules.require_dtype(x, dtypes.ALL)
    rules.require_ndim(x, range(1, 65))
    rules.normalize_axis(axis, x.ndim)
    return x.with_dtype(dtypes.int32)


def eager_sort(x: np.ndarray, *, axis: int, descending: bool) -> np.ndarray:
    """The positions that sort an array, equal elements in their order.

    Args:
        x: The array.
        axis: The axis.
        descending: Whether the largest element comes first.

    Returns:
        int32 array of ``x``'s shape.
    """
    wide = x.astype(np.float32) if dtypes.dtype_of(x.dtype) is dtypes.bfloat16 else x
    if not descending:
        return np.argsort(wide, axis=axis, kind="stable").astype(np.int32)
    # the reverse of a stable ascending sort of the reverse keeps equal elements in order
    order = np.flip(np.argsort(np.flip(wide, axis), axis=axis, kind="stable"), axis)
    return (x.shape[axis] - 1 - order).astype(np.int32)


def integer_keys(R: Builder, x: Expr) -> Expr:
    """Emits integers in the order of ``x``: -0 equals 0, and NaN comes after all numbers.

    A comparison sort of NaN is undefined, and TVM sorts few dtypes.

    Args:
        R: The builder.
        x: A tensor.
    """
    d = R.type(x).dtype
    if not d.is_float:
        if d is dtypes.uint64:
            sign = R.const(np.uint64(1) << np.uint64(63), "uint64")
            return R.op.astype(R.emit(R.op.subtract(x, sign)), "int64")
        wide = d.itemsize == 8 or d is dtypes.uint32
        return R.op.astype(x, "int64" if wide else "int32")
    if d in LOW_PRECISION:
        x = R.emit(R.op.astype(x, "float32"))
    kind = "int64" if d is dtypes.float64 else "int32"
    most = R.tir.const(np.iinfo(kind).max, kind)

    def keys(x: Expr) -> Expr:
        def element(*i: Expr) -> Expr:
            bits = R.tir.reinterpret(kind, x[i])
            ordered = R.tir.Select(bits < 0, R.tir.bitwise_xor(bits, most), bits)
            ordered = R.tir.Select(x[i] == 0, R.tir.const(0, kind), ordered)
            return R.tir.if_then_else(R.tir.isnan(x[i]), most, ordered)

        return R.te.compute(x.shape, element, name="sort_keys")

    return R.emit_te(keys, x)


def _lower_sort(R: Builder, x: Expr, *, axis: int, descending: bool) -> Expr:
    t = R.type(x)
    if 0 in t.shape:
        return lower_full(R, x, t.with_dtype(dtypes.int32))
    keys = R.emit(integer_keys(R, x))
    return R.op.argsort(keys, axis=axis, descending=descending, dtype="int32")


def _onnx_sort(O: OnnxOps, x: OnnxNamed, *, axis: int, descending: bool) -> OnnxNamed:
    count = O.shape([x.type.shape[axis]])
    return onnx_order(O, x, count, axis, descending)


def onnx_order(
    O: OnnxOps, x: OnnxNamed, count: OnnxNamed | np.ndarray, axis: int, descending: bool
) -> OnnxNamed:
    """The first ``count`` positions in sorted order, as ONNX nodes.

    Args:
        O: The model so far.
        x: A value of known type.
        count: How many, int64 of shape (1).
        axis: The axis.
        descending: Whether the largest element comes first.
    """
    d = x.type.dtype
    if d in LOW_PRECISION:
        x = O.Cast(x, to=O.dtype(dtypes.float32))
    elif not d.is_float:
        x = O.Cast(x, to=O.dtype(dtypes.int64))
        if d is dtypes.uint64:  # the upper half became negative
            x = O.BitwiseXor(x, np.array(np.iinfo(np.int64).min))
    _, order = O.TopK(x, count, axis=axis, largest=int(descending), sorted=1, outputs=2)
    return O.Cast(order, to=O.dtype(dtypes.int32))


@primitive(
    infer=_infer_sort,
    traits=along_axis(),
    eager=eager_sort,
    lower=_lower_sort,
    vjp=Reason(NOT_DIFFERENTIABLE),
    onnx=_onnx_sort,
    samples=[
        sample((3, 5), axis=1, descending=False),
        sample((3, 5, 2), axis=1, descending=True),
        sample((17,), axis=0, descending=False, dtype="int64", low=-3, high=3),
        sample((17,), axis=0, descending=True, dtype="int32", low=-3, high=3),
        sample((9,), axis=0, descending=True, dtype="float16"),
        sample((9,), axis=0, descending=False, dtype="bfloat16"),
        sample((9,), axis=0, descending=False, dtype="float64"),
        sample((9,), axis=0, descending=False, dtype="uint8", low=0, high=255),
        sample((9,), axis=0, descending=True, dtype="bool"),
        sample(np.array([0, 2**63 + 5, 2**63 - 1, 7], np.uint64), axis=0, descending=True),
        sample(np.array([0.0, -np.inf, 1e-45, -0.0, np.inf, -3]), axis=0, descending=False),
        sample((3, 0), axis=0, descending=False),
        sample((3, 4), axis=2, descending=False, raises=OutOfRangeError),
    ],
)
def arg_sort(x: Tensor, axis: int, descending: bool) -> Tensor:
    """Returns the int32 positions that sort ``x`` along an axis, equal elements in their order.

    NaN counts as larger than every number.

    Args:
        x: Tensor of at least one axis.
        axis: The axis, not negative.
        descending: Whether the largest element comes first.
    """
    ...


def argsort(input: Tensor, axis: int = -1, descending: bool = False) -> Tensor:
    r"""Returns the positions that sort the elements along an axis.

    Args:
        input: Tensor of any shape.
        axis: Axis.
        descending: Whether the largest element comes first.

    Returns:
        int32 Tensor of ``input``'s shape; equal elements keep their order, NaN counts as largest.

    Raises:
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.argsort(Tensor([3.0, 1.0, 2.0]))
        Tensor(shape=[3], dtype=Int32, value= [1, 2, 0])
    """
    axis = resolve_axis("argsort", input, axis)
    if input.ndim == 0:
        return F.zeros((), dtypes.int32)
    return arg_sort(input, axis, bool(descending))


def sort(input_x: Tensor, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    r"""Sorts the elements along an axis.

    Args:
        input_x: Tensor of any shape.
        axis: Axis.
        descending: Whether the largest element comes first.

    Returns:
        Tuple of the sorted tensor and its elements' int32 positions in ``input_x``; equal
        elements keep their order, NaN counts as largest.

    Raises:
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.sort(Tensor([3.0, 1.0, 2.0]))
        (Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00,
         3.00000000e+00]), Tensor(shape=[3], dtype=Int32, value= [1, 2, 0]))
    """
    axis = resolve_axis("sort", input_x, axis)
    if input_x.ndim == 0:
        return F.identity(input_x), F.zeros((), dtypes.int32)
    order = arg_sort(input_x, axis, bool(descending))
    return gather_along(input_x, order, axis), order


def msort(input: Tensor) -> Tensor:
    r"""Sorts the elements along the first axis.

    Args:
        input: Tensor of any shape.

    Returns:
        Tensor of ``input``'s type.

    Example:
        >>> ops.msort(Tensor([[3.0, 1.0], [2.0, 5.0]]))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 2.00000000e+00,  1.00000000e+00],
         [ 3.00000000e+00,  5.00000000e+00]])
    """
    return sort(input, 0)[0]


# ---- selection by rank --------------------------------------------------------------------------


def _require_within(op: str, input: Tensor, k: int, least: int, size: int, dim: object) -> None:
    if isinstance(k, bool) or not least <= k <= size:
        got = f"input={input.aval}, k={k!r}, dim={dim}"
        raise bad(ArgumentError, f"k must lie in [{least}, {size}]", op, got)


def topk(
    input: Tensor, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    r"""Returns the ``k`` largest or smallest elements along an axis.

    Args:
        input: Tensor of any shape.
        k: Number of elements.
        dim: Axis; ``None`` for the last one.
        largest: Whether to take the largest elements.
        sorted: Whether the order matters; it is that of ``input`` otherwise, where the whole axis
            is taken, and sorted where less is.

    Returns:
        Tuple of values and their int32 positions, of ``input``'s shape with ``k`` on the axis.

    Raises:
        ArgumentError: if ``k`` is negative or exceeds the size of the axis.
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.topk(Tensor([3.0, 1.0, 2.0]), 2)
        (Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  2.00000000e+00]),
         Tensor(shape=[2], dtype=Int32, value= [0, 2]))
    """
    axis = resolve_axis("topk", input, -1 if dim is None else dim, "dim")
    size: Any = input.aval.shape[axis] if input.ndim else 1
    computed = is_unknown(k)
    if not computed:
        _require_within("topk", input, k, 0, size, dim)
    if input.ndim == 0:
        return F.identity(input), F.zeros((), dtypes.int32)
    if not sorted and not computed and input.aval.is_static and k == size:
        places = F.reshape(
            F.arange(size, dtype=dtypes.int32), (size,) + (1,) * (input.ndim - axis - 1)
        )
        return F.identity(input), F.broadcast_to(places, input.shape)
    # a selection keeps its elements sorted, at a cost that grows with the square of their number
    if not computed and input.aval.is_static and 0 < k <= _MOST_SELECTED and 2 * k * k <= size:
        order = F.arg_top(input, int(k), axis, bool(largest))
        return gather_along(input, order, axis), order
    order = arg_sort(input, axis, bool(largest))
    if computed:
        order = F.getitem(order, (slice(None),) * axis + (slice(k),))
    elif isinstance(size, Symbol) or k != size:
        order = F.basic_index(order, index=((0, None, 1),) * axis + ((0, int(k), 1),))
    return gather_along(input, order, axis), order


def top_k(input_x: Tensor, k: int, sorted: bool = True) -> tuple[Tensor, Tensor]:
    r"""Returns the ``k`` largest elements along the last axis.

    Args:
        input_x: Tensor of any shape.
        k: Number of elements.
        sorted: Whether the order matters; see :func:`topk`.

    Returns:
        Tuple of values and their int32 positions.

    Raises:
        ArgumentError: if ``k`` is negative or exceeds the size of the axis.

    Example:
        >>> ops.top_k(Tensor([3.0, 1.0, 2.0]), 1)
        (Tensor(shape=[1], dtype=Float32, value= [ 3.00000000e+00]), Tensor(shape=[1], dtype=Int32,
         value= [0]))
    """
    return topk(input_x, k, None, True, sorted)


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    r"""Returns the ``k``-th smallest elements along an axis (the first for ``k=1``).

    Args:
        input: Tensor of at least one axis.
        k: Rank, from 1.
        dim: Axis.
        keepdim: Whether the axis stays with size 1.

    Returns:
        Tuple of values and their int64 positions.

    Raises:
        ArgumentError: if ``k`` is no rank of the axis.
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.kthvalue(Tensor([3.0, 1.0, 2.0]), 2)
        (Tensor(shape=[], dtype=Float32, value= 2), Tensor(shape=[], dtype=Int64, value= 2))
    """
    axis = resolve_axis("kthvalue", input, dim, "dim")
    size = input.aval.static_shape[axis] if input.ndim else 1
    _require_within("kthvalue", input, k, 1, size, dim)
    if input.ndim == 0:
        return F.identity(input), F.zeros((), dtypes.int64)
    order = F.cast(arg_sort(input, axis, False), dtypes.int64)
    at = F.basic_index(order, index=((0, None, 1),) * axis + ((k - 1, k, 1),))
    value = gather_along(input, at, axis)
    return (value, at) if keepdim else (F.squeeze(value, axis), F.squeeze(at, axis))


def intopk(x1: Tensor, x2: Tensor, k: int) -> Tensor:
    r"""Returns whether the class of every row is among its ``k`` largest elements.

    Args:
        x1: Tensor of shape :math:`(rows, classes)`.
        x2: Integer Tensor of shape :math:`(rows,)`: a class per row.
        k: How many elements count.

    Returns:
        bool Tensor of shape :math:`(rows,)`; false for a class that does not exist.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> ops.intopk(Tensor([[1.0, 3.0, 2.0]]), Tensor([2]), 2)
        Tensor(shape=[1], dtype=Bool, value= [ True])
    """
    require_tensor("intopk", x1, "x1")
    require_tensor("intopk", x2, "x2")
    require(x1.ndim == 2 and x2.aval.shape == x1.aval.shape[:1],
            "x1 must be 2-d and x2 hold one class per row", "intopk", x1=x1, x2=x2)  # fmt: skip
    classes = x1.aval.static_shape[1]
    exists = F.logical_and(F.greater_equal(x2, 0), F.less(x2, classes))
    value = gather_along(x1, F.expand_dims(F.where(exists, x2, 0), 1), 1)
    better = F.count_nonzero(F.greater(x1, value), 1)
    good = F.logical_and(exists, F.isfinite(F.squeeze(value, 1)))
    return F.logical_and(F.less(better, int(k)), good)


# ---- search -------------------------------------------------------------------------------------


def _infer_search(sequence: TensorType, values: TensorType, *, right: bool) -> TensorType:
    rules.require_dtype(sequence, dtypes.ALL)
    rules.require_same_dtype(sequence, values)
    if sequence.ndim == 0:
        raise ShapeError("the sorted sequence must have at least one axis")
    if sequence.ndim > 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise ShapeError(
            f"all axes but the last must agree: {list(sequence.shape)} and {list(values.shape)}"
        )
    return tensor_type(values.shape, dtypes.int64, values.device)


def _eager_search(sequence: np.ndarray, values: np.ndarray, *, right: bool) -> np.ndarray:
    side = "right" if right else "left"
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side).astype(np.int64)
    rows = sequence.reshape(-1, sequence.shape[-1]) if sequence.size else None
    out = np.zeros(values.shape, np.int64)
    if rows is not None and values.size:
        flat, found = values.reshape(len(rows), -1), out.reshape(len(rows), -1)
        for i, row in enumerate(rows):
            found[i] = np.searchsorted(row, flat[i], side)
    return out


def _lower_search(R: Builder, sequence: Expr, values: Expr, *, right: bool) -> Expr:
    s, v = R.type(sequence), R.type(values)
    if 0 in v.shape or 0 in s.shape:
        return lower_full(R, values, v.with_dtype(dtypes.int64))
    wide = "float32" if s.dtype in LOW_PRECISION else "int8" if s.dtype is dtypes.bool_ else ""
    if wide:  # the others have no comparison
        sequence, values = (R.emit(R.op.astype(x, wide)) for x in (sequence, values))
    side, kind = "right" if right else "left", v.with_dtype(dtypes.int64)
    return R.write("search", side, [sequence, values], [kind], symbolic=True)


def _onnx_search(O: OnnxOps, sequence: OnnxNamed, values: OnnxNamed, *, right: bool) -> OnnxNamed:
    """Counts the elements before each value, which ONNX can say without a loop."""
    last = np.array([-1], np.int64)
    many, rank = sequence.type.ndim > 1, values.type.ndim
    if sequence.type.dtype is dtypes.bool_:  # which has no order there
        sequence, values = (O.Cast(x, to=O.dtype(dtypes.int32)) for x in (sequence, values))
    one = O.Unsqueeze(values, last)
    if many:
        sequence = O.Unsqueeze(sequence, np.array([-2], np.int64))
    before = O.LessOrEqual(sequence, one) if right else O.Less(sequence, one)
    axis = np.array([rank], np.int64)
    count = O.ReduceSum(O.Cast(before, to=O.dtype(dtypes.int64)), axis, keepdims=0)
    return O.Identity(count)


def _search_factors(types: Sequence[TensorType], attrs: Mapping[str, object]) -> str:
    """All axes but that of the sorted sequence."""
    words = letters(types[1].ndim)
    sequence = ["."] if types[0].ndim == 1 else [*words[:-1], "."]
    return equation([sequence, words], [words])


@primitive(
    infer=_infer_search,
    traits=Traits(Pattern.OPAQUE, _search_factors),
    promote="common",
    eager=_eager_search,
    lower=_lower_search,
    vjp=Reason(NOT_DIFFERENTIABLE),
    onnx=_onnx_search,
    samples=[
        sample(np.array([-1.0, 0, 0, 1, 2], np.float32), (3, 4), right=False),
        sample(np.array([-1.0, 0, 0, 1, 2], np.float32), np.array([0, -1, 5, -7.0, 2], np.float32),
               right=True),
        sample(np.array([[-1, 0, 1], [0, 0, 2]]), (2, 5), dtype="int64", right=True),
        sample(np.array([1, 3]), (), dtype="int64", right=False, low=2, high=2),
        sample(np.array([False, True]), (3,), dtype="bool", right=True),
        sample((0,), (3,), right=False),
        sample((2, 3), (3, 3), right=False, raises=ShapeError),
        sample((), (3, 3), right=False, raises=ShapeError),
    ],
)  # fmt: skip
def search_sorted(sequence: Tensor, values: Tensor, right: bool) -> Tensor:
    """Returns where every value has to be inserted so that the last axis stays sorted.

    Args:
        sequence: Tensor of shape :math:`(*, n)`, sorted along its last axis.
        values: Tensor of shape :math:`(*, m)`; of any shape where ``sequence`` has one axis.
        right: Whether equal elements come before the value rather than after it.

    Returns:
        int64 tensor of ``values``'s shape.
    """
    ...


def searchsorted(
    sorted_sequence: Tensor,
    values: object,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    r"""Returns where every value has to be inserted so that the sequence stays sorted.

    Args:
        sorted_sequence: Tensor that increases along its last axis.
        values: Tensor or number; any shape for a 1-d sequence, else equal to the sequence's
            except on the last axis.
        out_int32: Whether positions are int32 instead of int64.
        right: Whether to insert after equal elements.
        side: ``"left"`` or ``"right"``, instead of ``right``.
        sorter: Positions that sort ``sorted_sequence`` along its last axis.

    Returns:
        Tensor of ``values``' shape.

    Raises:
        ArgumentError: if ``side`` is unknown or contradicts ``right``.
        ShapeError: if the shapes do not fit.

    Example:
        >>> ops.searchsorted(Tensor([1.0, 2.0, 3.0]), Tensor([2.5]))
        Tensor(shape=[1], dtype=Int64, value= [2])
    """
    sequence = require_tensor("searchsorted", sorted_sequence, "sorted_sequence")
    if side not in (None, "left", "right") or (side == "left" and right):
        raise bad(ArgumentError, "side must be 'left' or 'right' and agree with right",
                  "searchsorted", f"side={side!r}, right={right}")  # fmt: skip
    if sorter is not None:
        sequence = gather_along(sequence, sorter, sequence.ndim - 1)
    found = search_sorted(sequence, values, bool(right) or side == "right")
    return F.cast(found, dtypes.int32) if out_int32 else found


def bucketize(input: Tensor, boundaries: object, *, right: bool = False) -> Tensor:
    r"""Returns the bucket of every element: the number of boundaries before it.

    Args:
        input: Tensor of any shape.
        boundaries: Increasing sequence of numbers, or 1-d Tensor.
        right: Whether an element equal to a boundary lies behind it.

    Returns:
        int32 Tensor of ``input``'s shape.

    Raises:
        DTypeError: if ``boundaries`` are no sequence of numbers.

    Example:
        >>> ops.bucketize(Tensor([1.0, 3.0]), [1.0, 2.0])
        Tensor(shape=[2], dtype=Int32, value= [0, 2])
    """
    require_tensor("bucketize", input)
    if not isinstance(boundaries, Tensor):
        if not isinstance(boundaries, (list, tuple, np.ndarray)):
            raise bad(DTypeError, "boundaries must be a list of numbers", "bucketize",
                      f"boundaries={boundaries!r:.60}")  # fmt: skip
        boundaries = Tensor(np.asarray(boundaries, np.float64).astype(np.float32))
        if input.aval.dtype is dtypes.float64:
            boundaries = F.cast(boundaries, dtypes.float64)
    return F.cast(search_sorted(boundaries, input, bool(right)), dtypes.int32)


# ---- the positions of the first few elements of the sorted order, without sorting all ------------

#: Elements that are selected at most.
MOST = 256


def _infer(x: TensorType, *, k: int, axis: int, descending: bool) -> TensorType:
    rules.require_ndim(x, range(1, 65))
    axis = rules.normalize_axis(axis, x.ndim)
    size = x.shape[axis]
    if not (1 <= k <= MOST and k <= size):
        raise ArgumentError(f"k must lie in [1, {min(MOST, size)}]", got=f"k={k}")  # pyright: ignore[reportArgumentType]
    return x.with_shape((*x.shape[:axis], k, *x.shape[axis + 1 :])).with_dtype(dtypes.int32)


def _eager(x: np.ndarray, *, k: int, axis: int, descending: bool) -> np.ndarray:
    order = eager_sort(x, axis=axis, descending=descending)
    return np.ascontiguousarray(order.take(range(k), axis))


def _lower(R: Builder, x: Expr, *, k: int, axis: int, descending: bool) -> Expr:
    t = R.type(x)
    axis %= t.ndim
    last = [*(i for i in range(t.ndim) if i != axis), axis]
    keys = integer_keys(R, x)
    if axis != t.ndim - 1:
        keys = R.emit(R.op.permute_dims(keys, last))
    shape = [t.static_shape[i] for i in last]
    rows = int(np.prod(shape[:-1]))
    keys = R.emit(R.op.reshape(keys, (rows, shape[-1])))
    kind = tensor_type((rows, k), dtypes.int32)
    found = R.write("topk", f"{k} {int(descending)}", [keys], [kind])
    found = R.emit(R.op.reshape(found, (*shape[:-1], k)))
    if axis == t.ndim - 1:
        return found
    return R.op.permute_dims(found, [last.index(i) for i in range(t.ndim)])


def _onnx(O: OnnxOps, x: OnnxNamed, *, k: int, axis: int, descending: bool) -> OnnxNamed:
    return onnx_order(O, x, np.array([k], np.int64), axis, descending)


@primitive(
    infer=_infer,
    traits=along_axis(),
    eager=_eager,
    lower=_lower,
    vjp=Reason(NOT_DIFFERENTIABLE),
    onnx=_onnx,
    samples=[
        sample((3, 50), k=4, axis=1, descending=True),
        sample((3, 50, 2), k=5, axis=1, descending=False),
        sample((2, 7), k=7, axis=-1, descending=True),
        sample((40,), k=3, axis=0, descending=True, dtype="int64", low=-3, high=3),
        sample((40,), k=9, axis=0, descending=False, dtype="uint8", low=0, high=9),
        sample((40,), k=2, axis=0, descending=True, dtype="bfloat16"),
        sample((33,), k=33, axis=0, descending=False, dtype="float64"),
        sample(np.array([0.0, -np.inf, 1e-45, -0.0, np.inf, -3]), k=5, axis=0,
               descending=True),
        sample(np.array([-(2**63), 5, -(2**63), 7] * 9, np.int64), k=30, axis=0,
               descending=True),
        sample((4,), k=5, axis=0, descending=True, raises=ArgumentError),
    ],
)  # fmt: skip
def arg_top(x: Tensor, k: int, axis: int, descending: bool) -> Tensor:
    """Returns the first ``k`` int32 positions of those that sort ``x`` along an axis.

    Equal elements come in their order, and NaN counts as larger than every number.

    Args:
        x: Tensor of any shape.
        k: How many, up to 256.
        axis: Axis.
        descending: Whether the largest element comes first.

    Returns:
        int32 Tensor of ``x``'s shape with ``k`` on the axis.

    Raises:
        ArgumentError: if ``k`` exceeds the size of the axis or 256.
    """
    ...
