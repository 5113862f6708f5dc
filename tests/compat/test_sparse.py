"""Sparse matrices: every function against that of the dense matrix, eager and compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import COOTensor, CSRTensor, Tensor, nn, ops
from tvmgraph.compat.sparse_functions import ELEMENTWISE
from tvmgraph.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError

A = np.array([[1.0, 0, 0, -2], [0, 0, 0, 0], [0, 3, 0, 0]], np.float32)
B = np.array([[0, 5.0, 0, 2], [0, 0, 0, 0], [4, -3, 0, 0]], np.float32)
DENSE = np.arange(12, dtype=np.float32).reshape(3, 4) + 1


def coo(matrix: np.ndarray = A, dtype: Any = ms.int32) -> COOTensor:
    """Returns the elements that are not 0, in the order of columns."""
    places = np.argwhere(matrix.T)[:, ::-1]
    return COOTensor(Tensor(places, dtype), Tensor(matrix[tuple(places.T)]), matrix.shape)


def csr(matrix: np.ndarray = A) -> CSRTensor:
    places = np.argwhere(matrix)
    begins = np.searchsorted(places[:, 0], np.arange(len(matrix) + 1))
    return CSRTensor(Tensor(begins, ms.int32), Tensor(places[:, 1], ms.int32),
                     Tensor(matrix[tuple(places.T)]), matrix.shape)  # fmt: skip


def dense(x: Any) -> np.ndarray:
    """Returns a matrix by adding up its values in NumPy."""
    if isinstance(x, Tensor):
        return x.asnumpy()
    if isinstance(x, CSRTensor):
        begins = x.indptr.asnumpy()
        rows = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
        places = (rows, x.indices.asnumpy())
    else:
        places = tuple(x.indices.asnumpy().T)
    found = np.zeros(x.shape, x.values.asnumpy().dtype)
    np.add.at(found, places, x.values.asnumpy())
    return found


#: A function of both kinds and what it is of dense matrices.
BOTH: dict[str, tuple[Any, Any]] = {
    "to_dense": (lambda x, y: x.to_dense(), lambda a, b: a),
    "abs": (lambda x, y: x.abs(), lambda a, b: abs(a)),
    "negative": (lambda x, y: -x, lambda a, b: -a),
    "sum of two": (lambda x, y: x + y, lambda a, b: a + b),
    "difference": (lambda x, y: x - y, lambda a, b: a - b),
    "dense sum": (lambda x, y: x + Tensor(DENSE), lambda a, b: a + DENSE),
    "dense difference": (lambda x, y: x - Tensor(DENSE), lambda a, b: a - DENSE),
    "sum with a dense": (lambda x, y: Tensor(DENSE) + x, lambda a, b: DENSE + a),
    "difference from a dense": (lambda x, y: Tensor(DENSE) - x, lambda a, b: DENSE - a),
    "product of a dense": (lambda x, y: Tensor(DENSE) * x, lambda a, b: DENSE * a),
    "product of a number": (lambda x, y: 2.0 * x, lambda a, b: 2 * a),
    "product": (lambda x, y: x * Tensor(DENSE), lambda a, b: a * DENSE),
    "product with a column": (lambda x, y: x * Tensor(DENSE[:, :1]), lambda a, b: a * DENSE[:, :1]),
    "product with a number": (lambda x, y: x * 2.0, lambda a, b: a * 2),
    "quotient": (lambda x, y: x / Tensor(DENSE), lambda a, b: a / DENSE),
    "other kind": (lambda x, y: (x.to_csr() if isinstance(x, COOTensor) else x.to_coo()),
                   lambda a, b: a),
    "float16": (lambda x, y: x.astype(ms.float16), lambda a, b: a.astype(np.float16)),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("make", [coo, csr])
@pytest.mark.parametrize("name", BOTH)
def test_both_kinds(name: str, make: Any, compiled: bool) -> None:
    function, expected = BOTH[name]
    run = ms.jit(function) if compiled else function
    np.testing.assert_allclose(dense(run(make(), make(B))), expected(A, B), rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_products(compiled: bool) -> None:
    matrix, vector = Tensor(DENSE.T[:, :2]), Tensor(DENSE[0][:, None])
    run = ms.jit(lambda x, m, v: (x.mm(m), x.mv(v), x.sum(1), x.sum(0))) if compiled else (
        lambda x, m, v: (x.mm(m), x.mv(v), x.sum(1), x.sum(0))
    )  # fmt: skip
    by_matrix, by_vector, rows, columns = run(csr(), matrix, vector)
    np.testing.assert_allclose(by_matrix.asnumpy(), A @ DENSE.T[:, :2])
    np.testing.assert_allclose(by_vector.asnumpy(), A @ DENSE[0][:, None])
    np.testing.assert_allclose(rows.asnumpy(), A.sum(1, keepdims=True))
    np.testing.assert_allclose(columns.asnumpy(), A.sum(0, keepdims=True))
    np.testing.assert_allclose(dense(ops.csr_mm(csr(), csr(B), trans_b=True)), A @ B.T)
    np.testing.assert_allclose(dense(ops.csr_mm(csr(), csr(B), trans_a=True)), A.T @ B)


def test_sparse_times_dense() -> None:
    x = coo(dtype=ms.int64)
    for layer in (nn.SparseTensorDenseMatmul, ops.SparseTensorDenseMatmul):
        y = layer()(x.indices, x.values, (3, 4), Tensor(DENSE.T))
        np.testing.assert_allclose(y.asnumpy(), A @ DENSE.T)
        y = layer(adjoint_st=True)(x.indices, x.values, (3, 4), Tensor(DENSE))
        np.testing.assert_allclose(y.asnumpy(), A.T @ DENSE)
        y = layer(adjoint_dt=True)(x.indices, x.values, (3, 4), Tensor(DENSE))
        np.testing.assert_allclose(y.asnumpy(), A @ DENSE.T)
    assert (nn.SparseToDense()(x).asnumpy() == A).all()
    assert (ops.SparseToDense()(x.indices, x.values, (3, 4)).asnumpy() == A).all()


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_functions_of_elements(name: str) -> None:
    values = Tensor([0.25, 0.75, 0.5])
    expected = getattr(ops, name)(values)
    for kind, x in (("coo", coo()), ("csr", csr())):
        found = getattr(ops, f"{kind}_{name}")(x.with_values(values))
        assert type(found) is type(x) and found.dtype == expected.dtype
        np.testing.assert_array_equal(found.values.asnumpy(), expected.asnumpy())


def test_gradients_reach_the_values() -> None:
    def loss(values: Tensor, weight: Tensor) -> Tensor:
        x = csr()
        return (CSRTensor(x.indptr, x.indices, values, x.shape).mm(weight) ** 2.0).sum()

    weight = DENSE.T[:, :2]
    places = tuple(np.argwhere(A).T)
    for function in (ms.grad(loss, (0, 1)), ms.jit(ms.grad(loss, (0, 1)))):
        by_values, by_weight = function(csr().values, Tensor(weight))
        product = A @ weight
        np.testing.assert_allclose(by_values.asnumpy(), (2 * product @ weight.T)[places], rtol=1e-6)
        np.testing.assert_allclose(by_weight.asnumpy(), A.T @ (2 * product), rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("make", [coo, csr])
def test_a_gradient_by_a_matrix_has_its_places(make: Any, compiled: bool) -> None:
    def product(pair: tuple[Any, float], y: Tensor) -> Tensor:
        return (y * pair[0]).to_dense() * pair[1]

    function: Any = ms.grad(product, (0, 1))
    x = make()
    (by_x, by_number), by_y = (ms.jit(function) if compiled else function)((x, 2.0), Tensor(DENSE))
    assert type(by_x) is type(x) and by_x.shape == x.shape and by_number == 0
    assert (by_x.indices.asnumpy() == x.indices.asnumpy()).all()
    np.testing.assert_allclose(dense(by_x), 2 * DENSE * (A != 0))
    np.testing.assert_allclose(by_y.asnumpy(), 2 * A)
    alone: Any = ms.grad(lambda m: m.to_dense())
    np.testing.assert_allclose(dense((ms.jit(alone) if compiled else alone)(x)), A != 0)


def test_values_of_one_place_are_added() -> None:
    x = COOTensor(Tensor([[2, 1], [0, 1], [2, 1]]), Tensor([1.0, 2.0, 3.0]), (3, 4))
    whole = x.coalesce()
    assert whole.indices.asnumpy().tolist() == [[0, 1], [2, 1]]
    assert whole.values.asnumpy().tolist() == [2.0, 4.0]
    assert x.to_dense()[2, 1].item() == 4.0
    places, values, _ = ops.coalesce(x.indices.T, x.values, Tensor([3, 4]))
    assert (places.asnumpy() == whole.indices.asnumpy().T).all()
    assert values.asnumpy().tolist() == [2.0, 4.0]


def test_conversions() -> None:
    assert isinstance(Tensor(A).to_coo(), COOTensor) and isinstance(Tensor(A).to_csr(), CSRTensor)
    for made in (Tensor(A).to_coo(), Tensor(A).to_csr(), ops.dense_to_sparse_coo(Tensor(A)),
                 ops.dense_to_sparse_csr(Tensor(A)), ops.csr_to_coo(csr())):  # fmt: skip
        assert (dense(made) == A).all() and made.indices.dtype is ms.int32
    assert ops.coo2csr(Tensor([0, 0, 2]), 3).asnumpy().tolist() == [0, 2, 2, 3]
    assert ops.csr2coo(Tensor([0, 2, 2, 3]), 3).asnumpy().tolist() == [0, 0, 2]
    joined = [dense(ops.coo_concat((coo(), coo(B)), axis)) for axis in (0, 1, -1)]
    for found, axis in zip(joined, (0, 1, 1)):
        assert (found == np.concatenate([A, B], axis)).all()
    gathered = ops.csr_gather(csr().indptr, csr().indices, Tensor(DENSE), (3, 4))
    assert gathered.asnumpy().tolist() == DENSE[A != 0].tolist()
    soft = ops.csr_softmax(csr(), ms.float32).values.asnumpy()
    np.testing.assert_allclose(soft, [1 / (1 + math.exp(-3)), 1 / (1 + math.exp(3)), 1], rtol=1e-6)
    added = ops.csr_add(csr(), csr(B), Tensor(2.0), Tensor(-1.0))
    np.testing.assert_allclose(dense(added), 2 * A - B)


def test_what_they_are() -> None:
    assert ops.dtype(coo()) == ops.dtype(csr()) == ms.float32
    x, y = coo(), csr()
    for m in (x, y):
        assert (m.shape, m.dtype, m.size, m.itemsize, m.ndim) == ((3, 4), ms.float32, 3, 4, 2)
        assert type(m).__name__ in repr(m) and "shape=[3, 4]" in repr(m)
        assert not isinstance(m, Tensor) and m == m and m != type(m)(*m)
    assert (COOTensor(coo_tensor=x).values is x.values) and CSRTensor(csr_tensor=y).shape == (3, 4)
    assert [p is q for p, q in zip(y.to_tuple(), (y.indptr, y.indices, y.values))] == [True] * 3


def test_what_they_refuse() -> None:
    one, places = Tensor([1.0]), Tensor([[0, 1]])
    for make, kind in (
        (lambda: COOTensor(Tensor([[0.0, 1.0]]), one, (2, 2)), DTypeError),
        (lambda: COOTensor([[0, 1]], one, (2, 2)), DTypeError),
        (lambda: COOTensor(places, Tensor([1.0, 2.0]), (2, 2)), ShapeError),
        (lambda: COOTensor(places, one, (2, -2)), ArgumentError),
        (lambda: COOTensor(places, one, (2,)), ArgumentError),
        (lambda: CSRTensor(Tensor([0, 1]), Tensor([0]), one, (3, 4)), ShapeError),
        (lambda: CSRTensor(Tensor([0, 1]), Tensor([0, 1]), one, (1, 4)), ShapeError),
        (lambda: csr().mv(Tensor([1.0, 2.0, 3.0, 4.0])), ShapeError),
        (lambda: csr().mm(Tensor(DENSE)), ShapeError),
        (lambda: csr().sum(2), ArgumentError),
        (lambda: csr() + coo(), DTypeError),
        (lambda: coo() + coo(B[:, :2]), ShapeError),
        (lambda: coo() * coo(), TypeError),
        (lambda: csr() / csr(), TypeError),
        (lambda: Tensor(DENSE) / coo(), TypeError),
        (lambda: 1.0 / csr(), TypeError),
        (lambda: ops.dense_to_sparse_coo(one), ShapeError),
        (lambda: ops.coo_concat((coo(), coo(B[:, :2]))), ShapeError),
        (lambda: ops.coo_concat((coo(), coo(B[:, :2]))), RuntimeError),  # as in MindSpore
        (lambda: ops.coo_concat((coo(), coo(B[:2])), 1), ShapeError),
        (lambda: ops.coo_concat((coo(), coo(B.astype(np.int32)))), DTypeError),
        (lambda: ops.coo_concat((coo(), coo(B)), 2), OutOfRangeError),
    ):
        with pytest.raises(kind):
            make()


def test_the_text_of_a_matrix_is_that_of_mindspore() -> None:
    indices, values = Tensor([[0, 1], [2, 3]], ms.int32), Tensor([1.5, 2.0])
    assert str(ms.COOTensor(indices, values, (3, 4))) == (
        "COOTensor(shape=[3, 4], dtype=Float32, indices=Tensor(shape=[2, 2], dtype=Int32, value=\n"
        "[[0 1]\n [2 3]]), values=Tensor(shape=[2], dtype=Float32, "
        "value=[ 1.50000000e+00  2.00000000e+00]))"
    )
    indptr, columns = Tensor([0, 1, 1, 1]), Tensor([1])
    assert repr(ms.CSRTensor(indptr, columns, Tensor([True]), (3, 4))) == (
        "CSRTensor(shape=[3, 4], dtype=Bool, indptr=Tensor(shape=[4], dtype=Int64, "
        "value=[0 1 1 1]), indices=Tensor(shape=[1], dtype=Int64, value=[1]), "
        "values=Tensor(shape=[1], dtype=Bool, value=[ True]))"
    )
