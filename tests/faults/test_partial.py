"""What killed writers leave beside the files that they wrote is deleted by later writers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn, partial
from tvmgraph.debug.dump import write_atomically

_KILLED = """
import os, signal, sys
from pathlib import Path
from tests.faults.test_partial import _write

os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # the last step of every write
_write(sys.argv[1], Path(sys.argv[2]))
"""


def _write(kind: str, path: Path) -> None:
    net, x = nn.Dense(2, 2), Tensor(np.ones((1, 2), np.float32))
    if kind == "checkpoint":
        ms.save_checkpoint(net, str(path))
    elif kind == "dump":
        write_atomically(path, "text")
    else:
        ms.export(net, x, file_name=path, file_format=kind)


def _left(folder: Path) -> list[Path]:
    return [p for p in folder.iterdir() if ".part-" in p.name]


@pytest.mark.parametrize("kind", ["checkpoint", "dump", "ONNX", "GRAPH"])
def test_leftovers_of_killed_writers_go(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    program = [sys.executable, "-c", _KILLED, kind, str(path)]
    done = subprocess.run(program, capture_output=True, check=False, timeout=120)
    assert done.returncode == -9, done.stderr
    (left,) = _left(tmp_path)
    _write(kind, path)
    assert _left(tmp_path) == [left]  # it is young
    past = time.time() - 2 * partial.AGE
    os.utime(left, (past, past))
    monkeypatch.setattr(partial, "_swept", {})
    _write(kind, path)
    assert _left(tmp_path) == []


def test_files_of_living_writers_and_of_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [
        partial.prefix("a") + "x",  # of this process
        f".b.part-00000000-{2**22 + 1}-y",  # of another machine
        f".{'c' * 8}.part-{partial._HOST}-no-z", "d.part-", "e",
    ]  # fmt: skip
    past = time.time() - 2 * partial.AGE
    for name in names:
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (past, past))
    monkeypatch.setattr(partial, "_swept", {})
    partial.sweep(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == set(names)


def test_an_error_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyError), partial.replacing(path) as part:
        part.write_text("new")
        raise KeyError
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["a" * 250 + ".ckpt", "\u00fc" * 120 + ".ckpt"])
def test_names_may_be_as_long_as_the_system_allows(name: str, tmp_path: Path) -> None:
    _write("checkpoint", tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == [name]
