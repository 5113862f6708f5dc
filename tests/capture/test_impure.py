"""Functions whose results differ from call to call: guarded, or refused, never frozen."""

from __future__ import annotations

import contextvars
import datetime
import functools
import io
import itertools
import os
import pathlib
import random
import secrets
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph.errors import CaptureError

X = Tensor(np.ones(2, np.float32))
STREAM = np.random.default_rng(3)
LEGACY = np.random.RandomState(1)
PYTHON = random.Random(4)
LINES = io.StringIO("5\n6\n")
COUNT = itertools.count()
VARIABLE = contextvars.ContextVar("VARIABLE", default=2.0)


def clock_in_a_generator() -> Iterator[float]:
    yield time.time()


class DrawsInInit(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = np.random.rand(2).astype("float32")

    def construct(self, x: Tensor) -> Tensor:
        return x * Tensor(self.w)


def read_with_open(x: Tensor) -> Tensor:
    return x * len(open("/dev/null").read())


REFUSED: dict[str, Callable[[Tensor], Any]] = {
    "random.random()": lambda x: x * random.random(),
    "random.randint()": lambda x: x * random.randint(1, 5),
    "random.seed()": lambda x: random.seed(0),
    "Random.gauss()": lambda x: x * PYTHON.gauss(0, 1),
    "random.gauss()": lambda x: x * sum(map(random.gauss, [0], [1])),
    "random.choice()": lambda x: x * functools.partial(random.choice, [1, 2])(),
    "numpy.random.rand()": lambda x: x * np.random.rand(),
    "Generator.normal()": lambda x: x * STREAM.normal(),
    "RandomState.rand()": lambda x: x * LEGACY.rand(),
    "default_rng() without a seed": lambda x: x * np.random.default_rng().normal(),
    "of a generator from outside": lambda x: x * np.random.default_rng(STREAM).normal(),
    "time.time()": lambda x: x * time.time(),
    "time.perf_counter()": lambda x: x * time.perf_counter(),
    "time.localtime()": lambda x: x * time.localtime().tm_year,
    "datetime.now()": lambda x: x * datetime.datetime.now().second,
    "date.today()": lambda x: x * datetime.date.today().day,
    "open()": read_with_open,
    "input()": lambda x: x * float(input()),
    "PosixPath.read_text()": lambda x: x * len(pathlib.Path("/dev/null").read_text()),
    "StringIO.readline()": lambda x: x * float(LINES.readline()),
    "os.listdir()": lambda x: x * len(os.listdir()),
    "os.urandom()": lambda x: x * os.urandom(1)[0],
    "uuid.uuid4()": lambda x: x * (uuid.uuid4().int % 7),
    "secrets.randbelow()": lambda x: x * secrets.randbelow(5),
    "os.environ.setdefault()": lambda x: os.environ.setdefault("TVMGRAPH_TEST", "1"),
    "ms.set_seed()": lambda x: ms.set_seed(0),
    "taking items of a count": lambda x: x * next(COUNT),
    "numpy.random.rand": lambda x: DrawsInInit()(x),
    "time.time": lambda x: x * sum(clock_in_a_generator()),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_impure_calls_are_refused_by_name(name: str) -> None:
    before = random.getstate(), STREAM.bit_generator.state, LINES.tell()
    with pytest.raises(CaptureError) as raised:
        ms.jit(REFUSED[name], fullgraph=True)(X)
    assert name in raised.value.message
    assert "test_impure.py:" in str(raised.value.at)
    assert raised.value.fix
    assert before == (random.getstate(), STREAM.bit_generator.state, LINES.tell())


class Noisy(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return x * random.random()


def test_cells_in_graph_mode_and_gradients_refuse_as_well() -> None:
    ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
    try:
        with pytest.raises(CaptureError, match=r"random\.random\(\)"):
            Noisy()(X)
        with pytest.raises(CaptureError, match=r"random\.random\(\)"):
            ops.GradOperation()(Noisy())(X)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=ms.LAX)


@pytest.mark.parametrize("mode", ["ast", "bytecode"])
@pytest.mark.parametrize("name", ["random.random()", "Generator.normal()", "os.urandom()"])
def test_they_run_natively_where_a_function_may_run_in_pieces(name: str, mode: str) -> None:
    compiled = ms.jit(REFUSED[name], capture_mode=mode)
    seen = {tuple(compiled(X).asnumpy().astype(np.float64).tolist()) for _ in range(4)}
    assert len(seen) > 1
    assert name in compiled.explain()


def test_trace_refuses_too() -> None:
    with pytest.raises(CaptureError, match=r"time\.time\(\)"):
        ms.jit(REFUSED["time.time()"], capture_mode="trace")(X)


OWN: dict[str, Callable[[Tensor], Any]] = {
    "default_rng": lambda x: x * np.random.default_rng(0).normal(),
    "seed by keyword": lambda x: x * np.random.default_rng(seed=7).normal(),
    "Random": lambda x: x * random.Random(0).random(),
    "Generator": lambda x: x * np.random.Generator(np.random.PCG64(3)).normal(),
    "spawned": lambda x: x * np.random.default_rng(5).spawn(1)[0].normal(),
    "StringIO": lambda x: x * float(io.StringIO("5\n6\n").readline()),
    "gmtime of a number": lambda x: x * time.gmtime(0).tm_year,
    "iterators": lambda x: x * next(iter([4.0])) + sum(zip([1, 2]).__next__()),
    "path arithmetic": lambda x: x * len(os.path.join("a", pathlib.Path("b").name)),
}


@pytest.mark.parametrize("name", OWN)
def test_what_a_function_makes_for_itself_is_constant(name: str) -> None:
    compiled = ms.jit(OWN[name])
    for _ in range(2):
        np.testing.assert_array_equal(compiled(X).asnumpy(), OWN[name](X).asnumpy())
    assert compiled.compile_count == 1


GUARDED: dict[str, Callable[[Tensor], Any]] = {
    "os.environ['TVMGRAPH_TEST']": lambda x: x * float(os.environ["TVMGRAPH_TEST"]),
    "os.getenv('TVMGRAPH_TEST', '9')": lambda x: x * float(os.getenv("TVMGRAPH_TEST", "9")),
    "os.environ['TVMGRAPH_TEST', '9']": lambda x: x * float(os.environ.get("TVMGRAPH_TEST", "9")),
    "os.environ": lambda x: x * float(dict(os.environ)["TVMGRAPH_TEST"]),
}  # fmt: skip


@pytest.mark.parametrize("name", GUARDED)
def test_the_environment_is_guarded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = ms.jit(GUARDED[name])
    monkeypatch.setenv("TVMGRAPH_TEST", "3")
    for _ in range(3):
        np.testing.assert_array_equal(compiled(X).asnumpy(), [3, 3])
    assert compiled.compile_count == 1
    monkeypatch.setenv("TVMGRAPH_TEST", "4")
    np.testing.assert_array_equal(compiled(X).asnumpy(), [4, 4])
    assert f"{name} changed" in compiled.explain()
    if name != "os.environ":  # a variable that the function does not read
        monkeypatch.setenv("TVMGRAPH_OTHER", "5")
        compiled(X)
        assert compiled.compile_count == 2


def test_a_variable_that_is_looked_for_is_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = ms.jit(lambda x: x * 2 if "TVMGRAPH_TEST" in os.environ else x)
    monkeypatch.delenv("TVMGRAPH_TEST", raising=False)
    assert compiled(X).asnumpy()[0] == 1
    monkeypatch.setenv("TVMGRAPH_TEST", "")
    assert compiled(X).asnumpy()[0] == 2


def test_files_context_variables_and_processes_are_guarded(tmp_path: pathlib.Path) -> None:
    flag = tmp_path / "flag"

    def f(x: Tensor) -> Tensor:
        y = x * 2 if os.path.exists(flag) else x
        return y * VARIABLE.get() + (1 if flag.is_file() else 0)

    compiled = ms.jit(f)
    assert compiled(X).asnumpy()[0] == 2
    flag.touch()
    assert compiled(X).asnumpy()[0] == 5
    token = VARIABLE.set(3.0)
    try:
        assert compiled(X).asnumpy()[0] == 7
    finally:
        VARIABLE.reset(token)
    assert compiled(X).asnumpy()[0] == 5


# ---- Cells that a compiled function makes -------------------------------------------------------


def values_of(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)):
        return [values_of(r) for r in result]
    return result.asnumpy().astype(np.float64).tolist()


class Block(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(2, 2, weight_init="truncatedNormal")
        self.norm = nn.BatchNorm1d(2)
        self.norm.set_train()

    def construct(self, x: Tensor) -> Any:
        return self.norm(self.dense(x)), self.norm.moving_mean + 0


def makes_cells(x: Tensor) -> Any:
    first = Block()(x)
    noise = ops.rand(2)
    return first, noise, nn.Dense(2, 2, dtype=ms.float16)(x.astype(ms.float16))


def differentiates(x: Tensor) -> Any:
    net = nn.Dense(2, 1)
    return ops.grad(lambda t: (net(t) ** 2).sum(), 0, net.trainable_params())(x)


def initial_tensor(x: Tensor) -> Any:
    return x + Tensor(shape=(2, 2), dtype=ms.float32, init=ms.common.initializer.Normal(1.0))


POINTS = Tensor(np.array([[1, 2], [3, 5.0]], np.float32))


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("function", [makes_cells, differentiates, initial_tensor])
def test_cells_made_inside_draw_anew_as_in_eager_code(function: Any, level: str) -> None:
    ms.set_seed(1)
    expected = [values_of(function(POINTS)) for _ in range(3)] + [values_of(ops.rand(2))]
    ms.set_seed(1)
    compiled = ms.jit(function, jit_level=level)
    found = [values_of(compiled(POINTS)) for _ in range(3)] + [values_of(ops.rand(2))]
    assert compiled.compile_count == 1
    assert found[0] != found[1]
    for a, b in zip(itertools.chain(*map(_flat, expected)), itertools.chain(*map(_flat, found))):
        assert a == pytest.approx(b, rel=1e-5, abs=1e-6)


def _flat(value: Any) -> Iterator[float]:
    if isinstance(value, list):
        for v in value:
            yield from _flat(v)
    else:
        yield value


class Lazy(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense: Any = None

    def construct(self, x: Tensor) -> Tensor:
        if self.dense is None:
            self.dense = nn.Dense(2, 2)
        return self.dense(x)


def test_a_cell_that_is_kept_keeps_what_it_drew() -> None:
    results = []
    for wrap in (lambda cell: cell, ms.jit):
        ms.set_seed(2)
        cell = Lazy()
        run = wrap(cell)
        results.append([values_of(run(POINTS)) for _ in range(3)])
        results[-1].append(values_of(cell.dense.weight))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
    assert results[1][0] == results[1][1]


KEPT: list[Any] = []


def keeps_in_a_list(x: Tensor) -> Tensor:
    net = nn.Dense(2, 2)
    KEPT.append(net)
    return net(x)


def made_under_a_condition(x: Tensor) -> Tensor:
    return nn.Dense(2, 2)(x) if x.sum() > 0 else x


def looks_at_elements(x: Tensor) -> Tensor:
    return x * float(nn.Dense(1, 1).weight.asnumpy()[0, 0])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (keeps_in_a_list, "a Dense that a compiled function makes is stored"),
        (made_under_a_condition, "drawn where a tensor decides"),
        (looks_at_elements, "changed or drawn here is not known"),
    ],
)
def test_what_cannot_be_drawn_anew_is_refused(function: Any, message: str) -> None:
    with pytest.raises(CaptureError, match=message) as raised:
        ms.jit(function, fullgraph=True)(POINTS)
    assert raised.value.fix
    assert "test_impure.py:" in str(raised.value.at)
    assert not KEPT


class Logging(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.items = [1.0, 2.0]
        self.log: list[Any] = []

    def construct(self, x: Tensor) -> Tensor:
        self.log.append(x.shape)
        self.items[0] = self.items[0] + 1
        return x * self.items[0] + len(self.log)


KEEPING = Logging()


def makes_lists(x: Tensor) -> Any:
    cell = Logging()
    return cell(x), cell(x), len(cell.log), cell.items[0]


def returns_a_list(x: Tensor) -> Any:
    cell = Logging()
    cell(x)
    return cell.items


def hands_a_list_on(x: Tensor) -> Any:
    KEEPING.items = Logging().items
    KEEPING.items.append(1.0)
    return x, [*KEEPING.items]


@pytest.mark.parametrize("function", [makes_lists, returns_a_list, hands_a_list_on])
def test_lists_of_cells_made_inside_are_made_anew(function: Any) -> None:
    compiled = ms.jit(function)
    for _ in range(4):
        KEEPING.items = []
        expected, kept = str(function(POINTS)), KEEPING.items
        KEEPING.items = []
        assert str(compiled(POINTS)) == expected and KEEPING.items == kept
    one_graph = function is makes_lists
    assert compiled.compile_count == one_graph and ("break" in compiled.explain()) != one_graph
