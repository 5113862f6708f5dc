"""Adapter for ONNX Runtime: the models are built with onnx.helper."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from benchmarks.peers import Call
from benchmarks.peers import onnx_layers as layers
from benchmarks.workloads import LENET_CONVS, LENET_DENSES, Workload

OPSET = 17
IR_VERSION = 8


def _scalar(name: str, value: float) -> TensorProto:
    return numpy_helper.from_array(np.array(value, np.float32), name)


def _add(work: Workload) -> tuple[list[NodeProto], list[TensorProto]]:
    return [helper.make_node("Add", ["x0", "x1"], ["y"])], []


def _mynet(work: Workload) -> tuple[list[NodeProto], list[TensorProto]]:
    nodes = [
        helper.make_node("Mul", ["x0", "two"], ["double"]),
        helper.make_node("Add", ["double", "one"], ["y"]),
    ]
    return nodes, [_scalar("two", 2.0), _scalar("one", 1.0)]


def _myop(work: Workload) -> tuple[list[NodeProto], list[TensorProto]]:
    nodes = [
        helper.make_node("Mul", ["x0", "two"], ["double"]),
        helper.make_node("Pow", ["double", "three"], ["power"]),
        helper.make_node("Sub", ["power", "x1"], ["difference"]),
        helper.make_node("Mul", ["difference", "power"], ["y"]),
    ]
    return nodes, [_scalar("two", 2.0), _scalar("three", 3.0)]


def _weights(work: Workload) -> list[TensorProto]:
    return [numpy_helper.from_array(v, k) for k, v in work.params.items()]


def _dense_stack(value: str, layers: int) -> list[NodeProto]:
    nodes: list[NodeProto] = []
    for i in range(layers):
        last = i == layers - 1
        out = "y" if last else f"dense{i}"
        nodes.append(helper.make_node("Gemm", [value, f"w{i}", f"b{i}"], [out], transB=1))
        if not last:
            nodes.append(helper.make_node("Relu", [out], [f"act{i}"]))
            value = f"act{i}"
    return nodes


def _mlp(work: Workload) -> tuple[list[NodeProto], list[TensorProto]]:
    return _dense_stack("x0", len(work.params) // 2), _weights(work)


def _lenet(work: Workload) -> tuple[list[NodeProto], list[TensorProto]]:
    nodes, value = [], "x0"
    for i in range(len(LENET_CONVS)):
        names = [f"conv{i}", f"relu{i}", f"pool{i}"]
        nodes += [
            helper.make_node("Conv", [value, f"conv{i}.w", f"conv{i}.b"], [names[0]]),
            helper.make_node("Relu", [names[0]], [names[1]]),
            helper.make_node(
                "MaxPool", [names[1]], [names[2]], kernel_shape=[2, 2], strides=[2, 2]
            ),
        ]
        value = names[2]
    nodes.append(helper.make_node("Flatten", [value], ["flat"]))
    return nodes + _dense_stack("flat", len(LENET_DENSES)), _weights(work)


Builder = Callable[[Workload], tuple[list[NodeProto], list[TensorProto]]]
BUILDERS: dict[str, Builder] = {
    "add": _add,
    "mynet": _mynet,
    "myop": _myop,
    "mlp": _mlp,
    "lenet": _lenet,
    **dict.fromkeys(layers.BUILDERS, layers.model_parts),
}


def build_model(work: Workload) -> ModelProto:
    """Return the row as an ONNX model with inputs ``x0``, ``x1`` and output ``y``."""
    nodes, initializers = BUILDERS[work.model](work)
    inputs = [
        helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for i, a in enumerate(work.args)
    ]
    output = ValueInfoProto(name="y")  # the type is inferred
    graph = helper.make_graph(nodes, work.name, inputs, [output], initializers)
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)


class OnnxRuntimePeer:
    """Runs a row in one session with all graph optimisations."""

    def __init__(self, threads: int) -> None:
        self.options = ort.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.inter_op_num_threads = 1
        self.options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL

    def version(self) -> str:
        """Return the version of ONNX Runtime."""
        return ort.__version__

    def build(self, work: Workload) -> Call:
        """Create the session and bind its inputs and output, the form with the least overhead."""
        model = build_model(work).SerializeToString()
        session = ort.InferenceSession(model, self.options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for i, array in enumerate(work.args):
            binding.bind_ortvalue_input(f"x{i}", ort.OrtValue.ortvalue_from_numpy(array))
        binding.bind_output("y", "cpu")

        def call() -> ort.IOBinding:
            session.run_with_iobinding(binding)
            return binding

        return call

    def to_numpy(self, result: Any) -> np.ndarray:
        """Return the bound output as an array."""
        return result.get_outputs()[0].numpy()


def create(variant: str, threads: int) -> OnnxRuntimePeer:
    """Create the adapter."""
    return OnnxRuntimePeer(threads)
