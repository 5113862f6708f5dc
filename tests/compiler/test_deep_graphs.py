"""Deep graphs whose values are read several times: no pass walks a path twice, none recurses."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm

import tvmgraph as ms
from tvmgraph import Tensor, ops
from tvmgraph.autodiff.reverse import reverse
from tvmgraph.backend.cpu import schedule as cpu
from tvmgraph.backend.cpu.schedule import schedule_func
from tvmgraph.backend.passes import run_passes
from tvmgraph.backend.target import make_target
from tvmgraph.capture import capture
from tvmgraph.compiler.build import blame
from tvmgraph.config.options import CompileOptions
from tvmgraph.export import to_onnx
from tvmgraph.graph import Graph, check, parse
from tvmgraph.graph import simplify as passes
from tvmgraph.graph.text import canonical_text
from tvmgraph.lowering import lower_many
from tvmgraph.onnx import load
from tvmgraph.passes.attention import fuse_attention
from tvmgraph.passes.freeze import arrange, freeze
from tvmgraph.passes.recompute import recompute_cheap
from tvmgraph.passes.run import run_graph_passes
from tvmgraph.passes.table import Stage, chosen
from tvmgraph.view.model import model_of

DEPTH = 100


def _tanh(x: Tensor) -> Tensor:
    return x + ops.tanh(x)


def _square(x: Tensor) -> Tensor:
    return x * 0.5 * x


def _matmul(x: Tensor) -> Tensor:
    return ops.matmul(x, ops.tanh(x)) * 0.01


def _softmax(x: Tensor) -> Tensor:
    return x + ops.softmax(x)


def _reshape(x: Tensor) -> Tensor:
    return x * 0.5 + ops.reshape(ops.tanh(ops.reshape(x, (4, 4, 16))), (16, 16))


def _transpose(x: Tensor) -> Tensor:
    return x * 0.4 + ops.transpose(x, (1, 0)) * 0.5


def _where(x: Tensor) -> Tensor:
    return ops.where(x > 0, x, ops.neg(x) * 0.5)


def _cast(x: Tensor) -> Tensor:
    return ops.cast(ops.cast(x, ms.float16), ms.float32) * 0.5 + x * 0.5


def _conv(x: Tensor) -> Tensor:
    weight = ops.full((4, 4, 3, 3), 0.01, dtype=ms.float32)
    image = ops.reshape(x, (1, 4, 8, 8))
    found = ops.conv2d(image, weight, pad_mode="pad", padding=1) + image * 0.9
    return ops.reshape(found, (16, 16))


def _reduce(x: Tensor) -> Tensor:
    return x * 0.5 + x.sum(1, keepdims=True) * x.max(0, keepdims=True) * 0.01


def _concat(x: Tensor) -> Tensor:
    return ops.concat([x[8:], x[:8]], 0) * 0.5 + x * 0.5


def _cumsum(x: Tensor) -> Tensor:
    return x * 0.5 + ops.cumsum(x, 0) * 0.01


def _gather(x: Tensor) -> Tensor:
    return x * 0.5 + ops.gather(x, Tensor(np.arange(16)[::-1].copy(), ms.int32), 0) * 0.5


def _siblings(x: Tensor) -> Tensor:
    a, b = ops.tanh(x), ops.sin(x)
    return (a * b) * (a + b)


def _pad(x: Tensor) -> Tensor:
    return x * 0.5 + ops.pad(x, (1, 1, 1, 1))[2:, 2:] * 0.5


def _layer_norm(x: Tensor) -> Tensor:
    ones = ops.full((16,), 1.0, dtype=ms.float32)
    return x + ops.layer_norm(x, (16,), ones, ones)


def _branch(x: Tensor) -> Tensor:
    return x * 0.5 + ops.tanh(x) if x.sum() > 0 else x - 1


STEPS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": _tanh, "square": _square, "matmul": _matmul, "softmax": _softmax, "reshape": _reshape,
    "transpose": _transpose, "where": _where, "cast": _cast, "conv": _conv, "reduce": _reduce,
    "concat": _concat, "cumsum": _cumsum, "gather": _gather, "siblings": _siblings, "pad": _pad,
    "layer_norm": _layer_norm, "branch": _branch,
}  # fmt: skip


def _repeated(step: Callable[[Tensor], Tensor], depth: int) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        for _ in range(depth):
            x = step(x)
        return x

    return function


def _attention(depth: int, constant: bool) -> Callable[[Tensor], Tensor]:
    """Attention under a mask that is an expression of the argument, or of large constants."""

    def function(x: Tensor) -> Tensor:
        size = 260 if constant else 16
        mask = ops.full((size, size), -0.001, dtype=ms.float32) if constant else x * 0.01
        for _ in range(depth):
            mask = mask * 0.5 + ops.tanh(mask)
        q = ops.reshape(x, (1, 1, -1, 16))
        scores = ops.matmul(q, ops.transpose(q, (0, 1, 3, 2)))
        return ops.matmul(ops.softmax(scores + mask), q)

    return function


def _argument(rows: int = 16) -> Tensor:
    return Tensor(np.random.default_rng(0).uniform(-0.5, 0.5, (rows, 16)).astype(np.float32))


def _work(task: Callable[[], Any]) -> tuple[int, Any]:
    """Calls of functions that a task makes, and its result."""
    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        result = task()
    finally:
        sys.setprofile(None)
    return calls, result


GPU = CompileOptions(target="sm_90")
PASSES: dict[str, Callable[[Graph], Any]] = {
    "simplify": passes.simplify,
    "rules": lambda g: run_graph_passes(g, CompileOptions("O3")),
    "gpu": lambda g: recompute_cheap(run_graph_passes(g, GPU), 1),
    "attention": fuse_attention,
    "freeze": freeze,
    "freeze for a gpu": lambda g: freeze(g, GPU),
    "arrange": arrange,
    "text": lambda g: parse(g.text(full=True)),
    "check": check,
    "hash": canonical_text,
    "reverse": lambda g: reverse(g, [0], [0]),
    "picture": model_of,
}


@pytest.mark.parametrize("name", STEPS)
def test_passes_are_linear(name: str) -> None:
    def capture(n: int) -> Graph:
        return ms.jit(_repeated(STEPS[name], n)).graph(_argument())

    capture(5)  # what is loaded and remembered at the first time
    small, large = (_work(lambda n=n: capture(n)) for n in (DEPTH // 2, DEPTH))
    assert large[0] < 2.5 * small[0], f"capture: {small[0]} and {large[0]} calls"
    for title, run in PASSES.items():
        run(small[1])
        calls = [_work(lambda g=g, run=run: run(g))[0] for g in (small[1], large[1])]
        assert calls[1] < 2.5 * calls[0], f"{title}: {calls[0]} and {calls[1]} calls"


@pytest.mark.parametrize(
    "name", ["layer_norm", "softmax", "reduce", "siblings", "square", "cumsum"]
)
def test_code_of_chains_is_linear(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a link of a chain computes is not computed again by all that follow."""
    sizes: list[int] = []

    def scheduled(func: Any, *args: Any) -> Any:
        made = schedule_func(func, *args)
        sizes[-1] += len(made.script())
        return made

    monkeypatch.setattr(cpu, "schedule_func", scheduled)
    ms.set_context(compile_worker=False, enable_compile_cache=False)
    try:
        for depth in (20, 40):
            sizes.append(0)
            ms.jit(_repeated(STEPS[name], depth))(_argument())
    finally:
        ms.reset_context()
    assert 0 < sizes[1] < 2.5 * sizes[0], f"{sizes} characters"


@pytest.mark.parametrize("constant", [False, True], ids=["argument", "constants"])
def test_masks_are_looked_at_once(constant: bool) -> None:
    x = _argument(260 if constant else 16)
    graphs = [
        passes.simplify(ms.jit(_attention(n, constant)).graph(x)) for n in (DEPTH // 2, DEPTH)
    ]
    calls = [_work(lambda g=g: fuse_attention(g))[0] for g in graphs]
    assert calls[1] < 2.5 * calls[0]
    assert "fused_attention" in fuse_attention(graphs[1]).op_counts()


@pytest.mark.parametrize("name", ["tanh", "matmul", "concat"])
def test_whole_transforms_are_linear(name: str) -> None:
    x, batch = _argument(), Tensor(np.stack([_argument().asnumpy()] * 2))

    def tasks(n: int) -> dict[str, Callable[[], Any]]:
        function = _repeated(STEPS[name], n)
        scalar = lambda x: function(x).sum()  # noqa: E731
        return {
            "eager gradient": lambda: ms.grad(scalar)(x),
            "gradient": lambda: ms.jit(ms.grad(scalar)).graph(x),
            "second derivative": lambda: ms.jit(ms.grad(lambda x: ms.grad(scalar)(x).sum())).graph(
                x
            ),
            "vmap": lambda: ms.jit(ms.vmap(function)).graph(batch),
            "ONNX": lambda: load(to_onnx(ms.jit(function).graph(x)))(x),
        }

    for title, run in tasks(5).items():
        run()
        calls = [_work(tasks(n)[title])[0] for n in (DEPTH // 2, DEPTH)]
        assert calls[1] < 2.5 * calls[0], f"{title}: {calls[0]} and {calls[1]} calls"


def test_long_chains_do_not_recurse() -> None:
    graph = ms.jit(_repeated(ops.tanh, 3000)).graph(_argument())
    assert len(graph.nodes) == 3000
    for run in PASSES.values():
        run(graph)
    load(to_onnx(graph))(_argument())


#: Seconds of processor time in which all compiles of :func:`_compile_all` end.
_LIMIT = 240
_CHILD = "from tests.compiler.test_deep_graphs import _compile_all; _compile_all()"


def test_compiles_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (_LIMIT, _LIMIT)),
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def _compile_all() -> None:
    """Compiles deep graphs and compares their results with those of NumPy; names each first."""
    names = ("matmul", "transpose", "where", "conv", "reduce", "concat", "gather", "pad")
    functions = {name: _repeated(STEPS[name], DEPTH) for name in names}
    functions["mask"] = _attention(DEPTH, False)
    loss = _repeated(_matmul, DEPTH // 4)
    functions["gradient"] = ms.grad(lambda x: loss(x).sum())
    x = _argument()
    for name, function in functions.items():
        print(name, flush=True)
        found = ms.jit(function)(x).asnumpy()
        np.testing.assert_allclose(found, function(x).asnumpy(), 2e-3, 2e-4)


def test_who_is_to_blame_is_asked_once_per_kind_of_node():
    """A network repeats its operators; compiling each copy alone would take minutes."""

    def chain(x):
        for _ in range(20):
            x = ops.exp(x * 0.5)
        return x

    x = Tensor(np.ones(3, np.float32))
    graph = capture(chain, (x,), {}).graph
    tried: list[Graph] = []
    error = blame(graph, RuntimeError("none"), tried.append)
    assert [g.nodes[0].op.name for g in tried] == ["mul", "exp"]
    assert "every operator compiles alone" in str(error)


@tvm.ir.instrument.pass_instrument
class _Sizes:
    """Notes the functions of every module whose groups of calls become kernels."""

    def __init__(self) -> None:
        self.found: list[int] = []

    def run_before_pass(self, mod: tvm.IRModule, info: Any) -> None:
        if info.name == "FuseTIR":
            self.found.append(len(mod.functions))


def test_functions_of_one_module_are_fused_together() -> None:
    """A pass over the whole module for each of them took most of the time of a large one."""

    def joined(x):
        return ops.exp(x).mean(-1), ops.exp(-x).mean(-1)

    sizes, count = _Sizes(), 12
    arguments = [Tensor(np.ones((32 * rows, 32), np.float32)) for rows in range(2, 2 + count)]
    graphs = {f"f{x.shape[0]}": capture(joined, (x,), {}).graph for x in arguments}
    options = CompileOptions(native=False)
    with make_target(), tvm.transform.PassContext(opt_level=3, instruments=[sizes]):
        mod = run_passes(lower_many(graphs), chosen(Stage.RELAX, options), options)
    kernels = [f for f in mod.functions.values() if isinstance(f, tvm.tirx.PrimFunc)]
    assert len(kernels) == count
    assert len([n for n in sizes.found if n > count]) == 2, sizes.found  # TVM's fusion, and ours
