"""Changes in place are written over the elements where nobody else sees them, and only there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, ops
from tvmgraph.core.in_place import write_at
from tvmgraph.errors import OutOfRangeError, ShapeError, TvmgraphError

CHANGES: dict[str, Callable[[Tensor], object]] = {
    "x[i]": lambda x: x.__setitem__(1, 5.0),
    "x[i:j]": lambda x: x.__setitem__(slice(1, 3), Tensor([1.0, 2, 3, 4])),
    "x[::-1, None]": lambda x: x.__setitem__((slice(None, None, -1), None), 7),
    "x[..., i]": lambda x: x.__setitem__((..., -1), np.array([9, 8, 7], np.float32)),
    "x[ids]": lambda x: x.__setitem__(Tensor([0, -1, 0]), Tensor([[1.0], [2.0], [3.0]])),
    "x[ids, ids]": lambda x: x.__setitem__((Tensor([0, 2]), np.array([1, 3])), Tensor([1, 2])),
    "x[mask of rows]": lambda x: x.__setitem__(Tensor([True, False, True]), Tensor([[1.0], [2]])),
    "index_copy_": lambda x: x.index_copy_(1, Tensor([0, 2]), ops.ones((3, 2), ms.float32)),
    "index_put_": lambda x: x.index_put_((Tensor([0, 2]),), Tensor(4.0)),
    "fill_": lambda x: x.fill_(3),
    "zero_": lambda x: x.zero_(),
    "add_": lambda x: x.add_(Tensor([1.0, 2, 3, 4])),
    "mul_": lambda x: x.mul_(0.1),
    "sub_": lambda x: x.sub_(Tensor([[2.0], [3.0], [4.0]])),
    "square_": lambda x: x.square_(),
}
#: What sees the elements of a tensor, and returns what it sees later.
SEEN: dict[str, Callable[[Tensor], Callable[[], np.ndarray]]] = {
    "array": lambda x: (lambda a: lambda: a)(x.asnumpy()),
    "row": lambda x: (lambda y: lambda: y.asnumpy())(x[1]),
    "transposed": lambda x: (lambda y: lambda: y.asnumpy())(x.T),
    "reshaped": lambda x: (lambda y: lambda: y.asnumpy())(x.reshape(-1)),
    "broadcast": lambda x: (lambda y: lambda: y.asnumpy())(ops.broadcast_to(x, (2, 3, 4))),
    "snapshot": lambda x: (lambda y: lambda: y.asnumpy())(x.value()),
    "detached": lambda x: (lambda y: lambda: y.asnumpy())(x.detach()),
    "dlpack": lambda x: (lambda a: lambda: a)(np.from_dlpack(x)),  # pyright: ignore[reportArgumentType]
}


def given() -> np.ndarray:
    return np.arange(12, dtype=np.float32).reshape(3, 4) + 1


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_that_of_the_operators(name: str) -> None:
    owned, expected = Tensor(given()), Tensor(given())
    CHANGES[name](owned)
    ms.set_context(check_numerics=True)  # somebody looks at every operator
    try:
        CHANGES[name](expected)
    finally:
        ms.reset_context()
    assert (owned.asnumpy() == expected.asnumpy()).all()
    assert (owned.asnumpy() != given()).any()


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("seen", SEEN)
def test_whoever_has_the_elements_keeps_them(name: str, seen: str) -> None:
    x = Tensor(given())
    look = SEEN[seen](x)
    before = look().copy()
    CHANGES[name](x)
    assert (look() == before).all()
    assert (x.asnumpy() != given()).any()


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("kind", [Tensor, Parameter])
def test_nothing_is_copied_where_nobody_has_them(name: str, kind: type[Tensor]) -> None:
    x: Any = kind(Tensor(given()))
    look = x.T
    CHANGES[name](x)  # of which `look` still has the old elements
    del look
    place, token = x.data_ptr(), x.token
    CHANGES[name](x)
    assert x.data_ptr() == place
    assert x.token is not token


def test_compiled_calls_see_every_change() -> None:
    x, weight = Tensor(given()), Parameter(Tensor(given()))
    double, captured = ms.jit(lambda t: t * 2), ms.jit(lambda: weight * x)
    results = double(x), captured()
    x[0, 0] = 100.0
    weight[0, 0] = 3.0
    assert double(x).asnumpy()[0, 0] == 200
    assert captured().asnumpy()[0, 0] == 300
    assert [r.asnumpy()[0, 0] for r in results] == [2, 1]


def test_gradients_are_of_the_elements_then() -> None:
    def loss(x: Tensor) -> Tensor:
        y = x * 1.0
        squares = y * y
        y[0] = y[1] * 2
        y.mul_(3.0)
        return (squares + y).sum()

    x = Tensor([1.0, 2.0, 3.0])
    assert ms.grad(loss)(x).asnumpy().tolist() == [2, 4 + 6 + 3, 6 + 3]


def test_views_write_through() -> None:
    x = Tensor(given())
    x[1][2] = 50.0
    x[2].zero_()
    part = x[:, 0]
    part.add_(1.0)
    assert x.asnumpy().tolist() == [[2, 2, 3, 4], [6, 6, 50, 8], [1, 0, 0, 0]]


@pytest.mark.parametrize("axis", [0, 1])
def test_pieces_are_views_that_writes_do_not_reach(axis: int) -> None:
    taken = np.moveaxis(given(), axis, 0)
    for take in (ops.unbind, lambda x, axis: ops.split(x, 1, axis)):
        x = Tensor(given())
        pieces = take(x, axis)
        assert all(np.shares_memory(p.array, x.array) for p in pieces)
        x[0] = 9.0
        for p, row in zip(pieces, taken, strict=True):
            np.testing.assert_array_equal(p.asnumpy().ravel(), row)
        pieces[0][...] = 5.0
        assert not (x.asnumpy() == 5).all(axis).any()


def test_a_tensor_is_its_own_index_and_value() -> None:
    places, x = Tensor([1, 0, 3, 2]), Tensor([1.0, 2, 3, 4])
    places[places] = Tensor([5, 6, 7, 8])
    x[::-1] = x
    x.add_(x)
    assert places.asnumpy().tolist() == [6, 5, 8, 7]
    assert x.asnumpy().tolist() == [8, 6, 4, 2]


@pytest.mark.parametrize(
    ("index", "value", "error"),
    [
        (3, 1.0, OutOfRangeError),
        ((0, 0, 0), 1.0, OutOfRangeError),
        (Tensor([0, 3]), 1.0, OutOfRangeError),
        (Tensor([True, False]), Tensor([1.0]), OutOfRangeError),
        (0, Tensor([1.0, 2.0]), ShapeError),
    ],
)
def test_errors_are_those_of_the_operators(
    index: object, value: object, error: type[Exception]
) -> None:
    x = Tensor(given())
    assert not write_at(x, index, value)
    with pytest.raises(error, match=r"test_in_place\.py"):
        x[index] = value
    assert (x.asnumpy() == given()).all()


def test_numbers_become_elements_as_everywhere() -> None:
    bytes_, half = Tensor([1, 2], ms.uint8), Tensor([1.0, 2.0], ms.float16)
    bytes_[0] = 300
    half[0] = 1.0 + 2.0**-12
    half[1] = Tensor(3)
    assert bytes_.asnumpy().tolist() == [44, 2]
    assert half.asnumpy().tolist() == [1, 3]


def test_a_number_beside_a_tensor_is_of_its_dtype() -> None:
    """The first and the second call, which finds the number."""
    for dtype in (ms.float16, ms.float32, ms.int32):
        for number in (3, 3.0, 0.5, 1, True, 1.0):
            x = Tensor(np.arange(1, 4), dtype)
            wanted = ms.float32 if dtype is ms.int32 and isinstance(number, float) else dtype
            for found in (x * number, x * number):
                assert found.dtype == wanted
                np.testing.assert_array_equal(found.asnumpy(), x.asnumpy() * number)


def test_calls_in_another_thread_see_all_of_a_change_to_a_parameter_or_nothing() -> None:
    weight = Parameter(np.ones((2048, 2048), np.float32))
    function = ms.jit(lambda: weight.max() - weight.min())
    function()
    stop, found = threading.Event(), set[float]()

    def call() -> None:
        while not stop.is_set():
            found.add(float(function()))

    other = threading.Thread(target=call)
    other.start()
    for value in (2.0, 1.0) * 10:
        weight.fill_(value)
    stop.set()
    other.join()
    assert found == {0.0}


def test_a_write_that_fails_leaves_the_elements_shared() -> None:
    x = Tensor(np.arange(6, dtype=np.float32))
    seen, other = x.asnumpy(), x.detach()
    for index in (Tensor([9]), (Tensor([0]), Tensor([0]))):
        with pytest.raises(TvmgraphError):
            other[index] = 1.0
    seen[...] = 3
    assert other.asnumpy().tolist() == x.asnumpy().tolist() == [3.0] * 6
