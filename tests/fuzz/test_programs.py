"""Random programs over the operator table give the same in every way that they can run.

The same programs every time; ``TVMGRAPH_FUZZ_SEED=fresh`` makes others. A failure prints the seed
with the least program that still fails; again with ``TVMGRAPH_FUZZ_SEED=<seed>``.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tvm

from tests.fuzz.campaign import BATCH, WAYS, generated, report, run_batch
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

#: Batches of a run: 300 programs, every way to compile at least once.
BATCHES = 12
_GIVEN = os.environ.get("TVMGRAPH_FUZZ_SEED", "0")
SEED = secrets.randbelow(10**9) * BATCH if _GIVEN == "fresh" else int(_GIVEN)


@pytest.mark.parametrize("number", range(BATCHES))
def test_random_programs(number: int) -> None:
    way = WAYS[number % len(WAYS)]
    first = SEED + number * BATCH
    findings = run_batch(map(generated, range(first, first + BATCH)), way)
    if findings:
        rest = "\n".join(f"also seed {f.seed}: {f.kind}: {f.text}" for f in findings[1:])
        pytest.fail(f"TVMGRAPH_FUZZ_SEED={SEED}, {report(findings[0], way)}\n{rest}")


def test_a_seed_gives_one_program() -> None:
    a, b = generated(7), generated(7)
    assert a.source() == b.source()
    assert all(np.array_equal(a.inputs[n], b.inputs[n], equal_nan=True) for n in a.inputs)


# ---- what the programs reach --------------------------------------------------------------------


@pytest.fixture(scope="module")
def graphs() -> list[Any]:
    """The graphs of some programs that are the same every time."""
    return [r.graph for seed in range(300) for r in captured(generated(seed))]


def test_every_row_is_used() -> None:
    used = set().union(*(generated(seed).rows() for seed in range(2000)))
    assert used == set(TEMPLATES), f"never used: {sorted(set(TEMPLATES) - used)}"


def test_every_rule_fires(graphs: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    fired: Counter[str] = Counter()

    def counted(rule: rules.Rule) -> rules.Rule:
        def rewrite(match: rules.Match) -> Any:
            found = rule.rewrite(match)
            fired[rule.name] += found is not None
            return found

        return replace(rule, rewrite=rewrite)

    for name, rule in rules.RULES.items():
        monkeypatch.setitem(rules.RULES, name, counted(rule))
    for graph in graphs:
        optimize(graph, parse_flags("--opt_level=3"), lambda _, g: g)
    assert set(fired) >= set(rules.RULES), f"never fired: {set(rules.RULES) - set(fired)}"


def test_every_decision_is_made(graphs: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made: Counter[str] = Counter()
    fuser: Any = fusion._Fuser

    def watch(owner: Any, name: str, decision: Callable[[Any], str]) -> None:
        method = getattr(owner, name)

        def watched(*args: Any) -> Any:
            found = method(*args)
            made[decision(found)] += 1
            return found

        monkeypatch.setattr(owner, name, watched)

    watch(Shape, "may_join", lambda r: "runs alike" if r else "runs unlike")
    watch(fuser, "_has_detour", lambda r: "a way round" if r else "no way round")
    watch(fuser, "_joined_shape", lambda r: "no schedule" if r is None else "joined")
    watch(fuser, "_is_large", lambda r: "shared operand" if r else "shared number")
    watch(fuser, "_shape", lambda r: "alone by its loops" if r is None else "by rows")
    watch(fuser, "_results", lambda r: "several results" if len(r) > 1 else "one result")
    _fuse([optimize(g, at_level(2), lambda _, g: g) for g in graphs[100:200]])
    for graph in graphs:
        made.update(_prepared(graph))
    assert not [d for d in DECISIONS if not made[d]], f"the decisions: {dict(made)}"


#: What the compiler decides about kernels, and about what is prepared ahead of calls.
DECISIONS = (
    "runs alike", "runs unlike", "a way round", "no way round", "no schedule", "joined",
    "shared operand", "shared number", "alone by its loops", "by rows", "several results",
    "one result", "nothing to prepare", "prepared", "panels of weights", "blocks of channels",
    "scale in weights", "convolutions for a transposed one", "attention",
)  # fmt: skip


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
