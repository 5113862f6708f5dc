"""What random programs reach: rows, rewrite rules, decisions about kernels, parallel kernels.

``python -m tests.fuzz coverage`` prints the table of 300 programs.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import tvm
import tvm_ffi
from tvm import tirx

from tests.fuzz.campaign import LARGE, LARGE_SEED, generated
from tests.fuzz.differential import captured
from tests.fuzz.generate import aimed, is_aimed
from tests.fuzz.phrases import AIMED
from tests.fuzz.programs import TEMPLATES
from tvmgraph.backend.cpu.schedule import schedule_cpu
from tvmgraph.backend.cpu.table import KERNELS
from tvmgraph.backend.fusion import Shape
from tvmgraph.backend.loop_ir.types import Func
from tvmgraph.backend.passes import run_passes
from tvmgraph.backend.table import Choice, recording_choices
from tvmgraph.backend.target import make_target
from tvmgraph.compiler.relax import fusion
from tvmgraph.config.options import CompileOptions
from tvmgraph.graph import Graph
from tvmgraph.lowering import lower, lower_many
from tvmgraph.machine.processor import cpu_model
from tvmgraph.passes import rules
from tvmgraph.passes.freeze import freeze
from tvmgraph.passes.run import run_graph_passes
from tvmgraph.passes.table import Stage, chosen

#: Kernels of the table that large programs divide among threads.
PARALLEL = (
    "conv_direct", "elementwise", "elementwise_fused", "gemm", "gemm_dot", "gemm_packed_weight",
    "loops", "named", "reduce_rows", "reduce_split", "unfused_stages",
)  # fmt: skip
#: Kernels that programs reach which are aimed at kernels, compiled for :data:`_TARGETS`: all but
#: those that large programs reach anyway (:data:`PARALLEL`), loops over nothing, and a product
#: apart from what uses it, of which fusion makes no function.
AIMED_AT = frozenset(k.name for k in KERNELS.kernels) - {
    "empty", "unfused_epilogue", "reduce_split", "unfused_stages",
}  # fmt: skip
_TARGETS = ("x86-64-v3", "sapphirerapids")
#: Programs whose graphs are looked at, and from whose source rows are counted.
PROGRAMS, WRITTEN = 300, 2000
LARGE_PROGRAMS = 60
#: What the compiler decides about kernels, and about what is prepared ahead of calls.
DECISIONS = (
    "runs alike", "runs unlike", "a way round", "no way round", "no schedule", "joined",
    "shared operand", "shared number", "alone by its loops", "by rows", "several results",
    "one result", "nothing to prepare", "prepared", "panels of weights", "blocks of channels",
    "scale in weights", "convolutions for a transposed one", "attention",
)  # fmt: skip


def graphs(start: int = 0) -> list[Graph]:
    """Returns the graphs of some programs, from a seed on."""
    return [r.graph for seed in range(start, start + PROGRAMS) for r in captured(generated(seed))]


def rows(start: int = 0) -> Counter[str]:
    """Counts the rows that programs are written with, from a seed on."""
    return Counter(row for seed in range(start, start + WRITTEN) for row in generated(seed).rows())


def fired(found: Sequence[Graph]) -> Counter[str]:
    """Counts how often every rewrite rule changes graphs."""
    counts: Counter[str] = Counter()

    def counted(rule: rules.Rule) -> rules.Rule:
        def rewrite(match: rules.Match) -> Any:
            result = rule.rewrite(match)
            counts[rule.name] += result is not None
            return result

        return replace(rule, rewrite=rewrite)

    every = {name: counted(rule) for name, rule in rules.RULES.items()}
    with mock.patch.dict(rules.RULES, every):
        for graph in found:
            run_graph_passes(graph, CompileOptions("O3"))
    return counts


def decided(found: Sequence[Graph]) -> Counter[str]:
    """Counts the decisions about the kernels of graphs, and what is prepared ahead of calls."""
    made: Counter[str] = Counter()
    fuser: Any = fusion._Fuser
    with contextlib.ExitStack() as stack:

        def watch(owner: Any, name: str, decision: Callable[[Any], str]) -> None:
            method = getattr(owner, name)

            def watched(*args: Any) -> Any:
                result = method(*args)
                made[decision(result)] += 1
                return result

            stack.enter_context(mock.patch.object(owner, name, watched))

        watch(Shape, "may_fuse", lambda r: "runs alike" if r else "runs unlike")
        watch(fusion._Order, "between", lambda r: "a way round" if r is None else "no way round")
        watch(fuser, "_shape_of_fused", lambda r: "no schedule" if r is None else "joined")
        watch(fuser, "_is_large", lambda r: "shared operand" if r else "shared number")
        watch(fuser, "_kernel", lambda r: "alone by its loops" if r is None else "by rows")
        watch(fuser, "_results", lambda r: "several results" if len(r) > 1 else "one result")
        _fuse([run_graph_passes(g, CompileOptions()) for g in found[100:200]])
    for graph in found:
        made.update(_prepared(graph))
    return made


def large_graphs(start: int = 0) -> list[Graph]:
    """Returns the graphs of some large programs, from a seed on."""
    turns = filter(lambda turn: not is_aimed(turn), range(start // LARGE, 2**40))
    seeds = (LARGE * turn + LARGE_SEED for turn in itertools.islice(turns, LARGE_PROGRAMS))
    return [r.graph for seed in seeds for r in captured(generated(seed))]


def aimed_at() -> Counter[str]:
    """Counts the kernels of the programs that are aimed at kernels."""
    found = [r.graph for i in range(len(AIMED)) for r in captured(aimed(i))]
    counts: Counter[str] = Counter()
    for target in _TARGETS:
        options = CompileOptions("O2", target)
        graphs = [run_graph_passes(g, options) for g in found]
        frozen = [f.main for f in map(freeze, found) if f is not None]
        graphs += [run_graph_passes(g, options) for g in frozen]
        alone = [g for g in graphs if g.writes][:1]  # only ``main`` writes in place
        for mod in (lower_many({f"g{i}": g for i, g in enumerate(graphs)}), *map(lower, alone)):
            for choice in _choices(mod, options):
                counts.update(_names(choice))
    return counts


def _choices(mod: Any, options: CompileOptions) -> list[Choice]:
    """The kernels that the functions of a module get."""
    with make_target(options.target, 2), tvm.transform.PassContext(opt_level=3):
        fused = run_passes(mod, chosen(Stage.RELAX, options), options)
        with recording_choices() as choices:
            schedule_cpu(fused, cpu_model(options.target, 2), options.meaning.schedule)
    return choices


def parallel(found: Sequence[Graph]) -> Counter[str]:
    """Counts the kernels of graphs whose loops are divided among two threads."""
    counts: Counter[str] = Counter()
    options, target = CompileOptions(), make_target("host", 2)
    graphs: dict[str, Graph] = {}
    for i, graph in enumerate(found):
        frozen = freeze(graph) if i % 2 else None
        graphs[f"g{i}"] = run_graph_passes(graph if frozen is None else frozen.main, options)
    with target, tvm.transform.PassContext(opt_level=3):
        mod = run_passes(lower_many(graphs), chosen(Stage.RELAX, options), options)
        with recording_choices() as choices:
            mod = schedule_cpu(mod, cpu_model("host", 2), options.meaning.schedule)
    divided = {var.name_hint for var, func in mod.functions.items() if _is_parallel(func)}
    for choice in choices:
        counts.update(_names(choice) if choice.function in divided else ())
    return counts


def _is_parallel(func: Any) -> bool:
    """Whether a loop of a function is divided among threads."""
    loops: list[tirx.For] = []
    if isinstance(func, Func):
        tvm_ffi.structural_walk(func.body, (tirx.For, loops.append))
    return any(loop.kind == tirx.ForKind.PARALLEL for loop in loops)


def _names(choice: Choice) -> Iterator[str]:
    yield choice.kernel
    for part in choice.nested:
        yield from _names(part)


def table(start: int = 0) -> str:
    """Returns the counts as text, those of nothing first.

    Args:
        start: The seed of the first program.
    """
    found = graphs(start)
    parts = {
        "rules": (rules.RULES, fired(found)),
        "decisions": (DECISIONS, decided(found)),
        "aimed at": (sorted(AIMED_AT), aimed_at()),
        "parallel kernels": (PARALLEL, parallel(large_graphs(start))),
        "rows": (TEMPLATES, rows(start)),
    }
    lines: list[str] = []
    for title, (names, counts) in parts.items():
        missed = sum(not counts[n] for n in names)
        lines += [f"{title}: {len(names) - missed} of {len(names)} reached"]
        lines += [f"  {counts[n]:7} {n}" for n in sorted(names, key=lambda n: (counts[n], n))]
    return "\n".join(lines)


def _fuse(graphs: Sequence[Graph]) -> None:
    """Joins the kernels of graphs, without generating code."""
    target = make_target("host", 2)
    with target, tvm.transform.PassContext(opt_level=3):
        mod = lower_many({f"g{i}": g for i, g in enumerate(graphs)})
        run_passes(mod, chosen(Stage.RELAX, CompileOptions()), CompileOptions())


def _prepared(graph: Graph) -> Iterator[str]:
    """What is decided about a graph before it is lowered."""
    if any("attention" in n.op.name for n in run_graph_passes(graph, CompileOptions()).nodes):
        yield "attention"
    frozen = freeze(graph)
    if frozen is None:
        yield "nothing to prepare"
        return
    yield "prepared"
    before, after = graph.op_counts(), frozen.main.op_counts()
    yield from ["panels of weights"] * after["matmul_panels"]
    yield from ["blocks of channels"] * (after["conv_nchwc"] - before["conv_nchwc"])
    if before["convolution"] and after["mul"] < before["mul"]:
        yield "scale in weights"
    if after["conv_transpose"] < before["conv_transpose"]:
        yield "convolutions for a transposed one"
