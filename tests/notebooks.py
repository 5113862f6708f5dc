"""Keeps ``notebooks/*.ipynb`` in step with their ``.py`` sources.

``python -m tests.notebooks`` writes the notebooks, ``--check`` fails if one is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jupytext
import nbformat

FOLDER = Path(__file__).parent.parent / "notebooks"
SOURCES = sorted(FOLDER.glob("[0-9]*.py"))


def notebook_text(source: Path) -> str:
    """Converts a percent script to the text of a notebook without outputs."""
    notebook = jupytext.read(source)
    for i, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{i}"  # random ids would differ at every conversion
    return nbformat.writes(notebook) + "\n"


def main(check: bool) -> int:
    """Writes or checks every notebook; returns the exit status."""
    stale = []
    for source in SOURCES:
        target, text = source.with_suffix(".ipynb"), notebook_text(source)
        if check and (not target.exists() or target.read_text() != text):
            stale.append(target.name)
        elif not check:
            target.write_text(text)
    if stale:
        print(f"out of date: {', '.join(stale)}; run python -m tests.notebooks")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
