"""Products and functions of matrices that are built on rows, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, errors, ops
from tvmgraph.core.types import Dim, tensor_type

RNG = np.random.default_rng(0)


def rand(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def close(actual: Tensor, expected: Any, tolerance: float = 2e-5) -> None:
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(actual.asnumpy(), expected, rtol=tolerance, atol=tolerance)


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("bi,io,bo->b", (2, 3), (3, 4), (2, 4)),
    ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)),
    ("iij,jk->ik", (3, 3, 4), (4, 2)),
    ("abc,cd->abd", (2, 3, 4), (4, 5)),
    ("ab,ab->ab", (2, 3), (2, 3)),
    ("i,j->ij", (3,), (4,)),
    ("i,i->", (3,), (3,)),
    ("ij,j", (2, 3), (3,)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("ij->ji", (3, 4)),
    ("ij->", (3, 4)),
    ("...i->...", (2, 3)),
    ("ba", (2, 3)),
]


@pytest.mark.parametrize("case", EQUATIONS, ids=lambda c: c[0])
def test_einsum_is_numpy(case: Any) -> None:
    equation, *shapes = case
    arrays = [rand(*s) for s in shapes]
    expected = np.einsum(equation, *arrays)
    close(ops.einsum(equation, *map(Tensor, arrays)), expected)
    compiled = ms.jit(lambda *xs: ops.einsum(equation, *xs))
    close(compiled(*map(Tensor, arrays)), expected)


@pytest.mark.parametrize(
    ("equation", "error"),
    [("ij,jk->ik", errors.ShapeError), ("i1,jk->ik", errors.ArgumentError),
     ("ij,jk->il", errors.ArgumentError), ("ij->i", errors.ArgumentError)],
)  # fmt: skip
def test_einsum_rejects(equation: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        ops.einsum(equation, Tensor(rand(2, 3)), Tensor(rand(4, 5)))


def test_contractions() -> None:
    a, b = rand(2, 3, 4), rand(4, 3, 5)
    pairs = ((1, 2), (1, 0))
    close(ops.tensor_dot(Tensor(a), Tensor(b), pairs), np.tensordot(a, b, pairs))
    close(ops.tensor_dot(Tensor(a), Tensor(b), 1), np.tensordot(a, b, 1))
    close(ops.tensor_dot(Tensor(a), Tensor(b), 0), np.tensordot(a, b, 0))
    y = rand(5, 4, 6)
    close(ops.dot(Tensor(a), Tensor(y)), np.dot(a, y))
    close(ops.inner(Tensor(a), Tensor(rows := rand(5, 4))), np.inner(a, rows))
    x, y = rand(2, 4), rand(2, 4)
    close(ops.batch_dot(Tensor(x), Tensor(y)), (x * y).sum(1, keepdims=True))
    x, y = rand(4, 3), rand(4, 3)
    close(ops.cross(Tensor(x), Tensor(y)), np.cross(x, y))
    close(ops.kron(Tensor(x), Tensor(y)), np.kron(x, y))
    close(ops.cdist(Tensor(x), Tensor(y)), np.linalg.norm(x[:, None] - y[None], axis=-1))


def test_scaled_sums() -> None:
    i, p, q = rand(3, 5), rand(4, 3, 2), rand(4, 2, 5)
    ti, tp, tq = map(Tensor, (i, p, q))
    close(ops.addbmm(ti, tp, tq, beta=2, alpha=0.5), 2 * i + 0.5 * (p @ q).sum(0))
    close(ops.baddbmm(ti, tp, tq), i + p @ q)
    nan = Tensor(np.full((3, 5), np.nan, np.float32))
    close(ops.addmm(nan, tp[0], tq[0], beta=0), p[0] @ q[0])
    with pytest.raises(errors.ShapeError):
        ops.addmm(Tensor(rand(4, 5)), tp[0], tq[0])


def test_functions_of_matrices() -> None:
    m = rand(2, 3, 3)
    for n in (0, 1, 5, -2):
        close(ops.matrix_power(Tensor(m), n), np.linalg.matrix_power(m, n), 2e-3)
    a = rand(4, 3)
    close(ops.pinv(Tensor(a)), np.linalg.pinv(a), 1e-4)
    b = rand(4, 2)
    close(ops.lstsq(Tensor(a), Tensor(b)), np.linalg.lstsq(a, b, rcond=None)[0], 1e-4)
    h = a.T @ a + np.eye(3, dtype=np.float32)
    factor = np.linalg.cholesky(h)
    close(ops.cholesky(Tensor(h), upper=True), factor.T, 1e-4)
    close(ops.cholesky_inverse(Tensor(factor)), np.linalg.inv(h), 1e-4)
    close(ops.cholesky_solve(Tensor(a.T), Tensor(factor)), np.linalg.solve(h, a.T), 1e-4)
    for p in (None, 1, -1, -2, np.inf, -np.inf, "fro", "nuc"):
        close(ops.cond(Tensor(h), p), np.linalg.cond(h, p), 1e-3)
    angle = ops.matrix_exp(Tensor([[0.0, 1.0], [-1.0, 0.0]]))
    close(angle, [[np.cos(1), np.sin(1)], [-np.sin(1), np.cos(1)]])


def test_weight_gradient_of_a_batch_is_one_product() -> None:
    """A matrix that the batch shares must not be differentiated entry by entry."""
    from tvmgraph.autodiff.tape import GradTape, backward, recording

    tape, after = GradTape(), GradTape()
    x, w = Tensor(rand(2, 5, 3)), Tensor(rand(4, 3))
    with recording(tape):
        y = ops.dense(x, w)
    with recording(after):
        found = backward(tape, [y], [ops.ones_like(y)])
    products = [e for e in after.entries if e.name == "matmul"]
    assert [e.outputs[0].ndim for e in products] == [3, 2]
    close(found[id(w.token)], np.ones((4, 10), np.float32) @ x.asnumpy().reshape(10, 3))


def test_matmul_knows_symbolic_sizes() -> None:
    n = Dim("n")
    infer = ops.matmul.op.infer  # pyright: ignore
    x, w = tensor_type((n, 7, 3), "float32"), tensor_type((4, 3), "float32")
    out = infer(x, w, transpose_a=False, transpose_b=True)
    assert out is tensor_type((n, 7, 4), "float32")


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_singular_values_of_infinities_are_an_error_not_a_loop_without_end(bad: float) -> None:
    x = Tensor(np.array([[2, 1, 5], [bad, 5, 1], [1, 1, 1]], np.float32))
    for compute in (ops.svd, ops.pinv, lambda x: ops.svd(x, compute_uv=False)):
        with pytest.raises(ValueError, match="did not converge"):
            compute(x)
