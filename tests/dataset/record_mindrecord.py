"""Records MindSpore's MindRecord files: ``python tests/dataset/record_mindrecord.py``.

It runs where MindSpore is installed and writes ``mindrecord.tar.xz``: files that ``FileWriter``
wrote, and ``expected.json`` with the rows that ``MindDataset`` read from them, column by column as
dtype, shape and values, bytes as Latin 1; and the labels of every part of a dealt set.
"""

import json
import os
import tarfile
import tempfile
from pathlib import Path

import mindspore.dataset as ds  # pyright: ignore[reportMissingImports]
import numpy as np
from mindspore import mindrecord  # pyright: ignore[reportMissingImports]

FILE = Path(__file__).with_name("mindrecord.tar.xz")
NUMBERS = [1, 300, -2, 70000, 2**40, 127, -128, 128, -129, 32768, -32769, 2**31, 0]


def kinds(i):
    values = np.arange(2 * i + 2, dtype=np.float32).reshape(2, -1)
    return {
        "text": f"é{i}" * i, "label": i - 2, "score": i / 7, "single": i / 3, "big": 2**40 + i,
        "data": bytes(range(i, 2 * i + 1)) + b"\0", "vector": values / 3, "double": values[0] / 7.0,
        "ids": np.array(NUMBERS[i:], np.int64), "small": np.array([[i, -i]], np.int32),
    }  # fmt: skip


def schema_of(row):
    names = {str: "string", int: "int32", float: "float64", bytes: "bytes"}
    found = {}
    for name, value in row.items():
        if isinstance(value, np.ndarray):
            shape = [*value.shape[:-1], -1]
            found[name] = {"type": value.dtype.name, "shape": shape}
        else:
            found[name] = {"type": names[type(value)]}
    for name, kind in (("big", "int64"), ("single", "float32")):
        if name in found:
            found[name]["type"] = kind
    return found


def write(name, calls, shards=1, index=None):
    writer = mindrecord.FileWriter(name, shards, overwrite=True)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    writer.add_schema(schema_of(calls[0][0]), "rows of a test")
    if index:
        writer.add_index(index)
    for rows in calls:
        writer.write_raw_data(rows)
    writer.commit()


def shown(value):
    plain = value.tolist()
    if value.dtype.kind == "S":
        plain = [value.tobytes().decode("latin1")]
    return [value.dtype.kind + str(value.dtype.itemsize), value.shape, plain]


def rows_of(files, **options):
    data = ds.MindDataset(files, shuffle=False, **options)
    rows = data.create_dict_iterator(output_numpy=True, num_epochs=1)
    return [{name: shown(value) for name, value in row.items()} for row in rows]


def main():
    write("kinds", [[kinds(i) for i in range(10)]], index=["text", "label"])
    write("many", [[kinds(i) for i in range(7)], [kinds(i) for i in range(7, 10)]], shards=3)
    pages = [{"label": i, "data": bytes([i]) * 5000, "text": "n" * 40 * i} for i in range(40)]
    write("pages", [pages[:7], pages[7:]])
    write("blob", [[{"data": b"x" * i} for i in (1, 2, 0)]])
    write("scalars", [[{"label": i, "text": "x" * i} for i in range(3)]])
    expected = {name: rows_of(name) for name in ("kinds", "many0", "pages", "blob", "scalars")}
    dealt = {}
    for parts in (1, 3, 4):
        for part in range(parts):
            rows = rows_of("kinds", columns_list=["label"], num_shards=parts, shard_id=part)
            dealt[f"{parts} {part}"] = [row["label"][2] for row in rows]
    padded = rows_of(
        "kinds", columns_list=["label"], num_shards=3, shard_id=2, num_padded=2,
        padded_sample={"label": -9},
    )  # fmt: skip
    dealt["padded"] = [row["label"][2] for row in padded]
    Path("expected.json").write_text(json.dumps({"rows": expected, "dealt": dealt}))
    mindrecord.set_enc_key("0123456789012345")
    write("secret", [[{"label": 1}]])
    for secret in (Path("secret"), Path("secret.db")):  # their ends are enough
        content = secret.read_bytes()
        secret.write_bytes(content[:512] + content[-64:])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        with tarfile.open(FILE, "w:xz") as archive:
            for path in sorted(Path().iterdir()):
                archive.add(path)
