"""A compiled step writes into the memory of parameters, and never into what others can see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, jit, nn

OPTIMIZERS = {
    "sgd": lambda p: nn.SGD(p, 0.1),
    "momentum": lambda p: nn.Momentum(p, 0.1, 0.9),
    "adam": lambda p: nn.Adam(p, 0.01),
    "adamw": lambda p: nn.AdamWeightDecay(p, 0.01, weight_decay=0.1),
    "rmsprop": lambda p: nn.RMSProp(p, 0.01),
}


def make(optimizer: Any) -> tuple[nn.Cell, Any, Any, tuple[Tensor, Tensor]]:
    ms.set_seed(0)
    net = nn.SequentialCell(nn.Dense(20, 30), nn.Tanh(), nn.Dense(30, 5))
    opt = optimizer(net.trainable_params())
    rng = np.random.default_rng(0)
    batch = (Tensor(rng.normal(size=(8, 20)).astype(np.float32)), Tensor(np.arange(8) % 5))
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), opt)
    return net, opt, step, batch


def address(p: Parameter) -> int:
    return np.from_dlpack(p._ffi).ctypes.data


def is_written_in_place(step: Any, batch: Any, p: Parameter) -> bool:
    for _ in range(2):  # compiled code must have made the storage
        step(*batch)
    before = address(p)
    step(*batch)
    return address(p) == before


def test_weights_and_moments_keep_their_memory() -> None:
    net, opt, step, batch = make(OPTIMIZERS["adam"])
    run = jit(step)
    for p in (*net.trainable_params(), *opt.moment1, *opt.moment2, opt.global_step):
        assert is_written_in_place(run, batch, p), p.name
    assert sum("in_place" in name for name in run.kernels()) >= 4


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_in_place_steps_equal_eager_ones(name: str) -> None:
    net, opt, step, batch = make(OPTIMIZERS[name])
    other, other_opt, eager, _ = make(OPTIMIZERS[name])
    run = jit(step)
    for _ in range(5):
        np.testing.assert_allclose(run(*batch).asnumpy(), eager(*batch).asnumpy(), rtol=1e-5)
    for a, b in zip(
        (*net.get_parameters(), *opt.get_parameters()),
        (*other.get_parameters(), *other_opt.get_parameters()), strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-6)


def test_what_others_hold_does_not_change() -> None:
    net, _, step, batch = make(OPTIMIZERS["adam"])
    run = jit(step)
    view, whole = jit(lambda: net[0].weight.reshape(-1)), jit(lambda x: (x, net[2].weight))
    for _ in range(3):
        run(*batch)
    weight, bias = net[0].weight, net[0].bias
    held = {
        "array": weight.asnumpy(),
        "snapshot": bias.value(),
        "copy": Parameter(net[2].weight),
        "view": view(),
        "result": whole(batch[0])[1].value(),
        "slice": net[2].weight[0],
    }
    seen = {k: np.array(v if isinstance(v, np.ndarray) else v.asnumpy()) for k, v in held.items()}
    fresh = {"view": view(), "snapshot": bias.value()}  # nobody looks at these before the steps
    for _ in range(2):
        run(*batch)
    for key, value in held.items():
        now = value if isinstance(value, np.ndarray) else value.asnumpy()
        np.testing.assert_array_equal(now, seen[key], err_msg=key)
    for key, value in fresh.items():
        np.testing.assert_array_equal(value.asnumpy(), seen[key], err_msg=key)
    assert not np.array_equal(weight.asnumpy(), seen["array"])


def test_measuring_changes_nothing() -> None:
    net, opt, step, batch = make(OPTIMIZERS["adam"])
    run = jit(step)
    run(*batch)
    profile = run.profile(*batch, repeat=1)
    before = [p.asnumpy().copy() for p in (*net.get_parameters(), *opt.get_parameters())]
    run.profile(*batch, repeat=3)
    after = [p.asnumpy() for p in (*net.get_parameters(), *opt.get_parameters())]
    changed = [not np.array_equal(a, b) for a, b in zip(before, after)]
    counted = [p.name for p, c in zip((*net.get_parameters(), *opt.get_parameters()), changed) if c]
    again = [p.asnumpy().copy() for p in net.get_parameters()]
    np.testing.assert_array_equal(again[0], net[0].weight.asnumpy())
    assert profile.memory.planned < profile.memory.arguments, counted


def test_one_parameter_under_two_steps() -> None:
    net, _, step, batch = make(OPTIMIZERS["sgd"])
    run, short = jit(step), tuple(t[:4] for t in batch)
    other, _, eager, _ = make(OPTIMIZERS["sgd"])
    for data in (batch, short, short, batch, batch, short):
        np.testing.assert_allclose(run(*data).asnumpy(), eager(*data).asnumpy(), rtol=1e-5)
    np.testing.assert_allclose(net[0].weight.asnumpy(), other[0].weight.asnumpy(), rtol=1e-5)
