"""The operator classes of sparse matrices compute what dense matrices give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor
from tvmgraph.ops.operations import sparse_ops  # pyright: ignore[reportMissingImports]

RNG = np.random.default_rng(0)


def dense(*shape: int) -> np.ndarray:
    return np.where(RNG.random(shape) < 0.5, RNG.uniform(0.5, 2, shape), 0).astype(np.float32)


def triple(matrix: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    places = np.argwhere(matrix)
    return Tensor(places), Tensor(matrix[tuple(places.T)]), Tensor(matrix.shape)


def in_rows(matrix: np.ndarray) -> Any:
    places, values, shape = triple(matrix)
    as_int = (places.astype(ms.int32), values, shape.astype(ms.int32))
    return sparse_ops.SparseTensorToCSRSparseMatrix()(*as_int)


def whole(places: Tensor, values: Tensor, shape: Any) -> np.ndarray:
    found = np.zeros([int(v) for v in shape], values.asnumpy().dtype)
    np.add.at(found, tuple(places.asnumpy().T), values.asnumpy())
    return found


A, B, C = dense(4, 3), dense(4, 3), dense(3, 5)
BATCH = dense(2, 4, 3)


def test_sums_leave_out_what_is_nearly_nothing() -> None:
    least = np.float32(1.0)
    places, values, shape = sparse_ops.SparseAdd()(*triple(A), *triple(B), Tensor(least))
    total = A + B
    np.testing.assert_allclose(whole(places, values, shape), np.where(total < least, 0, total))
    assert (np.diff(np.ravel_multi_index(tuple(places.asnumpy().T), A.shape)) > 0).all()


@pytest.mark.parametrize("name, of_both", [
    ("SparseSparseMaximum", np.maximum), ("SparseSparseMinimum", np.minimum),
])  # fmt: skip
def test_the_greater_and_the_smaller_values(name: str, of_both: Any) -> None:
    places, values = getattr(sparse_ops, name)()(*triple(A), *triple(-B))
    assert len(values) == np.count_nonzero((A != 0) | (B != 0))
    np.testing.assert_array_equal(whole(places, values, A.shape), of_both(A, -B))


@pytest.mark.parametrize("name, combine", [
    ("SparseDenseCwiseAdd", np.add), ("SparseDenseCwiseMul", np.multiply),
    ("SparseDenseCwiseDiv", np.divide),
])  # fmt: skip
def test_values_beside_a_row(name: str, combine: Any) -> None:
    row = np.array([1, 2, 4], np.float32)
    operator = getattr(sparse_ops, name)()
    found = ms.jit(lambda values, row: operator(triple(A)[0], values, triple(A)[2], row))(
        triple(A)[1], Tensor(row)
    )
    np.testing.assert_allclose(found.asnumpy(), combine(A, row)[A != 0], rtol=1e-6)


def test_products_and_sums_with_dense_matrices() -> None:
    y = RNG.standard_normal((4, 5)).astype(np.float32)
    mixed = sparse_ops.SparseAddmm()(*triple(A), Tensor(C), Tensor(y), Tensor([2.0]), Tensor([3.0]))
    np.testing.assert_allclose(mixed.asnumpy(), 2 * A @ C + 3 * y, rtol=1e-5, atol=1e-6)
    both = sparse_ops.SparseTensorDenseAdd()(*triple(A), Tensor(B))
    np.testing.assert_allclose(both.asnumpy(), A + B)
    turned = sparse_ops.SparseMatrixMatMul(transpose_x1=True, transpose_output=True)
    found = turned(*in_rows(C), Tensor(B[:3]))
    np.testing.assert_allclose(found.asnumpy(), (C.T @ B[:3]).T, rtol=1e-5)


def test_values_have_gradients() -> None:
    places, values, shape = triple(A)
    other = Tensor(C)
    product = sparse_ops.SparseAddmm()
    zero, one = Tensor(np.zeros((4, 5), np.float32)), Tensor([1.0])
    gradient = ms.grad(lambda v: product(places, v, shape, other, zero, one, one).sum())(values)
    np.testing.assert_allclose(
        gradient.asnumpy(), C.sum(1)[places.asnumpy()[:, 1]], rtol=1e-5
    )  # fmt: skip


def test_order_and_shape() -> None:
    places, values, shape = triple(A)
    back = sparse_ops.SparseReorder()(places[::-1], values[::-1], shape)
    np.testing.assert_array_equal(back[0].asnumpy(), places.asnumpy())
    np.testing.assert_array_equal(back[1].asnumpy(), values.asnumpy())
    flat, size = sparse_ops.SparseReshape()(places, shape, Tensor([2, -1]))
    np.testing.assert_array_equal(whole(flat, values, size), A.reshape(2, 6))


@pytest.mark.parametrize("matrix", [A, BATCH], ids=["matrix", "batch"])
def test_matrices_in_rows(matrix: np.ndarray) -> None:
    parts = in_rows(matrix)
    assert [p.dtype for p in parts] == [ms.int32] * 4 + [ms.float32]
    to_dense = sparse_ops.CSRSparseMatrixToDense()
    np.testing.assert_array_equal(to_dense(*parts).asnumpy(), matrix)
    again = sparse_ops.DenseToCSRSparseMatrix()(Tensor(matrix), triple(matrix)[0])
    np.testing.assert_array_equal(to_dense(*again).asnumpy(), matrix)
    turned = sparse_ops.SparseMatrixTranspose()(*parts)
    np.testing.assert_array_equal(to_dense(*turned).asnumpy(), matrix.swapaxes(-1, -2))
    counts = np.count_nonzero(matrix.reshape(-1, 12), axis=1)
    assert sparse_ops.SparseMatrixNNZ()(*parts).asnumpy().tolist() == counts.tolist()
    softmax = to_dense(*sparse_ops.SparseMatrixSoftmax(ms.float32)(*parts)).asnumpy()
    e = np.where(matrix != 0, np.exp(matrix), 0)
    total = e.sum(-1, keepdims=True)
    np.testing.assert_allclose(softmax, e / np.where(total, total, 1), rtol=1e-6)
    both = sparse_ops.SparseMatrixAdd()(
        *parts, *in_rows(matrix[..., ::-1]), Tensor(2.0), Tensor(3.0)
    )
    np.testing.assert_allclose(
        to_dense(*both).asnumpy(), 2 * matrix + 3 * matrix[..., ::-1], rtol=1e-6
    )  # fmt: skip


@pytest.mark.parametrize("name, by", [("Sum", lambda n: 1), ("Mean", lambda n: n),
                                      ("SqrtN", np.sqrt)])  # fmt: skip
def test_rows_of_segments(name: str, by: Any) -> None:
    rows, segments = np.array([0, 3, 1]), np.array([0, 0, 2])
    operator = getattr(sparse_ops, f"SparseSegment{name}WithNumSegments")()
    found = operator(Tensor(A), Tensor(rows), Tensor(segments), Tensor(4)).asnumpy()
    want = np.zeros((4, 3), np.float32)
    for k in range(4):
        taken = A[rows[segments == k]]
        want[k] = taken.sum(0) / by(max(len(taken), 1))
    np.testing.assert_allclose(found, want, rtol=1e-6)
    if name != "Mean":
        short = getattr(sparse_ops, f"SparseSegment{name}")()
        found = short(Tensor(A), Tensor(rows), Tensor(segments)).asnumpy()
        np.testing.assert_allclose(found, want[:3], rtol=1e-6)


@pytest.mark.parametrize("binary", [False, True])
def test_counts_of_values(binary: bool) -> None:
    places = Tensor([[0, 0], [0, 1], [0, 2], [2, 1]])
    values = Tensor([1, 4, 1, 2])
    count = sparse_ops.SparseCountSparseOutput(binary_output=binary, maxlength=4)
    at, found, shape = count(places, values, Tensor([3, 3]), Tensor([1, 1, 5, 2]))
    assert at.asnumpy().tolist() == [[0, 1], [2, 2]]
    assert found.asnumpy().tolist() == ([1, 1] if binary else [6, 2])
    assert shape.asnumpy().tolist() == [3, 3]
