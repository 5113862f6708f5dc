"""Functions of sparse matrices, as ``ops`` has them: :data:`FUNCTIONS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType

from tvmgraph import dtypes
from tvmgraph.compat import sparse
from tvmgraph.compat.sparse import COOTensor, CSRTensor, SparseMatrix
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.guard import guard
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError, OutOfRangeError, ShapeError

# functions of single elements, each as ``coo_...`` and ``csr_...``
ELEMENTWISE = """
abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor inv isfinite isinf isnan log
log1p neg relu relu6 round sigmoid sin sinh softsign sqrt square tan tanh
""".split()  # noqa: SIM905  (one word each)


def coo_concat(sp_input: Sequence[COOTensor], concat_dim: int = 0) -> COOTensor:
    """Joins matrices below (axis 0) or beside (axis 1) each other; places come out sorted.

    Args:
        sp_input: The matrices.
        concat_dim: The axis, from -2 to 1.

    Raises:
        DTypeError: if the elements' dtypes differ.
        ShapeError: if the sizes along the other axis differ.
        OutOfRangeError: if there is no such axis.
    """
    if not -2 <= concat_dim <= 1:
        sparse.refuse(OutOfRangeError, "coo_concat", "a matrix has the axes 0 and 1")
    axis, begin = concat_dim % 2, 0
    _require_alike(sp_input, 1 - axis)
    moved = []
    for m in sp_input:
        moved.append(F.concat([m.indices[:, :1] + (begin if axis == 0 else 0),
                               m.indices[:, 1:] + (begin if axis == 1 else 0)], 1))  # fmt: skip
        begin += m.shape[axis]
    shape = [*sp_input[0].shape]
    shape[axis] = begin
    joined = COOTensor(F.concat(moved), F.concat([m.values for m in sp_input]), shape)
    order = F.argsort(sparse.flat_places(joined))
    return COOTensor(
        F.gather(joined.indices, order, 0), F.gather(joined.values, order, 0), joined.shape
    )


def _require_alike(matrices: Sequence[COOTensor], axis: int) -> None:
    first = matrices[0]
    for m in matrices[1:]:
        if m.values.dtype is not first.values.dtype:
            sparse.refuse(DTypeError, "coo_concat", "the matrices must have one dtype")
        if m.shape[axis] != first.shape[axis]:
            sparse.refuse(ShapeError, "coo_concat",
                          f"the sizes along axis {axis} must be equal")  # fmt: skip


def csr_softmax(logits: CSRTensor, dtype: DTypeLike) -> CSRTensor:
    """Returns softmax over the stored values of every row.

    Args:
        logits: The matrix.
        dtype: Type of the result.
    """
    rows = F.cast(logits.rows(), dtypes.int32)
    highest = F.unsorted_segment_max(logits.values, rows, logits.shape[0])
    powers = F.exp(logits.values - F.gather(highest, rows, 0))
    sums = F.unsorted_segment_sum(powers, rows, logits.shape[0])
    return logits.with_values(F.cast(powers / F.gather(sums, rows, 0), dtype))


def csr_gather(indptr: Tensor, indices: Tensor, dense: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Returns the elements of a dense matrix in the places of a sparse one.

    Args:
        indptr: Where rows begin.
        indices: Columns.
        dense: The matrix, or what broadcasts to it.
        shape: Its shape.
    """
    places = F.stack([sparse.csr2coo(indptr, indices.shape[0]), indices], -1)
    return F.gather_nd(F.broadcast_to(dense, shape), places)


def csr_mm(
    a: CSRTensor, b: Tensor | CSRTensor, trans_a: bool = False, trans_b: bool = False,
    adjoint_a: bool = False, adjoint_b: bool = False,
) -> Tensor | CSRTensor:  # fmt: skip
    """Returns the product of a sparse matrix with another one; as ``a.mm(b)``.

    Args:
        a: The first matrix.
        b: The second one, sparse or dense.
        trans_a: Whether the first one is transposed.
        trans_b: Whether the second one is.
        adjoint_a: Whether the first one is transposed and conjugated.
        adjoint_b: Whether the second one is.
    """

    def turned(m: CSRTensor, transpose: bool, adjoint: bool) -> CSRTensor:
        if not transpose and not adjoint:
            return m
        coo = m.to_coo()
        values = F.conj(coo.values) if adjoint else coo.values
        return COOTensor(F.flip(coo.indices, (1,)), values, coo.shape[::-1]).to_csr()

    if not isinstance(b, Tensor):
        b = turned(b, trans_b, adjoint_b)
    elif trans_b or adjoint_b:
        b = F.transpose(F.conj(b) if adjoint_b else b, (1, 0))
    return turned(a, trans_a, adjoint_a).mm(b)


def sparse_dense_matmul(
    indices: Tensor, values: Tensor, sparse_shape: Sequence[int], dense: Tensor,
    adjoint_st: bool = False, adjoint_dt: bool = False,
) -> Tensor:  # fmt: skip
    """Returns the product of a sparse and a dense matrix.

    Args:
        indices: Places of the values [N, 2].
        values: The values [N].
        sparse_shape: Rows and columns.
        dense: The dense matrix.
        adjoint_st: Whether the sparse matrix is transposed and conjugated.
        adjoint_dt: Whether the dense one is.
    """
    to, of = (indices[:, 1], indices[:, 0]) if adjoint_st else (indices[:, 0], indices[:, 1])
    dense = F.transpose(F.conj(dense), (1, 0)) if adjoint_dt else dense
    parts = (F.conj(values) if adjoint_st else values).expand_dims(-1) * F.gather(dense, of, 0)
    return sparse.row_sums(parts, to, sparse_shape[1 if adjoint_st else 0])


def coalesce(x_indices: Tensor, x_values: Tensor, x_shape: Tensor) -> tuple[Tensor, ...]:
    """Returns sorted places [2, M], values of one place added, and the shape.

    Args:
        x_indices: Places [2, N].
        x_values: Values [N].
        x_shape: Rows and columns.
    """
    shape = [int(n) for n in x_shape.asnumpy()]
    found = COOTensor(F.transpose(x_indices, (1, 0)), x_values, shape).coalesce()
    return F.transpose(found.indices, (1, 0)), found.values, x_shape


def _of_values(name: str, kind: type) -> Callable[[SparseMatrix], SparseMatrix]:
    def function(x: SparseMatrix) -> SparseMatrix:
        return x.with_values(getattr(F, name)(x.values))

    function.__name__ = f"{'coo' if kind is COOTensor else 'csr'}_{name}"
    function.__doc__ = f"""Returns ``{name}`` of the stored values.

    Args:
        x: The matrix.
    """
    return function


# by name: what it returns, and how
_DERIVED: dict[str, tuple[str, Callable[..., object]]] = {
    "coo_tensor_get_indices": ("Returns the places of the stored values.", lambda x: x.indices),
    "coo_tensor_get_values": ("Returns the stored values.", lambda x: x.values),
    "coo_tensor_get_dense_shape": ("Returns rows and columns of a matrix.", lambda x: x.shape),
    "csr_tensor_get_indptr": ("Returns where rows begin in the values.", lambda x: x.indptr),
    "csr_tensor_get_indices": ("Returns the columns of the stored values.", lambda x: x.indices),
    "csr_tensor_get_values": ("Returns the stored values.", lambda x: x.values),
    "csr_tensor_get_dense_shape": ("Returns rows and columns of a matrix.", lambda x: x.shape),
    "coo_add": (
        "Returns the sum of two matrices; values below ``thresh`` in size are left out.",
        lambda x1, x2, thresh: x1.add(x2, thresh),
    ),
    "csr_add": (
        "Returns ``alpha * a + beta * b`` of two matrices.",
        lambda a, b, alpha, beta: a.add(b, alpha, beta),
    ),
    "csr_mul": (
        "Returns the stored values times the elements of a dense one in their places.",
        lambda x, y: (x * y).values,
    ),
    "csr_div": (
        "Returns the stored values over the elements of a dense one in their places.",
        lambda x, y: (x / y).values,
    ),
    "csr_mv": (
        "Returns the product of a matrix with a column.",
        lambda csr_tensor, dense: csr_tensor.mv(dense),
    ),
    "csr_reduce_sum": (
        "Returns the sums of a matrix along an axis, which stays with size 1.",
        lambda csr_tensor, axis: csr_tensor.sum(axis),
    ),
    "csr_to_coo": (
        "Returns the matrix with the place of every value.",
        lambda tensor: tensor.to_coo(),
    ),
    "csr_to_dense": (
        "Returns the matrix as a dense tensor.",
        lambda csr_tensor: csr_tensor.to_dense(),
    ),
}


def _documented(name: str, text: str, function: Callable[..., object]) -> Callable[..., object]:
    function.__name__, function.__doc__ = name, text
    return function


FUNCTIONS: dict[str, Callable[..., object]] = {
    **{f"coo_{n}": _of_values(n, COOTensor) for n in ELEMENTWISE},
    **{f"csr_{n}": _of_values(n, CSRTensor) for n in ELEMENTWISE},
    **{name: _documented(name, *row) for name, row in _DERIVED.items()},
    "make_coo_tensor": COOTensor, "make_csr_tensor": CSRTensor,
    **{f.__name__: f for f in (sparse.coo2csr, sparse.csr2coo, sparse.dense_to_sparse_coo,
                               sparse.dense_to_sparse_csr, coo_concat, csr_gather, csr_mm,
                               csr_softmax, coalesce)},
}  # fmt: skip
"""What ``ops`` has of them, by name."""

for _name, _function in FUNCTIONS.items():
    if isinstance(_function, FunctionType):
        guard(_function, f"ops.{_name}")
