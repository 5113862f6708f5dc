"""Equal bits for any number of threads, where that is asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tvmgraph as ms
from tvmgraph import Tensor, ops
from tvmgraph.errors import ConfigError

_PROGRAM = """
import hashlib, json
import numpy as np
import tvmgraph as ms
from tvmgraph import Tensor, nn, ops

rng = np.random.default_rng(0)


def data(*shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32))


def digest(*tensors):
    return hashlib.sha256(b"".join(t.asnumpy().tobytes() for t in tensors)).hexdigest()


def reduced(x, columns, a, b):
    flat = x.reshape(-1)
    scanned = ops.cumsum(flat, 0), ops.cumprod(flat * 0.001 + 1, 0)
    sums = ops.sum(x), ops.var(x), ops.norm(x), ops.logsumexp(flat, 0), ops.prod(flat * 0.001 + 1)
    rows = ops.softmax(columns, 0), ops.softmax(columns.T, -1), ops.sum(columns, 0)
    return (*scanned, *sums, *rows, ops.matmul(flat, flat), ops.matmul(a, b), ops.matmul(a.T, a))


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2)
        )
        self.head = nn.Dense(32, 10)

    def construct(self, x):
        return self.head(ops.mean(self.layers(x), (2, 3)))


def trained():
    ms.set_seed(3)
    net, loss = Network(), nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    step = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

    @ms.jit
    def train(x, y):
        value, gradients = step(x, y)
        optimizer(gradients)
        return value

    x, y = data(8, 3, 33, 33), Tensor(rng.integers(0, 10, 8).astype(np.int32))
    for _ in range(2):
        train(x, y)
    return list(net.get_parameters())


arguments = data(700, 700), data(50001, 3), data(64, 9001), data(9001, 33)
compiled = ms.jit(reduced)
usual = digest(*compiled(*arguments))
ms.set_context(deterministic=True)
print(json.dumps([usual, digest(*compiled(*arguments)), digest(*trained())]))
"""


def _digests(threads: int) -> list[str]:
    root = str(Path(ms.__file__).parents[1])
    environment = {**os.environ, "TVM_NUM_THREADS": str(threads), "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_equal_bits_for_any_number_of_threads() -> None:
    first, second = _digests(1), _digests(3)
    assert first[0] != second[0]  # else this test would show nothing
    assert first[1:] == second[1:]


def test_the_setting_takes_both_spellings_and_belongs_to_the_key() -> None:
    f = ms.jit(lambda x: ops.sum(x))
    x = Tensor([1.0, 2.0])
    f(x)
    for given in (True, "ON"):
        ms.set_context(deterministic=given)
        assert ms.get_context("deterministic") == "ON"
        f(x)
    assert f.explain().count("deterministic") >= 1
    ms.set_context(deterministic=False)
    assert ms.get_context("deterministic") == "OFF"
    ms.set_context(deterministic="OFF")
    with pytest.raises(ConfigError, match="deterministic"):
        ms.set_context(deterministic=1)
    with pytest.raises(ConfigError, match="deterministic"):
        ms.JitConfig(options={"deterministic": "ON"})
