"""Runs many programs in batches: one compiled module per batch, one way of compiling per batch."""

from __future__ import annotations

import gc
import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from tests.fuzz.differential import (
    ANY_ORDER,
    SCALED,
    Difference,
    Freedom,
    Recorded,
    captured,
    compare,
    compile_all,
    differentiated,
    explain_failure,
    gradient,
    passes,
    round_trips,
)
from tests.fuzz.generate import generate
from tests.fuzz.programs import Program, forget
from tests.fuzz.uses import run_uses
from tvmgraph import Tensor
from tvmgraph.config.options import CompileOptions
from tvmgraph.graph import Graph
from tvmgraph.passes.freeze import arrange, freeze
from tvmgraph.passes.run import run_graph_passes

BATCH = 25
#: Programs of a batch that go the whole way of a user's: each is compiled twice, alone.
USED = 5
#: Every which program is one of float64, whose derivative is compared with differences.
SMOOTH = 4
#: Every which program is differentiated as a user would.
DIFFERENTIATED = 3
#: Every which program is large enough for parallel kernels, and which of them: the third of ten.
LARGE, LARGE_SEED = 10, 3


@dataclass(frozen=True)
class Way:
    """One way to compile.

    Attributes:
        level: The ``jit_level``.
        target: The processor.
        frozen: Whether what depends on parameters alone is computed ahead.
        used: Whether programs go the whole way of a user's, see :mod:`.uses`: a few of a batch.
        threads: Workers that kernels are shaped for.
    """

    level: str
    target: str = "host"
    frozen: bool = False
    used: bool = False
    threads: int = 2

    @property
    def freedom(self) -> Freedom:
        """What is not certain of its results."""
        return ANY_ORDER if self.level == "O3" else SCALED if self.frozen else Freedom()

    def __str__(self) -> str:
        how = " frozen" * self.frozen + " used" * self.used + " one thread" * (self.threads == 1)
        return f"{self.level} {self.target}{how}"


WAYS = (
    Way("O2"), Way("O1"), Way("O2", "x86-64-v3"), Way("O0"), Way("O2", frozen=True),
    Way("O2", used=True), Way("O1", "x86-64-v3"), Way("O3"), Way("O1", used=True),
    Way("O2", threads=1), Way("O2", frozen=True, threads=1),
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """A program that something is wrong with.

    Attributes:
        seed: The program's.
        way: How it was compiled, if it was.
        kind: Which comparison failed.
        text: What was found.
    """

    seed: int
    way: str
    kind: str
    text: str


def run_batch(programs: Iterable[Program], way: Way | None) -> list[Finding]:
    """Runs some programs, compiled one way or not at all; returns what is wrong with them."""
    found: list[Finding] = []
    if way is not None and way.used:
        few = list(itertools.islice(programs, USED))
        run_uses(few, way.level, lambda program, e: found.append(_finding(program, way, e)))
        forget()
        return found
    items: dict[str, tuple[Program, Recorded]] = {}
    for program in programs:
        try:
            recorded = captured(program)
            for item in list(recorded):
                passes(item, program.seed)
                round_trips(item, program.seed)
                pulled = gradient(item, program.seed) if program.seed % SMOOTH == 0 else None
                recorded += [pulled] if pulled is not None else []
            recorded += differentiated(program) if program.seed % DIFFERENTIATED == 0 else []
            items.update((f"p{program.seed}_{i}", (program, r)) for i, r in enumerate(recorded))
        except Exception as e:
            found.append(_finding(program, way, e))
    forget()
    for name, error in _compiled(items, way) if way is not None else ():
        found.append(_finding(items[name][0], way, error))
    return found


def _finding(program: Program, way: Way | None, e: Exception) -> Finding:
    if isinstance(e, Difference):
        return Finding(program.seed, str(way), e.kind, e.text)
    return Finding(program.seed, str(way), type(e).__name__, explain_failure(e))


def _compiled(items: dict[str, tuple[Program, Recorded]], way: Way) -> Any:
    """Yields the name and the error of every graph that cannot be compiled or differs."""
    options = CompileOptions(way.level, way.target)
    graphs: dict[str, Graph] = {}
    arguments: dict[str, Any] = {}
    for name, (_, item) in items.items():
        try:
            frozen = freeze(item.graph) if way.frozen else None
            prepared = item.arrays
            graph = arrange(item.graph) if way.level not in ("O0", "O1") else item.graph
            if frozen is not None:
                graph = frozen.main
                ahead = frozen.prepare([item.arrays[i] for i in frozen.sources])
                prepared = [*[item.arrays[i] for i in frozen.kept], *ahead]
            graphs[name] = run_graph_passes(graph, options)
            arguments[name] = prepared
        except Exception as e:
            yield name, e
    with mock.patch.dict(os.environ, {"TVM_NUM_THREADS": str(way.threads)}):
        compiled = compile_all(graphs, way.level, way.target)
    for name, executable in compiled.items():
        program, item = items[name]
        try:
            if isinstance(executable, Exception):
                raise executable
            tensors = [Tensor(a.copy()) for a in arguments[name]]
            outputs = executable.run(tensors, [v.type for v in item.graph.outputs], name)
            results = [o.asnumpy() for o in outputs]
            compare(item, results, "compiled", program.seed, way.freedom)
        except Exception as e:
            yield name, e


def run(seconds: float, folder: Path, start: int = 0, every: int = 1) -> None:
    """Runs batches for some time, and notes in ``folder`` where it is and what was found.

    Args:
        seconds: How long.
        folder: Goes on where ``programs.json`` in it says, which also counts the programs by the
            way that they ran; ``programs.jsonl`` gets the findings.
        start: The first seed of a new folder.
        every: Of so many batches one is compiled, the others are evaluated in NumPy; 0 for none.
    """
    state, log = folder / "programs.json", folder / "programs.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    new = {"next": start, "running": None, "programs": {}}
    position = json.loads(state.read_text()) if state.exists() else new

    def note(finding: dict[str, Any]) -> None:
        with log.open("a") as stream:
            stream.write(json.dumps(finding) + "\n")

    if position["running"] is not None:
        note({"seed": position["running"], "kind": "process died", "way": "", "text": ""})
        position["next"] = position["running"] + BATCH
    gc.freeze()  # every capture looks for garbage, and that is in programs alone
    end, found, ran = time.monotonic() + seconds, Counter[str](), Counter(position["programs"])
    while time.monotonic() < end:
        first = position["next"]
        state.write_text(json.dumps(position | {"running": first}))
        number = first // BATCH
        way = WAYS[number // every % len(WAYS)] if every and number % every == 0 else None
        for finding in run_batch(map(generated, range(first, first + BATCH)), way):
            found[finding.kind] += 1
            note(vars(finding) | {"source": generated(finding.seed).source()})
        ran[str(way or "in NumPy")] += USED if way is not None and way.used else BATCH
        position = {"next": first + BATCH, "running": None, "programs": dict(ran)}
        state.write_text(json.dumps(position))
    print(f"programs that ran: {dict(ran)}, found in this run: {dict(found)}")


def generated(seed: int) -> Program:
    """Returns the program of a seed."""
    return generate(seed, seed % SMOOTH == 0, is_large(seed), seed // LARGE)


def is_large(seed: int) -> bool:
    """Whether the program of a seed is one of those that are large enough for parallel kernels."""
    return seed % LARGE == LARGE_SEED


def report(finding: Finding, way: Way | None) -> str:
    """Returns a text with which a finding can be looked into: what is left of the program."""
    program = generated(finding.seed)
    if way is None or not way.used:  # whose runs take too long
        program = shrunk(program, way, finding.kind)
    again = [f"{f.kind}: {f.text}" for f in run_batch([program], way)] or ["gone when shrunk"]
    return "\n".join([
        f"seed {finding.seed}, {finding.way}: {finding.kind}: {finding.text}",
        "the least program of this kind:", *again, program.script(way.level if way else "O2"),
    ])  # fmt: skip


def shrunk(program: Program, way: Way | None, kind: str) -> Program:
    """Returns a program of fewer steps, outputs and numbers that something of a kind is wrong with.

    Args:
        program: What something is wrong with.
        way: How it was compiled.
        kind: What is wrong with it.
    """

    def fails(candidate: Program) -> bool:
        try:
            return any(f.kind == kind for f in run_batch([candidate], way))
        except Exception:
            return False

    changed = True
    while changed:
        changed = False
        for candidate in _smaller(program):
            if fails(candidate):
                program, changed = candidate, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    """Yields programs with less in them, those with the least first."""
    for name in program.outputs if len(program.outputs) > 1 else ():
        yield replace(program, outputs=(name,)).trimmed()
    for i in reversed(range(len(program.steps))):
        without = program.without(i)
        if without is not None and (without.steps or i == 0) and without.outputs:
            yield without
    for name in program.parameters:
        yield program.with_input(name)
