"""``scipy.linalg`` and ``scipy.optimize`` against what defines their results."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, ops
from tvmgraph.errors import ArgumentError, DTypeError, NotFoundError, ShapeError
from tvmgraph.scipy import linalg, optimize

RANDOM = np.random.default_rng(0)
A = RANDOM.normal(size=(4, 4))
POSITIVE = A @ A.T + np.eye(4)
B = RANDOM.normal(size=(4, 2))
LOWER = np.tril(A) + 3 * np.eye(4)
PRECISION = {np.float32: 2e-5, np.float64: 1e-12}


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def kind(request: Any) -> Any:
    return request.param


def near(found: Tensor, expected: np.ndarray, kind: Any) -> None:
    assert found.asnumpy().dtype == kind
    np.testing.assert_allclose(
        found.asnumpy(), expected, rtol=PRECISION[kind], atol=PRECISION[kind]
    )


@pytest.mark.parametrize("lower", [False, True])
def test_positive_definite(lower: bool, kind: Any) -> None:
    matrix = Tensor(POSITIVE.astype(kind))
    near(linalg.inv(matrix) @ matrix, np.eye(4), kind)
    triangle = linalg.cholesky(matrix, lower=lower)
    expected = np.linalg.cholesky(POSITIVE)
    near(triangle, expected if lower else expected.T, kind)
    factor = linalg.cho_factor(matrix, lower=lower)
    assert factor[1] is lower
    for right in (B, B[:, 0]):
        found = linalg.cho_solve(factor, Tensor(right.astype(kind)))
        near(found, np.linalg.solve(POSITIVE, right), kind)


@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangles(trans: Any, lower: bool, unit: bool, kind: Any) -> None:
    given = A + 3 * np.eye(4)  # the other triangle is not read
    used = np.tril(given) if lower else np.triu(given)
    if unit:
        np.fill_diagonal(used, 1)
    used = used.T if trans in (1, 2, "T", "C") else used
    for right in (B, B[:, 0]):
        found = linalg.solve_triangular(
            Tensor(given.astype(kind)), Tensor(right.astype(kind)), trans, lower, unit
        )
        expected = np.linalg.solve(used, right)
        bound = PRECISION[kind] * np.abs(expected).max() * 10
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=0, atol=bound)


@pytest.mark.parametrize("lower", [False, True])
def test_eigh(lower: bool, kind: Any) -> None:
    half = np.tril(POSITIVE) if lower else np.triu(POSITIVE)
    found = linalg.eigh(Tensor(half.astype(kind)), lower=lower)
    assert isinstance(found, tuple)
    values, vectors = found
    near(values, np.linalg.eigvalsh(POSITIVE), kind)
    near((vectors * values) @ vectors.T, POSITIVE, kind)
    alone = linalg.eigh(Tensor(half.astype(kind)), lower=lower, eigvals_only=True)
    assert isinstance(alone, Tensor) and (alone.asnumpy() == values.asnumpy()).all()


def test_derivatives() -> None:
    weight = Tensor(RANDOM.normal(size=(4, 4)))

    def loss(x: Tensor) -> Tensor:
        found = linalg.eigh(x + x.T)
        assert isinstance(found, tuple)
        values, vectors = found
        turned = linalg.cholesky(x @ x.T + ops.eye(4, dtype=ms.float64))
        return (vectors**2 * weight).sum() + (values**3).sum() + (linalg.inv(turned) * weight).sum()

    x = Tensor(A)
    gradient = ms.grad(loss)(x).asnumpy()
    for place in ((0, 1), (2, 2), (3, 0)):
        step = np.zeros_like(A)
        step[place] = 1e-6
        slope = (loss(Tensor(A + step)) - loss(Tensor(A - step))).item() / 2e-6
        np.testing.assert_allclose(gradient[place], slope, rtol=1e-5)


@pytest.mark.parametrize("shape", [(4, 4), (2, 4), (4, 2)])
def test_lu(shape: tuple[int, int], kind: Any) -> None:
    a = RANDOM.normal(size=shape)
    matrix = Tensor(a.astype(kind))
    p, lower, upper = linalg.lu(matrix)
    near(p @ lower @ upper, a, kind)
    assert sorted(p.asnumpy().argmax(0)) == list(range(shape[0]))
    assert (np.triu(lower.asnumpy(), 1) == 0).all() and (np.abs(lower.asnumpy()) <= 1).all()
    assert (np.tril(upper.asnumpy(), -1) == 0).all()
    permuted, same = linalg.lu(matrix, permute_l=True)
    near(permuted @ same, a, kind)
    packed, pivots = linalg.lu_factor(matrix)
    rows = a.copy()
    for i, row in enumerate(pivots.asnumpy()):
        rows[[i, row]] = rows[[row, i]]
    least = min(shape)
    both = np.tril(packed.asnumpy()[:, :least], -1) + np.eye(shape[0], least)
    np.testing.assert_allclose(both @ np.triu(packed.asnumpy()[:least]), rows, atol=1e-5)


def test_least_squares_and_blocks(kind: Any) -> None:
    a, right = RANDOM.normal(size=(5, 3)), RANDOM.normal(size=(5, 2))
    x, nothing, rank, _ = linalg.lstsq(Tensor(a.astype(kind)), Tensor(right.astype(kind)))
    near(x, np.linalg.lstsq(a, right, None)[0], kind)
    assert rank.item() == 3 and nothing.size == 0
    assert linalg.lstsq(Tensor(np.ones((3, 2), kind)), Tensor(np.ones(3, kind)))[2].item() == 1
    blocks = linalg.block_diag(Tensor(np.ones((1, 2), kind)), Tensor(np.full((2, 1), 2, kind)))
    near(blocks, np.array([[1, 1, 0], [0, 0, 2], [0, 0, 2]]), kind)
    assert linalg.block_diag().shape == (1, 0)


def test_options_that_mean_nothing_here_are_taken_as_mindspore_does() -> None:
    matrix = Tensor([[2.0, 1.0], [1.0, 3.0]])
    for kind in (1, 2, 3):
        assert np.allclose(linalg.eigh(matrix, type=kind, eigvals_only=True), [1.381966, 3.618034])
    x = linalg.solve_triangular(matrix, matrix, overwrite_b=1)  # pyright: ignore[reportArgumentType]
    assert x.shape == (2, 2)


def test_what_linear_algebra_refuses() -> None:
    square = Tensor(POSITIVE)
    assert linalg.inv(Tensor([[2, 0], [0, 4]])).dtype is ms.float64
    for call, error in (
        (lambda: linalg.inv(Tensor(B)), ShapeError),
        (lambda: linalg.inv([[1.0]]), DTypeError),  # pyright: ignore[reportArgumentType]
        (lambda: linalg.inv(square, overwrite_a=1), DTypeError),  # pyright: ignore
        (lambda: linalg.inv(Tensor(np.zeros((2, 2)))), ArgumentError),
        (lambda: linalg.cholesky(-square), ArgumentError),
        (lambda: linalg.solve_triangular(square, Tensor(B), 7), RuntimeError),
        (lambda: linalg.eigh(square, square), ArgumentError),  # pyright: ignore
        (lambda: linalg.eigh(square, type=True), DTypeError),
        (lambda: linalg.eigh(square, turbo=1), DTypeError),  # pyright: ignore
        (lambda: linalg.lu(square, check_finite=1), DTypeError),  # pyright: ignore
        (lambda: linalg.cho_solve((square, True), square, overwrite_b=1), DTypeError),  # pyright: ignore
        (lambda: linalg.lu(Tensor(np.ones((2, 2, 2)))), ShapeError),
    ):
        with pytest.raises(error):
            call()


def rosenbrock(x: Tensor) -> Tensor:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("method", ["BFGS", "LBFGS", "bfgs"])
@pytest.mark.parametrize("size", [2, 6])
def test_minimize(method: str, size: int) -> None:
    start = Tensor(np.zeros(size))
    found = optimize.minimize(rosenbrock, start, method=method, tol=1e-7)
    assert found.success and found.status == 0 and found.nfev == found.njev > found.nit > 5
    np.testing.assert_allclose(found.x.asnumpy(), np.ones(size), atol=1e-6)
    np.testing.assert_allclose(found.fun, rosenbrock(found.x).item())
    assert np.abs(found.jac.asnumpy()).max() <= 1e-7
    assert (found.hess_inv is None) == (method == "LBFGS")
    if found.hess_inv is not None and size == 2:  # of the second derivative at (1, 1)
        inverse = np.linalg.inv([[802.0, -400.0], [-400.0, 200.0]])
        np.testing.assert_allclose(found.hess_inv.asnumpy(), inverse, rtol=0.1)
    short = optimize.minimize(ms.jit(rosenbrock), start, method=method, options={"maxiter": 3})
    assert (short.success, short.status, short.nit) == (False, 1, 3)
    moved = optimize.minimize(lambda x, a: ((x - a) ** 2).sum(), start, (Tensor(2.0),), method)
    np.testing.assert_allclose(moved.x.asnumpy(), np.full(size, 2.0), atol=1e-5)


def test_line_search() -> None:
    x, p = np.array([0.0, 0.0]), np.array([2.0, 0.0])
    found = optimize.line_search(rosenbrock, Tensor(x), Tensor(p))
    at = Tensor(x + found.a_k * p)
    value, gradient = ms.value_and_grad(rosenbrock)(at)
    start, slope = ms.value_and_grad(rosenbrock)(Tensor(x))
    assert not found.failed and found.status == 0
    assert found.f_k == value.item() <= start.item() + 1e-4 * found.a_k * (slope.asnumpy() @ p)
    assert abs(gradient.asnumpy() @ p) <= 0.9 * abs(slope.asnumpy() @ p)
    np.testing.assert_allclose(found.g_k.asnumpy(), gradient.asnumpy())
    up = optimize.line_search(rosenbrock, Tensor(x), Tensor(-p))
    assert up.failed and up.status == 1 and up.nit == 20


def test_what_optimization_refuses() -> None:
    x = Tensor([1.0])
    with pytest.raises(ArgumentError, match="method cannot be None"):
        optimize.minimize(rosenbrock, x)
    with pytest.raises(ArgumentError, match="bounds is not taken"):
        optimize.minimize(rosenbrock, x, method="BFGS", bounds=[(0, 1)])
    with pytest.raises(DTypeError, match="one number"):
        optimize.minimize(lambda x: ops.concat([x, x]), x, method="BFGS")
    with pytest.raises(NotFoundError, match="minimise"):
        optimize.minimise  # pyright: ignore


def test_systems_of_factorized_matrices(kind: Any) -> None:
    factors = linalg.lu_factor(Tensor(A.astype(kind)))
    for trans, matrix in ((0, A), (1, A.T), (2, A.T)):
        for right in (B, B[:, 0]):
            found = linalg.lu_solve(factors, Tensor(right.astype(kind)), trans)
            np.testing.assert_allclose(
                matrix @ found.asnumpy(), right, atol=100 * PRECISION[kind]
            )  # fmt: skip
    near(linalg.det(Tensor(A.astype(kind))), np.asarray(np.linalg.det(A)), kind)
    with pytest.raises(ArgumentError, match="trans must be"):
        linalg.lu_solve(factors, Tensor(B.astype(kind)), 3)


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (5, 3), (3, 6), (7, 7)])
@pytest.mark.parametrize("maximize", [False, True])
def test_no_assignment_is_better(shape: tuple[int, int], maximize: bool) -> None:
    costs = np.random.default_rng(sum(shape)).integers(0, 9, shape).astype(np.float32)
    rows, columns = (t.asnumpy() for t in optimize.linear_sum_assignment(Tensor(costs), maximize))
    assert len(rows) == len(set(columns.tolist())) == min(shape)
    assert (np.diff(rows) > 0).all()
    wide = costs if shape[0] <= shape[1] else costs.T
    sums = [
        sum(wide[row, column] for row, column in enumerate(chosen))
        for chosen in itertools.permutations(range(wide.shape[1]), wide.shape[0])
    ]
    assert costs[rows, columns].sum() == (max(sums) if maximize else min(sums))


def test_assignments_in_compiled_code_and_with_fewer_columns() -> None:
    costs = Tensor([[2, 3, 3], [3, 2, 3], [3, 3, 2]])
    assign = ms.jit(lambda c: optimize.linear_sum_assignment(c, False, Tensor(2)))
    for rows, columns in (assign(costs), assign(costs)):
        assert rows.asnumpy().tolist() == columns.asnumpy().tolist() == [0, 1, -1]


def test_wrong_assignments() -> None:
    with pytest.raises(ShapeError, match="two dimensions"):
        optimize.linear_sum_assignment(Tensor([1.0]), False)
    with pytest.raises(DTypeError, match="maximize must be a bool"):
        optimize.linear_sum_assignment(Tensor([[1.0]]), 1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match="finite"):
        optimize.linear_sum_assignment(Tensor([[np.nan]]), False)


# ---- Fourier -------------------------------------------------------------------------------------


def test_cosine_transforms_by_their_formula() -> None:
    n = 5
    k, i = np.arange(n)[:, None], np.arange(n)
    matrix = np.sqrt((2 - (k == 0)) / n) * np.cos(np.pi * k * (2 * i + 1) / (2 * n))
    x = RANDOM.normal(size=(3, n))
    found = ms.scipy.fft.dct(Tensor(x))
    np.testing.assert_allclose(found.asnumpy(), x @ matrix.T, rtol=1e-12)
    np.testing.assert_allclose(ms.scipy.fft.idct(found).asnumpy(), x, rtol=1e-12)
    both = ms.scipy.fft.dctn(Tensor(x), s=(4, 3))
    assert both.shape == (4, 3) and ms.scipy.fft.dct(Tensor([1, 2, 3])).dtype == ms.float32
    back = ms.scipy.fft.idctn(both).asnumpy()
    np.testing.assert_allclose(back[:3], x[:, :3], rtol=1e-12)
    np.testing.assert_allclose(back[3], 0, atol=1e-12)
    with pytest.raises(ArgumentError, match="only type 2"):
        ms.scipy.fft.dct(Tensor(x), 3)


@pytest.mark.parametrize("name", sorted(set(ms.numpy.fft.__all__) & set(dir(np.fft))))
def test_fourier_transforms_of_arrays(name: str) -> None:
    a = 4 if "freq" in name else RANDOM.normal(size=(4, 4)).astype(np.float32)
    found = getattr(ms.numpy.fft, name)(a if isinstance(a, int) else Tensor(a))
    np.testing.assert_allclose(found.asnumpy(), getattr(np.fft, name)(a), atol=2e-6)
