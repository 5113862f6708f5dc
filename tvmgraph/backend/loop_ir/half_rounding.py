"""Where values of half precision are rounded inside of a kernel.

TVM computes bfloat16 in float32 and rounds what is stored: between the operators of one kernel, and
in a conversion to bfloat16 and back, nothing is rounded. :func:`round_halves` rounds every result
to its type, as it would be in memory, so that a kernel gives what its operators give one by one.
Values that need no rounding (what is loaded, chosen or the larger of two) cost nothing.

:func:`keep_wide` is the other choice, that of torch.compile: kernels compute bfloat16 and float16
in float32 and round what they store, and what a program converts explicitly.
"""

from __future__ import annotations

import functools

import tvm
import tvm_ffi
from tvm import ir, tirx
from tvm.tirx import op

from tvmgraph.backend.cpu.intrinsics.lanes import Lanes, let
from tvmgraph.backend.loop_ir.types import Binary, Expr, dtype_of, scalar_of
from tvmgraph.backend.tvm_private import private

#: TVM's names of the operators below.
_BITS, _BITS_OF_ANY = "tirx.tvmgraph_bfloat16_bits", "tirx.tvmgraph_bfloat16_bits_of_any"
_ROUNDED = "tirx.tvmgraph_rounded"
_HALF_TYPES = ("bfloat16", "float16")
_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div)
_PURE = 1  # tirx.CallEffectKind
_UPPER, _QUIET = 16, 0x400000


def _install() -> None:
    """Makes the operators known to TVM, which may read them from a file."""
    register = private("ir.RegisterOp")
    for name, meaning in (
        (_BITS, "The bits of the bfloat16 nearest to a float32; NaN has no lower bits."),
        (_BITS_OF_ANY, "The bits of the bfloat16 nearest to any float32."),
        (_ROUNDED, "A value of half precision that is rounded wherever it is used."),
    ):
        register(name, meaning)
        ir.register_op_attr(name, "TCallEffectKind", _PURE)
        ir.register_op_attr(name, "TVectorizable", True)


def rounded(value: Expr) -> Expr:
    """Marks a conversion to half precision that :func:`keep_wide` must not leave out.

    Args:
        value: A conversion to float16 or bfloat16.
    """
    return ir.Call(ir.Op.get(_ROUNDED), [value], ret_ty=value.ty)


def _is(call: Expr, name: str) -> bool:
    return isinstance(call, ir.Call) and str(getattr(call.op, "name", "")) == name


def _wide(value: Expr) -> Expr:
    """A value as float32."""
    lanes = Lanes(value)
    return value if scalar_of(value) == "float32" else lanes.cast(value, "float32")


def _nearest(value: Expr) -> Expr:
    """The bfloat16 nearest to a float32, which no later pass may take for the float32 itself."""
    lanes = Lanes(value)
    name = _BITS_OF_ANY if _reads_wide(value) else _BITS
    bits = ir.Call(ir.Op.get(name), [value], ret_ty=lanes.type("uint16"))
    return lanes.bits(bits, "bfloat16")


def _reads_wide(value: Expr) -> bool:
    """Whether a NaN may have bits that a bfloat16 has not; arithmetic keeps those of operands."""
    found: list[object] = []

    def load(node: ir.TensorLoad | tirx.Var) -> None:
        if scalar_of(node) in ("float32", "float64", "float16"):
            found.append(node)

    tvm_ffi.structural_walk(value, [(ir.TensorLoad, load), (tirx.Var, load)])
    return bool(found)


def _cut(value: Expr) -> Expr:
    """A value that is a bfloat16 already, by the upper half of the float32 it is computed as."""
    lanes = Lanes(value)
    bits = lanes.bits(_wide(value), "uint32")
    upper = op.shift_right(bits, lanes.of(_UPPER, "uint32"))
    return lanes.bits(lanes.cast(upper, "uint16"), "bfloat16")


@tirx.transform.prim_func_pass(opt_level=0, name="tvmgraph.RoundHalves")
def round_halves(
    func: tirx.PrimFunc, _mod: tvm.IRModule, _context: tvm.transform.PassContext
) -> tirx.PrimFunc:
    """Computes bfloat16 in float32 and rounds every result, before TVM would not.

    Args:
        func: A function of any loops; one without bfloat16 stays as it is.
    """
    if not has_type(func, "bfloat16"):
        return func

    def arithmetic(node: Binary) -> ir.Expr:
        if scalar_of(node) != "bfloat16":
            return node
        return _nearest(type(node)(_wide(node.a), _wide(node.b)))

    def cast(node: tirx.Cast) -> ir.Expr:
        return _nearest(_wide(node.value)) if scalar_of(node) == "bfloat16" else node

    def call(node: ir.Call) -> ir.Expr:
        if scalar_of(node) != "bfloat16" or not _computes(node):
            return node
        wide = [_wide(a) for a in node.args]
        return _nearest(ir.Call(node.op, wide, ret_ty=Lanes(node).type("float32")))

    def store(node: tirx.BufferStore) -> tirx.BufferStore:
        if str(node.buffer.dtype) != "bfloat16" or _is_stored_as_is(node.value):
            return node
        return tirx.BufferStore(node.buffer, _cut(node.value), node.indices)

    callbacks = [
        *[(kind, arithmetic) for kind in _ARITHMETIC], (tirx.Cast, cast), (ir.Call, call),
        (tirx.BufferStore, store),
    ]  # fmt: skip
    return func.with_body(tvm_ffi.structural_map(func.body, callbacks))


def keep_wide(mod: tvm.IRModule) -> tvm.IRModule:
    """Lets scheduled kernels keep float32 between operators of half precision.

    Args:
        mod: The functions after scheduling. Marked roundings and what is stored stay rounded.
    """
    functions = {
        var: _kept_wide(func) if isinstance(func, tirx.PrimFunc) else func
        for var, func in mod.functions.items()
    }
    return tvm.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


def _kept_wide(func: tirx.PrimFunc) -> tirx.PrimFunc:
    def unmarked(node: ir.Call) -> ir.Expr:
        return node.args[0] if _is(node, _ROUNDED) else node

    callbacks = [
        *[(kind, _wide_arithmetic) for kind in _ARITHMETIC],
        *[(kind, _wide_extreme) for kind in (tirx.Max, tirx.Min)],
        (tirx.Select, _wide_select), (tirx.Cast, _wide_cast), (ir.Call, _wide_call),
    ]  # fmt: skip
    body = tvm_ffi.structural_map(func.body, callbacks)
    return func.with_body(tvm_ffi.structural_map(body, (ir.Call, unmarked)))


def _before_rounding(node: ir.Expr) -> ir.Expr | None:
    """A value of half precision as it is before it is rounded, if there is such a thing."""
    if isinstance(node, tirx.Cast) and scalar_of(node) in _HALF_TYPES:
        return node.value if scalar_of(node.value) == "float32" else None
    return None


def _unrounded(node: ir.Expr) -> ir.Expr:
    found = _before_rounding(node)
    return _wide(node) if found is None else found


def _narrow(node: ir.Expr, result: ir.Expr) -> ir.Expr:
    return Lanes(node).cast(result, scalar_of(node))


def _wide_arithmetic(node: Binary | tirx.Max | tirx.Min) -> ir.Expr:
    if scalar_of(node) not in _HALF_TYPES:
        return node
    return _narrow(node, type(node)(_unrounded(node.a), _unrounded(node.b)))


def _wide_extreme(node: tirx.Max | tirx.Min) -> ir.Expr:
    known = all(_before_rounding(x) is None for x in (node.a, node.b))
    return node if known else _wide_arithmetic(node)


def _wide_select(node: tirx.Select) -> ir.Expr:
    yes, no = node.true_value, node.false_value
    if _before_rounding(yes) is None and _before_rounding(no) is None:
        return node
    return _narrow(node, tirx.Select(node.condition, _unrounded(yes), _unrounded(no)))


def _wide_cast(node: tirx.Cast) -> ir.Expr:
    found = _before_rounding(node.value) if scalar_of(node) == "float32" else None
    return node if found is None else found


def _wide_call(node: ir.Call) -> ir.Expr:
    if scalar_of(node) not in _HALF_TYPES or not _computes(node):
        return node
    operands = [_unrounded(a) for a in node.args]
    return _narrow(node, ir.Call(node.op, operands, ret_ty=Lanes(node).type("float32")))


@tirx.transform.prim_func_pass(opt_level=0, name="tvmgraph.SeparateProducts")
def separate_products(
    func: tirx.PrimFunc, _mod: tvm.IRModule, _context: tvm.transform.PassContext
) -> tirx.PrimFunc:
    """Keeps a GPU's compiler from adding to a product of half precision before it is rounded.

    Args:
        func: A CUDA kernel. ``a * b + c`` of half precision becomes a call of ``__hmul_rn`` and a
            sum, as an ``fma`` would round once.
    """

    def rounded_product(node: ir.Expr) -> ir.Expr:
        if not isinstance(node, tirx.Mul):
            return node
        return op.call_pure_extern(dtype_of(node), "__hmul_rn", node.a, node.b)

    def total(node: tirx.Add | tirx.Sub) -> ir.Expr:
        if dtype_of(node) not in _HALF_TYPES:
            return node
        return type(node)(rounded_product(node.a), rounded_product(node.b))

    callbacks = [(tirx.Add, total), (tirx.Sub, total)]
    return func.with_body(tvm_ffi.structural_map(func.body, callbacks))


def rounding(call: ir.Call) -> ir.Expr:
    """The arithmetic on bits that rounds to bfloat16; any other call as it is.

    Args:
        call: A call, perhaps a mark of :func:`round_halves`.
    """
    of_any = _of_any().get(hash(call.op))
    return call if of_any is None else _bits_of(call.args[0], of_any)


@functools.cache
def _of_any() -> dict[int, bool]:
    """Which of the two roundings an operator is, by its identity."""
    return {hash(ir.Op.get(name)): name == _BITS_OF_ANY for name in (_BITS, _BITS_OF_ANY)}


def _bits_of(value: Expr, of_any: bool) -> Expr:
    """The upper half of a float32, rounded to nearest with ties to even; NaN stays NaN."""
    lanes = Lanes(value)

    def u32(number: int) -> Expr:
        return lanes.of(number, "uint32")

    def nearest(bits: Expr) -> Expr:
        odd = op.bitwise_and(op.shift_right(bits, u32(_UPPER)), u32(1))
        return bits + (odd + u32(0x7FFF))

    def number(x: Expr) -> Expr:
        return let(lanes.bits(x, "uint32"), lambda bits: chosen(x, bits))

    def chosen(x: Expr, bits: Expr) -> Expr:
        quiet = op.bitwise_or(bits, u32(_QUIET))
        return tirx.Select(op.isnan(x), quiet, nearest(bits))

    found = let(value, number) if of_any else let(lanes.bits(value, "uint32"), nearest)
    return lanes.cast(op.shift_right(found, u32(_UPPER)), "uint16")


def _computes(call: ir.Call) -> bool:
    """Whether a call is a function of elements, rather than of places, bits or conditions."""
    name = str(getattr(call.op, "name", ""))
    if name.endswith(("reinterpret", "if_then_else")) or name == _ROUNDED:
        return False
    return all(scalar_of(a) in ("bfloat16", "float32") for a in call.args) and bool(call.args)


def _is_stored_as_is(value: Expr) -> bool:
    kinds = (ir.TensorLoad, tirx.FloatImm, tirx.Broadcast, tirx.Shuffle, tirx.Var)
    return isinstance(value, kinds) or _is(value, "tirx.reinterpret")


def has_type(func: tirx.PrimFunc, dtype: str) -> bool:
    """Whether a function of flat buffers holds values of a type, or converts to or from it.

    Args:
        func: A function of loops.
        dtype: TVM's name of the type.
    """
    found: list[object] = []

    def cast(node: tirx.Cast) -> None:
        if dtype in (scalar_of(node), scalar_of(node.value)):
            found.append(node)

    def buffer(node: tirx.DeclBuffer | tirx.AllocBuffer) -> None:
        if str(node.buffer.dtype) == dtype:
            found.append(node)

    callbacks = [(tirx.Cast, cast), (tirx.DeclBuffer, buffer), (tirx.AllocBuffer, buffer)]
    tvm_ffi.structural_walk(func.body, callbacks)
    return bool(found)


_install()
