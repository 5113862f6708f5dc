"""Rows of training steps: forward, loss, gradients and update of every parameter.

A call takes one step on a fixed batch and returns the loss before it. The first losses are compared
with those that PyTorch computes in float64 (``training_losses.json``, written by
``python -m benchmarks.training_losses``), so that a peer that skips work is noticed.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.network_rows import bert_layer
from benchmarks.workloads import Array, Workload, lenet, mlp

LOSSES = Path(__file__).with_name("training_losses.json")
CHECKED_STEPS = 3
#: Learning rates; momentum is 0.9, Adam's settings are the usual ones.
OPTIMIZERS = {"sgd": 0.01, "momentum": 0.01, "adam": 1e-4}
ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-12}  # small: frameworks put it in different places
MOMENTUM = 0.9
CLASSES = 10
#: Widths of the four stages of ResNet-18, of two blocks each.
STAGES = (64, 128, 256, 512)


def _losses(work: Workload) -> Array:
    return np.array(json.loads(LOSSES.read_text())[work.name])


def _step(work: Workload, target: Array, optimizer: str, loss: str) -> Workload:
    """The row that trains the model of another row."""
    return Workload(
        f"train-{work.name}-{optimizer}",
        f"Training step, {work.title}, {optimizer}",
        "train",
        (*work.args, target),
        _losses,
        work.params,
        rtol=2e-3 if work.model == "resnet18" else 1e-4,
        atol=1e-5,
        options={
            "model": work.model, "optimizer": optimizer, "rate": OPTIMIZERS[optimizer],
            "loss": loss,
        },
        calls=CHECKED_STEPS,
    )  # fmt: skip


def _labels(batch: int) -> Array:
    return np.random.RandomState(7).randint(0, CLASSES, batch).astype(np.int32)


def resnet18_convs() -> list[tuple[str, int, int, int, int]]:
    """Name, input and output channels, kernel size and stride of every convolution."""
    convs = [("stem", 3, STAGES[0], 7, 2)]
    channels = STAGES[0]
    for stage, width in enumerate(STAGES):
        for block in range(2):
            stride = 2 if stage and not block else 1
            name = f"{stage}.{block}"
            convs += [(f"{name}.a", channels, width, 3, stride), (f"{name}.b", width, width, 3, 1)]
            if stride > 1:
                convs.append((f"{name}.side", channels, width, 1, stride))
            channels = width
    return convs


def _resnet18(batch: int, size: int) -> Workload:
    rng = np.random.RandomState(5)
    params: dict[str, Array] = {}
    for name, inp, out, kernel, _ in resnet18_convs():
        scale = np.sqrt(2 / (inp * kernel * kernel))
        weight = rng.standard_normal((out, inp, kernel, kernel)) * scale
        params[f"{name}.w"] = weight.astype(np.float32)
        params[f"{name}.gamma"] = np.ones(out, np.float32)
        params[f"{name}.beta"] = np.zeros(out, np.float32)
    params["w0"] = (rng.standard_normal((CLASSES, STAGES[-1])) / 30).astype(np.float32)
    params["b0"] = np.zeros(CLASSES, np.float32)
    args = (rng.standard_normal((batch, 3, size, size)).astype(np.float32),)
    title = f"ResNet-18, {size} x {size}, batch {batch}"
    return Workload(f"resnet18-b{batch}", title, "resnet18", args, _losses, params)


def _bert(optimizer: str) -> Workload:
    work = bert_layer(8)
    target = np.random.RandomState(7).standard_normal(work.args[0].shape).astype(np.float32)
    return _step(work, target, optimizer, "mse")


def _classifier(make: Callable[[], Workload], batch: int, optimizer: str) -> Workload:
    return _step(make(), _labels(batch), optimizer, "cross_entropy")


def _rows() -> dict[str, Callable[[], Workload]]:
    rows: dict[str, Callable[[], Workload]] = {}
    for optimizer in OPTIMIZERS:
        rows[f"train-mlp-b64-{optimizer}"] = partial(_classifier, partial(mlp, 64), 64, optimizer)
        rows[f"train-lenet-b64-{optimizer}"] = partial(_classifier, lenet, 64, optimizer)
        rows[f"train-resnet18-b8-{optimizer}"] = partial(
            _classifier, partial(_resnet18, 8, 64), 8, optimizer
        )
        rows[f"train-bert-layer-b8-{optimizer}"] = partial(_bert, optimizer)
    return dict(sorted(rows.items()))


TRAINING = _rows()
