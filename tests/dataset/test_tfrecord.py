"""TFRecord files, as MindSpore reads them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

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
