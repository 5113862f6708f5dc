"""Samplers, sources that read files, and batches of rows of different lengths."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tvmgraph import dataset
from tvmgraph.errors import ArgumentError, DTypeError


def numbers(sampler: Any, rows: int = 10) -> list[int]:
    data = dataset.NumpySlicesDataset({"x": np.arange(rows)}, sampler=sampler)
    found = [int(x) for (x,) in data]
    assert len(data) == len(found)
    return found


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (dataset.SequentialSampler(2, 3), [2, 3, 4]),
        (dataset.SubsetSampler([3, 1, 2], num_samples=2), [3, 1]),
        (dataset.DistributedSampler(3, 1, shuffle=False), [1, 4, 7, 0]),
        (dataset.DistributedSampler(3, 0, shuffle=False, offset=1), [2, 5, 8]),
        (dataset.WeightedRandomSampler([0, 0, 1], 4), [2, 2, 2, 2]),
        ([5, 2], [5, 2]),
    ],
    ids=lambda v: type(v).__name__,
)
def test_samplers(sampler: Any, expected: list[int]) -> None:
    assert numbers(sampler) == expected


def test_random_samplers() -> None:
    assert sorted(numbers(dataset.RandomSampler())) == list(range(10))
    assert len(numbers(dataset.RandomSampler(replacement=True, num_samples=25))) == 10
    assert sorted(numbers(dataset.SubsetRandomSampler([4, 2, 7]))) == [2, 4, 7]
    parts = [numbers(dataset.DistributedSampler(2, i)) for i in range(2)]
    assert sorted(parts[0] + parts[1]) == list(range(10))
    data = dataset.NumpySlicesDataset(np.arange(50), sampler=dataset.RandomSampler())
    first, second = ([int(x) for (x,) in data] for _ in range(2))
    assert first != second and sorted(first) == sorted(second)  # another epoch, another order


def test_own_sampler_and_classes() -> None:
    class Last(dataset.Sampler):
        def __iter__(self) -> Any:
            return iter(range(self.dataset_size - 2, self.dataset_size))

    assert numbers(Last()) == [8, 9]
    labels = {"x": np.arange(6), "label": [0, 1, 0, 1, 0, 1]}
    pairs = dataset.NumpySlicesDataset(labels, sampler=dataset.PKSampler(2, shuffle=True))
    assert sorted(int(label) for _, label in pairs) == [0, 0, 1, 1]


def test_wrong_samplers_are_named() -> None:
    for make, error, text in (
        (lambda: numbers(3), DTypeError, "sampler cannot be a int"),
        (lambda: dataset.SubsetSampler(["a"]), DTypeError, "must be integers"),
        (lambda: numbers(dataset.SubsetSampler([20])), ArgumentError, "row 20 is outside"),
        (lambda: dataset.WeightedRandomSampler([0, -1]), ArgumentError, "at least 0"),
        (lambda: dataset.DistributedSampler(2, 2), ArgumentError, "2 shards"),
        (lambda: dataset.NumpySlicesDataset([1], shuffle=True, sampler=[0]), ArgumentError,
         "already decides"),
        (lambda: dataset.GeneratorDataset(lambda: iter([1]), "x", sampler=[0]), ArgumentError,
         "no row numbers"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            make()


def test_image_folders(tmp_path: Path) -> None:
    from PIL import Image

    for name, value in (("cat", 10), ("dog", 20)):
        (tmp_path / name).mkdir()
        for i in range(2):
            pixels = np.full((2, 3, 3), value + i, np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / f"{i}.png")
    data = dataset.ImageFolderDataset(tmp_path, shuffle=False, decode=True)
    assert data.get_class_indexing() == {"cat": 0, "dog": 1} and data.num_classes() == 2
    found = [(int(image.asnumpy()[0, 0, 0]), int(label)) for image, label in data]
    assert found == [(10, 0), (11, 0), (20, 1), (21, 1)]
    raw = dataset.ImageFolderDataset(tmp_path, sampler=[0], class_indexing={"dog": 7})
    assert [(image.ndim, int(label)) for image, label in raw] == [(1, 7)]
    for secret in tmp_path.glob("*/*.png"):
        secret.write_bytes(b"key" + secret.read_bytes())
    opened = dataset.ImageFolderDataset(
        tmp_path, shuffle=False, decode=True, decrypt=lambda path: Path(path).read_bytes()[3:]
    )
    assert [int(image.asnumpy()[0, 0, 0]) for image, _ in opened] == [10, 11, 20, 21]
    with pytest.raises(ArgumentError, match="no folder with images"):
        dataset.ImageFolderDataset(tmp_path, extensions=[".jpg"])


def texts(data: dataset.Dataset) -> list[str]:
    return [str(row[0]) for row in data.create_tuple_iterator(output_numpy=True)]


def test_lines_of_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\ntwo words\n")
    (tmp_path / "b.txt").write_text("three")
    lines = dataset.TextFileDataset(str(tmp_path / "*.txt"), shuffle=dataset.Shuffle.FALSE)
    assert texts(lines) == ["one", "two words", "three"]
    assert sorted(texts(dataset.TextFileDataset(tmp_path / "a.txt"))) == ["one", "two words"]
    names = dataset.GeneratorDataset([str(tmp_path / "b.txt")] * 2, ["file"], shuffle=False)
    joined = names.flat_map(lambda f: dataset.TextFileDataset(str(f), shuffle=False))
    assert texts(joined) == ["three", "three"] and len(joined) == 2
    with pytest.raises(ArgumentError, match="there is no file"):
        dataset.TextFileDataset(tmp_path / "c.txt")


def test_separated_values(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\n1,2.5,x\n3,,y\n")
    data = dataset.CSVDataset(path, column_defaults=[0, -1.0, ""], shuffle=False)
    assert data.get_col_names() == ["a", "b", "c"]
    assert data.output_types()[:2] == [np.dtype(np.int32), np.dtype(np.float32)]
    rows = list(data.create_tuple_iterator(output_numpy=True))
    assert [(int(a), float(b), str(c)) for a, b, c in rows] == [(1, 2.5, "x"), (3, -1.0, "y")]
    with pytest.raises(ArgumentError, match="has 3 values for 2 columns"):
        dataset.CSVDataset(path, column_names=["a", "b"])
    with pytest.raises(ArgumentError, match="column 'c'"):
        dataset.CSVDataset(path, column_defaults=[0, 0.0, 0])


def test_cifar100(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).integers(0, 20, (3, 3074)).astype(np.uint8)
    rows.tofile(tmp_path / "train.bin")
    rows[:1].tofile(tmp_path / "test.bin")
    data = dataset.Cifar100Dataset(tmp_path, "train", shuffle=False)
    assert data.get_col_names() == ["image", "coarse_label", "fine_label"]
    image, coarse, fine = next(iter(data))
    assert (int(coarse), int(fine)) == (rows[0, 0], rows[0, 1])
    np.testing.assert_array_equal(image.asnumpy()[:, :, 1].ravel(), rows[0, 2 + 1024 : 2 + 2048])
    assert len(dataset.Cifar100Dataset(tmp_path)) == 4
    with pytest.raises(ArgumentError, match="usage cannot be 'valid'"):
        dataset.Cifar100Dataset(tmp_path, "valid")


def ragged() -> dataset.Dataset:
    rows = [(np.arange(i), np.int32(i)) for i in (1, 2, 3, 4, 5)]
    return dataset.GeneratorDataset(rows, ["a", "n"], shuffle=False)


def test_padded_batches() -> None:
    first, last = (a.asnumpy() for a, _ in ragged().padded_batch(3))
    np.testing.assert_array_equal(first, [[0, 0, 0], [0, 1, 0], [0, 1, 2]])
    assert last.shape == (2, 5)
    wide = next(iter(ragged().padded_batch(3, True, pad_info={"a": ([4], -1)})))[0]
    np.testing.assert_array_equal(wide.asnumpy()[0], [0, -1, -1, -1])
    cut = next(iter(ragged().padded_batch(5, pad_info={"a": ([2], 7)})))[0]
    assert cut.asnumpy().tolist() == [[0, 7], [0, 1], [0, 1], [0, 1], [0, 1]]


def test_batches_by_length() -> None:
    data = ragged().bucket_batch_by_length(["a"], [3, 5], [2, 1, 2])
    assert [n.asnumpy().tolist() for _, n in data] == [[1, 2], [3], [4], [5]]
    assert len(data) == 4
    padded = ragged().bucket_batch_by_length(
        ["n"], [3, 8], [2, 2, 2], lambda n: int(n), {"a": ([None], 9)}, True, True
    )
    shapes = [a.shape for a, _ in padded]
    assert shapes == [(2, 2), (2, 7)]
    with pytest.raises(ArgumentError, match="one batch size more"):
        ragged().bucket_batch_by_length(["a"], [3], [2])
    with pytest.raises(ArgumentError, match="must increase"):
        ragged().bucket_batch_by_length(["a"], [3, 3], [2, 2, 2])


def test_batch_size_of_a_function() -> None:
    data = dataset.NumpySlicesDataset(np.arange(7), shuffle=False)
    growing = data.batch(lambda info: info.get_batch_num() + 1)
    assert [len(x.asnumpy()) for (x,) in growing] == [1, 2, 3, 1]
    assert len(growing) == 4 and len(data.batch(lambda info: info.get_batch_num() + 1, True)) == 3


def test_digits_of_a_folder_with_one_part(tmp_path: Path) -> None:
    """The tutorials unpack the training images and the test images into folders of their own."""
    for part, count in (("train", 3), ("t10k", 2)):
        (tmp_path / part).mkdir()
        for kind, values in (
            ("images-idx3-ubyte", np.zeros((count, 2, 2), np.uint8)),
            ("labels-idx1-ubyte", np.arange(count, dtype=np.uint8)),
        ):
            header = bytes((0, 0, 8, values.ndim)) + np.array(values.shape, ">u4").tobytes()
            (tmp_path / part / f"{part}-{kind}").write_bytes(header + values.tobytes())
        assert len(dataset.MnistDataset(tmp_path / part)) == count
    with pytest.raises(ArgumentError, match="holds none of t10k-images"):
        dataset.MnistDataset(tmp_path / "train", usage="test")
    with pytest.raises(ArgumentError, match="holds none of train-images"):
        dataset.MnistDataset(tmp_path)


def test_samplers_below_another_one() -> None:
    labels = {"label": np.array([0, 1, 0, 1, 0])}
    sampler = dataset.SequentialSampler(start_index=1, num_samples=3)
    sampler.add_child(dataset.PKSampler(2))  # knows the labels of the source
    data = dataset.NumpySlicesDataset(labels, sampler=sampler)
    assert data.get_dataset_size() == 3
    assert [int(v) for (v,) in data] == [0, 1, 1]
    alone = dataset.DistributedSampler(1, 0, shuffle=False, num_samples=3, offset=1)
    assert [int(v) for (v,) in dataset.NumpySlicesDataset(labels, sampler=alone)] == [0, 1, 0]


def endless() -> Iterator[tuple[int]]:
    yield from ((i,) for i in itertools.count())


@pytest.mark.parametrize("source", [endless, endless()], ids=["function", "iterator"])
def test_an_endless_source_is_taken_from(source: Any) -> None:
    data = dataset.GeneratorDataset(source, ["n"])
    assert [int(n) for (n,) in data.take(4)] == [0, 1, 2, 3]
    pairs = data.batch(2).create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert next(pairs)[0].tolist() == [0, 1] and next(pairs)[0].tolist() == [2, 3]
    pairs.stop()


def test_a_function_runs_once_for_a_pass_and_once_to_be_counted() -> None:
    runs = []

    def rows() -> Iterator[tuple[int]]:
        runs.append(1)
        yield from ((i,) for i in range(5))

    data = dataset.GeneratorDataset(rows, ["n"])
    assert runs == []
    assert [int(n) for (n,) in data] == [0, 1, 2, 3, 4] and len(runs) == 1
    assert [data.get_dataset_size() for _ in range(2)] == [5, 5] and len(runs) == 2
    part = dataset.GeneratorDataset(rows, ["n"], num_shards=2, shard_id=1)
    assert [int(n) for (n,) in part] == [1, 3]
    few = dataset.GeneratorDataset(rows, ["n"], num_samples=2)
    assert ([int(n) for (n,) in few], few.get_dataset_size()) == ([0, 1], 2)


def test_rows_of_an_iterator_are_kept() -> None:
    data = dataset.GeneratorDataset(iter([(1,), (2,), (3,)]), ["n"])
    first = data.create_tuple_iterator(num_epochs=1)
    assert int(next(first)[0]) == 1  # another pass begins before this one is over
    for again in (data, copy.deepcopy(data), data):
        assert [int(n) for (n,) in again] == [1, 2, 3]
    assert [int(next(first)[0]) for _ in range(2)] == [2, 3]


def test_an_iterator_is_not_shuffled_and_says_so() -> None:
    with pytest.warns(UserWarning, match="an iterator is not shuffled"):
        data = dataset.GeneratorDataset(lambda: iter(range(9)), ["n"], shuffle=True)
    assert [int(n) for (n,) in data] == list(range(9))
