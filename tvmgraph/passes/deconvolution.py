"""Transposed convolutions of frozen graphs as plain ones, whose kernels and layouts are better.

With stride s, position :math:`s q + r` of the uncut output takes part only in the taps
:math:`k = r + s j`. The positions of every residue r are a convolution of stride 1 with those taps
in reverse order; the images of all residues are put together pixel by pixel. No product with a zero
is computed, and the weights of the phases are prepared once.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tvmgraph.core.op import get_op
from tvmgraph.core.types import TensorType
from tvmgraph.graph.ir import Node, Value
from tvmgraph.ops.internal.conv_nchwc import block_of
from tvmgraph.passes.nchwc import Derive


@dataclass(frozen=True)
class Residue:
    """The positions of one residue along one axis.

    Attributes:
        start: The first tap they see.
        step: Distance between those taps.
        taps: How many.
        padding: Zeros around the input.
    """

    start: int
    step: int
    taps: int
    padding: tuple[int, int]


def as_convolutions(node: Node, derive: Derive, fresh: Callable[[TensorType], Value]) -> list[Node]:
    """Returns the nodes that compute a transposed convolution by plain ones.

    Args:
        node: A transposed convolution whose weight depends on parameters alone.
        derive: Prepares a weight.
        fresh: Returns a new value of a type.

    Returns:
        The nodes; none where the output's size is no multiple of the stride, where taps are apart,
        and where the channels make no blocks: :mod:`tvmgraph.ops.conv.rows` treats those.
    """
    axes = residues_of(node)
    if axes is None or block_of(node.outputs[0].type.shape[1]) is None:
        return []
    if not all(r.taps for axis in axes for r in axis):
        return []
    x, weight = node.inputs
    convolution = get_op("convolution")
    phases: list[Value] = []
    nodes: list[Node] = []
    for residues in itertools.product(*axes):
        taps = tuple(r.taps for r in residues)
        inputs, outputs = weight.type.static_shape[:2]
        kind = weight.type.with_shape((outputs, inputs, *taps))
        flipped = derive(functools.partial(_flipped, residues=residues), (weight,), kind)
        attrs = {
            "stride": (1, 1), "padding": tuple(r.padding for r in residues),
            "dilation": (1, 1), "groups": 1,
        }  # fmt: skip
        found = convolution.infer(x.type, kind, **attrs)
        assert isinstance(found, TensorType)
        phases.append(fresh(found))
        nodes.append(Node(convolution, (x, flipped), attrs, (phases[-1],), node.source, node.scope))
    if len(phases) == 1:
        return [Node(convolution, nodes[0].inputs, nodes[0].attrs, node.outputs, node.source,
                     node.scope)]  # fmt: skip
    steps = {"steps": tuple(node.attrs["stride"])}
    join = Node(get_op("interleave"), tuple(phases), steps, node.outputs, node.source, node.scope)
    return [*nodes, join]


def residues_of(node: Node) -> list[list[Residue]] | None:
    """Returns the residues of the output's positions for every axis of a transposed convolution.

    Args:
        node: A transposed convolution of a frozen graph.

    Returns:
        For an axis of stride s its s residues; a residue may have no taps, where no window
        reaches. None where plain convolutions do not do: where the output's size is no multiple of
        the stride, with groups, and where taps are apart.
    """
    x, weight = node.inputs
    attrs, result = node.attrs, node.outputs[0].type
    if x.type.ndim != 4 or not x.type.is_static or 0 in result.static_shape:
        return None
    spatial = x.type.static_shape[2:]
    if attrs["groups"] > 1 or set(attrs["dilation"]) != {1} or set(spatial) == {1}:
        return None
    rest = zip(result.static_shape[2:], weight.type.static_shape[2:], attrs["stride"])
    axes = [
        _axis_residues(n, o, k, s, lo)
        for n, (o, k, s), (lo, _) in zip(spatial, rest, attrs["padding"])
    ]
    return None if any(axis is None for axis in axes) else [axis for axis in axes if axis]


def _axis_residues(
    inputs: int, outputs: int, kernel: int, stride: int, padding: int
) -> list[Residue] | None:
    """One residue per offset within a stride of the output, or None where padding does not do."""
    found: list[Residue] = []
    for offset in range(stride):
        quotient, start = divmod(offset + padding, stride)
        taps = len(range(start, kernel, stride))
        before = taps - 1 - quotient
        after = quotient + outputs // stride - inputs
        found.append(Residue(start, stride, taps, (before, after)))
    fits = all(not r.taps or min(r.padding) >= 0 for r in found)
    return found if fits and outputs % stride == 0 else None


def _flipped(weight: np.ndarray, residues: tuple[Residue, ...]) -> np.ndarray:
    """(I, O, KH, KW) to the weight (O, I, taps, taps) of the residue's convolution."""
    taps = tuple(slice(r.start, None, r.step) for r in residues)
    return np.ascontiguousarray(np.flip(weight[(..., *taps)], (-2, -1)).swapaxes(0, 1))
