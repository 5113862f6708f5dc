"""An ONNX model while it is written, node by node."""

from itertools import count
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from benchmarks.network_rows import HEAD, HEADS, WIDTH
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
