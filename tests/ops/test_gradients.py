"""Compiled derivatives of every row, for every type of floats: those of eager code."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.ops import differences
from tests.ops.test_rows import LOWERED, ids
from tests.processors import CPUS
from tvmgraph import Tensor, jit, ops
from tvmgraph.compiler import compile_many
from tvmgraph.config.options import CompileOptions
from tvmgraph.graph import Graph
from tvmgraph.machine.targets import HOST
from tvmgraph.passes.run import run_graph_passes
from tvmgraph.testing.samples import RTOL, Case


def _kind(case: Case) -> str:
    return next((t.dtype.name for t in case.tensors() if t.dtype.is_float), "")


def _first_of_every_type() -> list[Case]:
    checkable = [c for c in LOWERED if differences.is_checkable(c) and _kind(c)]
    return list({(c.op.name, _kind(c)): c for c in reversed(checkable)}.values())


CASES = _first_of_every_type()
#: The cases of each processor: all for this one, some for a lesser one.
BY_TARGET = {target: CASES if target == HOST else CASES[::3] for target in CPUS}


class Derivative:
    """The gradients of a weighted sum of a case's results.

    Attributes:
        arguments: The case's tensors and the weights.
    """

    def __init__(self, case: Case) -> None:
        rng = np.random.default_rng(7)
        self._case, tensors = case, case.tensors()
        results = [t for t in case.call(tensors) if t.dtype.is_float]
        weights = [Tensor(rng.standard_normal(t.shape).astype(np.float32)) for t in results]
        self.arguments = [*tensors, *weights]
        self._inputs = len(tensors)
        self._places = tuple(i for i, t in enumerate(tensors) if t.dtype.is_float)

    def __call__(self, *arguments: Tensor) -> Any:
        return ms.grad(self._weighted, self._places)(*arguments)

    def _weighted(self, *arguments: Tensor) -> Tensor:
        tensors, weights = arguments[: self._inputs], arguments[self._inputs :]
        results = [t for t in self._case.call(list(tensors)) if t.dtype.is_float]
        sums = [(r.astype(ms.float32) * w).sum() for r, w in zip(results, weights)]
        return sum(sums, Tensor(0.0))  # a result without floats has a derivative of zeros


def _graph(derivative: Derivative) -> Graph:
    graph = jit(derivative).graph(*derivative.arguments)
    return run_graph_passes(graph, CompileOptions())


@functools.cache
def _compiled(target: str) -> tuple[Any, dict[str, Any]]:
    functions = {case.name: Derivative(case) for case in BY_TARGET[target]}
    graphs = {n.replace("-", "_"): _graph(f) for n, f in functions.items()}
    return compile_many(graphs, target=target), graphs


@pytest.mark.parametrize(
    "case, target",
    [pytest.param(c, t, id=f"{ids(c)}-{t}") for t, some in BY_TARGET.items() for c in some],
)
def test_compiled_gradient_is_eager(case: Case, target: str) -> None:
    function, name = Derivative(case), case.name.replace("-", "_")
    executable, graphs = _compiled(target)
    given = {f"arguments_{i}": t for i, t in enumerate(function.arguments)}
    inputs = [given[p.label] for p in graphs[name].params]
    found = executable.run(inputs, [v.type for v in graphs[name].outputs], name)
    wanted = function(*function.arguments)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    wanted = {id(w): w for w in wanted}.values()  # a tensor that comes twice is one output
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype == want.dtype
        got, want = (t.asnumpy().astype(np.float64) for t in (got, want))
        rtol = 4 * RTOL[_kind(case)]
        scale = np.max(np.abs(want[np.isfinite(want)]), initial=1.0)
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * scale)


@pytest.mark.filterwarnings("error")
def test_means_of_more_elements_than_half_precision_counts() -> None:
    x = Tensor(np.ones(70_000, np.float16))
    assert (ops.mean(x).asnumpy() == 1).all()
    slopes = ms.grad(ops.mean)(x).asnumpy()
    np.testing.assert_allclose(slopes, 1 / 70_000, rtol=4e-3)  # it is a subnormal number
    assert np.isinf((x[:1] * 1e6).asnumpy()).all()
