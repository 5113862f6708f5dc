"""Data shipped with the package."""

from __future__ import annotations

import importlib.resources

import numpy as np

ATTRIBUTION = (
    "Optical Recognition of Handwritten Digits (test set, 1,797 images of 8x8 pixels, values 0 to "
    "16), E. Alpaydin and C. Kaynak, 1998, UCI Machine Learning Repository, "
    "https://doi.org/10.24432/C50P49, licensed CC BY 4.0."
)


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
