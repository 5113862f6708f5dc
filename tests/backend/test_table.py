"""The tables of kernels: who takes what and why, and kernels that come from outside."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.choice import choose, deciding
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import substitute
from tvmgraph.backend.named import NAMED_KERNELS
from tvmgraph.backend.table import Kernel, Refused, Writer, register_kernel, table_of
from tvmgraph.errors import ArgumentError
from tvmgraph.machine.processor import CpuModel


def _match(nest: Nest, _model: CpuModel) -> Any:
    """A single elementwise stage over one loop."""
    stage = nest.stage
    if stage is None or stage.is_reduction or len(stage.axes) != 1:
        return Refused("no elementwise stage over a single loop")
    return stage


def _emit(stage: Any, backwards: bool, _writer: Writer[CpuModel]) -> None:
    """The loop, one element at a time, from its end if so planned."""
    (axis,) = stage.axes
    with emit.serial(axis.extent) as step:
        at = axis.extent - 1 - step if backwards else step
        with emit.serial(1):
            value = substitute(stage.value, {axis.var: at})
            emit.store(stage.buffer, value, [at])


BACKWARDS = Kernel(
    "backwards", _match, _emit, "an example from outside",
    lambda _stage, _model: choose("from the end", True, (True, False)), ("from the end",),
)  # fmt: skip


@pytest.fixture
def backwards() -> Iterator[None]:
    remove = register_kernel(BACKWARDS, before="elementwise")
    yield
    remove()


def _vector(size: int = 37) -> Tensor:
    return Tensor(np.linspace(-2, 2, size, dtype=np.float32))


def test_a_kernel_from_outside_is_used_and_explained(backwards: None) -> None:
    function, x = jit(lambda x: ops.relu(x) * 3), _vector()
    np.testing.assert_allclose(function(x).asnumpy(), np.maximum(x.asnumpy(), 0) * 3)
    said = function.explain(kernels=True)
    assert "-> backwards: an example from outside" in said and "plan: True" in said
    assert "kernels of your own" in said  # why the cache on disk has nothing to do with it
    matrix = jit(lambda x: ops.relu(x).reshape((1, 37)).broadcast_to((5, 37)) + ops.exp(x))
    matrix(x)
    assert "backwards: no elementwise stage over a single loop" in matrix.explain(kernels=True)


def test_a_kernel_is_gone_when_it_is_removed() -> None:
    function = jit(lambda x: ops.relu(x) * 5)
    register_kernel(BACKWARDS)()
    function(_vector())
    assert "backwards" not in function.explain(kernels=True)


def test_explain_says_what_earlier_entries_said_and_the_plan() -> None:
    net = nn.Dense(64, 48)
    function = jit(lambda x: ops.softmax(net(x)))
    function(Tensor(np.ones((32, 64), np.float32)))
    said = function.explain(kernels=True)
    assert "reduce_rows" in said and "conv_direct: " in said
    assert "conv_direct: no window slides over its column operand" in said
    assert "tile_rows=" in said


def test_names_are_unique_and_known(backwards: None) -> None:
    with pytest.raises(ArgumentError, match="already"):
        register_kernel(BACKWARDS)
    with pytest.raises(ArgumentError, match="elementwise_fused"):
        register_kernel(Kernel("other", _match, _emit, "x"), before="elementwize")
    with pytest.raises(ArgumentError, match="cuda"):
        register_kernel(Kernel("other", _match, _emit, "x"), backend="tpu")


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_every_entry_says_what_it_is_for(backend: str) -> None:
    kernels = table_of(backend).kernels
    assert len({k.name for k in kernels}) == len(kernels)
    assert all(k.why and k.name.islower() for k in kernels)


@pytest.mark.parametrize("name", NAMED_KERNELS)
def test_kernels_by_name_are_where_the_registry_says(name: str) -> None:
    kernel = NAMED_KERNELS[name]
    for place in filter(None, (kernel.cpu, kernel.cuda)):
        module, _, found = place.partition(":")
        assert hasattr(importlib.import_module(module), found)


def test_decisions_are_among_the_knobs_of_the_table() -> None:
    known = {knob for kernel in table_of("cpu").kernels for knob in kernel.knobs}
    function = jit(lambda x: ops.softmax(x @ x) + ops.relu(x))
    function(Tensor(np.ones((96, 96), np.float32)))
    with deciding() as decisions:
        function.explain(kernels=True)
    assert decisions.found and set(decisions.found) <= known


def test_a_processor_needs_nothing_of_cuda() -> None:
    program = (
        "import sys, numpy as np, tvmgraph as ms\n"
        "ms.set_context(compile_worker=False, enable_compile_cache=False)\n"
        "ms.jit(lambda x: ms.ops.relu(x) + 1)(ms.Tensor(np.ones(9, np.float32)))\n"
        "rooms = ('tvmgraph.backend.cuda', 'tvmgraph.compiler.cuda')\n"
        "print([name for name in sys.modules if name.startswith(rooms)])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
