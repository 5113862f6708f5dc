"""Shapes that a model computes of the sizes of its inputs: one capture serves all sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tvmgraph as ms
from tvmgraph import Tensor

N = helper.make_node


def _model(nodes: list[onnx.NodeProto], **constants: Any) -> onnx.ModelProto:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info("x", TensorProto.FLOAT, ["n", "t", 4])],
        [info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


_I64 = np.int64
#: The sizes of x as 0-d values n and t.
_SIZES = [
    N("Shape", ["x"], ["s"]),
    N("Gather", ["s", "zero"], ["n"], axis=0),
    N("Gather", ["s", "one"], ["t"], axis=0),
]
_CONSTANTS = {
    "zero": _I64(0), "one": _I64(1), "two": _I64(2), "four": _I64(4), "first": _I64([0]),
    "minus": _I64([-1]), "end": _I64([2**63 - 1]), "two1": _I64([2]), "four1": _I64([4]),
}  # fmt: skip


def _one(*names: str) -> list[onnx.NodeProto]:
    """Gives 0-d values an axis."""
    return [N("Unsqueeze", [name, "first"], [name + "1"]) for name in names]


CASES: dict[str, list[onnx.NodeProto]] = {
    "reshape": [
        *_one("n"), N("Concat", ["n1", "minus"], ["to"], axis=0), N("Reshape", ["x", "to"], ["y"]),
    ],
    "product of sizes": [
        N("Mul", ["n", "t"], ["nt"]), *_one("nt"),
        N("Concat", ["nt1", "four1"], ["to"], axis=0), N("Reshape", ["x", "to"], ["y"]),
    ],
    "slice of a table": [
        *_one("t"), N("Slice", ["table", "first", "t1", "first"], ["part"]),
        N("Add", ["x", "part"], ["y"]),
    ],
    "slice to the end": [N("Slice", ["x", "two1", "end", "minus"], ["y"])],
    "half of an axis": [
        N("Mul", ["t", "two"], ["tt"]), N("Div", ["tt", "two"], ["half"]), *_one("half", "n"),
        N("Concat", ["n1", "half1", "minus"], ["to"], axis=0), N("Reshape", ["x", "to"], ["y"]),
    ],
    "expand where -1": [
        *_one("n", "t"), N("Concat", ["n1", "minus", "t1"], ["wish"], axis=0),
        N("Shape", ["wish"], ["rank"]), N("ConstantOfShape", ["rank"], ["ones"], value=
            helper.make_tensor("v", TensorProto.INT64, [1], [1])),
        N("Mul", ["ones", "minus"], ["all"]), N("Equal", ["wish", "all"], ["open"]),
        N("Where", ["open", "ones", "wish"], ["to"]),
        N("ReduceSum", ["x", "minus"], ["r"], keepdims=0), N("Unsqueeze", ["r", "axis1"], ["u"]),
        N("Expand", ["u", "to"], ["y"]),
    ],
    "positions": [
        N("Range", ["zero", "t", "one"], ["p"]), N("Cast", ["p"], ["f"], to=TensorProto.FLOAT),
        N("Unsqueeze", ["f", "minus"], ["c"]), N("Mul", ["x", "c"], ["y"]),
    ],
    "filled": [
        *_one("n", "t"), N("Concat", ["n1", "t1", "four1"], ["to"], axis=0),
        N("ConstantOfShape", ["to"], ["z"]), N("Concat", ["x", "z"], ["y"], axis=1),
    ],
    "causal mask": [
        *_one("t"), N("Concat", ["t1", "t1"], ["to"], axis=0),
        N("ConstantOfShape", ["to"], ["ones"], value=
            helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0])),
        N("Trilu", ["ones"], ["mask"], upper=0), N("MatMul", ["mask", "x"], ["y"]),
    ],
    "tiles": [
        N("ReduceMean", ["x"], ["m"], axes=[0], keepdims=1),
        *_one("n"), N("Concat", ["n1", "ones2"], ["by"], axis=0), N("Tile", ["m", "by"], ["y"]),
    ],
    "size as a number": [
        N("Cast", ["t"], ["f"], to=TensorProto.FLOAT), N("Div", ["x", "f"], ["y"]),
    ],
    "number of elements": [
        N("Size", ["x"], ["all"]), N("Div", ["all", "four"], ["rows"]), *_one("rows"),
        N("Concat", ["rows1", "minus"], ["to"], axis=0), N("Reshape", ["x", "to"], ["y"]),
    ],
    "product of a shape": [
        N("ReduceProd", ["s"], ["all"], keepdims=1), N("Reshape", ["x", "all"], ["y"]),
    ],
    "parts of a shape": [
        N("Split", ["s"], ["a", "b", "c"], axis=0), N("Squeeze", ["a", "first"], ["a0"]),
        N("Add", ["a0", "zero"], ["a2"]), N("Unsqueeze", ["a2", "first"], ["a3"]),
        N("Mul", ["b", "c"], ["bc"]), N("Concat", ["a3", "bc"], ["to"], axis=0),
        N("Reshape", ["x", "to"], ["y"]),
    ],
    "rows of a shape": [
        N("Slice", ["s", "first", "two1"], ["front"]), N("Max", ["front", "four1"], ["m"]),
        N("Sub", ["m", "m"], ["none"]), N("Add", ["front", "none"], ["same"]),
        N("Concat", ["same", "two1", "two1"], ["to"], axis=0), N("Reshape", ["x", "to"], ["y"]),
    ],
    "flattened": [N("Flatten", ["x"], ["y"], axis=2)],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_capture_serves_all_sizes(name: str) -> None:
    rng = np.random.default_rng(0)
    constants = {
        **_CONSTANTS, "axis1": _I64([1]), "ones2": _I64([1, 1]),
        "table": rng.standard_normal((40, 4)).astype(np.float32),
    }  # fmt: skip
    model = _model([*_SIZES, *CASES[name]], **constants)
    reference, run = ReferenceEvaluator(model), ms.jit(ms.onnx.load(model))
    for n, t in ((3, 5), (6, 7), (5, 9), (8, 12)):
        x = rng.standard_normal((n, t, 4)).astype(np.float32)
        (want,) = reference.run(None, {"x": x})
        np.testing.assert_allclose(run(Tensor(x)).asnumpy(), want, rtol=1e-5, atol=1e-6)
    assert "compiled 2 time(s)" in run.explain(), run.explain()


def test_a_quotient_that_is_no_size_is_compiled_for_each() -> None:
    """Half of an odd size as a float has no place in a shape."""
    nodes = [
        *_SIZES, N("Cast", ["t"], ["f"], to=TensorProto.FLOAT), N("Div", ["f", "2f"], ["h"]),
        N("Floor", ["h"], ["low"]), N("Cast", ["low"], ["k"], to=TensorProto.INT64),
        *_one("k"), N("Slice", ["x", "first", "k1", "axis1"], ["y"]),
    ]  # fmt: skip
    model = _model(nodes, **_CONSTANTS, **{"2f": np.float32(2.0), "axis1": _I64([1])})
    reference, run = ReferenceEvaluator(model), ms.jit(ms.onnx.load(model))
    for t in (5, 6, 7):
        x = np.arange(8 * t, dtype=np.float32).reshape(2, t, 4)
        np.testing.assert_array_equal(run(Tensor(x)).asnumpy(), *reference.run(None, {"x": x}))
