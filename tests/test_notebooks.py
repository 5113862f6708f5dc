"""Every notebook is in step with its source and runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks import SOURCES, notebook_text, run


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_notebook_is_in_step(source: Path) -> None:
    assert source.with_suffix(".ipynb").read_text() == notebook_text(source)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_notebook_runs(source: Path, tmp_path: Path) -> None:
    run(source, tmp_path)
