"""Which nodes of a graph every kernel computes, found by following the fusion step by step.

Relax forgets where a kernel comes from, so the passes are run again and watched: names lead from
nodes to calls before fusion, and from there calls are recognized by their kernel and operands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import relax

from tvmgraph.compiler import pipeline
from tvmgraph.compiler.compile import CompileOptions
from tvmgraph.compiler.fusion import join_kernels
from tvmgraph.graph import Graph
from tvmgraph.graph.rewrite import optimize
from tvmgraph.lowering import lower
from tvmgraph.lowering.relax import variable_name
from tvmgraph.schedule import configure_threads, cpu_model, make_target

Calls = list[tuple[str, tuple[int, ...]]]

_T = relax.transform


def trace_kernels(graph: Graph, options: CompileOptions) -> tuple[Graph, Calls]:
    """Follows a graph through the compiler's passes.

    Args:
        graph: The captured graph.
        options: How it is compiled.

    Returns:
        The graph that is lowered, and for every call of a kernel, in order, the kernel's name and
        the positions of the nodes it computes.
    """
    graph = optimize(graph, options.settings, lambda _, g: g)
    mod = lower(graph)
    marks = {variable_name(n, v): i for i, n in enumerate(graph.nodes) for v in n.outputs}
    level = pipeline.LEVELS[options.level]
    owner = _owners(mod["main"], marks)
    target = make_target(options.target, level.llvm_opt)
    with target, tvm.transform.PassContext(opt_level=3 if level.fuse else 0):
        mod = tvm.transform.Sequential(pipeline.operator_passes())(mod)
        origins = _by_name(mod["main"], owner)
        if level.fuse:
            fused = _T.FuseOps()(mod)
            origins = _follow(mod, fused, origins)
            mod = tvm.transform.Sequential([_T.FuseTIR(), _T.DeadCodeElimination()])(fused)
            model = cpu_model(options.target, configure_threads(None))
            mod, joined = join_kernels(mod, options.settings, model)
            origins = [tuple(sorted({n for i in parts for n in origins[i]})) for parts in joined]
    calls = [b for b in _bindings(mod["main"]) if _kernel(b.value) is not None]
    names = [str(_kernel(b.value)) for b in calls]
    kept = origins if level.fuse else [o for o, b in zip(origins, _bindings(mod["main"]))
                                       if _kernel(b.value) is not None]  # fmt: skip
    return graph, list(zip(names, kept))


def _bindings(function: Any) -> list[Any]:
    return [b for block in function.body.blocks for b in block.bindings]


def _kernel(value: Any) -> str | None:
    """The name of the kernel that a value calls."""
    if isinstance(value, relax.Call) and value.op == tvm.ir.Op.get("relax.call_tir"):
        return str(value.args[0].name_hint)
    return None


def _owners(function: Any, marks: Mapping[str, int]) -> dict[str, int]:
    """The node of every variable: everything up to a node's result belongs to the node."""
    owner: dict[str, int] = {}
    waiting: list[str] = []
    for binding in _bindings(function):
        name = binding.var.name
        waiting.append(name)
        if name in marks:
            owner.update((w, marks[name]) for w in waiting)
            waiting = []
        elif isinstance(binding.value, relax.Var):  # an output by another name
            owner[name] = owner.get(binding.value.name, -1)
            waiting = []
    return owner


def _by_name(function: Any, owner: Mapping[str, int]) -> list[tuple[int, ...]]:
    """The nodes of every binding; what a pass added belongs to the next binding it knows."""
    found: list[tuple[int, ...]] = []
    after: tuple[int, ...] = ()
    for binding in reversed(_bindings(function)):
        if owner.get(binding.var.name, -1) >= 0:
            after = (owner[binding.var.name],)
        found.append(after)
    return found[::-1]


def _follow(
    before: tvm.IRModule, after: tvm.IRModule, origins: list[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """The nodes of every binding after FuseOps, given those before it."""
    numbers = _Numbering(before, origins)
    known = dict(zip(after["main"].params, numbers.params))
    return [numbers.place(after, b, known) for b in _bindings(after["main"])]


class _Numbering:
    """Numbers the values before fusion, so that the same calls are found again inside of groups."""

    def __init__(self, before: tvm.IRModule, origins: list[tuple[int, ...]]) -> None:
        function = before["main"]
        self.origins = origins
        self.params = [f"p{i}" for i in range(len(function.params))]
        self.table: dict[Any, list[int]] = {}
        known: dict[Any, Any] = dict(zip(function.params, self.params))
        for i, binding in enumerate(_bindings(function)):
            self.table.setdefault(_key(binding.value, known), []).append(i)
            known[binding.var] = i

    def place(self, after: tvm.IRModule, binding: Any, known: dict[Any, Any]) -> tuple[int, ...]:
        """Notes which value a binding defines and returns the nodes it computes."""
        value = binding.value
        if isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.GlobalVar):
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
        return self.origins[i]


def _key(value: Any, known: Mapping[Any, Any]) -> Any:
    """What a value computes: its kernel or operator, and its operands by number."""
    operands = tuple(known.get(v) for v in relax.analysis.free_vars(value))
    kernel = _kernel(value)
    if kernel is not None:
        return kernel, operands
    op = str(getattr(value, "op", "")) if isinstance(value, relax.Call) else ""
    return type(value).__name__, op, getattr(value, "index", None), operands
