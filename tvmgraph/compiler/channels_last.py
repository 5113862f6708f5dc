"""Keeping images with their channels last, (N, H, W, C), from the first convolution on.

Tensor cores multiply what is summed, and neighbouring channels are summed whatever the window is:
with channels last every copy into shared memory is 16 bytes wide. It is the blocked layout with one
block of all channels. Weights are parameters here, so that they are put in order by the graph
itself, which costs less than a hundredth of a network's time.
"""

from __future__ import annotations

from typing import Any

from tvmgraph.compiler.layout import BlockedLayout, is_depthwise
from tvmgraph.dtypes import bfloat16, float16, float32
from tvmgraph.graph.ir import Graph, Node, Value

_FLOATS = (float16, bfloat16, float32)
#: Channels must fill 16-byte vectors of 2-byte elements.
_MULTIPLE = 8


def channels_last(graph: Graph) -> Graph:
    """Returns the graph with convolutions, and what follows them, on images with channels last.

    A graph that trains stays as it is: its weights' derivatives read plain images.
    """
    names = {node.op.name for node in graph.nodes}
    if "convolution" not in names or "conv_weight_grad" in names:
        return graph
    if any(node.regions for node in graph.nodes):
        return graph
    nodes = _ChannelsLast().rewrite(graph.nodes, graph.outputs)
    return Graph(graph.name, graph.params, graph.consts, tuple(nodes), graph.outputs, graph.writes)


class _ChannelsLast(BlockedLayout):
    def __init__(self) -> None:
        super().__init__(set(), {}, _nothing_ahead)

    def block_of(self, channels: Any) -> int | None:
        whole = isinstance(channels, int) and channels % _MULTIPLE == 0 and channels > 0
        return channels if whole else None

    def _convolution(self, node: Node) -> bool:
        x, weight = node.inputs
        if x.type.ndim != 4 or x.type.dtype not in _FLOATS or weight.type.dtype != x.type.dtype:
            return False
        outputs = weight.type.static_shape[0]
        if self.block_of(outputs) is None or 0 in x.type.static_shape:
            return False
        attrs = {name: value for name, value in node.attrs.items() if name != "groups"}
        if node.attrs["groups"] > 1:
            return is_depthwise(node) and self._each_channel(node, attrs)
        image = x if self.block_of(x.type.static_shape[1]) is None else self._as_blocked(x)
        self._emit("conv_blocked", (image, self._weight(weight, image)), attrs, node.outputs[0])
        return True

    def _weight(self, weight: Value, image: Value) -> Value:
        """The weight (O, I, KH, KW) with outputs last, and inputs before them as in the image."""
        outputs, inputs, height, width = weight.type.static_shape
        if image.type.ndim == 5:
            turned = self._node("transpose", (weight,), {"dims": (2, 3, 1, 0)})
            return self._reshaped(turned, (1, 1, height, width, inputs, outputs))
        turned = self._node("transpose", (weight,), {"dims": (1, 2, 3, 0)})
        return self._reshaped(turned, (1, inputs, height, width, 1, outputs))

    def _each_channel(self, node: Node, attrs: dict[str, Any]) -> bool:
        x, weight = node.inputs
        outputs, _, height, width = weight.type.static_shape
        turned = self._node("transpose", (weight,), {"dims": (1, 2, 3, 0)})
        cut = self._reshaped(turned, (1, height, width, outputs))
        if x.type.dtype is not float32:  # the operator's weight has the type of the sums
            cut = self._node("cast", (cut,), {"dtype": float32})
        self._emit("depthwise_blocked", (self._as_blocked(x), cut), attrs, node.outputs[0])
        return True

    def _concat(self, node: Node) -> bool:
        whole = [self.block_of(v.type.shape[1]) for v in (*node.inputs, *node.outputs)]
        if node.attrs["axis"] != 1 or None in whole:
            return False
        parts = tuple(self._as_blocked(v) for v in node.inputs)
        self._emit("concat", parts, {**node.attrs, "axis": 4}, node.outputs[0])
        return True


def _nothing_ahead(*_: Any) -> Value:
    raise AssertionError("nothing is known ahead of a call")
