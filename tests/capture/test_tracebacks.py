"""Tracebacks of functions with graph breaks name the functions and lines that Python's name."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

from tests.capture.test_fuzz import in_numpy
from tvmgraph import Tensor, jit


def raises(x: Tensor) -> Tensor:
    raise ValueError(x.shape)


def calls(x: Tensor) -> Tensor:
    y = x + 1
    return raises(y)


def after_a_break(x: Tensor) -> Any:
    values = x.asnumpy()
    return calls(x * 2), values


def nested(x: Tensor) -> Any:
    def inner(t: Tensor) -> Any:
        def deeper(v: Tensor) -> Any:
            float(v.sum())
            return 1 / 0

        return deeper(t * 2)

    y = x * 2
    v = y.asnumpy()
    return inner(y), v


def in_a_lambda(x: Tensor) -> Any:
    v = x.asnumpy()
    k: Any = lambda t: t.nothing  # noqa: E731
    return k(x), v


def in_a_handler(x: Tensor) -> Any:
    def inner(t: Tensor) -> Any:
        try:
            t.asnumpy()
            raise ValueError("a")
        finally:
            t = t + 1

    return inner(x)


def in_a_generator(x: Tensor) -> Any:
    def items() -> Any:
        yield x
        raise ValueError("g")

    x.asnumpy()
    return [a + 1 for a in items()]


class Model:
    def outer(self, x: Tensor) -> Any:
        v = x.asnumpy()
        return self.inner(x), v

    def inner(self, x: Tensor) -> Any:
        v = x.asnumpy()
        raise IndexError(v)


model = Model()


def in_methods(x: Tensor) -> Any:
    v = x.asnumpy()
    return model.outer(x), v


def places(function: Callable[..., Any], x: Tensor) -> list[tuple[str, int | None]]:
    """Returns function and line of the entries that are in this file, from the function on."""
    with pytest.raises(Exception) as error:
        function(x)
    found = traceback.extract_tb(error.value.__traceback__)
    return [(e.name, e.lineno) for e in found if e.filename == __file__ and e.name != "places"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["ast", "bytecode"])
@pytest.mark.parametrize(
    "function",
    [after_a_break, nested, in_a_lambda, in_a_handler, in_a_generator, in_methods],
)
def test_a_traceback_is_that_of_python(function: Any, mode: str) -> None:
    x = Tensor([1.0, 2.0])
    expected = places(function, x)
    with in_numpy():
        compiled = jit(function, capture_mode=mode)
        for _ in range(6):
            assert places(compiled, x) == expected
