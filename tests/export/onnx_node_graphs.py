"""ONNX's node tests on captured graphs: compiled, many at once, and exported again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, numpy_helper

import tvmgraph as ms
from tests.export import onnx_node_tests as node_tests
from tvmgraph import Tensor
from tvmgraph.capture import tree
from tvmgraph.compiler import compile_many
from tvmgraph.errors import TvmgraphError
from tvmgraph.export.capture import Program, capture_program
from tvmgraph.export.onnx import OPSET, to_onnx
from tvmgraph.graph import Role
from tvmgraph.lowering import lower

_AT_ONCE = 60  # graphs in one module
_SHORT = 8  # elements of what may be a shape or factors of one


class Captured(NamedTuple):
    """A test's model as a graph.

    Attributes:
        case: The test.
        program: The graph with its weights.
        inputs: Tensors for the graph's inputs.
    """

    case: Any
    program: Program
    inputs: list[Tensor]

    def arguments(self) -> list[Tensor]:
        """Returns inputs and weights in the order of the graph's parameters."""
        given = iter(self.inputs)
        weights = self.program.parameters
        return [
            next(given) if p.role is Role.INPUT else Tensor(weights[p.label])
            for p in self.program.graph.params
        ]

    def expected(self) -> list[Any]:
        """Returns the test's outputs, sequences as their elements."""
        return list(_flat(self.case.data_sets[0][1]))


def _flat(value: Any) -> Iterable[Any]:
    if not isinstance(value, (list, tuple)):
        return [value]
    return [leaf for v in value for leaf in _flat(v)]


def capture(case: Any) -> Captured:
    """Captures a test's model; inputs that decide about shapes become constants."""
    given = case.data_sets[0][0]
    net = ms.onnx.load(case.model)
    args = tuple(node_tests.tensor(v) for v in given)
    try:
        program = capture_program(net, args)
    except TvmgraphError:
        args = tuple(_constant(v) for v in given)
        program = capture_program(net, args)
    return Captured(case, program, tree.tensors(args))


def _constant(value: Any) -> Any:
    """Returns numbers and short lists of them as constants."""
    if value is None or isinstance(value, (list, tuple)):
        return node_tests.tensor(value)
    array = numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)
    small = array.ndim <= 1 and array.size <= _SHORT
    return array if small else Tensor(array)


class Batch:
    """Captures and compiles many tests.

    Args:
        cases: The tests.
    """

    def __init__(self, cases: Iterable[Any]) -> None:
        self._compiled: dict[str, str] = {}
        self._again: dict[str, str] = {}
        self._ready: list[Captured] = []
        for case in cases:
            self._capture(case)
        for i in range(0, len(self._ready), _AT_ONCE):
            self._compile(self._ready[i : i + _AT_ONCE])

    def problems(self, name: str) -> tuple[str, str]:
        """Returns why a test fails compiled, and exported again; ``""`` where it does not."""
        return self._compiled.get(name, ""), self._again.get(name, "")

    def _capture(self, case: Any) -> None:
        try:
            captured = capture(case)
        except TvmgraphError as e:
            self._compiled[case.name] = self._again[case.name] = node_tests.why_not(e)
            return
        self._again[case.name] = _exported(captured)
        try:
            lower(captured.program.graph)
        except TvmgraphError as e:
            self._compiled[case.name] = node_tests.why_not(e)
        else:
            self._ready.append(captured)

    def _compile(self, group: list[Captured]) -> None:
        graphs = {_function(c): c.program.graph for c in group}
        try:
            executable = compile_many(graphs, "O0")
        except Exception as e:
            if len(group) == 1:  # whatever TVM raises
                self._compiled[group[0].case.name] = f"{type(e).__name__}: {e}"
                return
            half = len(group) // 2
            self._compile(group[:half])
            self._compile(group[half:])
            return
        for c in group:
            types = [v.type for v in c.program.graph.outputs]
            found = executable.run(c.arguments(), types, _function(c))
            self._compiled[c.case.name] = node_tests.compare(c.case, found, c.expected())


def _function(captured: Captured) -> str:
    return re.sub(r"\W", "_", captured.case.name)


def _exported(captured: Captured) -> str:
    """Exports a graph, imports that eagerly, and compares."""
    case = captured.case
    try:
        program = captured.program
        model = to_onnx(program.graph, program.parameters, OPSET)
        found = ms.onnx.load(model)(*captured.inputs)
    except TvmgraphError as e:
        return node_tests.why_not(e)
    found = found if isinstance(found, tuple) else (found,)
    return node_tests.compare(case, found, captured.expected())
