"""Small tensors whose elements decide what the graph is: axes, copies, shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.errors import CaptureError

X = Tensor(np.arange(12, dtype=np.float32).reshape(2, 2, 3))
KEPT = Tensor(1, ms.int32)
STRICT = ms.JitConfig(jit_syntax_level="STRICT")


def _stack(x: Tensor, t: Tensor) -> Tensor:
    return ops.stack([x] * int(t))


def _branch(x: Tensor, t: Any) -> Tensor:
    y = x
    if x.sum() > 0:
        y = ops.cumsum(x, t)
    return y


def _nested(x: Tensor, t: Any) -> Tensor:
    def inner(v: Tensor) -> Tensor:
        return ops.softmax(v, t) * v

    return ops.grad(lambda v: inner(v).sum())(x)


OPERATORS: dict[str, Callable[..., object]] = {
    "sum": lambda x, t: ops.sum(x, dim=t),
    "sum of axes": lambda x, t: ops.sum(x, dim=(t, 0)),
    "ReduceSum": lambda x, t: ops.ReduceSum()(x, t),
    "method": lambda x, t: x.max(axis=t),
    "negative": lambda x, t: ops.mean(x, -t),
    "computed": lambda x, t: ops.cumsum(x, (t + 1) % 3),
    "concat": lambda x, t: ops.concat((x, x), axis=t),
    "expand_dims": lambda x, t: ops.expand_dims(x, t),
    "argmax": lambda x, t: ops.argmax(x, dim=t),
    "flip": lambda x, t: ops.flip(x, (t,)),
    "with one from outside": lambda x, t: ops.cumsum(x, t * KEPT),
    "in a branch": _branch,
    "in a derivative": _nested,
    "in a Cell": lambda x, t: nn.ReLU()(ops.cumsum(x, t)),
}
CODE: dict[str, Callable[..., object]] = {
    "copies of a list": _stack,
    "copies of a tuple": lambda x, t: ops.concat((x,) * int(t.item() + 1)),
    "list of a range": lambda x, t: [x * i for i in list(range(int(t) + 1))],
    "key": lambda x, t: {1: x, 2: x * 2}[int(t)],
}


def _same(got: object, want: object) -> None:
    if isinstance(want, (list, tuple)):
        assert isinstance(got, (list, tuple)) and len(got) == len(want)
        for a, b in zip(got, want):
            _same(a, b)
        return
    assert isinstance(got, Tensor) and isinstance(want, Tensor) and got.dtype is want.dtype
    np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [*OPERATORS, *CODE])
@pytest.mark.parametrize("strict", [False, True])
def test_elements_are_a_constant_of_each_capture(name: str, strict: bool) -> None:
    """Every value has one graph; a value that was there before is not captured again."""
    function = (OPERATORS | CODE)[name]
    run = jit(function, jit_config=STRICT) if strict else jit(function)
    for value in (1, 2, 1, 2):
        t = Tensor(value, ms.int32)
        _same(run(X, t), function(X, t))
    if strict or name in OPERATORS:
        assert run.compile_count == 2 and not run.breaks()
        assert "tensor argument 1 has other elements" in run.explain()


def _power(x: Tensor, n: Tensor) -> Tensor:
    def f(v: Tensor, k: Any) -> Tensor:
        if k <= 0 or k > 20:
            return v
        if v.sum() > 60:  # decided by the graph
            return f(v - 1, k - 1)
        return f(v * 2, k - 1)

    return f(x, n)


def _fibonacci(x: Tensor, n: Any) -> Any:
    del x
    return n if n < 2 else _fibonacci(X, n - 1) + _fibonacci(X, n - 2)


@pytest.mark.parametrize("function", [_power, _fibonacci])
@pytest.mark.parametrize("strict", [False, True])
def test_a_tensor_says_how_deep_a_recursion_goes(
    function: Callable[..., Any], strict: bool
) -> None:
    """Strict code has a graph for every depth, LAX leaves it to Python."""
    run = jit(function, fullgraph=strict)
    for value in (3, 6, 3):
        t = Tensor(value)
        _same(run(X, t), function(X, t))
    assert run.compile_count == 2 or not strict


def test_a_recursion_that_others_end_is_refused() -> None:
    """Strict code names the function; Python runs it."""

    def run(x: Tensor, n: Tensor) -> Tensor:
        return x if x.sum() > 1e4 else run(x * 2, n)

    with pytest.raises(CaptureError, match="recursion this deep") as info:
        jit(run, fullgraph=True)(X, Tensor(1))
    assert "fix: make the recursion end by a Python value" in str(info.value)
    _same(jit(run)(X, Tensor(1)), run(X, Tensor(1)))


def test_many_values_are_left_to_python() -> None:
    """Where Python can do it, an axis that differs again and again is a graph break."""
    function = OPERATORS["sum"]
    run = jit(function)
    x = ops.ones((2, 1, 1, 3, 1, 1, 2))
    for value in range(7):
        _same(run(x, Tensor(value)), function(x, Tensor(value)))
    assert run.compile_count == 4 and run.breaks()


def test_the_one_from_outside_is_guarded() -> None:
    """A tensor that is read by reference and decides is compared as well."""
    axis: Any = Tensor([0], ms.int32)

    @jit(jit_config=STRICT)
    def run(x: Tensor) -> Tensor:
        return ops.cumsum(x, axis[0] + 0)

    for value in (0, 2, 1):
        axis[0] = value
        _same(run(X), ops.cumsum(X, value))


def test_what_varies_beside_it_stays_symbolic() -> None:
    """Sizes become symbols as always; the elements are compared there, too."""
    function = OPERATORS["sum"]
    run = jit(function, jit_config=STRICT)
    for n, value in ((2, 0), (3, 0), (4, 0), (5, 1), (6, 0), (7, 1)):
        x, t = ops.ones((n, 3)), Tensor(value)
        _same(run(x, t), function(x, t))
    assert run.compile_count == 3


def test_what_values_decide_is_refused_with_the_line() -> None:
    """An axis that the function computes of other tensors is not known."""

    @jit(jit_config=STRICT)
    def run(x: Tensor) -> Tensor:
        return ops.sum(x, dim=x.sum().astype(ms.int32))

    with pytest.raises(CaptureError, match="a setting of an operator needs the value") as info:
        run(X)
    assert "test_deciding.py:" in str(info.value)
    assert "fix: pass it as a Python number" in str(info.value)


def test_a_graph_for_others_takes_no_elements() -> None:
    """What has no guards, such as a file, would be wrong for other elements."""
    with pytest.raises(CaptureError, match="a setting of an operator needs the value"):
        jit(OPERATORS["sum"]).graph(X, Tensor(1))
