"""MindRecord files: what MindSpore wrote is read as MindSpore reads it, and written again."""

from __future__ import annotations

import contextlib
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.archives import unpack
from tvmgraph import dataset, mindrecord
from tvmgraph.dataset.mindrecord import _integers, _unpack
from tvmgraph.dataset.mindrecord_writer import _pack, _pack_integers
from tvmgraph.errors import ArgumentError, LoadError, TvmgraphError

RECORDED = Path(__file__).with_name("mindrecord.tar.xz")
FILES = ("kinds", "many0", "pages", "blob", "scalars")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mindrecord")
    unpack(RECORDED, path)
    return path


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "expected.json").read_text())


def shown(value: np.ndarray) -> list[Any]:
    """What the recorder writes of a value."""
    plain = value.tolist()
    if value.dtype.kind == "S":
        plain = [value.tobytes().decode("latin1")]
    return [value.dtype.kind + str(value.dtype.itemsize), list(value.shape), plain]


def rows_of(files: Any, **options: Any) -> list[dict[str, Any]]:
    data = dataset.MindDataset(files, shuffle=False, **options)
    rows = data.create_dict_iterator(output_numpy=True, num_epochs=1)
    return [{name: shown(value) for name, value in row.items()} for row in rows]


def labels(data: dataset.Dataset) -> list[int]:
    at = data.get_col_names().index("label")
    return [int(r[at]) for r in data.create_tuple_iterator(output_numpy=True, num_epochs=1)]


@pytest.mark.parametrize("name", FILES)
def test_rows_are_those_of_mindspore(folder: Path, expected: dict[str, Any], name: str) -> None:
    found, wanted = rows_of(str(folder / name)), expected["rows"][name]
    assert found == wanted
    assert list(found[0]) == list(wanted[0])


def test_rows_are_dealt_as_in_mindspore(folder: Path, expected: dict[str, Any]) -> None:
    for key, wanted in expected["dealt"].items():
        if key == "padded":
            continue
        parts, part = map(int, key.split())
        data = dataset.MindDataset(
            folder / "kinds", ["label"], shuffle=False, num_shards=parts, shard_id=part
        )
        assert labels(data) == wanted
        assert data.get_dataset_size() == len(wanted)
    data = dataset.MindDataset(
        folder / "kinds", ["label"], shuffle=False, num_shards=3, shard_id=2,
        padded_sample={"label": -9}, num_padded=2,
    )  # fmt: skip
    assert labels(data) == expected["dealt"]["padded"]


def test_a_path_stands_for_its_set_and_a_list_for_itself(folder: Path) -> None:
    whole = dataset.MindDataset(str(folder / "many1"), shuffle=False)
    assert sorted(labels(whole)) == list(range(-2, 8))
    parts = [
        labels(dataset.MindDataset([str(folder / f"many{i}")], shuffle=False)) for i in range(3)
    ]
    assert [n for p in parts for n in p] == labels(whole)


def test_order_samples_and_pickles(folder: Path) -> None:
    data = dataset.MindDataset(folder / "kinds", ["label", "text"], num_samples=7)
    assert data.get_col_names() == ["label", "text"]
    assert data.get_dataset_size() == 7
    assert len(set(labels(data))) == 7
    file = dataset.MindDataset(folder / "pages", ["label"], shuffle=dataset.Shuffle.INFILE)
    assert sorted(labels(file)) == list(range(40)) != labels(file)
    sampler = dataset.SubsetSampler([5, 1])
    chosen = dataset.MindDataset(folder / "pages", ["label"], sampler=sampler)
    assert labels(pickle.loads(pickle.dumps(chosen))) == [5, 1]


def test_columns_feed_a_pipeline(folder: Path) -> None:
    data = dataset.MindDataset(folder / "pages", ["data", "label"], shuffle=False)
    data = data.map(lambda x: np.frombuffer(x.tobytes(), np.uint8), "data").batch(4)
    rows = data.create_tuple_iterator(output_numpy=True, num_epochs=1)
    for first, numbers in rows:
        assert first.shape == (4, 5000)
        assert (first == numbers[:, None]).all()


def test_the_reader_gives_python_values(folder: Path) -> None:
    reader = mindrecord.FileReader(str(folder / "kinds"))
    assert reader.len() == 10
    assert reader.schema()["ids"] == {"type": "int64", "shape": [-1]}
    row = list(reader.get_next())[3]
    assert row["data"] == bytes((3, 4, 5, 6, 0))
    assert (row["label"], row["text"], row["single"]) == (1, "é3" * 3, 1.0)
    assert row["ids"][:3].tolist() == [70000, 2**40, 127]
    (first, *_) = mindrecord.FileReader(str(folder / "kinds"), columns=["label"]).get_next()
    assert first == {"label": -2}
    reader.close()


@pytest.mark.parametrize("shards", [1, 3])
def test_what_is_written_is_read(folder: Path, tmp_path: Path, shards: int) -> None:
    for name in FILES:
        reader = mindrecord.FileReader(str(folder / name))
        rows = list(reader.get_next())
        writer = mindrecord.FileWriter(str(tmp_path / name), shards)
        writer.set_header_size(1 << 14)
        writer.set_page_size(1 << 15)
        writer.add_schema(reader.schema(), "again")
        writer.write_raw_data(rows)
        writer.commit()
        first = tmp_path / (name if shards == 1 else f"{name}0")
        assert rows_of(str(first)) == rows_of(str(folder / name))


def test_rows_are_appended(folder: Path, tmp_path: Path) -> None:
    for name in ("pages", "pages.db"):
        shutil.copy(folder / name, tmp_path / name)
    (tmp_path / "pages").chmod(0o600)
    writer = mindrecord.FileWriter.open_for_append(str(tmp_path / "pages"))
    writer.write_raw_data([{"label": 40 + i, "data": b"x" * 9000, "text": "t"} for i in range(9)])
    writer.commit()
    data = dataset.MindDataset(str(tmp_path / "pages"), shuffle=False)
    assert labels(data) == list(range(49))
    with pytest.raises(ArgumentError, match="one of several"):
        mindrecord.FileWriter.open_for_append(str(folder / "many0"))


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)))
def test_integers_take_few_bytes_and_come_back(values: list[int]) -> None:
    array = np.array(values, np.int64)
    assert _integers(_pack_integers(array)).tolist() == values


@given(
    st.dictionaries(
        st.text(), st.text() | st.floats(allow_nan=False) | st.integers(-(2**63), 2**63 - 1)
    )
)
def test_values_come_back(row: dict[str, Any]) -> None:
    data = _pack(row)
    assert _unpack(data) == (row, len(data))


def test_wrong_files(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="there is no file"):
        dataset.MindDataset(str(tmp_path / "missing"))
    with pytest.raises(ArgumentError, match="no column 'other'"):
        dataset.MindDataset(str(folder / "kinds"), ["other"])
    with pytest.raises(ArgumentError, match="no column 'other'"):
        mindrecord.FileReader(str(folder / "kinds"), columns=["other"])
    with pytest.raises(LoadError, match="encrypted"):
        dataset.MindDataset(str(folder / "secret"))
    with pytest.raises(ArgumentError, match="columns differ"):
        dataset.MindDataset([str(folder / "kinds"), str(folder / "blob")])
    shutil.copy(folder / "kinds.db", tmp_path / "cut.db")
    (tmp_path / "cut").write_bytes((folder / "kinds").read_bytes()[: (1 << 14) + 100])
    cut = dataset.MindDataset(str(tmp_path / "cut"), shuffle=False)
    with pytest.raises(LoadError, match="row 0"):
        cut.row(0)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_files_are_errors_of_this_package(folder: Path, data: st.DataObject) -> None:
    whole = (folder / "kinds").read_bytes()
    shutil.copy(folder / "kinds.db", folder / "mutated.db")
    content = bytearray(whole)
    parts = [(0, 900), (1 << 14, len(whole))]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.one_of(*(st.integers(a, b - 1) for a, b in parts)))
        content[at] = data.draw(st.integers(0, 255))
    (folder / "mutated").write_bytes(content)
    with contextlib.suppress(TvmgraphError):
        for row in mindrecord.FileReader(str(folder / "mutated")).get_next():
            assert row


def test_wrong_rows(tmp_path: Path) -> None:
    writer = mindrecord.FileWriter(str(tmp_path / "file"))
    schema = {
        "label": {"type": "int32"}, "x": {"type": "float32", "shape": [2, -1]},
        "data": {"type": "bytes"},
    }  # fmt: skip
    with pytest.raises(ArgumentError, match="need columns"):
        writer.write_raw_data([])
    for bad in ({"a b": {"type": "int32"}}, {"a": {"type": "int8"}},
                {"a": {"type": "bytes", "shape": [1]}}):  # fmt: skip
        with pytest.raises(ArgumentError, match="column '"):
            writer.add_schema(bad)
    writer.add_schema(schema)
    with pytest.raises(ArgumentError, match="cannot be an index"):
        writer.add_index(["data"])
    good = {"label": 1, "x": np.ones((2, 1), np.float32), "data": b""}
    for name, value in (
        ("label", 1.5), ("label", 2**31), ("x", np.ones(3, np.float32)), ("x", np.ones((2, 1))),
        ("data", "text"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=f"row 1, column '{name}'"):
            writer.write_raw_data([good, {**good, name: value}])
    with pytest.raises(ArgumentError, match="row 0, column 'label': KeyError"):
        writer.write_raw_data([{"x": good["x"], "data": b""}])
    with pytest.raises(ArgumentError, match="page_size=5"):
        writer.set_page_size(5)
    writer.write_raw_data([good])
    writer.commit()
    with pytest.raises(ArgumentError, match="exists"):
        mindrecord.FileWriter(str(tmp_path / "file"))
    with pytest.raises(ArgumentError, match="commit"):
        writer.write_raw_data([good])


def test_a_dataset_is_saved(tmp_path: Path) -> None:
    columns = {"a": [1, 2, 3], "b": np.arange(12.0).reshape(3, 2, 2), "s": ["x", "yy", "z"]}
    data = dataset.NumpySlicesDataset(columns, shuffle=False)
    file = str(tmp_path / "rows.mindrecord")
    data.save(file)
    found = dataset.MindDataset(file, shuffle=False).create_dict_iterator(output_numpy=True)
    for row, want in zip(found, data.create_dict_iterator(output_numpy=True), strict=True):
        assert all((row[name] == want[name]).all() for name in columns)
    with pytest.raises(ArgumentError, match="exists"):
        data.save(file)
    with pytest.raises(ArgumentError, match="file_type"):
        data.save(file, file_type="tfrecord")
