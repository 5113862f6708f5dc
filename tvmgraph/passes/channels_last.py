"""Keeping images with their channels last, (N, H, W, C), from the first convolution on.

Tensor cores multiply what is summed, and neighbouring channels are summed whatever the window is:
with channels last every copy into shared memory is 16 bytes wide. It is the NCHWc layout with one
block of all channels. A frozen graph puts its weights in order ahead of the calls; in any other one
that is work of every call.

In a graph that trains the derivatives stay in this layout, too: that of an image is a convolution
with the weight flipped, that of a weight a product summed over all positions, and statistics
of channels are sums of columns.

Images with few channels, such as those of cameras, get channels of zeros: four channels are read as
one, and a stem of 7 x 7 steps through them in a tenth of the time that single elements take.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tvmgraph.dtypes import bfloat16, float16, float32, float64
from tvmgraph.graph.ir import Graph, Node, Value
from tvmgraph.passes.deconvolution import Residue, residues_of
from tvmgraph.passes.layout import NchwcLayout, is_depthwise

_FLOATS = (float16, bfloat16, float32)
#: Channels must fill 16-byte vectors of 2-byte elements.
_MULTIPLE = 8
#: Fewer channels are filled up to this many, 8 bytes of halves.
_FEW = 4
_ALL = (0, None, 1)  # a slice of everything
#: Convolutions of images with channels last.
_NCHWC = frozenset({"conv_nchwc", "depthwise_nchwc"})


def channels_last(graph: Graph) -> Graph:
    """Returns the graph with convolutions, and what follows them, on images with channels last.

    A frozen graph has had that done with its weights in order ahead of the calls.

    Args:
        graph: A graph without control flow; one without convolutions, or whose images have another
            layout already, is returned as it is.
    """
    names = {node.op.name for node in graph.nodes}
    if "convolution" not in names or any(node.regions for node in graph.nodes):
        return graph
    if names & _NCHWC or keeps_images_plain(graph):
        return graph
    nodes = ChannelsLast(set(), {}, _nothing_ahead, None).rewrite(graph.nodes, graph.outputs)
    return Graph(graph.name, graph.params, graph.consts, tuple(nodes), graph.outputs, graph.writes)


def keeps_images_plain(graph: Graph) -> bool:
    """Whether a graph trains convolutions in groups: their derivatives read plain images.

    Args:
        graph: The graph of a training step or of a call.
    """
    return any(n.op.name == "conv_weight_grad" and n.attrs["groups"] > 1 for n in graph.nodes)


class ChannelsLast(NchwcLayout):
    """Rewrites the nodes of a graph; arguments as for :class:`NchwcLayout`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._repeated: dict[Value, Value] = {}  # what a value repeats along some axes
        self._filled: dict[Value, Value] = {}  # images with more channels, last, of zeros

    def block_of(self, channels: Any) -> int | None:
        """Returns the channels of an image if they fill vectors, else None.

        Args:
            channels: Their number: an int or a symbolic dim.
        """
        whole = isinstance(channels, int) and channels % _MULTIPLE == 0 and channels > 0
        return channels if whole else None

    def _convert(self, node: Node) -> bool:
        derivative = {
            "conv_transpose": self._input_grad, "conv_weight_grad": self._weight_grad,
            "max_pool_grad": self._pooling_grad,
        }.get(node.op.name)  # fmt: skip
        if node.op.name == "broadcast_to":
            self._repeated[node.outputs[0]] = node.inputs[0]
        if derivative is None or not all(v.type.is_static for v in node.inputs):
            return super()._convert(node)
        if any(v.type.ndim != 4 or v.type.dtype not in _FLOATS for v in node.inputs):
            return False
        return derivative(node)

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
        image = self._with_channels_last(x)
        packed = self._weight(weight, image.type.static_shape[-1])
        self._emit("conv_nchwc", (image, packed), attrs, node.outputs[0])
        return True

    def _with_channels_last(self, x: Value) -> Value:
        """The image, with channels of zeros where its own fill no vector."""
        n, channels, h, w = x.type.static_shape
        if self.block_of(channels) is not None:
            return self._as_nchwc(x)
        if x not in self._filled:
            full = _FEW if channels <= _FEW else -(-channels // _MULTIPLE) * _MULTIPLE
            pads = ((0, 0), (0, full - channels), (0, 0), (0, 0))
            padded = self._node("pad_constant", (x,), {"pads": pads, "value": 0})
            split = self._reshaped(padded, (n, 1, full, h, w))
            self._filled[x] = self._node("transpose", (split,), {"dims": (0, 1, 3, 4, 2)})
        return self._filled[x]

    def _weight(self, weight: Value, channels: int) -> Value:
        """The weight (O, I, KH, KW) with outputs last, and before them the image's channels."""
        outputs, inputs, height, width = weight.type.static_shape
        pads = ((0, 0), (0, channels - inputs), (0, 0), (0, 0))
        if channels > inputs:
            if weight in self._stable:
                kind = weight.type.with_shape((outputs, channels, height, width))
                weight = self._derive(lambda w: np.pad(w, pads), (weight,), kind)
            else:
                weight = self._node("pad_constant", (weight,), {"pads": pads, "value": 0})
        return self._permuted(weight, (2, 3, 1, 0), (1, 1, height, width, channels, outputs))

    def _permuted(self, value: Value, dims: tuple[int, ...], shape: tuple[int, ...]) -> Value:
        """A weight with its axes in another order, ahead of the calls where that is possible."""
        if value in self._stable:
            kind = value.type.with_shape(shape)
            return self._derive(lambda w: w.transpose(dims).reshape(shape), (value,), kind)
        return self._reshaped(self._node("transpose", (value,), {"dims": dims}), shape)

    def _input_grad(self, node: Node) -> bool:
        """A transposed convolution: a convolution for every residue of the result's positions."""
        (x, weight), result = node.inputs, node.outputs[0]
        axes = residues_of(node)
        whole = [self.block_of(v.type.static_shape[1]) for v in (x, result)]
        if axes is None or None in whole or weight.type.dtype != x.type.dtype:
            return False
        image = self._as_nchwc(x)
        phases = [
            self._residue(image, weight, chosen, result) for chosen in itertools.product(*axes)
        ]
        if len(phases) > 1:
            self._emit("interleave", tuple(phases), {"steps": tuple(node.attrs["stride"])}, result)
        else:
            self._nchwc[result] = phases[0]
            self._pending.add(result)
        return True

    def _residue(
        self, image: Value, weight: Value, residues: tuple[Residue, ...], result: Value
    ) -> Value:
        """One residue of the positions of a transposed convolution."""
        inputs, outputs = weight.type.static_shape[:2]
        taps = tuple(r.taps for r in residues)
        if 0 in taps:  # no window reaches them
            batch, _, *spatial = result.type.static_shape
            sizes = (extent // r.step for extent, r in zip(spatial, residues))
            attrs = {"size": (batch, 1, *sizes, outputs), "fill_value": 0}
            return self._node("full", (), {**attrs, "dtype": result.type.dtype})
        last = ((r.start + r.step * (r.taps - 1), None, -r.step) for r in residues)
        packed = self._node("basic_index", (weight,), {"index": (_ALL, _ALL, *last)})
        packed = self._permuted(packed, (2, 3, 0, 1), (1, 1, *taps, inputs, outputs))
        padding = tuple(r.padding for r in residues)
        attrs = {"stride": (1, 1), "padding": padding, "dilation": (1, 1)}
        return self._node("conv_nchwc", (image, packed), attrs)

    def _weight_grad(self, node: Node) -> bool:
        (x, grad), result = node.inputs, node.outputs[0]
        if self.block_of(grad.type.static_shape[1]) is None:
            return False
        attrs = {name: value for name, value in node.attrs.items() if name != "groups"}
        image = self._with_channels_last(x)
        packed = self._node("conv_nchwc_weight_grad", (image, self._as_nchwc(grad)), attrs)
        outputs, inputs, *kernel = result.type.static_shape
        channels = image.type.static_shape[-1]
        whole = self._reshaped(packed, (*kernel, channels, outputs))
        if channels > inputs:
            index = (_ALL, _ALL, (0, inputs, 1), _ALL)
            whole = self._node("basic_index", (whole,), {"index": index})
        self._node("transpose", (whole,), {"dims": (3, 2, 0, 1)}, result)
        return True

    def _pooling_grad(self, node: Node) -> bool:
        grad, x = node.inputs
        known = x in self._nchwc or grad in self._nchwc
        if not known or self.block_of(x.type.static_shape[1]) is None:
            return False
        images = (self._as_nchwc(grad), self._as_nchwc(x))
        self._emit(node.op.name, images, self._with_channels(node.attrs), node.outputs[0])
        return True

    def _reduction(self, node: Node) -> bool:
        """Also sums over everything but channels."""
        if tuple(node.attrs["axis"]) != (0, 2, 3):
            return super()._reduction(node)
        (x,), result = node.inputs, node.outputs[0]
        wide = x.type.dtype in (float32, float64)  # sums of narrow types could overflow
        divided = node.op.name == "reduce_mean" and wide
        name = "reduce_sum" if divided else node.op.name
        found = self._node(name, (self._nchwc[x],), {**node.attrs, "keep_dims": False})
        if divided:  # what is added is computed by the kernel of a sum, not by that of a mean
            count = x.type.size // max(1, result.type.size)
            attrs = {"size": found.type.shape, "fill_value": count, "dtype": x.type.dtype}
            found = self._node("real_div", (found, self._node("full", (), attrs)), {})
        self._node("reshape", (found,), {"shape": result.type.shape}, result)
        return True

    def _elementwise(self, node: Node) -> bool:
        """Operands that repeat a smaller one are read there, if another has the whole shape."""
        shape = node.outputs[0].type.shape
        if any(v in self._nchwc and v.type.shape == shape for v in node.inputs):
            node = replace(node, inputs=tuple(self._repeated.get(v, v) for v in node.inputs))
        return super()._elementwise(node)

    def _as_nchwc(self, value: Value, shape: tuple[int, ...] | None = None) -> Value:
        """Also of a value that repeats a number per image and channel: that is put in order."""
        small = self._repeated.get(value)
        if value not in self._nchwc and small is not None and value.type.ndim == 4:
            n, c, h, w = value.type.static_shape
            if small.type.static_shape[1:] == (c, 1, 1):
                packed = self._reshaped(small, (small.type.static_shape[0], 1, 1, 1, c))
                found = self._node("broadcast_to", (packed,), {"shape": (n, 1, h, w, c)})
                self._nchwc[value] = found
        return super()._as_nchwc(value, shape)

    def _each_channel(self, node: Node, attrs: Mapping[str, object]) -> bool:
        x, weight = node.inputs
        outputs, _, height, width = weight.type.static_shape
        packed = self._permuted(weight, (1, 2, 3, 0), (1, height, width, outputs))
        if x.type.dtype is not float32:  # the operator's weight has the type of the sums
            packed = self._widened(packed)
        self._emit("depthwise_nchwc", (self._as_nchwc(x), packed), attrs, node.outputs[0])
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
        operands = tuple(self._as_nchwc(v) for v in node.inputs)
        self._emit("concat", operands, {**node.attrs, "axis": 4}, node.outputs[0])
        return True


def _nothing_ahead(*_: object) -> Value:
    raise AssertionError("nothing is known ahead of a call")
