"""The recipes of docs/contributing.md, followed literally, each in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from tvmgraph.capture import record
from tvmgraph.compiler import pipeline
from tvmgraph.config.options import CompileOptions
from tvmgraph.core.tensor import Tensor
from tvmgraph.lowering import lower
from tvmgraph.machine import targets

DOCS = Path(__file__).parent.parent / "docs"
RECIPES = re.findall(
    r"^## ([^\n]*)\n(?:(?!^## ).)*?```(python|toml)\n(.*?)```",
    (DOCS / "contributing.md").read_text(), re.DOTALL | re.MULTILINE,
)  # fmt: skip
PROGRAMS = {title: text for title, language, text in RECIPES if language == "python"}
HEADINGS = re.findall(r"^## (.*)$", (DOCS / "contributing.md").read_text(), re.MULTILINE)


def test_every_recipe_is_followed() -> None:
    assert [title for title, _, _ in RECIPES] == HEADINGS
    assert len(PROGRAMS) == len(HEADINGS) - 1


@pytest.mark.parametrize("title", PROGRAMS)
def test_recipe(title: str, tmp_path: Path) -> None:
    program = tmp_path / "recipe.py"
    program.write_text(PROGRAMS[title])
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_recipe_of_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = (text for _, language, text in RECIPES if language == "toml")
    known = MappingProxyType({**targets.target_table(), **tomllib.loads(text)})
    monkeypatch.setattr("tvmgraph.machine.targets.target_table", lambda: known)
    graph = record(lambda x: x @ x, Tensor(np.ones((32, 32), np.float32)))
    options = CompileOptions(target="x86-64-v3-small")
    assert pipeline.build(lower(graph), options).kernels


@pytest.mark.parametrize("page", ["architecture.md", "contributing.md"])
def test_links_exist(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (DOCS / page).read_text())
    assert all((DOCS / link).exists() for link in links), links


def test_rooms_of_the_picture_exist() -> None:
    picture = (DOCS / "architecture.md").read_text().split("```")[1]
    paths = re.findall(r"\b((?:\w+/)+(?:\w+\.py)?)", picture)
    package = DOCS.parent / "tvmgraph"
    missing = [p for p in paths if not (package / p).exists() and p != "cache/disk.py"]
    assert not missing
    assert len(paths) > 20
