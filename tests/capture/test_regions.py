"""Functions that cannot be one graph run with graph breaks, exactly as in plain Python."""

from __future__ import annotations

import collections
import contextlib
import copy
import gc
import io
import logging
import types
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tvmgraph as ms
from tests.capture import region_programs as programs
from tests.capture.test_fuzz import assert_same, in_numpy
from tvmgraph import JitConfig, Parameter, Tensor, jit, nn, ops
from tvmgraph.cli.app import app
from tvmgraph.errors import CaptureError
from tvmgraph.jit.regions.report import span

FUNCTIONS = programs.functions()
INPUTS = [((0.5, 1), (2, 0.25)), ((-1, 0.5), (1, 1)), ((3, 4), (-2, 1)), ((0, 0), (0, 1))]
CALLS = [*INPUTS, INPUTS[1], INPUTS[0]]
X = Tensor([1.0, 2.0])


def tensors(pair: Any) -> list[Tensor]:
    return [Tensor(np.array(v, np.float32)) for v in pair]


def seen(value: Any) -> Any:
    """Returns a value as something that can be compared."""
    if isinstance(value, Tensor):
        return [str(value.dtype), np.asarray(value.asnumpy()).copy()]
    if isinstance(value, (list, tuple, set, collections.deque)):
        return [type(value).__name__, *map(seen, value)]
    if isinstance(value, dict):
        return [type(value).__name__, *[[k, seen(v)] for k, v in value.items()]]
    if isinstance(value, (programs.Obj, programs.P)):
        return [type(value).__name__, seen(vars(value))]
    if isinstance(value, float):
        return ["float", np.float64(value).reshape(1)]
    return [type(value).__name__, str(value)]


def seen_or_raised(function: Any, *args: Any) -> Any:
    try:
        return seen(function(*args))
    except ValueError as e:
        return [type(e).__name__, str(e)]


def observe(function: Any, pair: Any) -> list[Any]:
    """Returns all that can be seen of a call."""
    programs.COUNT = programs.Obj.total = 0
    programs.LOG.clear()
    out = io.StringIO()
    given = tensors(pair)
    with contextlib.redirect_stdout(out):
        try:
            result = seen(function(*given))
        except Exception as e:
            result = ["raised", type(e).__name__, str(e).split("\n")[0]]
    outside = [programs.COUNT, seen(programs.LOG), programs.Obj.total]
    return [result, out.getvalue(), *outside, *map(seen, given)]


@pytest.fixture
def numpy() -> Iterator[None]:
    with in_numpy():
        yield


@pytest.mark.usefixtures("numpy")
@pytest.mark.parametrize("mode", ["ast", "bytecode"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_pieces_equal_plain_python(name: str, mode: str) -> None:
    compiled = jit(FUNCTIONS[name], capture_mode=mode)
    for call, pair in enumerate(CALLS):
        expected = observe(FUNCTIONS[name], pair)
        assert_same(expected, observe(compiled, pair), f"{name}, call {call}")


def segments(compiled: Any) -> list[tuple[tuple[int, int], int]]:
    """Returns lines, relative to the function, and operators of the segments in use."""
    program = compiled.region.program
    first = program.node.lineno
    used = [s for name, s in program.segments.values() if name in program.used and s.entries]
    found = [(span(s.statements), s.history[-1].operators) for s in used]
    return sorted(((a - first, b - first), n) for (a, b), n in found)


def around_a_break(x: Tensor, y: Tensor) -> Any:
    a = ops.tanh(x * 2) + y
    n = float(a.asnumpy().max())
    b = (a - n) * 3
    return b.sum()


def in_a_loop(x: Tensor, y: Tensor) -> Any:
    total = 0.0
    for _ in range(5):
        x = ops.tanh(x + y) * 0.5
        total += (x * y).sum().item()
    return x - y, total


def nothing_left_in_python(x: Tensor, y: Tensor) -> Any:
    z = ops.exp(x) if float((x * 2 + y).sum().asnumpy()) > 0 else y
    return [ops.tanh(z).asnumpy(), z * 2 + 1]


@pytest.mark.usefixtures("numpy")
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (around_a_break, [((1, 1), 3), ((3, 4), 3)]),
        (in_a_loop, [((3, 4), 5), ((5, 5), 1)]),
        (nothing_left_in_python, [((1, 1), 1), ((1, 1), 3), ((2, 2), 1), ((2, 2), 2)]),
    ],
)  # fmt: skip
def test_all_operators_are_compiled(function: Any, expected: Any) -> None:
    compiled = jit(function)
    for pair in [INPUTS[0]] * 6:
        assert_same(seen(function(*tensors(pair))), seen(compiled(*tensors(pair))), "")
    assert segments(compiled) == expected
    before = [len(s.history) for _, s in compiled.region.program.segments.values()]
    compiled(*tensors(INPUTS[0]))  # nothing is captured any more
    assert before == [len(s.history) for _, s in compiled.region.program.segments.values()]


# ---- gradients and training ---------------------------------------------------------------------


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Dense(2, 3), nn.Dense(3, 2)
        self.seen: list[float] = []

    def construct(self, x: Tensor) -> Tensor:
        h = ops.tanh(self.first(x))
        self.seen.append(float(h.asnumpy().max()))
        if h.sum() > 0:
            h = ops.concat([h, h])[: x.shape[0]]
        return self.second(h) * 2


def twins() -> tuple[Net, Net]:
    a, b = Net(), Net()
    ms.load_param_into_net(b, a.parameters_dict())
    return a, b


ROWS = np.array([[1.0, -2.0], [0.5, 3.0]], np.float32)


@pytest.mark.usefixtures("numpy")
@pytest.mark.parametrize("mode", ["PSJit", "PIJit"])
def test_gradients_flow_through_segments(mode: str) -> None:
    def loss(x: Tensor, y: Tensor) -> Tensor:
        z = ops.exp(x) * y
        if float(z.sum().asnumpy()) > 0:
            z = ops.concat([z, x])
        with contextlib.suppress(ZeroDivisionError):
            z = z * z
        return z.sum()

    compiled = jit(loss, mode=mode)
    for pair in CALLS:
        given = tensors(pair)
        expected = ms.grad(loss, (0, 1))(*given)
        for function in (ms.grad(compiled, (0, 1)), jit(ms.grad(compiled, (0, 1)))):
            for a, b in zip(expected, function(*given), strict=True):
                np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5)


@pytest.mark.parametrize("outer", [True, False])
def test_training_with_breaks_equals_eager(outer: bool) -> None:
    plain, net = twins()
    results = []
    for cell, wrap in ((plain, lambda f: f), (net, jit if outer else lambda f: f)):
        model = jit(cell) if wrap is not jit and cell is net else cell
        optimizer = nn.Momentum(cell.trainable_params(), 0.1, 0.9)

        def forward(x: Tensor, model: Any = model) -> Tensor:
            return (model(x) ** 2).mean()

        step = ms.value_and_grad(forward, None, optimizer.parameters)

        def train(x: Tensor, step: Any = step, optimizer: Any = optimizer) -> list[float]:
            losses: list[float] = []
            for i in range(4):
                loss, grads = step(x)
                optimizer(grads)
                losses.append(loss.item())
                if i > 1 and losses[-1] > losses[-2] * 2:
                    break
            return losses

        results.append(wrap(train)(Tensor(ROWS)))
    np.testing.assert_allclose(*results, rtol=1e-4)
    np.testing.assert_allclose(plain.seen, net.seen, rtol=1e-4)
    for a, b in zip(plain.get_parameters(), net.get_parameters(), strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4)


@pytest.mark.usefixtures("numpy")
def test_cells_in_pieces_compile_their_construct() -> None:
    plain, net = twins()
    run = jit(net)
    for _ in range(4):
        np.testing.assert_allclose(run(Tensor(ROWS)).asnumpy(), plain(Tensor(ROWS)).asnumpy())
    assert net.seen == plain.seen


@pytest.mark.usefixtures("numpy")
def test_parameters_and_random_numbers_are_those_of_eager_code() -> None:
    def f(p: Parameter, x: Tensor) -> Any:
        p += x
        drawn = ops.rand(2)
        n = float(p.asnumpy().sum())
        ops.assign(p, p * n)
        return p + ops.rand(2), drawn, n

    for mode in ("ast", "bytecode"):
        results = []
        for run in (f, jit(f, capture_mode=mode)):
            ms.set_seed(3)
            p = Parameter(Tensor([1.0, 2.0]), name="p")
            results.append([seen(run(p, X)) for _ in range(4)] + [seen(p)])
        assert_same(*results, where=mode)


# ---- modes, settings, looking inside ------------------------------------------------------------


def test_strict_code_refuses() -> None:
    strict = JitConfig(jit_syntax_level="STRICT")
    for compiled in (jit(around_a_break, fullgraph=True), jit(around_a_break, jit_config=strict)):
        with pytest.raises(CaptureError, match="asnumpy"):
            compiled(X, X)
    ms.set_context(jit_syntax_level=ms.STRICT)
    try:
        compiled = jit(around_a_break)
        with pytest.raises(CaptureError, match="asnumpy"):
            compiled(X, X)
        ms.set_context(jit_syntax_level=ms.LAX)
        compiled(X, X)
        ms.set_context(jit_syntax_level=ms.STRICT)
        with pytest.raises(CaptureError, match="asnumpy"):
            compiled(X, X)
    finally:
        ms.set_context(jit_syntax_level=ms.LAX)


@pytest.mark.usefixtures("numpy")
def test_explain_and_draw_name_segments_and_breaks() -> None:
    compiled = jit(in_a_loop)
    for _ in range(4):
        compiled(*tensors(INPUTS[0]))
    text = compiled.explain()
    start = in_a_loop.__code__.co_firstlineno
    assert f"test_regions.py:{start + 3}-{start + 4}  (x, y) -> (x): 5 operator(s)" in text
    assert f"test_regions.py:{start + 4}  (x * y).sum().item()  because" in text
    assert "item() needs the value of a tensor, which is not known while a function is" in text
    assert "  to compile more:\n    [1] do this outside the compiled function" in text
    drawn = compiled.draw().svg
    assert drawn.count("<rect") == 3
    assert "item()" in drawn


@pytest.mark.usefixtures("numpy")
def test_the_command_explains_and_draws(tmp_path: Path) -> None:
    file, drawn = tmp_path / "program.py", tmp_path / "drawn.svg"
    file.write_text(
        "from tvmgraph import ops\n\ndef f(x):\n    y = ops.tanh(x)\n"
        "    n = y.sum().item()\n    return y * n\n"
    )
    found = CliRunner().invoke(
        app, ["explain", f"{file}:f", "--input", "float32[3]", "--draw", str(drawn)]
    )
    assert found.exit_code == 0, found.output
    assert "program.py:4-5  (x) -> (y): 2 operator(s)" in found.output
    assert "item() needs the value of a tensor" in found.output
    assert drawn.read_text().count("<rect") == 3


@pytest.mark.usefixtures("numpy")
def test_an_error_in_a_cell_that_python_calls_is_that_of_python() -> None:
    class Checked(nn.Cell):
        def construct(self, x: Tensor, n: int) -> Tensor:
            if n > 1:
                raise ValueError(f"n is {n}")
            return x * n

    cell = Checked()

    def f(x: Tensor, n: int) -> Tensor:
        return cell(x * x.sum().item(), n)

    compiled = jit(f)
    for n in (1, 2, 1, 2):
        assert_same(seen_or_raised(f, X, n), seen_or_raised(compiled, X, n), f"{n}")


@pytest.mark.usefixtures("numpy")
def test_a_segment_that_always_differs_stays_in_python() -> None:
    def f(x: Tensor, k: int) -> Any:
        parts = [x] * k
        n = float(x.asnumpy()[0])
        return ops.stack(parts).sum(), n

    compiled = jit(f)
    for k in range(1, 40):
        assert compiled(X, k)[0].item() == 3 * k
    made = [s for _, s in compiled.region.program.segments.values()]
    assert max(len(s.history) for s in made) <= 24


@pytest.mark.usefixtures("numpy")
def test_errors_are_those_of_python() -> None:
    def f(x: Tensor, y: Tensor) -> Any:
        n = float(x.asnumpy()[0])
        z = x * n
        return z.reshape(7) + undefined  # noqa: F821  # pyright: ignore

    compiled = jit(f)
    for _ in range(3):
        with pytest.raises(ms.errors.ShapeError) as info:
            compiled(X, X)
        assert "test_regions.py:" in str(info.value.at)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        compiled(X)


@pytest.mark.usefixtures("numpy")
def test_logs_name_the_function_and_show_tracebacks() -> None:
    def step(x: Tensor, fails: bool) -> Tensor:
        log.info("sum %.1f", x.sum().item())
        try:
            if fails:
                raise RuntimeError(f"{x.mean().item()}")
        except RuntimeError:
            log.exception("failed")
        return x * 2

    log = logging.getLogger("tests.logs")
    log.setLevel(logging.INFO)
    texts = []
    for function in (step, jit(step)):
        out = io.StringIO()
        handler = logging.StreamHandler(out)
        handler.setFormatter(logging.Formatter("%(funcName)s %(lineno)d %(message)s"))
        log.addHandler(handler)
        for fails in (False, False, True, True):
            function(X, fails)
        log.removeHandler(handler)
        texts.append(out.getvalue())
    assert texts[0] == texts[1]
    assert texts[0].count("Traceback") == 2


def test_threads_call_one_function_in_pieces() -> None:
    def f(x: Tensor, k: int) -> Any:
        y = x * k
        n = float(y.asnumpy()[0])
        return (f(x, k - 1)[0] if k > 1 else y) + n, k

    compiled = jit(f)
    wanted = {k: f(X, k) for k in range(1, 5)}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: (i % 4 + 1, compiled(X, i % 4 + 1)), range(200)))
    for k, result in found:
        assert_same(seen(wanted[k]), seen(result), f"{k}")


@pytest.mark.usefixtures("numpy")
def test_a_generator_left_half_way_can_be_made_again() -> None:
    @jit
    def f(x: Tensor, log: list[str]) -> Any:
        try:
            for i in range(3):
                y = x * i
                yield float(y.asnumpy()[0]) + 1
        finally:
            log.append("closed")

    for _ in range(3):
        log: list[str] = []
        made = f(X, log)
        assert [next(made), next(made)] == [1, 1 + X[0].item()]
        made.close()
        assert log == ["closed"]
        assert len(list(f(X, []))) == 3


@pytest.mark.usefixtures("numpy")
def test_generators_close_where_python_closes_them() -> None:
    log: list[str] = []

    def halves(x: Tensor) -> Iterator[Tensor]:
        try:
            yield x / 2
            yield x / 4
        finally:
            log.append("closed")

    def checked(x: Tensor) -> Tensor:
        if float(x.sum().asnumpy()) > 2:
            raise ValueError("too much")
        return x

    def f(x: Tensor) -> Tensor:
        return checked(next(halves(x))) * 2 + len(log)

    compiled = jit(f)
    gc.disable()  # or it would close what somebody keeps
    try:
        for x in (X, X, X * 8, X * 8, X):
            log.clear()
            try:
                compiled(x)
            except ValueError as e:  # whose frames live on
                assert e.__traceback__ is not None
            assert log == ["closed"]
    finally:
        gc.enable()


@pytest.mark.usefixtures("numpy")
def test_an_interrupt_leaves_everything_usable() -> None:
    state = {"fail": True}

    def boom() -> None:
        if state["fail"]:
            raise KeyboardInterrupt

    def f(x: Tensor) -> Any:
        y = x * 2
        n = float(y.asnumpy()[0])
        boom()
        return y * n

    compiled = jit(f)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            compiled(X)
    state["fail"] = False
    assert compiled(X).tolist() == [4, 8]


@pytest.mark.usefixtures("numpy")
def test_a_dropped_cell_is_freed() -> None:
    def f(net: Any, x: Tensor) -> Any:
        y = net(x)
        n = float(y.asnumpy()[0, 0])
        return net(y) * n

    compiled = jit(f)
    net = nn.Dense(2, 2)
    for _ in range(3):
        compiled(net, Tensor(ROWS))
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None


@pytest.mark.usefixtures("numpy")
def test_a_dropped_object_is_freed_at_once() -> None:
    class Step:
        def __init__(self, t: Tensor) -> None:
            self.t, self.n, self.inner = t, 2, None

    def f(step: Any, x: Tensor) -> Any:
        step.n = step.n + 1
        step.inner = x * step.n
        return step.t * x + step.inner

    def broken(step: Any, x: Tensor) -> Any:
        y = step.t * x
        n = float(y.asnumpy()[0])
        return (step.t * n + y).asnumpy()

    gc.disable()
    try:
        for compiled in (jit(f), jit(broken)):
            for _ in range(3):
                step = Step(X * 2)
                for _ in range(3):
                    compiled(step, X)
                gone = [weakref.ref(step), weakref.ref(step.t)]
                del step
                assert [ref() for ref in gone] == [None, None]
        compiled, x = jit(lambda x: x * 2), X + 1
        for _ in range(3):
            compiled(x)
        gone = [weakref.ref(x)]
        del x
        assert gone[0]() is None
    finally:
        gc.enable()


@pytest.mark.usefixtures("numpy")
def test_what_a_segment_cannot_return_stays_in_python_alone() -> None:
    def f(x: Tensor) -> Any:
        n = float(x.sum())
        y = x * 2
        found = map(float, y)
        z = y + 1
        return [*found], z, n

    compiled = jit(f)
    for _ in range(4):
        assert_same(seen(f(X)), seen(compiled(X)), "")
    assert "found = map(float, y)  because a compiled function cannot return" in compiled.explain()


class _Made:
    def __init__(self, v: Any) -> None:
        self.v, self.k = v, 1


def _writes_what_a_branch_made(x: Tensor) -> Tensor:
    z = x
    if x.sum() > 0:
        made, held = _Made(x), types.SimpleNamespace(v=x)
        made.v, made.k = made.v * 2, made.k + 1
        held.v += made.k
        z = made.v + held.v
    return z


def _writes_what_a_loop_made(x: Tensor) -> Tensor:
    z = x
    while z.sum() < 20:
        made = _Made(z * 2)
        other = copy.copy(made)
        other.v = other.v + made.k
        z = abs(other.v) + 1
    return z


@pytest.mark.parametrize("f", (_writes_what_a_branch_made, _writes_what_a_loop_made))
def test_objects_that_a_branch_or_loop_makes_are_written_in_the_graph(f: Any) -> None:
    compiled = jit(f)
    for x, _ in INPUTS:
        t = Tensor(np.array(x, np.float32))
        np.testing.assert_allclose(compiled(t).asnumpy(), f(t).asnumpy(), 1e-6)
    assert compiled.compile_count == 1 and "break" not in compiled.explain()


class _MadeByItself(_Made):
    def __new__(cls, v: Any) -> Any:
        return object.__new__(cls)


def _writes_further_inside(x: Tensor) -> Tensor:
    z = x - 1
    if x.sum() > 0:
        made = _Made(x)
        if x.sum() > 2:
            made.v = x * 5
        z = made.v
    return z


def _writes_what_is_not_known_to_be_new(x: Tensor) -> Tensor:
    z = x
    if x.sum() > 0:
        made = _MadeByItself(x)
        made.v = made.v * 2
        z = made.v
    return z


@pytest.mark.parametrize("f", (_writes_further_inside, _writes_what_is_not_known_to_be_new))
def test_objects_that_every_recording_makes_anew_are_graph_breaks(f: Any) -> None:
    compiled = jit(f)
    for x, _ in INPUTS:
        t = Tensor(np.array(x, np.float32))
        np.testing.assert_allclose(compiled(t).asnumpy(), f(t).asnumpy(), 1e-6)
    assert "break" in compiled.explain()


class Counted(nn.Cell):
    """An average of weights as zoos write it, with the parts of a step that Python runs."""

    def __init__(self) -> None:
        super().__init__()
        self.updates = Parameter(Tensor(0.0), name="updates")
        self.mean = Parameter(Tensor([2.0]), name="mean")

    def update(self) -> Tensor:
        """Counts, and makes what is returned depend on an assignment."""
        self.updates += 1
        self.updates = ops.depend(self.updates, ops.assign(self.mean, self.mean * 0.5))
        return self.updates


def test_a_parameter_that_is_stored_in_its_own_place_breaks_no_graph() -> None:
    cell = Counted()
    step = jit(lambda x: cell.update() + x)
    with ms.assert_max_compiles(1):
        assert [step(Tensor(1.0)).item() for _ in range(3)] == [2, 3, 4]
    assert "graph break" not in step.explain()
    assert (cell.updates.item(), cell.mean.item()) == (3, 0.25)
    assert [p.name for p in cell.get_parameters()] == ["updates", "mean"]


class LoggedStep(nn.TrainOneStepCell):
    """A step that Python looks into between the loss and its derivative."""

    def construct(self, *inputs: Tensor) -> Tensor:
        weights = self.weights
        loss = self.network(*inputs)
        self.logged.append(loss.item())
        gradients = self.grad(self.network, weights)(*inputs, ops.ones_like(loss))
        return ops.depend(loss, self.optimizer(gradients))


def test_the_derivative_behind_a_graph_break_is_compiled() -> None:
    net = nn.WithLossCell(nn.Dense(2, 1, "ones"), nn.MSELoss())
    step = LoggedStep(net, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    step.logged, found = [], jit(step)
    losses = [found(Tensor([[1.0, 2.0]]), Tensor([[1.0]])).item() for _ in range(3)]
    assert losses == step.logged
    assert losses[2] < losses[0]
    assert "weights must be Parameters" not in found.explain()
    assert "(inputs, loss, self, weights) -> ()" in found.explain()


class Watched(nn.Cell):
    """A network with running statistics into which Python looks."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.seen = nn.BatchNorm1d(2), []

    def construct(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        self.seen.append(y.max().item())
        return (y * y * y).mean()


def test_a_forward_pass_behind_which_a_capture_is_refused_is_not_repeated() -> None:
    def trained(compiled: bool) -> list[list[float]]:
        net = Watched()
        step = LoggedStep(net, nn.SGD(net.trainable_params(), 0.1)).set_train()
        step.logged = []
        call = jit(step) if compiled else step
        for _ in range(3):
            call(Tensor([[1.0, 2.0], [4.0, 8.0], [0.0, 3.0]]))
        return [net.norm.moving_mean.asnumpy().tolist(), net.seen]

    for found, want in zip(trained(True), trained(False)):
        np.testing.assert_allclose(found, want, rtol=1e-6)
