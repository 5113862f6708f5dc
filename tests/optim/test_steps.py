"""Every optimizer against values recorded from MindSpore 2.10, eager and compiled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, nn

RECORDED = json.loads((Path(__file__).parent / "steps.json").read_text())
RUNS = RECORDED["runs"]
# states this project does not keep when nothing reads them
UNUSED = {"AdaFactor": ("Parameter$",)}


def label(run: dict[str, Any]) -> str:
    args = ",".join(f"{k}={v}" for k, v in run["args"].items() if k != "learning_rate")
    return f"{run['optimizer']}({args})"


def make(run: dict[str, Any]) -> tuple[Parameter, Parameter, Any]:
    weight = Parameter(Tensor(np.array(RECORDED["weight"], np.float32)), name="net.weight")
    gamma = Parameter(Tensor(np.array(RECORDED["gamma"], np.float32)), name="net.gamma")
    args = {k: tuple(v) if k in ("etas", "step_sizes") else v for k, v in run["args"].items()}
    return weight, gamma, getattr(nn, run["optimizer"])([weight, gamma], **args)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("run", RUNS, ids=label)
def test_five_steps(run: dict[str, Any], compiled: bool) -> None:
    weight, gamma, optimizer = make(run)
    step = ms.jit(optimizer) if compiled else optimizer
    for i in range(5):
        gradients = (
            Tensor(np.array(RECORDED["weight_grads"][i], np.float32)),
            Tensor(np.array(RECORDED["gamma_grads"][i], np.float32)),
        )
        assert step(gradients)
        np.testing.assert_allclose(weight.asnumpy(), run["weight"][i], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(gamma.asnumpy(), run["gamma"][i], rtol=1e-4, atol=1e-5)
    if compiled:
        assert step.compile_count == 1


@pytest.mark.parametrize("run", RUNS, ids=label)
def test_states_have_the_recorded_names(run: dict[str, Any]) -> None:
    _, _, optimizer = make(run)
    states = {p.name: p for p in optimizer.get_parameters()}
    for name, (_, dtype, first) in run["states"].items():
        if name.startswith(UNUSED.get(run["optimizer"], "\0")) and name not in states:
            continue
        assert str(states[name].dtype) == dtype
        assert states[name].asnumpy().ravel()[0] == pytest.approx(first[0])
