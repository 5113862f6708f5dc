"""ONNX's form of the kernel, transformer and recurrent rows, as exporters write them."""

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from benchmarks.network_rows import HEAD, HEADS, LSTM_LAYERS, LSTM_SIZE, WIDTH
from benchmarks.peers.onnx_networks import network
from benchmarks.workloads import Workload


class Nodes:
    """Collects the nodes and constants of a model."""

    def __init__(self, work: Workload) -> None:
        self.work = work
        self.nodes: list[NodeProto] = []
        self.tensors: list[TensorProto] = []
        self._number = count()

    def __call__(self, kind: str, *inputs: str, **attrs: Any) -> str:
        name = f"t{next(self._number)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attrs))
        return name

    def const(self, value: Any) -> str:
        """Adds a constant."""
        name = f"c{next(self._number)}"
        self.tensors.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def param(self, name: str) -> str:
        """Adds one of the row's weights."""
        return self.const(self.work.params[name])

    def dense(self, part: str, x: str) -> str:
        """Adds a dense layer of a transformer; its weight is stored (in, out)."""
        weight = self.const(np.ascontiguousarray(self.work.params[f"w{part}"].T))
        return self("Add", self("MatMul", x, weight), self.param(f"b{part}"))

    def norm(self, x: str, part: str) -> str:
        """Adds a layer normalization."""
        gamma, beta = self.param(f"gamma{part}"), self.param(f"beta{part}")
        return self("LayerNormalization", x, gamma, beta, axis=-1, epsilon=1e-5)

    def gelu(self, x: str) -> str:
        """Adds a GELU as exporters write it; ONNX Runtime fuses it."""
        z = self("Div", x, self.const(np.float32(np.sqrt(2.0))))
        z = self("Add", self("Erf", z), self.const(np.float32(1)))
        return self("Mul", self("Mul", x, z), self.const(np.float32(0.5)))

    def heads(self, x: str, batch: int) -> str:
        """Takes the heads apart."""
        shape = self.const(np.array([batch, -1, HEADS, HEAD]))
        return self("Transpose", self("Reshape", x, shape), perm=[0, 2, 1, 3])

    def join(self, x: str, batch: int) -> str:
        """Puts the heads together."""
        shape = self.const(np.array([batch, -1, WIDTH]))
        return self("Reshape", self("Transpose", x, perm=[0, 2, 1, 3]), shape)

    def attention(self, q: str, k: str, v: str, hidden: str | None = None) -> str:
        """Adds matmul, softmax, matmul."""
        scores = self("MatMul", q, self("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self("Div", scores, self.const(np.float32(np.sqrt(HEAD))))
        if hidden is not None:
            scores = self("Where", hidden, self.const(np.float32(-np.inf)), scores)
        return self("MatMul", self("Softmax", scores, axis=-1), v)


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
