"""float16 on processors without arithmetic, or even conversions, of it: every value as NumPy's."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, jit, ops
from tvmgraph.compiler import pipeline
from tvmgraph.config.options import CompileOptions
from tvmgraph.core.op import OPS
from tvmgraph.core.types import tensor_type
from tvmgraph.graph import Graph, GraphBuilder
from tvmgraph.lowering import lower_many
from tvmgraph.machine.targets import target_table
from tvmgraph.runtime.host import missing_features

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
OTHER = np.random.default_rng(0).permutation(EVERY)
UNARY = ("sqrt", "floor", "ceil", "abs", "neg", "round", "trunc")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "less")


@pytest.fixture(params=["host", "x86-64-v2", "x86-64-v3"])
def config(request: pytest.FixtureRequest) -> JitConfig:
    """Settings for a processor that this one can be."""
    if missing_features(target_table()[request.param].get("features", ())):
        pytest.skip("this processor cannot run code for it")
    return JitConfig(options={"cpu": request.param})


def same(got: np.ndarray, want: np.ndarray) -> None:
    """Compares bits, but not those of what is no number."""
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


def between() -> np.ndarray:
    """float64 on, between and half way between all neighbours of float16, and a bit beside."""
    finite = np.sort(EVERY[np.isfinite(EVERY)]).astype(np.float64)
    middle = (finite[1:] + finite[:-1]) / 2
    points = np.concatenate([finite, middle, [65520, 65519.99999, 1e300, np.inf, np.nan]])
    with np.errstate(all="ignore"):
        near = [np.nextafter(points, 0), np.nextafter(points, np.inf)]
        wide = np.nextafter(points.astype(np.float32), np.float32(0)).astype(np.float64)
    return np.concatenate([points, *near, wide, -wide])


def test_conversions(config: JitConfig) -> None:
    doubles = between()
    with np.errstate(all="ignore"):
        singles = doubles.astype(np.float32)
        narrow = [doubles.astype(np.float16), singles.astype(np.float16)]
    integers = np.arange(-70000, 70000, 37, dtype=np.int32)

    def convert(half: Tensor, single: Tensor, double: Tensor, integer: Tensor) -> list[Tensor]:
        to_half = [t.astype(ms.float16) for t in (double, single, integer)]
        return [half.astype(ms.float32), half.astype(ms.float64), *to_half]

    arguments = [Tensor(a) for a in (EVERY, singles, doubles, integers)]
    found = jit(convert, jit_config=config)(*arguments)
    with np.errstate(all="ignore"):
        wanted = [EVERY.astype(np.float32), EVERY.astype(np.float64), *narrow]
        wanted.append(integers.astype(np.float16))
    for got, want in zip(found, wanted, strict=True):
        same(got.asnumpy(), want)


def test_arithmetic(config: JitConfig) -> None:
    def compute(x: Tensor, y: Tensor) -> list[Tensor]:
        pairs = [getattr(ops, name)(x, y) for name in BINARY]
        return [*pairs, *(getattr(ops, name)(x) for name in UNARY), x * y + x]

    with np.errstate(all="ignore"):
        wanted = compute(Tensor(EVERY), Tensor(OTHER))
    found = jit(compute, jit_config=config)(Tensor(EVERY), Tensor(OTHER))
    for got, want in zip(found, wanted, strict=True):
        same(got.asnumpy(), want.asnumpy())


def _graph(name: str, dtype: type) -> Graph:
    builder = GraphBuilder(name)
    inputs = [builder.param(tensor_type((333,), np.dtype(dtype))) for _ in OPS[name].tensors]
    return builder.build(builder.call(OPS[name], inputs))


@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "aarch64"])
def test_no_element_is_converted_by_a_function(target: str) -> None:
    names = ("exp", "erf", "sigmoid", "add", "less", "floor", "digamma")
    graphs = {name: _graph(name, np.float16) for name in names}
    made = pipeline.build(lower_many(graphs), CompileOptions(target=target, native=False))
    libraries: list[Any] = [made.executable.mod]
    text = ""
    while libraries:
        library = libraries.pop()
        libraries += list(library.imports)
        text += library.inspect_source("asm") if library.kind == "llvm" else ""
    called = set(re.findall(r"\t(?:callq?|jmp|bl?)\t(\w+)", text))
    assert any("exp" in name for name in called)
    assert not called & {"__extendhfsf2", "__truncsfhf2", "__truncdfhf2"}
