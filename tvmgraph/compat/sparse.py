"""Sparse matrices: MindSpore's ``COOTensor`` and ``CSRTensor`` and the functions of them.

They are named tuples of dense tensors, so that functions that are compiled or differentiated take
and return them; every function is a few operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, NoReturn, Self

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, TvmgraphError, either


def refuse(kind: type[TvmgraphError], op: str, rule: str) -> NoReturn:
    """Raises an error of a function.

    Args:
        kind: Class of the error.
        op: Name of the function.
        rule: What is wrong.
    """
    raise kind(rule, op=op)


def _checked(
    op: str, shape: Sequence[int] | None, **parts: object
) -> tuple[tuple[int, ...], list[Tensor]]:
    """Returns the shape and the tensors of a matrix."""
    found = []
    for name, part in parts.items():
        if not isinstance(part, Tensor):
            refuse(DTypeError, op, f"{name} must be a Tensor, not {type(part).__name__}")
        if name != "values" and part.dtype.kind != "i":
            refuse(DTypeError, op, f"{name} must be of int16, int32 or int64, not {part.dtype}")
        found.append(part)
    sizes = tuple(shape or ())
    if len(sizes) != 2 or any(isinstance(n, int) and n < 1 for n in sizes):
        refuse(ArgumentError, op, f"shape must be two positive numbers, not {sizes}")
    return sizes, found


class SparseMatrix:
    """What both kinds share."""

    __array_ufunc__ = None  # an operator of a tensor or an array is ours, such as __radd__
    values: Tensor
    shape: tuple[int, ...]

    @property
    def dtype(self) -> dtypes.DType:
        """Type of the values."""
        return self.values.dtype

    @property
    def size(self) -> int:
        """How many values are stored."""
        return self.values.size

    @property
    def itemsize(self) -> int:
        """Bytes of a value."""
        return self.values.itemsize

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def to_tuple(self) -> tuple[object, ...]:
        """Returns the indices, the values and the shape."""
        return tuple(self)  # pyright: ignore[reportArgumentType]

    def with_values(self, values: Tensor) -> Self:
        """Returns a matrix with other values in the same places.

        Args:
            values: As many values as there are.
        """
        return self._replace(values=values)  # pyright: ignore

    def astype(self, dtype: DTypeLike) -> Self:
        """Returns the matrix with values of another type.

        Args:
            dtype: The type.
        """
        return self.with_values(F.cast(self.values, dtype))

    def abs(self) -> Self:
        """Returns the absolute values."""
        return self.with_values(F.abs(self.values))

    def dense_at(self, dense: object) -> Tensor:
        """Returns the elements of a dense matrix, row, column or number in the stored places.

        Args:
            dense: A tensor that can be broadcast to the shape of the matrix, or a number.
        """
        if isinstance(dense, SparseMatrix):
            refuse(DTypeError, type(self).__name__, "two sparse matrices are not multiplied "
                   "or divided: make one of them dense by to_dense()")  # fmt: skip
        if not isinstance(dense, Tensor):
            return F.full_like(self.values, dense)
        places = self.to_coo().indices  # pyright: ignore
        return F.gather_nd(F.broadcast_to(dense, self.shape), places)

    def to_dense(self) -> Tensor:
        """Returns a dense tensor; values of one place are added."""
        coo = self.to_coo()  # pyright: ignore
        return F.scatter_nd(coo.indices, coo.values, coo.shape)

    def __neg__(self) -> Self:
        return self.with_values(-self.values)

    def __mul__(self, other: object) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.with_values(F.mul(self.values, self.dense_at(other)))

    def __rmul__(self, other: object) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.__mul__(other)

    def __truediv__(self, other: object) -> Self:
        return self.with_values(F.div(self.values, self.dense_at(other)))

    def __radd__(self, other: Tensor) -> Tensor:
        return other + self.to_dense()

    def __rsub__(self, other: Tensor) -> Tensor:
        return other - self.to_dense()

    def __rtruediv__(self, other: object) -> NoReturn:
        kind = type(self).__name__
        refuse(DTypeError, kind, f"a {type(other).__name__} cannot be divided by a {kind}")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        fields = [(n, v) for n, v in zip(self._fields, self) if n != "shape"]  # pyright: ignore
        text = ", ".join(f"{n}={_shown(v)}" for n, v in fields)
        return f"{type(self).__name__}(shape={list(self.shape)}, dtype={self.dtype}, {text})"


def _shown(part: Tensor) -> str:
    """Returns the text of a part, whose elements MindSpore shows without commas here."""
    head, equals, elements = repr(part).partition("value=")
    return head + equals + elements.lstrip(" ").replace(",", "")


class _Coo(NamedTuple):
    indices: Tensor
    values: Tensor
    shape: tuple[int, ...]


class _Csr(NamedTuple):
    indptr: Tensor
    indices: Tensor
    values: Tensor
    shape: tuple[int, ...]


class COOTensor(SparseMatrix, _Coo):
    """A matrix by the places of its values.

    Args:
        indices: Row and column of every value [N, 2], integers.
        values: The values [N].
        shape: Rows and columns.
        coo_tensor: Another one, which is copied; then the others are left out.

    Raises:
        DTypeError: if something is no Tensor, or ``indices`` are no integers.
        ArgumentError: if ``shape`` is no pair of positive numbers.
        ShapeError: if the numbers of indices and values differ.

    Example:
        >>> x = ms.COOTensor(Tensor([[0, 1], [1, 2]]), Tensor([1.0, 2.0]), (2, 3))
        >>> x.to_dense().asnumpy().tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]]
    """

    __slots__ = ()

    def __new__(
        cls, indices: Tensor | None = None, values: Tensor | None = None,
        shape: Sequence[int] | None = None, coo_tensor: COOTensor | None = None,
    ) -> COOTensor:  # fmt: skip
        if coo_tensor is not None:
            indices, values, shape = coo_tensor
        shape, (indices, values) = _checked("COOTensor", shape, indices=indices, values=values)
        if indices.ndim != 2 or values.ndim != 1 or indices.shape != (values.shape[0], 2):
            rule = f"indices {indices.shape} must be [N, 2] of N values {values.shape}"
            refuse(either(ShapeError, IndexError), "COOTensor", rule)
        return _Coo.__new__(cls, indices, values, shape)

    def to_coo(self) -> COOTensor:
        """Returns the matrix itself."""
        return self

    def to_csr(self) -> CSRTensor:
        """Returns the matrix by rows."""
        order = F.argsort(flat_places(self))
        indices = F.gather(self.indices, order, 0)
        rows = coo2csr(indices[:, 0], self.shape[0])
        return CSRTensor(rows, indices[:, 1], F.gather(self.values, order, 0), self.shape)

    def coalesce(self) -> COOTensor:
        """Returns the matrix with sorted places, in which values of one place are added."""
        places = flat_places(self)
        order = F.argsort(places)
        there, number = F.unique_consecutive(F.gather(places, order, 0), return_inverse=True)
        zeros = F.cast(F.zeros_like(there), self.dtype)
        values = F.tensor_scatter_add(
            zeros, number.expand_dims(-1), F.gather(self.values, order, 0)
        )
        columns = self.shape[1]
        indices = F.stack([F.floor_div(there, columns), F.floor_mod(there, columns)], -1)
        return COOTensor(F.cast(indices, self.indices.dtype), values, self.shape)

    def add(self, other: COOTensor, thresh: object = 0) -> COOTensor:
        """Returns the sum of two matrices of one shape.

        Args:
            other: The other one.
            thresh: Kept for MindSpore programs, whose sums keep small values on the CPU, too.
        """
        _same(self, other)
        indices = F.concat([self.indices, F.cast(other.indices, self.indices.dtype)])
        values = F.concat([self.values, other.values])
        return COOTensor(indices, values, self.shape).coalesce()

    def __add__(self, other: Tensor | COOTensor) -> Tensor | COOTensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.to_dense() + other if isinstance(other, Tensor) else self.add(other)

    def __sub__(self, other: Tensor | COOTensor) -> Tensor | COOTensor:
        return self.to_dense() - other if isinstance(other, Tensor) else self.add(-other)


class CSRTensor(SparseMatrix, _Csr):
    """A matrix by the rows of its values.

    Args:
        indptr: Where the values of every row begin, and the number of values [rows + 1].
        indices: Column of every value [N].
        values: The values [N].
        shape: Rows and columns.
        csr_tensor: Another one, which is copied; then the others are left out.

    Raises:
        DTypeError: if something is no Tensor, or indices are no integers.
        ArgumentError: if ``shape`` is no pair of positive numbers.
        ShapeError: if the parts do not fit each other.

    Example:
        >>> x = ms.CSRTensor(Tensor([0, 1, 2]), Tensor([1, 2]), Tensor([1.0, 2.0]), (2, 3))
        >>> x.mm(ops.ones((3, 1))).asnumpy().tolist()
        [[1.0], [2.0]]
    """

    __slots__ = ()

    def __new__(
        cls, indptr: Tensor | None = None, indices: Tensor | None = None,
        values: Tensor | None = None, shape: Sequence[int] | None = None,
        csr_tensor: CSRTensor | None = None,
    ) -> CSRTensor:  # fmt: skip
        if csr_tensor is not None:
            indptr, indices, values, shape = csr_tensor
        shape, (indptr, indices, values) = _checked(
            "CSRTensor", shape, indptr=indptr, indices=indices, values=values
        )
        if indptr.ndim != 1 or indptr.shape[0] != shape[0] + 1:
            refuse(ShapeError, "CSRTensor",
                    f"indptr {indptr.shape} must have one element more than rows")  # fmt: skip
        if indices.ndim != 1 or values.shape != indices.shape:
            refuse(either(ShapeError, IndexError), "CSRTensor",
                    f"indices {indices.shape} and values {values.shape} must be [N]")  # fmt: skip
        return _Csr.__new__(cls, indptr, indices, values, shape)

    def rows(self) -> Tensor:
        """Returns the row of every value."""
        return csr2coo(self.indptr, self.values.shape[0])

    def to_coo(self) -> COOTensor:
        """Returns the matrix by places."""
        return COOTensor(F.stack([self.rows(), self.indices], -1), self.values, self.shape)

    def to_csr(self) -> CSRTensor:
        """Returns the matrix itself."""
        return self

    def add(self, b: CSRTensor, alpha: Tensor | float = 1, beta: Tensor | float = 1) -> CSRTensor:
        """Returns ``alpha * self + beta * b``.

        Args:
            b: A matrix of the same shape.
            alpha: A number or a Tensor of one.
            beta: The same.
        """
        _same(self, b)
        first = self.with_values(self.values * alpha).to_coo()
        second = b.with_values(b.values * beta).to_coo()
        return first.add(second).to_csr()

    def mm(self, matrix: Tensor | SparseMatrix) -> Tensor | CSRTensor:
        """Returns the product with a dense matrix [columns, K]; with a sparse one it is sparse.

        Args:
            matrix: The other matrix.
        """
        if isinstance(matrix, SparseMatrix):
            return dense_to_sparse_csr(self._product(matrix.to_dense()))
        return self._product(matrix)

    def _product(self, matrix: Tensor) -> Tensor:
        if matrix.ndim != 2 or matrix.shape[0] != self.shape[1]:
            refuse(ShapeError, "CSRTensor.mm",
                    f"a matrix of {self.shape[1]} rows is needed, not {matrix.shape}")  # fmt: skip
        parts = self.values.expand_dims(-1) * F.gather(matrix, self.indices, 0)
        return row_sums(parts, self.rows(), self.shape[0])

    def mv(self, dense_vector: Tensor) -> Tensor:
        """Returns the product with a dense vector [columns, 1].

        Args:
            dense_vector: The vector.
        """
        if dense_vector.ndim != 2 or dense_vector.shape[1] != 1:
            rule = f"a vector [{self.shape[1]}, 1] is needed, not {dense_vector.shape}"
            refuse(ShapeError, "CSRTensor.mv", rule)
        return self._product(dense_vector)

    def sum(self, axis: int) -> Tensor:
        """Returns the sums of rows [rows, 1] (axis 1) or columns [1, columns] (axis 0).

        Args:
            axis: The axis that is added up; negative ones count from the end.
        """
        if axis not in (-2, -1, 0, 1):
            refuse(ArgumentError, "CSRTensor.sum", f"axis must be 0 or 1, not {axis!r}")
        along = axis % 2
        places = self.rows() if along == 1 else self.indices
        sums = row_sums(self.values.expand_dims(-1), places, self.shape[1 - along])
        return sums if along == 1 else F.transpose(sums, (1, 0))

    def __add__(self, other: Tensor | CSRTensor) -> Tensor | CSRTensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.to_dense() + other if isinstance(other, Tensor) else self.add(other)

    def __sub__(self, other: Tensor | CSRTensor) -> Tensor | CSRTensor:
        return self.to_dense() - other if isinstance(other, Tensor) else self.add(other, 1, -1)


def _same(a: SparseMatrix, b: object) -> None:
    if type(a) is not type(b):
        refuse(DTypeError, type(a).__name__, f"{type(b).__name__} cannot be added")
    elif a.shape != b.shape:  # pyright: ignore[reportAttributeAccessIssue]
        refuse(ShapeError, type(a).__name__, f"shapes {a.shape} and {b.shape} differ")  # pyright: ignore


def flat_places(coo: COOTensor) -> Tensor:
    """Returns the number of every value's place, row after row.

    Args:
        coo: The matrix.
    """
    indices = F.cast(coo.indices, dtypes.int64)
    return indices[:, 0] * coo.shape[1] + indices[:, 1]


def row_sums(parts: Tensor, places: Tensor, count: int) -> Tensor:
    """Adds up rows [N, K] that belong to one place of ``count``.

    Args:
        parts: The rows.
        places: The place of every row [N].
        count: Number of places.
    """
    return F.unsorted_segment_sum(parts, F.cast(places, dtypes.int32), count)


def coo2csr(row_indices: Tensor, height: int) -> Tensor:
    """Returns where rows begin, from the sorted rows of all values.

    Args:
        row_indices: Rows [N], ascending.
        height: Number of rows.
    """
    begins = F.arange(0, height + 1, dtype=row_indices.dtype)
    return F.cast(F.searchsorted(row_indices, begins), row_indices.dtype)


def csr2coo(indptr: Tensor, nnz: int) -> Tensor:
    """Returns the rows of all values, from where rows begin.

    Args:
        indptr: Where rows begin [rows + 1].
        nnz: Number of values.
    """
    numbers = F.arange(0, nnz, dtype=indptr.dtype)
    return F.cast(F.searchsorted(indptr, numbers, right=True) - 1, indptr.dtype)


def dense_to_sparse_coo(tensor: Tensor) -> COOTensor:
    """Returns the elements of a matrix that are not 0, by places.

    Args:
        tensor: The matrix.
    """
    if tensor.ndim != 2:
        refuse(ShapeError, "dense_to_sparse_coo", f"a matrix is needed, not {tensor.shape}")
    places = F.nonzero(tensor)
    return COOTensor(F.cast(places, dtypes.int32), F.gather_nd(tensor, places), tensor.shape)


def dense_to_sparse_csr(tensor: Tensor) -> CSRTensor:
    """Returns the elements of a matrix that are not 0, by rows.

    Args:
        tensor: The matrix.
    """
    return dense_to_sparse_coo(tensor).to_csr()
