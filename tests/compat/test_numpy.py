"""``mindspore.numpy`` of complex arrays gives what NumPy gives, and never only its real part."""

from __future__ import annotations

import numpy as np
import pytest

import tvmgraph as ms
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


def test_parts_between_indices_are_a_list_and_equal_ones_a_tuple() -> None:
    x = Tensor(np.arange(6).reshape(2, 3))
    assert [type(mnp.split(x, by, axis=1)) for by in (3, [1, 2], (1, 2))] == [tuple, list, list]
    assert [type(f(x, [1])) for f in (mnp.vsplit, mnp.hsplit, mnp.array_split)] == [list] * 3


def test_a_sum_of_one_number_is_int64_too() -> None:
    assert mnp.sum(Tensor(3, ms.int32)).dtype is mnp.sum(Tensor([3], ms.int32)).dtype is ms.int64


def test_a_correlation_of_integers_is_float32() -> None:
    found = mnp.correlate(Tensor([1, 2, 3]), Tensor([0, 1]), "full")
    assert (found.dtype, found.tolist()) == (ms.float32, [1, 2, 3, 0])


def test_compiled_code_writes_the_elements_of_an_array() -> None:
    assert ms.jit(mnp.array_str)(Tensor([3, -1])) == mnp.array_str(Tensor([3, -1])) == "[ 3 -1]"


def test_asarray_of_an_array_of_the_dtype_is_that_array() -> None:
    x = mnp.asarray([1, 2], dtype="int32")
    assert mnp.asarray(x, dtype=mnp.int32) is x and mnp.array(x, dtype=mnp.int32) is not x
    assert mnp.asarray(x, dtype=mnp.float32).dtype == ms.float32


def test_a_float64_of_numpy_is_a_float_of_python() -> None:
    x, n = Tensor([1.0, 3.0]), np.float64(2)
    for found in (mnp.array(n), mnp.add(x, n), mnp.where(x > 1, x, n), mnp.linspace(0, n, 3)):
        assert found.dtype is ms.float32
    assert mnp.array(np.arange(3.0)).dtype is ms.float64


@pytest.mark.parametrize("name", ["around", "round", "cumprod"])
@pytest.mark.parametrize("value", [[1, 2, 3], (4, 5), 5, [[1, 2], [3, 4]]])
def test_ints_of_python_keep_64_bits(name: str, value: object) -> None:
    found = getattr(mnp, name)(value)
    assert found.dtype == ms.int64
    assert (found.asnumpy() == np.atleast_1d(getattr(np, name)(value))).all()


def test_arrays_keep_their_bits() -> None:
    short, tensors = np.array([1, 2], np.int32), [Tensor(1, ms.int32), Tensor(2, ms.int32)]
    assert {mnp.around(v).dtype for v in (short, tensors, Tensor(short))} == {ms.int32}
    assert mnp.around([1.5]).dtype == ms.float32


def test_small_sums_are_signed() -> None:
    small = Tensor([200, 100], ms.uint8)
    assert mnp.cumsum(small).dtype == mnp.nancumsum(small).dtype == ms.int32
    assert mnp.cumsum(small).asnumpy().tolist() == [200, 300]
    assert mnp.cumprod(small).dtype == ms.uint32


@pytest.mark.parametrize("name", ["split", "array_split", "hsplit", "vsplit", "dsplit"])
def test_a_number_has_no_axes_to_split(name: str) -> None:
    with pytest.raises(DTypeError, match="an array is needed, not int"):
        getattr(mnp, name)(5, 1)


def test_a_number_has_no_axes_to_turn() -> None:
    for call in (mnp.fliplr, mnp.rot90, lambda x: mnp.swapaxes(x, 0, 1)):
        with pytest.raises(DTypeError, match="an array is needed, not float"):
            call(5.0)
    assert mnp.fliplr([[1, 2]]).asnumpy().tolist() == [[2, 1]]
