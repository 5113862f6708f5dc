"""The README's code runs, and the generated documents are in step with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tvmgraph.cli import passes_table
from tvmgraph.cli.ops_table import markdown

ROOT = Path(__file__).parent.parent


def test_readme_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    namespace: dict[str, object] = {"__name__": "readme"}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    assert "graph Network(" in capsys.readouterr().out


def test_links_of_the_readme_exist() -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / link).exists(), link


def test_operator_document_is_in_step() -> None:
    assert (ROOT / "docs" / "operators.md").read_text() == markdown(), (
        "run: tvmgraph ops --markdown > docs/operators.md"
    )


def test_pass_document_is_in_step() -> None:
    assert (ROOT / "docs" / "passes.md").read_text() == passes_table.markdown(), (
        "run: tvmgraph passes --markdown > docs/passes.md"
    )
    assert passes_table.levels_markdown() in (ROOT / "README.md").read_text()
