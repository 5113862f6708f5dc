"""Strict code joins tensors of other sizes on the sides of a branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.errors import CaptureError

X = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3) + 1)


def _returned(x: Tensor) -> Any:
    if x.sum() > 3:
        return x
    return ops.concat((x, x[:1]))


def _used_together(x: Tensor) -> Any:
    y = ops.concat((x, x), 1) if x.sum() > 3 else x[:1]
    z = ops.relu(ops.concat((x, x), 1)) if x.sum() > 3 else ops.relu(x[:1])
    return y * 2, z.sum(), y.shape[0] * 3


def _two_of_one_size(x: Tensor) -> Any:
    if x.sum() > 3:
        y, z = x, x.sum(0)
    else:
        y, z = x[:, :2], x.sum(0)[:2]
    return ops.matmul(y, z), y + z


def _chain(x: Tensor) -> Any:
    if x.sum() > 3:
        y = x[:1]
    elif x[0, 0] > -2:
        y = x * 2
    else:
        y = ops.concat((x, x))
    return y * 2, y.sum(0)


def _derivative(x: Tensor) -> Any:
    def g(v: Tensor) -> Tensor:
        y = v * v if v.sum() > 3 else v[:1] * 3
        return (y * y).sum()

    return ops.grad(g)(x)


def _in_loops(x: Tensor) -> Any:
    rows = []
    for i in range(3):
        y = x if x[0, i] > 2 else x[:1]
        rows.append(y.sum(0))
    total = x
    while total.sum() < 50:
        z = total if total[0, 0] > 0 else total[:1]
        total = total + ops.abs(z.sum()) + 1
    return ops.stack(rows), total


def _lists(x: Tensor) -> Any:
    y = [x, x + 1] if x.sum() > 3 else [x[:1], x[:1] * 2]
    return ops.concat(y)


def _empty(x: Tensor) -> Any:
    y = x[:0] if x.sum() > 3 else x
    return y.sum(0), y


class _Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, 2, weight_init="one")

    def construct(self, x: Tensor) -> Tensor:
        if x.sum() > 3:
            x = x[:1]
        return self.dense(x)


CASES: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (_returned, _used_together, _two_of_one_size, _chain, _derivative, _in_loops, _lists,
              _empty)
} | {"Cell": _Net()}  # fmt: skip


def _same(got: Any, want: Any) -> None:
    assert isinstance(got, type(want))
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want):
            _same(a, b)
    elif isinstance(want, Tensor):
        assert got.shape == want.shape and got.dtype is want.dtype
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)
    else:
        assert got == want


@pytest.mark.parametrize("name", CASES)
def test_one_graph_has_both_sizes(name: str) -> None:
    """Results have the shapes of eager code, whichever side is taken, of one graph."""
    function = CASES[name]
    run = jit(function, jit_config=ms.JitConfig(jit_syntax_level="STRICT"))
    for x in (X, -X, -0.5 * X, X):
        _same(run(x), function(x))
    assert run.compile_count == 1


def _written(x: Tensor) -> Tensor:
    y = x if x.sum() > 3 else x[:1]
    y[0] = 7
    return y


def _original_written(x: Tensor) -> Any:
    y = x if x.sum() > 3 else x[:1]
    x[0] = 7
    return y


def _compared(x: Tensor) -> Any:
    y = x if x.sum() > 3 else x[:1]
    return y is x


@pytest.mark.parametrize("function", [_written, _original_written, _compared])
def test_such_a_tensor_is_a_copy(function: Callable[..., Any]) -> None:
    """Where Python would see that it is none, strict code says so, and LAX does as Python."""
    with pytest.raises(CaptureError, match="of another size on each side of a branch") as info:
        jit(function, fullgraph=True)(X.copy())
    assert "fix: copy it on both sides" in str(info.value)
    _same(jit(function)(X.copy()), function(X.copy()))


@pytest.mark.parametrize(
    "other",
    [lambda x: x.reshape(-1), lambda x: x.astype(ms.int32), lambda x: x[x > 2]],
)
def test_more_than_sizes_is_refused(other: Callable[[Tensor], Any]) -> None:
    """Another number of axes or dtype, or a size that nothing limits."""

    @jit(fullgraph=True)
    def run(x: Tensor) -> Any:
        return x if x.sum() > 3 else other(x)

    with pytest.raises(CaptureError, match=r"on one side and .* on the other"):
        run(X)
