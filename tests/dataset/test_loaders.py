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
    for file in (tmp_path / "sbu_images").iterdir():
        file.rename(file.with_name(f"m_{file.name}"))  # as in MindSpore's documents
    assert len(list(dataset.SBUDataset(str(tmp_path)))) == 2


def test_files_that_a_function_decrypts(tmp_path: Path) -> None:
    write(tmp_path, CONTENT["CelebADataset"])
    plain = list(dataset.CelebADataset(str(tmp_path), shuffle=False))
    opened = dataset.CelebADataset(str(tmp_path), shuffle=False, decrypt=lambda path: b"ab")
    assert [image.asnumpy().tolist() for image, _ in opened] == [[97, 98]] * len(plain)


def test_the_order_of_files_is_mindspores(tmp_path: Path) -> None:
    for name in ("test", "train"):
        (tmp_path / f"{name}.csv").write_text(f'"1","{name}","text"\n')
        (tmp_path / f"{name}.txt").write_text(name)
    for source, first in (("AGNews", "test"), ("SogouNews", "train"), ("YelpReview", "train")):
        rows = getattr(dataset, f"{source}Dataset")(str(tmp_path), "all", shuffle=False)
        assert str(next(iter(rows))[1]) == first
    lines = dataset.TextFileDataset(
        [str(tmp_path / f"{n}.txt") for n in ("train", "test")], shuffle=False
    )
    assert [str(line) for (line,) in lines] == ["test", "train"]
    for part in ("training/train", "validation/val", "mmt16_task1_test/test"):
        (tmp_path / part).parent.mkdir()
        for word in ("en", "de"):
            (tmp_path / f"{part}.{word}").write_text(f"{part}\n")
    rows = dataset.Multi30kDataset(str(tmp_path), shuffle=False)
    assert [str(text)[:2] for text, _ in rows] == ["mm", "tr", "va"]


def test_the_valid_scenes_are_those_of_val(tmp_path: Path) -> None:
    write(tmp_path, CONTENT["LSUNDataset"])
    sizes = [len(list(dataset.LSUNDataset(str(tmp_path), u))) for u in ("valid", "val", "all")]
    assert sizes == [2, 2, 4]


def test_fake_images_are_the_same_in_every_epoch() -> None:
    data = dataset.FakeImageDataset(3, (4, 5, 3), 2, num_samples=2, shuffle=False)
    first, again = (list(data.create_dict_iterator(output_numpy=True)) for _ in range(2))
    assert len(first) == 2 and first[0]["image"].shape == (4, 5, 3)
    for a, b in zip(first, again):
        np.testing.assert_array_equal(a["image"], b["image"])
        assert a["label"] == b["label"] < 2


def test_files_of_lines_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for split in ("train", "test"):
        tmp_path.joinpath(f"{split}.csv").write_text(f'"1","{split}","text"\n')
    rows = dataset.AGNewsDataset(str(tmp_path), shuffle=False).create_tuple_iterator(
        output_numpy=True
    )
    assert [str(title) for _, title, _ in rows] == ["test", "train"]


@pytest.mark.parametrize("text", [False, True])
def test_files_are_shuffled_as_wholes_or_each_by_itself(text: bool, tmp_path: Path) -> None:
    for split in ("train", "test"):
        lines = [f'"1","{split}{i}","text"' for i in range(20)]
        tmp_path.joinpath(f"{split}.csv").write_text("\n".join(lines))

    def names(shuffle: object, epoch: int = 0) -> list[str]:
        made = (dataset.TextFileDataset(str(tmp_path / "*.csv"), shuffle=shuffle) if text
                else dataset.AGNewsDataset(str(tmp_path), shuffle=shuffle))  # fmt: skip
        return [str(row[0 if text else 1]) for row in made.rows(epoch)]

    plain = names(False)
    swapped = plain[20:] + plain[:20]
    assert {tuple(names(dataset.Shuffle.FILES, i)) for i in range(9)} == {
        tuple(plain), tuple(swapped)
    }  # fmt: skip
    within = names(dataset.Shuffle.INFILE)
    assert within[:20] != plain[:20] and sorted(within[:20]) == sorted(plain[:20])
    assert sorted(names(dataset.Shuffle.GLOBAL)[:20]) != sorted(plain[:20])


def test_arguments_that_decide_nothing_are_checked(tmp_path: Path) -> None:
    write(tmp_path, CONTENT["GTZANDataset"])
    with pytest.raises(ArgumentError, match="num_parallel_workers"):
        dataset.GTZANDataset(str(tmp_path), num_parallel_workers=0)
    with pytest.raises(ArgumentError, match="usage cannot be 'dev'"):
        dataset.GTZANDataset(str(tmp_path), usage="dev")
    with pytest.raises(RuntimeError, match=r"'\.sph', not in '\.wav'"):
        dataset.TedliumDataset(str(tmp_path), "release1", extensions=".wav")


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_missing_is_said(name: str, tmp_path: Path) -> None:
    if name == "FakeImageDataset":
        with pytest.raises(ArgumentError, match="positive"):
            dataset.FakeImageDataset(0)
        return
    if name == "RandomDataset":
        with pytest.raises(ArgumentError, match="schema says"):
            dataset.RandomDataset(3)
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


def test_names_of_classes(tmp_path: Path) -> None:
    write(tmp_path, CONTENT["CocoDataset"])
    coco = dataset.CocoDataset(str(tmp_path), str(tmp_path / "objects.json"))
    assert coco.get_class_indexing() == {"cat": [7], "dog": [9]} and coco.num_classes() == 2
    write(tmp_path, CONTENT["VOCDataset"])
    voc = dataset.VOCDataset(str(tmp_path), "Detection")
    assert voc.shuffle(2).get_class_indexing() == {"bus": 0, "car": 1}
    assert dataset.VOCDataset(str(tmp_path), "Segmentation").num_classes() is None


def test_things_of_panoptic_files(tmp_path: Path) -> None:
    segment = {"category_id": 2, "bbox": [1, 1, 2, 2], "iscrowd": 0, "area": 4}
    kinds = [{"id": 1, "isthing": 0, "name": "sky"}, {"id": 2, "isthing": 1, "name": "cat"}]
    notes = [{"image_id": 5, "segments_info": [segment]}]
    images = [{"id": 5, "file_name": "a.png"}]
    text = json.dumps({"images": images, "categories": kinds, "annotations": notes})
    write(tmp_path, CONTENT["CocoDataset"] | {"all.json": text})
    data = dataset.CocoDataset(str(tmp_path), str(tmp_path / "all.json"), "Panoptic")
    assert data.get_class_indexing() == {"sky": [1, 0], "cat": [2, 1]}


def test_names_of_files_are_seen_once_they_are_renamed(tmp_path: Path) -> None:
    write(tmp_path, CONTENT["CocoDataset"])
    data = dataset.CocoDataset(
        str(tmp_path), str(tmp_path / "objects.json"), shuffle=False, extra_metadata=True
    )
    assert [len(row) for row in data] == [4, 4]
    assert "_meta-filename" not in next(data.create_dict_iterator())
    renamed = data.rename("_meta-filename", "filename").create_dict_iterator(output_numpy=True)
    assert [str(row["filename"]) for row in renamed] == ["a", "b"]


def test_images_of_several_classes(tmp_path: Path) -> None:
    lines = [("a.png", ["dog"]), ("b.png", ["cat", "dog", "emu"])]
    text = "".join(
        json.dumps({"source": str(tmp_path / file), "usage": "TRAIN",
                    "annotation": [{"name": n} for n in names]}) + "\n"
        for file, names in lines
    )  # fmt: skip
    write(tmp_path, CONTENT["ManifestDataset"] | {"list.json": text})
    data = dataset.ManifestDataset(str(tmp_path / "list.json"), shuffle=False)
    assert data.get_class_indexing() == {"cat": 0, "dog": 1, "emu": 2}
    assert [label.tolist() for _, label in data] == [1, [0, 1, 2]]
    some = {"dog": 5, "emu": 7}
    data = dataset.ManifestDataset(str(tmp_path / "list.json"), class_indexing=some, shuffle=False)
    assert [label.tolist() for _, label in data] == [5, [5, 7]] and data.num_classes() == 2


def test_nothing_is_the_largest_unsigned_number(tmp_path: Path) -> None:
    asked = {"question": "q", "id": "1", "answers": []}
    pages = [{"paragraphs": [{"context": "c", "qas": [asked]}]}]
    write(tmp_path, {"train-v2.0.json": json.dumps({"data": pages})})
    ((*_, start),) = dataset.SQuADDataset(str(tmp_path), "train")
    assert start.tolist() == [2**32 - 1]


def test_backslashes_in_reviews_stay(tmp_path: Path) -> None:
    write(tmp_path, {"train.csv": r'"1","a \""good\"" one\nline"' + "\n"})
    ((_, text),) = dataset.YelpReviewDataset(str(tmp_path), "train")
    assert str(text) == r"a \"good\" one\nline"


@pytest.mark.parametrize("more", [{"shuffle": False}, {"num_shards": 2, "shard_id": 0}])
def test_samplers_exclude_orders_and_shards(more: dict[str, Any], tmp_path: Path) -> None:
    write(tmp_path, CONTENT["SemeionDataset"])
    with pytest.raises(RuntimeError, match="already decides"):
        dataset.SemeionDataset(str(tmp_path), sampler=dataset.RandomSampler(), **more)
    with pytest.raises(RuntimeError, match="belong together"):
        dataset.SemeionDataset(str(tmp_path), num_shards=2)


def test_talks_are_parts_of_recordings(tmp_path: Path) -> None:
    samples = np.arange(-8, 8, dtype=np.int16) * 1000
    fields = "sample_count -i 16\nsample_n_bytes -i 2\nchannel_count -i 1\nsample_rate -i 8\n"
    for order, name in ((">i2", "10"), ("<i2", "01")):
        header = f"NIST_1A\n   1024\n{fields}sample_byte_format -s2 {name}\nend_head\n"
        raw = header.encode().ljust(1024) + samples.astype(order).tobytes()
        write(
            tmp_path, {"data/sph/a.sph": raw, "data/stm/a.stm": "a 1 me 0.5 1.25 <o> two words\n"}
        )
        ((wave, rate, *texts),) = dataset.TedliumDataset(str(tmp_path), "release3")
        assert wave.asnumpy().tolist() == [[s / 32768 for s in samples[4:10]]] and rate == 8
        assert [str(t) for t in texts] == ["two words", "a", "me", "<o>"]


def test_noise_of_a_schema(tmp_path: Path) -> None:
    schema = dataset.Schema()
    schema.add_column("image", "uint8", [2, 3])
    schema.add_column("label", "int32")
    rows = list(dataset.RandomDataset(5, schema).create_dict_iterator(output_numpy=True))
    assert len(rows) == 5 and {k: (v.dtype, v.shape) for k, v in rows[0].items()} == {
        "image": (np.uint8, (2, 3)), "label": (np.int32, ())}  # fmt: skip
    assert isinstance(dataset.RandomDataset(5, schema), dataset.VisionBaseDataset)


def test_files_of_another_format_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {"train_32x32.mat": b"MATLAB 7.3".ljust(200)})
    with pytest.raises(ArgumentError, match="no MATLAB file of level 5"):
        dataset.SVHNDataset(str(tmp_path), "train")


def test_all_of_stl10_is_in_the_order_of_its_files(tmp_path: Path) -> None:
    write(tmp_path, CONTENT["STL10Dataset"])
    rows = list(dataset.STL10Dataset(str(tmp_path), shuffle=False))
    assert [int(label) for _, label in rows] == [0, 2, 0, -1]
