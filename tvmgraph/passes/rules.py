"""Algebraic rules: how one node may be rewritten in terms of what it reads.

A rule gets a :class:`Match` and returns the value that replaces the node's result, or ``None``.
Rules of the pass ``simplify`` give the same bits (also for infinities, NaN and negative zero);
those of ``reassociate`` may round otherwise and differ where a part overflows. Every rule has a
name that ``--disable_pass`` of ``graph_kernel_flags`` takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvmgraph.core.op import get_op
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.dtypes import int8, int32
from tvmgraph.graph.ir import Node, Value


class Match:
    """A node with what a rule needs to look around and to build.

    Args:
        node: The node, with inputs already rewritten.
        makers: The node that defines every value.
        consts: Constants of the graph; new ones are added.
        fresh: Returns a new value of a type.
    """

    def __init__(
        self,
        node: Node,
        makers: Mapping[Value, Node],
        consts: dict[Value, np.ndarray],
        fresh: Callable[[TensorType], Value],
    ) -> None:
        self.node = node
        self.makers = makers
        self.consts = consts
        self.fresh = fresh
        self.built: list[Node] = []

    @property
    def inputs(self) -> tuple[Value, ...]:
        """What the node reads."""
        return self.node.inputs

    def maker(self, value: Value, *names: str) -> Node | None:
        """Returns the node that computes ``value``, if its operator is one of ``names``.

        Args:
            value: An operand of the matched node, or one of theirs.
            names: Names of operators.
        """
        found = self.makers.get(value)
        return found if found is not None and found.op.name in names else None

    def number(self, value: Value) -> float | int | None:
        """Returns the number that every element of a constant holds, if it is one.

        Args:
            value: A value of the graph.
        """
        array = self.consts.get(value)
        if array is None or not array.size or array.dtype.kind not in "fiu":
            return None
        first = array.reshape(-1)[0]
        bits = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
        return first.item() if np.all(bits == bits[0]) else None

    def operand(self, wanted: Callable[[float | int], bool]) -> Value | None:
        """Returns the operand beside a constant that is ``wanted``, if it has the result's type.

        Args:
            wanted: Says of the constant's number whether the rule is about it.
        """
        a, b = self.inputs
        for x, c in ((a, b), (b, a)):
            number = self.number(c)
            if number is not None and wanted(number) and x.type is self.node.outputs[0].type:
                return x
        return None

    def call(self, name: str, *inputs: Value, **attrs: object) -> Value:
        """Adds a node in place of the matched one and returns its result.

        Args:
            name: The operator.
            inputs: Its operands.
            attrs: Its attributes.
        """
        op = get_op(name)
        result = op.infer(*[v.type for v in inputs], **attrs)
        assert isinstance(result, TensorType)
        value = self.fresh(result)
        old = self.node
        self.built.append(Node(op, inputs, attrs, (value,), old.source, old.scope))
        return value

    def scalar(self, number: float, like: Value) -> Value:
        """Adds a 0-d constant of ``like``'s dtype.

        Args:
            number: Its value.
            like: Whose dtype it has.
        """
        array = np.asarray(number, like.type.dtype.numpy)
        value = self.fresh(tensor_type((), like.type.dtype))
        self.consts[value] = array
        return value


Rewrite = Callable[[Match], Value | None]


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        name: Its name.
        exact: Whether it gives the same bits.
        ops: Operators it looks at.
        rewrite: The rule itself.
    """

    name: str
    exact: bool
    ops: tuple[str, ...]
    rewrite: Rewrite


RULES: dict[str, Rule] = {}


def rule(*ops: str, exact: bool = True) -> Callable[[Rewrite], Rewrite]:
    """Adds a rule for some operators.

    Args:
        *ops: Names of the operators whose nodes it is shown.
        exact: Whether it gives the same bits for every input.
    """

    def add(rewrite: Rewrite) -> Rewrite:
        name = rewrite.__name__
        RULES[name] = Rule(name, exact, ops, rewrite)
        return rewrite

    return add


# ---- neutral elements ---------------------------------------------------------------------------


@rule("mul")
def mul_one(m: Match) -> Value | None:
    """``x * 1 -> x``."""
    return m.operand(lambda c: c == 1)


@rule("real_div")
def div_one(m: Match) -> Value | None:
    """``x / 1 -> x``."""
    x, c = m.inputs
    return x if m.number(c) == 1 and x.type is m.node.outputs[0].type else None


@rule("sub")
def sub_zero(m: Match) -> Value | None:
    """``x - 0 -> x`` (not ``-0.0``, which turns a negative zero into a positive one)."""
    x, c = m.inputs
    number = m.number(c)
    zero = number == 0 and math.copysign(1, number) > 0
    return x if zero and x.type is m.node.outputs[0].type else None


@rule("add")
def add_zero(m: Match) -> Value | None:
    """``x + 0 -> x`` of integers, ``x + -0.0 -> x`` of floating-point numbers."""
    whole = not m.node.outputs[0].type.dtype.is_float
    return m.operand(lambda c: c == 0 and (whole or math.copysign(1, c) < 0))


@rule("add", exact=False)
def add_positive_zero(m: Match) -> Value | None:
    """``x + 0.0 -> x``, which differs for a negative zero."""
    return m.operand(lambda c: c == 0)


@rule("mul")
def mul_minus_one(m: Match) -> Value | None:
    """``x * -1 -> -x``."""
    if not m.node.outputs[0].type.dtype.is_float:
        return None
    x = m.operand(lambda c: c == -1)
    return None if x is None else m.call("neg", x)


# ---- signs --------------------------------------------------------------------------------------


@rule("neg")
def neg_neg(m: Match) -> Value | None:
    """``-(-x) -> x``."""
    inner = m.maker(m.inputs[0], "neg")
    return inner.inputs[0] if inner else None


@rule("add")
def add_neg(m: Match) -> Value | None:
    """``x + (-y) -> x - y``."""
    a, b = m.inputs
    for x, other in ((a, b), (b, a)):
        inner = m.maker(other, "neg")
        if inner:
            return m.call("sub", x, inner.inputs[0])
    return None


@rule("sub")
def sub_neg(m: Match) -> Value | None:
    """``x - (-y) -> x + y``."""
    inner = m.maker(m.inputs[1], "neg")
    return m.call("add", m.inputs[0], inner.inputs[0]) if inner else None


@rule("abs", "square")
def even_of_neg(m: Match) -> Value | None:
    """``|-x| -> |x|``, except of unsigned integers, and ``(-x)**2 -> x**2``."""
    inner = m.maker(m.inputs[0], "neg")
    if m.node.op.name == "abs" and m.inputs[0].type.dtype.name.startswith("u"):
        return None
    return m.call(m.node.op.name, inner.inputs[0]) if inner else None


@rule("relu", "abs", "floor", "ceil", "round", "trunc", "sign")
def idempotent(m: Match) -> Value | None:
    """``f(f(x)) -> f(x)`` for rounding, relu, abs and sign."""
    return m.inputs[0] if m.maker(m.inputs[0], m.node.op.name) else None


# ---- powers and quotients -----------------------------------------------------------------------


@rule("power_scalar")
def pow_to_mul(m: Match) -> Value | None:
    """``x**1 -> x``, ``x**2 -> x * x``."""
    exponent, x = m.node.attrs["exponent"], m.inputs[0]
    if exponent == 1:
        return x
    return m.call("mul", x, x) if exponent == 2 else None


@rule("power_scalar", exact=False)
def pow_to_root(m: Match) -> Value | None:
    """``x**0.5 -> sqrt(x)``, ``x**-0.5 -> rsqrt(x)``, which differ for ``-inf`` and ``-0.0``."""
    name = {0.5: "sqrt", -0.5: "rsqrt"}.get(m.node.attrs["exponent"])
    return m.call(name, m.inputs[0]) if name and m.inputs[0].type.dtype.is_float else None


def _quotient(m: Match, allowed: Callable[[float], bool]) -> Value | None:
    x, c = m.inputs
    number = m.number(c)
    if number is None or not x.type.dtype.is_float or x.type is not m.node.outputs[0].type:
        return None
    if c.type.dtype is not x.type.dtype or not number or not math.isfinite(number):
        return None
    inverse = 1.0 / number
    stored = float(np.asarray(inverse, x.type.dtype.numpy))
    tiny = float(np.finfo(np.float32).tiny) if x.type.dtype.name != "float16" else 2.0**-14
    usable = math.isfinite(stored) and abs(stored) >= tiny and allowed(number)
    return m.call("mul", x, m.scalar(inverse, x)) if usable else None


@rule("real_div")
def div_by_power_of_two(m: Match) -> Value | None:
    """``x / 2**k -> x * 2**-k``."""
    return _quotient(m, lambda c: abs(math.frexp(c)[0]) == 0.5)


@rule("real_div", exact=False)
def div_to_mul(m: Match) -> Value | None:
    """``x / c -> x * (1 / c)``."""
    return _quotient(m, lambda c: True)


@rule("reciprocal", exact=False)
def reciprocal_of_sqrt(m: Match) -> Value | None:
    """``1 / sqrt(x) -> rsqrt(x)``."""
    inner = m.maker(m.inputs[0], "sqrt")
    return m.call("rsqrt", inner.inputs[0]) if inner else None


@rule("real_div", exact=False)
def div_by_sqrt(m: Match) -> Value | None:
    """``y / sqrt(x) -> y * rsqrt(x)``."""
    inner = m.maker(m.inputs[1], "sqrt")
    if inner is None or m.inputs[0].type.dtype is not m.inputs[1].type.dtype:
        return None
    return m.call("mul", m.inputs[0], m.call("rsqrt", inner.inputs[0]))


# ---- constants meet -----------------------------------------------------------------------------


def _constant_chain(m: Match, combine: Callable[[Any, Any], Any]) -> Value | None:
    a, b = m.inputs
    name = m.node.op.name
    for x, c in ((a, b), (b, a)):
        inner = m.maker(x, name)
        if inner is None or c not in m.consts or m.consts[c].size != 1:
            continue
        for y, d in (inner.inputs, inner.inputs[::-1]):
            if d in m.consts and m.consts[d].size == 1 and y.type is m.node.outputs[0].type:
                number = combine(m.consts[c].reshape(()), m.consts[d].reshape(()))
                return m.call(name, y, m.scalar(number, y))
    return None


@rule("mul", exact=False)
def mul_constants(m: Match) -> Value | None:
    """``(x * c) * d -> x * (c * d)``."""
    return _constant_chain(m, lambda c, d: c * d)


@rule("add", exact=False)
def add_constants(m: Match) -> Value | None:
    """``(x + c) + d -> x + (c + d)``."""
    return _constant_chain(m, lambda c, d: c + d)


@rule("add", "sub", exact=False)
def common_factor(m: Match) -> Value | None:
    """``a * x + b * x -> (a + b) * x``: one product less."""
    left, right = m.maker(m.inputs[0], "mul"), m.maker(m.inputs[1], "mul")
    if left is None or right is None:
        return None
    for x, a in (left.inputs, left.inputs[::-1]):
        for y, b in (right.inputs, right.inputs[::-1]):
            if x is y and a.type is b.type and a.type.dtype is x.type.dtype:
                return m.call("mul", m.call(m.node.op.name, a, b), x)
    return None


# ---- layout and dtype ---------------------------------------------------------------------------


@rule("transpose")
def transpose_chain(m: Match) -> Value | None:
    """``transpose(transpose(x, p), q) -> transpose(x, p[q])``; nothing for the identity."""
    x, dims = m.inputs[0], tuple(m.node.attrs["dims"])
    inner = m.maker(x, "transpose")
    if inner is not None:
        x, dims = inner.inputs[0], tuple(inner.attrs["dims"][d] for d in dims)
    if dims == tuple(range(len(dims))):
        return x
    return m.call("transpose", x, dims=dims) if inner is not None else None


@rule("reshape", "squeeze", "expand_dims")
def reshape_chain(m: Match) -> Value | None:
    """Reshapes of reshapes become one, and none where the shape comes back."""
    x, wanted = m.inputs[0], m.node.outputs[0].type
    inner = m.maker(x, "reshape", "squeeze", "expand_dims")
    if inner is not None:
        x = inner.inputs[0]
    if x.type is wanted:
        return x
    if inner is None or not (x.type.is_static and wanted.is_static):
        return None
    return m.call("reshape", x, shape=wanted.static_shape)


@rule("broadcast_to", "identity")
def no_change(m: Match) -> Value | None:
    """A broadcast to the shape that is there, an identity."""
    return m.inputs[0] if m.inputs[0].type is m.node.outputs[0].type else None


@rule("leaf_value")
def value_of_leaf(m: Match) -> Value | None:
    """What a Parameter is given; derivatives are graphs of their own by now."""
    return m.inputs[1]


@rule("complex_part")
def part_of_complex(m: Match) -> Value | None:
    """Re(a + ib) = a, Im(a + ib) = b, unless one of them is broadcast."""
    made = m.maker(m.inputs[0], "complex")
    part = made.inputs[int(m.node.attrs["part"] == "imag")] if made else None
    return part if part and part.type is m.node.outputs[0].type else None


@rule("cast")
def cast_chain(m: Match) -> Value | None:
    """``cast(x)`` to its own dtype, and casts after one that loses nothing."""
    x, wanted = m.inputs[0], m.node.outputs[0].type
    if x.type is wanted:
        return x
    inner = m.maker(x, "cast")
    if inner is None or not _keeps_values(inner.inputs[0].type, x.type):
        return None
    source = inner.inputs[0]
    if source.type is wanted:
        return source
    if source.type.dtype.is_integer and x.type.dtype.is_float and wanted.dtype.is_integer:
        return None  # what does not fit becomes the nearest number, and would lose its high bits
    return m.call("cast", source, dtype=wanted.dtype)


def _keeps_values(narrow: TensorType, wide: TensorType) -> bool:
    a, b = narrow.dtype.numpy, wide.dtype.numpy
    if a.kind in "biuf" and b.kind in "iuf":
        return bool(np.can_cast(a, b, "safe"))
    half = narrow.dtype.name == "bfloat16"  # NumPy has no rule for it
    return half and wide.dtype.name in ("float32", "float64")


@rule("matmul")
def integer_product(m: Match) -> Value | None:
    """A product of operands cast from int8 to int32 reads the bytes."""
    casts = [m.maker(x, "cast") for x in m.inputs]
    sources = [cast.inputs[0] for cast in casts if cast is not None]
    wide = all(x.type.dtype is int32 for x in m.inputs)
    if not wide or len(sources) != 2 or any(x.type.dtype is not int8 for x in sources):
        return None
    return m.call("matmul_integer", *sources, **m.node.attrs)


@rule("where")
def where_same(m: Match) -> Value | None:
    """``where(c, x, x) -> x``."""
    _, x, y = m.inputs
    return x if x is y and x.type is m.node.outputs[0].type else None


@rule("maximum", "minimum")
def extreme_of_same(m: Match) -> Value | None:
    """``max(x, x) -> x``."""
    return m.inputs[0] if m.inputs[0] is m.inputs[1] else None
