"""Phases: times every phase of one compile and shows its results to whoever asked for them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tvmgraph.config import context
from tvmgraph.config.flag_registry import active
from tvmgraph.debug.announce import announced
from tvmgraph.debug.dump import Dump
from tvmgraph.graph import Graph, check


class Phases:
    """What happens while one graph is compiled.

    Args:
        name: Name of the graph; dumps are filed under it.
        quiet: Only take times, whatever the flags say.

    Attributes:
        seconds: Wall time by phase, in order.
        level: How much is written, 0 to 3.
        reused: Kernels whose machine code was there before.
    """

    def __init__(self, name: str, quiet: bool = False) -> None:
        self.seconds: dict[str, float] = {}
        self.quiet = quiet
        self.reused = 0
        asked = 3 if active.debug >= 3 else max(context.save_graphs, active.save_graphs)
        self.level = 0 if quiet else asked
        self.dump = Dump(context.save_graphs_path, name) if self.level else None

    @property
    def wanted(self) -> bool:
        """Whether somebody wants to see the phases, so that a cached result will not do."""
        return self.dump is not None

    @contextmanager
    def time(self, phase: str) -> Iterator[None]:
        """Adds the time of a ``with`` block to a phase.

        Args:
            phase: Name of the phase.
        """
        start = time.perf_counter()
        try:
            with announced(phase):
                yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[phase] = self.seconds.get(phase, 0.0) + spent

    def graph(self, title: str, graph: Graph) -> Graph:
        """Verifies (TVMGRAPH_CHECK=2) and shows a graph, and returns it.

        Args:
            title: Name of the phase.
            graph: Its result.
        """
        if active.check >= 2:
            check(graph)
        if active.debug >= 3 and not self.quiet:
            print(f"---- {title}\n{graph.text()}", file=sys.stderr)
        self.text(1, title, "txt", graph.text)
        return graph

    def text(self, level: int, title: str, suffix: str, text: Callable[[], str]) -> None:
        """Writes the result of a phase if ``level`` was asked for; ``text`` is called only then.

        Args:
            level: The least value of TVMGRAPH_DEBUG.
            title: Name of the phase.
            suffix: Suffix of its file.
            text: Returns what the file holds.
        """
        if self.dump is not None and self.level >= level:
            self.dump.add(title, suffix, text())
        if title in ("LLVM", "CUDA") and active.debug >= 4 and not self.quiet:
            print(f"---- {title}\n{text()}", file=sys.stderr)

    def finish(self, facts: dict[str, str]) -> None:
        """Writes the index of the dump.

        Args:
            facts: What the index says of the graph, by name.
        """
        if self.dump is not None:
            self.dump.finish(facts, self.seconds)
