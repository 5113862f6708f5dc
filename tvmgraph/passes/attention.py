"""Finds softmax(scale Q K^T + mask) V in a graph and makes it one operator.

The products may be written in any operand order, with heads taken apart by transposes, a scale on
either operand or on the scores, and a mask that is added or chooses a fill value. Heads of keys and
values that are repeated for several heads of the query are read where they are. A mask that is
made of constants alone and hides exactly what lies above a diagonal becomes that diagonal, so that
blocks of hidden scores are not computed. In a graph that trains, the derivative becomes one
operator too. Attention whose weights something else reads stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tvmgraph.backend.base import TakesAttention, backend_of
from tvmgraph.config.options import CompileOptions
from tvmgraph.core.op import Op, Reason, get_op
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.dtypes import FLOATS, bool_
from tvmgraph.graph.ir import Graph, Node, Value
from tvmgraph.graph.links import Links
from tvmgraph.passes.attention_grad import Attention, Backward, find_backward

_AXES = "BNSD"


def fuse_attention(graph: Graph, takes: TakesAttention | None = None) -> Graph:
    """Returns the graph with every attention as one ``fused_attention``; itself if there is none.

    Regions are looked through too. Dead nodes are left for the caller to remove.

    Args:
        graph: The graph.
        takes: Says of an attention, by type of the scores, layouts of the operands and whether its
            derivative is wanted, whether there is a kernel for it; by default there always is.
    """
    nodes = [_with_regions(node, takes) for node in graph.nodes]
    if any(new is not old for new, old in zip(nodes, graph.nodes)):
        graph = Graph(
            graph.name, graph.params, graph.consts, tuple(nodes), graph.outputs, graph.writes
        )
    return _Fuser(graph, takes).run()


def match_attention(graph: Graph, options: CompileOptions) -> Graph:
    """Fuses the attention that the backend has kernels for; see :func:`fuse_attention`.

    Args:
        graph: A graph of any operators.
        options: Has the target, whose backend says which types and layouts its kernels take.
    """
    return fuse_attention(graph, backend_of(options.target).takes_attention)


def _with_regions(node: Node, takes: TakesAttention | None) -> Node:
    regions = tuple(fuse_attention(region, takes) for region in node.regions)
    if all(new is old for new, old in zip(regions, node.regions)):
        return node
    return Node(node.op, node.inputs, node.attrs, node.outputs, node.source, node.scope, regions)


@dataclass
class _Found:
    """One attention, as far as it has been recognized.

    Attributes:
        inputs: Query, key, value.
        layouts: The order of the axes in each.
        scale: Factor of the scores.
        mask: What hides scores, or None.
        fill: What replaces a score under a bool mask.
        inverted: Whether the bool mask is True where a score stays.
        result: The value it computes.
        last: The node that defines it.
        diagonal: Query i sees the keys up to i + ``diagonal``.
        backward: Its derivative, if the graph has it.
        guard: What puts zeros in place of weights that are NaN, or None.
        built: The nodes that take its place.
    """

    inputs: list[Value]
    layouts: list[str]
    result: Value
    last: Node
    scale: float = 1.0
    mask: Value | None = None
    fill: float | None = None
    inverted: bool = False
    diagonal: int | None = None
    backward: Backward | None = None
    guard: Node | None = None
    built: list[Node] = field(default_factory=list)


class _Fuser:
    def __init__(self, graph: Graph, takes: TakesAttention | None) -> None:
        self.graph, self.takes = graph, takes
        self.links = Links(graph)
        self.makers, self.users, self.uses = self.links.makers, self.links.users, self.links.uses
        self.positions = {node: position for position, node in enumerate(graph.nodes)}
        self.names = {v.name for node in graph.walk() for v in node.outputs}
        self.count = 0
        #: Values of expressions of constants, see :meth:`_constant`.
        self.known: dict[Value, np.ndarray | None] = dict(graph.consts)

    def run(self) -> Graph:
        """Returns the rewritten graph."""
        before: dict[int, list[Node]] = {}  # new nodes by the position that they go to
        for node in self.graph.nodes:
            found = self._match(node) if node.op.name == "softmax" else None
            if found is not None:
                self._build(found, before)
        if not before:
            return self.graph
        made = {v for nodes in before.values() for node in nodes for v in node.outputs}
        nodes: list[Node] = []
        for position, node in enumerate(self.graph.nodes):
            nodes += before.get(position, [])
            if not made.intersection(node.outputs):
                nodes.append(node)
        g = self.graph
        return Graph(g.name, g.params, g.consts, tuple(nodes), g.outputs, g.writes)

    # Matching

    def _match(self, softmax: Node) -> _Found | None:
        scores, weights = softmax.inputs[0], softmax.outputs[0]
        kind = scores.type
        if kind.dtype not in FLOATS or kind.ndim not in ((2, 3, 4) if kind.is_static else (4,)):
            return None
        if softmax.attrs["axis"] not in (-1, kind.ndim - 1):
            return None
        guard = self._guard(weights)
        weights = weights if guard is None else guard.outputs[0]
        mixing = next((n for n in self.users.get(weights, ()) if _mixes(n, weights)), None)
        found = _Found([], [], weights, mixing or softmax, guard=guard)
        product = self._through_scores(found, scores)
        if product is None:
            return None
        if self.uses[weights] != 1:
            if guard is not None:
                return None
            condition = found.mask if found.fill is not None else None
            at = Attention(softmax, mixing, product, found.scale, condition, found.inverted)
            found.backward = find_backward(self.links, at)
            if found.backward is None:
                return None
            mixing = mixing or self._mixing(weights, found.backward)
        if mixing is None:
            return None
        found.result, found.last = mixing.outputs[0], mixing
        if not self._operands(found, product, mixing):
            return None
        if found.mask is not None and found.mask.type.ndim < 4 and not found.mask.type.is_static:
            return None
        self._see_diagonal(found, kind)
        self._transpose_result(found)
        operands = [value.type for value in found.inputs]
        has_backward = found.backward is not None
        if self.takes and not self.takes(kind, operands, found.layouts, has_backward):
            return None
        return found

    def _guard(self, weights: Value) -> Node | None:
        """What replaces NaN by zero: all weights of a query that sees no key, or NaN scores."""
        readers = self.links.readers(weights)
        where = next((n for n in readers if n.op.name == "where"), None)
        if where is None or len(readers) != 2:
            return None
        condition, zero, rest = where.inputs
        test = self.links.maker(condition, "isnan")
        is_guard = test is not None and test.inputs[0] is weights and rest is weights
        return where if is_guard and self._fill_value(zero) == 0 else None

    def _mixing(self, weights: Value, backward: Backward) -> Node:
        """The product of weights and values where the graph has only its derivative."""
        op, attrs = get_op("matmul"), {"transpose_a": False, "transpose_b": backward.transposed}
        kind = op.infer(weights.type, backward.value.type, **attrs)
        assert isinstance(kind, TensorType)
        start = self.graph.nodes[backward.start(self.positions)]
        result = self._fresh(kind)
        return Node(op, (weights, backward.value), attrs, (result,), start.source, start.scope)

    def _through_scores(self, found: _Found, value: Value) -> Node | None:
        """Walks from the softmax to the first product, collecting the mask and the scale."""
        kind = value.type
        while value.type is kind:
            node = self.links.maker(value, "matmul", "add", "where", "mul", "real_div")
            if node is None or node.op.name == "matmul":
                return node
            if node.op.name in ("mul", "real_div"):
                rest = self._unscale(found, node)
                if rest is None:
                    return None
            else:
                masked = self._mask(found, node)
                if masked is None:
                    return None
                rest = masked
            value = rest
        return None

    def _unscale(self, found: _Found, node: Node) -> Value | None:
        """What a product or quotient with a number scales."""
        a, b = node.inputs
        number = self.links.number(b)
        if number is None and node.op.name == "mul":
            a, number = b, self.links.number(a)
        if number is None or a.type is not node.outputs[0].type:
            return None
        if node.op.name == "real_div" and number == 0:
            return None
        found.scale *= number if node.op.name == "mul" else 1 / number
        return a

    def _mask(self, found: _Found, node: Node) -> Value | None:
        """What is left under a mask; one mask is understood, and nothing that scales it."""
        if found.mask is not None or found.scale != 1.0:
            return None
        if node.op.name == "add":
            for scores, mask in (node.inputs, node.inputs[::-1]):
                if self._is_scores(scores, node) and mask.type.ndim <= scores.type.ndim:
                    found.mask = mask
                    return scores
            return None
        condition, a, b = node.inputs
        for fill, scores, inverted in ((a, b, False), (b, a, True)):
            number = self._fill_value(fill)
            if number is not None and self._is_scores(scores, node):
                if condition.type.dtype is not bool_:
                    return None
                found.mask, found.fill, found.inverted = condition, number, inverted
                return scores
        return None

    def _is_scores(self, value: Value, node: Node) -> bool:
        """Whether a value is a product, perhaps scaled, of the right type."""
        maker = self.links.maker(value, "matmul", "mul", "real_div")
        while maker is not None and maker.op.name != "matmul":
            rest = self._unscale(_Found([], [], value, maker), maker)
            maker = None if rest is None else self.links.maker(rest, "matmul", "mul", "real_div")
        return maker is not None and value.type is node.outputs[0].type

    def _fill_value(self, value: Value) -> float | None:
        """The number that all elements of a value hold, if it is made of constants."""
        number = self.links.number(value)
        if number is None and value.type.is_static and value.type.size <= MAX_MASK:
            array = self._constant(value)
            if array is not None and array.size and np.all(array == array.flat[0]):
                number = float(array.flat[0])
        return number

    def _operands(self, found: _Found, product: Node, mixing: Node) -> bool:
        """Reads query, key and value where they come from, whatever the order of their axes."""
        if product.attrs["transpose_a"]:
            return False
        rank = product.outputs[0].type.ndim
        plain, transposed = _AXES, "BNDS"
        layouts = [
            plain,
            plain if product.attrs["transpose_b"] else transposed,
            transposed if mixing.attrs["transpose_b"] else plain,
        ]
        for value, layout in zip((*product.inputs, mixing.inputs[1]), layouts):
            if value.type.ndim != rank:
                return False
            # a scaled query and a repeated key have cotangents of their own
            scaled = len(found.inputs) < 2 and found.backward is None
            value, layout = self._origin(found, value, layout, scaled)
            shared = self._shared_heads(value, layout) if found.inputs else None
            if shared is not None and found.backward is None:
                value, layout = self._origin(found, shared, layout, False)
            value, layout = self._four_axes(found, value, layout)
            found.inputs.append(value)
            found.layouts.append(layout)
        q, k, v = (
            dict(zip(layout, v.type.shape)) for v, layout in zip(found.inputs, found.layouts)
        )
        if not all(isinstance(kind[axis], int) for kind in (q, k, v) for axis in "ND"):
            return False
        if any(extent == 0 for kind in (q, k, v) for extent in kind.values()):
            return False
        sharing = q["N"] != k["N"]  # the derivative of a shared head would be a sum
        return (
            q["B"] == k["B"] == v["B"]
            and k["N"] == v["N"]
            and q["D"] == k["D"]
            and k["S"] == v["S"]
            and all(v.type.dtype is mixing.outputs[0].type.dtype for v in found.inputs)
            and not (sharing and (found.backward is not None or q["N"] % k["N"]))
        )

    def _origin(self, found: _Found, value: Value, layout: str, scaled: bool) -> tuple[Value, str]:
        """Goes back over transposes and, where a scale may stand, over products with a number."""
        while True:
            node = self.makers.get(value)
            if node is not None and node.op.name == "transpose" and value.type.ndim == 4:
                dims = [d % 4 for d in node.attrs["dims"]]
                layout = "".join(layout[dims.index(axis)] for axis in range(4))
                value = node.inputs[0]
                continue
            if scaled and self.links.maker(value, "mul", "real_div"):
                assert node is not None
                rest = self._unscale(found, node)
                if rest is not None:
                    value = rest
                    continue
            return value, layout

    def _shared_heads(self, value: Value, layout: str) -> Value | None:
        """The value of which each head is repeated, several times in a row."""
        merging = self.links.maker(value, "reshape")
        spreading = merging and self.links.maker(merging.inputs[0], "broadcast_to")
        adding = spreading and self.links.maker(spreading.inputs[0], "expand_dims", "reshape")
        if not (spreading and adding) or value.type.ndim != 4:
            return None
        heads = layout.index("N")
        before = list(adding.inputs[0].type.shape)
        lead, rest = before[: heads + 1], before[heads + 1 :]
        spread = spreading.outputs[0].type.shape
        if len(before) != 4 or len(spread) != 5 or not isinstance(before[heads], int):
            return None
        repeats = spread[heads + 1]
        if not isinstance(repeats, int) or list(spread) != [*lead, repeats, *rest]:
            return None
        if list(spreading.inputs[0].type.shape) != [*lead, 1, *rest]:
            return None
        merged = [*lead[:-1], before[heads] * repeats, *rest]
        return adding.inputs[0] if list(value.type.shape) == merged else None

    def _four_axes(self, found: _Found, value: Value, layout: str) -> tuple[Value, str]:
        """Gives an operand of 2 or 3 axes the axes it lacks."""
        missing = 4 - value.type.ndim
        if missing:
            shape = value.type.shape
            batch = shape[: len(shape) - 2] or (1,)
            value = self._call(found, "reshape", value, shape=(*batch, 1, *shape[-2:]))[0]
        return value, layout

    # The mask

    def _see_diagonal(self, found: _Found, scores: TensorType) -> None:
        """Turns a constant mask into a diagonal, if it is one; gives any other one 4 axes."""
        if found.mask is None:
            return
        mask = found.mask
        rows, keys = scores.shape[-2:]
        known = mask.type.is_static and isinstance(rows, int) and isinstance(keys, int)
        if known and mask.type.size == rows * keys:  # pyright: ignore[reportOperatorIssue]
            array, diagonal = self._constant(mask), None
            if array is not None:
                diagonal = hidden_above(array.reshape(rows, keys), found.fill, found.inverted)
            if diagonal is not None:
                found.mask, found.fill, found.diagonal = None, None, diagonal
                return
        missing = 4 - mask.type.ndim
        if missing:
            shape = mask.type.static_shape
            lead = (1,) * missing + tuple(shape)
            if scores.ndim == 3 and mask.type.ndim == 3:
                lead = (shape[0], 1, *shape[1:])
            mask = self._call(found, "reshape", mask, shape=lead)[0]
        if found.inverted:
            mask = self._call(found, "logical_not", mask)[0]
        found.mask = mask

    def _constant(self, value: Value) -> np.ndarray | None:
        """The value of an expression of constants, or None."""
        if value not in self.known:
            self.known[value] = self._evaluated(value)
        return self.known[value]

    def _evaluated(self, value: Value) -> np.ndarray | None:
        nodes = self._nodes_behind(value)
        if nodes is None:
            return None
        arrays: dict[Value, Any] = {}
        left = Counter(v for node in nodes for v in node.inputs)
        for node in sorted(nodes, key=self.positions.__getitem__):
            inputs = [arrays[v] if v in arrays else self.known[v] for v in node.inputs]
            arrays[node.outputs[0]] = np.asarray(node.op.eager(*inputs, **node.attrs))
            left.subtract(node.inputs)
            for v in node.inputs:  # masks are large, and expressions may be long
                if not left[v]:
                    arrays.pop(v, None)
        return arrays[value]

    def _nodes_behind(self, value: Value) -> set[Node] | None:
        """What computes a value from those that are known; None if it is no constant."""
        found: set[Node] = set()
        waiting = [value]
        while waiting:
            v = waiting.pop()
            node = self.makers.get(v)
            if self.known.get(v) is not None or node in found:
                continue
            if v in self.known or node is None or not is_evaluated(node):
                return None
            found.add(node)
            waiting += node.inputs
        return found

    # Building

    def _transpose_result(self, found: _Found) -> None:
        """Lets the operator write the transpose of its result, if nothing else reads that."""
        found.layouts.append(_AXES)
        users = self.users.get(found.result, [])
        if found.result.type.ndim != 4 or self.uses[found.result] != 1 or not users:
            return
        if users[0].op.name == "transpose":
            found.layouts[3] = "".join(_AXES[d % 4] for d in users[0].attrs["dims"])
            found.last = users[0]
            found.result = users[0].outputs[0]

    def _build(self, found: _Found, before: dict[int, list[Node]]) -> None:
        """Writes the nodes of an attention, and where they go."""
        inputs = [*found.inputs, *([] if found.mask is None else [found.mask])]
        attrs = {"scale": found.scale, "diagonal": found.diagonal, "fill": found.fill}
        forward = attrs | {"layouts": tuple(found.layouts)}
        is_plain = found.backward is None and found.guard is None
        name = "fused_attention" if is_plain else "attention_with_statistics"
        result, *statistics = self._call(found, name, *inputs, **forward)
        if found.guard is not None:
            result = self._guarded(found, found.guard.inputs[1], result, statistics[0])
        result = self._rename(found, result, found.result)
        if found.last in self.positions:
            before.setdefault(self.positions[found.last], []).extend(found.built)
            found.built = []
        if found.backward is not None:
            self._differentiate(found, found.backward, [*inputs, result, *statistics], attrs)
            start = found.backward.start(self.positions)
            before.setdefault(start, []).extend(found.built)

    def _guarded(self, found: _Found, zero: Value, result: Value, statistics: Value) -> Value:
        """Puts zeros where the sum of exponentials of a query is zero or NaN."""
        (both,) = self._call(found, "reduce_sum", statistics, axis=(3,), keep_dims=True)
        (kept,) = self._call(found, "isfinite", both)
        if found.layouts[3] != _AXES:
            dims = tuple(map(_AXES.index, found.layouts[3]))
            (kept,) = self._call(found, "transpose", kept, dims=dims)
        return self._call(found, "where", kept, result, zero)[0]

    def _differentiate(
        self, found: _Found, backward: Backward, inputs: list[Value], attrs: Mapping[str, object]
    ) -> None:
        """Writes the derivative."""
        cotangent, layout = self._origin(found, backward.cotangent, _AXES, False)
        cotangent, layout = self._four_axes(found, cotangent, layout)
        layouts = [*found.layouts, layout]
        values: list[Value | None] = []
        for result in backward.results:
            value, order = None, result.layout
            if result.node is not None:
                value, order = self._transposed(result.node.outputs[0], order)
            layouts.append(order)
            values.append(value)
        made = self._call(
            found, "attention_gradient", *inputs, cotangent, **attrs, layouts=tuple(layouts)
        )
        for new, old in zip(made, values):
            if old is not None:
                self._rename(found, new, old)

    def _transposed(self, value: Value, layout: str) -> tuple[Value, str]:
        """Follows the transposes of a value that nothing else reads."""
        while node := self.links.reader(value, "transpose"):
            rank = value.type.ndim
            dims = [d % rank for d in node.attrs["dims"]]
            if rank < 4:  # the axes it lacks stand before the last two
                if dims[: rank - 2] != list(range(rank - 2)):
                    break
                dims = [0, 1, *(d + 4 - rank for d in dims[rank - 2 :])]
            layout = "".join(layout[d] for d in dims)
            value = node.outputs[0]
        return value, layout

    def _rename(self, found: _Found, new: Value, old: Value) -> Value:
        """Gives a new value the name and the shape that the graph knows; returns it unshaped."""
        if new.type is not old.type:
            self._add(found, get_op("reshape"), [new], {"shape": tuple(old.type.shape)}, (old,))
            return new
        node = next(n for n in found.built if new in n.outputs)
        outputs = tuple(old if v is new else v for v in node.outputs)
        found.built[found.built.index(node)] = replace(node, outputs=outputs)
        return old

    def _call(self, found: _Found, name: str, *inputs: Value, **attrs: object) -> tuple[Value, ...]:
        op = get_op(name)
        kinds = op.infer(*[v.type for v in inputs], **attrs)
        kinds = (kinds,) if isinstance(kinds, TensorType) else kinds
        values = tuple(self._fresh(tensor_type(kind.shape, kind.dtype)) for kind in kinds)
        self._add(found, op, inputs, attrs, values)
        return values

    def _fresh(self, kind: TensorType) -> Value:
        while f"a{self.count}" in self.names:
            self.count += 1
        self.count += 1
        return Value(f"a{self.count - 1}", kind)

    def _add(
        self, found: _Found, op: Op, inputs: Sequence[Value], attrs: Mapping[str, object],
        results: tuple[Value, ...],
    ) -> None:  # fmt: skip
        at = found.last
        found.built.append(Node(op, tuple(inputs), attrs, results, at.source, at.scope))


def _mixes(node: Node, weights: Value) -> bool:
    """Whether a node multiplies something with weights, row by row."""
    attrs = node.attrs
    return node.op.name == "matmul" and node.inputs[0] is weights and not attrs["transpose_a"]


# ---- masks of attention that are constants: which are looked at, and what they hide --------------

#: A fill value from here down leaves nothing of a weight, whatever the other scores are.
HIDDEN = -3e4
#: Constant masks up to this many elements are looked at.
MAX_MASK = 1 << 25


def is_evaluated(node: Node) -> bool:
    """Whether a node of constants may be evaluated here.

    Args:
        node: A node of constants alone. Control flow, what cannot be compiled and large tensors are
            left to the call.
    """
    if node.regions or len(node.outputs) != 1 or isinstance(node.op.lower, Reason):
        return False
    values = (*node.inputs, *node.outputs)
    return all(v.type.is_static and v.type.size <= MAX_MASK for v in values)


def hidden_above(mask: np.ndarray, fill: float | None, inverted: bool) -> int | None:
    """The diagonal up to which a mask hides nothing, if it hides everything above it.

    Args:
        mask: Rows by keys: booleans where scores are replaced, else numbers that are added.
        fill: What replaces scores, None where the mask is added.
        inverted: Whether scores are kept where the mask is true.
    """
    if fill is not None:
        if not fill <= HIDDEN:
            return None
        visible = mask if inverted else ~mask
    else:
        wide = mask.astype(np.float64)
        if not np.all((wide == 0) | (wide <= HIDDEN)):
            return None
        visible = wide == 0
    rows, keys = mask.shape
    diagonal = int(visible[0].sum()) - 1
    if diagonal < 0 or not np.array_equal(visible, np.tri(rows, keys, diagonal, dtype=bool)):
        return None
    return diagonal
