"""Decompositions of complex matrices and their derivatives, against NumPy and differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, ops
from tvmgraph.scipy import linalg

_RNG = np.random.default_rng(0)
A, B = (_RNG.standard_normal((3, n)) + 1j * _RNG.standard_normal((3, n)) for n in (3, 2))


def hermitian(a: np.ndarray) -> np.ndarray:
    return (a + a.conj().T) / 2


def _hermitian(a: Tensor) -> Tensor:
    return (a + ops.adjoint(a)) * 0.5


def _projector(vectors: Tensor) -> Tensor:
    """What does not depend on the phase of an eigenvector."""
    return ops.matmul(vectors[:, :1], ops.adjoint(vectors[:, :1]))


def _lower(a: np.ndarray) -> np.ndarray:
    return np.tril(a) @ np.tril(a).conj().T


def _upper(a: np.ndarray) -> np.ndarray:
    return np.triu(a).conj().T @ np.triu(a)


#: A function of ``A``, and what NumPy says.
CASES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[np.ndarray], np.ndarray]]] = {
    "cholesky": (lambda a: ops.cholesky(ops.matmul(a, ops.adjoint(a))),
                 lambda a: np.linalg.cholesky(a @ a.conj().T)),
    "upper cholesky": (lambda a: ops.cholesky(ops.matmul(a, ops.adjoint(a)), upper=True),
                       lambda a: np.linalg.cholesky(a @ a.conj().T).conj().T),
    "cholesky_inverse": (ops.cholesky_inverse, lambda a: np.linalg.inv(_lower(a))),
    "upper cholesky_inverse": (lambda a: ops.cholesky_inverse(a, upper=True),
                               lambda a: np.linalg.inv(_upper(a))),
    "cholesky_solve": (lambda a: ops.cholesky_solve(Tensor(B), a),
                       lambda a: np.linalg.solve(_lower(a), B)),
    "upper cholesky_solve": (lambda a: ops.cholesky_solve(Tensor(B), a, upper=True),
                             lambda a: np.linalg.solve(_upper(a), B)),
    "eigenvalues": (lambda a: linalg.eigh(_hermitian(a))[0],
                    lambda a: np.linalg.eigvalsh(hermitian(a))),
    "eigenvectors": (lambda a: _projector(linalg.eigh(_hermitian(a))[1]),
                     lambda a: (v := np.linalg.eigh(hermitian(a))[1][:, :1]) @ v.conj().T),
    "sign of slogdet": (lambda a: ops.slogdet(a)[0], lambda a: np.linalg.slogdet(a)[0]),
    "value of slogdet": (lambda a: ops.slogdet(a)[1], lambda a: np.linalg.slogdet(a)[1]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str) -> None:
    ours, numpys = CASES[name]
    expected = np.asarray(numpys(A))
    value, pull = ms.vjp(ours, Tensor(A))
    np.testing.assert_allclose(value.asnumpy(), expected, atol=1e-9)
    seed = np.full_like(expected, 1 + 0.5j if expected.dtype.kind == "c" else 1)

    def change(at: tuple[int, ...], step: complex) -> float:
        moved = [A.copy(), A.copy()]
        moved[0][at] += step * 1e-6
        moved[1][at] -= step * 1e-6
        difference = numpys(moved[0]) - numpys(moved[1])
        return float(np.sum(np.real(np.conj(seed) * difference))) / 2e-6

    slope = [change(at, 1) + 1j * change(at, 1j) for at in np.ndindex(*A.shape)]
    found = pull(Tensor(seed))[0].asnumpy()
    np.testing.assert_allclose(found, np.reshape(slope, A.shape), atol=1e-5)


def test_pseudo_inverses_of_hermitian_matrices_read_the_lower_triangle() -> None:
    h = hermitian(A)
    found = ops.pinv(Tensor(np.tril(h)), hermitian=True)
    np.testing.assert_allclose(found.asnumpy(), np.linalg.pinv(h), atol=1e-9)
