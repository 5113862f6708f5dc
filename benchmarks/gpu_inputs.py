"""Recipes of arrays, which two machines make alike; needs NumPy only."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import ml_dtypes
import numpy as np

#: Elements of a result that are compared.
_MOST = 1 << 14


@dataclass(frozen=True)
class Recipe:
    """How to make an array.

    Attributes:
        kind: ``"normal"``, ``"positive"`` (variances), ``"labels"`` (below ``scale``), ``"zero"``
            or ``"values"``, stored under ``seed``.
        shape: Its shape.
        dtype: Name of its element type.
        seed: Of the random numbers, or the number of the stored array.
        scale: Standard deviation, or the number of labels.
    """

    kind: str
    shape: tuple[int, ...]
    dtype: str
    seed: int = 0
    scale: float = 1.0
    stored: Any = None

    @classmethod
    def of(cls, array: np.ndarray) -> Recipe:
        """Returns the recipe of an array that is shipped as it is."""
        return cls("values", array.shape, array.dtype.name, stored=array)

    @classmethod
    def weight(cls, number: int, label: str, shape: tuple[int, ...], dtype: str) -> Recipe:
        """Returns the recipe of a weight, scaled so that activations keep their size."""
        if not np.issubdtype(dtype_of(dtype), np.floating) and dtype != "bfloat16":
            return cls("zero", shape, dtype)
        if "variance" in label or "moment2" in label or label.endswith("gamma"):
            return cls("positive", shape, dtype, 1000 + number)
        fan = math.prod(shape[1:]) if len(shape) > 1 else 100
        return cls("normal", shape, dtype, 1000 + number, 1 / math.sqrt(fan))

    def make(self, stored: np.ndarray | None = None) -> np.ndarray:
        """Returns the array."""
        dtype = dtype_of(self.dtype)
        if self.kind == "values":
            return np.asarray(self.stored if stored is None else stored)
        if self.kind == "zero":
            return np.zeros(self.shape, dtype)
        rng = np.random.default_rng(self.seed)
        if self.kind == "labels":
            return rng.integers(0, int(self.scale), self.shape).astype(dtype)
        if self.kind == "positive":
            return (rng.random(self.shape, np.float32) + 0.5).astype(dtype)
        return (rng.standard_normal(self.shape, np.float32) * np.float32(self.scale)).astype(dtype)

    def as_json(self) -> dict[str, Any]:
        """Returns it as plain data, without a stored array."""
        return {k: v for k, v in asdict(self).items() if k != "stored"}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Recipe:
        """Reads what :meth:`as_json` returned."""
        return cls(**{**data, "shape": tuple(data["shape"])})


def dtype_of(name: str) -> np.dtype[Any]:
    """Returns NumPy's dtype of a name, those of ml_dtypes included."""
    return np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)


def some(array: np.ndarray) -> np.ndarray:
    """Returns at most some ten thousand elements of an array, spread over all of it."""
    step = max(1, array.size // _MOST)
    return array if step == 1 else array.reshape(-1)[:: step | 1]


def to_storable(array: np.ndarray) -> np.ndarray:
    """Returns an array that ``np.savez`` can write: bfloat16 as its bits."""
    return array.view(np.uint16) if array.dtype == ml_dtypes.bfloat16 else array


def from_storable(array: np.ndarray, dtype: str) -> np.ndarray:
    """Undoes :func:`to_storable`."""
    return array.view(ml_dtypes.bfloat16) if dtype == "bfloat16" else array
