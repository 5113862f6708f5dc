"""Ctrl-C at any moment: all of a compiled call's changes or none, and never another error."""

from __future__ import annotations

import textwrap

from tests.faults import helpers

#: ``pester(least, most)`` sends SIGINT to the main thread again and again until it is told to stop.
_PESTER = """
main = threading.get_ident()
signal.signal(signal.SIGINT, signal.default_int_handler)

class pester:
    def __init__(self, seed, least, most):
        self.rng, self.range, self.done = random.Random(seed), (least, most), False
        self.thread = threading.Thread(target=self.send, daemon=True)

    def send(self):
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
    other.thread.start()
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
    other.thread.start()
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
    helpers.run(_PESTER + textwrap.dedent(program), tmp_path, timeout=120, TVMGRAPH_CACHE_MB="0")


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
