"""`tvmgraph new` and `tvmgraph why`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.test_commands import PROGRAM, ROOT
from tvmgraph.cli import app
from tvmgraph.cli.why import examine


def test_a_new_project_runs(tmp_path: Path) -> None:
    """Its own test passes: training, both exports, compiled against eager; and `why` reads it."""
    found = CliRunner().invoke(app, ["new", str(tmp_path / "my-digits")])
    assert found.exit_code == 0, found.output
    assert "python -m my_digits.train" in found.output
    folder = tmp_path / "my-digits"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}  # those are of this run
    command = [sys.executable, "-m", "my_digits.export"]
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert "no my_digits.ckpt: python -m my_digits.train writes it" in ran.stderr
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"]  # as `pytest`
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for lint in (("check",), ("format", "--check", "--line-length", "100")):
        command = [sys.executable, "-m", "ruff", *lint, "--isolated", "."]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if "No module named ruff" not in ran.stderr:
            assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [("1digits", "cannot be the name"), ("class", "cannot be the name"),
     ("tvmgraph", "is taken"), ("numpy", "is taken"), ("json", "is taken"),
     ("full", "is there already")],
)  # fmt: skip
def test_names_that_are_refused(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    found = CliRunner().invoke(app, ["new", str(tmp_path / name)])
    assert found.exit_code == 2
    assert message in found.output


def test_why_names_compiles_kernels_and_advice(tmp_path: Path) -> None:
    file = tmp_path / "why_net.py"
    file.write_text(PROGRAM)
    found = examine(f"{file}:Net", [], "", 1000)
    assert [r.why for r in found.compiles] == [
        "first call", "argument 'x': float32[4,8] -> float32[6,8]",
    ]  # fmt: skip
    assert {k.taken_by for k in found.kernels} - {""}
    gains = [item.gain_ms for item in found.advice]
    assert gains == sorted(gains, reverse=True)
    again = [item for item in found.advice if item.per == "process"]
    assert "float32[4,8] -> float32[6,8]" in again[0].because
    assert "dynamic" in again[0].do


def test_why_names_breaks(tmp_path: Path) -> None:
    file = tmp_path / "why_split.py"
    file.write_text(PROGRAM)
    shown = CliRunner().invoke(app, ["why", f"{file}:split", "--input", "3x8"])
    assert shown.exit_code == 0, shown.output
    assert "asnumpy() needs the value of a tensor" in shown.output
    assert "return the tensor and convert it there" in shown.output.partition("What to change")[2]
