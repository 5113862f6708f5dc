"""Ctrl-C at any moment: all of a compiled call's changes or none, and never another error."""

from __future__ import annotations

import signal
import textwrap
from pathlib import Path

import numpy as np
import pytest

from tests.faults import helpers
from tvmgraph import Tensor, jit, ops
from tvmgraph.compiler import worker
from tvmgraph.compiler.compile import clear_cache
from tvmgraph.interruption import held_back

#: ``pester(least, most)`` sends SIGINT to the main thread again and again until it is told to stop.
_PESTER = """
main = threading.get_ident()
signal.signal(signal.SIGINT, signal.default_int_handler)

class pester:
    def __init__(self, seed, least, most):
        self.rng, self.range, self.done = random.Random(seed), (least, most), False
        self.thread = threading.Thread(target=self.send, daemon=True)
        self.begun = threading.Event()

    def start(self):
        self.thread.start()
        self.begun.set()

    def send(self):
        self.begun.wait()
        while not self.done:
            time.sleep(self.rng.uniform(*self.range))
            signal.pthread_kill(main, signal.SIGINT)

    def stop(self):
        self.done = True
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.thread.join()
"""


def run(program: str, **variables: str) -> None:
    helpers.run(_PESTER + textwrap.dedent(program), timeout=120, **variables)


def test_a_training_step_is_applied_whole_or_not_at_all() -> None:
    program = """
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            for name in "abcdef":
                setattr(self, name, Parameter(Tensor(np.zeros(8, np.float32)), name=name))
            self.last = ops.zeros((8,))

        @jit
        def step(self, x):
            self.a += x
            self.b = self.b + x
            self.c += x
            ops.assign(self.d, self.d + x)
            self.e += x
            self.f += x
            self.last = self.last + x
            seen.append(1)
            return self.a.sum()

    seen = []
    net, x = Net(), Tensor(np.ones(8, np.float32))
    parameters = [net.a, net.b, net.c, net.d, net.e, net.f]
    net.step(x), net.step(x), net.step(x)
    other = pester(3, 0.0002, 0.004)
    end, count, over = time.monotonic() + 4, 0, False
    other.start()
    while not over:
        try:
            while time.monotonic() < end:
                net.step(x)
            over = True
        except KeyboardInterrupt:
            count += 1
        try:
            values = [float(p.asnumpy()[0]) for p in (*parameters, net.last)] + [len(seen)]
            assert len(set(values)) == 1, (values, net.step.compile_count)
        except KeyboardInterrupt:
            pass
    other.stop()
    assert count > 20, count
    """
    run(program)


def test_an_optimizer_step_is_applied_whole_or_not_at_all() -> None:
    """A loop of training steps that is repeated where it was interrupted ends where eager does."""
    program = """
    def network():
        net = nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 1))
        rng = np.random.default_rng(0)
        for p in net.trainable_params():
            p.set_data(Tensor(rng.normal(size=p.shape).astype(np.float32)))
        optimizer = nn.Adam(net.trainable_params(), 1e-2)
        gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
        parameters = [*net.get_parameters(), *optimizer.get_parameters()]
        return lambda x: optimizer(gradient(x)[1]), parameters, optimizer

    x = Tensor(np.random.default_rng(1).normal(size=(16, 4)).astype(np.float32))
    plain, wanted, _ = network()
    step, found, optimizer = network()
    step = jit(step)
    step(x), step(x)
    other = pester(4, 0.001, 0.006)
    other.start()
    while True:
        try:
            while int(optimizer.global_step.asnumpy()[0]) < 200:
                step(x)
            other.stop()
            break
        except KeyboardInterrupt:
            pass
    for _ in range(200):
        plain(x)
    for a, b in zip(found, wanted):
        assert np.allclose(a.asnumpy(), b.asnumpy(), atol=1e-4), a.name
    """
    run(program)


def test_ctrl_c_during_a_compile_is_a_keyboard_interrupt(tmp_path: object) -> None:
    """Also in captures, and in exports, which then work when they are tried again."""
    program = """
    numbers = np.random.default_rng(0).normal(size=(32, 32)).astype(np.float32)
    x, rng = Tensor(numbers), random.Random(7)

    def made(i):
        return lambda x: ops.tanh(ops.matmul(x, x) * (i + 0.5)) + ops.exp(x * 0.1)

    class Net(nn.Cell):
        def construct(self, x):
            return ops.tanh(x) * 2

    def interrupted(f, span):
        def send():
            if not over:
                sent.append(time.monotonic())
                signal.pthread_kill(main, signal.SIGINT)
        over, sent = [], []
        timer = threading.Timer(rng.uniform(0, span), send)
        try:
            timer.start()
            f()
            over.append(True)
            timer.cancel()
            timer.join()
            time.sleep(0.001)
        except KeyboardInterrupt:
            assert sent
            return 1
        return 0

    jit(made(100))(x)
    start = time.monotonic()
    jit(made(101))(x)
    span, count = time.monotonic() - start, 0
    for i in range(8):
        f = jit(made(i))
        count += interrupted(lambda: f(x), span)
        right = np.tanh(numbers @ numbers * (i + 0.5)) + np.exp(numbers * 0.1)
        assert np.allclose(f(x).asnumpy(), right, atol=1e-4)
    path = sys.argv[1] + "/net.graph"
    for i in range(3):
        export = lambda: ms.export(Net(), x, file_name=path, file_format="GRAPH")
        interrupted(export, 0.01)
        export()
        assert np.allclose(ms.load(path)(x).asnumpy(), np.tanh(numbers) * 2, atol=1e-5)
    assert count >= 4, count
    """
    helpers.run(_PESTER + textwrap.dedent(program), tmp_path, timeout=600, TVMGRAPH_CACHE_MB="0")


def test_an_interrupt_that_a_finalizer_drops_is_raised_all_the_same() -> None:
    program = """
    from tvmgraph.interruption import noticed, raise_noticed

    class Dropping:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    sys.unraisablehook = lambda problem: None
    reached = []
    for inside in (lambda: None, raise_noticed, lambda: 1 / 0):
        try:
            with noticed():
                Dropping()
                inside()
                reached.append(inside)
        except KeyboardInterrupt:
            continue
        sys.exit("dropped")
    assert len(reached) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    """
    run(program)


def test_no_place_of_a_call_leaves_anything_by_halves() -> None:
    """Interrupted at every place at which Python looks at signals, a call is made or is not.

    The drop-out's numbers are part of it: a step that did not happen drew none.
    """
    program = """
    from tests.faults import points
    from tvmgraph.core.state import state

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(Tensor(np.zeros(4, np.float32)), name="weight")
            self.last, self.seen = ops.zeros((4,)), []

        def construct(self, x):
            self.weight = self.weight + x
            self.last = self.last + ops.dropout(x, 0.5, seed=None)
            self.seen.append(1)
            return self.last * self.weight

    def made():
        ms.set_seed(3)
        net = Net()
        return net, jit(net)

    def now(net):
        tensors = [net.weight, net.last, ms.get_rng_state()]
        return [len(net.seen), *[v for t in tensors for v in t.asnumpy()]]

    x = Tensor(np.ones(4, np.float32))
    net, call = made()
    states = [now(net)]
    for _ in range(50):
        call(x)
        states.append(now(net))
    net, call = made()
    call(x), call(x)
    at, steps, places = 0, 2, 1
    while at < places:
        if steps > 40:
            net, call = made()
            call(x), call(x)
            steps = 2
        raised, where = points.interrupt(lambda: call(x), at)
        assert raised or not where, where
        steps += now(net) != states[steps]
        assert now(net) == states[steps], where
        assert (state.interpreter, state.tapes, state.scope) == (None, (), ()), where
        at, places = at + 1, at + 2 if where else 0
    assert at > 40, at
    """
    helpers.run(textwrap.dedent(program), timeout=600, PYTHONPATH=helpers.ROOT)


def test_handlers_of_signals_are_no_part_of_what_they_interrupt() -> None:
    """A handler computes with tensors and writes globals while functions are captured."""
    program = """
    from tvmgraph.capture.record import capture

    kept = []

    def handler(number, frame):
        globals()[f"made {len(kept)}"] = kept
        kept.append(ops.tanh(Tensor([1.0])))

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(4, 4)

        def construct(self, x):
            for _ in range(3):
                x = self.dense(x) + native(3)
            return x if x.sum() > 0 else -x

    exec("def native(n): return n + 1", globals())  # has no source: it runs natively
    x = Tensor(np.ones((2, 4), np.float32))
    expected = str(capture(Net(), (x,), {}).graph)
    before = sys.getprofile()
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        found = str(capture(Net(), (x,), {}).graph)
        assert found == expected, found
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert signal.getsignal(signal.SIGALRM) is handler and sys.getprofile() is before
    assert len(kept) > 20 and all(type(t) is Tensor for t in kept)
    """
    helpers.run(program)


@pytest.mark.parametrize("kind", [Exception, TimeoutError, BaseException])
def test_an_alarm_ends_a_compile_with_what_its_handler_raises(
    kind: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(kind):
        """It took too long."""

    def late(*_: object) -> None:
        raise Late

    ask, x = worker._ask, Tensor(np.linspace(0, 1, 5).astype(np.float32))

    def asked(*args: object) -> object:
        signal.raise_signal(signal.SIGALRM)
        return ask(*args)  # pyright: ignore[reportArgumentType]

    monkeypatch.setenv("TVMGRAPH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(worker, "_ask", asked)
    before = signal.signal(signal.SIGALRM, late)
    clear_cache()
    compiled = jit(lambda x: ops.exp(x) * 3.03)
    try:
        with pytest.raises(Late):
            compiled(x)
        assert signal.getsignal(signal.SIGALRM) is late
    finally:
        signal.signal(signal.SIGALRM, before)
    monkeypatch.setattr(worker, "_ask", ask)
    np.testing.assert_allclose(compiled(x).asnumpy(), np.exp(x.asnumpy()) * 3.03, rtol=1e-5)


def test_signals_that_are_held_back_are_all_handled() -> None:
    numbers = (signal.SIGALRM, signal.SIGUSR1, signal.SIGINT)
    came: list[int] = []

    def handle(number: int, _: object) -> None:
        came.append(number)
        raise RuntimeError(number)

    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        with pytest.raises(RuntimeError), held_back():
            for number in numbers:
                signal.raise_signal(number)
            assert not came
        assert came == [*numbers]
        assert all(signal.getsignal(number) is handle for number in numbers)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
