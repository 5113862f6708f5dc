"""Decorated functions and Cells are called as Python calls them, whatever signature they claim."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tvmgraph as ms
from tests.capture.test_fuzz import in_numpy
from tvmgraph import Tensor, jit, nn

Function = Callable[..., Any]


def scaled(function: Function) -> Function:
    """Takes an argument that the function does not have."""

    @functools.wraps(function)
    def inner(x: Tensor, scale: int = 2) -> Any:
        return function(x) * scale

    return inner


def with_first(function: Function) -> Function:
    """Gives an argument that the function has."""

    @functools.wraps(function)
    def inner(x: Tensor) -> Any:
        return function(10.0, x)

    return inner


def claiming(function: Function) -> Function:
    """Says that it takes what the function does, and takes more."""

    @functools.wraps(function)
    def inner(*args: Any, _times: int = 1, **kwargs: Any) -> Any:
        return function(*args, **kwargs) * _times

    inner.__signature__ = inspect.signature(function)  # pyright: ignore[reportFunctionMemberAccess]
    return inner


@scaled
def plus(x: Tensor) -> Tensor:
    return x + 1


@with_first
def product(a: float, x: Tensor) -> Tensor:
    return x * a


@claiming
def power(x: Tensor, k: int = 1) -> Tensor:
    return x * k


class Powers(nn.Cell):
    @claiming
    def construct(self, x: Tensor, k: int = 1) -> Tensor:
        return x * k


def all_of_them(x: Tensor) -> Tensor:
    return plus(x, 3) + product(x) + power(x, k=2, _times=4)


CALLS: dict[str, tuple[Function, tuple[Any, ...], dict[str, Any], float]] = {
    "positional": (plus, (3,), {}, 9), "keyword": (plus, (), {"scale": 4}, 12),
    "fewer": (product, (), {}, 20), "claimed": (power, (), {"k": 3}, 6),
    "not claimed": (power, (), {"_times": 5}, 10), "called": (all_of_them, (), {}, 45),
    "Cell": (Powers(), (), {"k": 2, "_times": 2}, 8),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["LAX", "PIJit", "whole", "gradient"])
@pytest.mark.parametrize("name", CALLS)
def test_a_decorated_function_takes_what_its_wrapper_takes(name: str, mode: str) -> None:
    function, args, kwargs, expected = CALLS[name]
    if mode == "gradient":
        made = ms.value_and_grad(function, 0)
        compiled: Any = jit(lambda *a, **k: made(*a, **k)[0])
    else:
        whole = mode == "whole"
        compiled = jit(function, fullgraph=whole, mode="PIJit" if mode == "PIJit" else "")
    with in_numpy(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert compiled(Tensor([2.0]), *args, **kwargs).tolist() == [expected]
    assert compiled.compile_count == 1


def test_what_no_wrapper_takes_is_named() -> None:
    with pytest.raises(TypeError, match="too many positional arguments"):
        jit(plus)(Tensor([2.0]), 3, 4)


class Run:
    """What a program keeps of its calls."""

    def __init__(self) -> None:
        self.count = 0
        self.last = Tensor([0.0])


class Counting(nn.Cell):
    def construct(self, run: Run, x: Tensor) -> Tensor:
        run.count += 1
        run.last = x * 2
        return x + run.count


def counted_loss(run: Run, x: Tensor) -> Tensor:
    run.count += 1
    return (x * x).sum() * run.count


def test_a_cell_changes_an_object_that_it_is_given() -> None:
    """A compiled Cell, one that a function calls, and a function whose gradient is taken."""
    cell = Counting()
    gradient = ms.value_and_grad(counted_loss, 1)
    forms: dict[str, Any] = {
        "Cell": cell, "called": lambda run, x: cell(run, x), "gradient": lambda *a: gradient(*a)[1],
    }  # fmt: skip
    for name, function in forms.items():
        plain, run, compiled = Run(), Run(), jit(function)
        with in_numpy(), warnings.catch_warnings():
            warnings.simplefilter("error")
            for n in range(4):
                expected = function(plain, Tensor([float(n)]))
                assert compiled(run, Tensor([float(n)])).tolist() == expected.tolist(), name
                assert (run.count, run.last.tolist()) == (plain.count, plain.last.tolist()), name
        assert compiled.compile_count > 0, f"{name} ran as plain Python"
        assert "graph break" not in compiled.explain(), name
