"""Hooks of gradients run at every call, with values: eager, compiled, and in GRAPH_MODE."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.differential.harness import MANY, SEED
from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.errors import CaptureError

SEEN: list[Any] = []
COUNT = 24 * MANY


class Counter:
    """A hook that is an object."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, cell: Any, *gradients: Any) -> None:
        self.calls += 1
        SEEN.append(("object", self.calls, plain(gradients)))


def plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.asnumpy().tolist()
    return [plain(v) for v in value] if isinstance(value, (tuple, list)) else value


def assert_like(found: Any, wanted: Any, where: str) -> None:
    """Compares nested lists of numbers, which compiled code may round otherwise."""
    if isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted), where
        for a, b in zip(found, wanted):
            assert_like(a, b, where)
    else:
        near = pytest.approx(wanted, 1e-4, 1e-4) if isinstance(wanted, float) else wanted
        assert found == near, where


def noting(cell: Any, *gradients: Any) -> None:
    SEEN.append(("noted", plain(gradients)))


def printing(cell: Any, *gradients: Any) -> None:
    print("gradient", gradients[0][0] > 0.01)  # not by rounding


def counting(cell: Any, *gradients: Any) -> None:
    cell.count += 1
    SEEN.append(cell.count)


def scaling(cell: Any, *gradients: Any) -> Any:
    return tuple(g * 3 for g in gradients[0])


def clipping(cell: Any, *gradients: Any) -> Any:
    return tuple(ops.clamp(g, -0.5, 0.5) for g in gradients[0])


HOOKS: list[Callable[[], Any]] = [
    lambda: noting, lambda: printing, lambda: counting, lambda: scaling, lambda: clipping, Counter,
    lambda: (lambda cell, *g: SEEN.append(plain(g))),
]  # fmt: skip


def make(seed: int) -> nn.Cell:
    r = random.Random(seed)
    kinds = [nn.Tanh, nn.ReLU, lambda: nn.Dense(3, 3, weight_init="ones", has_bias=False)]
    cells = [r.choice(kinds)() for _ in range(r.randint(1, 3))]
    net = nn.SequentialCell(*cells)
    for _ in range(r.randint(1, 3)):
        cell = r.choice([net, *cells])
        cell.count = 0
        register = r.choice([cell.register_backward_hook, cell.register_backward_pre_hook])
        register(r.choice(HOOKS)())
    return net


class Gradient(nn.Cell):
    def __init__(self, net: nn.Cell) -> None:
        super().__init__()
        self.net, self.by = net, ops.GradOperation()

    def construct(self, x: Tensor) -> Tensor:
        return self.by(self.net)(x)


WAYS: dict[str, Callable[[Any], Any]] = {
    "gradient of compiled": lambda net: ms.grad(jit(net)),
    "compiled gradient": lambda net: jit(ms.grad(net)),
    "cell": Gradient,
}


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def mode(request: Any) -> Iterator[int]:
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


def calls(function: Any, seed: int, capsys: Any) -> Any:
    SEEN.clear()
    rng = np.random.default_rng(seed)
    found = [plain(function(Tensor(rng.normal(size=(2, 3)).astype(np.float32)))) for _ in range(3)]
    return found, list(SEEN), capsys.readouterr().out


def test_programs(mode: int, capsys: Any) -> None:
    for i in range(COUNT):
        seed, (name, way) = SEED + i, list(WAYS.items())[i % len(WAYS)]
        ms.set_context(mode=ms.PYNATIVE_MODE)
        wanted = calls(ms.grad(make(seed)), seed, capsys)
        ms.set_context(mode=mode)
        found = calls(way(make(seed)), seed, capsys)
        assert_like(found, wanted, f"seed {seed}, {name}, mode {mode}")


def test_explain_names_the_cell_and_the_hook() -> None:
    net = nn.SequentialCell(nn.Dense(3, 3), nn.Tanh())
    handle = net[0].register_backward_hook(noting)
    run = jit(net)
    run(Tensor(np.ones((2, 3), np.float32)))
    text = run.explain()
    assert "graph break: Dense.register_backward_hook" in text and "noting" in text
    handle.remove()
    run(Tensor(np.ones((2, 3), np.float32)))
    assert run.entries and "in pieces" not in run.explain()


def test_a_hook_that_only_computes_stays_in_the_graph() -> None:
    net = nn.SequentialCell(nn.Tanh())
    net[0].register_backward_hook(scaling)
    run = jit(ms.grad(net))
    x = Tensor(np.ones((2, 3), np.float32))
    np.testing.assert_allclose(run(x).asnumpy(), ms.grad(net)(x).asnumpy(), rtol=1e-6)
    assert run.entries


def test_fullgraph_and_strict_refuse_it() -> None:
    net = nn.Dense(3, 3)
    net.register_backward_hook(noting)
    x = Tensor(np.ones((2, 3), np.float32))
    with pytest.raises(CaptureError, match="more than compute"):
        jit(ms.grad(net), fullgraph=True)(x)
    with pytest.raises(CaptureError, match="more than compute"):
        jit(ms.grad(net), jit_config=ms.JitConfig(jit_syntax_level="STRICT"))(x)


@pytest.mark.parametrize("kind", ["register_hook", "HookBackward", "InsertGradientOf"])
def test_hooks_of_tensors(kind: str) -> None:
    def note(g: Any) -> Any:
        SEEN.append(plain(g))
        return g

    def f(x: Tensor) -> Tensor:
        y = x * 2
        if kind == "register_hook":
            y.register_hook(note)
            return (y * y).sum()
        y = getattr(ops, kind)(note)(y)
        return (y * y).sum()

    xs = [Tensor([float(i), 1.0]) for i in range(3)]
    found = []
    for g in (ms.grad(f), ms.grad(jit(f)), jit(ms.grad(f))):
        SEEN.clear()
        found.append(([plain(g(x)) for x in xs], list(SEEN)))
    assert found[0] == found[1] == found[2]
    assert len(found[0][1]) == 3
