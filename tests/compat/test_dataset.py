"""Transforms of data give what MindSpore's give: shapes, dtypes, pixels and words."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.compat.cases_dataset import DATASET, ROOMS, inputs
from tests.compat.record_values import arrays, expected

#: Calls in which MindSpore is not followed, each with the reason.
DIFFERENT = {
    call: why
    for why, calls in {
        "MindSpore puts the colors of fill_value into the channels in reverse": (
            *(f"vision.Rotate(100, vision.Inter.{i}, True, None, (1, 2, 3))(img)"
              for i in ("NEAREST", "BILINEAR", "BICUBIC", "AREA")),
            "vision.RandomRotation((20, 20), fill_value=(3, 4, 5))(img)",
        ),
        "MindSpore writes three channels into rows of four": (
            "vision.NormalizePad([10, 20, 30], [2, 3, 4])(img)",
            "vision.NormalizePad([10, 20, 30], [2, 3, 4], 'float16')(img)",
        ),
        "MindSpore's PILCUBIC is not Pillow's when one side grows and the other shrinks": (
            "vision.Resize((5,20), vision.Inter.PILCUBIC)(img)",
        ),
    }.items()
    for call in calls
}  # fmt: skip

recorded = functools.cache(expected)


def evaluate(call: str) -> Any:
    """Returns what a call gives here."""
    rooms = {n: importlib.import_module(f"tvmgraph.dataset.{n}") for n in ROOMS}
    return eval(call, inputs() | rooms | {"ms": ms, "np": np})


@pytest.mark.parametrize("call", [c for c in DATASET if c not in DIFFERENT], ids=lambda c: c[:90])
def test_transforms(call: str) -> None:
    found = recorded("dataset")
    want = [found[f"{call}.{k}"] for k in range(len(found)) if f"{call}.{k}" in found]
    assert want, "nothing is recorded"
    got = arrays(evaluate(call))
    kinds = [(g.shape, g.dtype.kind if g.dtype.kind == "U" else str(g.dtype)) for g in got]
    assert kinds == [(w.shape, w.dtype.kind if w.dtype.kind == "U" else str(w.dtype)) for w in want]
    for g, w in zip(got, want):
        if w.dtype.kind == "f":
            close = 2e-5 if call.startswith("audio.") else 2e-6  # sums of float32 there
            np.testing.assert_allclose(g, w, close if w.dtype.itemsize > 2 else 1e-3, close)
        elif w.dtype == np.uint8:  # vectors are added in another order there: one pixel in 200
            off = g.astype(int) - w
            assert not off.any()
        else:
            np.testing.assert_array_equal(g, w)
