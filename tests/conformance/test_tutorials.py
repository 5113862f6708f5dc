"""The samples of the MindSpore tutorials, run as they stand except for the import."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(autouse=True)
def clean_context() -> Iterator[None]:
    ms.set_seed(3)
    ms.reset_context()
    yield
    ms.reset_context()


def run(name: str) -> dict[str, Any]:
    return runpy.run_path(str(SAMPLES / f"{name}.py"))


MLP = ["pynative_mode", "graph_mode", "jit_function", "jit_call", "jit_construct"]


@pytest.mark.parametrize("name", MLP)
def test_mlp(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = run(f"mlp_{name}")["output"]
    assert (output.shape, output.dtype) == ((64, 10), ms.float32)
    assert "traced" not in capsys.readouterr().out
    expected = run("mlp_pynative_mode")["Network"]
    assert expected is not None


def test_mlp_gives_the_same_in_all_five_ways() -> None:
    outputs = []
    for name in MLP:
        ms.reset_context()
        ms.set_seed(5)
        outputs.append(run(f"mlp_{name}")["output"].asnumpy())
    for other in outputs[1:]:
        np.testing.assert_allclose(other, outputs[0], rtol=1e-4, atol=1e-5)


def test_mlp_parameter_names() -> None:
    model = run("mlp_pynative_mode")["model"]
    names = [p.name for p in model.trainable_params()]
    assert names == [
        f"dense_relu_sequential.{i}.{kind}" for i in (0, 2, 4) for kind in ("weight", "bias")
    ]


def test_model_made_inside_a_jitted_function_draws_its_weights_at_every_call() -> None:
    ms.set_seed(5)
    namespace = run("mlp_jit_function")
    ms.set_seed(5)
    for name in ("output", "again"):  # as in eager mode
        eager = namespace["run"].fn(namespace["input"])
        np.testing.assert_allclose(namespace[name].asnumpy(), eager.asnumpy(), 1e-5, 1e-6)
    assert namespace["run"].compile_count == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add_ones", 2.0),
        ("tensor_cal", 4.0),
        ("tensor_cal_pijit", 4.0),
        ("mynet", 2.0),
        ("myop", -0.015104),
        ("add_mul_add", 1024.0),
    ],
)
def test_sample_value(name: str, expected: float) -> None:
    output = run(name)["output"]
    assert isinstance(output, Tensor)
    np.testing.assert_allclose(output.asnumpy(), np.full(output.shape, expected), rtol=1e-5)


def test_myop_is_one_kernel() -> None:
    namespace = run("myop")
    net = namespace["net"]
    compiled = ms.jit(net)
    compiled(Tensor(namespace["x"]), Tensor(namespace["y"]))
    assert len(compiled.kernels()) == 1


def test_gradient_of_a_jitted_cell() -> None:
    dx, dy = run("grad_of_jit_cell")["output"]
    assert np.all(dx.asnumpy() == 2.0)
    assert np.all(dy.asnumpy() == 1.0)
