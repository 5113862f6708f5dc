"""Models of characters learn a book as the same models in PyTorch do."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.train.characters import (
    CURVES,
    HEADS,
    HIDDEN,
    LAYERS,
    LENGTH,
    RATE,
    STEPS,
    WEIGHTS,
    WIDTH,
    batches,
    encode,
)
from tvmgraph import Tensor, nn, ops
from tvmgraph.data import load_alice


class Lstm(nn.Cell):
    def __init__(self, letters: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(letters, WIDTH)
        self.lstm = nn.LSTM(WIDTH, HIDDEN, batch_first=True)
        self.head = nn.Dense(HIDDEN, letters)

    def construct(self, ids: Tensor) -> Any:
        return self.head(self.lstm(self.embedding(ids))[0])


class Layer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.before = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.between = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.qkv, self.mixed = nn.Dense(WIDTH, 3 * WIDTH), nn.Dense(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Dense(WIDTH, 4 * WIDTH), nn.Dense(4 * WIDTH, WIDTH)

    def construct(self, x: Tensor) -> Any:
        n, t, e = x.shape
        parts = self.qkv(self.before(x)).reshape(n, t, 3, HEADS, e // HEADS)
        q, k, v = parts.transpose(2, 0, 3, 1, 4)
        scores = ops.matmul(q, k.swapaxes(-1, -2)) / math.sqrt(e // HEADS)
        hidden = ops.triu(ops.ones((t, t), ms.bool_), 1)
        scores = ops.softmax(ops.masked_fill(scores, hidden, -1e9), -1)
        y = ops.matmul(scores, v).transpose(0, 2, 1, 3).reshape(n, t, e)
        x = x + self.mixed(y)
        return x + self.narrow(ops.gelu(self.wide(self.between(x)), approximate="none"))


class Transformer(nn.Cell):
    def __init__(self, letters: int) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(letters, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.CellList([Layer() for _ in range(LAYERS)])
        self.last = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.head = nn.Dense(WIDTH, letters)

    def construct(self, ids: Tensor) -> Any:
        x = self.embedding(ids) + self.positions.embedding_table
        for layer in self.layers:
            x = layer(x)
        return self.head(self.last(x))


MODELS = {"lstm": Lstm, "transformer": Transformer}


def build(name: str, letters: int) -> nn.Cell:
    """Builds a model with the weights that PyTorch's had, by their names there."""
    net = MODELS[name](letters)
    arrays = dict(WEIGHTS[name](letters))
    for key, p in net.parameters_and_names():
        cell, _, leaf = key.rpartition(".")
        leaf = {"embedding_table": "weight", "gamma": "weight", "beta": "bias"}.get(leaf, leaf)
        p.set_data(Tensor(arrays.pop(f"{cell}.{leaf}")))
    assert not arrays, "weights that no parameter took"
    return net


def train(name: str, steps: int, compiled: bool) -> list[float]:
    """Trains a model and returns its losses."""
    ids, letters = encode(load_alice())
    net = build(name, letters)
    optimizer = nn.Adam(net.trainable_params(), RATE[name])

    def loss_of(x: Tensor, y: Tensor) -> Any:
        return ops.cross_entropy(net(x).reshape(-1, letters), y.reshape(-1))

    gradient = ms.value_and_grad(loss_of, None, net.trainable_params())

    def step(x: Tensor, y: Tensor) -> Any:
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    run = ms.jit(step) if compiled else step
    inputs, targets = batches(ids)
    return [float(run(Tensor(inputs[i]), Tensor(targets[i])).asnumpy()) for i in range(steps)]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_losses_fall_as_in_pytorch(name: str) -> None:
    expected = np.array(json.loads(CURVES.read_text())[name])
    losses = np.array(train(name, STEPS, compiled=True))
    assert losses[0] > 4
    assert losses[-10:].mean() < 2.7
    np.testing.assert_allclose(losses, expected, rtol=0.01)


@pytest.mark.parametrize("name", MODELS)
def test_eager_losses_fall_as_in_pytorch(name: str) -> None:
    expected = np.array(json.loads(CURVES.read_text())[name])
    losses = train(name, 5, compiled=False)
    np.testing.assert_allclose(losses, expected[:5], rtol=1e-4)
