"""Gradients, state, effects, guards and threads of functions with control flow."""

from __future__ import annotations

import gc
import linecache
import threading
import types
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, jit, nn, ops
from tvmgraph.capture import capture, function_source
from tvmgraph.capture.collector import no_collection
from tvmgraph.eager import evaluate
from tvmgraph.errors import CaptureError
from tvmgraph.graph import check, parse
from tvmgraph.graph.simplify import simplify


def branch(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = ops.exp(x)
    else:
        y = x * x * x
    return y.sum()


def loop(x: Tensor) -> Tensor:
    s = x
    while s.sum() < 20:
        s = s * x + 1
    return s.sum()


def exits(x: Tensor) -> Tensor:
    for i in range(12):
        if x.sum() > 30:
            return (x * 2).sum()
        if x[0] > 2:
            x = x * 1.5
            continue
        x = x + ops.sin(x) + i
    return x.sum()


def nested(x: Tensor) -> Tensor:
    total = x * 0
    for _ in range(3):
        y = x
        while y.sum() < 8:
            if y[0] > 1.2:
                y = y * 1.5
            else:
                y = y + x
        total = total + y
    return total.sum()


def no_iteration(x: Tensor) -> Tensor:
    while x.sum() > 1e6:
        x = x * 0.5
    return (x * x).sum()


@pytest.mark.parametrize("fn", [branch, loop, exits, nested, no_iteration])
@pytest.mark.parametrize("values", [[1.5, 1.25], [0.9, 2.5], [3.0, 0.4]])
def test_gradient_is_the_eager_one(fn: Any, values: list[float]) -> None:
    x = Tensor(np.array(values, np.float32))
    expected = ms.grad(fn)(x).asnumpy()
    for compiled in (ms.grad(jit(fn)), jit(ms.grad(fn))):
        np.testing.assert_allclose(compiled(x).asnumpy(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("fn", [branch, loop, nested])
def test_second_derivatives(fn: Any) -> None:
    def second(f: Any) -> Any:
        return ms.grad(lambda v: (ms.grad(f)(v) ** 2).sum())

    x = Tensor([1.5, 1.25])
    expected = second(fn)(x).asnumpy()
    for compiled in (second(jit(fn)), jit(second(fn))):
        np.testing.assert_allclose(compiled(x).asnumpy(), expected, rtol=1e-4)


def test_third_derivative_through_a_loop() -> None:
    def f(x: Tensor) -> Tensor:
        s = x
        while s.sum() < 9:
            s = s * x + ops.sin(x)
        return s.sum()

    def third(x: Tensor) -> Tensor:
        return ms.grad(lambda a: ms.grad(lambda b: ms.grad(f)(b).sum())(a).sum())(x)

    x = Tensor([1.5, 1.25])
    np.testing.assert_allclose(jit(third)(x).asnumpy(), third(x).asnumpy(), rtol=1e-4)


def test_gradient_of_a_long_loop() -> None:
    def f(x: Tensor, n: Tensor) -> Tensor:
        i = 0
        while i < n:
            x = x * 1.0001 + ops.sin(x) * 1e-4
            i += 1
        return x.sum()

    x = Tensor([0.3, 0.5])
    gradient = ms.grad(jit(f))
    for n in (0, 1, 63, 64, 65, 10_000):
        expected = ms.grad(f)(x, Tensor(n)) if n < 100 else None
        actual = gradient(x, Tensor(n)).asnumpy()
        if expected is not None:
            np.testing.assert_allclose(actual, expected.asnumpy(), rtol=1e-4)
    slope = np.ones(2)  # the same recurrence in double precision
    value = x.asnumpy().astype(np.float64)
    for _ in range(10_000):
        slope *= 1.0001 + np.cos(value) * 1e-4
        value = value * 1.0001 + np.sin(value) * 1e-4
    np.testing.assert_allclose(actual, slope, rtol=1e-2)


def test_long_loops_neither_stop_early_nor_overflow() -> None:
    @jit
    def count(n: Tensor) -> Any:
        i = 0
        total = n * 0
        while total < n:
            total = total + 1
            i += 1
        return i

    for n in (0, 1, 2, 3, 1023, 1024, 1025, 30000):
        assert count(Tensor(n)) == n
    assert count.compile_count == 1


@pytest.mark.parametrize("fn", [branch, loop, exits, nested])
def test_graphs_check_print_parse_and_evaluate(fn: Any) -> None:
    x = Tensor([0.9, 2.5])
    graph = check(capture(fn, (x,), {}).graph)
    again = parse(graph.text(full=True))
    assert again.structural_hash() == graph.structural_hash()
    check(simplify(graph))
    for g in (graph, again, simplify(graph)):
        result = evaluate(g, [x.asnumpy()])[0]
        np.testing.assert_allclose(result, fn(x).asnumpy(), rtol=1e-5)


def test_other_regions_give_another_hash() -> None:
    def first(x: Tensor) -> Tensor:
        return x + 1 if x.sum() > 0 else x

    def second(x: Tensor) -> Tensor:
        return x + 2 if x.sum() > 0 else x

    hashes = {capture(f, (Tensor([1.0]),), {}).graph.structural_hash() for f in (first, second)}
    assert len(hashes) == 2


class Stateful(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.total = Parameter(Tensor([0.0]), name="total")
        self.norm = nn.BatchNorm1d(2)
        self.calls = 0
        self.seen: list[int] = []

    def construct(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.seen.append(self.calls)
        if x.sum() > 0:
            ops.assign(self.total, self.total + x.sum())
            x = self.norm(x)
        i = 0
        while self.total < 3 and i < 4:
            self.total = self.total + 1
            i += 1
        return x * self.total


def state_of(net: Stateful) -> list[Any]:
    found = [p.asnumpy().copy() for p in net.get_parameters()]
    return [*found, net.calls, list(net.seen)]


def test_parameters_and_attributes_change_as_in_python() -> None:
    eager, compiled = Stateful(), Stateful()
    eager.set_train()
    compiled.set_train()
    run = jit(compiled)
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = Tensor(rng.standard_normal((4, 2)).astype(np.float32))
        np.testing.assert_allclose(run(x).asnumpy(), eager(x).asnumpy(), rtol=1e-4, atol=1e-5)
        for a, b in zip(state_of(compiled), state_of(eager), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("start", [0.5, 3.0, 100.0])
def test_random_operators_draw_the_eager_stream(start: float) -> None:
    def f(x: Tensor) -> Tensor:
        x = ops.dropout(x, 0.5)
        while x.sum() < 20:
            x = x + ops.rand(2)
            if x[0] > 5:
                x = x + ops.rand(2) * 3
        return x + ops.rand(2)

    results = []
    for function in (f, jit(f)):
        ms.set_seed(5)
        x = Tensor(np.full(2, start, np.float32))
        results.append([function(x).asnumpy() for _ in range(3)])
        results[-1].append(ms.get_rng_state().asnumpy())
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


SETTING = 1


def test_global_writes_stay_inside_and_warn_once_in_strict_code() -> None:
    @jit(fullgraph=True)
    def f(x: Tensor) -> Tensor:
        global SETTING
        SETTING = 5
        return x * SETTING

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert f(Tensor([1.0])).item() == 5
        assert f(Tensor([1, 2])).tolist() == [5, 10]
    assert SETTING == 1
    found = [str(w.message) for w in caught if "SETTING" in str(w.message)]
    assert len(found) == 1
    assert "test_capture.py:" in found[0]


class Merging(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.n = 0
        self.last = Tensor([0.0])
        self.log: list[Any] = []

    def construct(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            self.n += 1
            self.last = x * 2
            self.log.append(("up", x + 1)[1])
        else:
            self.last = x * 3
            self.log.append(x - 1)
        while x.sum() < 10:
            self.n += 1
            x = x + 4
        return x * self.n


def test_effects_that_both_sides_have_are_merged() -> None:
    plain, net = Merging(), Merging()
    compiled = jit(net)
    for v in (1.0, -1.0, 20.0):
        assert compiled(Tensor([v])).item() == plain(Tensor([v])).item()
        assert (net.n, net.last.item()) == (plain.n, plain.last.item())
        assert [t.item() for t in net.log] == [t.item() for t in plain.log]
        assert type(net.n) is int


def test_closures_and_globals_are_written_inside_branches_and_loops() -> None:
    def make() -> tuple[Any, Any]:
        k = 0

        def f(x: Tensor) -> Tensor:
            nonlocal k
            global SETTING
            if x.sum() > 0:
                k += 1
                SETTING = 7
            for _ in range(20):
                if x.sum() > 30:
                    break
                x = x + 5
                k = k + 2
            return x * k * SETTING

        return f, lambda: k

    (plain, count), (function, counted) = make(), make()
    compiled = jit(function, global_writes="replay")
    for v in (-1.0, 1.0):
        globals()["SETTING"] = 1
        expected = plain(Tensor([v])).item(), count(), SETTING
        globals()["SETTING"] = 1
        assert (compiled(Tensor([v])).item(), counted(), SETTING) == expected
    globals()["SETTING"] = 1


def test_effects_are_repeated_in_order_and_only_once_per_call(capsys: Any) -> None:
    log: list[Any] = []
    holder = types.SimpleNamespace(last=None)

    @jit
    def f(x: Tensor, out: list[Any]) -> Tensor:
        log.append("start")
        out.append(x * 2)
        holder.last = x + 1
        log.extend(["a", "b"])
        print("x =", x)
        log.pop()
        return x

    for i in range(3):
        mine: list[Any] = []
        f(Tensor([float(i)]), mine)
        assert [t.item() for t in mine] == [2.0 * i]
        assert holder.last.item() == i + 1
        assert log == ["start", "a"] * (i + 1)
        assert capsys.readouterr().out == f"x = [{i}.]\n"


def test_a_failed_capture_leaves_everything_as_it_was() -> None:
    log: list[int] = []
    holder = types.SimpleNamespace(value=1)

    def f(x: Tensor) -> Any:
        log.append(1)
        holder.value = 2
        return x.asnumpy()

    with pytest.raises(CaptureError):
        jit(f, fullgraph=True)(Tensor([1.0]))
    assert log == []
    assert holder.value == 1
    assert jit(f)(Tensor([1.0])) == 1  # nothing happens twice either
    assert log == [1]
    assert holder.value == 2


def test_everything_read_is_guarded() -> None:
    inner = types.SimpleNamespace(scale=2)
    config = types.SimpleNamespace(inner=inner, table={"a": 1}, items=[1, 2])

    @jit
    def f(x: Tensor) -> Tensor:
        def g(t: Tensor) -> Tensor:
            return t * config.inner.scale + config.table["a"] + len(config.items)

        return g(x) if x.sum() > 0 else x

    def expected() -> float:
        return inner.scale + config.table["a"] + len(config.items)

    x = Tensor([1.0])
    assert f(x).item() == expected()
    for change in (
        lambda: setattr(inner, "scale", 5),
        lambda: config.table.update(a=7),
        lambda: config.items.append(3),
        lambda: setattr(config, "items", []),
    ):
        change()
        assert f(x).item() == expected()


def test_cells_are_not_kept_alive() -> None:
    class Small(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return x + 1 if x.sum() > 0 else x

    net = Small()
    jit(net)(Tensor([1.0]))
    ref = weakref.ref(net)
    del net
    gc.collect()
    assert ref() is None


def test_sources_are_kept_as_long_as_their_code() -> None:
    def make(i: int) -> Any:
        source = f"def f(x):\n    y = x * {i}\n    print(y.asnumpy())\n    return y + 1\n"
        name = f"<made {i}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        namespace: dict[str, Any] = {"__name__": "made"}
        exec(compile(source, name, "exec"), namespace)
        return namespace["f"]

    gc.collect()
    before = len(function_source._known)
    functions = [make(i) for i in range(2 * function_source._MOST_FILES)]
    jit(functions[0])(Tensor([1.0]))
    found = [function_source.definition_of(f) for f in functions]
    assert [s and s.file for s in found] == [f.__code__.co_filename for f in functions]
    assert len(function_source._known) >= before + len(functions)
    assert len(function_source._files) <= function_source._MOST_FILES
    del functions, found
    gc.collect()
    assert len(function_source._known) <= before


def test_threads() -> None:
    compiled = jit(exits)
    inputs = [np.array([0.1 * i, 1.0], np.float32) for i in range(8)]
    expected = [exits(Tensor(v)).item() for v in inputs]
    failures: list[Any] = []

    def work() -> None:
        for _ in range(20):
            for v, e in zip(inputs, expected):
                got = compiled(Tensor(v)).item()
                if not np.isclose(got, e, rtol=1e-4):
                    failures.append((v, got, e))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


class Base(nn.Cell):
    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def construct(self, x: Tensor) -> Tensor:
        return x * self.by if x.sum() > 0 else x


class Derived(Base):
    def __init__(self) -> None:
        super().__init__(2.0)
        self.inner = nn.SequentialCell(Base(3.0), nn.ReLU())
        self.__hidden = 1.0

    @property
    def offset(self) -> float:
        return self.__hidden

    def construct(self, x: Tensor) -> Tensor:
        return self.inner(super().construct(x)) + self.offset + self.__hidden


def test_inheritance_super_properties_and_private_names() -> None:
    net = Derived()
    run = jit(net)
    for v in (1.0, -1.0):
        assert run(Tensor([v])).item() == net(Tensor([v])).item()
    assert run.compile_count == 1


def test_code_without_source_is_traced() -> None:
    scope: dict[str, Any] = {}
    exec("def f(x):\n    return x * 2\ndef g(x):\n    return x if x.sum() > 0 else -x", scope)
    assert jit(scope["f"])(Tensor([2.0])).item() == 4
    for value in (2.0, -3.0):
        assert jit(scope["g"])(Tensor([value])).item() == abs(value)
    with pytest.raises(CaptureError, match="g has no source text"):
        jit(scope["g"], fullgraph=True)(Tensor([2.0]))


def test_nested_jit_partial_and_static_methods() -> None:
    import functools

    @jit
    def inner(x: Tensor, k: int) -> Tensor:
        return x * k if x.sum() > 0 else x

    class Holder:
        @staticmethod
        @jit
        def run(x: Tensor) -> Tensor:
            return functools.partial(inner, k=3)(x) + 1

    assert Holder.run(Tensor([2.0])).item() == 7
    assert Holder.run(Tensor([-2.0])).item() == -1


def test_tutorial_of_mixed_code_gives_1024_and_4096() -> None:
    class Add(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return x + x

    class Mul(nn.Cell):
        @jit
        def construct(self, x: Tensor) -> Tensor:
            return x * x if x.sum() > 0 else x

    add, mul = Add(), Mul()

    def test(x: Tensor) -> Tensor:
        return mul(mul(add(x))) * 4

    x = Tensor(np.array([2.0], np.float32))
    value, gradient = ms.value_and_grad(test)(x)
    assert value.item() == 1024
    assert gradient.item() == 2048


def test_a_loop_may_write_several_parameters() -> None:
    def run(compiled: bool) -> list[Any]:
        w = ms.Parameter(Tensor([1.0, 2.0]), name="w")
        m = ms.Parameter(Tensor([[0.0, 1.0]]), name="m")

        def f(x: Tensor) -> Tensor:
            i = ops.zeros((), ms.int32)
            while i < 3:
                ops.assign(m, m * 0.5 + x)
                ops.assign(w, w - m[0])
                i = i + 1
            return w + m

        result = (ms.jit(f) if compiled else f)(Tensor([1.0, 1.0]))
        return [t.asnumpy() for t in (result, w, m)]

    for a, b in zip(run(True), run(False)):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_captures_side_by_side_leave_the_collector_as_it_was() -> None:
    """One that ends inside another's does not let it collect, nor leave it off for good."""
    begun, ended = threading.Event(), threading.Event()

    def run() -> None:
        with no_collection():
            begun.set()
            ended.wait(10)

    assert gc.isenabled()
    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(10)
    capture(lambda x: x * 2, (Tensor([1.0]),), {})
    assert not gc.isenabled()
    ended.set()
    thread.join()
    assert gc.isenabled()
