"""Two small models of characters: sizes, weights and batches, with no framework in sight.

``test_text.py`` trains them here; ``text_curves.py`` trained them in PyTorch and wrote the losses
to ``text_curves.json``.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

CURVES = Path(__file__).with_name("text_curves.json")
STEPS, BATCH, LENGTH = 200, 16, 32
RATE = {"lstm": 3e-3, "transformer": 1e-3}  # of Adam
HIDDEN = 96  # of the LSTM
WIDTH, HEADS, LAYERS = 64, 4, 2  # of the transformer

Weights = dict[str, np.ndarray]


def encode(text: str) -> tuple[np.ndarray, int]:
    """Numbers the characters of a text in alphabetical order; returns also how many there are."""
    letters = sorted(set(text))
    numbers = {c: i for i, c in enumerate(letters)}
    return np.array([numbers[c] for c in text], np.int32), len(letters)


def batches(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns inputs and the characters after them, both of shape (STEPS, BATCH, LENGTH)."""
    starts = np.random.RandomState(0).randint(0, len(ids) - LENGTH - 1, (STEPS, BATCH, 1))
    at = starts + np.arange(LENGTH)
    return ids[at], ids[at + 1]


def _dense(rng: np.random.RandomState, out: int, inp: int) -> np.ndarray:
    bound = 1 / math.sqrt(inp)
    return rng.uniform(-bound, bound, (out, inp)).astype(np.float32)


def lstm_weights(letters: int) -> Weights:
    """Weights by PyTorch's names; gates in the order i, f, g, o."""
    rng = np.random.RandomState(1)
    return {
        "embedding.weight": rng.normal(0, 0.3, (letters, WIDTH)).astype(np.float32),
        "lstm.weight_ih_l0": _dense(rng, 4 * HIDDEN, HIDDEN)[:, :WIDTH].copy(),
        "lstm.weight_hh_l0": _dense(rng, 4 * HIDDEN, HIDDEN),
        "lstm.bias_ih_l0": np.zeros(4 * HIDDEN, np.float32),
        "lstm.bias_hh_l0": np.zeros(4 * HIDDEN, np.float32),
        "head.weight": _dense(rng, letters, HIDDEN),
        "head.bias": np.zeros(letters, np.float32),
    }


def transformer_weights(letters: int) -> Weights:
    """Weights by PyTorch's names."""
    rng = np.random.RandomState(2)
    found = {
        "embedding.weight": rng.normal(0, 0.1, (letters, WIDTH)).astype(np.float32),
        "positions.weight": rng.normal(0, 0.1, (LENGTH, WIDTH)).astype(np.float32),
    }
    for i in range(LAYERS):
        shapes = {"qkv": (3 * WIDTH, WIDTH), "mixed": (WIDTH, WIDTH),
                  "wide": (4 * WIDTH, WIDTH), "narrow": (WIDTH, 4 * WIDTH)}  # fmt: skip
        for name, shape in shapes.items():
            found[f"layers.{i}.{name}.weight"] = _dense(rng, *shape)
            found[f"layers.{i}.{name}.bias"] = np.zeros(shape[0], np.float32)
        for name in ("before", "between"):
            found[f"layers.{i}.{name}.weight"] = np.ones(WIDTH, np.float32)
            found[f"layers.{i}.{name}.bias"] = np.zeros(WIDTH, np.float32)
    found["last.weight"], found["last.bias"] = (
        np.ones(WIDTH, np.float32),
        np.zeros(WIDTH, np.float32),
    )
    found["head.weight"], found["head.bias"] = (
        _dense(rng, letters, WIDTH),
        np.zeros(letters, np.float32),
    )
    return found


WEIGHTS = {"lstm": lstm_weights, "transformer": transformer_weights}
