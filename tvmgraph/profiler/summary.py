"""What a profiler heard, added up: kernels, eager operators, compiles, steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tvmgraph.debug import recorder
from tvmgraph.debug.dump import write_atomically
from tvmgraph.debug.profile import KernelTime, Peaks, merged
from tvmgraph.debug.recorder import Event, Recorder, chrome_trace, trace_text
from tvmgraph.debug.report import as_text, kernel_csv, kernel_table, micro, share
from tvmgraph.debug.report_page import facts_html, kernels_html, page, section, timeline
from tvmgraph.jit.measure import described, sites_of

_ROWS = 40  # lines of a table


class Summary:
    """A recorded stretch of a program.

    Args:
        heard: What was recorded.

    Attributes:
        events: Everything that happened, in the order in which it ended.
        seconds: From the first event to the end of the last.
        steps: Wall time of every recorded step.
        compiles: Every compile: what and how long.
        kernels: Kernels of compiled code, the longest first, each with all its calls.
        operators: Eager operators, likewise.
        peaks: What the machine can do.
    """

    def __init__(self, heard: Recorder) -> None:
        self.events: tuple[Event, ...] = tuple(heard.events)
        begin = min((e.start for e in self.events), default=0.0)
        self.seconds = max((e.start + e.seconds for e in self.events), default=0.0) - begin
        self.steps = tuple(e.seconds for e in self._of(recorder.STEP))
        self.compiles = tuple((e.name, e.seconds) for e in self._of(recorder.COMPILE))
        self.kernels = merged(self._kernels(heard))
        self.operators = merged([
            KernelTime(e.name, e.seconds, e.facts["bytes"], where=e.facts["inputs"])
            for e in self._of(recorder.OPERATOR)
        ])  # fmt: skip
        self.peaks: Peaks | None = _machine_peaks() if self.kernels else None

    def _of(self, kind: str) -> list[Event]:
        return [e for e in self.events if e.kind == kind]

    def _kernels(self, heard: Recorder) -> list[KernelTime]:
        """Every kernel call with what it computes; call by call, as graphs know them."""
        found: list[KernelTime] = []
        by_graph: dict[int, list[Event]] = {}
        for e in self._of(recorder.KERNEL):
            by_graph.setdefault(e.facts["number"], []).append(e)
        for number, events in by_graph.items():
            graph, sites = sites_of(heard.graphs[number])
            rows = [KernelTime(e.name, e.seconds, e.facts["bytes"], dtype=e.facts["dtype"])
                    for e in events]  # fmt: skip
            length = len(sites)
            straight = length and len(rows) % length == 0
            for at in range(0, len(rows), length if straight else max(1, len(rows))):
                found += described(rows[at : at + length] if straight else rows, graph, sites)
        return found

    @property
    def kernel_seconds(self) -> float:
        """Time in kernels of compiled code."""
        return sum(k.seconds for k in self.kernels)

    def table(self, width: int = 120) -> str:
        """Returns the tables as text.

        Args:
            width: Characters of a line.
        """
        return as_text(self.__rich__(), width)

    def __str__(self) -> str:
        return self.table()

    def __rich__(self) -> RenderableType:
        total = max(self.seconds, 1e-12)
        parts: list[RenderableType] = []
        for rows, title in (
            (self.kernels, "kernels of compiled code"), (self.operators, "eager operators"),
        ):  # fmt: skip
            if rows:
                parts.append(kernel_table(rows[:_ROWS], total, self.peaks, _title(rows, title)))
        if self.compiles:
            table = Table("compiled", "ms", title="compiles", title_justify="left",
                          title_style="bold", box=None, pad_edge=False)  # fmt: skip
            for name, seconds in self.compiles:
                table.add_row(name, f"{seconds * 1e3:,.1f}")
            parts.append(table)
        facts = [f"{k}: {v}" for k, v in self._facts().items()]
        return Group(*parts, Text("\n".join(facts)))

    def _facts(self) -> dict[str, str]:
        total = max(self.seconds, 1e-12)
        calls = sum(e.seconds for e in self._of(recorder.CALL))
        eager = sum(k.seconds for k in self.operators)
        compiling = sum(s for _, s in self.compiles)
        facts = {"recorded": f"{self.seconds * 1e3:,.2f} ms, instruments included"}
        if self.steps:
            mean = sum(self.steps) / len(self.steps)
            facts["steps"] = f"{len(self.steps)}, {micro(mean)} us on average"
        parts = {"kernels": self.kernel_seconds, "calls around them": calls - self.kernel_seconds,
                 "eager operators": eager, "compiling": compiling,
                 "other Python": total - calls - eager - compiling}  # fmt: skip
        facts["of it"] = ", ".join(f"{k} {share(max(0.0, v), total)}" for k, v in parts.items())
        if self.peaks is not None:
            facts["machine"] = str(self.peaks)
        return facts

    def html(self) -> str:
        """Returns a page with the tables and a timeline."""
        return page("Profile", self._body())

    def _body(self) -> str:
        total = max(self.seconds, 1e-12)
        body = facts_html(self._facts())
        if self.kernels:
            body += "<h3>Kernels of compiled code</h3>"
            body += kernels_html(self.kernels, total, self.peaks)
        if self.operators:
            body += "<h3>Eager operators</h3>"
            body += kernels_html(self.operators, total, None, first="operator")
        return body + timeline(self.events)

    def _repr_html_(self) -> str:
        return section(self._body())

    def trace(self) -> dict[str, object]:
        """Returns everything as a Chrome trace, which Perfetto opens."""
        return chrome_trace(self.events)

    def save(self, folder: str | Path) -> Path:
        """Writes ``trace_view.json`` (for Perfetto), ``report.html``, ``report.txt``,
        ``kernels.csv`` and ``operators.csv`` into a folder, and returns it.

        Args:
            folder: The folder, which is made if need be.
        """
        folder = Path(folder).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        files = {
            "trace_view.json": trace_text(self.events),
            "report.html": self.html(),
            "report.txt": self.table() + "\n",
            "kernels.csv": kernel_csv(self.kernels),
            "operators.csv": kernel_csv(self.operators),
        }
        for name, text in files.items():
            write_atomically(folder / name, text)
        return folder


def _machine_peaks() -> Peaks:
    from tvmgraph.compiler.measuring.machine import peaks  # here, because it loads TVM's compiler

    return peaks()


def _title(rows: Sequence[KernelTime], title: str) -> str:
    return title if len(rows) <= _ROWS else f"{title} (the longest {_ROWS} of {len(rows)})"


__all__ = ["Summary"]
