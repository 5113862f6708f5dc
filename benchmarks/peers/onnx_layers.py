"""ONNX's form of the kernel, transformer and recurrent rows, as exporters write them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from benchmarks.network_rows import LSTM_LAYERS, LSTM_SIZE
from benchmarks.peers.onnx_networks import network
from benchmarks.peers.onnx_nodes import Nodes
from benchmarks.workloads import Workload


def _single(kind: str, *more: Any, **attrs: Any) -> Callable[[Nodes], str]:
    def build(n: Nodes) -> str:
        inputs = [f"x{i}" for i in range(len(n.work.args))]
        return n(kind, *inputs, *[n.const(m) for m in more], **attrs)

    return build


def _dense(n: Nodes) -> str:
    return n("Gemm", "x0", n.param("w0"), transB=1)


def _bert(n: Nodes) -> str:
    batch = len(n.work.args[0])
    mixed = n.attention(*(n.heads(n.dense(part, "x0"), batch) for part in "qkv"))
    x = n.norm(n("Add", "x0", n.dense("o", n.join(mixed, batch))), "1")
    return n.norm(n("Add", x, n.dense("2", n.gelu(n.dense("1", x)))), "2")


def _gpt2(n: Nodes) -> str:
    normed = n.norm("x0", "1")
    q, k, v = (n.heads(n.dense(part, normed), 1) for part in "qkv")
    k, v = n("Concat", "x1", k, axis=2), n("Concat", "x2", v, axis=2)
    x = n("Add", "x0", n.dense("o", n.join(n.attention(q, k, v), 1)))
    return n("Add", x, n.dense("2", n.gelu(n.dense("1", n.norm(x, "2")))))


def _causal(n: Nodes) -> str:
    size = n.work.args[0].shape[2]
    return n.attention("x0", "x1", "x2", n.const(np.triu(np.ones((size, size), bool), 1)))


def _lstm(n: Nodes) -> str:
    x = "x0"
    for layer in range(LSTM_LAYERS):

        def reorder(array: np.ndarray) -> np.ndarray:  # i, f, g, o to ONNX's i, o, f, g
            i, f, g, o = np.split(array, 4)
            return np.concatenate((i, o, f, g))

        p = n.work.params
        weights = [n.const(reorder(p[f"{kind}{layer}"])[None]) for kind in ("ih", "hh")]
        bias = np.concatenate((reorder(p[f"b{layer}"]), np.zeros_like(p[f"b{layer}"])))
        y = n("LSTM", x, *weights, n.const(bias[None]), hidden_size=LSTM_SIZE)
        x = n("Squeeze", y, n.const(np.array([1])))
    return x


BUILDERS: dict[str, Callable[[Nodes], str]] = {
    "dense": _dense,
    "matmul": _single("MatMul"),
    "muladd": lambda n: n("Add", n("Mul", "x0", "x1"), "x2"),
    "gelu": lambda n: n.gelu("x0"),
    "softmax": _single("Softmax", axis=-1),
    "logsoftmax": _single("LogSoftmax", axis=-1),
    "layernorm": lambda n: n.norm("x0", ""),
    "transpose": _single("Transpose", perm=[1, 0]),
    "sum0": _single("ReduceSum", np.array([0]), keepdims=0),
    "sum1": _single("ReduceSum", np.array([1]), keepdims=0),
    "argmax": _single("ArgMax", axis=1, keepdims=0),
    "cumsum": _single("CumSum", np.array(1)),
    "gather": _single("Gather", axis=0),
    "bert": _bert,
    "gpt2": _gpt2,
    "attention": _causal,
    "lstm": _lstm,
    "network": network,
}


def model_parts(work: Workload) -> tuple[list[NodeProto], list[TensorProto]]:
    """Returns the nodes of a row, the last of which makes ``y``, and its constants."""
    nodes = Nodes(work)
    BUILDERS[work.model](nodes)
    nodes.nodes[-1].output[0] = "y"
    return nodes.nodes, nodes.tensors
