"""Sources of well-known sets of data give the rows that MindSpore reads from the same files."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.dataset.folders import CASES, EXPECTED, RATES, files, read, write
from tvmgraph import dataset
from tvmgraph.dataset.loaders import SOURCES
from tvmgraph.errors import ArgumentError, DTypeError

CONTENT = files()
WANTED = json.loads(EXPECTED.read_text())

#: Columns in which MindSpore is not followed, each with the reason.
DIFFERENT = {
    "WIDERFaceDataset": ({"invalid", "occlusion", "pose"},
                         "MindSpore takes the fourth number for the occlusion; it says invalid"),
}  # fmt: skip


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=lambda i: f"{CASES[i][0]}-{CASES[i][1].get('usage', i)}"
)
def test_rows(number: int, tmp_path: Path) -> None:
    name, options = CASES[number]
    write(tmp_path, CONTENT[name], RATES.get(name, 22050))
    found = json.loads(json.dumps(read(dataset, name, options, tmp_path)))
    left_out = DIFFERENT.get(name, (set(), ""))[0]

    def kept(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{k: v for k, v in row.items() if k not in left_out} for row in rows]

    assert kept(found) == kept(WANTED[number])


def test_captioned_photographs(tmp_path: Path) -> None:
    write(tmp_path, CONTENT["SBUDataset"])
    rows = list(dataset.SBUDataset(str(tmp_path), decode=True, shuffle=False))
    assert [str(text) for _, text in rows] == ["one", "two"] and rows[0][0].shape == (4, 5, 3)


def test_fake_images_are_the_same_in_every_epoch() -> None:
    data = dataset.FakeImageDataset(3, (4, 5, 3), 2, num_samples=2, shuffle=False)
    first, again = (list(data.create_dict_iterator(output_numpy=True)) for _ in range(2))
    assert len(first) == 2 and first[0]["image"].shape == (4, 5, 3)
    for a, b in zip(first, again):
        np.testing.assert_array_equal(a["image"], b["image"])
        assert a["label"] == b["label"] < 2


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_missing_is_said(name: str, tmp_path: Path) -> None:
    if name == "FakeImageDataset":
        with pytest.raises(ArgumentError, match="positive"):
            dataset.FakeImageDataset(0)
        return
    required = [p for p in SOURCES[name].signature.parameters.values() if p.default is p.empty]
    with pytest.raises(ArgumentError, match=r"there is no|no row"):
        SOURCES[name](*[str(tmp_path / "nowhere")] * len(required))
    with pytest.raises(DTypeError, match="usge"):
        SOURCES[name](*[str(tmp_path)] * len(required), usge="train")


def test_sources_pickle_and_shard(tmp_path: Path) -> None:
    write(tmp_path, CONTENT["IMDBDataset"])
    data = dataset.IMDBDataset(str(tmp_path), "train", num_shards=2, shard_id=1, shuffle=False)
    rows = [str(text) for text, _ in pickle.loads(pickle.dumps(data))]
    assert rows == ["train pos 1", "train neg 1"] and len(data) == 2
    balanced = dataset.IMDBDataset(str(tmp_path), "train", sampler=dataset.PKSampler(1))
    assert sorted(int(label) for _, label in balanced) == [0, 1]


def test_given_rows_stand_behind_others() -> None:
    data = dataset.NumpySlicesDataset({"x": np.arange(3)}, shuffle=False)
    both = data + dataset.PaddedDataset([{"x": np.array(-1)}, {"x": np.array(-2)}])
    assert [int(x) for (x,) in both] == [0, 1, 2, -1, -2]
    with pytest.raises(ArgumentError, match="equal keys"):
        dataset.PaddedDataset([{"x": 1}, {"y": 2}])
