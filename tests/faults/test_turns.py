"""Several threads call compiled functions that write to parameters."""

from __future__ import annotations

import threading

import numpy as np

from tvmgraph import Parameter, Tensor, jit, nn, ops


class Counter(nn.Cell):
    """Two parameters that every step changes by the same amount."""

    def __init__(self) -> None:
        super().__init__()
        self.n = Parameter(Tensor(np.zeros(4, np.float32)), name="n")
        self.m = Parameter(Tensor(np.zeros((64, 64), np.float32)), name="m")

    @jit
    def step(self, x: Tensor) -> Tensor:
        self.n += x
        self.m = self.m + 1
        return self.n.sum()

    @jit
    def both(self, x: Tensor) -> Tensor:
        return ops.concat([self.n * x, self.m.reshape(-1)])


def in_threads(*functions: object) -> None:
    """Runs functions at once; an error of one is raised here."""
    errors: list[BaseException] = []

    def caught(f: object) -> None:
        try:
            f()  # pyright: ignore[reportCallIssue]
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=caught, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_no_update_is_lost_and_readers_see_whole_states() -> None:
    counter, x = Counter(), Tensor(np.ones(4, np.float32))
    counter.step(x), counter.both(x)
    left, torn = [6], []

    def write() -> None:
        for _ in range(200):
            counter.step(x)
        left[0] -= 1

    def read() -> None:
        while left[0] > 0:
            seen = counter.both(x).asnumpy()
            if (seen != seen[0]).any():
                torn.append(seen)

    in_threads(*[write] * 6, read, read)
    assert counter.n.asnumpy().tolist() == [1201.0] * 4
    assert (counter.m.asnumpy() == 1201).all()
    assert not torn


class Tally(nn.Cell):
    """Attributes and a list that every call changes by what it reads of them."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.even, self.seen = 0, True, []

    def construct(self, x: Tensor, step: int = 1) -> Tensor:
        self.count = self.count + step
        self.even = not self.even
        self.seen.append(self.count)
        return x + self.count


def test_no_change_of_an_attribute_is_lost() -> None:
    tally, x = Tally(), Tensor(np.zeros(4, np.float32))
    compiled, results = jit(tally), []

    def call() -> None:
        for _ in range(15):
            results.append(int(compiled(x)[0]))

    in_threads(*[call] * 8)
    assert tally.count == 120
    assert tally.even
    assert tally.seen == list(range(1, 121))
    assert sorted(results) == tally.seen


def test_no_change_is_lost_where_numbers_come_with_it() -> None:
    tally, x = Tally(), Tensor(np.zeros(4, np.float32))
    compiled = jit(tally)

    def call() -> None:
        for i in range(15):
            compiled(x, i)

    in_threads(*[call] * 4)
    assert tally.count == 4 * sum(range(15))
    assert len(tally.seen) == 60


def test_nested_functions_and_first_calls_do_not_wait_for_each_other() -> None:
    """Two functions that write the same parameters and call each other's inner function."""
    counter, x = Counter(), Tensor(np.ones(4, np.float32))

    @jit
    def inner(x: Tensor) -> Tensor:
        counter.n += x
        return counter.n * 1

    @jit
    def one(x: Tensor) -> Tensor:
        counter.m = counter.m + 1
        return inner(x)

    @jit
    def two(x: Tensor) -> Tensor:
        y = inner(x)
        counter.m = counter.m + 1
        return y

    def repeat(f: object) -> object:
        return lambda: [f(x) for _ in range(100)]  # pyright: ignore[reportCallIssue]

    in_threads(*map(repeat, (one, two, one, two)))
    assert counter.n.asnumpy().tolist() == [400.0] * 4
    assert (counter.m.asnumpy() == 400).all()
