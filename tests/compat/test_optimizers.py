"""Optimizers and schedules of ``experimental.optim`` give what MindSpore's give."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tvmgraph as ms
from tests.compat.cases_optimizers import OPTIMIZERS, SCHEDULES, run
from tests.compat.record_values import arrays, expected
from tvmgraph import Tensor
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.experimental import optim
from tvmgraph.experimental.optim import lr_scheduler

recorded = functools.cache(expected)
# one of each kind is compiled: the others have the same code
COMPILED = [OPTIMIZERS[k] for k in (3, 8, 15, 17, 23)] + [SCHEDULES[k] for k in (1, 8, 9, 14)]


def check(call: str, found: object) -> None:
    got = arrays(found)
    for number, array in enumerate(got):
        want = recorded("optimizers")[f"{call}.{number}"]
        np.testing.assert_allclose(array, want, rtol=2e-4, atol=5e-6)
    assert f"{call}.{len(got)}" not in recorded("optimizers")


@pytest.mark.parametrize("call", OPTIMIZERS + SCHEDULES)
def test_eager(call: str) -> None:
    check(call, run(call, ms, optim))


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("Adam", ["exp_avg.w", "exp_avg_sq.w", "max_exp_avg_sq.w", "state_step"]),
        ("NAdam", ["step_t", "exp_avg.w", "exp_avg_sq.w"]),
        ("Adamax", ["step_t", "exp_avg.w", "exp_inf.w"]),
        ("Rprop", ["prev.w", "step_size.w", "step_t"]),
        ("SGD", ["accum.w", "stat.w"]),
    ],
)
def test_states_stand_in_mindspores_order(name: str, states: list[str]) -> None:
    made = getattr(optim, name)([ms.Parameter(Tensor([1.0]), name="w")], lr=0.1)
    assert [p.name for p in made.get_parameters()] == ["w", *states]


@pytest.mark.parametrize("call", COMPILED)
def test_compiled(call: str) -> None:
    check(call, run(call, ms, optim, ms.jit))


def parameter() -> ms.Parameter:
    return ms.Parameter(Tensor([1.0, 2.0]), name="p")


def test_a_rate_that_changes_needs_no_compilation() -> None:
    p = parameter()
    sgd = optim.SGD([p], 0.5)
    step = ms.jit(lambda g: sgd((g,)))
    step(Tensor([1.0, 1.0]))
    ms.ops.assign(sgd.param_groups[0]["lr"], Tensor(0.25))
    with ms.assert_max_compiles(0):
        step(Tensor([1.0, 1.0]))
    assert p.asnumpy().tolist() == [0.25, 1.25]


def test_wrong_arguments() -> None:
    p = parameter()
    with pytest.raises(ArgumentError, match="more than one group"):
        optim.SGD([{"params": [p]}, {"params": [p]}], 0.1)
    with pytest.raises(ArgumentError, match="must not be empty"):
        optim.Adam([])
    with pytest.raises(DTypeError, match="only Parameters"):
        optim.Adam([Tensor([1.0])])
    with pytest.raises(ArgumentError, match=r"betas\[1\]"):
        optim.Adam([p], betas=(0.9, 1.0))
    with pytest.raises(DTypeError, match=r"optimizer of tvmgraph.experimental.optim"):
        lr_scheduler.StepLR(ms.nn.SGD([p], 0.1), 2)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match="one per group"):
        lr_scheduler.LambdaLR(optim.SGD([p], 0.1), [lambda e: e] * 2)


def test_the_text_of_an_optimizer() -> None:
    assert str(optim.SGD([parameter()], 0.5)).startswith(
        "SGD (\nParameter Group 0\n    dampening: 0"
    )
