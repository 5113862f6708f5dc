"""Rows of convolutions: layers of ResNet-50 and MobileNet alone, and whole networks.

A network is a tree of nodes, which every peer builds from its own layers:

| node | meaning |
|---|---|
| ``("conv", name, stride, dilation, groups)`` | keeps the size but for the stride, bias if given |
| ``("norm", name)`` | batch normalization with stored statistics |
| ``("relu",)``, ``("relu6",)`` | activations |
| ``("maxpool", size, stride, padding)`` | maximum pooling |
| ``("mean",)`` | average over the image |
| ``("dense", name)`` | dense layer |
| ``("seq", node, ...)`` | one after the other |
| ``("sum", node, node)`` | both on the same input, added; ``("seq",)`` passes it through |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workloads import Array, Workload, lenet

Node = tuple[Any, ...]

EPSILON = 1e-5
FLOAT = 4


class Network:
    """Makes the nodes of a network together with their weights, and counts operations."""

    def __init__(self, seed: int, channels: int, size: int) -> None:
        self.rng = np.random.RandomState(seed)
        self.params: dict[str, Array] = {}
        self.channels = channels
        self.size = size
        self.flops = 0

    def _add(self, name: str, array: Array) -> None:
        self.params[name] = array.astype(np.float32)

    def conv(self, out: int, kernel: int, stride: int = 1, groups: int = 1,
             bias: bool = False, dilation: int = 1) -> Node:  # fmt: skip
        """A convolution that keeps the size, divided by the stride."""
        name, fan = f"conv{len(self.params)}", self.channels // groups * kernel**2
        scale = np.sqrt(2.0 / fan)
        shape = (out, self.channels // groups, kernel, kernel)
        self._add(f"{name}.w", self.rng.standard_normal(shape) * scale)
        if bias:
            self._add(f"{name}.b", self.rng.standard_normal(out) / 10)
        self.channels, self.size = out, -(-self.size // stride)
        self.flops += 2 * out * fan * self.size**2
        return ("conv", name, stride, dilation, groups)

    def norm(self) -> Node:
        """A batch normalization."""
        name = f"norm{len(self.params)}"
        self._add(f"{name}.gamma", self.rng.uniform(0.5, 1.0, self.channels))
        self._add(f"{name}.beta", self.rng.standard_normal(self.channels) / 10)
        self._add(f"{name}.mean", self.rng.standard_normal(self.channels) / 10)
        self._add(f"{name}.var", self.rng.uniform(0.5, 1.5, self.channels))
        return ("norm", name)

    def pool(self) -> Node:
        """Maximum pooling, 3 x 3 with stride 2."""
        self.size = -(-self.size // 2)
        return ("maxpool", 3, 2, 1)

    def dense(self, out: int) -> Node:
        """A dense layer."""
        name = f"dense{len(self.params)}"
        self._add(f"{name}.w", self.rng.standard_normal((out, self.channels)) / self.channels**0.5)
        self._add(f"{name}.b", self.rng.standard_normal(out) / 10)
        self.flops += 2 * out * self.channels
        return ("dense", name)

    def unit(self, out: int, kernel: int, stride: int = 1, groups: int = 1,
             act: str = "") -> list[Node]:  # fmt: skip
        """Convolution, batch normalization and activation."""
        last = [(act,)] if act else []
        return [self.conv(out, kernel, stride, groups), self.norm(), *last]


def _windows(x: Array, kernel: int, stride: int, padding: int, value: float,
             dilation: int = 1) -> Array:  # fmt: skip
    pads = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    padded = np.pad(x, pads, constant_values=value)
    reach = dilation * (kernel - 1) + 1
    view = np.lib.stride_tricks.sliding_window_view(padded, (reach, reach), (2, 3))
    return view[:, :, ::stride, ::stride, ::dilation, ::dilation]


def _conv(params: dict[str, Array], x: Array, node: Node) -> Array:
    _, name, stride, dilation, groups = node
    weight = params[f"{name}.w"]
    out, per_group, kernel, _ = weight.shape
    seen = _windows(x, kernel, stride, kernel // 2 * dilation, 0.0, dilation)
    if per_group == 1 and groups > 1:
        y = np.einsum("nchwij,cij->nchw", seen, weight[:, 0], optimize=True)
    else:
        n, _, height, width = seen.shape[:4]
        columns = seen.transpose(0, 2, 3, 1, 4, 5).reshape(n * height * width, -1)
        y = columns @ weight.reshape(out, -1).T
        y = y.reshape(n, height, width, out).transpose(0, 3, 1, 2)
    bias = params.get(f"{name}.b")
    return y if bias is None else y + bias[:, None, None]


def _norm(params: dict[str, Array], x: Array, name: str) -> Array:
    gamma, beta, mean, var = (params[f"{name}.{p}"] for p in ("gamma", "beta", "mean", "var"))
    scale = gamma / np.sqrt(var + np.float32(EPSILON))
    return x * scale[:, None, None] + (beta - mean * scale)[:, None, None]


def evaluate(params: dict[str, Array], node: Node, x: Array) -> Array:
    """The network in NumPy."""
    kind, *rest = node
    if kind == "seq":
        for inner in rest:
            x = evaluate(params, inner, x)
        return x
    if kind == "sum":
        return evaluate(params, rest[0], x) + evaluate(params, rest[1], x)
    if kind == "conv":
        return _conv(params, x, node)
    if kind == "norm":
        return _norm(params, x, rest[0])
    if kind == "dense":
        return x @ params[f"{rest[0]}.w"].T + params[f"{rest[0]}.b"]
    simple: dict[str, Callable[[], Array]] = {
        "relu": lambda: np.maximum(x, 0),
        "relu6": lambda: np.clip(x, 0, 6),
        "maxpool": lambda: _windows(x, rest[0], rest[1], rest[2], -np.inf).max((4, 5)),
        "mean": lambda: x.mean((2, 3)),
    }
    return simple[kind]()


def _workload(name: str, title: str, net: Network, tree: Node, x: Array) -> Workload:
    return Workload(
        name, title, "network", (x,),
        lambda work: evaluate(work.params, work.options["tree"], work.args[0]),
        net.params, rtol=1e-3, atol=1e-3, options={"tree": tree}, flops=net.flops * len(x),
    )  # fmt: skip


def _image(batch: int, channels: int, size: int) -> Array:
    shape = (batch, channels, size, size)
    return np.random.RandomState(1).standard_normal(shape).astype(np.float32)


def layer(name: str, channels: int, out: int, kernel: int, stride: int, size: int,
          groups: int = 1, dilation: int = 1) -> Workload:  # fmt: skip
    """One convolution with bias and ReLU."""
    net = Network(2, channels, size)
    tree = ("seq", net.conv(out, kernel, stride, groups, True, dilation), ("relu",))
    kind = "depthwise" if groups > 1 else f"{channels} to {out} channels"
    kind += f", dilation {dilation}" if dilation > 1 else ""
    title = f"convolution {kernel} x {kernel}, stride {stride}, {kind} at {size} x {size}, ReLU"
    return _workload(name, title, net, tree, _image(1, channels, size))


def _block(net: Network, parts: Callable[[], list[Node]], out: int, stride: int) -> Node:
    channels, size = net.channels, net.size
    main = ("seq", *parts())
    after = net.channels, net.size
    side: Node = ("seq",)
    if stride > 1 or channels != out:
        net.channels, net.size = channels, size
        side = ("seq", *net.unit(out, 1, stride))
    net.channels, net.size = after
    return ("seq", ("sum", main, side), ("relu",))


def resnet(depth: int, batch: int) -> Workload:
    """ResNet-18 or ResNet-50 on 224 x 224 images."""
    net = Network(3, 3, 224)
    nodes = [*net.unit(64, 7, 2, act="relu"), net.pool()]
    blocks = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}[depth]
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for number in range(count):
            stride = 2 if stage and not number else 1

            def basic(width: int = width, stride: int = stride) -> list[Node]:
                return [*net.unit(width, 3, stride, act="relu"), *net.unit(width, 3)]

            def bottleneck(width: int = width, stride: int = stride) -> list[Node]:
                first = net.unit(width, 1, act="relu")
                return [*first, *net.unit(width, 3, stride, act="relu"), *net.unit(4 * width, 1)]

            parts, out = (basic, width) if depth == 18 else (bottleneck, 4 * width)
            nodes.append(_block(net, parts, out, stride))
    nodes += [("mean",), net.dense(1000)]
    title = f"ResNet-{depth}, 224 x 224, batch {batch}"
    return _workload(f"resnet{depth}-b{batch}", title, net, ("seq", *nodes), _image(batch, 3, 224))


def mobilenet(batch: int) -> Workload:
    """MobileNetV2 on 224 x 224 images."""
    net = Network(4, 3, 224)
    nodes = net.unit(32, 3, 2, act="relu6")
    settings = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip
    for expand, out, count, first in settings:
        for number in range(count):
            stride, channels = first if not number else 1, net.channels
            wide = expand * channels
            inner = net.unit(wide, 1, act="relu6") if expand > 1 else []
            inner += net.unit(wide, 3, stride, wide, act="relu6") + net.unit(out, 1)
            same = stride == 1 and channels == out
            nodes.append(("sum", ("seq", *inner), ("seq",)) if same else ("seq", *inner))
    nodes += [*net.unit(1280, 1, act="relu6"), ("mean",), net.dense(1000)]
    title = f"MobileNetV2, 224 x 224, batch {batch}"
    return _workload(f"mobilenetv2-b{batch}", title, net, ("seq", *nodes), _image(batch, 3, 224))


#: Layers of ResNet-50, MobileNetV2 and DeepLab: channels, outputs, window, stride, size, groups,
#: dilation.
LAYERS: dict[str, tuple[int, ...]] = {
    "conv-7x7s2-224": (3, 64, 7, 2, 224),
    "conv-1x1-64-256-56": (64, 256, 1, 1, 56),
    "conv-1x1-256-64-56": (256, 64, 1, 1, 56),
    "conv-1x1s2-256-512-56": (256, 512, 1, 2, 56),
    "conv-1x1-512-2048-7": (512, 2048, 1, 1, 7),
    "conv-3x3-64-56": (64, 64, 3, 1, 56),
    "conv-3x3s2-128-56": (128, 128, 3, 2, 56),
    "conv-3x3-128-28": (128, 128, 3, 1, 28),
    "conv-3x3-256-14": (256, 256, 3, 1, 14),
    "conv-3x3-512-7": (512, 512, 3, 1, 7),
    "depthwise-3x3s2-96-112": (96, 96, 3, 2, 112, 96),
    "depthwise-3x3-144-56": (144, 144, 3, 1, 56, 144),
    "depthwise-3x3-576-14": (576, 576, 3, 1, 14, 576),
    "conv-1x1-24-144-56": (24, 144, 1, 1, 56),
    "conv-3x3d12-960-256-28": (960, 256, 3, 1, 28, 1, 12),
    "conv-3x3d24-960-256-28": (960, 256, 3, 1, 28, 1, 24),
    "conv-3x3d36-960-256-28": (960, 256, 3, 1, 28, 1, 36),
}

CONVOLUTIONS: dict[str, Callable[[], Workload]] = {
    name: lambda n=name, s=sizes: layer(n, *s) for name, sizes in LAYERS.items()
}
VISION: dict[str, Callable[[], Workload]] = {
    "lenet-b1": lambda: lenet(1),
    "resnet18-b1": lambda: resnet(18, 1),
    "resnet18-b8": lambda: resnet(18, 8),
    "resnet50-b1": lambda: resnet(50, 1),
    "resnet50-b8": lambda: resnet(50, 8),
    "mobilenetv2-b1": lambda: mobilenet(1),
}
