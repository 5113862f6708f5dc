"""Reads MATLAB's files, in which some sets of data keep their labels, by SciPy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tvmgraph.dataset.loaders.table import existing
from tvmgraph.errors import ArgumentError, reject


def read_matlab(op: str, path: Path) -> Mapping[str, np.ndarray]:
    """Returns the variables of a file by name, as ``scipy.io.loadmat`` does.

    Args:
        op: Name of the dataset.
        path: The file.

    Raises:
        ArgumentError: if there is no such file, or one of another format.
    """
    from scipy.io import loadmat  # pyright: ignore[reportUnknownVariableType]

    try:
        return loadmat(existing(op, path))
    except (ValueError, TypeError, NotImplementedError) as e:  # the last: HDF5, level 7.3
        reject(ArgumentError, op, f"{path} is no MATLAB file of level 5: {e}",
               fix="save it in MATLAB with the option -v7")  # fmt: skip
