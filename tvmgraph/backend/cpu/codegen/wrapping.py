"""Integer arithmetic on elements of tensors wraps, as it does in eager code.

TVM's code generator tells LLVM that sums, differences and products of 32 and 64 bits never
overflow. That is true of indices, and lets LLVM take ``x + 1 > x`` for true, which is wrong for the
largest number a tensor may hold. Arithmetic on elements whose result is looked at, by a comparison,
a division or a conversion, is therefore written in a form that cannot overflow: of 32 bits in 64,
which LLVM turns back into one instruction without the promise; of 64 bits from parts that do not
carry. What is only stored as a result, or added up, needs nothing: the bits are the same.
"""

from __future__ import annotations

import tvm_ffi
from tvm import ir, tirx
from tvm.tirx import op

from tvmgraph.backend.cpu.intrinsics.lanes import Lanes
from tvmgraph.backend.loop_ir.types import Binary, Comparison, dtype_of, scalar_of

_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul)
_LOOKING = (
    tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.Div, tirx.Mod, tirx.FloorDiv,
    tirx.FloorMod, tirx.Min, tirx.Max,
)  # fmt: skip
_HIGH, _LOW_HALF = 1 << 63, (1 << 32) - 1


@tirx.transform.prim_func_pass(opt_level=0, name="tvmgraph.WrapIntegers")
def wrap_integers(
    func: tirx.PrimFunc, _mod: ir.IRModule, _context: ir.transform.PassContext
) -> tirx.PrimFunc:
    """Writes arithmetic on elements of 32 and 64 bits that something looks at without overflow.

    Args:
        func: A function of loops. Indices keep arithmetic that LLVM may take not to overflow.
    """
    if not _reads_integers(func):
        return func
    # variables have another identity once they are mapped, so names tell them apart
    elements, arguments = _Elements(func), {str(param.name) for param in func.params}

    def wrapped(value: ir.Expr) -> ir.Expr:
        kind = scalar_of(value)
        if kind not in _FORMS or not isinstance(value, _ARITHMETIC) or not elements.has(value):
            return value
        return _FORMS[kind](type(value)(wrapped(value.a), wrapped(value.b)), kind)

    def compared(node: Comparison) -> ir.Expr:
        return type(node)(wrapped(node.a), wrapped(node.b))

    def converted(node: tirx.Cast) -> tirx.Cast:
        return tirx.Cast(dtype_of(node), wrapped(node.value))

    def called(node: ir.Call) -> ir.Call:
        args = [wrapped(arg) for arg in node.args]
        if all(new.same_as(old) for new, old in zip(args, node.args)):
            return node
        return ir.Call(node.op, args, node.attrs, ret_ty=node.ty)

    def bound(node: tirx.Let) -> tirx.Let:
        return tirx.Let(node.var, wrapped(node.value), node.body)

    def kept(node: tirx.BufferStore) -> tirx.BufferStore:
        if str(node.buffer.name) in arguments or _accumulates(node):
            return node
        return tirx.BufferStore(node.buffer, wrapped(node.value), node.indices)

    callbacks = [
        *((kind, compared) for kind in _LOOKING), (tirx.Cast, converted), (ir.Call, called),
        (tirx.Let, bound), (tirx.BufferStore, kept),
    ]  # fmt: skip
    return func.with_body(tvm_ffi.structural_map(func.body, callbacks))


def _reads_integers(func: tirx.PrimFunc) -> bool:
    """Whether elements of tensors, or what they are converted to, have the types in question."""

    def look(node: ir.TensorLoad | tirx.Cast | ir.Call) -> tvm_ffi.VisitInterrupt | None:
        return tvm_ffi.VisitInterrupt(node) if scalar_of(node) in _FORMS else None

    return (
        tvm_ffi.structural_walk(func.body, ((ir.TensorLoad, tirx.Cast, ir.Call), look)) is not None
    )


def _accumulates(store: tirx.BufferStore) -> bool:
    """Whether a value is added to what is stored already."""
    value = store.value
    if not isinstance(value, tirx.Add):
        return False
    loads = [x for x in (value.a, value.b) if isinstance(x, ir.TensorLoad)]
    return any(x.source.same_as(store.buffer) for x in loads)


class _Elements:
    """Tells values that come from tensors from indices.

    Args:
        func: The kernel.
    """

    def __init__(self, func: tirx.PrimFunc) -> None:
        self._known: dict[object, bool] = {}
        self._names: set[str] = set()
        for kind in (tirx.Let, tirx.Bind):
            tvm_ffi.structural_walk(func.body, (kind, self._bind))

    def _bind(self, node: tirx.Let | tirx.Bind) -> None:
        if self.has(node.value):
            self._names.add(node.var.name)

    def has(self, value: object) -> bool:
        """Whether a value is computed from an element of a tensor, its own index aside."""
        if isinstance(value, ir.TensorLoad):
            return True
        if isinstance(value, tirx.Var):
            return value.name in self._names
        if value not in self._known:
            self._known[value] = any(map(self.has, _operands(value)))
        return self._known[value]


def _operands(value: object) -> tuple[ir.Expr, ...]:
    if isinstance(value, (*_ARITHMETIC, *_LOOKING)):
        return value.a, value.b
    if isinstance(value, (tirx.Cast, tirx.Broadcast)):
        return (value.value,)
    if isinstance(value, tirx.Select):
        return value.true_value, value.false_value
    if isinstance(value, tirx.Let):
        return value.value, value.body
    if isinstance(value, tirx.Shuffle):
        return tuple(value.vectors)
    return tuple(value.args) if isinstance(value, ir.Call) else ()


def _in_64(node: Binary, kind: str) -> ir.Expr:
    """Arithmetic of 32 bits: no result of it exceeds 64, if differences may be negative."""
    lanes = Lanes(node)
    wide = "uint64" if kind == "uint32" and isinstance(node, tirx.Mul) else "int64"
    return lanes.cast(type(node)(lanes.cast(node.a, wide), lanes.cast(node.b, wide)), kind)


def _in_halves(node: Binary, kind: str) -> ir.Expr:
    """Arithmetic of 64 bits, modulo 2^64."""
    lanes = Lanes(node)
    form = {tirx.Add: _sum, tirx.Sub: _difference, tirx.Mul: _product}[type(node)]
    operands = [_unsigned(lanes, value) for value in (node.a, node.b)]
    return lanes.cast(form(lanes, *operands), kind)


def _unsigned(lanes: Lanes, value: ir.Expr) -> ir.Expr:
    """The same bits; TVM cannot convert a negative constant."""
    given = value.value if isinstance(value, tirx.Broadcast) else value
    if isinstance(given, tirx.IntImm):
        return lanes.of(given.value % (1 << 64), "uint64")
    return lanes.cast(value, "uint64")


def _sum(lanes: Lanes, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """All bits but the highest are added; that one is added without its carry."""
    high, rest = (lanes.of(bits, "uint64") for bits in (_HIGH, _HIGH - 1))
    below = tirx.Add(op.bitwise_and(a, rest), op.bitwise_and(b, rest))
    return op.bitwise_xor(below, op.bitwise_and(op.bitwise_xor(a, b), high))


def _difference(lanes: Lanes, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """The highest bit lends to the others, and is put right afterwards."""
    high, rest = (lanes.of(bits, "uint64") for bits in (_HIGH, _HIGH - 1))
    below = tirx.Sub(op.bitwise_or(a, high), op.bitwise_and(b, rest))
    differs = op.bitwise_xor(op.bitwise_xor(a, b), high)
    return op.bitwise_xor(below, op.bitwise_and(differs, high))


def _product(lanes: Lanes, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Products of halves; the one of both upper halves lies beyond 64 bits."""
    half, shift = lanes.of(_LOW_HALF, "uint64"), lanes.of(32, "uint64")

    def low(value: ir.Expr) -> ir.Expr:
        return op.bitwise_and(value, half)

    def high(value: ir.Expr) -> ir.Expr:
        return op.shift_right(value, shift)

    mixed = tirx.Add(low(tirx.Mul(low(a), high(b))), low(tirx.Mul(high(a), low(b))))
    return _sum(lanes, tirx.Mul(low(a), low(b)), op.shift_left(mixed, shift))


_FORMS = {"int32": _in_64, "uint32": _in_64, "int64": _in_halves, "uint64": _in_halves}
