"""Which whole numbers a graph may compute where Python, whose ``int`` has no end, would.

A graph holds a Python ``int`` that a tensor decides in 64 bits. Ranges are followed from its
operands through every node, and through loops until they grow no more; what a loop adds to a number
counts as often as a loop can run before anybody stops it. A number that may not fit is one that the
graph must not compute.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import TypeVar

from tvmgraph.core.types import TensorType
from tvmgraph.graph import Graph, Node, Value

T = TypeVar("T")
Range = tuple[int, int]  #: the smallest and the largest number

_LARGEST = (1 << 63) - 1
_ENDLESS = 1 << 200  # stands for infinity
_LARGE = 1 << 136  # what only comes from that
_FEASIBLE = 1 << 30  # iterations of a loop: an hour of the cheapest ones
_FEW = 256  # iterations that are followed one by one
_ROUNDS = 3  # of a loop before it is asked what grows
_SIZE = (0, 1 << 40)  # of an axis
_BOOL = (0, 1)


def too_wide(
    graph: Graph, known: Mapping[Value, Range], numbers: Mapping[Value, T]
) -> list[T]:  # fmt: skip
    """Returns which integers of Python may not fit 64 bits in a graph.

    Args:
        graph: The graph of a function.
        known: Ranges of parameters and results, where they are known.
        numbers: What stands for the integers: their values, in the graph or its regions, with
            anything.

    Returns:
        What ``numbers`` holds for those that may not fit, in the order in which they are computed.
    """
    follower = _Follower(numbers, known)
    follower.run(graph, [known.get(p.value) for p in graph.params])
    return [numbers[v] for v in follower.wide]


class _Follower:
    """Follows ranges through a graph and its regions.

    Attributes:
        wide: Numbers that may not fit.
    """

    def __init__(self, numbers: Container[Value], known: Mapping[Value, Range]) -> None:
        self.numbers = numbers
        self.wide: dict[Value, None] = {}
        self._known = known
        self._settled = True  # whether ranges are final, not those of a loop that still grow
        self._nodes: dict[int, list[Node]] = {}  # those that are followed, by id of the graph
        self._makers: dict[int, dict[Value, Node]] = {}

    def run(self, graph: Graph, given: Sequence[Range | None]) -> dict[Value, Range]:
        """Returns the ranges of the values of a graph for those of its parameters."""
        found: dict[Value, Range] = {}
        for p, r in zip(graph.params, given):
            found[p.value] = r or _default(p.value.type)
        for v, array in graph.consts.items():
            if array.ndim == 0 and array.dtype.kind in "biu":
                found[v] = (int(array), int(array))
        if id(graph) not in self._nodes:
            self._nodes[id(graph)] = [n for n in graph.nodes if _is_followed(n)]
        for node in self._nodes[id(graph)]:
            self._node(graph, node, found)
        return found

    def _node(self, graph: Graph, node: Node, found: dict[Value, Range]) -> None:
        name = node.op.name
        if name == "if_":
            results = self._branch(graph, node, found)
        elif name == "while_":
            results = self._loop(node, found)
        else:
            r = _RULES[name](*[_of(found, v) for v in node.inputs])
            results = [self._fitting(node.outputs[0], r)]
        found.update(zip(node.outputs, results))

    def _fitting(self, value: Value, r: Range) -> Range:
        """Notes a number that does not fit; a tensor's elements wrap."""
        if value in self._known:
            return self._known[value]
        if value not in self.numbers:
            full = _default(value.type)
            return r if full[0] <= r[0] and r[1] <= full[1] else full
        if self._settled and not (r[0] >= -_LARGEST and r[1] <= _LARGEST):
            self.wide[value] = None
        return max(r[0], -_ENDLESS), min(r[1], _ENDLESS)

    # ---- branches ---------------------------------------------------------------------------

    def _branch(self, graph: Graph, node: Node, found: dict[Value, Range]) -> list[Range]:
        sides = []
        for side, outcome in zip(node.regions, (True, False)):
            here = dict(found)
            if self._assume(graph, here, node.inputs[0], outcome):
                inside = self.run(side, [_of(here, v) for v in node.inputs[1:]])
                sides.append([_of(inside, v) for v in side.outputs])
        return [_joined(r) for r in zip(*sides)]

    def _assume(
        self, graph: Graph, found: dict[Value, Range], value: Value, outcome: bool
    ) -> bool:  # fmt: skip
        """Narrows ranges to what they are where a ``bool[]`` has come out as ``outcome``.

        Returns:
            Whether it can come out like that.
        """
        node = self._maker(graph, value)
        name = node.op.name if node is not None else ""
        if node is None:
            return True
        if name in _COMPARISONS:
            relation = _COMPARISONS[name] if outcome else _CONTRARY[_COMPARISONS[name]]
            return _narrow(found, relation, *node.inputs)
        if name in ("logical_not", "cast", "reshape"):
            return self._assume(graph, found, node.inputs[0], outcome is (name != "logical_not"))
        if (name, outcome) in (("logical_and", True), ("logical_or", False)):
            return all([self._assume(graph, found, v, outcome) for v in node.inputs])
        if name == "if_":
            return self._assume_side(graph, found, node, node.outputs.index(value), outcome)
        return True

    def _assume_side(
        self, graph: Graph, found: dict[Value, Range], node: Node, index: int, outcome: bool
    ) -> bool:
        """Narrows by ``and`` and ``or``: where one side gives the contrary, it was the other."""
        for taken in (0, 1):
            side, other = node.regions[taken], node.regions[1 - taken]
            constant = other.consts.get(other.outputs[index])
            if constant is None or bool(constant) is outcome:
                continue
            possible = self._assume(graph, found, node.inputs[0], taken == 0)
            inside = self.run(side, [_of(found, v) for v in node.inputs[1:]])
            possible &= self._assume(side, inside, side.outputs[index], outcome)
            found.update((v, inside[p.value]) for v, p in zip(node.inputs[1:], side.params))
            return possible
        return True

    def _maker(self, graph: Graph, value: Value) -> Node | None:
        if id(graph) not in self._makers:
            self._makers[id(graph)] = {v: n for n in graph.nodes for v in n.outputs}
        return self._makers[id(graph)].get(value)

    # ---- loops ------------------------------------------------------------------------------

    def _loop(self, node: Node, found: dict[Value, Range]) -> list[Range]:
        count, (test, body) = len(node.outputs), node.regions
        given = [_of(found, v) for v in node.inputs]
        rest = given[count:]

        def step(now: Sequence[Range]) -> list[Range]:
            inside = self._entering(test, [*now, *rest])
            after = self.run(body, inside)
            return [_of(after, v) for v in body.outputs]

        settled, self._settled = self._settled, False
        try:
            limit = self._most_iterations(test, body, given, count)
            final = _Growth(step, given[:count], limit).final()
        finally:
            self._settled = settled
        if settled:
            step(final)
        return final

    def _entering(self, test: Graph, given: list[Range]) -> list[Range]:
        """Returns the ranges of what test and body are given, when the body starts."""
        tested = self.run(test, given)
        self._assume(test, tested, test.outputs[0], True)
        return [tested[p.value] for p in test.params]

    def _most_iterations(
        self, test: Graph, body: Graph, given: Sequence[Range], count: int
    ) -> int:  # fmt: skip
        """Returns how often a loop can run: less where a number counts up to what ends it."""
        anything = [_default(p.value.type) for p in test.params[:count]]
        inside = self._entering(test, [*anything, *given[count:]])
        after, limit = self.run(body, inside), _FEASIBLE
        for start, most, param, output in zip(given, inside, body.params, body.outputs):
            node = self._maker(body, output)
            if node is None or node.op.name != "add" or param.value not in node.inputs:
                continue
            low, high = _of(after, node.inputs[node.inputs[0] is param.value])
            if low > 0:
                limit = min(limit, (most[1] - start[0]) // low + 1)
            elif high < 0:
                limit = min(limit, (start[1] - most[0]) // -high + 1)
        return max(limit, 1)


class _Growth:
    """What the numbers that a loop carries may become.

    The ranges are one list of bounds, of which none shrinks: minus the smallest number of each,
    and the largest.

    Args:
        step: Gives the ranges after an iteration for those before it.
        start: The ranges before the first one.
        limit: How many iterations there are at most.
    """

    def __init__(
        self, step: Callable[[Sequence[Range]], list[Range]], start: Sequence[Range], limit: int
    ) -> None:
        self._step, self._limit = step, limit
        self._start = [b for low, high in start for b in (-low, high)]

    def final(self) -> list[Range]:
        """Returns ranges that hold before and after every iteration."""
        bounds, growing = self._start, set[int]()
        for _ in range(self._limit if self._limit <= _FEW else _ROUNDS):
            before, bounds = bounds, self._after(bounds)
            growing = {i for i, b in enumerate(bounds) if b != before[i]}
            if not growing:
                break
        else:
            if self._limit > _FEW:
                bounds = self._widened(bounds, growing)
        return _ranges(bounds)

    def _after(self, bounds: Sequence[int]) -> list[int]:
        """Returns the bounds before the first iteration or after the one that starts with these."""
        after = [b for low, high in self._step(_ranges(bounds)) for b in (-low, high)]
        return [*map(max, self._start, after)]

    def _widened(self, bounds: list[int], growing: set[int]) -> list[int]:
        seen = bounds
        while True:  # everything that grows, because something else does
            bounds = [_ENDLESS if i in growing else b for i, b in enumerate(bounds)]
            after = self._after(bounds)
            more = {i for i, b in enumerate(after) if b > bounds[i]}
            if not more:
                break
            growing |= more
        bounds = self._narrowed(bounds)
        growing = {i for i in growing if bounds[i] > _LARGEST}
        for group in self._groups(frozenset(growing), seen):
            self._accelerate(group, bounds, [seen[i] if i in growing else b
                                             for i, b in enumerate(bounds)])  # fmt: skip
            growing -= group
        return self._narrowed(bounds)

    def _narrowed(self, bounds: list[int]) -> list[int]:
        """Returns what a remainder, `min` or the test of the loop keeps small as that."""
        for _ in range(_ROUNDS):
            bounds = [*map(min, bounds, self._after(bounds))]
        return bounds

    def _groups(self, growing: frozenset[int], seen: Sequence[int]) -> Iterator[set[int]]:
        """Yields the bounds that make each other grow; first those that no later ones affect."""
        reached: dict[int, set[int]] = {}
        for i in growing:
            given = [max(b, 1 << 20) if j in growing else b for j, b in enumerate(seen)]
            given[i] = _ENDLESS
            after = self._after(given)
            reached[i] = {i, *[j for j in growing if after[j] > _LARGE]}
        for _ in growing:
            for i in growing:
                reached[i] = set[int]().union(*[reached[j] for j in reached[i]])
        todo = sorted(growing, key=lambda i: -len(reached[i]))
        while todo:
            group = {j for j in todo if j in reached[todo[0]] and todo[0] in reached[j]}
            yield group
            todo = [i for i in todo if i not in group]

    def _accelerate(self, group: set[int], bounds: list[int], given: list[int]) -> None:
        """Sets the bounds of a group to what they are after the last iteration."""
        least = max(0, *[given[i] for i in group])

        def growth(x: int) -> int:
            after = self._after([x if i in group else b for i, b in enumerate(given)])
            return max(after[i] for i in group) - x

        gain, end = growth(least), least
        while True:  # the gain, if it were the same in every iteration
            end = least + gain * self._limit
            if end > _LARGEST:
                end = _ENDLESS
                break
            between = [1 << k for k in range(0, (end - least).bit_length(), 8)]
            found = max(growth(x) for x in (end, *[least + d for d in between]))
            if found <= gain:
                break
            gain = found
        for i in group:
            bounds[i] = end


def _ranges(bounds: Sequence[int]) -> list[Range]:
    return [(-low, high) for low, high in zip(bounds[::2], bounds[1::2])]


# ---- ranges -------------------------------------------------------------------------------------


def _is_followed(node: Node) -> bool:
    if node.op.name in ("if_", "while_"):
        return True
    return node.op.name in _RULES and _is_whole(node.outputs[0])


def _is_whole(value: Value) -> bool:
    """Whether a value is one integer or truth value."""
    return value.type.shape == () and value.type.dtype.kind in "biu"


def _default(type: TensorType) -> Range:
    """Returns the numbers of a dtype; of no interest for fractions."""
    dtype = type.dtype
    if dtype.kind == "b":
        return _BOOL
    bits = 8 * dtype.numpy.itemsize if dtype.kind in "iu" else 64
    return (0, (1 << bits) - 1) if dtype.kind == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)


def _of(found: Mapping[Value, Range], value: Value) -> Range:
    return found.get(value) or _default(value.type)


def _joined(ranges: Sequence[Range]) -> Range:
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


def _narrow(found: dict[Value, Range], relation: str, a: Value, b: Value) -> bool:
    """Narrows two ranges to where a relation may hold; returns whether it can."""
    if relation in (">", ">="):
        relation, a, b = {">": "<", ">=": "<="}[relation], b, a
    x, y = _of(found, a), _of(found, b)
    if not (_is_whole(a) and _is_whole(b)) or relation == "!=":
        return True
    if relation == "==":
        x = y = max(x[0], y[0]), min(x[1], y[1])
    else:
        less = int(relation == "<")
        x, y = (x[0], min(x[1], y[1] - less)), (max(y[0], x[0] + less), y[1])
    possible = x[0] <= x[1] and y[0] <= y[1]
    if possible:
        found[a], found[b] = x, y
    return possible


_COMPARISONS = {
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    "equal": "==", "not_equal": "!=",
}  # fmt: skip
_CONTRARY = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def _corners(operation: Callable[[int, int], int]) -> Callable[[Range, Range], Range]:
    """Returns the rule of an operation that is monotone in each operand."""

    def rule(a: Range, b: Range) -> Range:
        found = [operation(x, y) for x in a for y in b]
        return min(found), max(found)

    return rule


def _floor_divide(a: Range, b: Range) -> Range:
    if b[0] <= 0 <= b[1]:
        most = max(map(abs, a))
        return -most, most
    return _corners(lambda x, y: x // y)(a, b)


def _floor_mod(a: Range, b: Range) -> Range:
    """Has the sign of the divisor, and is smaller."""
    low, high = min(b[0] + 1, 0), max(b[1] - 1, 0)
    return (0, min(a[1], high)) if a[0] >= 0 and b[0] >= 0 else (low, high)


def _power(a: Range, b: Range) -> Range:
    most, exponent = max(map(abs, a)), max(*b, 0)
    high = _ENDLESS if most.bit_length() * exponent > 256 and most > 1 else most**exponent
    even = b[0] == b[1] and exponent % 2 == 0
    return (0 if even or a[0] >= 0 else -high), high


def _bitwise(a: Range, b: Range) -> Range:
    bits = max(x.bit_length() for x in (*a, *b))
    return (0 if min(*a, *b) >= 0 else -(1 << bits)), (1 << bits) - 1


def _bitwise_and(a: Range, b: Range) -> Range:
    masks = [r[1] for r in (a, b) if r[0] >= 0]
    return (0, min(masks)) if masks else _bitwise(a, b)


def _abs(a: Range) -> Range:
    return (0 if a[0] <= 0 <= a[1] else min(map(abs, a))), max(map(abs, a))


_RULES: dict[str, Callable[..., Range]] = {
    "add": _corners(lambda x, y: x + y),
    "sub": _corners(lambda x, y: x - y),
    "mul": _corners(lambda x, y: x * y),
    "maximum": _corners(max),
    "minimum": _corners(min),
    "floor_divide": _floor_divide,
    "floor_mod": _floor_mod,
    "power": _power,
    "bitwise_and": _bitwise_and,
    "bitwise_or": _bitwise,
    "bitwise_xor": _bitwise,
    "abs": _abs,
    "neg": lambda a: (-a[1], -a[0]),
    "cast": lambda a: a,
    "reshape": lambda a: a,
    "size_value": lambda *_: _SIZE,
}
