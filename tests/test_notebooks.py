"""Every notebook is in step with its source and runs."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.notebooks import SOURCES, notebook_text, run

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_notebook_is_in_step(source: Path) -> None:
    assert source.with_suffix(".ipynb").read_text() == notebook_text(source)


@pytest.mark.parametrize("extra", ["notebooks", "docs"])
def test_what_notebooks_import_comes_with_the_extra(extra: str) -> None:
    """In a clean environment `tvmgraph[notebooks]` runs them, and `[docs]` builds the site."""
    imported = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            imported |= {name.partition(".")[0] for name in names}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = ["tvmgraph", "tvm", *project["dependencies"], *project["optional-dependencies"][extra]]
    packages = {re.split(r"[\[<>=]", text)[0] for text in needed}
    assert imported - packages - sys.stdlib_module_names == set()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_notebook_runs(source: Path, tmp_path: Path) -> None:
    run(source, tmp_path)
