"""Convolutions along one axis, or three, as those of images.

A row (N, C, W) is an image (N, C, 1, W), a volume (N, C, D, H, W) the images (N D, C, H, W) of its
slices; the taps along D become channels: the sums over them are of channels of neighbouring slices,
put one after the other. Kernels for images, and Winograd's method, save more than this copy costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tvmgraph.core.traits import Layout
from tvmgraph.graph.ir import Node, Value
from tvmgraph.passes.nchwc import NchwcImages

#: Multiplications per element of the result from which a convolution starts blocks.
_MIN_DEPTH = 24


class ImagesOfOtherRanks(NchwcImages):
    """Images whose convolutions were those of rows or volumes."""

    def _as_images(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes with such convolutions as those of images.

        What is computed of each element stays with them, because kernels do it at once.
        """
        images: dict[Value, Value] = {}
        for node in nodes:
            self._origin = node
            if node.op.name == "convolution" and self._is_of_other_rank(node):
                image = self._convolved(node, images)
            elif any(v in images for v in node.inputs) and _is_of_elements(node, images):
                rank = node.outputs[0].type.ndim
                operands = [images[v] if v in images else self._per_channel(v, rank)
                            for v in node.inputs]  # fmt: skip
                image = self._node(node.op.name, tuple(operands), node.attrs)
            else:
                self._nodes.append(node)
                continue
            images[node.outputs[0]] = image
            self._restore(image, node.outputs[0])
        found, self._nodes = self._nodes, []
        return found

    def _is_of_other_rank(self, node: Node) -> bool:
        x, weight = node.inputs
        return (
            x.type.ndim in (3, 5)
            and x.type.is_static
            and 0 not in (*x.type.static_shape, *node.outputs[0].type.static_shape)
            and weight in self._stable
            and node.attrs["groups"] == 1
            and is_deep(weight.type.static_shape[1], weight.type.static_shape[2:])
        )

    def _convolved(self, node: Node, images: Mapping[Value, Value]) -> Value:
        (x, weight), attrs = node.inputs, node.attrs
        if x.type.ndim == 3:
            one = {"stride": 1, "dilation": 1, "padding": (0, 0)}
            attrs = {k: (one[k], *v) if k in one else v for k, v in attrs.items()}
            image = images[x] if x in images else self._per_channel(x, 3)
            return self._node("convolution", (image, self._per_channel(weight, 3)), attrs)
        outputs, inputs, taps, *kernel = weight.type.static_shape
        joined = (outputs, taps * inputs, *kernel)
        flat = self._derive(
            lambda w: np.ascontiguousarray(w.swapaxes(1, 2)).reshape(joined), (weight,),
            weight.type.with_shape(joined),
        )  # fmt: skip
        image = self._slices(node, images)
        last = {k: attrs[k][1:] for k in ("stride", "padding", "dilation")}
        return self._node("convolution", (image, flat), {**attrs, **last})

    def _slices(self, node: Node, images: Mapping[Value, Value]) -> Value:
        """What each slice of the result reads, with the taps along the first axis as channels."""
        x, weight = node.inputs
        (n, c, d, *plane), taps = x.type.static_shape, weight.type.static_shape[2]
        (step, *_), (pads, *_), (gap, *_) = (
            node.attrs[k] for k in ("stride", "padding", "dilation")
        )
        count = node.outputs[0].type.static_shape[2]
        if x in images and (taps, step, pads) == (1, 1, (0, 0)):
            return images[x]
        if x in images:
            value = self._reshaped(images[x], (n, d, c, *plane))
        else:
            value = self._node("transpose", (x,), {"dims": (0, 2, 1, 3, 4)})
        none = (0, 0)
        if pads != none:
            around: dict[str, object] = {"pads": (none, pads, none, none, none), "value": 0.0}
            value = self._node("pad_constant", (value,), around)
        whole = (0, None, 1)
        parts = [
            self._node("basic_index", (value,), {
                "index": (whole, (t * gap, t * gap + (count - 1) * step + 1, step), *(whole,) * 3)
            })
            for t in range(taps)
        ]  # fmt: skip
        joined = self._node("concat", tuple(parts), {"axis": 2}) if taps > 1 else parts[0]
        return self._reshaped(joined, (n * count, taps * c, *plane))

    def _per_channel(self, value: Value, rank: int) -> Value:
        """A row as an image, or a number per channel of rows or volumes as one of images."""
        shape = value.type.static_shape
        if len(shape) < 2:
            return value
        return self._reshaped(value, (*shape[:-1], 1, shape[-1]) if rank == 3 else shape[:-1])

    def _restore(self, image: Value, result: Value) -> None:
        """Makes of images what they are of."""
        n, _, *sizes = result.type.static_shape
        if len(sizes) == 3:
            split = self._reshaped(image, (n, sizes[0], *image.type.static_shape[1:]))
            self._node("transpose", (split,), {"dims": (0, 2, 1, 3, 4)}, result)
        else:
            self._node("reshape", (image,), {"shape": result.type.shape}, result)


def _is_of_elements(node: Node, images: Mapping[Value, Value]) -> bool:
    """Whether a node treats elements of images alike, or those of a channel."""
    result = node.outputs[0].type
    rank, shape = result.ndim, result.shape

    def fits(value: Value) -> bool:
        if value in images:
            return value.type.shape == shape
        per_batch = value.type.ndim == rank == 5 and value.type.shape[0] != 1
        return set(value.type.shape[2 - rank :]) <= {1} and not per_batch

    elements = node.op.traits.layout is Layout.ELEMENTWISE and len(node.outputs) == 1
    return elements and all(map(fits, node.inputs))


def is_deep(inputs: int, kernel: Sequence[int]) -> bool:
    """Whether a convolution multiplies often enough per element to be worth another order.

    Args:
        inputs: Channels that an element reads.
        kernel: Taps per axis.
    """
    return inputs * int(np.prod(kernel)) >= _MIN_DEPTH
