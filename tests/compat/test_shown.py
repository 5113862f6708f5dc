"""Objects are shown by class and settings, never by address."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from typer.testing import CliRunner

import tvmgraph as ms
from tvmgraph import nn, ops
from tvmgraph.cli import app

OBJECTS: list[Any] = [
    ms.dataset.NumpySlicesDataset([1, 2]).batch(1), ms.Model(nn.Dense(1, 1)), nn.Accuracy(),
    ms.train.LossMonitor(3), ops.GradOperation(), ops.HyperMap(), ops.Partial(), ms.Generator(),
    ms.amp.DynamicLossScaler(1, 2, 3), ms.FixedLossScaleManager(), ops.ScalarSummary(),
    ms.dataset.vision.Resize(3), ms.dataset.transforms.Compose([ms.dataset.vision.Resize(3)]),
]  # fmt: skip


@pytest.mark.parametrize("value", OBJECTS, ids=lambda v: type(v).__name__)
def test_no_addresses(value: Any) -> None:
    assert " at 0x" not in repr(value)
    assert type(value).__name__ in repr(value)


def test_settings_are_shown() -> None:
    assert repr(ms.train.LossMonitor(3)) == "LossMonitor(per_print_times=3)"


def test_version() -> None:
    found = CliRunner().invoke(app, ["--version"])
    assert (found.exit_code, found.output) == (0, f"tvmgraph {ms.__version__}\n")


def test_all_packages_are_listed() -> None:
    assert {"boost", "parallel", "communication", "train"} <= set(dir(ms))


@pytest.mark.parametrize("cell, inner", [
    (nn.LSTM, "_DynamicLSTMCPUGPU"), (nn.GRU, "_DynamicGRUCPUGPU"), (nn.RNN, "_DynamicRNNTanh"),
    (functools.partial(nn.RNN, nonlinearity="relu"), "_DynamicRNNRelu"),
])  # fmt: skip
def test_recurrent_layers_are_printed_as_by_mindspore(cell: Any, inner: str) -> None:
    layer = cell(3, 4, num_layers=2, dropout=0.5)
    name = type(layer).__name__
    assert str(layer) == f"{name}(\n  (rnn): {inner}()\n  (dropout_op): Dropout(p=0.5)\n)"
