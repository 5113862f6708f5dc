"""TFRecord files, as MindSpore reads them."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import dataset
from tvmgraph.dataset.tfrecord import _example
from tvmgraph.errors import ArgumentError


def _content(rows: int = 3) -> bytes:
    """Returns a file of rows with whole numbers ``i``, a number ``f`` and bytes ``img``."""
    content = b""
    for k in range(rows):
        row = _example()()
        row.features.feature["i"].int64.value.extend([k, k + 1])
        row.features.feature["f"].float.value.append(k / 2)
        row.features.feature["img"].bytes.value.append(bytes([1, 2, 3, 4, 5, k]))
        body = row.SerializeToString()
        content += len(body).to_bytes(8, "little") + bytes(4) + body + bytes(4)
    return content


def _read(source: Any) -> list[dict[str, Any]]:
    rows = source.create_dict_iterator(num_epochs=1, output_numpy=True)
    return [{k: (str(v.dtype), v.tolist()) for k, v in row.items()} for row in rows]


def test_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(_content())
    found = _read(dataset.TFRecordDataset(str(path), shuffle=False))
    assert found[2] == {
        "i": ("int64", [2, 3]), "f": ("float32", [1.0]), "img": ("uint8", [1, 2, 3, 4, 5, 2]),
    }  # fmt: skip
    path.write_bytes(gzip.compress(_content()))
    again = dataset.TFRecordDataset([path], shuffle=False, compression_type="GZIP")
    assert _read(again) == found


@pytest.mark.parametrize("written", [False, True])
def test_schema(tmp_path: Path, written: bool) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(_content())
    schema: Any = dataset.Schema()
    schema.add_column("i", ms.int32, [2, 1])
    schema.add_column("img", ms.uint8, [None, 3])
    if written:
        columns = {
            "i": {"type": "int32", "shape": [2, 1]},
            "img": {"type": "uint8", "shape": [-1, 3]},
        }
        again = dataset.Schema()
        again.from_json({"columns": columns, "numRows": 2})
        assert again.columns == schema.columns and again.num_rows == 2
        schema = str(tmp_path / "schema.json")
        Path(schema).write_text(json.dumps({"columns": columns}))
    source = dataset.TFRecordDataset(str(path), schema, num_samples=1, shuffle=False)
    assert _read(source) == [{"i": ("int32", [[0], [1]]), "img": ("uint8", [[1, 2, 3], [4, 5, 0]])}]


def test_a_file_of_a_schema_says_how_many_rows_are_read(tmp_path: Path) -> None:
    path, schema = tmp_path / "a.tfrecord", tmp_path / "schema.json"
    path.write_bytes(_content())
    columns = {"img": {"type": "uint8"}, "f": {"type": "float32"}}
    schema.write_text(json.dumps({"numRows": 1, "columns": columns}))
    source = dataset.TFRecordDataset(str(path), str(schema), shuffle=False)
    assert len(_read(source)) == source.get_dataset_size() == 1
    assert source.get_col_names() == ["f", "img"]
    assert len(_read(dataset.TFRecordDataset(str(path), str(schema), num_samples=2))) == 2


def test_bytes_are_text_where_a_schema_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(_content(1))
    schema = pickle.loads(pickle.dumps(dataset.Schema()))
    schema.add_column("img", "string")
    again = dataset.Schema()
    again.add_column("img", ms.string, [1])
    assert json.loads(again.to_json())["columns"][0]["type"] == "string"
    for s in (schema, pickle.loads(pickle.dumps(again))):
        source = dataset.TFRecordDataset(str(tmp_path / "*.tfrecord"), s)
        assert _read(source) == [{"img": ("<U6", ["\x01\x02\x03\x04\x05"])}]
        assert source.output_types() == [np.str_]
    with pytest.raises(TypeError, match="string"):
        ms.Tensor([1], ms.string)


@pytest.mark.parametrize("wrong", [("i", "string"), ("img", "int32"), ("i", "int64", [3])])
def test_what_a_schema_says_wrong(tmp_path: Path, wrong: tuple[Any, ...]) -> None:
    (tmp_path / "a.tfrecord").write_bytes(_content(1))
    schema = dataset.Schema()
    schema.add_column(*wrong)
    with pytest.raises(RuntimeError, match=f"column {wrong[0]!r}"):
        _read(dataset.TFRecordDataset(str(tmp_path / "a.tfrecord"), schema))


def test_a_rank_of_zero(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(_content(1))
    (tmp_path / "s.json").write_text('{"columns": {"f": {"type": "float32", "rank": 0}}}')
    source = dataset.TFRecordDataset(str(tmp_path / "a.tfrecord"), str(tmp_path / "s.json"))
    assert source.output_shapes() == [[]]


@pytest.mark.parametrize("shuffle", [False, True, dataset.Shuffle.FILES, dataset.Shuffle.INFILE])
def test_files_are_dealt_to_shards(tmp_path: Path, shuffle: object) -> None:
    for name, rows in zip("bca", (2, 3, 4)):
        (tmp_path / name).write_bytes(_content(rows))

    def lengths(epochs: int, **options: Any) -> list[list[int]]:
        parts = [
            dataset.TFRecordDataset(
                str(tmp_path / "*"), num_shards=2, shard_id=i, shuffle=shuffle, **options
            )
            for i in range(2)
        ]
        return [[len(_read(p)) for p in parts] for _ in range(epochs)]

    found = lengths(8)
    assert all(sum(f) == 9 for f in found)
    moved = {tuple(f) for f in found} != {(7, 2)}
    assert moved == (shuffle in (True, dataset.Shuffle.FILES))
    assert lengths(1, shard_equal_rows=True) == [[5, 5]]
    assert lengths(1, num_samples=1) == [[1, 1]]


def test_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(_content()[:-3])
    with pytest.raises(ArgumentError, match="breaks off in row 2"):
        dataset.TFRecordDataset(str(path))
    with pytest.raises(ArgumentError, match="there is no file"):
        dataset.TFRecordDataset(str(tmp_path / "b"))
    path.write_bytes(_content())
    with pytest.raises(ArgumentError, match="no column 'x'"):
        _read(dataset.TFRecordDataset(str(path), columns_list=["x"]))
