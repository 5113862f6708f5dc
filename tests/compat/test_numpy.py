"""``mindspore.numpy`` of complex arrays gives what NumPy gives, and never only its real part."""

from __future__ import annotations

import numpy as np
import pytest

import tvmgraph.numpy as mnp
from tvmgraph import Tensor
from tvmgraph.errors import DTypeError

_RNG = np.random.default_rng(0)
A, V = (_RNG.standard_normal(s) + 1j * _RNG.standard_normal(s) for s in ((3, 3), 5))

ONE = [
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "average",
    "cos",
    "cosh",
    "gradient",
    "mean",
    "sign",
    "sin",
    "sinh",
    "std",
    "tan",
    "tanh",
    "var",
]
TWO = ["convolve", "correlate", "float_power", "linspace", "polymul", "polyval"]


def compare(name: str, *arrays: np.ndarray) -> None:
    found = getattr(mnp, name)(*[Tensor(a) for a in arrays])
    wanted = getattr(np, name)(*arrays)
    if not isinstance(wanted, list | tuple):
        found, wanted = [found], [wanted]
    for f, w in zip(found, wanted, strict=True):
        assert f.asnumpy().dtype.kind == np.asarray(w).dtype.kind
        np.testing.assert_allclose(f.asnumpy(), w, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", ONE)
def test_functions(name: str) -> None:
    compare(name, A)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two(name: str) -> None:
    compare(name, V, V[:3] if name in ("convolve", "correlate") else V[::-1].copy())


def test_correlation_conjugates_whichever_is_longer() -> None:
    compare("correlate", V[:3], V)


@pytest.mark.parametrize("order", [None, 1, np.inf])
def test_norms(order: float | None) -> None:
    found = mnp.norm(Tensor(V), order)
    np.testing.assert_allclose(found.asnumpy(), np.linalg.norm(V, order), rtol=1e-5)


def test_what_is_not_offered_is_said() -> None:
    with pytest.raises(DTypeError, match="floats"):
        mnp.nanmean(Tensor(A))
