"""What the examples of MindSpore's documents of datasets show; expected values are MindSpore's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import dataset as ds
from tvmgraph.dataset import config, text, transforms, vision
from tvmgraph.errors import ArgumentError, DTypeError, NotFoundError, ShapeError


def _numbers(data: Any) -> list[int]:
    return [int(row[0]) for row in data.create_tuple_iterator(output_numpy=True, num_epochs=1)]


def _ten() -> ds.NumpySlicesDataset:
    return ds.NumpySlicesDataset(list(range(10)), "a", shuffle=False)


@pytest.mark.parametrize(
    ("parent", "child", "rows", "count"),
    [
        (lambda: ds.SequentialSampler(1, 3), ds.SequentialSampler(4, 5), [5, 6, 7], 3),
        (lambda: ds.DistributedSampler(2, 1, shuffle=False),
         ds.SubsetSampler([9, 8, 7, 6, 5, 4]), [8, 6, 4], 6),
        (lambda: ds.SubsetSampler([2, 0]), ds.SequentialSampler(3, 4), [5, 3], 2),
        (lambda: ds.SequentialSampler(0, 5), ds.SequentialSampler(0, 2), [0, 1], 2),
    ],
)  # fmt: skip
def test_samplers_with_children(parent: Any, child: Any, rows: list[int], count: int) -> None:
    sampler = parent()
    assert sampler.get_child() is None
    sampler.add_child(child)
    data = ds.NumpySlicesDataset(list(range(10)), "a", sampler=sampler)
    assert (_numbers(data), len(data), sampler.get_num_samples()) == (rows, len(rows), count)
    assert sampler.get_child() is child
    with pytest.raises(ArgumentError, match="child already"):
        sampler.add_child(child)
    with pytest.raises(DTypeError, match="no Sampler"):
        parent().add_child([1])


def test_samplers_of_datasets() -> None:
    data = _ten()
    data.use_sampler(ds.SubsetSampler([3, 1, 5]))
    assert (_numbers(data), len(data)) == ([3, 1, 5], 3)
    data.add_sampler(ds.SequentialSampler(1, 1))
    assert _numbers(data) == [1]
    data.use_sampler(ds.IterSampler(iter([4])))
    assert _numbers(data) == [4]
    part = ds.NumpySlicesDataset(list(range(10)), "a", shuffle=False, num_shards=2, shard_id=1)
    part.add_sampler(ds.SubsetSampler([2, 0]))
    assert _numbers(part) == [5, 1]
    with pytest.raises(DTypeError, match="no Sampler"):
        data.use_sampler([1])
    joined = _ten().take(3) + _ten().skip(4).take(3)
    joined.use_sampler(ds.DistributedSampler(2, 1, shuffle=False))
    assert (_numbers(joined), len(joined)) == ([1, 4, 6], 3)


def test_own_iterables_are_samplers() -> None:
    class Backwards:
        def __iter__(self) -> Iterator[int]:
            yield from (3, 1, 2)

    sampler = ds.IterSampler(Backwards(), num_samples=2)
    data = ds.NumpySlicesDataset(list(range(10)), "a", sampler=sampler)
    assert (_numbers(data), _numbers(data), sampler.get_num_samples()) == ([3, 1], [3, 1], 2)


def test_rows_of_different_lengths() -> None:
    ragged = [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4]]
    data = ds.NumpySlicesDataset(ragged, "c", shuffle=False)
    assert [r[0].tolist() for r in data] == ragged
    padded = data.padded_batch(2, True, pad_info={})
    assert [r[0].tolist() for r in padded] == [[[1, 0], [1, 2]], [[1, 2, 3, 0], [1, 2, 3, 4]]]
    with pytest.raises(ShapeError, match="different shapes"):
        list(data.batch(2))
    equal = ds.NumpySlicesDataset([[1, 2], [3, 4]], "c", shuffle=False)
    wide = equal.padded_batch(2, pad_info={"c": ([3], 9)})
    assert [r[0].tolist() for r in wide] == [[[1, 2, 9], [3, 4, 9]]]


def test_one_hot_has_one_row() -> None:
    hot = transforms.OneHot(4)
    for label in ([1, 3], [[1], [3]], [[[1]], [[3]]]):
        assert hot(np.array(label)).tolist() == [[0, 1, 0, 0], [0, 0, 0, 1]]
    assert hot(np.array([2])).tolist() == hot(np.array(2)).tolist() == [0, 0, 1, 0]
    with pytest.raises(ShapeError, match="more than one row"):
        hot(np.array([[1, 2], [3, 0]]))


@pytest.mark.parametrize(
    "mix", [vision.MixUpBatch(0.9), vision.CutMixBatch(vision.ImageBatchFormat.NHWC)]
)
def test_labels_of_three_axes(mix: Any) -> None:
    images = np.zeros((5, 8, 8, 3), np.uint8)
    labels = transforms.OneHot(10)(np.array([[1], [2], [3]]))
    image, label = mix(images, np.stack([labels] * 5))
    assert (image.shape, label.shape, label.dtype) == ((5, 8, 8, 3), (5, 3, 10), np.float32)


def test_texts_and_schemas() -> None:
    words = np.array(["a", "b"])
    assert text.Ngram(3, separator="-")(words).tolist() == [""]
    assert text.Ngram([3, 2])(words).tolist() == ["", "a b"]
    schema = ds.Schema()
    schema.add_column("x", ms.int64, [2])
    schema.add_column("l", ms.uint8)
    assert "".join(schema.to_json().split()) == (
        '{"columns":[{"name":"x","rank":1,"shape":[2],"type":"int64"},'
        '{"name":"l","rank":1,"type":"uint8"}]}'
    )


def test_debug_mode_reads_in_the_asking_thread() -> None:
    import threading

    def own(x: np.ndarray) -> np.ndarray:
        threads.append(threading.current_thread())
        return x

    threads: list[threading.Thread] = []
    config.set_debug_mode(True)
    try:
        assert config.get_debug_mode() and _numbers(_ten().map(own)) == list(range(10))
    finally:
        config.set_debug_mode(False)
    assert set(threads) == {threading.current_thread()}
    with pytest.raises(NotFoundError, match="no 'get_worker_connector_size'"):
        config.get_worker_connector_size()
    with pytest.raises(DTypeError, match="must be a bool"):
        config.set_debug_mode(1)


def test_settings_that_choose_nothing_are_kept() -> None:
    for setting, value in (("enable_shared_mem", False), ("callback_timeout", 9)):
        before = getattr(config, f"get_{setting}")()
        getattr(config, f"set_{setting}")(value)
        assert getattr(config, f"get_{setting}")() == value
        with pytest.raises((TypeError, ValueError), match=setting):
            getattr(config, f"set_{setting}")("on")
        getattr(config, f"set_{setting}")(before)


def test_rows_of_a_generator_come_in_every_epoch() -> None:
    data = ds.GeneratorDataset(((np.array(i),) for i in range(3)), ["a"])
    assert (len(data), _numbers(data), _numbers(data)) == (3, [0, 1, 2], [0, 1, 2])
    endless = ds.GeneratorDataset(((np.array(1),) for _ in iter(int, 1)), ["a"], num_samples=2)
    assert _numbers(endless) == [1, 1]
