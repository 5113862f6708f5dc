"""Keeps ``notebooks/*.ipynb`` in step with their ``.py`` sources.

``python -m tests.notebooks`` writes the notebooks, ``--check`` fails if one is out of date. What a
notebook shows when it runs is kept in ``.notebooks``, for the site.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import jupytext
import nbclient
import nbformat

FOLDER = Path(__file__).parent.parent / "notebooks"
EXECUTED = FOLDER.parent / ".notebooks"
SOURCES = sorted(FOLDER.glob("[0-9]*.py"))


def notebook_text(source: Path) -> str:
    """Converts a percent script to the text of a notebook without outputs."""
    notebook = jupytext.read(source)
    for i, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{i}"  # random ids would differ at every conversion
    return nbformat.writes(notebook) + "\n"


def run(source: Path, folder: Path) -> Path:
    """Runs a notebook in a folder and keeps it with what it shows; returns where."""
    notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources=resources
    ).execute()
    EXECUTED.mkdir(parents=True, exist_ok=True)
    target = EXECUTED / f"{source.stem}.ipynb"
    target.write_text(nbformat.writes(notebook))
    return target


def executed(source: Path) -> Path:
    """Returns a notebook with what it shows: of an earlier run of the same cells, or run now."""
    target = EXECUTED / f"{source.stem}.ipynb"
    if target.exists():
        texts = [
            [cell["source"] for cell in nbformat.read(p, as_version=4).cells]
            for p in (target, source.with_suffix(".ipynb"))
        ]
        if texts[0] == texts[1]:
            return target
    print(f"running {source.stem}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        return run(source, Path(folder))


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
