"""Programs as users write them in which something differed from plain Python once."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Generator, Iterable

import numpy as np
import pytest

from tests.capture.any_python import MODES
from tests.capture.test_fuzz import in_numpy
from tvmgraph import Tensor, jit, ops


def chunks(items: Iterable[Tensor], size: int) -> Generator[list[Tensor]]:
    rest = iter(items)
    while batch := list(itertools.islice(rest, size)):
        yield batch


def stacked(batches: Iterable[list[Tensor]], scale: float) -> Generator[Tensor]:
    for batch in batches:
        yield ops.stack(batch) * scale


def of_a_pipeline(rows: list[Tensor], size: int) -> tuple[list[float], int]:
    sums, count = [], 0
    for block in stacked(chunks(rows, size), 0.5):
        sums.append(float(block.sum()))
        count += block.shape[0]
    return sums, count


@pytest.mark.parametrize("mode", MODES)
def test_a_generator_takes_the_items_of_another(mode: str) -> None:
    compiled = jit(of_a_pipeline, capture_mode=mode)
    with in_numpy(), warnings.catch_warnings():
        warnings.simplefilter("error")  # that it could not be compiled
        for n in (5, 6, 5):
            rows = [Tensor(np.full(2, i, np.float32)) for i in range(n)]
            assert compiled(rows, 2) == of_a_pipeline(rows, 2)
