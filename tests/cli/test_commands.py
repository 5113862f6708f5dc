"""What all commands have in common: options, JSON, completion, exit statuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

import tvmgraph as ms
from tvmgraph.cli import app
from tvmgraph.cli.guard import guarded
from tvmgraph.cli.model_argument import parse_input
from tvmgraph.errors import ArgumentError, CompileError

ROOT = Path(__file__).parent.parent.parent

PROGRAM = """
import numpy as np
from tvmgraph import Tensor, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(8, 4)

    def construct(self, x):
        return ops.relu(self.dense(x))


def split(x):
    y = ops.exp(x)
    print("sum", y.asnumpy().sum())
    return y * 2.0


example_inputs = [Tensor(np.ones((4, 8), np.float32))]
example_calls = [(Tensor(np.ones((n, 8), np.float32)),) for n in (4, 6)]
"""


def call(*args: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in args])


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "net.py").write_text(PROGRAM)
    return str(tmp_path / "net.py")


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its path; groups are left out."""
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        inner = getattr(command, "commands", {"": command})
        yield from ((f"{name} {sub}".strip(), c) for sub, c in inner.items())


def test_one_style_of_options() -> None:
    """Equal options have equal names and short names; every command has --json; all have help."""
    forms: dict[str, set[tuple[str, ...]]] = {}
    for path, command in commands():
        options = {p.name: p for p in command.params if p.param_type_name == "option"}
        assert "json" in options, f"tvmgraph {path} has no --json"
        assert command.help, path
        for name, option in options.items():
            assert option.help or name == "help", f"tvmgraph {path} --{name} has no help"
            forms.setdefault(name, set()).add(tuple(option.opts))
            assert all(re.fullmatch(r"--[a-z-]+|-[a-z]", o) for o in option.opts), option.opts
    assert not {name: found for name, found in forms.items() if len(found) > 1}


def test_every_command_is_documented() -> None:
    text = (ROOT / "docs" / "command-line.md").read_text()
    missing = [path for path, _ in commands() if f"`tvmgraph {path}" not in text]
    assert not missing


def test_a_file_that_calls_its_functions_is_explained_as_it_is(tmp_path: Path) -> None:
    """Without inputs nothing is called again; what was never called asks for some."""
    code = PROGRAM.partition("example_inputs")[0].replace("def split", "@jit\ndef split")
    file = tmp_path / "calls.py"
    file.write_text(f"from tvmgraph import jit\n{code}")
    refused = call("explain", f"{file}:split")
    assert refused.exit_code == 2 and "add --input" in refused.stderr
    file.write_text(f"{file.read_text()}\nsplit(Tensor(np.ones((4, 8), np.float32)))\n")
    found = call("explain", f"{file}:split", "--json")
    assert found.exit_code == 0 and "print(" in json.loads(found.stdout)["text"]


def test_version() -> None:
    assert call("--version").output == f"tvmgraph {ms.__version__}\n"


def test_completion() -> None:
    """Names of commands, and values of options, are completed by the shells' own means."""
    env = {"_TVMGRAPH_COMPLETE": "complete_bash", "COMP_CWORD": "1", "COMP_WORDS": "tvmgraph expl"}
    assert CliRunner().invoke(app, prog_name="tvmgraph", env=env).output.split() == ["explain"]
    env |= {"COMP_CWORD": "3", "COMP_WORDS": "tvmgraph compile --target x86"}
    found = CliRunner().invoke(app, prog_name="tvmgraph", env=env).output.split()
    assert "x86-64-v3" in found
    env |= {"COMP_CWORD": "2", "COMP_WORDS": "tvmgraph ops log_soft"}
    found = CliRunner().invoke(app, prog_name="tvmgraph", env=env).output.split()
    assert "log_softmax" in found


JSON: list[tuple[tuple[str, ...], set[str]]] = [
    (("cache", "info"), {"folder", "executables", "bytes", "limit_bytes", "off_because"}),
    (("cache", "kernels"), set()),
    (("ops", "log_softmax"), {"name", "family", "lower", "vjp", "onnx", "samples"}),
    (("passes",), {"name", "takes", "cpu", "gpu", "why"}),
    (("flags",), {"name", "variable", "value", "meanings"}),
    (("check", "log_softmax", "--level", "O1"), {"samples", "failures", "ran"}),
    (("bench", "FILE:Net", "--repeat", "2"), {"name", "median_ms", "calls", "ratio_to_tvmgraph"}),
    (("explain", "FILE:split"), {"compiles", "text"}),
    (("show", "FILE:Net", "--no-kernels", "-o", "FILE.html"), {"path"}),
    (("export", "FILE:Net", "-o", "FILE.onnx"), {"path", "bytes"}),
    (("why", "FILE:Net"), {"compiles", "breaks", "call", "kernels", "advice"}),
    (("why", "FILE:split"), {"compiles", "breaks", "call", "kernels", "advice"}),
]


@pytest.mark.parametrize(("args", "keys"), JSON, ids=[" ".join(a) for a, _ in JSON])
def test_json(args: tuple[str, ...], keys: set[str], program: str) -> None:
    """The whole output is JSON with these keys, whatever a user's file prints."""
    found = call(*(a.replace("FILE", program) for a in args), "--json")
    assert found.exit_code == 0, found.output
    value = json.loads(found.stdout)
    first = value[0] if isinstance(value, list) and value else value
    assert keys <= set(first)


@pytest.mark.parametrize(
    ("raised", "status"),
    [(None, 0), (CompileError("no"), 1), (ArgumentError("no"), 2), (FileNotFoundError("x"), 2),
     (KeyboardInterrupt(), 130)],
)  # fmt: skip
def test_exit_statuses(raised: BaseException | None, status: int) -> None:
    one = typer.Typer()

    @one.command()
    @guarded
    def run() -> None:
        if raised is not None:
            raise raised

    found = CliRunner().invoke(one)
    assert found.exit_code == status
    assert f"| {status} |" in (ROOT / "docs" / "command-line.md").read_text()


@pytest.mark.parametrize(
    ("text", "name", "shape", "dtype"),
    [
        ("8x3", "", (8, 3), "float32"),
        ("8", "", (8,), "float32"),
        ("8x3:int32", "", (8, 3), "int32"),
        ("x:8x3", "x", (8, 3), "float32"),
        ("x:8", "x", (8,), "float32"),
        ("x:", "x", (), "float32"),
        ("x:8x3:int32", "x", (8, 3), "int32"),
        ("float16[8,3]", "", (8, 3), "float16"),
        ("x:bool[8, 3]", "x", (8, 3), "bool"),
        ("int64[]", "", (), "int64"),
    ],
)
def test_inputs(text: str, name: str, shape: tuple[int, ...], dtype: str) -> None:
    found, tensor = parse_input(text)
    assert (found, tensor.shape, tensor.aval.dtype.name) == (name, shape, dtype)


@pytest.mark.parametrize("text", ["x:2x-3", "float32[8", "8]", "x:y:z:8", "float3[8]", "a:b[8]"])
def test_inputs_that_are_none(text: str) -> None:
    with pytest.raises(ArgumentError, match="is no input"):
        parse_input(text)


def test_sizes_that_vary() -> None:
    for text in ("x:?x4", "float32[?,4]", "?x4"):
        assert not parse_input(text)[1].aval.is_static
    assert str(parse_input("x:batchx4")[1].aval) == "float32[batch,4]"


def test_output_that_nobody_reads() -> None:
    """A closed pipe, as in `tvmgraph flags | head -1`, ends a command without a word."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "tvmgraph", "ops", "--json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, env=env, check=False)
    os.close(write)
    assert (ran.returncode, ran.stderr) == (1, b"")


def test_sizes_that_vary_are_not_called(program: str) -> None:
    for command in ("why", "explain", "show"):
        found = call(command, f"{program}:Net", "--input", "?x8")
        assert found.exit_code == 2
        assert "placeholder float32[any_0,8] has no elements" in found.output


def test_an_error_without_a_line_names_the_cell(program: str, tmp_path: Path) -> None:
    file = str(tmp_path / "net.onnx")
    assert call("export", f"{program}:Net", "-o", file).exit_code == 0
    found = call("bench", file, "-i", "3x5")
    assert found.exit_code == 2
    assert "\n  at:  (in OnnxCell)" in found.output
