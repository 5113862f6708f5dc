"""Strict code takes tensors where eager code reads them: as numbers, axes, sizes and items."""

from __future__ import annotations

from collections import ChainMap, Counter, UserList, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.errors import CaptureError

N = Tensor(2)
AXIS: Any = Tensor(1)
X = Tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
I, J = Tensor([0, 1]), Tensor([2, 3])
ROW, BLOCK = (
    Tensor(np.array([5, 6], np.float32)),
    Tensor(np.arange(6, dtype=np.float32).reshape(3, 2)),
)


def _same(found: object, wanted: object) -> None:
    assert type(found) is type(wanted)
    if isinstance(found, (tuple, list)) and isinstance(wanted, (tuple, list)):
        for a, b in zip(found, wanted, strict=True):
            _same(a, b)
    elif isinstance(found, Tensor) and isinstance(wanted, Tensor):
        assert found.dtype is wanted.dtype
        np.testing.assert_array_equal(found.asnumpy(), wanted.asnumpy())
    else:
        assert found == wanted


def _compare(f: Callable[..., Any], *args: Tensor) -> None:
    copies = [Tensor(a.asnumpy().copy()) for a in args]
    ms.set_seed(3)
    wanted = f(*args), ops.rand(2)
    ms.set_seed(3)
    _same((jit(f, fullgraph=True)(*copies), ops.rand(2)), wanted)


def _write(key: Callable[..., Any]) -> Callable[..., Tensor]:
    def f(x: Tensor, n: Tensor, i: Tensor, j: Tensor, v: Tensor) -> Tensor:
        y = x * 1
        y[key(n, i, j)] = v
        return y

    return f


def _counts(x: Tensor, n: Tensor) -> Any:
    total = x
    for k in range(int(n)):
        total = total + k
    return total, int(n) + 1, float(n) / 4, n.item() * 2


def _sizes(x: Tensor, n: Tensor) -> Any:
    m = int(n)
    return x.reshape(m, -1), ops.tile(x, (m, 1, 1)), ops.arange(m + 1), x[:, :, :m], x[m - 1]


NUMBERS: dict[str, Callable[..., Any]] = {
    "counted": _counts, "sizes": _sizes,
    "topk": lambda x, n: ops.topk(x, int(n)),
    "one_hot": lambda x, n: ops.one_hot(n, int(n) + 2),
    "randperm of a tensor": lambda x, n: (ops.randperm(n), ops.randperm(int(n) + 7)),
    "rand": lambda x, n: ops.rand(int(n), 2),
    "axis": lambda x, n: (ops.expand_dims(x, AXIS), ops.concat((x, x), AXIS), x.sum(AXIS)),
    "in": lambda x, n: (n in [n + 1, n * 1], n not in (n + 1, 5), 2 in [n, n + 1]),
}  # fmt: skip
KEYS: dict[str, tuple[Callable[..., Any], Tensor]] = {
    "of a block": (lambda n, i, j: (1, slice(None), slice(None, n)), BLOCK),
    "of a row": (lambda n, i, j: (slice(None), 1, slice(None, n)), ROW),
    "beside tensors": (lambda n, i, j: (i, slice(None, n), j), ROW),
    "before tensors": (lambda n, i, j: (slice(None, n), i, j), ROW),
    "between an int and a tensor": (lambda n, i, j: (0, slice(None, n), j), BLOCK[:2]),
    "behind a tensor": (lambda n, i, j: (slice(None), i, slice(n)), ROW),
    "behind a step": (lambda n, i, j: (slice(None, None, 2), 1, slice(n, None)), ROW),
    "behind a new axis": (lambda n, i, j: (None, 0, slice(n)), ROW[0]),
    "behind a list": (lambda n, i, j: ([0, 1], slice(n)), ROW[1]),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_a_tensor_is_a_number_of_the_graph(name: str) -> None:
    _compare(NUMBERS[name], X, N)


@pytest.mark.parametrize("name", KEYS)
def test_what_is_stored_in_a_slice_of_the_graph_may_have_its_sizes(name: str) -> None:
    key, value = KEYS[name]
    _compare(_write(key), X, N, I, J, value)


def test_a_slice_of_the_graph_is_stored_in_another() -> None:
    def shift(x: Tensor, n: Tensor, m: Tensor) -> Tensor:
        y = x * 1
        y[0, n - 2 : m] = x[0, n - 1 : m + 1]
        return y

    _compare(shift, X, N, Tensor(2))


def test_a_slice_of_another_length_than_what_is_stored_raises() -> None:
    run = jit(_write(lambda n, i, j: (slice(None), 1, slice(None, n))), fullgraph=True)
    run(X, N, I, J, ROW)
    with pytest.raises(ValueError):
        run(X, Tensor(3), I, J, ROW)


def test_tensors_are_compared_as_wholes_with_items() -> None:
    run = jit(lambda x, y: x in [y + 1, y], fullgraph=True)
    assert run(ROW, Tensor([5.0, 6.0])) is True
    assert run(ROW, Tensor([5.0, 7.0])) is False


def test_a_changed_axis_counts() -> None:
    axis: Any = Tensor(0)
    run = jit(lambda x: ops.expand_dims(x, axis), fullgraph=True)
    assert ops.expand_dims(X, axis).shape == run(X).shape == (1, 2, 3, 4)
    axis[()] = 2
    assert ops.expand_dims(X, axis).shape == run(X).shape == (2, 3, 1, 4)


def test_a_number_of_a_tensor_has_no_gradient() -> None:
    def f(x: Tensor) -> Tensor:
        return (x * float(x.sum())).sum()

    _compare(lambda x: ms.grad(f)(x), Tensor([1.0, 2.0]))


class _Layers(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.CellList([nn.ReLU(), nn.Tanh(), nn.Sigmoid()])

    def construct(self, x: Tensor, n: Tensor) -> Any:
        layer, items = self.layers[n], (x, x * 2, x * 3)
        return self.layers[n - 1](x), layer(x + 1), items[int(n)], (5, 6, 7)[int(n) - 2]


def test_a_tensor_chooses_an_item() -> None:
    run = jit(_Layers(), fullgraph=True)
    for n in (0, 1, 2):
        for found, wanted in zip(run(X, Tensor(n)), _Layers()(X, Tensor(n)), strict=True):
            np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-5)
    assert run.compile_count == 1


def test_a_tensor_chooses_the_item_of_a_list_that_is_written() -> None:
    def f(x: Tensor, n: Tensor) -> Any:
        items = [x, x * 2, x * 3]
        items[n] = x + 10
        items[int(n) - 1] += 1
        items[-1] *= 2
        return items

    run = jit(f, fullgraph=True)
    for n in (0, 1, 2):
        _same(run(X, Tensor(n)), f(X, Tensor(n)))
    assert run.compile_count == 1


def test_operators_that_repeat_functions_are_loops_of_the_graph() -> None:
    def f(x: Tensor, n: Tensor) -> Any:
        y = ops.WhileLoop()(lambda v: v.sum() < 99, lambda v: v * 2 + 1, x)
        return y, ops.ForiLoop()(n, n * 3, lambda i, v: v * i, x)

    for level in (True, False):
        run = jit(f, fullgraph=level)
        for x in (X, X * 0):
            _same(run(x, N), f(x, N))
        assert run.compile_count == 1


def _one_sided(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = x
    return y  # pyright: ignore[reportPossiblyUnboundVariable]


def _of_two_dtypes(x: Tensor) -> Tensor:
    y = x.astype(ms.int32)
    if x.sum() > 0:
        y = x
    return y


def _returns_two_dtypes(x: Tensor) -> Tensor:
    return x if x.sum() > 0 else x.astype(ms.int32)


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (_one_sided, UnboundLocalError),
        (_of_two_dtypes, TypeError),
        (_returns_two_dtypes, TypeError),
    ],
)
def test_sides_that_do_not_fit_raise_what_mindspore_does(
    f: Callable[[Tensor], Tensor], error: type[Exception]
) -> None:
    with pytest.raises(error) as e:
        jit(f, fullgraph=True)(X)
    assert isinstance(e.value, CaptureError)
    _same(jit(f)(X), f(X))


def test_steps_along_axes_are_known_in_a_graph() -> None:
    _compare(lambda x: (x.strides, x.sum(0).strides, x.sum().strides), X)


def test_a_tensor_decides_about_an_error() -> None:
    def checked(x: Tensor) -> Tensor:
        if x.max() > 50:
            raise ValueError("too large")
        return x

    def through(x: Tensor) -> Tensor:
        assert x.min() >= 0, "negative"
        for i in range(2):
            if x[i] > 9:
                raise RuntimeError(f"item {i}")
            x = x + 1
        steps = 0
        while x.sum() < 100:
            x, steps = checked(x) * 2, steps + 1
            if steps > 5:
                raise OverflowError("too many steps")
        return x if steps > 0 else checked(x / 2)

    compiled = jit(through, fullgraph=True)
    gradient = jit(ms.grad(lambda x: through(x).sum()), fullgraph=True)
    for values in ([1, 2], [9, 2], [3, 9], [-1, 0], [0, -2], [0, 0], [8, 8]):
        x = Tensor(values, ms.float32)
        try:
            expected = through(x)
        except Exception as error:
            for call in (compiled, gradient):
                with pytest.raises(
                    type(error), match=str(error).split("\n")[0]
                ):  # pytest adds to it
                    call(x)
        else:
            assert (compiled(x) == expected).all()
            assert gradient(x).shape == x.shape
    assert compiled.compile_count == 1


KEPT: dict[str, tuple[Any, Callable[[Any, Any], object]]] = {
    "deque": (deque([1]), lambda kept, v: kept.append(v)),
    "deque, several": (deque([1]), lambda kept, v: kept.extend([2, v])),
    "Counter": (Counter(a=1), lambda kept, v: kept.update(a=v)),
    "UserList": (UserList([1]), lambda kept, v: kept.append(v)),
    "ChainMap": (ChainMap({"a": 1}), lambda kept, v: kept.update(a=v)),
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("value", ["tensor", "number", "size"])
def test_code_that_is_not_interpreted_leaves_no_result_of_the_capture(
    name: str, value: str
) -> None:
    kept, put = KEPT[name]
    before = repr(kept)

    def f(x: Tensor) -> Tensor:
        total = x.sum()
        put(kept, total if value == "tensor" else float(total) if value == "number" else len(x))
        return x * 2

    strict = jit(f, fullgraph=True)
    for n in (2, 3, 4):
        try:
            strict(ops.ones(n))
        except CaptureError as e:
            assert value != "size" and "from outside" in str(e)
            assert "fix: keep it in a list or dict, or return it" in str(e)
            assert repr(kept) == before
        else:
            items = list(kept.values()) if isinstance(kept, (dict, ChainMap)) else list(kept)
            assert value == "size" and type(items[-1]) is int
