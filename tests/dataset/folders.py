"""Writes small folders in the formats of well-known sets of data.

``python -m tests.dataset.folders`` records what MindSpore reads from them, where it is installed.
"""

from __future__ import annotations

import base64
import importlib
import json
import tempfile
import wave
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

EXPECTED = Path(__file__).with_name("expected_sources.json")

#: What is read: arguments after the folder, in which ``{}`` stands for it.
CASES = [
    (name, options)
    for name, choices in {
        "AGNewsDataset": [{"usage": "train"}, {}],
        "AmazonReviewDataset": [{"usage": "test"}],
        "DBpediaDataset": [{"usage": "train"}],
        "SogouNewsDataset": [{"usage": "train"}],
        "YahooAnswersDataset": [{"usage": "train"}],
        "YelpReviewDataset": [{"usage": "train"}],
        "EnWik9Dataset": [{}],
        "PennTreebankDataset": [{"usage": "valid"}, {"usage": "all"}],
        "WikiTextDataset": [{"usage": "train"}],
        "CoNLL2000Dataset": [{"usage": "train"}],
        "UDPOSDataset": [{"usage": "train"}],
        "IMDBDataset": [{"usage": "train"}, {"usage": "all"}],
        "SST2Dataset": [{"usage": "train"}, {"usage": "test"}, {"usage": "dev"}],
        "SQuADDataset": [{"usage": "dev"}],
        "Multi30kDataset": [{"usage": "train", "language_pair": ["en", "de"]}],
        "EMnistDataset": [{"name": "letters", "usage": "train"}],
        "KMnistDataset": [{"usage": "train"}],
        "SemeionDataset": [{}],
        "USPSDataset": [{"usage": "train"}],
        "STL10Dataset": [{"usage": "train"}, {"usage": "unlabeled"}],
        "Caltech256Dataset": [{"decode": True}],
        "OmniglotDataset": [{"background": True, "decode": True}, {"background": False}],
        "SUN397Dataset": [{"decode": True}],
        "Food101Dataset": [{"usage": "train", "decode": True}],
        "RenderedSST2Dataset": [{"usage": "val", "decode": True}],
        "LSUNDataset": [{"usage": "train", "classes": ["bedroom", "tower"], "decode": True}],
        "CelebADataset": [{"decode": True}, {"usage": "valid", "decode": True}],
        "ManifestDataset": [{"dataset_file": "{}/list.json", "usage": "train", "decode": True}],
        "CocoDataset": [
            {"annotation_file": "{}/objects.json", "task": "Detection", "decode": True},
            {"annotation_file": "{}/objects.json", "task": "Stuff"},
            {"annotation_file": "{}/captions.json", "task": "Captioning"},
        ],
        "VOCDataset": [
            {"task": "Detection", "usage": "train", "decode": True},
            {"task": "Segmentation", "usage": "train", "decode": True},
        ],
        "FlickrDataset": [{"annotation_file": "{}/tokens.txt", "decode": True}],
        "DIV2KDataset": [{"usage": "train", "decode": True}],
        "CityscapesDataset": [{"decode": True}],
        "KITTIDataset": [{"usage": "train", "decode": True}, {"usage": "test"}],
        "WIDERFaceDataset": [{"usage": "train", "decode": True}],
        "CMUArcticDataset": [{"name": "aew"}],
        "GTZANDataset": [{}],
        "LJSpeechDataset": [{}],
        "SpeechCommandsDataset": [{"usage": "test"}],
        "YesNoDataset": [{}],
        "CLUEDataset": [
            {"dataset_files": "{}/a.json", "task": task, "usage": usage}
            for task in ("AFQMC", "CMNLI", "CSL", "IFLYTEK", "TNEWS", "WSC")
            for usage in ("train", "test")
        ],
        "IWSLT2016Dataset": [{"usage": "train"}, {"usage": "valid"}],
        "IWSLT2017Dataset": [{"usage": "test", "language_pair": ["en", "it"]}],
        "LibriTTSDataset": [{"usage": "dev-clean"}],
        "QMnistDataset": [{"usage": "nist"}, {"usage": "train", "compat": False}],
        "SVHNDataset": [{"usage": "train"}, {"usage": "all"}],
        "Caltech101Dataset": [{"decode": True}, {"target_type": "all", "decode": True}],
        "Flowers102Dataset": [
            {"usage": "train", "decode": True},
            {"task": "Segmentation", "decode": True},
        ],
        "LFWDataset": [
            {"decode": True},
            {"usage": "10fold", "decode": True},
            {"task": "pairs", "image_set": "original", "decode": True},
        ],
        "Places365Dataset": [{"decode": True}, {"usage": "val", "small": False, "decode": True}],
        "PhotoTourDataset": [
            {"name": "liberty", "usage": "train"},
            {"name": "liberty", "usage": "test"},
        ],
        "SBDataset": [
            {"decode": True},
            {"task": "Segmentation", "usage": "val", "decode": True},
        ],
    }.items()
    for options in choices
]


#: A structure with the outlines of 20 classes as sparse arrays and the classes of 4 x 5 pixels.
OUTLINES = (
    "DwAAAPIAAAB4nONjAAJOBgY2IMUBxEwMEMAK5TMiYZCYe0hyTjGYzcIgBBU3A2Kn/NK8lMSizNRiqAEM"
    "wanpual5JYklmfl5EBHnxJLU9HyQmoCi1GKgHFCMD4h/sCPsZ0SzXwTJfgao+ggGhHpWJLeB+CxIYjBz"
    "YLQEA24A8zc9zG9AM5+dgPkyQMwMFWNCopmhGN1+RiQ5Nqj5TFCaEQKGRTgOdfMbGEhPB+jxz4DGRk8H"
    "TEhmjaaDUfNHzR81f7CZ74FkPieSfmzmg/SB2gRCjFwCLEzCnGwMAsxCQqxCwmzs3DDzDPCYh1yHQsxj"
    "YmAGSgAAPfkkgA=="
)


def matlab(**arrays: np.ndarray) -> bytes:
    """Returns arrays as a MATLAB file of level 5; uint8 and float64 are enough."""

    def element(kind: int, data: bytes) -> bytes:
        return np.array([kind, len(data)], "<u4").tobytes() + data + bytes(-len(data) % 8)

    raw = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    for name, array in arrays.items():
        whole = array.dtype == np.uint8
        parts = (
            element(6, np.array([9 if whole else 6, 0], "<u4").tobytes()),
            element(5, np.array(array.shape, "<i4").tobytes()), element(1, name.encode()),
            element(2 if whole else 9, array.tobytes(order="F")),
        )  # fmt: skip
        raw += element(14, b"".join(parts))
    return raw


def files() -> dict[str, dict[str, Any]]:
    """Returns, by set of data, the content of its files by path: text, bytes or arrays."""
    rng = np.random.default_rng(3)

    def image() -> np.ndarray:
        return rng.integers(0, 256, (4, 5, 3)).astype(np.uint8)

    def sound() -> np.ndarray:
        return rng.integers(-32768, 32768, 20).astype(np.int16)

    def idx(*arrays: np.ndarray) -> list[bytes]:
        return [
            bytes([0, 0, 8, a.ndim]) + np.array(a.shape, ">u4").tobytes() + a.tobytes()
            for a in arrays
        ]

    def table(width: int) -> dict[str, Any]:
        rows = [f'"{i}","a {i}, b"' + ',"say ""x"""' * (width - 2) for i in (3, 1)]
        return {f"{p}.csv": "\n".join(rows) + "\n" for p in ("train", "test")}

    def tags(names: list[str], separator: str) -> dict[str, Any]:
        text = "\n".join(separator.join(w) for w in ("aXY", "bZY")) + "\n\n"
        return {n: text + separator.join("cXX") + "\n\n" for n in names}

    digits, numbers = idx(rng.integers(0, 256, (3, 28, 28)).astype(np.uint8),
                          np.array([2, 0, 1], np.uint8))  # fmt: skip
    talk = '<mteval>\n<srcset>\n<doc>\n<seg id="1"> {} 3. </seg>\n</doc>\n</srcset>\n</mteval>\n'
    line = "Car 0.5 1 -1.5 10 20 30 40 1.5 1.6 3.5 2 1.5 20 -1.25"
    box = {"bbox": [1, 2, 3, 2], "category_id": 7, "iscrowd": 0,
           "segmentation": [[1.0, 2, 3, 4, 5, 6]], "area": 6}  # fmt: skip
    coco = {
        "images": [{"id": 5, "file_name": "a.png"}, {"id": 6, "file_name": "b.png"}],
        "categories": [{"id": 7, "name": "cat"}, {"id": 9, "name": "dog"}],
        "annotations": [
            {"id": 1, "image_id": 5, **box},
            {"id": 2, "image_id": 5, **box, "category_id": 9, "segmentation": [[9.0, 8] * 4]},
            {"id": 3, "image_id": 6, **box},
        ],
    }
    words = [{"id": i, "image_id": i % 2 + 5, "caption": f"text {i}"} for i in range(3)]
    corners = "<xmin>1</xmin><ymin>1</ymin><xmax>4</xmax><ymax>3</ymax>"
    flags = "<difficult>{}</difficult><truncated>1</truncated>"
    thing = f"<object><name>{{}}</name>{flags}<bndbox>{corners}</bndbox></object>"
    address = "http://static.flickr.com/2723/4385058960_{}.jpg\n"
    xml = "<annotation>{}</annotation>"
    question = {"question": "q?", "id": "1", "answers": [{"text": "b", "answer_start": 2}]}
    squad = {"data": [{"title": "t", "paragraphs": [{"context": "a b c", "qas": [question]}]}]}
    return {
        "AGNewsDataset": table(3), "AmazonReviewDataset": table(3), "DBpediaDataset": table(3),
        "SogouNewsDataset": table(3), "YahooAnswersDataset": table(4),
        "YelpReviewDataset": table(2),
        "EnWik9Dataset": {"enwik9": "one\n\ntwo 2\n"},
        "PennTreebankDataset": {f"ptb.{p}.txt": f" a {p}\n b\n"
                                 for p in ("train", "test", "valid")},
        "WikiTextDataset": {f"wiki.{p}.tokens": " \n = T = \n x y\n"
                            for p in ("train", "test", "valid")},
        "CoNLL2000Dataset": tags(["train.txt", "test.txt"], " "),
        "UDPOSDataset": tags([f"en-ud-tag.v2.{p}.txt" for p in ("train", "test", "dev")], "\t"),
        "IMDBDataset": {f"{p}/{s}/{i}_1.txt": f"{p} {s} {i}" for p in ("train", "test")
                        for s in ("pos", "neg") for i in range(2)},
        "SST2Dataset": {"train.tsv": "sentence\tlabel\na b\t1\nc\t0\n",
                        "dev.tsv": "sentence\tlabel\nd\t1\n",
                        "test.tsv": "index\tsentence\n0\te\n"},
        "SQuADDataset": {f"{p}-v1.1.json": json.dumps(squad) for p in ("train", "dev")},
        "Multi30kDataset": {f"{p}.{w}": f"{w} 1\n{w} 2\n" for w in ("en", "de")
                            for p in ("training/train", "validation/val", "mmt16_task1_test/val")},
        "EMnistDataset": {"emnist-letters-train-images-idx3-ubyte": digits,
                          "emnist-letters-train-labels-idx1-ubyte": numbers},
        "KMnistDataset": {"train-images-idx3-ubyte": digits, "train-labels-idx1-ubyte": numbers},
        "SemeionDataset": {"semeion.data": "\n".join(
            " ".join([f"{v}.0000" for v in rng.integers(0, 2, 256)] + ["0", "1"] + ["0"] * 8)
            for _ in range(2)) + "\n"},
        "USPSDataset": {n: "".join(
            f"{k} " + " ".join(f"{i + 1}:{v:.3f}" for i, v in enumerate(rng.uniform(-1, 1, 256)))
            + " \n" for k in (3, 10)) for n in ("usps", "usps.t")},
        "STL10Dataset": {
            "train_X.bin": rng.integers(0, 256, 2 * 27648).astype(np.uint8).tobytes(),
            "train_y.bin": bytes([3, 1]), "test_X.bin": bytes(27648), "test_y.bin": bytes([1]),
            "unlabeled_X.bin": rng.integers(0, 256, 27648).astype(np.uint8).tobytes(),
        },
        "Caltech256Dataset": {"001.a/x.jpg": image(), "002.b/y.jpg": image(),
                              "002.b/z.jpg": image()},
        "OmniglotDataset": {f"images_{p}/abc/character0{i}/{i}.png": image()
                            for p in ("background", "evaluation") for i in (1, 2)},
        "SUN397Dataset": {"ClassName.txt": "/a/one\n/b/two\n", "a/one/sun_a.jpg": image(),
                          "b/two/sun_b.jpg": image()},
        "Food101Dataset": {"images/pie/1.jpg": image(), "images/soup/2.jpg": image(),
                           "meta/train.txt": "pie/1\nsoup/2\n", "meta/test.txt": "soup/2\n",
                           "meta/classes.txt": "pie\nsoup\n"},
        "RenderedSST2Dataset": {f"{p}/{s}/1.png": image() for p in ("train", "test", "valid")
                                for s in ("negative", "positive")},
        "LSUNDataset": {f"{c}_{p}/1.png": image() for c in ("bedroom", "tower")
                        for p in ("train", "val")},
        "CelebADataset": {
            "1.png": image(), "2.png": image(),
            "list_attr_celeba.txt": "2\nA B C\n1.png 1 -1 1\n2.png -1 -1 1\n",
            "list_eval_partition.txt": "1.png 0\n2.png 1\n",
        },
        "ManifestDataset": {"a.png": image(), "b.png": image(), "list.json": "".join(
            json.dumps({"source": f"{{}}/{n}.png", "usage": u, "annotation": [{"name": c}]}) + "\n"
            for n, u, c in (("a", "TRAIN", "dog"), ("b", "TRAIN", "cat"), ("a", "EVAL", "cat")))},
        "CocoDataset": {"a.png": image(), "b.png": image(), "objects.json": json.dumps(coco),
                        "captions.json": json.dumps(coco | {"annotations": words})},
        "VOCDataset": {
            "ImageSets/Main/train.txt": "a\nb\n", "ImageSets/Segmentation/train.txt": "a\n",
            "JPEGImages/a.jpg": image(), "JPEGImages/b.jpg": image(),
            "SegmentationClass/a.png": image(),
            "Annotations/a.xml": xml.format(thing.format("car", 0) + thing.format("bus", 1)),
            "Annotations/b.xml": xml.format(thing.format("car", 1)),
        },
        "FlickrDataset": {"a.jpg": image(), "b.jpg": image(), "tokens.txt": "".join(
            f"{n}.jpg#{i}\t{n} {i}\n" for n in "ab" for i in range(5))},
        "DIV2KDataset": {"DIV2K_train_HR/0001.png": image(),
                         "DIV2K_train_LR_bicubic/X2/0001x2.png": image()},
        "CityscapesDataset": {"leftImg8bit/train/x/x_1_leftImg8bit.png": image(),
                              "gtFine/train/x/x_1_gtFine_instanceIds.png": image()},
        "KITTIDataset": {
            "data_object_image_2/training/image_2/000000.png": image(),
            "data_object_image_2/testing/image_2/000000.png": image(),
            "data_object_label_2/training/label_2/000000.txt": f"{line}\n{line}\n",
        },
        "WIDERFaceDataset": {
            "WIDER_train/images/0--P/a.jpg": image(),
            "wider_face_split/wider_face_train_bbx_gt.txt":
                "0--P/a.jpg\n2\n1 2 3 4 2 0 1 0 2 1 \n4 3 2 1 0 1 0 1 0 0 \n",
        },
        "SBUDataset": {
            "SBU_captioned_photo_dataset_urls.txt": address.format("a") + address.format("b"),
            "SBU_captioned_photo_dataset_captions.txt": "one \ntwo\n",
            **{f"sbu_images/2723_4385058960_{n}.jpg": image() for n in "ab"},
        },
        "CMUArcticDataset": {
            "cmu_us_aew_arctic/wav/arctic_a0001.wav": sound(),
            "cmu_us_aew_arctic/etc/txt.done.data": '( arctic_a0001 "Hello there." )\n',
        },
        "GTZANDataset": {"blues/blues.00000.wav": sound(), "rock/rock.00000.wav": sound()},
        "LJSpeechDataset": {"metadata.csv": "LJ1|Dr. A|Doctor A\n", "wavs/LJ1.wav": sound()},
        "SpeechCommandsDataset": {"cat/ab_nohash_0.wav": sound(), "dog/cd_nohash_1.wav": sound(),
                                  "testing_list.txt": "dog/cd_nohash_1.wav\n",
                                  "validation_list.txt": "cat/ab_nohash_0.wav\n"},
        "YesNoDataset": {"1_0_1_0_0_1_1_1.wav": sound()},
        "CLUEDataset": {"a.json": "".join(json.dumps({
            "id": i, "idx": i, "label": "true", "label_des": "d", "label_desc": "e",
            "sentence": f"s {i}", "sentence1": "a", "sentence2": "b", "keywords": "k,l",
            "abst": "long", "keyword": ["k", "l"], "text": "t",
            "target": {"span1_index": 1, "span1_text": "x", "span2_index": 4, "span2_text": "y"},
        }) + "\n" for i in (5, 3))},
        "IWSLT2016Dataset": {
            **{f"texts/de/en/de-en/train.tags.de-en.{w}":
               f"<url>u</url>\n {w} 1. \n{w} 2.\n<reviewer></reviewer>\n" for w in ("de", "en")},
            **{f"texts/de/en/de-en/IWSLT16.TED.tst2013.de-en.{w}.xml":
               talk.format(w)
               for w in ("de", "en")},
        },
        "IWSLT2017Dataset": {
            f"texts/DeEnItNlRo/DeEnItNlRo/DeEnItNlRo-DeEnItNlRo/IWSLT17.TED.tst2010.en-it.{w}.xml":
            talk.format(w)
            for w in ("en", "it")
        },
        "LibriTTSDataset": {"dev-clean/84/121123/84_121123_000001_000000.wav": sound(),
                            "dev-clean/84/121123/84_121123.trans.tsv":
                                "84_121123_000001_000000\tone 1\tOne 1\n"},
        "QMnistDataset": {
            **{f"{n}-images-idx3-ubyte": digits for n in ("qmnist-train", "qmnist-test", "xnist")},
            **{f"{n}-labels-idx2-int": np.array([0x00000C02, 3, 8, *range(24)], ">i4").tobytes()
               for n in ("qmnist-train", "qmnist-test", "xnist")},
        },
        "SVHNDataset": {f"{n}_32x32.mat": matlab(
            X=rng.integers(0, 256, (32, 32, 3, 2)).astype(np.uint8),
            y=np.array([[10], [3]], np.uint8)) for n in ("train", "test", "extra")},
        "Caltech101Dataset": {
            **{f"101_ObjectCategories/{k}/image_000{i}.jpg": image()
               for k in ("Faces", "bass") for i in (1, 2)},
            **{f"Annotations/{k}/annotation_000{i}.mat": matlab(
                obj_contour=rng.normal(size=(2, 3)), box_coord=np.zeros((1, 4)))
               for k in ("Faces_2", "bass") for i in (1, 2)},
        },
        "Flowers102Dataset": {
            **{f"{d}_0000{i}.jpg": image() for d in ("jpg/image", "segmim/segmim")
               for i in (1, 2, 3)},
            "imagelabels.mat": matlab(labels=np.array([[77, 1, 102]], np.uint8)),
            "setid.mat": matlab(trnid=np.array([[3, 1]], np.uint8), valid=np.array([[2]], np.uint8),
                                tstid=np.array([[2]], np.uint8)),
        },
        "LFWDataset": {
            **{f"{d}/{n}/{n}_000{i}.jpg": image() for d in ("lfw", "lfw_funneled")
               for n, i in (("A_B", 1), ("A_B", 2), ("C_D", 1))},
            "lfw-names.txt": "A_B 2\nC_D 1\n", "people.txt": "2\n1\nA_B\t2\n1\nC_D\t1\n",
            "peopleDevTrain.txt": "1\nC_D\t1\n", "peopleDevTest.txt": "1\nA_B\t2\n",
            "pairsDevTrain.txt": "1\nA_B\t2\t1\nA_B\t1\tC_D\t1\n",
            "pairsDevTest.txt": "1\nA_B\t1\t2\nC_D\t1\tA_B\t2\n",
        },
        "Places365Dataset": {
            "categories_places365.txt": "/a/field 0\n/b/port 1\n",
            "places365_train_standard.txt": "/b/port/1.jpg 1\n/a/field/2.jpg 0\n",
            "places365_val.txt": "Places365_val_1.jpg 1\n",
            "data_256_standard/b/port/1.jpg": image(), "data_256_standard/a/field/2.jpg": image(),
            "val_large/Places365_val_1.jpg": image(),
        },
        "PhotoTourDataset": {
            "liberty/patches0000.bmp": rng.integers(0, 256, (1024, 1024)).astype(np.uint8),
            "liberty/info.txt": "0 0\n" * 20,
            "liberty/m50_100000_100000_0.txt": "0 7 0 17 7 0 0\n2 7 0 3 8 0 0\n",
        },
        "SBDataset": {"img/a.jpg": image(), "img/b.jpg": image(), "train.txt": "a\n",
                      "val.txt": "b\n", **{f"cls/{n}.mat": b"MATLAB 5.0 MAT-file".ljust(124)
                          + b"\x00\x01IM" + base64.b64decode(OUTLINES) for n in "ab"}},
    }  # fmt: skip


#: Samples per second that MindSpore wants.
RATES = {"CMUArcticDataset": 16000, "SpeechCommandsDataset": 16000, "YesNoDataset": 8000,
         "LibriTTSDataset": 24000}  # fmt: skip


def write(folder: Path, content: Mapping[str, Any], rate: int = 22050) -> None:
    """Writes files: arrays of bytes as images, of 16 bits as sounds."""
    from PIL import Image

    for name, value in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(value, str):
            path.write_text(value.replace("{}", str(folder)), "utf-8")
        elif isinstance(value, bytes):
            path.write_bytes(value)
        elif value.dtype == np.int16:
            with wave.open(str(path), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(rate)
                file.writeframes(value.tobytes())
        else:
            Image.fromarray(value).save(path, "PNG")


def read(dataset: Any, name: str, options: Mapping[str, Any], folder: Path) -> list[Any]:
    """Returns the rows of a source in order: columns by name, as dtype, shape and elements."""
    given = {k: v.replace("{}", str(folder)) if isinstance(v, str) else v
             for k, v in options.items()}  # fmt: skip
    first = () if {"dataset_file", "dataset_files"} & set(given) else (str(folder),)
    data = getattr(dataset, name)(*first, shuffle=False, **given)
    rows = data.create_dict_iterator(num_epochs=1, output_numpy=True)
    found = [
        {k: [v.dtype.kind if v.dtype.kind == "U" else str(v.dtype), list(v.shape), digest(v)]
         for k, v in sorted(row.items())} for row in rows
    ]  # fmt: skip
    if options.get("usage", "all") == "all":  # MindSpore takes turns between files
        found.sort(key=json.dumps)
    return found


def digest(array: np.ndarray) -> Any:
    """Returns the elements, or a number that depends on all of them and their places."""
    if array.size <= 24:
        return array.tolist()
    return float((array.astype(np.float64).ravel() * (1 + np.arange(array.size) % 97)).sum())


def main() -> None:
    """Writes what MindSpore reads."""
    dataset = importlib.import_module("mindspore.dataset")
    found, content = [], files()
    for name, options in CASES:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), content[name], RATES.get(name, 22050))
            try:
                found.append(read(dataset, name, options, Path(folder)))
            except Exception as error:
                print(
                    "refused:",
                    name,
                    options,
                    str(error)[:1500].split("Error Message")[-1].split("C++")[0],
                )
                found.append(None)
    EXPECTED.write_text(json.dumps(found, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
