"""Keeping the images of a frozen graph in blocks of channels, from the first convolution on.

A convolution whose weight is a parameter gets that weight in the order in which its kernel reads
it, and its result stays NCHWc, (N, C / b, H, W, b), through everything that treats channels
alike: elementwise operators, pooling, averages over the image, concatenation of channels, and
normalization of groups of channels. Where anything else reads the result, it is put back into
(N, C, H, W). A convolution that leads to no other one is as fast on plain images, unless rows fill
vectors badly, or Winograd's method applies to it. Where the weight is no parameter, only Winograd's
method is worth putting it into another order in every call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvmgraph.core.traits import Layout
from tvmgraph.core.types import TensorType
from tvmgraph.dtypes import DType, bfloat16, float16, float32, float64
from tvmgraph.graph.ir import Node, Value
from tvmgraph.machine.processor import CpuModel
from tvmgraph.numerics.winograd import best_tile, transform_weight, window_transform
from tvmgraph.ops.internal.conv_nchwc import block_of, pack_vnni, pack_weight, to_nchwc, vnni_shape
from tvmgraph.ops.internal.matmul_panels import VNNI_SIZES
from tvmgraph.passes.nchwc import Derive, Flattened
from tvmgraph.passes.ranks import ImagesOfOtherRanks, is_deep

_FLOATS = (float16, bfloat16, float32, float64)
#: The share of idle lanes, and the multiplications per element, from which blocks are worth two
#: changes of order.
_MAX_IDLE, _MIN_LONG = 0.1, 256

#: Bytes between addresses that share a set of a first-level cache, and channels of which one pixel
#: then finds no place in it.
_SET_STRIDE, _MANY_CHANNELS = 4096, 128


class NchwcLayout(ImagesOfOtherRanks):
    """Rewrites the nodes of a frozen graph.

    Args:
        stable: As for :class:`.NchwcImages`, like the next two.
        consts: The constants of the graph.
        derive: Computes something once per version of the parameters.
        model: The processor whose kernels run the nodes; None for a GPU.
    """

    def __init__(
        self,
        stable: set[Value],
        consts: dict[Value, np.ndarray],
        derive: Derive,
        model: CpuModel | None,
    ) -> None:
        super().__init__(stable, consts, derive)
        self._model = model
        self._leading: set[Node] = set()

    def rewrite(self, nodes: Sequence[Node], outputs: Sequence[Value]) -> list[Node]:
        """Returns the nodes with convolutions, and what follows them, on NCHWc images.

        Args:
            nodes: The nodes of the graph, in order.
            outputs: Its outputs, which keep their layout.
        """
        nodes = self._as_images(nodes)
        self._leading = _lead_to_more(nodes)
        for node in nodes:
            self._origin = node
            if not self._convert(node):
                for value in node.inputs:
                    self._require_plain(value)
                self._nodes.append(node)
        for value in outputs:
            self._require_plain(value)
        return self._nodes

    # ---- what can be converted --------------------------------------------------------------

    def _convert(self, node: Node) -> bool:
        if node.regions or len(node.outputs) != 1:
            return False
        if not all(v.type.is_static for v in (*node.inputs, *node.outputs)):
            return False
        if any(v in self._flattened for v in node.inputs):
            if self._of_flattened(node):
                return True
            for value in node.inputs:
                if value in self._flattened:
                    self._require_plain(value)
        if node.op.name == "convolution":
            return self._convolution(node)
        if not any(v in self._nchwc for v in node.inputs):
            return False
        match node.op.traits.layout:
            case Layout.ELEMENTWISE:
                return self._elementwise(node)
            case Layout.RESHAPE:
                return self._flatten(node)
            case Layout.PADDING:
                return self._padding(node)
            case Layout.POOLING:
                return self._pooling(node)
            case Layout.REDUCTION:
                return self._reduction(node)
            case Layout.CONCAT:
                return self._concat(node)
            case Layout.INTERLEAVE:
                return self._interleave(node)
            case Layout.AXIS:
                return self._along_axis(node)
            case Layout.ROWS | None:
                return False

    def _convolution(self, node: Node) -> bool:
        x, weight = node.inputs
        if x.type.ndim != 4 or x.type.dtype not in _FLOATS:
            return False
        outputs, inputs, *kernel = weight.type.static_shape
        if self.block_of(outputs) is None or 0 in x.type.static_shape or self._on_tiles(node):
            return False
        if weight not in self._stable:
            return self._winograd_of_given(node)
        if node.attrs["groups"] > 1:
            if is_depthwise(node):
                return x in self._nchwc and self._depthwise(node)
            known = x in self._nchwc or (x.type.dtype in VNNI_SIZES and self._can_block(x))
            return known and self._grouped(node)
        tile = self._winograd_tile(node)
        if tile is not None:
            self._winograd(node, tile)
        elif x in self._nchwc or (
            is_deep(inputs, kernel)
            and (node in self._leading or self._is_hard(node) or _sums_groups(node))
        ):
            self._direct(node, self._image(x, kernel))
        else:
            return False
        return True

    def _on_tiles(self, node: Node) -> bool:
        """Whether the kernel for plain images multiplies tiles, which is faster than blocks."""
        tiles = self._model.tile_types if self._model is not None else ()
        return node.attrs["groups"] == 1 and node.outputs[0].type.dtype.name in tiles

    def _is_hard(self, node: Node) -> bool:
        """Whether plain kernels, whose vectors run along a row of the image, are slow: a row does
        not fill a vector, or so much of the last one stays empty that putting the image, and the
        result, into another order costs less."""
        assert self._model is not None
        lanes = self._model.lanes_of(_sum_type(node.outputs[0].type.dtype).itemsize)
        width = node.outputs[0].type.static_shape[3]
        _, inputs, *kernel = node.inputs[1].type.static_shape
        long = int(np.prod(kernel)) > 1 and inputs * int(np.prod(kernel)) >= _MIN_LONG
        return width < lanes or (long and -width % lanes > _MAX_IDLE * width)

    def _winograd_tile(self, node: Node, prepared: bool = True) -> int | None:
        """The tile size of Winograd's method for a convolution, or None where it does not pay."""
        (x, weight), result = node.inputs, node.outputs[0].type
        outputs, inputs, *kernel = weight.type.static_shape
        batch, _, height, width = result.static_shape
        steps = (*node.attrs["stride"], *node.attrs["dilation"])
        if kernel != [3, 3] or set(steps) != {1} or min(height, width) < 2:
            return None
        if block_of(inputs) is None or x.type.dtype not in (float32, float64):
            return None
        assert self._model is not None
        return best_tile(  # of one group
            lambda tile: batch * -(-height // tile) * -(-width // tile),
            inputs, outputs // node.attrs["groups"], batch * height * width,
            self._model.flops_per_byte, prepared,
        )  # fmt: skip

    def _image(self, x: Value, kernel: Sequence[int]) -> Value:
        """What a convolution reads: blocks, unless a plain image is as good or fills no blocks.

        A window of one pixel finds its channels in as many lines of the cache where the image is
        plain; tiles as high as many registers allow take enough pixels from each. Measured with
        AVX2 on Zen 3, plain and in blocks: 512 to 2048 channels of 7 x 7 42 and 59 GFLOP/s of 98,
        64 to 256 of 56 x 56 62 and 72.
        """
        assert self._model is not None
        one = (
            int(np.prod(kernel)) == 1
            and not self._model.has_few_registers
            and x.type.dtype not in VNNI_SIZES
            and not _shares_sets(x.type)
        )
        if x in self._nchwc or one or not self._can_block(x):
            return self._nchwc.get(x, x)
        return self._as_nchwc(x)

    def _can_block(self, x: Value) -> bool:
        return self.block_of(x.type.shape[1]) is not None

    def _direct(self, node: Node, image: Value) -> None:
        """A convolution of the image as it is, plain or in blocks."""
        weight, attrs = self._packed(node, image), _without_groups(node)
        plain = image.type.ndim == 4
        group = VNNI_SIZES.get(image.type.dtype, 1)
        if group > 1 and not (plain and node.attrs["dilation"][1] > 1):
            (top, bottom), (left, right) = attrs["padding"]
            shape = vnni_shape(weight.type.static_shape, group, plain)
            if plain:  # the window becomes longer
                right += shape[3] * group - weight.type.static_shape[3]
            attrs["padding"] = ((top, bottom), (left, right))
            kind = weight.type.with_shape(shape).with_dtype(image.type.dtype)
            weight = self._derive(
                lambda w: pack_vnni(w.astype(kind.dtype.numpy), group, plain), (weight,), kind
            )
        self._emit("conv_nchwc", (image, weight), attrs, node.outputs[0])

    def _packed(self, node: Node, image: Value) -> Value:
        """The weight packed for an image."""
        weight = node.inputs[1]
        outputs, inputs, *kernel = weight.type.static_shape
        block = self.block_of(outputs)
        assert block is not None
        size = image.type.static_shape[4] if image.type.ndim == 5 else 1
        wide = _sum_type(image.type.dtype)
        kind = weight.type.with_shape((outputs // block, inputs // size, *kernel, size, block))
        return self._derive(
            lambda w: pack_weight(w.astype(wide.numpy, copy=False), size, block),
            (weight,), kind.with_dtype(wide),
        )  # fmt: skip

    def _winograd(self, node: Node, tile: int) -> None:
        x, weight = node.inputs
        image = self._as_nchwc(x)
        packed = self._packed(node, image)
        outer, blocks, _, _, inputs, block = packed.type.static_shape
        kind = weight.type.with_shape(((tile + 2) ** 2, outer, blocks * inputs, block))
        transformed = self._derive(lambda w: transform_weight(w, tile, block), (weight,), kind)
        padding = {"padding": node.attrs["padding"]}
        self._emit("conv_winograd", (image, packed, transformed), padding, node.outputs[0])

    def _winograd_of_given(self, node: Node) -> bool:
        """Winograd's method with a weight that is another one in every call."""
        tile = None if node.attrs["groups"] > 1 else self._winograd_tile(node, prepared=False)
        if tile is None:
            return False
        x, weight = node.inputs
        outputs, inputs, *kernel = weight.type.static_shape
        size, block = self.block_of(inputs), self.block_of(outputs)
        assert size is not None and block is not None
        outer, blocks = outputs // block, inputs // size
        split = self._reshaped(weight, (outer, block, blocks, size, *kernel))
        packed = self._node("transpose", (split,), {"dims": (0, 2, 4, 5, 3, 1)})
        columns = self._reshaped(weight, (outer, block, inputs, 9))
        columns = self._node("transpose", (columns,), {"dims": (3, 0, 2, 1)})
        columns = self._reshaped(columns, (9, outputs * inputs))
        matrix = self._constant(window_transform(tile), weight.type.dtype)
        plain = {"transpose_a": False, "transpose_b": False}
        transformed = self._node("matmul", (matrix, columns), plain)
        transformed = self._reshaped(transformed, ((tile + 2) ** 2, outer, inputs, block))
        padding = {"padding": node.attrs["padding"]}
        self._emit(
            "conv_winograd", (self._as_nchwc(x), packed, transformed), padding, node.outputs[0]
        )
        return True

    def _grouped(self, node: Node) -> bool:
        """Groups that are whole blocks, or become so when several are merged."""
        (x, weight), groups = node.inputs, node.attrs["groups"]
        outputs, inputs = weight.type.static_shape[:2]
        size, block = self.block_of(x.type.shape[1]), self.block_of(outputs)
        assert size is not None and block is not None
        merged = size // inputs if x.type.dtype in VNNI_SIZES and size % inputs == 0 else 1
        if groups % merged or inputs * merged % size or outputs // groups * merged % block:
            return False
        if merged > 1:
            node = self._merged_groups(node, merged)
        tile = self._winograd_tile(node)
        if tile is not None:
            self._winograd(node, tile)
        else:
            self._direct(node, self._as_nchwc(x))
        return True

    def _merged_groups(self, node: Node, count: int) -> Node:
        """The convolution with ``count`` groups as one, whose other weights are 0.

        Pixels that are NaN or infinite reach all groups that they are merged with.
        """
        x, weight = node.inputs
        outputs, inputs, *kernel = weight.type.static_shape
        groups = node.attrs["groups"] // count

        def join(w: np.ndarray) -> np.ndarray:
            grouped = w.reshape(groups, count, -1, inputs, *kernel)
            wide = np.zeros((*grouped.shape[:3], count, *grouped.shape[3:]), w.dtype)
            for member in range(count):
                wide[:, member, :, member] = grouped[:, member]
            return wide.reshape(outputs, count * inputs, *kernel)

        kind = weight.type.with_shape((outputs, count * inputs, *kernel))
        wide = self._derive(join, (weight,), kind)
        attrs = {**node.attrs, "groups": groups}
        return Node(node.op, (x, wide), attrs, node.outputs, node.source, node.scope)

    def _depthwise(self, node: Node) -> bool:
        x, weight = node.inputs
        outputs, _, *kernel = weight.type.static_shape
        block, wide = self.block_of(outputs), _sum_type(x.type.dtype)
        assert block is not None
        kind = weight.type.with_shape((outputs // block, *kernel, block)).with_dtype(wide)
        packed = self._derive(lambda w: _pack_depthwise(w, block, wide), (weight,), kind)
        inputs = (self._nchwc[x], packed)
        self._emit("depthwise_nchwc", inputs, _without_groups(node), node.outputs[0])
        return True

    def _pooling(self, node: Node) -> bool:
        if len(node.attrs["kernel"]) != 2:
            return False
        attrs = self._with_channels(node.attrs)
        self._emit(node.op.name, (self._nchwc[node.inputs[0]],), attrs, node.outputs[0])
        return True

    def _with_channels(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """Of pooling: the channels of a block are one more axis, with a window of one element."""
        one = {"kernel": 1, "stride": 1, "dilation": 1, "padding": (0, 0), "counted": (0, 0)}
        return {k: (*v, one[k]) if k in one else v for k, v in attrs.items()}

    def _padding(self, node: Node) -> bool:
        if node.attrs["pads"][1] != (0, 0):
            return False
        attrs = {**node.attrs, "pads": (*node.attrs["pads"], (0, 0))}
        self._emit(node.op.name, (self._nchwc[node.inputs[0]],), attrs, node.outputs[0])
        return True

    def _reduction(self, node: Node) -> bool:
        axes = tuple(node.attrs["axis"])
        if axes not in ((2, 3), (1, 2, 3)):
            return False
        (x,), result = node.inputs, node.outputs[0]
        attrs = {**node.attrs, "axis": axes if 1 not in axes else (*axes, 4)}
        if axes == (2, 3) and node.attrs["keep_dims"]:
            self._emit(node.op.name, (self._nchwc[x],), attrs, result)
        else:
            reduced = self._node(node.op.name, (self._nchwc[x],), attrs)
            self._node("reshape", (reduced,), {"shape": result.type.shape}, result)
        return True

    def _concat(self, node: Node) -> bool:
        blocks = {self.block_of(v.type.shape[1]) for v in node.inputs}
        result = node.outputs[0]
        if node.attrs["axis"] != 1 or blocks != {self.block_of(result.type.shape[1])}:
            return False
        operands = tuple(self._as_nchwc(v) for v in node.inputs)
        self._emit("concat", operands, node.attrs, result)
        return True

    def _interleave(self, node: Node) -> bool:
        if not all(v in self._nchwc for v in node.inputs):
            return False
        operands = tuple(self._nchwc[v] for v in node.inputs)
        self._emit(node.op.name, operands, node.attrs, node.outputs[0])
        return True

    def _along_axis(self, node: Node) -> bool:
        (x,), result = node.inputs, node.outputs[0]
        if x.type.ndim != 4 or node.attrs["axis"] not in (2, 3, -2, -1):
            return False
        attrs = {**node.attrs, "axis": node.attrs["axis"] % 4}  # counted from the front: 5 axes
        self._emit(node.op.name, (self._nchwc[x],), attrs, result)
        return True

    def _elementwise(self, node: Node) -> bool:
        result = node.outputs[0]
        if result.type.ndim != 4 or self.block_of(result.type.shape[1]) is None:
            return False
        inputs = tuple(self._operand(v, result.type) for v in node.inputs)
        self._emit(node.op.name, inputs, node.attrs, result)
        return True

    # ---- flattened images -------------------------------------------------------------------

    def _flatten(self, node: Node) -> bool:
        (x,), result = node.inputs, node.outputs[0]
        return self._keep_flattened(self._nchwc[x], x.type.static_shape, result)

    def _keep_flattened(self, blocks: Value, image: tuple[int, ...], result: Value) -> bool:
        """Flattens blocks, or another form of them; whether their order can be kept."""
        form = self._form(image, result.type.static_shape)
        if form is None:
            return False
        self._flatten_as(self._reshaped(blocks, form), image, result)
        return True

    def _of_flattened(self, node: Node) -> bool:
        """Adds a node of flattened images; whether it does not mind their order."""
        first = next(v for v in node.inputs if v in self._flattened)
        found, shape, result = self._flattened[first], first.type.static_shape, node.outputs[0]
        rest = tuple(range(2, len(shape)))  # the axes that a group holds
        match node.op.traits.layout:
            case Layout.ELEMENTWISE if result.type.static_shape == shape:
                inputs = [self._flattened_operand(v, found, shape) for v in node.inputs]
                if None in inputs:
                    return False
                form = self._node(node.op.name, tuple(v for v in inputs if v), node.attrs)
            case Layout.ROWS if node.attrs["count"] == len(rest) and found.form.type.ndim == 3:
                form = self._node(node.op.name, (found.form,), {**node.attrs, "count": 1})
            case Layout.REDUCTION if tuple(node.attrs["axis"]) == rest:
                attrs = {**node.attrs, "axis": (2,), "keep_dims": False}
                reduced = self._node(node.op.name, (found.form,), attrs)
                self._node("reshape", (reduced,), {"shape": result.type.shape}, result)
                return True
            case Layout.RESHAPE if result.type.shape == found.image:
                blocks = self._blocks(found.image)
                self._emit("reshape", (found.form,), {"shape": blocks}, result)
                return True
            case Layout.RESHAPE:
                return self._keep_flattened(found.form, found.image, result)
            case _:
                return False
        self._flatten_as(form, found.image, result)
        return True

    def _flattened_operand(
        self, value: Value, like: Flattened, shape: tuple[int, ...]
    ) -> Value | None:
        """An operand beside a flattened image; None if its order would have to be changed."""
        if value in self._flattened:
            found = self._flattened[value]
            same = found.image == like.image and value.type.shape == shape
            return found.form if same else None
        if value.type.size == 1 and value.type.ndim < 3:
            return value
        sizes = (1,) * (len(shape) - value.type.ndim) + value.type.static_shape
        if value in self._pending or any(n != 1 for n in sizes[2:]):
            return None
        n, groups, *_ = sizes
        tail = like.form.type.static_shape[3:]
        if tail and groups > 1:  # a number per channel
            return self._reshaped(value, (n, groups // tail[0], 1, *tail))
        return self._reshaped(value, (n, groups, 1, *(1 for _ in tail)))


def _lead_to_more(nodes: Sequence[Node]) -> set[Node]:
    """The convolutions whose result reaches another one, or pooling, as an NCHWc image."""
    wanted: set[Value] = set()  # values that are worth being NCHWc
    found: set[Node] = set()
    for node in reversed(nodes):
        wants = any(v in wanted for v in node.outputs)
        layout = node.op.traits.layout
        if node.op.name == "convolution":
            if wants:
                found.add(node)
            wanted.add(node.inputs[0])
        elif node.op.name == "max_pool" or (
            layout is Layout.REDUCTION and tuple(node.attrs["axis"]) == (2, 3)
        ):
            wanted.add(node.inputs[0])
        elif layout is Layout.INTERLEAVE or (
            wants
            and layout not in (None, Layout.REDUCTION)
            and (layout is not Layout.RESHAPE or _keeps_groups(node))
        ):
            wanted.update(node.inputs)
    return found


def _keeps_groups(node: Node) -> bool:
    """Whether a reshape makes groups of an image's channels, or an image of them."""
    types = node.inputs[0].type, node.outputs[0].type
    if not all(t.is_static and t.ndim > 2 and 0 not in t.shape for t in types):
        return False
    (batch, channels, *_), (images, groups, *_) = (t.static_shape for t in types)
    return batch == images and max(channels, groups) % min(channels, groups) == 0


def _sums_groups(node: Node) -> bool:
    """Whether blocks let the processor sum several products per lane, and plain kernels, which are
    matrix products where the window has one tap, do so at a higher price or not at all."""
    x, weight = node.inputs
    simple = {*weight.type.static_shape[2:], *node.attrs["stride"]} == {1}
    return x.type.dtype in VNNI_SIZES and not simple


def _shares_sets(image: TensorType) -> bool:
    """Whether the same pixel of all channels lies in one set of a cache."""
    _, channels, *plane = image.static_shape
    return (
        channels >= _MANY_CHANNELS and int(np.prod(plane)) * image.dtype.itemsize % _SET_STRIDE == 0
    )


def is_depthwise(node: Node) -> bool:
    """Whether a convolution has one output channel per input channel, of that one alone.

    Args:
        node: A convolution: image ``[N, C, ...]`` and weight ``[O, C / groups, ...]``.
    """
    x, weight = node.inputs
    return node.attrs["groups"] == weight.type.shape[0] == x.type.shape[1]


def _without_groups(node: Node) -> dict[str, Any]:
    return {name: value for name, value in node.attrs.items() if name != "groups"}


def _sum_type(dtype: DType) -> DType:
    """The type in which sums of products are accumulated, which packed weights have."""
    return float64 if dtype is float64 else float32


def _pack_depthwise(weight: np.ndarray, block: int, dtype: Any) -> np.ndarray:
    """(C, 1, KH, KW) to (C / block, KH, KW, block)."""
    return to_nchwc(weight[:, 0][None].astype(dtype.numpy, copy=False), block)[0]
