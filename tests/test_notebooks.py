"""Every notebook is in step with its source and runs."""

from __future__ import annotations

from pathlib import Path

import nbclient
import nbformat
import pytest

from tests.notebooks import SOURCES, notebook_text


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_notebook_is_in_step(source: Path) -> None:
    assert source.with_suffix(".ipynb").read_text() == notebook_text(source)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_notebook_runs(source: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources=resources
    ).execute()
