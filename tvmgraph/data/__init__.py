"""Data shipped with the package."""

from __future__ import annotations

import importlib.resources
import lzma
import tomllib
from typing import Any

import numpy as np

ATTRIBUTION = (
    "Optical Recognition of Handwritten Digits (test set, 1,797 images of 8x8 pixels, values 0 to "
    "16), E. Alpaydin and C. Kaynak, 1998, UCI Machine Learning Repository, "
    "https://doi.org/10.24432/C50P49, licensed CC BY 4.0."
)


def table(file: str) -> Any:
    """Returns what a TOML file of the package holds.

    Args:
        file: Its path below the package.
    """
    path = importlib.resources.files("tvmgraph") / file
    return tomllib.loads(path.read_text(encoding="utf-8"))


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Returns the UCI handwritten digits.

    Returns:
        Images, uint8 of shape (1797, 8, 8) with values 0 to 16, and labels, int32 of shape
        (1797,) with values 0 to 9.

    Reference:
        See :data:`ATTRIBUTION`.
    """
    path = importlib.resources.files("tvmgraph") / "data" / "digits.npz"
    with path.open("rb") as file, np.load(file) as archive:
        return archive["images"], archive["labels"].astype(np.int32)


def load_alice() -> str:
    """Returns the text of *Alice's Adventures in Wonderland*, for models of characters.

    Returns:
        About 144,000 characters, 70 different ones, all ASCII; chapters are separated by blank
        lines.

    Reference:
        Lewis Carroll, 1865; in the public domain. See ``ATTRIBUTION.md``.
    """
    path = importlib.resources.files("tvmgraph") / "data" / "alice.txt.xz"
    return lzma.decompress(path.read_bytes()).decode("ascii")
