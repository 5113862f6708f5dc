"""Forward passes, gradients, training steps and control flow by tensors under eight threads,
interrupts at random moments, and forks."""

from __future__ import annotations

import textwrap
import threading

import numpy as np
import pytest

from tests.faults import helpers, kinds
from tests.faults.test_interruption import _PESTER
from tests.faults.test_turns import in_threads

THREADS = 8


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_eight_threads_compile_and_call_one_program(kind: str) -> None:
    run, plain = kinds.KINDS[kind]()
    start = threading.Barrier(THREADS)
    shares = [kinds.inputs(5, seed) for seed in range(THREADS)]
    wanted = [[kinds.numbers(plain(x)) for x in share] for share in shares]

    def call(i: int) -> None:
        start.wait(30)  # all first calls at once
        for _ in range(6):
            kinds.check(kind, run, shares[i], wanted[i])

    in_threads(*[lambda i=i: call(i) for i in range(THREADS)])


def test_eight_threads_train_one_network() -> None:
    """No step is lost, and none is taken by halves."""
    compiled, eager = kinds.Training(), kinds.Training()
    (x,) = kinds.inputs(1)
    start = threading.Barrier(THREADS)

    def train() -> None:
        start.wait(30)
        for _ in range(12):
            compiled.step(x)

    in_threads(*[train] * THREADS)
    for _ in range(12 * THREADS):
        eager.plain(x)
    assert int(compiled.count.asnumpy()) == 12 * THREADS
    np.testing.assert_allclose(compiled.state(), eager.state(), rtol=2e-3, atol=1e-4)
    assert compiled.step.compile_count == 1


def test_interrupts_leave_programs_right() -> None:
    """Interrupts from the first call on: while it captures, compiles, and runs."""
    program = """
    from tests.faults import kinds
    given, count = kinds.inputs(3), 0

    def interrupted(check, span, seconds):
        global count
        signal.signal(signal.SIGINT, signal.default_int_handler)
        other, end = pester(11, 0, span), time.monotonic() + seconds
        while not other.done:
            try:
                if other.thread.ident is None:
                    other.start()
                while time.monotonic() < end:
                    check()
                other.stop()
            except KeyboardInterrupt:
                count += 1
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    del kinds.KINDS["forward"]  # which has a test of its own
    for kind, make in kinds.KINDS.items():
        run, plain = make()
        wanted = [kinds.numbers(plain(x)) for x in given]
        check = lambda: kinds.check(kind, run, given, wanted)
        interrupted(check, 0.1, 0.15)  # the first calls
        check()
        interrupted(check, 0.01, 0.2)
        check()
    assert count > 12, count
    """
    helpers.run(_PESTER + textwrap.dedent(program), timeout=120, PYTHONPATH=helpers.ROOT)


def test_interrupted_training_takes_whole_steps() -> None:
    program = """
    from tests.faults import kinds
    found, eager = kinds.Training(), kinds.Training()
    x, = kinds.inputs(1)
    found.step(x), eager.plain(x)
    other = pester(5, 0.001, 0.01)
    other.start()
    interrupts = 0
    while True:
        try:
            while int(found.count.asnumpy()) < 100 or interrupts < 5:
                found.step(x)
            other.stop()
            break
        except KeyboardInterrupt:
            interrupts += 1
    steps = int(found.count.asnumpy())
    for _ in range(steps - 1):
        eager.plain(x)
    assert int(found.optimizer.global_step.asnumpy()[0]) == steps
    assert np.allclose(found.state(), eager.state(), rtol=2e-3, atol=1e-4)
    """
    helpers.run(_PESTER + textwrap.dedent(program), timeout=120, PYTHONPATH=helpers.ROOT)


def test_forked_children_run_programs_of_every_kind() -> None:
    """Compiled before the fork and in the child, while other threads run them."""
    program = """
    from tests.faults import kinds
    given = kinds.inputs(3)
    made = {name: make() for name, make in kinds.KINDS.items()}
    wanted = {name: [kinds.numbers(plain(x)) for x in given] for name, (_, plain) in made.items()}
    training, eager = kinds.Training(), kinds.Training()
    for name, (run, _) in made.items():
        kinds.check(name, run, given, wanted[name])
    training.step(given[0])
    stop = threading.Event()

    def call(name):
        while not stop.is_set():
            kinds.check(name, made[name][0], given, wanted[name])

    def compute():
        for name, (run, _) in made.items():
            kinds.check(name, run, given, wanted[name])
        fresh = kinds.KINDS["control_flow"]()[0]
        kinds.check("control_flow", fresh, given, wanted["control_flow"])
        for _ in range(9):
            training.step(given[0])
        for _ in range(10):
            eager.plain(given[0])
        assert int(training.count.asnumpy()) == 10
        assert np.allclose(training.state(), eager.state(), rtol=2e-3, atol=1e-4)

    threads = [threading.Thread(target=call, args=(name,)) for name in made]
    for thread in threads:
        thread.start()
    try:
        for _ in range(2):
            child = os.fork()
            if not child:
                code = 1
                try:
                    compute()
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    """
    helpers.run(program, timeout=180, PYTHONPATH=helpers.ROOT)
