"""Sources, stages, iterators and transforms."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tvmgraph as ms
from tvmgraph import Tensor, dataset
from tvmgraph.dataset import transforms, vision
from tvmgraph.dataset.iterator import prefetch
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError

X = np.arange(20, dtype=np.float32).reshape(10, 2)
Y = np.arange(10)


def slices(**options: Any) -> dataset.Dataset:
    return dataset.NumpySlicesDataset({"x": X, "y": Y}, **{"shuffle": False, **options})


def labels(data: dataset.Dataset) -> list[int]:
    return [int(i) for row in data for i in np.atleast_1d(row[-1].asnumpy())]


def test_stages_compose() -> None:
    data = slices().map(lambda x: x * 2, ["x"]).filter(lambda y: y % 2 == 0, ["y"])
    assert labels(data) == [0, 2, 4, 6, 8]
    assert labels(data.skip(1).take(3)) == [2, 4, 6]
    assert labels(data.take(2).repeat(2)) == [0, 2, 0, 2]
    assert labels(data.take(1) + data.skip(4)) == [0, 8]
    renamed = data.rename("x", "image").project(["y", "image"])
    assert renamed.get_col_names() == ["y", "image"]
    joined = slices().project("y").zip(slices().project("x"))
    assert joined.get_col_names() == ["y", "x"] and len(joined) == 10
    np.testing.assert_array_equal(next(iter(data))[0].asnumpy(), X[0] * 2)


def test_rows_of_a_list_are_tuples_or_lists() -> None:
    """One entry per column; without columns the row is the entry itself."""
    one = dataset.GeneratorDataset([[np.array([1, 2])], [np.array([3])]], ["x"], shuffle=False)
    assert [x.tolist() for (x,) in one] == [[1, 2], [3]] and one.dataset_size == 2
    two = dataset.GeneratorDataset([[0, 1], (2, 3)], ["x", "y"], shuffle=False)
    assert [(x.tolist(), y.tolist()) for x, y in two] == [(0, 1), (2, 3)]
    with pytest.raises(RuntimeError, match="2 entries for 1 columns"):
        list(dataset.GeneratorDataset([[0, 1]], ["x"]))


def test_batches() -> None:
    data = slices().batch(4)
    assert [r[0].shape for r in data] == [(4, 2), (4, 2), (2, 2)]
    assert data.get_dataset_size() == len(list(data)) == 3 and data.get_batch_size() == 4
    full = slices().map(np.negative, "x").batch(4, drop_remainder=True)
    assert full.get_dataset_size() == len(list(full)) == 2
    assert full.output_shapes() == [[4, 2], [4]] and full.output_types()[0] == np.float32
    summed = slices().batch(5, per_batch_map=lambda y, info: np.array(y) + info.get_batch_num(),
                            input_columns=["y"])  # fmt: skip
    assert labels(summed) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
    with pytest.raises(ShapeError, match="different shapes"):
        list(dataset.GeneratorDataset([np.zeros(1), np.zeros(2)], ["a"]).batch(2))


def test_shuffling_is_seeded_and_differs_between_epochs() -> None:
    def orders(seed: int, make: Any) -> list[list[int]]:
        dataset.config.set_seed(seed)
        iterator = make().create_tuple_iterator(num_epochs=2)
        return [[int(r[-1].asnumpy()) for r in iterator] for _ in range(2)]

    for make in (lambda: slices(shuffle=True), lambda: slices().shuffle(4)):
        first, again = orders(1, make), orders(1, make)
        assert first == again != orders(2, make)
        assert first[0] != first[1] and all(sorted(o) == list(range(10)) for o in first)
    dataset.config._settings.seed = None


def test_iterators() -> None:
    iterator = slices().create_dict_iterator(num_epochs=1, output_numpy=True)
    rows = list(iterator)
    assert isinstance(rows[0]["x"], np.ndarray) and set(rows[0]) == {"x", "y"}
    with pytest.raises(ArgumentError, match="epochs"):
        iter(iterator)
    assert isinstance(next(slices().create_tuple_iterator(["y"]))[0], Tensor)


def test_generators() -> None:
    class Source:
        def __len__(self) -> int:
            return 6

        def __getitem__(self, i: int) -> tuple[int, int]:
            return i, i * i

    data = dataset.GeneratorDataset(Source(), ["i", "square"], shuffle=False)
    assert labels(data) == [0, 1, 4, 9, 16, 25]
    shard = dataset.GeneratorDataset(Source(), ["i", "s"], shuffle=False, num_shards=2, shard_id=1)
    assert labels(shard) == [1, 9, 25] and len(shard) == 3
    last = dataset.GeneratorDataset(Source(), ["i", "s"], shuffle=False, num_shards=4, shard_id=3)
    assert labels(last) == [9, 1] and len(last) == 2  # as many as others have

    def stream() -> Any:
        yield from ((np.float32(i),) for i in range(3))

    assert labels(dataset.GeneratorDataset(stream, ["i"])) == [0, 1, 2]
    typed = dataset.GeneratorDataset(Source(), ["i", "s"], ["float32", "int8"], sampler=[2, 0])
    assert labels(typed) == [4, 0] and typed.output_types()[1] == np.int8
    with pytest.raises(ArgumentError, match="entries"):
        list(dataset.GeneratorDataset(Source(), ["i"]))
    with pytest.raises(DTypeError):
        dataset.GeneratorDataset(3, ["i"])


def test_threads_keep_order_and_random_transforms_do_not_depend_on_them() -> None:
    def slow(x: np.ndarray) -> np.ndarray:
        time.sleep(0.002 if x[0] % 4 else 0.01)
        return x

    for workers in (1, 3):
        data = slices().map([slow], ["x"], num_parallel_workers=workers)
        np.testing.assert_array_equal([r[0].asnumpy() for r in data], X)
    flips = [
        [r[0].asnumpy() for r in slices().map(
            [lambda x: x[None], vision.RandomHorizontalFlip(0.5)], ["x"], num_parallel_workers=w)]
        for w in (1, 4)
    ]  # fmt: skip
    np.testing.assert_array_equal(*flips)
    assert any(not np.array_equal(a[0], b) for a, b in zip(flips[0], X))


def test_prefetching_overlaps_and_stops() -> None:
    made = threading.Semaphore(0)

    def work(x: np.ndarray) -> np.ndarray:
        made.release()
        return x

    def readers() -> set[threading.Thread]:
        return {t for t in threading.enumerate() if t.name == "tvmgraph-dataset"}

    before, rows = readers(), slices().map(work, "x")
    given = iter(rows)
    next(given)
    for _ in range(2):  # the next row is made while nobody asks for it
        assert made.acquire(timeout=10)
    assert len(list(given)) == len(X) - 1
    for _ in slices().repeat():
        break  # the producer must end although it has rows left
    time.sleep(0.3)
    assert readers() <= before

    def fail(x: np.ndarray) -> np.ndarray:
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        list(slices().map(fail, "x"))


def test_split_covers_everything_once() -> None:
    train, test = slices().split([0.7, 0.3])
    assert (len(train), len(test)) == (7, 3)
    assert sorted(labels(train) + labels(test)) == list(range(10))
    with pytest.raises(ArgumentError, match="sum"):
        slices().split([3, 3])


@pytest.mark.parametrize(
    ("fractions", "sizes"), [([0.5, 0.5], [3, 2]), ([0.15, 0.55, 0.3], [1, 2, 2])]
)
def test_split_rounds_as_mindspore(fractions: list[float], sizes: list[int]) -> None:
    rows = dataset.NumpySlicesDataset({"y": np.arange(5)}, shuffle=False)
    assert [len(part) for part in rows.split(fractions, randomize=False)] == sizes


def test_a_part_of_a_split_is_drawn_by_a_sampler_and_reads_its_own_rows() -> None:
    read: list[int] = []

    class Rows:
        def __getitem__(self, i: int) -> int:
            read.append(i)
            return i

        def __len__(self) -> int:
            return 6

    rows = dataset.GeneratorDataset(Rows(), ["y"], shuffle=False)
    part, _ = rows.split([4, 2], randomize=False)
    read.clear()
    part.use_sampler(dataset.DistributedSampler(2, 1, shuffle=False))  # pyright: ignore
    assert labels(part) == [1, 3]
    assert read == [1, 3]
    assert len(part) == 2


def test_a_transform_without_its_parentheses_is_no_operation() -> None:
    with pytest.raises(DTypeError, match=r"write HWC2CHW\(\.\.\.\)"):
        slices().map(vision.HWC2CHW, "x")
    with pytest.raises(ValueError, match="RandomApply: ToTensor is the class"):
        transforms.RandomApply([vision.Decode(), vision.ToTensor])
    assert labels(slices().map(np.float32, "y")) == list(range(10))


def test_what_has_no_axis_is_not_padded() -> None:
    assert transforms.PadEnd([100], 1)(np.array(4)) == 4
    padded = transforms.PadEnd([3], b"-1")(np.array([b"1", b"2"]))
    assert padded.tolist() == [b"1", b"2", b"-1"]
    with pytest.raises(TypeError, match=r"not \['2'\]"):
        transforms.PadEnd(["2"])  # pyright: ignore


def test_compose_returns_a_tuple_where_mindspore_runs_it_in_python() -> None:
    image = np.ones((31, 102, 3), np.uint8)
    small, pillow = vision.Resize((30, 30)), vision.ToPIL()
    assert isinstance(transforms.Compose([small, lambda x: x])(image), np.ndarray)
    assert isinstance(transforms.Compose([Image.fromarray])(image), np.ndarray)
    assert isinstance(transforms.RandomApply([pillow], 1.0)(image), Image.Image)
    for chain, given in (
        ([small, pillow], image), ([transforms.Compose([pillow]), vision.ToTensor()], image),
        ([transforms.RandomApply([pillow])], image), ([small], pillow(image)),
        ([vision.Decode(True), small], np.frombuffer(_png(image), np.uint8)),
    ):  # fmt: skip
        found = transforms.Compose(chain)(given)
        assert isinstance(found, tuple) and len(found) == 1
    rows = dataset.NumpySlicesDataset([image], ["x"]).map(transforms.Compose([pillow, small]))
    assert next(iter(rows))[0].shape == (30, 30, 3)


def _png(image: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.parametrize("packed", [False, True])
def test_mnist(tmp_path: Path, packed: bool) -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 28, 28)).astype(np.uint8)
    for name, raw in (
        ("train-images-idx3-ubyte", struct.pack(">4I", 2051, 5, 28, 28) + images.tobytes()),
        ("train-labels-idx1-ubyte", struct.pack(">2I", 2049, 5) + bytes(range(5))),
    ):
        file = tmp_path / (name + (".gz" if packed else ""))
        file.write_bytes(gzip.compress(raw) if packed else raw)
    data = dataset.MnistDataset(tmp_path, usage="train", shuffle=False)
    row = next(data.create_dict_iterator(output_numpy=True))
    assert row["image"].shape == (28, 28, 1) and row["label"].dtype == np.uint32 and len(data) == 5
    np.testing.assert_array_equal(row["image"][..., 0], images[0])
    with pytest.raises(ArgumentError, match="t10k"):
        dataset.MnistDataset(tmp_path, usage="test")
    if not packed:
        file = tmp_path / "train-images-idx3-ubyte"
        file.write_bytes(file.read_bytes()[:-1])
        with pytest.raises(ArgumentError, match="header promises"):
            dataset.MnistDataset(tmp_path, usage="train")


def test_cifar10(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 3072)).astype(np.uint8)
    rows = np.concatenate([np.arange(4, dtype=np.uint8)[:, None], pixels], 1)
    (tmp_path / "data_batch_1.bin").write_bytes(rows.tobytes())
    content = {b"data": pixels, b"labels": [3, 2, 1, 0]}
    (tmp_path / "test_batch").write_bytes(pickle.dumps(content))
    train = dataset.Cifar10Dataset(tmp_path, "train", shuffle=False)
    test = dataset.Cifar10Dataset(tmp_path, "test", shuffle=False)
    assert labels(train) == [0, 1, 2, 3] and labels(test) == [3, 2, 1, 0]
    image = next(iter(train))[0].asnumpy()
    np.testing.assert_array_equal(image.transpose(2, 0, 1).ravel(), pixels[0])
    (tmp_path / "test_batch").write_bytes(pickle.dumps(print))
    with pytest.raises(ArgumentError, match="not allowed"):
        dataset.Cifar10Dataset(tmp_path, "test")


def test_image_transforms() -> None:
    image = np.random.default_rng(0).integers(0, 256, (6, 8, 3)).astype(np.uint8)
    chain = transforms.Compose(
        [vision.Resize((4, 4)), vision.Rescale(1 / 255, 0.0),
         vision.Normalize((0.5, 0.4, 0.3), (0.2, 0.2, 0.1)), vision.HWC2CHW()]
    )  # fmt: skip
    assert chain(image).shape == (3, 4, 4) and chain(image).dtype == np.float32
    np.testing.assert_allclose(vision.ToTensor()(image), image.transpose(2, 0, 1) / 255, atol=1e-6)
    assert vision.Resize(3)(image).shape == (3, 4, 3)
    np.testing.assert_array_equal(vision.Resize((6, 8))(image), image)
    flat = np.full((5, 5), 7.0, np.float32)
    np.testing.assert_allclose(vision.Resize((9, 3), vision.Inter.BICUBIC)(flat), 7.0)
    padded = vision.Pad((1, 2))(image)
    assert padded.shape == (10, 10, 3) and not padded[0].any()
    assert vision.RandomCrop(4, padding=2)(image).shape == (4, 4, 3)
    np.testing.assert_array_equal(vision.CenterCrop((2, 2))(image), image[2:4, 3:5])
    np.testing.assert_array_equal(vision.RandomVerticalFlip(1.0)(image), image[::-1])
    with pytest.raises(ShapeError):
        vision.RandomCrop(9)(image)
    with pytest.raises(ShapeError):
        vision.Normalize((1, 2), (1, 1))(image)
    np.testing.assert_allclose(transforms.OneHot(4, 0.2)(np.array([1])), [0.05, 0.85, 0.05, 0.05])
    with pytest.raises(ArgumentError, match="outside"):
        transforms.OneHot(3)(np.array([3]))


def test_decode_reads_png_bytes() -> None:
    from io import BytesIO

    from PIL import Image

    image = np.random.default_rng(0).integers(0, 256, (3, 4, 3)).astype(np.uint8)
    buffer = BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    np.testing.assert_array_equal(vision.Decode()(buffer.getvalue()), image)


def test_the_thread_that_prepares_rows_may_be_the_one_that_ends_their_iterator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held: list[Any] = []
    alone, ended = threading.Event(), threading.Event()
    errors: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)

    def drop(x: Any) -> Any:
        if x == 3:
            alone.wait(10)
            held.clear()
            ended.set()
        return x

    data = dataset.NumpySlicesDataset(np.arange(9), ["x"], shuffle=False).map(drop, "x")
    held.append(prefetch(data, 0))
    next(held[0])
    alone.set()
    assert ended.wait(10)
    assert not errors


def test_rows_wait_for_what_the_training_found() -> None:
    found: list[int] = []
    data = dataset.GeneratorDataset(lambda: ((i,) for i in range(4)), ["x"])
    data = data.sync_wait("policy", callback=found.append).map(lambda x: x + len(found), ["x"])
    seen = []
    for row in data.create_dict_iterator(num_epochs=1, output_numpy=True):
        seen.append(int(row["x"]))
        data.sync_update("policy", data=1)
    assert seen == [0, 2, 4, 6]
    with pytest.raises(RuntimeError, match="'other'"):
        data.sync_update("other")
    with pytest.raises(RuntimeError, match="already"):
        data.sync_wait("policy")


def test_dicts_stay_dicts_until_they_are_batched() -> None:
    rows = [({"a": np.arange(2) * i, "b": {"c": i}}, i) for i in range(4)]
    data = dataset.GeneratorDataset(rows, ["d", "i"], shuffle=False)
    assert [d["b"]["c"] for d, _ in data] == [0, 1, 2, 3]
    pairs = data.map(lambda d: (d["a"], d["b"]["c"]), "d", ["a", "c"])
    assert [int(c) for _, c, _ in pairs] == [0, 1, 2, 3]
    first, last = (d for d, _ in data.batch(2))
    assert first["a"].tolist() == [[0, 0], [0, 1]] and last["b"]["c"].tolist() == [2, 3]


def test_what_a_dict_holds_becomes_tensors() -> None:
    data = dataset.GeneratorDataset([({"i": 1, 2: (True, {"s": "a"})},)], ["d"])
    ((tensors,),) = data
    assert isinstance(tensors["i"], Tensor) and isinstance(tensors[2][0], Tensor)
    ((arrays,),) = data.create_tuple_iterator(output_numpy=True)
    assert arrays["i"].dtype == np.int64 and arrays[2][1]["s"].dtype.kind == "U"


@pytest.mark.parametrize(
    ("made", "kinds"),
    [
        (lambda c, i: [{"a": x} for x in c], (dict, list)),
        (lambda c, i: ({"a": c[0]}, np.arange(3)), (dict, Tensor)),
        (lambda c, i: ({"a": c[0]}, c), RuntimeError),
        (lambda c, i: (c, c[:1]), RuntimeError),
        (lambda c, i: [c[0]] * 3, RuntimeError),
    ],
)
def test_a_map_of_batches_may_make_dicts(made: Any, kinds: Any) -> None:
    columns = ["x", "y"] if isinstance(made(range(2), None), tuple) else ["x"]
    data = dataset.GeneratorDataset(range(2), ["x"])
    data = data.batch(2, per_batch_map=made, input_columns=["x"], output_columns=columns)
    if kinds is RuntimeError:
        with pytest.raises(RuntimeError, match="per_batch_map"):
            next(iter(data))
        return
    row = next(iter(data))
    assert isinstance(row[0], kinds[0])
    assert isinstance(row[0]["a"] if len(row) == 1 else row[1], kinds[1])


@pytest.mark.parametrize("workers", [1, 3])
def test_rows_that_fail_are_replaced_or_skipped(workers: int) -> None:
    def odd(x: np.ndarray) -> np.ndarray:
        if (x % 2 == 0 and x < 8) or x == 20 or bad:
            raise ValueError
        return x

    mode, bad = dataset.config.ErrorSamplesMode, False
    data = dataset.GeneratorDataset(range(24), ["x"], shuffle=False)
    data = data.map(odd, num_parallel_workers=workers)
    good = [i for i in range(24) if i not in (0, 2, 4, 6, 20)]
    try:
        dataset.config.set_error_samples_mode(mode.SKIP)
        assert labels(data) == good
        dataset.config.set_error_samples_mode(mode.REPLACE)
        assert dataset.config.get_error_samples_mode() == 1
        # the sixteenth good row is 19: four are due, one after each of the next, and one for 20
        mixed = [n for pair in zip(good[15:], good[:4]) for n in pair]
        assert labels(data) == [*good[:15], *mixed, good[4]]
        assert labels(data.take(5)) == good[:5]
        few = dataset.GeneratorDataset([6, 1, 3], ["x"], shuffle=False).map(odd)
        assert labels(few) == [1, 3, 1]
        bad = True
        with pytest.raises(RuntimeError, match="every row"):
            list(few)
        with pytest.raises(TypeError, match="ErrorSamplesMode"):
            dataset.config.set_error_samples_mode(2)  # pyright: ignore[reportArgumentType]
    finally:
        dataset.config.set_error_samples_mode(mode.RETURN)
    with pytest.raises(ValueError):
        list(data)


def test_batches_know_the_pass_of_the_pipeline_not_that_of_repeat() -> None:
    data = dataset.GeneratorDataset(range(4), ["x"], shuffle=False)
    data = data.batch(lambda info: info.get_epoch_num() + 1).repeat(2)
    rows = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert [[len(x) for (x,) in rows] for _ in range(2)] == [[1] * 8, [2] * 4]
    assert data.get_batch_size() == -1


def test_an_array_of_a_map_is_a_whole_batch() -> None:
    data = dataset.GeneratorDataset(range(4), ["x"], shuffle=False)
    for made in (np.array(10), np.arange(3)):
        rows = data.batch(2, per_batch_map=lambda c, i, made=made: (made,))
        assert [x.tolist() for (x,) in rows.create_tuple_iterator(output_numpy=True)] == [
            made.tolist()
        ] * 2


class _Mine(Exception):
    pass


@pytest.mark.parametrize("kind", [KeyError, OSError, _Mine, ShapeError])
@pytest.mark.parametrize("ahead", [0, 8])
def test_errors_of_functions_are_runtime_errors_too(kind: type[Exception], ahead: int) -> None:
    error = kind("a")

    def wrong(x: object) -> object:
        raise error

    before = dataset.config.get_prefetch_size()
    dataset.config.set_prefetch_size(ahead)
    try:
        with pytest.raises(kind) as caught:
            list(dataset.GeneratorDataset(range(2), ["x"]).map(wrong))
    finally:
        dataset.config.set_prefetch_size(before)
    assert isinstance(caught.value, RuntimeError) and caught.value.args == error.args
    assert any(entry.name == "wrong" for entry in caught.traceback)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, kind) and again.args == error.args


def test_a_sampler_may_be_a_sequence_of_numbers() -> None:
    class Chosen:
        def __getitem__(self, i: int) -> int:
            return [2, 0, 2][i]

        def __len__(self) -> int:
            return 3

    data = dataset.NumpySlicesDataset([5, 6, 7], sampler=Chosen())
    assert [int(x) for (x,) in data] == [7, 5, 7]


def test_lines_are_dealt_in_runs_of_equal_length(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("\n".join("abcdefg"))
    parts = [
        dataset.TextFileDataset(str(file), num_shards=3, shard_id=i, shuffle=False)
        for i in range(3)
    ]
    assert ["".join(str(line) for (line,) in part) for part in parts] == ["abc", "def", "gab"]


def test_what_rows_lack_is_a_runtime_error_too() -> None:
    data = dataset.NumpySlicesDataset({"x": np.arange(3)}, shuffle=False)
    with pytest.raises(RuntimeError, match="no column 'y'"):
        data.map(lambda v: v, "y")
    with pytest.raises(RuntimeError, match="2 values for 1 columns"):
        list(data.map(lambda v: (v, v), "x"))
    with pytest.raises(RuntimeError, match="returned None for column 'x'"):
        list(data.map(lambda v: None, "x"))
    with pytest.raises(RuntimeError, match="returned 1 values for 2 columns"):
        list(data.batch(2, per_batch_map=lambda v, info: (v,), output_columns=["x", "z"]))
    with pytest.raises(ValueError, match="count must be an int of at least 1"):
        data.take(0)


def test_columns_that_a_batch_does_not_read_stay() -> None:
    data = dataset.NumpySlicesDataset({"a": np.arange(4), "b": np.arange(4) * 2}, shuffle=False)
    more = data.batch(2, per_batch_map=lambda a, info: (a, [v + 9 for v in a]),
                      input_columns=["a"], output_columns=["a", "c"])  # fmt: skip
    assert more.get_col_names() == ["a", "c", "b"]
    assert [[v.asnumpy().tolist() for v in row] for row in more][1] == [[2, 3], [11, 12], [4, 6]]


def test_classes_of_sources_that_do_not_know_them() -> None:
    data = dataset.NumpySlicesDataset(np.arange(3)).batch(2)
    assert data.num_classes() is None and data.get_class_indexing() == {}


def test_iterators_are_shuffled_and_read_again() -> None:
    pairs = zip(range(20), range(20, 40))
    data = dataset.GeneratorDataset(pairs, ["a", "b"], shuffle=True).batch(5)
    first, second = ([int(v) for a, _ in data for v in a] for _ in range(2))
    assert first != second and sorted(first) == sorted(second) == list(range(20))


def test_a_schema_names_columns_and_types() -> None:
    schema = dataset.Schema()
    schema.add_column("a", ms.int8)
    schema.add_column("b", ms.float32)
    data = dataset.GeneratorDataset([(1, 2), (3, 4)], schema=schema, shuffle=False)
    assert data.get_col_names() == ["a", "b"]
    assert [v.dtype for v in next(iter(data))] == [ms.int8, ms.float32]
    with pytest.raises(DTypeError, match="schema is a dict"):
        dataset.GeneratorDataset([1], schema={"a": "int8"})


def test_images_without_channels_keep_their_shape() -> None:
    image = np.zeros((5, 4), np.uint8)
    assert vision.HWC2CHW()(image).shape == (5, 4)
    assert vision.HWC2CHW()(image[..., None]).shape == (1, 5, 4)


def test_shapes_of_rows_that_differ() -> None:
    rows = [(np.zeros((2, n)), n) for n in (3, 4)]
    data = dataset.GeneratorDataset(rows, ["a", "b"], shuffle=False)
    assert data.output_shapes() == [[2, 3], []]
    assert data.output_shapes(estimate=True) == [[2, None], []]


def test_a_stopped_iterator_is_over() -> None:
    iterator = dataset.GeneratorDataset(range(1000), ["a"]).create_tuple_iterator()
    threads = threading.active_count()
    next(iterator)
    assert threading.active_count() == threads + 1
    iterator.stop()
    assert threading.active_count() == threads
    with pytest.raises(ArgumentError, match="are over"):
        iter(iterator)


def test_a_list_is_one_value() -> None:
    data = dataset.NumpySlicesDataset({"x": [[1, 2], [3, 4]], "y": [5, 6]}, shuffle=False)
    first = next(iter(data.map(lambda x: [x, x], "x")))[0]
    assert first.asnumpy().tolist() == [[1, 2], [1, 2]]
    assert transforms.Compose([lambda x: [x, x]])(np.array([1])).tolist() == [[1], [1]]
    batch = next(iter(data.batch(2, per_batch_map=lambda y, info: y, input_columns=["y"])))
    assert batch[1].asnumpy().tolist() == [5, 6]
    with pytest.raises(RuntimeError, match="1 values for 2 columns"):
        list(data.map(lambda x, y: [x, y], ["x", "y"]))


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (ValueError, lambda d: d.project([])),
        (ValueError, lambda d: d.project(["x", "x"])),
        (RuntimeError, lambda d: d.rename("x", "y")),
        (RuntimeError, lambda d: d + d.project("x")),
        (RuntimeError, lambda d: d.split([1, 2])),
        (ValueError, lambda d: d.batch(1, input_columns=["x"])),
        (RuntimeError, lambda d: d.use_sampler(dataset.SequentialSampler(2)) or list(d)),
        (RuntimeError, lambda d: d.use_sampler(dataset.SubsetSampler([2])) or list(d)),
        (TypeError, lambda d: dataset.PKSampler(1, class_column=0)),
        (TypeError, lambda d: dataset.config.set_seed("a")),
        (ValueError, lambda d: transforms.RandomApply([np.abs], 2.0)),
        (TypeError, lambda d: transforms.Slice("a")),
        (RuntimeError, lambda d: transforms.Fill("a")(np.arange(2))),
        (RuntimeError, lambda d: transforms.PadEnd([3], "a")(np.arange(2))),
    ],
)
def test_mistakes_are_those_of_mindspore(error: type[Exception], make: Any) -> None:
    with pytest.raises(error):
        make(dataset.NumpySlicesDataset({"x": [1, 2], "y": [3, 4]}, shuffle=False))


def test_settings_without_a_meaning_are_noted_as_in_mindspore() -> None:
    config = dataset.config
    assert config.get_multiprocessing_start_method() == "fork"
    config.set_multiprocessing_start_method("spawn")
    assert config.get_multiprocessing_start_method() == "spawn"
    config.set_multiprocessing_start_method()
    with pytest.raises(ValueError, match="'fork' or 'spawn'"):
        config.set_multiprocessing_start_method("forkserver")
    with pytest.raises(TypeError, match="must be a string"):
        config.set_multiprocessing_start_method(1)  # pyright: ignore[reportArgumentType]
    config.set_iterator_mode(parallel_convert=True)
    assert config.get_iterator_mode() == {"do_copy": False, "parallel_convert": True}
    config.set_iterator_mode()
    with pytest.raises(TypeError, match="do_copy must be a bool"):
        config.set_iterator_mode(1)  # pyright: ignore[reportArgumentType]
    config.set_sending_batches(3)
    with pytest.raises(TypeError):
        config.set_sending_batches("a")


def test_settings_are_read_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = dataset.config
    monkeypatch.setattr(config, "_settings", config._Settings())
    file = tmp_path / "settings.json"
    file.write_text('{"logFilePath": "/tmp", "numParallelWorkers": 3, "seed": 77}')
    config.load(str(file))
    assert (config.get_seed(), config.get_num_parallel_workers()) == (77, 3)
    file.write_text('{"seed": "a"}')
    with pytest.raises(RuntimeError, match="seed must be an int"):
        config.load(str(file))
    with pytest.raises(RuntimeError, match="cannot be read"):
        config.load(str(tmp_path / "none.json"))
