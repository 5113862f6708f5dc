"""The code of the README and the guides runs, and generated documents are in step with the code."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

import tvmgraph as ms
from tests import error_index
from tvmgraph.cli import passes_table
from tvmgraph.cli.ops_table import markdown
from tvmgraph.passes.table import LEVELS, Pass, passes

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def settings_end_with_the_page() -> Iterator[None]:
    yield
    ms.reset_context()


def test_readme_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    namespace: dict[str, object] = {"__name__": "readme"}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    assert "graph Network(" in capsys.readouterr().out


@pytest.mark.parametrize("page", ["index", "modes", "from-mindspore", "from-pytorch", "from-keras"])
def test_guide_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    program = tmp_path / "guide.py"
    program.write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)))
    monkeypatch.chdir(tmp_path)
    assert runpy.run_path(str(program))


@pytest.mark.filterwarnings("ignore")
def test_every_error_says_what_the_index_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = error_index.PAGE.read_text()
    entries = error_index.ENTRY.findall(text)
    assert len(entries) == text.count("\n### ") > 80
    wrong = [
        title for title, _, cause, said in entries if error_index.message(cause, tmp_path) != said
    ]
    assert not wrong, f"look at the change, then run: python -m tests.error_index ({wrong})"
    assert all(why.strip() for _, why, _, _ in entries)


def test_links_of_the_readme_exist() -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / link).exists(), link


def test_contents_of_the_site_name_every_page() -> None:
    docs = ROOT / "docs"
    named = set((docs / "index.md").read_text().split())
    assert {page.stem for page in docs.glob("*.md")} - {"index"} <= named


def test_operator_document_is_in_step() -> None:
    assert (ROOT / "docs" / "operators.md").read_text() == markdown(), (
        "run: tvmgraph ops --markdown > docs/operators.md"
    )


def test_pass_document_is_in_step() -> None:
    assert (ROOT / "docs" / "passes.md").read_text() == passes_table.markdown(), (
        "run: tvmgraph passes --markdown > docs/passes.md"
    )
    assert _levels_markdown() in (ROOT / "README.md").read_text()


def _levels_markdown() -> str:
    """Returns the table of levels for the README: what each adds to the one before."""
    lines = ["| `jit_level` | passes that it adds | kernels | LLVM |", "|---|---|---|---|"]
    for number, (name, level) in enumerate(LEVELS.items()):
        new = [word for row in passes() for word in _begins(row, name, number)]
        words = ", ".join(f"`{word}`" for word in new) or (
            "none: one operator, one kernel" if number == 0 else "none"
        )
        default = " (default)" if name == "O2" else ""
        lines.append(
            f"| `{name}`{default} | {words} | {level.kernels} | opt-level {level.llvm_opt} |"
        )
    return "\n".join(lines)


def _begins(row: Pass, level: str, number: int) -> list[str]:
    """What a level is the first one to run of a pass, by the words that flags have for it."""
    if row.switches:
        return [switch for switch, first in row.switches if first == number]
    first = min(filter(None, (row.cpu, row.cuda)))
    return [row.name] if number and first == level and not row.when else []
