"""The user's lines that a graph's nodes name, for pages that are read elsewhere."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterable

from tvmgraph.errors import file_name

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
