"""save_graphs: what is written at every level, and that the index leads to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, jit, ops
from tvmgraph.graph import parse

TITLES = {
    1: ["captured_graph.txt", "canonicalize.txt", "simplify.txt", "simplified_graph.txt"],
    2: ["relax.py", "relax_fused.py"],
    3: ["kernels_chosen.txt", "tir_scheduled.py", "vm_program.txt", "llvm.ll", "assembly.s"],
}


@pytest.fixture(autouse=True)
def fresh_context() -> Iterator[None]:
    yield
    ms.reset_context()


def function(x: Tensor) -> Tensor:
    return ops.tanh(x * 1.0) + 0.5


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def files(folder: Path) -> list[str]:
    return [re.sub(r"^\d\d_", "", p.name) for p in sorted(folder.glob("[0-9][0-9]_*"))]


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_every_level_writes_what_it_says(level: int, tmp_path: Path) -> None:
    ms.set_context(save_graphs=level, save_graphs_path=str(tmp_path / "out"))
    jit(function)(ones(2, 3))
    folders = sorted(p for p in (tmp_path / "out").glob("*") if p.is_dir())
    assert len(folders) == (1 if level else 0)
    if not level:
        return
    expected = [name for n in range(1, level + 1) for name in TITLES[n]]
    assert sorted(files(folders[0])) == sorted(expected)
    assert folders[0].name == "0001_function"
    for name in ("index.html", "index.md"):
        index = (folders[0] / name).read_text()
        for path in folders[0].glob("[0-9]*"):
            assert path.name in index
        assert "codegen" in index
    assert "0001_function/index.html" in (tmp_path / "out" / "index.html").read_text()


def test_phases_hold_what_they_claim(tmp_path: Path) -> None:
    ms.set_context(save_graphs=3, save_graphs_path=str(tmp_path))
    f = jit(function)
    f(ones(2, 3))
    (folder,) = (p for p in tmp_path.glob("*") if p.is_dir())
    text = {re.sub(r"^\d\d_", "", p.name): p.read_text() for p in folder.glob("[0-9]*")}
    captured = parse(text["captured_graph.txt"])
    assert [n.op.name for n in captured.nodes] == ["mul", "tanh", "add"]
    assert [n.op.name for n in parse(text["simplified_graph.txt"]).nodes] == ["tanh", "add"]
    assert "R.add" in text["relax.py"]
    (kernel,) = f.kernels()
    assert kernel not in text["relax.py"]
    for name in ("relax_fused.py", "tir_scheduled.py", "vm_program.txt", "llvm.ll", "assembly.s"):
        assert kernel in text[name]
    assert "define" in text["llvm.ll"]


def test_an_equal_graph_is_written_again(tmp_path: Path) -> None:
    jit(function)(ones(4))
    ms.set_context(save_graphs=True, save_graphs_path=str(tmp_path))
    jit(function)(ones(4))
    jit(function)(ones(5))
    assert sorted(p.name for p in tmp_path.glob("0*")) == ["0001_function", "0002_function"]


def test_flag_writes_too(tmp_path: Path) -> None:
    ms.set_context(save_graphs_path=str(tmp_path))
    with ms.flags(save_graphs=1):
        jit(function)(ones(6))
    jit(function)(ones(7))
    assert len(list(tmp_path.glob("0*"))) == 1


def test_a_graph_that_fails_to_compile_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("refused")

    monkeypatch.setattr(ops.sinh.op, "lower", refuse)
    ms.set_context(save_graphs=1, save_graphs_path=str(tmp_path))
    with pytest.raises(ms.errors.CompileError, match="refused"):
        jit(lambda x: ops.sinh(x))(ones(2))
    (folder,) = tmp_path.glob("0*")
    assert "sinh" in (folder / "00_captured_graph.txt").read_text()
    assert "refused" in (folder / "index.html").read_text()
    assert folder.name in (tmp_path / "index.html").read_text()
