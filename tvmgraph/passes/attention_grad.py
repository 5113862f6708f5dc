"""Finds the derivative of an attention in a graph that trains.

Its nodes are what the rows of product, softmax, scale and mask give: the cotangent of the weights
goes through the derivative of the softmax, then through mask and scale, and two products make the
cotangents of query and key from it. All of them together are one operator, which computes the
weights again, so that neither they nor their cotangent are ever held as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvmgraph.graph.ir import Node, Value
from tvmgraph.graph.links import Links

_PLAIN, _TRANSPOSED = "BNSD", "BNDS"


@dataclass(frozen=True)
class Attention:
    """An attention as the graph has it, as far as its derivative depends on that.

    Attributes:
        softmax: The node that makes the weights.
        mixing: The product of the weights with the values; None where only its derivative is
            wanted, so that nothing computes it.
        product: The product of queries and keys.
        scale: What the scores are scaled by.
        condition: Where scores are replaced, or None.
        inverted: Whether the condition is True where a score stays.
    """

    softmax: Node
    mixing: Node | None
    product: Node
    scale: float
    condition: Value | None
    inverted: bool


@dataclass(frozen=True)
class Result:
    """A cotangent that the operator computes: its node, or None, and the order of its axes."""

    node: Node | None
    layout: str


@dataclass(frozen=True)
class Backward:
    """The derivative of one attention.

    Attributes:
        value: The values.
        transposed: Whether the sizes stand before the positions in ``value``.
        cotangent: That of the result.
        results: Those of query, key and value.
    """

    value: Value
    transposed: bool
    cotangent: Value
    results: tuple[Result, Result, Result]

    def start(self, positions: Mapping[Node, int]) -> int:
        """The place of the first node that computes one of the results.

        Args:
            positions: Node -> its place in the graph.
        """
        return min(positions[r.node] for r in self.results if r.node is not None)


def find_backward(links: Links, at: Attention) -> Backward | None:
    """The derivative of an attention, or None where its weights are used in another way.

    Args:
        links: Who makes and who reads every value of the graph.
        at: The attention, whose weights are the result of its softmax.
    """
    weights = at.softmax.outputs[0]
    others = [node for node in links.readers(weights) if node is not at.mixing]
    sums = [node for node in others if node.op.name == "matmul"]
    slopes = _through_softmax(links, weights, [n for n in others if n.op.name == "mul"])
    if slopes is None or len(sums) > 1 or len(others) != 2 + len(sums):
        return None
    incoming, outgoing = slopes
    if incoming.op.name != "matmul" or incoming.attrs["transpose_a"]:
        return None
    cotangent, value = incoming.inputs
    transposed = not incoming.attrs["transpose_b"]
    if at.mixing and not _is_product(at.mixing, weights, value, False, transposed):
        return None
    mixed = _second(sums, weights, cotangent, (_PLAIN, _TRANSPOSED))
    found = _through_scores(links, outgoing, at)
    made = None if found is None else _cotangents(links, found, at.product)
    if made is None or (sums and mixed.node is None):
        return None
    results = (*made, mixed)
    return Backward(value, transposed, cotangent, results) if any(r.node for r in results) else None


def _is_product(node: Node, a: Value, b: Value, turn_a: bool, turn_b: bool) -> bool:
    """Whether a node is the product of two values, each transposed or not."""
    return (
        node.op.name == "matmul"
        and node.inputs[0] is a
        and node.inputs[1] is b
        and node.attrs["transpose_a"] == turn_a
        and node.attrs["transpose_b"] == turn_b
    )


def _second(
    nodes: Sequence[Node], first: Value, cotangent: Value, layouts: tuple[str, str]
) -> Result:
    """Which node gives the cotangent of the second factor of a product, or its transpose."""
    for node in nodes:
        for a, b, layout in ((first, cotangent, layouts[0]), (cotangent, first, layouts[1])):
            if _is_product(node, a, b, True, False):
                return Result(node, layout)
    return Result(None, layouts[0])


def _through_softmax(
    links: Links, weights: Value, products: Sequence[Node]
) -> tuple[Node, Value] | None:
    """The maker of the cotangent g of the weights y, and (g - sum(g y)) y."""
    if len(products) != 2:
        return None
    for inner, outer in (products, products[::-1]):
        total = links.reader(inner.outputs[0], "reduce_sum")
        if total is None or not total.attrs["keep_dims"]:
            continue
        difference = links.reader(total.outputs[0], "sub")
        if difference is None or tuple(total.attrs["axis"]) != (weights.type.ndim - 1,):
            continue
        g = difference.inputs[0]
        if (
            difference.inputs[1] is total.outputs[0]
            and links.reader(difference.outputs[0], "mul") is outer
            and set(inner.inputs) == {g, weights}
            and len(links.readers(g)) == 2
            and g in links.makers
        ):
            return links.makers[g], outer.outputs[0]
    return None


def _through_scores(links: Links, slopes: Value, at: Attention) -> Value | None:
    """The cotangent of the product of queries and keys, from that of the masked scores."""
    scale, masked = 1.0, False
    while True:
        users = links.readers(slopes)
        node = users[0] if len(users) == 1 else None
        if node is None or node.op.name not in ("mul", "real_div", "where"):
            break
        if node.op.name == "where":
            if masked or not _keeps(links, node, slopes, at):
                return None
            masked = True
        else:
            factor = links.number(node.inputs[1])
            if factor is None or node.inputs[0] is not slopes or not factor:
                return None
            scale *= factor if node.op.name == "mul" else 1 / factor
        slopes = node.outputs[0]
    fits = masked == (at.condition is not None) and math.isclose(scale, at.scale, rel_tol=1e-6)
    return slopes if fits else None


def _keeps(links: Links, node: Node, slopes: Value, at: Attention) -> bool:
    """Whether a choice keeps the slopes where the scores were kept, and is 0 elsewhere."""
    condition, zero, kept = node.inputs
    if at.inverted:
        zero, kept = kept, zero
    return condition is at.condition and kept is slopes and links.number(zero) == 0


def _cotangents(links: Links, scores: Value, product: Node) -> tuple[Result, Result] | None:
    """The cotangents of query and key; None if something else reads that of the scores."""
    query, key = product.inputs
    users = links.readers(scores)
    transposed = product.attrs["transpose_b"]
    first = next((n for n in users if _is_product(n, scores, key, False, not transposed)), None)
    second = _second(users, query, scores, (_TRANSPOSED, _PLAIN))
    known = [n for n in (first, second.node) if n is not None]
    return (Result(first, _PLAIN), second) if len(users) == len(known) else None
