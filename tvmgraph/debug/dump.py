"""Dump: one folder per compile with a file per phase and an index to read them by.

::

    save_graphs_path/
      index.html                 every compile of this process
      0001_Net/
        index.html, index.md     the phases in order, their time, what changed
        00_captured_graph.txt
        01_simplified_graph.txt
        02_relax.py ...
"""

from __future__ import annotations

import contextlib
import difflib
import html
import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tvmgraph import forking, partial
from tvmgraph.core.notebook import style

_lock = forking.rlock()
#: What the results are, for people who meet them for the first time.
_MEANING = {
    "captured graph": "your code as a graph, with your lines",
    "simplified graph": "what is lowered",
    "Relax": "the graph in TVM's terms, one operator per node",
    "Relax fused": "operators that became one kernel; the kernels as naive loops",
    "TIR scheduled": "the loops as they run: tiled, vectorized, parallel",
    "VM program": "how the kernels are called",
    "LLVM": "the code that LLVM gets",
    "assembly": "the machine code",
}
_SHOWN = ("operators", "kernels", "jit_level", "compile time")
_EMBED_LIMIT = 400_000  # characters of one phase shown in the index; the file holds everything


@dataclass(frozen=True)
class _Item:
    title: str
    file: str
    text: str

    @property
    def lines(self) -> int:
        return self.text.count("\n") + 1


class Dump:
    """The files of one compile.

    Args:
        root: ``save_graphs_path``.
        name: Name of the graph.
    """

    def __init__(self, root: str | os.PathLike[str], name: str) -> None:
        self.root = Path(root)
        self.name = name
        self.root.mkdir(parents=True, exist_ok=True)
        folders = (p.name[:4] for p in self.root.iterdir() if p.is_dir())
        first = max((int(number) for number in folders if number.isdigit()), default=0) + 1
        self.folder = new_folder(self.root / f"{i:04d}_{name}" for i in itertools.count(first))
        self.items: list[_Item] = []

    def add(self, title: str, suffix: str, text: str) -> None:
        """Writes one phase.

        Args:
            title: Name of the phase.
            suffix: Suffix of its file.
            text: What the file holds.
        """
        words = "_".join(title.lower().split())
        file = f"{len(self.items):02d}_{words}.{suffix}"
        write_atomically(self.folder / file, text)
        self.items.append(_Item(title, file, text))

    def finish(self, facts: dict[str, str], seconds: dict[str, float]) -> None:
        """Writes the indexes.

        Args:
            facts: What the index says of the graph, by name.
            seconds: How long each phase took, by title.
        """
        write_atomically(self.folder / "index.md", self._markdown(facts, seconds))
        write_atomically(self.folder / "index.html", self._html(facts, seconds))
        with _lock:
            _write_root_index(self.root)

    def _markdown(self, facts: dict[str, str], seconds: dict[str, float]) -> str:
        lines = [f"# {self.name}", ""]
        lines += [f"- {key}: {value}" for key, value in facts.items()]
        lines += ["", "| phase | ms |", "|---|---|"]
        lines += [f"| {phase} | {spent * 1e3:.1f} |" for phase, spent in seconds.items()]
        lines += ["", "| result | lines |", "|---|---|"]
        lines += [f"| [{i.title}]({i.file}) | {i.lines} |" for i in self.items]
        return "\n".join([*lines, ""])

    def _html(self, facts: dict[str, str], seconds: dict[str, float]) -> str:
        esc = html.escape
        known = "".join(f"<tr><td>{esc(k)}<td>{esc(v)}" for k, v in facts.items())
        longest = max(seconds.values(), default=0.0) or 1.0
        spent = "".join(
            f'<tr><td>{esc(p)}<td class="n">{s * 1e3:.1f} ms'
            f'<td><span class="bar" style="width:{12 * s / longest:.2f}em"></span>'
            for p, s in seconds.items()
        )
        before: _Item | None = None
        parts = []
        for item in self.items:
            parts.append(_section(item, before))
            before = item if item.file.endswith(".txt") else None
        return _page(
            self.name, f'<p><a href="../index.html">all compiles</a></p><table>{known}</table>'
            f"<table>{spent}</table>{''.join(parts)}",
        )  # fmt: skip


def _section(item: _Item, before: _Item | None) -> str:
    """One result: its meaning, its text, and how it differs from the graph before it."""
    esc = html.escape
    meaning = _MEANING.get(item.title, "")
    body, changed = esc(item.text[:_EMBED_LIMIT]), ""
    if before is not None and len(item.text) < _EMBED_LIMIT:
        old, new = before.text.splitlines(), item.text.splitlines()
        lines = list(difflib.unified_diff(old, new, n=len(old) + len(new), lineterm=""))[3:]
        added = sum(line.startswith("+") for line in lines)
        gone = sum(line.startswith("-") for line in lines)
        changed = f", +{added} -{gone}" if lines else ", unchanged"
        if lines:
            mark = {"+": "<ins>{}</ins>", "-": "<del>{}</del>"}
            body = "\n".join(mark.get(t[:1], "{}").format(esc(t)) for t in lines)
    return (
        f"<details><summary>{esc(item.title)} <small>{esc(meaning)} ({item.lines} lines{changed}) "
        f'<a href="{esc(item.file)}">{esc(item.file)}</a></small></summary>'
        f"<pre>{body}</pre></details>"
    )


def _page(title: str, body: str) -> str:
    title = html.escape(title)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{style('debug/dump.css')}</style><h1>{title}</h1>{body}</html>\n"
    )


def new_folder(names: Iterator[Path]) -> Path:
    """Makes the first folder that is not there yet; processes that do so do not collide.

    Args:
        names: Its possible paths, without end.
    """
    for folder in names:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(parents=True)
            return folder
    raise AssertionError  # they never end


def _write_root_index(root: Path) -> None:
    rows = []
    for folder in sorted(p for p in root.iterdir() if (p / "index.md").exists()):
        known = re.findall(r"^- ([^:]+): (.*)$", (folder / "index.md").read_text(), re.MULTILINE)
        facts = dict(known)
        cells = "".join(f'<td class="n">{html.escape(facts.get(k, ""))}' for k in _SHOWN)
        name = html.escape(folder.name)
        rows.append(f'<tr><td><a href="{name}/index.html">{name}</a>{cells}')
    heads = "".join(f"<th>{h}" for h in ("compile", *_SHOWN))
    write_atomically(
        root / "index.html", _page("Compiled graphs", f"<table><tr>{heads}{''.join(rows)}</table>")
    )


def write_atomically(path: Path, text: str) -> None:
    """Writes a file so that a reader sees the old or the new one, never half of it.

    Args:
        path: The file.
        text: What it holds.
    """
    mode = 0o666 & ~_umask()  # as readable as any other file of the user
    with partial.replacing(path, mode) as part:
        part.write_text(text, encoding="utf-8")


def _umask() -> int:
    with _lock:  # reading it means setting it
        mask = os.umask(0o077)
        os.umask(mask)
    return mask
