"""Whose files the caches believe."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import xxhash

from tvmgraph import Tensor, jit, ops
from tvmgraph.compiler.cache import disk
from tvmgraph.compiler.compile import clear_cache
from tvmgraph.compiler.tuning import database as tuning
from tvmgraph.runtime import trust

pytestmark = pytest.mark.skipif(
    disk.linker() is None or not hasattr(os, "geteuid"), reason="nothing is kept here"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache, which is not there yet."""
    path = tmp_path / "above" / "cache"
    monkeypatch.setenv(disk.FOLDER_VARIABLE, str(path))
    monkeypatch.setattr(trust, "_said", set())
    return path


def compiled() -> str:
    """Compiles and runs one function; returns what the cache on disk did."""
    clear_cache()
    f = jit(lambda x: ops.exp(x) * 3 - 1)
    x = np.linspace(0, 1, 12).astype(np.float32)
    assert np.allclose(f(Tensor(x)).asnumpy(), np.exp(x) * 3 - 1, atol=1e-5)
    return f.history[-1].disk


def entry(folder: Path) -> Path:
    [path] = folder.glob("*.so")
    return path


def test_the_folder_is_private_whatever_the_umask(folder: Path) -> None:
    for mask in (0, 0o777):
        made = folder.with_name(f"for mask {mask}") / "inside" / "cache"
        before = os.umask(mask)
        try:
            trust.make_folder(made)
        finally:
            os.umask(before)
        for each in (made, *made.parents[:3]):
            assert each.stat().st_mode & 0o777 == 0o700
    assert compiled() == "kept" and compiled() == "loaded"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert entry(folder).stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_used_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.parent.write_text("a file")
    assert "nothing can be written" in str(disk.why_unwritten())
    assert compiled().startswith("not kept")
    folder.parent.unlink()
    assert disk.why_unwritten() is None
    monkeypatch.setenv(disk.FOLDER_VARIABLE, os.fsdecode(bytes(folder) + b"\xff"))
    assert "no UTF-8 text" in str(disk.why_unwritten())
    assert "no UTF-8 text" in compiled()


def distrust_mode(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o002)


def distrust_link(path: Path) -> None:
    moved = path.with_name(f"moved-{path.name}")
    path.rename(moved)
    path.symlink_to(moved)


def distrust_owner(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(path, 4711, 4711)


@pytest.mark.parametrize("spoil", [distrust_mode, distrust_link, distrust_owner])
def test_folders_and_entries_of_others_are_not_used(folder: Path, spoil: object) -> None:
    assert compiled() == "kept"
    spoil(entry(folder))  # pyright: ignore[reportCallIssue]
    with pytest.warns(UserWarning, match="not used: .*so"):
        assert compiled() == "kept"  # compiled, and written anew
    assert compiled() == "loaded"
    spoil(folder)  # pyright: ignore[reportCallIssue]
    with pytest.warns(UserWarning, match="not used: .*cache"):
        assert compiled().startswith("not kept: ")
    with warnings.catch_warnings():  # which is said once
        warnings.simplefilter("error")
        assert compiled().startswith("not kept: ")


def test_a_pipe_in_place_of_an_entry_is_not_waited_for(folder: Path) -> None:
    assert compiled() == "kept"
    path = entry(folder)
    path.unlink()
    os.mkfifo(path, 0o600)
    with pytest.warns(UserWarning, match="not used: .* is neither a file nor a folder"):
        assert compiled() == "kept"
    assert compiled() == "loaded"


def rewritten(content: bytes, facts: bytes) -> bytes:
    """An entry with another description and the checksum that fits it."""
    content, key = content[:-32], content[-32:]
    size = int.from_bytes(content[-len(disk._MAGIC) - 8 : -len(disk._MAGIC)], "little")
    body = content[: -disk._TAIL - size] + facts
    size = len(facts).to_bytes(8, "little")
    return body + xxhash.xxh3_128(body).digest() + size + disk._MAGIC + key


@pytest.mark.parametrize(
    "facts",
    [b"[]", b"{}", b"1", b"{", b"\xff", b'{"payload": 0}', b'{"payload": -5, "kernels": []}',
     b'{"payload": "x", "kernels": [], "native": true}',
     b'{"payload": 99999999, "kernels": [], "native": true}',
     b'{"payload": 0, "kernels": 7, "native": true}'],
)  # fmt: skip
def test_an_entry_with_a_wrong_description_is_compiled_again(folder: Path, facts: bytes) -> None:
    assert compiled() == "kept"
    path = entry(folder)
    content = path.read_bytes()
    path.unlink()  # this process has it mapped
    path.write_bytes(rewritten(content, facts))
    path.chmod(0o600)
    assert compiled() == "kept"
    assert compiled() == "loaded"


def test_records_of_others_are_not_used(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tuning.Record("kernel", 1, {}, 2.0, 1.0, 3)
    tuning.keep("key", record)
    place = folder / "tuning"
    assert tuning.find("key") == record
    assert place.stat().st_mode & 0o777 == 0o700
    distrust_mode(place / "key.json")
    with pytest.warns(UserWarning, match="others may write"):
        assert tuning.find("key") is None
    tuning.keep("key", record)
    assert tuning.find("key") == record
    distrust_mode(place)
    with pytest.warns(UserWarning, match="others may write"):
        assert tuning.find("key") is None
