"""Compiled functions trust the guards of their callers: no checks of arguments at their entry."""

from __future__ import annotations

import numpy as np
import pytest
import tvm

from tvmgraph import ops
from tvmgraph.capture import record
from tvmgraph.compiler import pipeline
from tvmgraph.config.options import CompileOptions
from tvmgraph.core.op import OPS
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import Dim, tensor_type
from tvmgraph.dtypes import float32
from tvmgraph.graph import Graph, GraphBuilder
from tvmgraph.lowering import lower


def bytecode(graph: Graph, checked: bool) -> str:
    request = pipeline.Request(checked=checked)
    made = pipeline.build(lower(graph), CompileOptions("O0", native=False), request=request)
    return str(made.executable.as_text())


@pytest.mark.parametrize("checked", [True, False])
def test_static_functions_check_only_when_asked(checked: bool) -> None:
    graph = record(lambda x, y: ops.exp(x) + y, *[Tensor(np.ones((2, 3), np.float32))] * 2)
    text = bytecode(graph, checked)
    assert ("check_tensor_info" in text) is checked
    assert ("match_shape" in text) is checked


def test_symbolic_dimensions_are_still_bound() -> None:
    builder = GraphBuilder("f")
    x = builder.param(tensor_type((Dim("n"), 3), float32))
    y = builder.param(tensor_type((Dim("n"), 3), float32))
    graph = builder.build([builder.call(OPS["add"], (x, y))[0]])
    module = pipeline.build(lower(graph), CompileOptions("O1", native=False)).executable
    assert "check_tensor_info" not in module.as_text()
    vm = tvm.relax.VirtualMachine(module, tvm.cpu())
    for n in (1, 4, 7):
        a = np.arange(n * 3, dtype=np.float32).reshape(n, 3)
        given = [tvm.runtime.tensor(a), tvm.runtime.tensor(a)]
        np.testing.assert_array_equal(vm["main"](*given).numpy(), a + a)
