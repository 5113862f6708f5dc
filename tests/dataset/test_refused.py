"""What datasets and their transforms refuse, with MindSpore's classes of errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tvmgraph import dataset
from tvmgraph.dataset import audio, text, transforms, vision

ROWS = np.arange(4)
AUDIO: Any = audio
TRANSFORMS = {
    "Fill": (transforms.Fill(1), ROWS), "Compose": (transforms.Compose([vision.Invert()]), ROWS),
    "Rescale": (vision.Rescale(1.0, 0.0), np.zeros((2, 2, 3), np.uint8)),
    "Vol": (AUDIO.Vol(1.0), np.zeros((1, 4), np.float32)), "Ngram": (text.Ngram(2), ["a", "b"]),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_of_one_value_refuses_two(name: str) -> None:
    transform, value = TRANSFORMS[name]
    with pytest.raises(RuntimeError, match="one value"):
        transform(value, value)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(("workers", "error"), [(0, ValueError), (True, TypeError)])
def test_sources_and_stages_refuse_to_work_without_threads(
    workers: Any, error: type[Exception], tmp_path: Path
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a\nb\n")
    rows = dataset.NumpySlicesDataset(ROWS)
    made: list[Callable[..., object]] = [
        lambda **k: dataset.TextFileDataset(str(file), **k),
        lambda **k: dataset.CSVDataset(str(file), column_names=["a"], **k),
        lambda **k: dataset.TFRecordDataset(str(file), **k),
        lambda **k: dataset.MnistDataset(tmp_path, **k),
        lambda **k: dataset.Cifar10Dataset(tmp_path, **k),
        lambda **k: dataset.NumpySlicesDataset(ROWS, **k),
        lambda **k: rows.map(transforms.Fill(1), **k), lambda **k: rows.batch(2, **k),
    ]  # fmt: skip
    for make in made:
        with pytest.raises(error, match="num_parallel_workers"):
            make(num_parallel_workers=workers)
    assert len(list(rows.batch(2, num_parallel_workers=None))) == 2


def test_a_batch_size_of_true_is_one_row() -> None:
    batches = list(dataset.NumpySlicesDataset(ROWS).batch(True))
    assert [b[0].shape for b in batches] == [(1,)] * 4


def test_filters_refuse_numbers_beyond_those_of_the_pipeline() -> None:
    for settings in ((2**31, 1000.0), (4000, 1e39)):
        with pytest.raises(ValueError, match="too large"):
            AUDIO.LowpassBiquad(*settings)


@pytest.mark.parametrize(
    "transform",
    [
        vision.HorizontalFlip(), vision.Resize(2), vision.Rescale(2.0, 0.0), vision.HWC2CHW(),
        vision.Normalize([1.0], [1.0]), vision.ToTensor(), vision.Pad(1),
    ],
    ids=lambda t: type(t).__name__,
)  # fmt: skip
def test_lists_are_no_images(transform: Callable[[object], object]) -> None:
    for value in ([[1, 2], [3, 4]], ((1, 2), (3, 4))):
        with pytest.raises(TypeError, match=f"an image is no {type(value).__name__}"):
            transform(value)


@pytest.mark.parametrize(
    ("make", "error", "rule"),
    [
        (lambda d: d.batch(2, drop_remainder=0), TypeError, "drop_remainder must be a bool"),
        (lambda d: dataset.NumpySlicesDataset([]), ValueError, "not be empty"),
        (lambda d: vision.Normalize([300.0], [1.0]), ValueError, r"\[0, 255\]"),
        (lambda d: vision.Pad(1, fill_value=300), ValueError, "fill_value is 300"),
        (lambda d: vision.HorizontalFlip()(np.array(3)), RuntimeError, "2 or 3 axes"),
    ],
)
def test_arguments_are_refused_as_in_mindspore(
    make: Callable[[Any], object], error: type[Exception], rule: str
) -> None:
    with pytest.raises(error, match=rule):
        make(dataset.NumpySlicesDataset(ROWS))


def test_an_iterator_that_is_over_raises_a_runtime_error() -> None:
    rows = dataset.NumpySlicesDataset([1]).create_tuple_iterator(num_epochs=1)
    assert len(list(rows)) == 1
    with pytest.raises(RuntimeError, match="all epochs"):
        list(rows)
