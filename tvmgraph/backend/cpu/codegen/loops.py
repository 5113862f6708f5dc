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

from collections.abc import Collection
from dataclasses import dataclass

import tvm_ffi
from tvm import ir, tirx

from tvmgraph.backend.cpu.intrinsics import formula
from tvmgraph.backend.cpu.intrinsics.half import convert
from tvmgraph.backend.cpu.intrinsics.lanes import Lanes
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.half_rounding import has_type, rounding
from tvmgraph.backend.loop_ir.program import is_choice, product, static_shape

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
        return _spread(node) if _has_bindings(node.value) else node

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

    Both values of a selection are computed anyhow. A choice whose values hold bindings becomes a
    statement, each value with its own.
    """
    spread = _Spread()
    result = spread(store.value)
    last = tirx.BufferStore(store.buffer, result, store.indices)
    made, statements = spread.statements(last)
    return tirx.SeqStmt([*made, *statements]) if made else store


@dataclass(frozen=True)
class _Bound:
    """The statement that stores the value of a variable, and what has to be stored before it."""

    statement: tirx.Stmt
    reads: tuple[int, ...]


class _Spread:
    """Takes bindings, and choices between values with bindings, out of an expression.

    Expressions are visited from their leaves: what a choice finds bound when it is reached is
    bound inside its values, and is stored there alone.
    """

    def __init__(self) -> None:
        self._slots: dict[int, _Slot] = {}
        self._bound: dict[int, _Bound] = {}  # by the variable's identity

    def __call__(self, value: ir.Expr) -> ir.Expr:
        """The expression with variables in their place."""
        return tvm_ffi.structural_map(value, ((tirx.Let, self._lift), (ir.Call, self._choose)))

    def statements(self, last: tirx.Stmt) -> tuple[list[tirx.Stmt], list[tirx.Stmt]]:
        """The places of all variables, and the statements up to ``last``, which read them."""
        ordered = [*self._needed(last).values(), last]
        loads = {key: slot.load for key, slot in self._slots.items()}
        made: list[tirx.Stmt] = [slot.made for slot in self._slots.values()]
        read = (tirx.Var, lambda var: loads.get(hash(var), var))
        return made, [tvm_ffi.structural_map(statement, read) for statement in ordered]

    def _lift(self, let: tirx.Let) -> ir.Expr:
        self._bind(let.var, self._slot(let.var).store(let.value))
        return let.body

    def _choose(self, call: ir.Call) -> ir.Expr:
        """A variable for a choice, if there are bindings in its values; they are taken first."""
        if not is_choice(call):
            return call
        condition, *values = call.args
        inside = [self._needed(value) for value in values]
        if not any(inside):
            return call
        var = tirx.Var("chosen", call.ty)
        slot = self._slot(var)
        yes, no = (
            tirx.SeqStmt([*before.values(), slot.store(value)]) if before else slot.store(value)
            for before, value in zip(inside, values)
        )
        self._bind(var, tirx.IfThenElse(condition, yes, no), {*inside[0], *inside[1]})
        return var

    def _slot(self, var: tirx.Var) -> _Slot:
        if hash(var) not in self._slots:
            self._slots[hash(var)] = _Slot(var)
        return self._slots[hash(var)]

    def _bind(self, var: tirx.Var, statement: tirx.Stmt, inside: Collection[int] = ()) -> None:
        reads = tuple(key for key in _variables(statement) if key not in inside)
        self._bound[hash(var)] = _Bound(statement, reads)

    def _needed(self, root: object) -> dict[int, tirx.Stmt]:
        """The statements of the variables that ``root`` reads, each behind those it needs."""
        ordered: dict[int, tirx.Stmt] = {}
        waiting = [key for key in _variables(root) if key in self._bound]
        while waiting:  # no recursion: formulas may be deeper than Python's stack
            bound = self._bound[waiting[-1]]
            missing = [key for key in bound.reads if key in self._bound and key not in ordered]
            if missing:
                waiting.extend(missing)
            else:
                ordered[waiting.pop()] = bound.statement
        return ordered


def _variables(root: object) -> tuple[int, ...]:
    """The identities of the variables of an expression or a statement."""
    found: list[tirx.Var] = []
    tvm_ffi.structural_walk(root, (tirx.Var, found.append))
    return tuple(dict.fromkeys(map(hash, found)))


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
