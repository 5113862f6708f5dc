"""Pictures by matplotlib (the extra ``plot``): curves of training, confusion matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvmgraph.errors import ArgumentError, NotFoundError, reject

_CONTRAST = 0.5  # of the largest value: from here on numbers are white


def _axes(ax: object, op: str) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as e:
        raise NotFoundError("matplotlib is not installed", op=op,
                            fix="pip install 'tvmgraph[plot]'") from e  # fmt: skip
    return plt.subplots(layout="constrained")[1]


def curves(
    epochs: Sequence[int], values: Mapping[str, Sequence[float]], names: Sequence[str], ax: Any
) -> Any:
    """Draws values over epochs.

    Args:
        epochs: Numbers of the epochs.
        values: One value per epoch, by name.
        names: Which of them; all if empty.
        ax: Where; new axes if ``None``.

    Returns:
        The axes.

    Raises:
        NotFoundError: if matplotlib is not installed.
        ArgumentError: if no value has such a name.
    """
    for name in names:
        if name not in values:
            reject(ArgumentError, "History.plot", f"no value is called {name!r}",
                   fix=f"there are {', '.join(values) or 'none yet: train first'}")  # fmt: skip
    ax = _axes(ax, "History.plot")
    for name in names or values:
        ax.plot(epochs, values[name], marker="o", markersize=3, label=name)
    ax.set_xlabel("epoch")
    ax.grid(alpha=0.3)
    if values:
        ax.legend()
    return ax


def confusion(matrix: np.ndarray, labels: Sequence[str] | None, ax: Any) -> Any:
    """Draws a confusion matrix with its numbers.

    Args:
        matrix: (true class, predicted class).
        labels: Names of the classes; their numbers if ``None``.
        ax: Where; new axes if ``None``.

    Returns:
        The axes.

    Raises:
        NotFoundError: if matplotlib is not installed.
        ArgumentError: if there are not as many labels as classes.
    """
    names = [str(i) for i in range(len(matrix))] if labels is None else [str(n) for n in labels]
    if len(names) != len(matrix):
        raise ArgumentError(
            f"{len(names)} labels for {len(matrix)} classes", op="ConfusionMatrix.plot",
            fix="give one label per class",
        )  # fmt: skip
    ax = _axes(ax, "ConfusionMatrix.plot")
    ax.imshow(matrix, cmap="Blues")
    ax.set_xticks(range(len(names)), names)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    top = max(float(matrix.max()), 1e-12)
    for (i, j), value in np.ndenumerate(matrix):
        colour = "white" if value > _CONTRAST * top else "black"
        text = f"{value:.0f}" if value == int(value) else f"{value:.2f}"
        ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=8)
    return ax
