"""ONNX's form of the convolutional networks."""

import numpy as np

from benchmarks.conv_rows import EPSILON, Node
from benchmarks.peers.onnx_nodes import Nodes


def _conv(n: Nodes, node: Node, x: str) -> str:
    _, name, stride, dilation, groups = node
    padding = n.work.params[f"{name}.w"].shape[2] // 2 * dilation
    parts = [n.param(f"{name}.{p}") for p in "wb" if f"{name}.{p}" in n.work.params]
    return n("Conv", x, *parts, strides=[stride] * 2, pads=[padding] * 4,
             dilations=[dilation] * 2, group=groups)  # fmt: skip


def _norm(n: Nodes, name: str, x: str) -> str:
    parts = [n.param(f"{name}.{p}") for p in ("gamma", "beta", "mean", "var")]
    return n("BatchNormalization", x, *parts, epsilon=EPSILON)


def _dense(n: Nodes, name: str, x: str) -> str:
    return n("Gemm", x, n.param(f"{name}.w"), n.param(f"{name}.b"), transB=1)


def _clip(n: Nodes, x: str) -> str:
    return n("Clip", x, n.const(np.float32(0)), n.const(np.float32(6)))


def _pool(n: Nodes, x: str, size: int, stride: int, padding: int) -> str:
    return n("MaxPool", x, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[padding] * 4)


def _append(n: Nodes, node: Node, x: str) -> str:
    kind, *rest = node
    if kind == "seq":
        for inner in rest:
            x = _append(n, inner, x)
        return x
    if kind == "sum":
        return n("Add", _append(n, rest[0], x), _append(n, rest[1], x))
    if kind == "conv":
        return _conv(n, node, x)
    if kind == "norm":
        return _norm(n, rest[0], x)
    if kind == "dense":
        return _dense(n, rest[0], x)
    if kind == "maxpool":
        return _pool(n, x, *rest)
    if kind == "mean":
        return n("Flatten", n("GlobalAveragePool", x))
    return n("Relu", x) if kind == "relu" else _clip(n, x)


def network(n: Nodes) -> str:
    """Adds the row's network."""
    return _append(n, n.work.options["tree"], "x0")
