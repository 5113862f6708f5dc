"""Programs as users write them in which something differed from plain Python once."""

from __future__ import annotations

import functools
import itertools
import logging
import warnings
from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np
import pytest

from tests.capture.any_python import MODES
from tests.capture.test_fuzz import in_numpy
from tvmgraph import Tensor, jit, nn, ops

Function = Callable[..., Any]


def chunks(items: Iterable[Tensor], size: int) -> Generator[list[Tensor]]:
    rest = iter(items)
    while batch := list(itertools.islice(rest, size)):
        yield batch


def stacked(batches: Iterable[list[Tensor]], scale: float) -> Generator[Tensor]:
    for batch in batches:
        yield ops.stack(batch) * scale


def of_a_pipeline(rows: list[Tensor], size: int) -> tuple[list[float], int]:
    sums, count = [], 0
    for block in stacked(chunks(rows, size), 0.5):
        sums.append(float(block.sum()))
        count += block.shape[0]
    return sums, count


@pytest.mark.parametrize("mode", MODES)
def test_a_generator_takes_the_items_of_another(mode: str) -> None:
    compiled = jit(of_a_pipeline, capture_mode=mode)
    with in_numpy(), warnings.catch_warnings():
        warnings.simplefilter("error")  # that it could not be compiled
        for n in (5, 6, 5):
            rows = [Tensor(np.full(2, i, np.float32)) for i in range(n)]
            assert compiled(rows, 2) == of_a_pipeline(rows, 2)


class Memory:
    """State that a program keeps in an object of its own."""

    def __init__(self) -> None:
        self.h = Tensor([1.0, 2.0])
        self.c = self.h
        self.seen: list[int] = []


class Remembering(nn.Cell):
    """State that begins as one tensor under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.h = self.c = Tensor([1.0, 2.0])
        self.rows = [self.h]

    def construct(self, x: Tensor) -> Tensor:
        return step(self, x)


def step(state: Any, x: Tensor) -> Tensor:
    result = state.h * 10 + state.c
    state.h = x * 2
    state.c = state.c + result
    return result


def of_a_list(state: Any, x: Tensor) -> Tensor:
    result = state.h * 10 + state.rows[0]
    state.h = x + result
    return result


def test_state_that_a_function_replaces_is_read_at_every_call() -> None:
    """Once the two names hold two tensors, one capture serves all calls."""
    for function in (step, of_a_list):
        for kind in (Memory, Remembering):
            plain, state = kind(), kind()
            for each in (plain, state):
                each.rows = [each.h]
            compiled = jit(function, fullgraph=True)
            with in_numpy():
                for n in range(6):
                    x = Tensor([float(n), 0.5])
                    assert compiled(state, x).tolist() == function(plain, x).tolist(), (kind, n)
                    assert (state.h.tolist(), state.c.tolist()) == (
                        plain.h.tolist(), plain.c.tolist(),
                    )  # fmt: skip
            assert compiled.compile_count == 2, compiled.explain()


def test_an_argument_that_is_written_and_was_kept_by_the_call_before() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.last = Tensor([1.0, 2.0])

        def construct(self, x: Tensor) -> Tensor:
            x[0] = 5
            y = self.last * 10
            self.last = x
            return y

    plain, net = Net(), Net()
    compiled = jit(net)
    mine, its = Tensor([1.0, 2.0]), Tensor([1.0, 2.0])
    for i in range(6):
        if i % 3 == 2:  # another one; then the kept one twice
            mine, its = Tensor([float(i), 2.0]), Tensor([float(i), 2.0])
        mine[0] = its[0] = float(i)
        np.testing.assert_array_equal(compiled(its).asnumpy(), plain(mine).asnumpy())


def test_a_cell_whose_state_begins_as_one_tensor() -> None:
    plain, net = Remembering(), Remembering()
    compiled = jit(net)
    with in_numpy():
        for n in range(6):
            x = Tensor([float(n), 0.5])
            assert compiled(x).tolist() == plain(x).tolist()
    assert compiled.compile_count == 2


def averaged(memory: Memory, x: Tensor, steps: int) -> tuple[Tensor, int]:
    count = 0
    while count < steps:
        count += 1
        memory.h = memory.h * 0.5 + x.mean()
        memory.seen.append(round(float(memory.h.sum()), 3))  # a graph break
        if memory.h.sum() > 4:
            break
    return memory.h, count


def test_segments_read_the_state_of_an_object_at_every_call() -> None:
    plain, memory = Memory(), Memory()
    compiled = jit(averaged)
    with in_numpy():
        for n in range(16):
            x = Tensor([float(n % 5), 1.5])
            expected, found = averaged(plain, x, 3), compiled(memory, x, 3)
            assert found[0].tolist() == expected[0].tolist() and found[1] == expected[1]
            assert memory.seen == plain.seen
    assert "Memory.h changed" not in compiled.explain()


def deprecated(message: str) -> Callable[[Function], Function]:
    """Warns of its caller, as decorators do."""

    def decorator(function: Function) -> Function:
        @functools.wraps(function)
        def inner(*args: Any) -> Any:
            warnings.warn(f"{function.__name__}: {message}", DeprecationWarning, stacklevel=2)
            return function(*args)

        return inner

    return decorator


@deprecated("use another")
def doubled(x: Tensor) -> Tensor:
    return x * 2


def noted(x: Tensor) -> Tensor:
    logging.getLogger(__name__).warning("of the caller", stacklevel=2)
    return x + 1


def warned(x: Tensor) -> Tensor:
    y = doubled(x)
    if y.sum() > 3:
        y = noted(y)
    return noted(y)


def test_warnings_and_records_of_a_called_function_name_its_caller(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The ``stacklevel`` counts from the function that warns, also in compiled code."""
    said = []
    for function in (warned, jit(warned)):
        for value in (1.0, 2.0):
            caplog.clear()
            with in_numpy(), warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                result = function(Tensor([value]))
            shown = [(str(w.message), w.filename, w.lineno) for w in found]
            lines = [(r.getMessage(), r.funcName, r.lineno) for r in caplog.records]
            said.append((result.tolist(), shown, lines))
    assert said[:2] == said[2:]
    assert said[0][1][0][2] == warned.__code__.co_firstlineno + 1
