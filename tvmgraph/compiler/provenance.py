"""Which nodes of a graph every kernel computes, found by following the fusion step by step.

Relax forgets where a kernel comes from, so the passes are run again and watched: names lead from
nodes to calls before fusion, and from there calls are recognized by their kernel and operands.
Branches and loops are functions of their own, which are followed one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, TypeGuard

import tvm
import tvm_ffi
from tvm import relax
from tvm.s_tir.analysis import estimate_tir_flops

from tvmgraph.backend.base import backend_of
from tvmgraph.backend.passes import run_passes
from tvmgraph.backend.target import make_target
from tvmgraph.compiler.relax.fusion import fuse_and_trace
from tvmgraph.compiler.relax.in_place import mark_updates
from tvmgraph.config.options import CompileOptions
from tvmgraph.graph import Graph
from tvmgraph.lowering import lower
from tvmgraph.lowering.relax import variable_name
from tvmgraph.passes import table
from tvmgraph.passes.run import run_graph_passes

Provenance = list[tuple[int, ...]]  # for every binding of a function the nodes it computes

_T = relax.transform
#: The passes that follow those from operators to loop nests.
_AFTER = ("fuse_operators", "clean_loops")
#: Functions of the C library: one operation each.
_ELEMENTARY = frozenset((
    "exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "pow", "sqrt", "rsqrt", "sigmoid",
    "tanh", "sinh", "cosh", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "asinh", "acosh",
    "atanh", "erf", "hypot", "fmod", "ldexp", "fabs",
))  # fmt: skip


@dataclass(frozen=True)
class Site:
    """One place where a kernel is called.

    Attributes:
        kernel: The kernel's name.
        nodes: Positions of the nodes it computes, in the order of ``graph.walk()``.
        flops: Arithmetic operations of one call, counted in its loops before they are scheduled (a
            multiply-add counts two, ``exp`` and the like one); None if they cannot be counted.
    """

    kernel: str
    nodes: tuple[int, ...]
    flops: float | None


def trace_kernels(graph: Graph, options: CompileOptions) -> tuple[Graph, list[Site]]:
    """Follows a graph through the compiler's passes.

    Args:
        graph: The captured graph.
        options: How it is compiled.

    Returns:
        The graph that is lowered, and every call of a kernel: those of the graph itself in order,
        then those of its branches and loops.
    """
    graph = run_graph_passes(graph, options)
    regions: dict[str, Graph] = {}
    mod = lower(graph, regions)
    regions["main"] = graph
    owners = _all_owners(mod, graph, regions)
    fuses = table.runs("fuse_operators", options)
    target = make_target(options.target, options.meaning.llvm_opt)
    with target, tvm.transform.PassContext(opt_level=3 if fuses else 0):
        rows = table.chosen(table.Stage.RELAX, options)
        mod = run_passes(mod, takewhile(lambda row: row.name not in _AFTER, rows), options)
        provenance = {name: _by_name(f, owners.get(name, {})) for name, f in _functions(mod)}
        if fuses:
            fused = _T.FuseOps()(mod)
            provenance = {
                name: _follow(mod, fused, name, provenance[name])
                for name, _ in _functions(fused) if name in provenance
            }  # fmt: skip
            mod = tvm.transform.Sequential([_T.FuseTIR(), _T.DeadCodeElimination()])(fused)
            mod, calls = fuse_and_trace(
                mod, options.settings, backend_of(options.target).fusion_model(options)
            )
            provenance = {
                name: [tuple(sorted({n for i in parts for n in provenance[name][i]}))
                       for parts in replaced]
                for name, replaced in calls.items() if name in provenance
            }  # fmt: skip
            if table.runs("in_place", options):
                mod = mark_updates(mod)  # renames kernels, one by one
    return graph, _sites(mod, provenance, fuses)


def _sites(mod: tvm.IRModule, provenance: Mapping[str, Provenance], fused: bool) -> list[Site]:
    """The calls of kernels that are left, with what became of the origins of their bindings."""
    flops: dict[str, float | None] = {}
    sites: list[Site] = []
    viewed = _T.RewriteDataflowReshape()(mod)
    for name, function in _functions(mod):
        bindings = _bindings(function)
        found = provenance.get(name, [])
        calls = [(i, k) for i, b in enumerate(bindings) if (k := _kernel(b.value)) is not None]
        left = _bindings(dict(_functions(viewed))[name])
        for position, (i, kernel) in enumerate(calls):
            if _kernel(left[i].value) is None:
                continue  # a name for what is there already
            at = position if fused else i
            if kernel not in flops:
                flops[kernel] = _count_flops(mod[kernel])
            sites.append(Site(kernel, found[at] if at < len(found) else (), flops[kernel]))
    return sites


def _count_flops(function: tvm.tirx.PrimFunc) -> float | None:
    """Counts operations; TVM leaves out calls, so elementary functions are counted as additions.

    It counts loops of unknown length as if they ran once, so nothing is known where there are any.
    """
    extents: list[object] = []
    tvm_ffi.structural_walk(function.body, (tvm.tirx.For, lambda loop: extents.append(loop.extent)))
    if not all(isinstance(extent, tvm.tirx.IntImm) for extent in extents):
        return None
    try:
        body = tvm_ffi.structural_map(function.body, (tvm.ir.Call, _as_addition))
        return float(estimate_tir_flops(tvm.IRModule({"main": function.with_body(body)})))
    except Exception:  # a loop whose length is not known, or a call that TVM cannot see into
        return None


def _as_addition(call: Any) -> Any:
    name = str(getattr(call.op, "name", "")).rpartition(".")[2]
    return call.args[0] + call.args[-1] if name in _ELEMENTARY else call


def _functions(mod: tvm.IRModule) -> Iterator[tuple[str, relax.Function]]:
    """The functions of a module that stand for the graph or a part of it, ``main`` first."""
    found = {
        str(gv.name_hint): f for gv, f in mod.functions.items()
        if isinstance(f, relax.Function) and not _is_primitive(f)
    }  # fmt: skip
    yield "main", found.pop("main")
    yield from sorted(found.items())


def _is_primitive(function: relax.Function) -> bool:
    return bool(dict(function.attrs or {}).get("Primitive", False))


def _all_owners(
    mod: tvm.IRModule, graph: Graph, regions: Mapping[str, Graph]
) -> dict[str, dict[str, int]]:
    """The node of every variable of every function.

    What is neither the graph nor a region was defined to run a loop; it belongs to the node whose
    call leads there.
    """
    functions = dict(_functions(mod))
    owners = {name: _owners(functions[name], _marks(graph, part)) for name, part in regions.items()}
    todo = [(b.value, owners[name].get(b.var.name, -1))
            for name in regions for b in _bindings(functions[name])]  # fmt: skip
    while todo:
        value, node = todo.pop()
        for name in _called(value):
            if name in functions and name not in owners:
                bindings = _bindings(functions[name])
                owners[name] = {b.var.name: node for b in bindings}
                todo += [(b.value, node) for b in bindings]
    return owners


def _called(value: relax.Expr) -> list[str]:
    """Names of the functions that an expression mentions."""
    names: list[str] = []
    tvm_ffi.structural_walk(value, (tvm.ir.GlobalVar, lambda v: names.append(str(v.name_hint))))
    return names


def _marks(graph: Graph, part: Graph) -> dict[str, int]:
    """The names of the variables of a part of the graph that hold results of its nodes."""
    positions: dict[int, int] = {}
    for i, node in enumerate(graph.walk()):
        positions.setdefault(id(node), i)
    return {variable_name(n, v): positions[id(n)] for n in part.nodes for v in n.outputs}


def _bindings(function: relax.Function) -> list[relax.Binding]:
    return [b for block in function.body.blocks for b in block.bindings]


def _kernel(value: relax.Expr) -> str | None:
    """The name of the kernel that a value calls."""
    if isinstance(value, relax.Call) and value.op == tvm.ir.Op.get("relax.call_tir"):
        return str(value.args[0].name_hint)
    return None


def _owners(function: relax.Function, marks: Mapping[str, int]) -> dict[str, int]:
    """The node of every variable: everything up to a node's result belongs to the node."""
    owner: dict[str, int] = {}
    waiting: list[str] = []
    for binding in _bindings(function):
        name = binding.var.name
        waiting.append(name)
        node = marks.get(name.rstrip("0123456789"))  # names are made unique by a number
        if node is not None:
            owner.update((w, node) for w in waiting)
            waiting = []
        elif isinstance(binding.value, relax.Var):  # an output by another name
            owner[name] = owner.get(binding.value.name, -1)
            waiting = []
    return owner


def _by_name(function: relax.Function, owner: Mapping[str, int]) -> Provenance:
    """The nodes of every binding; what a pass added belongs to the next binding it knows."""
    found: list[tuple[int, ...]] = []
    after: tuple[int, ...] = ()
    for binding in reversed(_bindings(function)):
        if owner.get(binding.var.name, -1) >= 0:
            after = (owner[binding.var.name],)
        found.append(after)
    return found[::-1]


def _follow(
    before: tvm.IRModule, after: tvm.IRModule, name: str, provenance: Provenance
) -> Provenance:
    """The nodes of every binding of a function after FuseOps, given those before it."""
    numbers = _Numbering(before[name], provenance)
    known = dict(zip(after[name].params, numbers.params))
    return [numbers.place(after, b, known) for b in _bindings(after[name])]


class _Numbering:
    """Numbers the values before fusion, so that the same calls are found again inside of groups."""

    def __init__(self, function: relax.Function, provenance: Provenance) -> None:
        self.provenance = provenance
        self.params = [f"p{i}" for i in range(len(function.params))]
        self.table: dict[object, list[int]] = {}
        known: dict[object, object] = dict(zip(function.params, self.params))
        for i, binding in enumerate(_bindings(function)):
            self.table.setdefault(_key(binding.value, known), []).append(i)
            known[binding.var] = i

    def place(
        self, after: tvm.IRModule, binding: relax.Binding, known: dict[relax.Var, object]
    ) -> tuple[int, ...]:
        """Notes which value a binding defines and returns the nodes it computes."""
        value = binding.value
        if _is_group(value, after):
            function = after[value.op]
            inner = {p: known.get(a) for p, a in zip(function.params, value.args)}
            nodes = {n for b in _bindings(function) for n in self.place(after, b, inner)}
            known[binding.var] = inner.get(function.body.body)
            return tuple(sorted(nodes))
        if isinstance(value, relax.Tuple):
            known[binding.var] = tuple(known.get(f) for f in value.fields)
            return ()
        if isinstance(value, relax.TupleGetItem):
            whole = known.get(value.tuple_value)
            if isinstance(whole, tuple):
                known[binding.var] = whole[value.index]
                return ()
        found = self.table.get(_key(value, known))
        if not found:
            return ()
        i = found.pop(0) if len(found) > 1 else found[0]
        known[binding.var] = i
        return self.provenance[i]


def _is_group(value: relax.Expr, mod: tvm.IRModule) -> TypeGuard[relax.Call]:
    """Whether a value calls a group of operators that FuseOps made."""
    if not isinstance(value, relax.Call) or not isinstance(value.op, tvm.ir.GlobalVar):
        return False
    function = mod[value.op]
    return isinstance(function, relax.Function) and _is_primitive(function)


def _key(value: relax.Expr, known: Mapping[relax.Var, object]) -> object:
    """What a value computes: its kernel or operator, and its operands by number.

    Constants count as nothing, because fusion hands them to a group as parameters.
    """
    if isinstance(value, relax.Call):
        kernel = _kernel(value)
        if kernel is not None:
            return kernel, _numbers(value.args[1].fields, known)
        return str(value.op), _numbers(value.args, known)
    operands = tuple(known.get(v) for v in relax.analysis.free_vars(value))
    return type(value).__name__, getattr(value, "index", None), operands


def _numbers(values: Iterable[relax.Expr], known: Mapping[relax.Var, object]) -> tuple[object, ...]:
    return tuple(known.get(v) if isinstance(v, relax.Var) else None for v in values)
