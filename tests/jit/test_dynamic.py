"""Numbers and sizes that vary: few compiles, and the results of code compiled for each value."""

from __future__ import annotations

import gc
import math
import pickle
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, assert_max_compiles, jit, nn, ops

RNG = np.random.default_rng(0)
SCALE = 1.0


def normal(*shape: int) -> Tensor:
    return Tensor(RNG.standard_normal(shape).astype(np.float32))


def same(got: Any, want: Any, tolerance: float = 1e-4) -> None:
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w, tolerance)
        return
    assert type(got) is type(want)
    if isinstance(want, Tensor):
        assert got.aval is want.aval
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=tolerance, atol=tolerance)
    else:
        assert got == want


def check(fn: Callable[..., Any], calls: list[tuple[Any, ...]], limit: int) -> Any:
    """Calls a function eagerly and compiled, and counts the compiles."""
    f = jit(fn)
    with assert_max_compiles(limit, f):
        for args in calls:
            same(f(*args), fn(*args))
    return f


# ---- numbers ------------------------------------------------------------------------------------


def test_fifty_numbers_compile_twice() -> None:
    x = normal(3, 4)
    f = check(lambda x, a: x * a + 1, [(x, 0.37 * i) for i in range(50)], 2)
    assert "number argument 0" in f.explain()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "bool"])
@pytest.mark.parametrize("numbers", [(2, 3, -4), (2.5, 0.1, 1e-3)])
def test_numbers_stay_weak(dtype: str, numbers: tuple[Any, ...]) -> None:
    x = Tensor(np.array([0, 1, 1], dtype))
    check(lambda x, a: (x + a, a - x, x * a), [(x, a) for a in numbers], 2)


def test_a_number_that_does_not_fit_is_the_error_of_eager_code() -> None:
    x = Tensor(np.array([1, 2], np.int8))
    f = jit(lambda x, a: x + a)
    f(x, 1), f(x, 2)
    for call in (f, f.fn):
        with pytest.raises(ValueError, match="does not fit int8"):
            call(x, 300)
    same(f(x, 3), x + 3)


def test_python_arithmetic_is_python_s() -> None:
    def fn(x: Tensor, n: int, s: float) -> Any:
        k = (n * 3 + 1) // 2
        return x * (math.sqrt(s) / n) + k, n % 4, float(n), k, round(s, 1), -s, abs(n - 7)

    calls = [(normal(2), n, s) for n, s in ((3, 2.0), (4, 0.5), (9, 7.25), (2**70, 1.0))]
    check(fn, calls, 4)


def test_decisions_are_conditions() -> None:
    def fn(x: Tensor, step: int) -> Tensor:
        if step % 10 == 0:
            return x - step
        return x * step if step < 100 else x / step

    x = normal(3)
    check(fn, [(x, i) for i in (1, 2, 3, 10, 20, 30, 101, 102, 4, 40, 150)], 5)


def unrolled(x: Tensor, n: int) -> Any:
    return sum([x * i for i in range(n)])


def test_a_number_that_must_be_constant_stays_one() -> None:
    x = normal(4, 3)
    check(lambda x, axis: ops.softmax(x, axis), [(x, 0), (x, 1), (x, 0), (x, -1)], 3)
    f = check(unrolled, [(x, 2), (x, 3), (x, 2)], 2)
    assert "number argument 0 stays constant: needed at test_dynamic.py:" in f.explain()
    check(lambda x, shape: x.reshape(shape), [(x, (2, 6)), (x, (3, 4)), (x, (2, 6))], 2)


def test_bools_are_code() -> None:
    f = check(lambda x, b: x * 2 if b else x, [(normal(2), b) for b in (True, False, True)], 2)
    assert "symbolic:" not in f.explain()


def test_numbers_inside_containers_and_keywords() -> None:
    def fn(x: Tensor, options: dict[str, Any], *, shift: float = 0.0) -> Tensor:
        return x * options["scale"][0] + shift

    f = jit(fn)
    x = normal(3)
    with assert_max_compiles(2, f):
        for i in range(6):
            same(f(x, {"scale": [0.5 * i]}, shift=i * 0.25), x * (0.5 * i) + i * 0.25)


class Counter(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.n = 0
        self.scale = 0.5

    def construct(self, x: Tensor) -> Tensor:
        self.n += 1
        return x * self.n * self.scale


def test_counters_do_not_compile_every_call() -> None:
    net = Counter()
    f = jit(net)
    with assert_max_compiles(3, f):
        for i in range(1, 20):
            net.scale = i / 4
            same(f(Tensor([2.0])), Tensor([2.0 * i * i / 4]))
            assert net.n == i and type(net.n) is int


def test_globals_and_closures_that_vary(monkeypatch: pytest.MonkeyPatch) -> None:
    k = 1.0

    def fn(x: Tensor) -> Tensor:
        return x * SCALE + k

    f = jit(fn)
    with assert_max_compiles(3, f):
        for i in range(8):
            monkeypatch.setitem(globals(), "SCALE", 0.5 + i)
            same(f(Tensor([2.0])), Tensor([2.0 * (0.5 + i) + k]))
        for i in range(8):
            k = i + 0.25
            same(f(Tensor([2.0])), Tensor([2.0 * SCALE + k]))


def test_mutable_numbers_are_inputs_at_once() -> None:
    f = jit(lambda x, k: x * k)
    with assert_max_compiles(1, f):
        for i in range(4):
            same(f(Tensor([2.0]), ms.mutable(0.5 * i)), Tensor([i * 1.0]))
    assert ms.mutable(3) == 3 and ms.mutable({"a": [1.5]}) == {"a": [1.5]}
    for bad in ("a", None, np.ones(2)):
        with pytest.raises(TypeError, match="input_data must be one of"):
            ms.mutable(bad)
    with pytest.raises(TypeError, match="dynamic_len must be a bool"):
        ms.mutable([1], 1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="needs a tuple or list"):
        ms.mutable(1, True)


# ---- sizes --------------------------------------------------------------------------------------


def heads(x: Tensor) -> Tensor:
    b, t, c = x.shape
    q = x.reshape(b, t, 4, c // 4).transpose(0, 2, 1, 3)
    scores = ops.softmax(ops.matmul(q, q.swapaxes(-1, -2)) / (c // 4) ** 0.5, -1)
    return ops.matmul(scores, q).transpose(0, 2, 1, 3).reshape(b, t, c)


def loop(x: Tensor) -> Tensor:
    total = x[0]
    for i in range(x.shape[0]):
        total = total + x[i] * i
    return total


PROGRAMS: dict[str, Callable[[Tensor], Any]] = {
    "reduce": lambda x: (x.sum(), x.mean(0), x.max(1), ops.var(x, 0)),
    "reshape": lambda x: (x.reshape(-1, 2), x.flatten(), x.view(x.shape[0] * 2, -1)),
    "slices": lambda x: (x[1:], x[:-1] * x[1:], x[-1], x[::-1], x[:, 1:3], x[2:5], x[::2][0]),
    "join": lambda x: (
        ops.concat((x, x, ops.ones((1, 4)))),
        ops.stack((x, x)),
        ops.tile(x, (2, 1)),
    ),
    "split": lambda x: ops.split(x, 2, axis=1),
    "pad": lambda x: ops.pad(x, (1, 2)),
    "sizes": lambda x: (x * len(x) + x.size + x.ndim, x.shape, x.shape[0] / 2, f"{x.ndim}"),
    "create": lambda x: x + ops.zeros(x.shape) + ops.ones((x.shape[0], 1)) + ops.arange(4),
    "range": lambda x: x.T + ops.arange(x.shape[0]),
    "select": lambda x: (ops.where(x > 0, x, 0.0), ops.one_hot(ops.argmax(x, 1), 4)),
    "norm": lambda x: (ops.softmax(x, 0), ops.log_softmax(x, -1), ops.cumsum(x, 0)),
    "parts": lambda x: (
        ops.narrow(x, 0, 1, x.shape[0] - 2),
        ops.chunk(x, 2, 0),
        ops.repeat_interleave(x, 2, 0),
        ops.eye(x.shape[0], dtype=ms.float32) @ x,
    ),
    "sums of sizes": lambda x: (
        x + 1 / (2 * x.shape[0] - 1),
        x * (x.shape[0] + 1) ** 0.5,
        x * ((x.shape[0] + 3) % 2.5),
        x * (-2.0) ** (x.shape[0] % 3),
    ),
    "format": lambda x: x * int(f"{x.shape[0]}"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_sizes_that_vary(name: str) -> None:
    limit = 2 if name != "format" else 3
    sizes = (8, 5, 64) if name != "slices" else (8, 5, 6, 64)
    again = (5, 5, 64, 64, 5)  # the shortest way, kept per size
    f = check(PROGRAMS[name], [(normal(b, 4),) for b in (*sizes, *again)], limit)
    assert f.compile_count == limit


def test_every_size_is_right() -> None:
    f = check(lambda x: ops.relu(x) * 2 + x.sum(), [(normal(b, 4),) for b in range(2, 40)], 2)
    assert "axis 0 of tensor argument 0" in f.explain()


@pytest.mark.parametrize("first", [1, 7])
def test_size_one_is_special_and_right(first: int) -> None:
    check(lambda x, w: x + w, [(normal(b, 4), normal(b, 4)) for b in (first, 7, 1, 3, 1, 9)], 3)
    check(lambda x, w: x * w, [(normal(b, 4), normal(1, 4)) for b in (first, 7, 1, 3, 1, 9)], 3)


def test_sizes_that_meet_a_fixed_one_are_compiled_for_it() -> None:
    w = normal(6, 4)

    def fn(x: Tensor) -> Tensor:
        return x + w if len(x) == 6 else x * 2

    check(fn, [(normal(b, 4),) for b in (6, 3, 5, 6, 9)], 2)
    check(loop, [(normal(b, 4),) for b in (2, 3, 5, 3)], 3)


def test_decisions_by_sizes() -> None:
    table = {8: 1, 5: 2}
    sizes = (8, 5, 16, 17, 9, 8)
    check(lambda x: x * 2 if x.shape[0] > 10 else x * 3, [(normal(b, 2),) for b in sizes], 4)
    check(lambda x: x * table.get(x.shape[0], 7), [(normal(b, 2),) for b in sizes], 5)
    check(lambda x: x if isinstance(x.shape[0], int) else -x, [(normal(b, 2),) for b in sizes], 2)


def test_two_sizes() -> None:
    calls = [(normal(b, t, 16),) for b, t in ((2, 3), (4, 5), (3, 3), (7, 6), (5, 2))]
    check(heads, calls, 3)


def network() -> nn.Cell:
    return nn.SequentialCell(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
        nn.Dense(64, 16), nn.GELU(), nn.Dropout(p=0.25), nn.Dense(16, 3),
    )  # fmt: skip


def test_networks() -> None:
    net = network()
    net.set_train(False)
    check(net, [(normal(b, 1, 8, 8),) for b in (8, 5, 13)], 2)
    check(nn.LSTM(4, 8, batch_first=True), [(normal(b, 3, 4),) for b in (4, 3, 9)], 2)
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    layer.set_train(False)
    check(layer, [(normal(b, 5, 16),) for b in (4, 3, 9)], 2)
    attention = nn.MultiheadAttention(16, 4, batch_first=True)
    attention.set_train(False)
    check(lambda x: attention(x, x, x)[0], [(normal(b, 5, 16),) for b in (4, 3, 9)], 2)


def train(compiled: bool) -> tuple[list[float], Any]:
    """Trains on batches of four sizes; returns the losses and a statistic, and the step."""
    ms.set_seed(3)
    net, loss = network(), nn.CrossEntropyLoss()
    for i, p in enumerate(net.get_parameters()):
        p.set_data(Tensor(np.random.default_rng(i).normal(0.1, 0.1, p.shape).astype(np.float32)))
    net.set_train(True)
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    forward = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

    def step(x: Tensor, y: Tensor) -> Tensor:
        value, grads = forward(x, y)
        optimizer(grads)
        return value

    run: Any = jit(step) if compiled else step
    rng = np.random.default_rng(7)
    found = []
    for b in (8, 5, 3, 12):
        x = Tensor(rng.standard_normal((b, 1, 8, 8)).astype(np.float32))
        found.append(run(x, Tensor(rng.integers(0, 3, b).astype(np.int32))).item())
    return [*found, float(net[1].moving_variance.asnumpy().mean())], run


def test_a_training_step_with_a_symbolic_batch_follows_eager_code() -> None:
    (eager, _), (compiled, step) = train(False), train(True)
    np.testing.assert_allclose(compiled, eager, rtol=1e-4)
    assert step.compile_count == 2


def test_gradients_around_a_jitted_piece() -> None:
    w = normal(4, 6)
    piece = jit(lambda x, w: ops.tanh(x @ w).mean(0))
    whole = ms.grad(lambda x, w: piece(x, w).sum(), (0, 1))
    eager = ms.grad(lambda x, w: piece.fn(x, w).sum(), (0, 1))
    for b in (3, 5, 8):
        x = normal(b, 4)
        same(whole(x, w), eager(x, w))
    assert piece.compile_count == 2


# ---- declared -----------------------------------------------------------------------------------


def test_set_inputs_declares_and_checks() -> None:
    net = nn.Dense(3, 4)
    net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32))
    f = jit(net)
    with assert_max_compiles(1, f):
        for b in (2, 7, 30):
            assert f(normal(b, 3)).shape == (b, 4)
    with pytest.raises(
        ValueError, match=r"'x' was declared as float32\[\?,3\], but is float32\[2,4\]"
    ):
        f(normal(2, 4))
    with pytest.raises(TypeError, match="but is float64"):
        f(Tensor(np.ones((2, 3))))
    with pytest.raises(TypeError, match="cannot be declared by a function"):
        net.set_inputs(normal)


def test_symbols_say_which_sizes_an_axis_has() -> None:
    odd, equal = ms.Symbol(divisor=8, remainder=1), ms.Symbol(max=32, min=4, unique=True)
    declared = Tensor(shape=(None, odd, odd, equal, equal), dtype=ms.float32)

    class Net(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return x * 2 + x.shape[1]

    net = Net()
    net.set_inputs(pickle.loads(pickle.dumps(declared)))
    f = jit(net)
    with assert_max_compiles(1, f):
        for shape in ((3, 9, 17, 32, 32), (8, 25, 9, 30, 30), (2, 17, 17, 4, 4)):
            same(f(ops.ones(shape)), ops.ones(shape) * 2 + shape[1])
        for wrong in ((8, 24, 9, 30, 30), (8, 25, 1, 30, 30), (8, 25, 9, 33, 33), (8, 25, 9, 3, 3)):
            with pytest.raises(ValueError, match=r"\[\?,8\*n\+1,8\*n\+1,symbol\d+ >=4 <=32"):
                f(ops.ones(wrong))
        with pytest.raises(ValueError, match=r"called 'symbol\d+ >=4 <=32' differ: 30"):
            f(ops.ones((8, 25, 9, 30, 31)))
    again = jit(Net(), input_signature=(declared,))
    with pytest.raises(ValueError, match="was declared"):  # at the first call, too
        again(ops.ones((2, 8, 9, 30, 30)))


def test_symbols_are_checked() -> None:
    assert ms.Symbol(max=32, min=3, divisor=8, remainder=1).to_dict() == {
        "max": 32, "divisor": 8, "remainder": 1
    }  # fmt: skip
    for wrong in ({"min": 0}, {"divisor": 0}, {"divisor": 2, "remainder": 2}):
        with pytest.raises(ValueError):
            ms.Symbol(**wrong)
    for wrong in ({"max": "3"}, {"unique": 1}):
        with pytest.raises(TypeError):
            ms.Symbol(**wrong)


def any_rows(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x + 1, y * 2


@pytest.mark.parametrize("order", ["above jit", "below jit"])
def test_enable_dynamic_declares_arguments(order: str) -> None:
    dynamic = ms.enable_dynamic(y=Tensor(shape=[None, 3], dtype=ms.float32))
    function: Any = types.FunctionType(any_rows.__code__, globals())
    f = dynamic(jit(function)) if order == "above jit" else jit(dynamic(function))
    x = normal(2, 3)
    with assert_max_compiles(1, f):
        for n in (2, 4, 5):
            y = normal(n, 3)
            same(f(x, y=y), any_rows(x, y))
    with pytest.raises(ValueError, match=r"'y' was declared as float32\[\?,3\]"):
        f(x, normal(2, 4))


def test_enable_dynamic_of_a_method() -> None:
    class Net(nn.Cell):
        @ms.enable_dynamic(x=Tensor(shape=[None, 3], dtype=ms.float32))
        @jit
        def construct(self, x: Tensor) -> Tensor:
            return x * 2

    net = Net()
    assert [net(normal(n, 3)).shape for n in (2, 4)] == [(2, 3), (4, 3)]
    with pytest.raises(ValueError, match="was declared"):
        net(normal(2, 4))


def test_enable_dynamic_is_checked() -> None:
    placeholder = Tensor(shape=[None], dtype=ms.float32)
    for kind, call in (
        (ValueError, lambda: ms.enable_dynamic()),
        (TypeError, lambda: ms.enable_dynamic(y=normal(3))),
        (TypeError, lambda: ms.enable_dynamic(y=3)),
        (ValueError, lambda: ms.enable_dynamic(z=placeholder)(any_rows)),
        (ValueError, lambda: ms.enable_dynamic(x=placeholder)(nn.ReLU())),
    ):
        with pytest.raises(kind):
            call()


def test_set_inputs_without_fixed_sizes_takes_a_number() -> None:
    class Net(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return x * 2 + x.ndim

    for declared in ([None], [None, None]):
        net = Net()
        net.set_inputs(Tensor(shape=declared, dtype=ms.float32))
        f = jit(net)
        for x in (normal(*[3] * len(declared)), Tensor(5.0), normal(*[2] * len(declared))):
            same(f(x), x * 2 + x.ndim)
    net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32))
    with pytest.raises(ValueError, match=r"declared as float32\[\?,3\], but is float32\[\]"):
        jit(net)(Tensor(5.0))


def test_set_inputs_of_a_construct_with_any_number_of_arguments() -> None:
    class Net(nn.Cell):
        def construct(self, *inputs: Any) -> Tensor:
            return ops.sum(inputs[0] * inputs[1], inputs[2]).astype(inputs[3])

    net = Net()
    net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32), normal(3), 1, ms.float64)
    f = jit(net)
    with assert_max_compiles(1, f):
        for b in (2, 7):
            assert f(normal(b, 3), normal(3), 1, ms.float64).shape == (b,)
    with pytest.raises(ValueError, match=r"'inputs\[1\]' was declared as float32\[3\]"):
        f(normal(2, 3), normal(4), 1, ms.float64)


def test_set_inputs_declares_a_dtype_by_itself() -> None:
    class Cast(nn.Cell):
        def construct(self, x: Tensor, dtype: Any) -> Tensor:
            return x.new_ones(x.shape, dtype)

    net = Cast()
    net.set_inputs(Tensor(shape=[None], dtype=ms.float32), ms.int32)
    for f in (net, jit(net)):
        y = f(ops.ones(3), ms.int32)
        assert y.dtype == ms.int32 and y.asnumpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("mode", ["graph", "construct"])
def test_set_inputs_of_networks_that_compile_themselves(mode: str) -> None:
    class Net(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return x * 2

    class Jitted(Net):
        construct = jit(Net.construct)

    net = Net() if mode == "graph" else Jitted()
    net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32))
    if mode == "graph":
        ms.set_context(mode=ms.GRAPH_MODE)
    try:
        with assert_max_compiles(1):
            same(net(normal(2, 3)).shape, (2, 3))
            same(net(normal(5, 3)).shape, (5, 3))
        with pytest.raises(ValueError, match="was declared as"):
            net(normal(2, 4))
    finally:
        ms.reset_context()


def test_input_signature_with_names() -> None:
    pair = (Tensor(shape=["n", 3], dtype=ms.float32), Tensor(shape=["n"], dtype=ms.float32))
    f = jit(lambda x, y: x * y[:, None], input_signature=pair)
    with assert_max_compiles(1, f):
        assert f(normal(4, 3), normal(4)).shape == (4, 3)
        assert f(normal(6, 3), normal(6)).shape == (6, 3)
    with pytest.raises(ValueError, match="axes called 'n' differ: 4 in 'x', 3 in 'y'"):
        f(normal(4, 3), normal(3))


def test_dynamic_takes_every_size_at_once() -> None:
    for value in (1, True):
        f = jit(lambda x, w: ops.relu(x @ w), dynamic=value)
        with assert_max_compiles(1, f):
            for m, k, n in ((3, 4, 5), (7, 6, 9), (2, 8, 3)):
                x, w = normal(m, k), normal(k, n)
                same(f(x, w), ops.relu(x @ w))
    with pytest.raises(ValueError, match="dynamic"):
        jit(lambda x: x, dynamic=2)


# ---- bounds -------------------------------------------------------------------------------------


def test_caches_are_bounded_and_keep_no_cell() -> None:
    f = jit(lambda x, k: x * k)
    for i in range(2000):
        f(Tensor([1.0]), float(i))
    assert len(f.entries) < 100 and f.compile_count == 2
    net = Counter()
    g = jit(net)
    g(Tensor([1.0])), g(Tensor([1.0])), g(Tensor([1.0]))
    ref = weakref.ref(net)
    del net, g
    gc.collect()
    assert ref() is None


def test_threads_with_sizes_and_numbers_of_their_own() -> None:
    f = jit(lambda x, k: (x * k).sum(0) + x.shape[0])
    wrong: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(60):
            n, k = int(rng.integers(1, 20)), float(rng.normal())
            x = rng.standard_normal((n, 3)).astype(np.float32)
            want = (x * np.float32(k)).sum(0) + n
            if not np.allclose(f(Tensor(x), k).asnumpy(), want, atol=1e-4):
                wrong.append((n, k))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert f.compile_count <= 5


def test_sizes_that_weights_fix_are_constants() -> None:
    dense, conv = nn.Dense(7, 5), nn.Conv2d(3, 4, 3)
    for net, shapes in (
        (dense, [(2, 7), (9, 7), (4, 7)]),
        (conv, [(2, 3, 8, 9), (5, 3, 8, 9), (3, 3, 8, 9)]),
    ):
        f = jit(lambda x, net=net: net(x), dynamic=1)
        with assert_max_compiles(1, f):
            for shape in shapes:
                x = normal(*shape)
                same(f(x), net(x))
        assert "axis 1 of tensor argument 0 stays constant" in f.explain()


def test_numbers_in_tuples_may_differ_and_the_rest_may_not() -> None:
    def scaled(x, pair):
        (scale, steps), word = pair
        for _ in range(steps):
            x = x * scale
        return x + len(word) if word else x

    compiled, x = jit(scaled), Tensor([1.0, 2.0])
    pairs = [((s / 4, n), w) for w in ("ab", "abc", None) for n in (1, 2) for s in range(6)]
    for pair in [*pairs, *reversed(pairs)]:
        np.testing.assert_array_equal(compiled(x, pair).asnumpy(), scaled(x, pair).asnumpy())
    before = compiled.compile_count
    for s in range(9):
        pair = ((s / 8, 2), "abc")
        np.testing.assert_array_equal(compiled(x, pair).asnumpy(), scaled(x, pair).asnumpy())
    assert compiled.compile_count == before


def test_a_tuple_of_the_users_class_is_not_gone_through() -> None:
    gone_through: list[int] = []

    class Pair(tuple):
        def __iter__(self):
            gone_through.append(1)
            return super().__iter__()

    compiled, x = jit(lambda x, pair: x * pair[0]), Tensor([1.0, 2.0])
    for n in range(6):
        assert compiled(x, (n / 4, 1)).tolist() == [n / 4, n / 2]
    for n in range(6):
        assert compiled(x, Pair((n / 4, 1))).tolist() == [n / 4, n / 2]
    assert not gone_through
