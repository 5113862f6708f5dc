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

import html
import itertools
import os
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

_lock = threading.RLock()
_STYLE = (
    "body{font:14px/1.5 system-ui,sans-serif;margin:2em;max-width:72em}"
    "td,th{text-align:left;padding:.2em 1em .2em 0;border-bottom:1px solid #ddd}"
    "pre{background:#f6f8fa;padding:1em;overflow:auto;max-height:40em;font-size:12px}"
    "summary{cursor:pointer;font-weight:600;margin-top:1em}"
)
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
        self.folder = _new_folder(self.root, name)
        self.items: list[_Item] = []

    def add(self, title: str, suffix: str, text: str) -> None:
        """Writes one phase."""
        words = "_".join(title.lower().split())
        file = f"{len(self.items):02d}_{words}.{suffix}"
        write_atomically(self.folder / file, text)
        self.items.append(_Item(title, file, text))

    def finish(self, facts: dict[str, str], seconds: dict[str, float]) -> None:
        """Writes the indexes."""
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
        spent = "".join(f"<tr><td>{esc(p)}<td>{s * 1e3:.1f} ms" for p, s in seconds.items())
        parts = [
            f"<details><summary>{esc(i.title)} ({i.lines} lines)</summary>"
            f'<p><a href="{esc(i.file)}">{esc(i.file)}</a></p>'
            f"<pre>{esc(i.text[:_EMBED_LIMIT])}</pre></details>"
            for i in self.items
        ]
        return _page(self.name, f"<table>{known}{spent}</table>{''.join(parts)}")


def _page(title: str, body: str) -> str:
    title = html.escape(title)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style><h1>{title}</h1>{body}</html>\n"
    )


def _new_folder(root: Path, name: str) -> Path:
    """Makes the next numbered folder; processes that share a root do not collide."""
    root.mkdir(parents=True, exist_ok=True)
    taken = [int(p.name[:4]) for p in root.iterdir() if p.is_dir() and p.name[:4].isdigit()]
    for number in itertools.count(max(taken, default=0) + 1):
        folder = root / f"{number:04d}_{name}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError  # the count never ends


def _write_root_index(root: Path) -> None:
    folders = sorted(p.name for p in root.iterdir() if (p / "index.html").exists())
    rows = "".join(
        f'<li><a href="{html.escape(f)}/index.html">{html.escape(f)}</a>' for f in folders
    )
    write_atomically(root / "index.html", _page("Compiled graphs", f"<ul>{rows}</ul>"))


def write_atomically(path: Path, text: str) -> None:
    """Writes a file so that a reader sees the old or the new one, never half of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}")
    os.chmod(temporary, 0o666 & ~_umask())  # as readable as any other file of the user
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    with _lock:  # reading it means setting it
        mask = os.umask(0o077)
        os.umask(mask)
    return mask
