"""Keeping images with their channels last, (N, H, W, C), from the first convolution on.

Tensor cores multiply what is summed, and neighbouring channels are summed whatever the window is:
with channels last every copy into shared memory is 16 bytes wide. It is the blocked layout with one
block of all channels. A frozen graph puts its weights in order ahead of the calls; in any other one
that is work of every call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
    nodes = ChannelsLast(set(), {}, _nothing_ahead).rewrite(graph.nodes, graph.outputs)
    return Graph(graph.name, graph.params, graph.consts, tuple(nodes), graph.outputs, graph.writes)


class ChannelsLast(BlockedLayout):
    """Rewrites the nodes of a graph; arguments as for :class:`BlockedLayout`."""

    def block_of(self, channels: Any) -> int | None:
        """Returns the channels of an image if they fill vectors, else None."""
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
            return self._turned(weight, (2, 3, 1, 0), (1, 1, height, width, inputs, outputs))
        return self._turned(weight, (1, 2, 3, 0), (1, inputs, height, width, 1, outputs))

    def _turned(self, value: Value, dims: tuple[int, ...], shape: tuple[int, ...]) -> Value:
        """A weight with its axes in another order, ahead of the calls where that is possible."""
        if value in self._stable:
            kind = value.type.with_shape(shape)
            return self._derive(lambda w: w.transpose(dims).reshape(shape), (value,), kind)
        return self._reshaped(self._node("transpose", (value,), {"dims": dims}), shape)

    def _each_channel(self, node: Node, attrs: dict[str, Any]) -> bool:
        x, weight = node.inputs
        outputs, _, height, width = weight.type.static_shape
        cut = self._turned(weight, (1, 2, 3, 0), (1, height, width, outputs))
        if x.type.dtype is not float32:  # the operator's weight has the type of the sums
            cut = self._widened(cut)
        self._emit("depthwise_blocked", (self._as_blocked(x), cut), attrs, node.outputs[0])
        return True

    def _widened(self, value: Value) -> Value:
        if value in self._stable:
            kind = value.type.with_dtype(float32)
            return self._derive(lambda w: w.astype(np.float32), (value,), kind)
        return self._node("cast", (value,), {"dtype": float32})

    def _concat(self, node: Node) -> bool:
        whole = [self.block_of(v.type.shape[1]) for v in (*node.inputs, *node.outputs)]
        if node.attrs["axis"] != 1 or None in whole:
            return False
        parts = tuple(self._as_blocked(v) for v in node.inputs)
        self._emit("concat", parts, {**node.attrs, "axis": 4}, node.outputs[0])
        return True


def _nothing_ahead(*_: Any) -> Value:
    raise AssertionError("nothing is known ahead of a call")
