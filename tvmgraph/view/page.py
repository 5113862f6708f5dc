"""The viewer: one HTML file that needs no network."""

from __future__ import annotations

import html
import json
import linecache
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tvmgraph.errors import file_name
from tvmgraph.view.draw import resource
from tvmgraph.view.model import Model


def viewer_page(models: Sequence[Model], title: str, files: Sequence[str] = ()) -> str:
    """Returns the HTML of a viewer.

    Args:
        models: What :func:`tvmgraph.view.model_of` gave, one per way of grouping.
        title: Heading of the page.
        files: Paths of the user's source files whose names others may have, too.
    """
    lines = excerpts((n["source"] for m in models for n in m["nodes"] if n["source"]), files)
    shown = [{**m, "code": lines if i == 0 else {}} for i, m in enumerate(models)]
    data = json.dumps(shown).replace("</", "<\\/")  # a string must not end the script
    parts = {
        "__TITLE__": html.escape(title),
        "__ELK__": resource("elk.bundled.js").replace("</script", "<\\/script"),
        "__VIEW__": resource("view.js"),
        "__MODELS__": data,
    }
    page = resource("viewer.html")
    for mark, text in parts.items():
        page = page.replace(mark, text)
    return page


class Viewer:
    """A graph to look around in, shown by notebooks in a frame of its own. It needs no network.

    Args:
        models: What :func:`tvmgraph.view.model_of` gave, one per way of grouping.
        title: Heading of the page.
        height: Pixels of the frame.
    """

    def __init__(self, models: Sequence[Model], title: str, height: int = 600) -> None:
        self.models, self.title, self.height = models, title, height

    def html(self, files: Sequence[str] = ()) -> str:
        """Returns the page.

        Args:
            files: Paths of the user's source files whose names others may have, too.
        """
        return viewer_page(self.models, self.title, files)

    def save(self, path: str | Path) -> Path:
        """Writes the page.

        Args:
            path: The file; missing folders are made.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.html(), encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html())}" sandbox="allow-scripts" '
            f'style="width:100%;height:{self.height}px;border:1px solid #8884"></iframe>'
        )


# ---- the user's lines that a graph's nodes name, for pages that are read elsewhere ---------------

_AROUND = 2  # lines before and after

#: Number, text, and whether it is the line itself.
Line = tuple[int, str, bool]


def excerpts(sources: Iterable[str], files: Iterable[str] = ()) -> dict[str, list[Line]]:
    """Returns the code around every ``file.py:line``.

    Args:
        sources: What nodes carry: the name of a file without its folder, and a line.
        files: Paths that count if several loaded files have the same name.

    Returns:
        Lines by source. Files that are not loaded, or whose name several loaded files have, are
        left out.
    """
    known = _loaded_files() | {os.path.basename(f): os.path.realpath(f) for f in files}
    found: dict[str, list[Line]] = {}
    for source in set(sources):
        name, _, number = source.rpartition(":")
        path = known.get(name)
        if path is None or not number.isdigit():
            continue
        at, lines = int(number), linecache.getlines(path)
        window = range(max(1, at - _AROUND), min(len(lines), at + _AROUND) + 1)
        if at in window:
            found[source] = [(i, lines[i - 1].rstrip("\n"), i == at) for i in window]
    return found


def _loaded_files() -> dict[str, str]:
    """Paths of the loaded source files by name; None where a name is not unique."""
    paths = {str(f) for m in list(sys.modules.values()) if (f := getattr(m, "__file__", None))}
    by_name: dict[str, set[str]] = {}
    for path in paths | set(linecache.cache):
        if path.endswith(".py"):
            by_name.setdefault(file_name(path), set()).add(os.path.realpath(path))
    return {name: min(found) for name, found in by_name.items() if len(found) == 1}
