"""What tests of several files of this folder need."""

import pytest

from tvmgraph.compiler.cache import disk
from tvmgraph.compiler.compile import clear_cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache on disk, and none in memory."""
    monkeypatch.setenv(disk.FOLDER_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(disk.LIMIT_VARIABLE, raising=False)
    clear_cache()
    yield tmp_path / "cache"
    clear_cache()
