"""Archives that tests carry or make."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, folder: Path) -> list[str]:
    """Unpacks a tar file and returns the names in it.

    Args:
        archive: The file; tests made it, or it came with them.
        folder: Where to.
    """
    with tarfile.open(archive) as opened:
        if hasattr(tarfile, "data_filter"):
            opened.extractall(folder, filter="data")
        else:  # Python before 3.11.4
            opened.extractall(folder)
        return opened.getnames()
