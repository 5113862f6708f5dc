"""One kernel for those that differ in their sizes only.

The layers of a network repeat with other numbers of channels: their kernels are the same loops with
other numbers in them. Where every number that differs follows from an extent of an argument
(``a * extent // c + b``), the kernel takes that extent from the argument, and one serves all of
them, which costs a fraction of the time to translate them. The numbers that make a kernel fast stay
numbers: divisors, lengths of vectors and of short loops, sizes of what is kept in registers.
Kernels that differ there are translated apart.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import tvm
import tvm_ffi
from tvm import ir, tirx

from tvmgraph.backend.loop_ir.program import product, static_shape
from tvmgraph.backend.loop_ir.types import SCHEDULED, Expr, dtype_of

#: Loops of fewer iterations are written out by LLVM, which has to know how many there are.
_MIN_EXTENT = 8
#: Results from this size on may ask for large pages, see :mod:`.huge_pages`.
_LARGE_ELEMENTS = 1 << 18
_INDEX = "int64"
_ZERO = tirx.IntImm(_INDEX, 0)


@dataclass(frozen=True)
class _Form:
    """A kernel and the numbers in it.

    Attributes:
        name: The symbol that calls it.
        func: The kernel.
        bare: The same loops with 0 in the place of every number.
        literals: The numbers, in the order in which they are met.
        numbers: Their values.
        extents: The positions of those that are extents of arguments. A call tells these; the
            strides of an argument, which lie beside them, it does not.
    """

    name: str
    func: tirx.PrimFunc
    bare: tirx.PrimFunc
    literals: tuple[tirx.IntImm, ...]
    numbers: tuple[int, ...]
    extents: tuple[int, ...]


def share_kernels(kernels: tvm.IRModule) -> tuple[tvm.IRModule, dict[str, str]]:
    """Puts one kernel in the place of those that differ in sizes.

    Args:
        kernels: Scheduled functions, known by their symbols.

    Returns:
        The functions that are left, and by the symbol of each that is not the one to call instead.
    """
    alike: dict[object, list[tuple[ir.GlobalVar, tirx.PrimFunc]]] = defaultdict(list)
    left = dict(kernels.functions.items())
    for var, func in left.items():
        if SCHEDULED in (func.attrs or {}) and all(map(tirx.is_buffer_var, func.params)):
            alike[_outline(func)].append((var, func))
    instead: dict[str, str] = {}
    for candidates in alike.values():
        if len(candidates) == 1:
            continue
        by_loops: dict[int, list[tuple[ir.GlobalVar, _Form]]] = defaultdict(list)
        for var, func in candidates:
            form = _form(func)
            by_loops[tvm_ffi.structural_hash(form.bare, map_free_vars=True)].append((var, form))
        for members in by_loops.values():
            while len(members) > 1:
                members = _share(members, left, instead)
    return tvm.IRModule(left, attrs=kernels.attrs), instead


def _share(
    members: list[tuple[ir.GlobalVar, _Form]],
    left: dict[ir.GlobalVar, ir.BaseFunc],
    instead: dict[str, str],
) -> list[tuple[ir.GlobalVar, _Form]]:
    """Lets the first kernel stand for as many others as it can; returns the rest."""
    (first, form), *others = members
    joined, rest, changes = [form], [], {}
    for var, other in others:
        found = None
        if tvm_ffi.structural_equal(form.bare, other.bare, map_free_vars=True):
            found = _changes([*joined, other])
        if found is None:
            rest.append((var, other))
            continue
        joined.append(other)
        changes = found
        instead[other.name] = form.name
        del left[var]
    if changes:
        left[first] = _with_numbers(form.func, changes)
    return rest


def _outline(func: tirx.PrimFunc) -> tuple[object, ...]:
    """What kernels that share one have in common, numbers that must stay numbers included."""
    found: list[object] = []
    written: set[int] = set()
    count = 0

    def store(node: tirx.BufferStore) -> None:
        statement(node)
        written.add(hash(node.buffer))

    def statement(_node: tirx.Stmt) -> None:
        nonlocal count
        count += 1

    def loop(node: tirx.For) -> None:
        statement(node)
        extent = int(node.extent) if isinstance(node.extent, tirx.IntImm) else 0
        plain = node.kind in (tirx.ForKind.SERIAL, tirx.ForKind.PARALLEL)
        found.append(extent if extent < _MIN_EXTENT or not plain else 0)

    def buffer(node: tirx.AllocBuffer) -> None:
        statement(node)
        found.append(static_shape(node.buffer) if node.annotations else ())

    def division(node: tirx.FloorDiv | tirx.FloorMod) -> None:
        found.append(int(node.b) if isinstance(node.b, tirx.IntImm) else 0)

    callbacks = [
        (tirx.For, loop), (tirx.AllocBuffer, buffer), (tirx.BufferStore, store),
        (tirx.Stmt, statement), ((tirx.FloorDiv, tirx.FloorMod), division),
    ]  # fmt: skip
    tvm_ffi.structural_walk(func.body, callbacks)
    shapes = [static_shape(p) or () for p in func.params]
    results = [shape for p, shape in zip(func.params, shapes) if hash(p) in written]
    large = [shape for shape in results if product(shape) >= _LARGE_ELEMENTS]
    kinds = tuple((str(p.dtype), len(shape)) for p, shape in zip(func.params, shapes))
    attrs = sorted((k, str(v)) for k, v in func.attrs.items() if k != "global_symbol")
    return kinds, tuple(large), tuple(attrs), count, tuple(found)


def _form(func: tirx.PrimFunc) -> _Form:
    literals: list[tirx.IntImm] = []

    def visit(node: tirx.IntImm) -> tirx.IntImm:
        literals.append(node)
        return _ZERO

    bare = tvm_ffi.structural_map(func, (tirx.IntImm, visit)).without_attr("global_symbol")
    numbers = tuple(literal.value for literal in literals)
    return _Form(symbol_of(func), func, bare, tuple(literals), numbers, _extents(func))


def _extents(func: tirx.PrimFunc) -> tuple[int, ...]:
    """The positions of the extents among the numbers: arguments come first, with shapes first."""
    extents: list[int] = []
    start = 0
    for param in func.params:
        numbers: list[tirx.IntImm] = []
        tvm_ffi.structural_walk(param, (tirx.IntImm, numbers.append))
        known = sum(isinstance(extent, tirx.IntImm) for extent in param.shape)
        extents.extend(range(start, start + known))
        start += len(numbers)
    return tuple(extents)


def _changes(forms: Sequence[_Form]) -> dict[int, Expr] | None:
    """What stands in the place of every number that differs; None where one follows from nothing.

    Returns:
        Expressions by the position of the number.
    """
    columns = list(zip(*(form.numbers for form in forms)))
    varying = {at: column for at, column in enumerate(columns) if len(set(column)) > 1}
    sizes: dict[tuple[int, ...], Expr] = {}
    for position in forms[0].extents:
        if column := varying.get(position):
            sizes.setdefault(column, tirx.Var(f"size{len(sizes)}", _INDEX))
    changes: dict[int, Expr] = {}
    for position, column in varying.items():
        size = sizes[column] if column in sizes else _following(column, sizes)
        if size is None or dtype_of(forms[0].literals[position]) != _INDEX:
            return None
        changes[position] = size
    return changes


def _following(column: Sequence[int], sizes: dict[tuple[int, ...], Expr]) -> Expr | None:
    """A number of several kernels as ``a * size // c + b``; one without ``b``, if there is one."""
    found: Expr | None = None
    for known, size in sizes.items():
        low, high = known.index(min(known)), known.index(max(known))
        slope = Fraction(column[high] - column[low], known[high] - known[low])
        b = column[low] - slope * known[low]
        if any(number != slope * extent + b for number, extent in zip(column, known)):
            continue
        if not b:
            return _scaled(size, slope)
        if b.denominator == 1:
            found = _scaled(size, slope) + int(b)
    return found


def _scaled(size: Expr, slope: Fraction) -> Expr:
    """An extent times a fraction of which it is a multiple: loops take several steps at once."""
    multiple = size * slope.numerator
    return multiple if slope.denominator == 1 else tirx.truncdiv(multiple, slope.denominator)


def _with_numbers(func: tirx.PrimFunc, changes: dict[int, Expr]) -> tirx.PrimFunc:
    position = -1

    def visit(node: tirx.IntImm) -> Expr:
        nonlocal position
        position += 1
        return changes.get(position, node)

    return tvm_ffi.structural_map(func, (tirx.IntImm, visit))


# ---- machine code that calls kernels, as a codegen unit of its own -------------------------------
# The function that calls the kernels of a graph is one long straight line: optimizing it takes LLVM
# longer than the kernels (more than linearly so), and makes nothing faster, because all the work is
# done by what it calls. So it is translated apart from them, without optimization, and the linker
# joins the two.
#
# TVM calls by symbol only within one module; between modules stands a forwarder per kernel. Several
# of them may lead to one kernel, see above. So a kernel's symbol is free to tell what it computes:
# machine code that another graph has made is found by it.

_HOST = "__vmtir__"  # TVM's prefix of functions that call kernels
_SYMBOL = "__tvm_ffi_"  # and that of everything called the packed way
_FORWARD = "forward_"
#: What makes the names of operators different in one graph: ``conv2d12_add3``.
_NUMBER = re.compile(r"(?<=[a-z_])\d+(?=_|$)")
_CALL, _CALL_LOWERED = (ir.Op.get(f"tirx.tvm_call_cpacked{suffix}") for suffix in ("", "_lowered"))


def split_calls(
    kernels: tvm.IRModule, by_content: bool = False
) -> tuple[tvm.IRModule, tvm.IRModule | None]:
    """Divides functions into kernels and what calls them.

    Args:
        kernels: All functions of a program that become machine code.
        by_content: Whether the symbols of kernels tell what they compute.

    Returns:
        The kernels, and the callers with a forwarder for every kernel they call, or None when
        there is nothing to divide. A kernel that another one stands for is a forwarder to it.
    """
    callers = {v: f for v, f in kernels.functions.items() if v.name_hint.startswith(_HOST)}
    rest = {v: f for v, f in kernels.functions.items() if v not in callers}
    shared, instead = share_kernels(tvm.IRModule(rest, attrs=kernels.attrs))
    symbols = {name: name for name in map(symbol_of, shared.functions.values())}
    if by_content:
        shared, symbols = _named_by_content(shared)
    counts = {symbol_of(f): len(f.params) for f in rest.values()}
    code = {name: symbols[instead.get(name, name)] for name in sorted(counts)}
    # without callers, bytecode finds kernels by their names
    called = {name: _FORWARD + symbol if callers else name for name, symbol in code.items()}
    moved = {v: _redirect(f, called) for v, f in callers.items()}
    first: dict[str, str] = {}  # a module may declare a symbol once
    forwarders: dict[str, tuple[str, int]] = {}
    for name, symbol in code.items():
        if called[name] != symbol:
            known = first.setdefault(symbol, called[name])
            leads_to = _SYMBOL + symbol if known == called[name] else known
            forwarders[called[name]] = (leads_to, counts[name])
    moved |= {ir.GlobalVar(name): _forwarder(name, *to) for name, to in forwarders.items()}
    if not moved or not rest:
        return kernels, None
    return shared, tvm.IRModule(moved, attrs=kernels.attrs)


def symbol_of(func: ir.BaseFunc) -> str:
    """The symbol that a function is called by.

    Args:
        func: The function.
    """
    return str(func.attrs["global_symbol"])


def _named_by_content(kernels: tvm.IRModule) -> tuple[tvm.IRModule, dict[str, str]]:
    """Gives kernels symbols that are equal where what they do is; the symbols by the former ones.

    The digest is TVM's structural hash (64 bits) of the loops, whatever their variables are called.
    """
    left: dict[str, tuple[ir.GlobalVar, ir.BaseFunc]] = {}
    symbols: dict[str, str] = {}
    for var, func in kernels.functions.items():
        name = symbol_of(func)
        digest = tvm_ffi.structural_hash(func.without_attr("global_symbol"), map_free_vars=True)
        symbol = symbols[name] = f"{_NUMBER.sub('', name)}_{digest % 2**64:016x}"
        left.setdefault(symbol, (var, func.with_attr("global_symbol", symbol)))
    return tvm.IRModule(dict(left.values()), attrs=kernels.attrs), symbols


def _redirect(func: tirx.PrimFunc, called: Mapping[str, str]) -> tirx.PrimFunc:
    """Lets a function call the forwarders of kernels."""

    def visit(call: ir.Call) -> ir.Call:
        if call.op.same_as(_CALL) and str(call.args[0].value) in called:
            target = ir.StringImm(called[str(call.args[0].value)])
            return ir.Call(call.op, [target, *call.args[1:]], call.attrs, ret_ty=call.ty)
        return call

    return func.with_body(tvm_ffi.structural_map(func.body, (ir.Call, visit)))


def _forwarder(name: str, kernel: str, count: int) -> ir.BaseFunc:
    """A function that hands the arguments of a packed call on to a kernel with ``count`` of them.

    A kernel of another module is known by its symbol, a forwarder of this one by its name. The
    kernel's status is returned; its result belongs behind the arguments, as in the caller.
    """
    kinds = {"self_handle": "handle", "args": "handle", "num_args": "int32", "result": "handle"}
    params = [tirx.Var(parameter, kind) for parameter, kind in kinds.items()]
    given = [ir.StringImm(kernel), params[1], tirx.IntImm("int32", 0)]
    call = ir.Call(_CALL_LOWERED, [*given, tirx.IntImm("int32", count)], ret_ty="int32")
    func = tirx.PrimFunc(params, tirx.Evaluate(call), ret_type=ir.PrimType("int32"))
    return func.with_attr(
        {"global_symbol": _SYMBOL + name, "calling_conv": ir.CallingConv.C_PACKED_FUNC}
    )
