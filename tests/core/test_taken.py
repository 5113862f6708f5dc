"""``x[rows][:, 0] = 1.0``: a chain of subscripts changes the tensor that it begins with."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor

ROWS = Tensor([0, 2])
MASK = Tensor([True, False, True])


def by_tensor(x: Tensor) -> None:
    x[ROWS][:, 0] = 50.0


def by_tensors(x: Tensor) -> None:
    x[ROWS, ROWS][0] = 50.0


def by_list(x: Tensor) -> None:
    x[[0, 2]][1] = 50.0


def by_mask(x: Tensor) -> None:
    x[MASK][0] = 50.0


def of_a_view(x: Tensor) -> None:
    x[1:][Tensor([0])][0] = 50.0


def of_three(x: Tensor) -> None:
    x[ROWS][:, Tensor([1, 2])][0] = 50.0


def with_an_operator(x: Tensor) -> None:
    x[ROWS][0] += 50.0
    x[ROWS][ROWS - ROWS, [1, 3]] *= 2.0


CHANGED: dict[Callable[[Tensor], None], dict[tuple[int, int], float]] = {
    by_tensor: {(0, 0): 50, (2, 0): 50},
    by_tensors: {(0, 0): 50},
    by_list: {(2, j): 50 for j in range(4)},
    by_mask: {(0, j): 50 for j in range(4)},
    of_a_view: {(1, j): 50 for j in range(4)},
    of_three: {(0, 1): 50, (0, 2): 50},
    with_an_operator: {(0, 0): 51, (0, 1): 104, (0, 2): 53, (0, 3): 108},
}


def given() -> np.ndarray:
    return np.arange(1, 13, dtype=np.float32).reshape(3, 4)


def whole(change: Callable[[Tensor], None], compiled: bool) -> Callable[[Tensor], Tensor]:
    def run(x: Tensor) -> Tensor:
        y = x * 1.0
        change(y)
        return y

    return ms.jit(run) if compiled else run


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("change", CHANGED, ids=lambda f: f.__name__)
def test_a_chain_changes_its_beginning(change: Callable[[Tensor], None], compiled: bool) -> None:
    want, x = given(), Tensor(given())
    for place, value in CHANGED[change].items():
        want[place] = value
    run = whole(change, compiled)
    for _ in range(3):  # Python runs code that is warm by other instructions
        np.testing.assert_array_equal(run(x).asnumpy(), want)
    if change is not with_an_operator:
        gradient = ms.grad(lambda x: run(x).sum())(x).asnumpy()
        np.testing.assert_array_equal(gradient, want != 50)


def named(x: Tensor) -> None:
    part = x[ROWS]
    part[0] = 50.0
    part[0] += 1.0
    part[ROWS - ROWS][:, 0] = 2.0


def in_a_list(x: Tensor) -> None:
    parts = [x[ROWS]]
    parts[0][0] = 50.0
    parts[0][0] += 1.0


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("change", [named, in_a_list], ids=lambda f: f.__name__)
def test_a_part_that_is_kept_is_a_copy(change: Callable[[Tensor], None], compiled: bool) -> None:
    run = whole(change, compiled)
    for _ in range(3):
        np.testing.assert_array_equal(run(Tensor(given())).asnumpy(), given())


def test_a_part_keeps_no_larger_tensor() -> None:
    x = Tensor(given())
    gone = weakref.ref(x)
    x = x[ROWS]
    gc.collect()
    assert gone() is None
    for _ in range(10):
        x = x[[1, 0]]
    assert x._base.depth <= 4
