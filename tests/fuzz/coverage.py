"""What random programs reach: rows, rewrite rules and decisions about kernels, counted.

``python -m tests.fuzz coverage`` prints the table of 300 programs.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import tvm

from tests.fuzz.campaign import generated
from tests.fuzz.differential import captured
from tests.fuzz.programs import TEMPLATES
from tvmgraph.compiler import fusion
from tvmgraph.compiler.freeze import freeze
from tvmgraph.compiler.pipeline import LEVELS, fusion_passes
from tvmgraph.graph import Graph, rules
from tvmgraph.graph.rewrite import optimize
from tvmgraph.graph_kernel import at_level, parse_flags
from tvmgraph.lowering import lower_many
from tvmgraph.schedule import Shape, cpu_model, make_target

#: Programs whose graphs are looked at, and from whose source rows are counted.
PROGRAMS, WRITTEN = 300, 2000
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
            optimize(graph, parse_flags("--opt_level=3"), lambda _, g: g)
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

        watch(Shape, "may_join", lambda r: "runs alike" if r else "runs unlike")
        watch(fuser, "_has_detour", lambda r: "a way round" if r else "no way round")
        watch(fuser, "_joined_shape", lambda r: "no schedule" if r is None else "joined")
        watch(fuser, "_is_large", lambda r: "shared operand" if r else "shared number")
        watch(fuser, "_shape", lambda r: "alone by its loops" if r is None else "by rows")
        watch(fuser, "_results", lambda r: "several results" if len(r) > 1 else "one result")
        _fuse([optimize(g, at_level(2), lambda _, g: g) for g in found[100:200]])
    for graph in found:
        made.update(_prepared(graph))
    return made


def table(start: int = 0) -> str:
    """Returns the counts as text, those of nothing first.

    Args:
        start: The seed of the first program.
    """
    found = graphs(start)
    parts = {
        "rules": (rules.RULES, fired(found)),
        "decisions": (DECISIONS, decided(found)),
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
        mod = tvm.transform.Sequential(fusion_passes(LEVELS["O2"]))(mod)
        fusion.fuse_kernels(mod, at_level(2), cpu_model("host", 2))


def _prepared(graph: Graph) -> Iterator[str]:
    """What is decided about a graph before it is lowered."""
    if any("attention" in n.op.name for n in optimize(graph, at_level(2), lambda _, g: g).nodes):
        yield "attention"
    frozen = freeze(graph)
    if frozen is None:
        yield "nothing to prepare"
        return
    yield "prepared"
    before, after = graph.op_counts(), frozen.main.op_counts()
    yield from ["panels of weights"] * after["matmul_panels"]
    yield from ["blocks of channels"] * (after["conv_blocked"] - before["conv_blocked"])
    if before["convolution"] and after["mul"] < before["mul"]:
        yield "scale in weights"
    if after["conv_transpose"] < before["conv_transpose"]:
        yield "convolutions for a transposed one"
