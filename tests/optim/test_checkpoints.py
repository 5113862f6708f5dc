"""Checkpoints of optimizers that MindSpore 2.10 wrote after two steps, and what it did next."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, nn

RECORDED = json.loads((Path(__file__).parent / "checkpoints.json").read_text())
NAMES_ONLY = RECORDED.pop("names only")


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Dense(3, 2)
        self.fc2 = nn.Dense(2, 1)

    def construct(self, x: Tensor) -> Tensor:
        return self.fc2(self.fc1(x))


Params = list[Parameter]


def groups(params: Params) -> list[dict[str, Any]]:
    return [
        {"params": [p for p in params if "bias" in p.name], "lr": 0.02},
        {"params": [p for p in params if "bias" not in p.name], "weight_decay": 0.1},
    ]


OPTIMIZERS: dict[str, Callable[[Params], nn.Optimizer]] = {
    "SGD": lambda p: nn.SGD(p, 0.1),
    "SGDm": lambda p: nn.SGD(p, 0.1, momentum=0.9),
    "SGDd": lambda p: nn.SGD(p, 0.1, momentum=0.9, dampening=0.2),
    "Momentum": lambda p: nn.Momentum(p, 0.1, 0.9),
    "MomentumG": lambda p: nn.Momentum(groups(p), 0.1, 0.9),
    "MomentumS": lambda p: nn.Momentum(p, nn.ExponentialDecayLR(0.1, 0.9, 2), 0.9),
    "Adam": lambda p: nn.Adam(p, 0.1),
    "AdamAms": lambda p: nn.Adam(p, 0.1, use_amsgrad=True),
    "AdamG": lambda p: nn.Adam(groups(p), 0.1),
    "LazyAdam": lambda p: nn.LazyAdam(p, 0.1),
    "AdamOffload": lambda p: nn.AdamOffload(p, 0.1),
    "AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, 0.1, weight_decay=0.1),
    "AdaMax": lambda p: nn.AdaMax(p, 0.1),
    "RMSProp": lambda p: nn.RMSProp(p, 0.1),
    "RMSPropC": lambda p: nn.RMSProp(p, 0.1, centered=True),
    "Adagrad": nn.Adagrad,
    "Adadelta": nn.Adadelta,
    "FTRL": nn.FTRL,
    "ProximalAdagrad": nn.ProximalAdagrad,
    "Rprop": nn.Rprop,
    "ASGD": nn.ASGD,
    "AdaFactor": lambda p: nn.AdaFactor(p, 0.1, scale_parameter=False, relative_step=False),
    "AdaFactorM": lambda p: nn.AdaFactor(
        p, 0.1, scale_parameter=False, relative_step=False, beta1=0.9
    ),
    "Lamb": lambda p: nn.Lamb(p, 0.1),
}


def gradients(params: Params, step: int) -> dict[str, Tensor]:
    rng = np.random.RandomState(100 + step)
    return {p.name: Tensor(rng.standard_normal(p.shape).astype(np.float32)) for p in params}


def take_step(optimizer: Any, params: Params, step: int) -> None:
    by_name = gradients(params, step)
    optimizer(tuple(by_name[p.name] for p in optimizer.parameters))


def started(name: str) -> tuple[Params, nn.Optimizer]:
    params = Net().trainable_params()
    rng = np.random.RandomState(5)
    for p in params:
        p.set_data(Tensor(rng.standard_normal(p.shape).astype(np.float32)))
    return params, OPTIMIZERS[name](params)


def test_every_recorded_optimizer_is_compared() -> None:
    assert OPTIMIZERS.keys() == RECORDED.keys() | NAMES_ONLY.keys()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_states_have_mindspores_names_in_its_order(name: str) -> None:
    wanted = NAMES_ONLY.get(name) or RECORDED[name]["names"]
    _, optimizer = started(name)
    assert [p.name for p in optimizer.get_parameters()] == wanted


@pytest.fixture
def files(tmp_path: Path) -> Callable[[str], Path]:
    def write(name: str) -> Path:
        path = tmp_path / "theirs.ckpt"
        path.write_bytes(base64.b64decode(RECORDED[name]["file"]))
        return path

    return write


@pytest.mark.parametrize("name", RECORDED)
def test_their_checkpoint_continues_as_theirs(name: str, files: Callable[[str], Path]) -> None:
    params, optimizer = started(name)
    missing, unused = ms.load_param_into_net(optimizer, ms.load_checkpoint(files(name)))
    assert not missing
    assert unused == []
    for step in (2, 3):
        take_step(optimizer, params, step)
    for p, after in zip(params, RECORDED[name]["after"], strict=True):
        np.testing.assert_allclose(p.asnumpy(), np.array(after), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", RECORDED)
def test_our_checkpoint_holds_what_theirs_does(
    name: str, files: Callable[[str], Path], tmp_path: Path
) -> None:
    params, optimizer = started(name)
    for step in (0, 1):
        take_step(optimizer, params, step)
    ms.save_checkpoint(optimizer, tmp_path / "ours.ckpt")
    ours, theirs = ms.load_checkpoint(tmp_path / "ours.ckpt"), ms.load_checkpoint(files(name))
    assert list(ours) == list(theirs)
    for key, value in ours.items():
        assert value.aval is theirs[key].aval, key
        np.testing.assert_allclose(value.asnumpy(), theirs[key].asnumpy(), rtol=1e-6, atol=1e-6)
