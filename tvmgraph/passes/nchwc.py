"""Images of a graph that is being rewritten, as they are and in blocks of channels.

An image (N, C, H, W) in blocks is (N, C / b, H, W, b). What a reshape makes of it by putting
pixels, or whole channels with their pixels, together,

    (N, C, H, W) -> (N, G, ...),

is *flattened*: the same elements in the order of the blocks. If a group holds whole blocks, its
form is (N, G, C H W / G); of single channels, G = C, it is (N, C / b, H W, b). Elementwise
operators, and reductions over all that a group holds, do not mind the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tvmgraph.core.op import get_op
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.dtypes import DType
from tvmgraph.graph.ir import Node, Value
from tvmgraph.ops.internal.conv_nchwc import block_of, to_nchwc

#: ``(compute, (input,), type) -> value``: what is computed of a weight once per version of it.
Derive = Callable[[Callable[[np.ndarray], np.ndarray], tuple[Value], TensorType], Value]


@dataclass(frozen=True)
class Flattened:
    """A value (N, G, ...) whose elements are kept in the order of an image's blocks.

    Attributes:
        form: The elements, all that a group holds along axis 2.
        image: The shape (N, C, H, W) of the image.
    """

    form: Value
    image: tuple[int, ...]


class NchwcImages:
    """Which values exist in which form, and the nodes that change one into another.

    Args:
        stable: Values that depend on parameters alone; grows with what is derived.
        consts: The constants of the graph; grows with those that new nodes read.
        derive: ``(compute, inputs, type) -> value``, computed once per version of the parameters.
    """

    _origin: Node  # the node that is being rewritten

    def __init__(self, stable: set[Value], consts: dict[Value, np.ndarray], derive: Derive) -> None:
        self._stable = stable
        self._consts = consts
        self._derive = derive
        self._nchwc: dict[Value, Value] = {}
        self._flattened: dict[Value, Flattened] = {}
        self._pending: set[Value] = set()  # values that exist in blocks only
        self._nodes: list[Node] = []
        self._count = 0

    def block_of(self, channels: object) -> int | None:
        """Returns the channels per block of an image with this many, or None if it has none.

        Args:
            channels: Their number: an int or a symbolic dim.
        """
        return block_of(channels)

    def _operand(self, value: Value, result: TensorType) -> Value:
        """An operand of an elementwise operator, in the form that broadcasts to blocks."""
        shape = (1,) * (4 - value.type.ndim) + value.type.static_shape
        if value in self._nchwc:
            return self._nchwc[value]
        if value.type.size == 1 and value.type.ndim < 5:
            return value
        if shape[1] == result.shape[1]:
            return self._as_nchwc(value, shape)
        return self._reshaped(value, (*shape, 1))

    def _as_nchwc(self, value: Value, shape: tuple[int, ...] | None = None) -> Value:
        if value in self._nchwc:
            return self._nchwc[value]
        n, c, h, w = shape or value.type.static_shape
        blocks = self._blocks((n, c, h, w))
        kind, block = value.type.with_shape(blocks), blocks[-1]
        if value in self._stable or value in self._consts:
            return self._derive(lambda x: to_nchwc(x.reshape(n, c, h, w), block), (value,), kind)
        if h == w == 1:  # a number per channel
            return self._reshaped(value, blocks)
        split = self._reshaped(value, (n, c // block, block, h, w))
        found = self._node("transpose", (split,), {"dims": (0, 1, 3, 4, 2)})
        self._nchwc[value] = found
        return found

    def _reshaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        if value in self._stable or value in self._consts:
            kind = value.type.with_shape(shape)
            return self._derive(lambda x: x.reshape(shape), (value,), kind)
        return self._node("reshape", (value,), {"shape": shape})

    def _constant(self, array: np.ndarray, dtype: DType) -> Value:
        self._count += 1
        value = Value(f"constant{self._count}", tensor_type(array.shape, dtype))
        self._consts[value] = array.astype(dtype.numpy)
        return value

    def _require_plain(self, value: Value) -> None:
        """Puts a value that exists in blocks only back into its own form."""
        if value not in self._pending:
            return
        self._pending.remove(value)
        if value in self._flattened:
            found = self._flattened[value]
            blocked = self._reshaped(found.form, self._blocks(found.image))
        else:
            blocked = self._nchwc[value]
        transposed = self._node("transpose", (blocked,), {"dims": (0, 1, 4, 2, 3)})
        self._node("reshape", (transposed,), {"shape": value.type.shape}, value)

    def _blocks(self, image: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an image's blocks."""
        n, c, h, w = image
        block = self.block_of(c)
        assert block is not None
        return (n, c // block, h, w, block)

    def _form(self, image: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """The shape of a flattened image's form, or None where its order would not be free."""
        n, channels, *_ = image
        if len(shape) < 3 or shape[0] != n or math.prod(shape) != math.prod(image):
            return None
        groups, blocks = shape[1], self._blocks(image)
        if groups == channels:
            return (n, blocks[1], math.prod(blocks[2:4]), blocks[4])
        whole = blocks[1] % groups == 0
        return (n, groups, math.prod(blocks[1:]) // groups) if whole else None

    def _emit(
        self, name: str, inputs: tuple[Value, ...], attrs: Mapping[str, object], plain: Value
    ) -> None:
        """Adds a node whose result is ``plain`` in blocks."""
        self._nchwc[plain] = self._node(name, inputs, attrs)
        self._pending.add(plain)

    def _flatten_as(self, form: Value, image: tuple[int, ...], plain: Value) -> None:
        """Notes that ``plain`` is an image flattened in the order of its blocks."""
        self._flattened[plain] = Flattened(form, image)
        self._pending.add(plain)

    def _node(
        self,
        name: str,
        inputs: tuple[Value, ...],
        attrs: Mapping[str, object],
        result: Value | None = None,
    ) -> Value:
        op, origin = get_op(name), self._origin
        if result is None:
            self._count += 1
            kind = op.infer(*[v.type for v in inputs], **attrs)
            assert isinstance(kind, TensorType)
            result = Value(f"blocked{self._count}", kind)
        node = Node(op, inputs, attrs, (result,), origin.source, origin.scope)
        self._nodes.append(node)
        return result
