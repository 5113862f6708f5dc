"""Changes to loop nests that keep TVM's passes and LLVM from taking long over them.

Formulas of elementary functions are long, those in float64 that call the mathematics library most
of all. Two things make them slow to compile, and neither is of use:

* Functions of the library take one number. A vector is taken apart into one call per lane, and all
  around it is repeated, too. These loops go number by number instead: the same calls in a tenth of
  the code.
* TVM puts the value of a binding in place of its variable wherever it simplifies, so that formulas
  grow exponentially with the depth of their bindings. Here the values are stored in places that TVM
  does not see through, and that LLVM puts into registers. The same goes for vectors of float32,
  whose elementary functions are formulas with bindings, too.
"""

from __future__ import annotations

import tvm_ffi
from tvm import ir, tirx

from tvmgraph.backend.cpu.intrinsics import formula
from tvmgraph.backend.cpu.intrinsics.half import convert
from tvmgraph.backend.cpu.intrinsics.lanes import Lanes
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.half_rounding import has_type, rounding
from tvmgraph.backend.loop_ir.program import is_choice, product, static_shape, substitute

#: Functions that have no vector form in float64.
_LIBRARY = frozenset((
    "exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "pow", "sigmoid", "tanh", "sinh",
    "cosh", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh", "erf",
    "hypot", "fmod", "ldexp", "call_pure_extern",
))  # fmt: skip
#: Fewer calls than this are no reason to leave vectors.
_MANY = 4
#: Makes a buffer a slot of the stack.
_STACK = {"disable_lower_builtin": tirx.IntImm("bool", 1)}
#: Bytes up to which a buffer that others share is on the stack.
_MAX_SHARED = 4096


@tirx.transform.prim_func_pass(opt_level=0, name="tvmgraph.KeepLibraryCalls")
def keep_library_calls(
    func: tirx.PrimFunc, _mod: ir.IRModule, _context: ir.transform.PassContext
) -> tirx.PrimFunc:
    """Lets loops around many calls of the mathematics library in float64 go number by number.

    Args:
        func: A function of loops, before vectors are made.
    """
    if _library_calls(func.body) < _MANY:
        return func

    def loop(node: tirx.For) -> tirx.For:
        if node.kind != tirx.ForKind.VECTORIZED or _library_calls(node.body) < _MANY:
            return node
        return tirx.For(node.loop_var, node.min, node.extent, tirx.ForKind.SERIAL, node.body)

    def store(node: tirx.BufferStore) -> tirx.Stmt:
        return _spread(node) if _library_calls(node.value) >= _MANY else node

    callbacks = [(tirx.For, loop), (tirx.BufferStore, store)]
    return func.with_body(tvm_ffi.structural_map(func.body, callbacks))


@tirx.transform.prim_func_pass(opt_level=0, name="tvmgraph.WriteFormulas")
def write_formulas(
    func: tirx.PrimFunc, _mod: ir.IRModule, _context: ir.transform.PassContext
) -> tirx.PrimFunc:
    """Writes elementary functions, roundings and conversions as formulas; stores their bindings.

    Args:
        func: A function of loops, after vectors are made.
    """
    converts = has_type(func, "float16")
    written = tvm_ffi.structural_map(func.body, (ir.Call, _written))
    if converts:
        written = tvm_ffi.structural_map(written, (tirx.Cast, convert))
    func = func.with_body(written)
    if not _has_bindings(func.body):
        return func

    def store(node: tirx.BufferStore) -> tirx.Stmt:
        if not _has_bindings(node.value):
            return node
        if not is_choice(node.value) or not _guarded_bindings(node.value):
            return _spread(node)
        condition, *values = node.value.args
        yes, no = (store(tirx.BufferStore(node.buffer, v, node.indices)) for v in values)
        return tirx.IfThenElse(condition, yes, no)

    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.BufferStore, store)))


@tirx.transform.prim_func_pass(opt_level=0, name="tvmgraph.KeepStack")
def keep_stack(
    func: tirx.PrimFunc, _mod: ir.IRModule, _context: ir.transform.PassContext
) -> tirx.PrimFunc:
    """Leaves small buffers on the stack, after ``StorageRewrite``.

    Where it lets several of them share a place, it forgets that they were there; each would become
    a heap allocation, in the innermost loop, that LLVM cannot put into registers.

    Args:
        func: A function of loops.
    """

    def alloc(node: tirx.AllocBuffer) -> tirx.AllocBuffer:
        size = product(static_shape(node.buffer) or (0,)) * dtype_bytes(str(node.buffer.dtype))
        if node.annotations or not 0 < size <= _MAX_SHARED:
            return node
        return tirx.AllocBuffer(node.buffer, annotations=_STACK)

    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.AllocBuffer, alloc)))


@tirx.transform.prim_func_pass(opt_level=0, name="tvmgraph.KeepBooleans")
def keep_booleans(
    func: tirx.PrimFunc, _mod: ir.IRModule, _context: ir.transform.PassContext
) -> tirx.PrimFunc:
    """Keeps the booleans between the loops of a kernel as bytes, before ``StorageRewrite``.

    That makes bytes of a vector of them, and loads the bytes where booleans are wanted.

    Args:
        func: A function of loops.
    """
    bytes_of: dict[object, object] = {}

    def note(node: tirx.AllocBuffer) -> None:
        if str(node.buffer.dtype) == "bool":
            buffer = node.buffer
            bytes_of[buffer] = tirx.decl_buffer(buffer.shape, "int8", buffer.name)

    def alloc(node: tirx.AllocBuffer) -> tirx.AllocBuffer:
        made = bytes_of.get(node.buffer)
        return node if made is None else tirx.AllocBuffer(made, annotations=node.annotations)

    def load(node: ir.TensorLoad) -> ir.Expr:
        made = bytes_of.get(node.source)
        if made is None:
            return node
        found = tirx.BufferLoad(made, node.indices)
        return Lanes(found).cast(found, "bool")

    def store(node: tirx.BufferStore) -> tirx.BufferStore:
        made = bytes_of.get(node.buffer)
        if made is None:
            return node
        return tirx.BufferStore(made, Lanes(node.value).cast(node.value, "int8"), node.indices)

    tvm_ffi.structural_walk(func.body, (tirx.AllocBuffer, note))
    if not bytes_of:
        return func
    callbacks = [(tirx.AllocBuffer, alloc), (ir.TensorLoad, load), (tirx.BufferStore, store)]
    return func.with_body(tvm_ffi.structural_map(func.body, callbacks))


def _written(call: ir.Call) -> ir.Expr:
    return formula(call) if (found := rounding(call)) is call else found


def _has_bindings(root: object) -> bool:
    found: list[object] = []
    tvm_ffi.structural_walk(root, (tirx.Let, found.append))
    return bool(found)


def _guarded_bindings(value: object) -> set[int]:
    """The identities of variables whose values must not be computed unless a condition holds."""
    found: list[tirx.Let] = []

    def visit(call: ir.Call) -> None:
        if is_choice(call):
            for branch in call.args[1:]:
                tvm_ffi.structural_walk(branch, (tirx.Let, found.append))

    tvm_ffi.structural_walk(value, (ir.Call, visit))
    return {hash(let.var) for let in found}


def _library_calls(root: object) -> int:
    count = 0

    def visit(call: ir.Call) -> None:
        nonlocal count
        name = str(getattr(call.op, "name", "")).rpartition(".")[2]
        count += name in _LIBRARY and str(call.ty.dtype) == "float64"

    tvm_ffi.structural_walk(root, (ir.Call, visit))
    return count


def _spread(store: tirx.BufferStore) -> tirx.Stmt:
    """Stores the values of an expression's bindings one after the other, then the expression.

    Both values of a selection are computed anyhow. Bindings of other branches stay where they are.
    """
    guarded = _guarded_bindings(store.value)
    bound: dict[int, tuple[object, object]] = {}  # variable and value by the variable's identity

    def lift(let: tirx.Let) -> ir.Expr:
        if hash(let.var) in guarded:
            return let
        bound[hash(let.var)] = let.var, let.value
        return let.body

    result = tvm_ffi.structural_map(store.value, (tirx.Let, lift))
    if not bound:
        return store
    slots = {var: _Slot(var) for var, _ in bound.values()}
    loads = {var: slot.load for var, slot in slots.items()}
    stores = [slots[v].store(substitute(value, loads)) for v, value in _ordered(bound)]
    last = tirx.BufferStore(store.buffer, substitute(result, loads), store.indices)
    return tirx.SeqStmt([*(slot.made for slot in slots.values()), *stores, last])


def _ordered(bound: dict[int, tuple[tirx.Var, ir.Expr]]) -> list[tuple[tirx.Var, ir.Expr]]:
    """Variables with their values, each behind those that its value reads."""
    free = {key: tirx.analysis.undefined_vars(value) for key, (_, value) in bound.items()}
    reads = {key: [hash(var) for var in found] for key, found in free.items()}
    ordered: dict[int, tuple[tirx.Var, ir.Expr]] = {}
    waiting = [*reversed(bound)]  # no recursion: formulas may be deeper than Python's stack
    while waiting:
        key = waiting[-1]
        missing = [read for read in reads[key] if read in bound and read not in ordered]
        if missing:
            waiting.extend(missing)
        else:
            ordered[waiting.pop()] = bound[key]
    return list(ordered.values())


class _Slot:
    """A place on the stack for the value of a variable, which may be a vector."""

    def __init__(self, var: tirx.Var) -> None:
        dtype, _, lanes = str(var.ty.dtype).partition("x")
        self._buffer = tirx.decl_buffer((int(lanes or 1),), dtype, var.name)
        zero = tirx.IntImm("int32", 0)
        self._place = [tirx.Ramp(zero, 1, int(lanes)) if lanes else zero]
        self.made = tirx.AllocBuffer(self._buffer, annotations=_STACK)
        self.load = tirx.BufferLoad(self._buffer, self._place)

    def store(self, value: object) -> tirx.BufferStore:
        """The statement that stores a value."""
        return tirx.BufferStore(self._buffer, value, self._place)
