"""Sources of images with labels."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from PIL import Image

from tvmgraph.core import kinds
from tvmgraph.core.arguments import Attrs
from tvmgraph.dataset.config import get_seed
from tvmgraph.dataset.files import read_idx, splits_of
from tvmgraph.dataset.loaders.matlab import read_matlab
from tvmgraph.dataset.loaders.table import (
    DECODED,
    LINES,
    SAMPLED,
    Listing,
    folder_of,
    folders,
    lines_of,
    loader,
    pictures,
)
from tvmgraph.dataset.schema import Schema
from tvmgraph.errors import ArgumentError, reject

_MOST_FAKES = 10**8
_GENERATED = "num_samples num_parallel_workers=1 shuffle decode=False sampler num_shards shard_id"
_LABELED = {"image": None, "label": "uint32"}
_TRAIN_TEST = {"train": "train", "test": "test"}


def _arrays(images: Iterable[object], labels: Sequence[int] | np.ndarray) -> Listing:
    return Listing({"image": "uint8", "label": "uint32"}, list(zip(images, labels)))


@loader(f"dataset_dir! name! usage {SAMPLED}")
def EMnistDataset(op: str, given: Attrs) -> Listing:
    """Letters and digits of ``emnist-<name>-train-images-idx3-ubyte`` and the like."""
    images, labels = [], []
    for split in splits_of(op, given["usage"], _TRAIN_TEST):
        start = folder_of(op, given) / f"emnist-{given['name']}-{split}"
        images.append(read_idx(Path(f"{start}-images-idx3-ubyte"))[..., None])
        labels.append(read_idx(Path(f"{start}-labels-idx1-ubyte")))
    return _arrays(np.concatenate(images), np.concatenate(labels))


@loader(f"dataset_dir! {SAMPLED}")
def SemeionDataset(op: str, given: Attrs) -> Listing:
    """Digits of ``semeion.data``: image uint8 (16, 16), label uint32."""
    path = folder_of(op, given) / "semeion.data"
    table = np.array([line.split() for line in lines_of(op, path)], np.float32)
    return _arrays(table[:, :256].reshape(-1, 16, 16).astype(np.uint8), table[:, 256:].argmax(1))


@loader(f"dataset_dir! usage {LINES}")
def USPSDataset(op: str, given: Attrs) -> Listing:
    """Digits of ``usps`` and ``usps.t``: image uint8 (16, 16, 1), label uint32."""
    images, labels = [], []
    for name in splits_of(op, given["usage"], {"train": "usps", "test": "usps.t"}):
        for line in lines_of(op, folder_of(op, given) / name):
            label, *pixels = line.split()
            values = np.array([float(p.split(":")[1]) for p in pixels])
            images.append(((values + 1) / 2 * 255).astype(np.uint8).reshape(16, 16, 1))
            labels.append(int(label) - 1)
    return _arrays(images, labels)


@loader(f"dataset_dir! usage {SAMPLED}")
def STL10Dataset(op: str, given: Attrs) -> Listing:
    """Images of ``train_X.bin`` and the like: image uint8 (96, 96, 3), label int32, -1 without."""
    folder, images, labels = folder_of(op, given), [], []
    splits = {"train": ["train"], "test": ["test"], "unlabeled": ["unlabeled"]}
    splits["train+unlabeled"] = ["train", "unlabeled"]
    every = ["test", "train", "unlabeled"]  # by name
    for split in (p for names in splits_of(op, given["usage"], splits, every) for p in names):
        pixels = np.fromfile(folder / f"{split}_X.bin", np.uint8).reshape(-1, 3, 96, 96)
        images.append(pixels.transpose(0, 3, 2, 1))
        path = folder / f"{split}_y.bin"
        known = np.fromfile(path, np.uint8).astype(np.int32) - 1 if path.is_file() else None
        labels.append(np.full(len(pixels), -1, np.int32) if known is None else known)
    rows = list(zip(np.concatenate(images), np.concatenate(labels)))
    return Listing({"image": "uint8", "label": "int32"}, rows)


@loader(f"dataset_dir! {DECODED}")
def Caltech256Dataset(op: str, given: Attrs) -> Listing:
    """Images in folders such as ``001.ak47``: image, label int32 from 0."""
    rows = [
        (file, label)
        for label, folder in enumerate(folders(folder_of(op, given)))
        for file in pictures(folder)
    ]
    return Listing({"image": None, "label": "int32"}, rows)


@loader(f"dataset_dir! background {DECODED}")
def OmniglotDataset(op: str, given: Attrs) -> Listing:
    """Characters in ``images_background`` or ``images_evaluation``: image, label int32."""
    split = "images_evaluation" if given["background"] is False else "images_background"
    base = folder_of(op, given) / split
    kinds = [kind for alphabet in folders(base) for kind in folders(alphabet)] or folders(base)
    columns = {"image": None, "label": "int32"}
    return Listing(columns, [(f, i) for i, kind in enumerate(kinds) for f in pictures(kind)])


@loader(f"dataset_dir! {DECODED}")
def SUN397Dataset(op: str, given: Attrs) -> Listing:
    """Scenes in the folders that ``ClassName.txt`` lists: image, label uint32."""
    base, rows = folder_of(op, given), []
    for label, name in enumerate(lines_of(op, base / "ClassName.txt")):
        rows += [(f, label) for f in pictures(base / name.strip().lstrip("/"))]
    return Listing(_LABELED, rows)


@loader(f"dataset_dir! usage {DECODED}")
def Food101Dataset(op: str, given: Attrs) -> Listing:
    """Meals that ``meta/train.txt`` and ``meta/test.txt`` list: image, label (a string)."""
    base, rows = folder_of(op, given), []
    for split in splits_of(op, given["usage"], _TRAIN_TEST):
        for name in lines_of(op, base / "meta" / f"{split}.txt"):
            rows.append((base / "images" / f"{name.strip()}.jpg", name.split("/")[0]))
    return Listing({"image": None, "label": None}, rows)


@loader(f"dataset_dir! usage {DECODED}")
def RenderedSST2Dataset(op: str, given: Attrs) -> Listing:
    """Drawn sentences in ``train/negative`` and the like: image, label uint32."""
    splits, rows = {"train": "train", "test": "test", "val": "valid"}, []
    for split in splits_of(op, given["usage"], splits):
        for label, name in enumerate(("negative", "positive")):
            rows += [(f, label) for f in pictures(folder_of(op, given) / split / name)]
    return Listing(_LABELED, rows)


@loader(f"dataset_dir! usage classes {DECODED}")
def LSUNDataset(op: str, given: Attrs) -> Listing:
    """Scenes in folders such as ``bedroom_train``: image, label uint32."""
    base = folder_of(op, given)
    if given["usage"] == "test":
        return Listing(_LABELED, [(f, 0) for f in pictures(base / "test")])
    usage = "valid" if given["usage"] == "val" else given["usage"]  # as its folders are called
    splits = splits_of(op, usage, {"train": "train", "valid": "val"})
    known = {d.name.rsplit("_", 1)[0] for d in folders(base) if d.name != "test"}
    names, rows = given["classes"] or sorted(known), []
    for split in splits:
        for label, name in enumerate([names] if isinstance(names, str) else names):
            rows += [(f, label) for f in pictures(base / f"{name}_{split}")]
    return Listing(_LABELED, rows)


@loader(
    "dataset_dir! num_parallel_workers shuffle usage='all' sampler decode=False "
    "extensions num_samples num_shards shard_id cache decrypt"
)
def CelebADataset(op: str, given: Attrs) -> Listing:
    """Faces that ``list_attr_celeba.txt`` lists: image, attr uint32 (40,)."""
    base = folder_of(op, given)
    places = [base / sub for sub in ("img_align_celeba", "Img/img_align_celeba", "")]
    images = next(p for p in places if p.is_dir())
    files = [base / sub / "list_attr_celeba.txt" for sub in ("", "Anno")]
    lines = lines_of(op, next((f for f in files if f.is_file()), files[0]))[2:]
    kept = _celeba_split(op, base, given["usage"])
    endings = given["extensions"] and {e.lower() for e in given["extensions"]}
    rows = []
    for name, *flags in (line.split() for line in lines):
        if kept is not None and name not in kept:
            continue
        if not endings or Path(name).suffix.lower() in endings:
            rows.append((images / name, [int(f == "1") for f in flags]))
    return Listing({"image": None, "attr": "uint32"}, rows)


def _celeba_split(op: str, base: Path, usage: str) -> set[str] | None:
    if usage == "all":
        return None
    (number,) = splits_of(op, usage, {"train": "0", "valid": "1", "test": "2"})
    files = [base / sub / "list_eval_partition.txt" for sub in ("", "Eval")]
    lines = lines_of(op, next((f for f in files if f.is_file()), files[0]))
    return {name for name, split in map(str.split, lines) if split == number}


@loader(
    "dataset_file! usage='train' num_samples num_parallel_workers shuffle "
    "sampler class_indexing decode=False num_shards shard_id cache"
)
def ManifestDataset(op: str, given: Attrs) -> Listing:
    """Images that a file of JSON lines lists: image, and label int32, an array where several are
    given.
    """
    path = Path(given["dataset_file"])
    found = [json.loads(line) for line in lines_of(op, path)]
    found = [f for f in found if f.get("usage", "").lower() == given["usage"].lower()]
    names = sorted({note["name"] for f in found for note in f["annotation"]})
    numbers = given["class_indexing"] or {name: i for i, name in enumerate(names)}
    rows = []
    for f in found:
        labels = [numbers[n["name"]] for n in f["annotation"] if n["name"] in numbers]
        if labels:
            label = labels if len(labels) > 1 else labels[0]
            rows.append((Path(f["source"].removeprefix("file://")), label))
    return Listing({"image": None, "label": "int32"}, rows, numbers)


@loader(f"num_images=1000 image_size=(224,224,3) num_classes=10 base_seed=0 {SAMPLED}")
def FakeImageDataset(op: str, given: Attrs) -> Listing:
    """Noise with random labels: image uint8, label uint32."""
    shape, seed = tuple(given["image_size"]), given["base_seed"]
    count, classes = given["num_images"], given["num_classes"]
    for name in ("num_images", "num_classes", "base_seed"):  # NumPy crashes on circular seeds
        kinds.require(name, given[name], ("int",))
    if count < 1 or classes < 1 or count > _MOST_FAKES:
        reject(ArgumentError, op, "num_images and num_classes must be positive, "
               f"num_images at most {_MOST_FAKES:,}")  # fmt: skip

    labels = np.random.default_rng(seed).integers(0, classes, count)
    return _arrays([partial(_noise, (seed, i), 256, np.uint8, shape) for i in range(count)], labels)


def _noise(
    seed: tuple[int, ...], most: int, dtype: np.dtype | type, shape: tuple[int, ...]
) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, most, shape).astype(dtype)


@loader(f"dataset_dir! usage compat=True {SAMPLED}")
def QMnistDataset(op: str, given: Attrs) -> Listing:
    """Digits of ``qmnist-train-images-idx3-ubyte`` and the like: image uint8 (28, 28, 1), label
    uint32, or all eight labels of a digit.
    """
    base, images, labels = folder_of(op, given), [], []
    names = {"train": ("qmnist-train",), "test": ("qmnist-test",), "nist": ("xnist",)}
    parts = {"test10k": slice(10000), "test50k": slice(10000, None)}
    known = names | dict.fromkeys(parts, ("qmnist-test",))
    part = parts.get(str(given["usage"]), slice(None))
    for name in (n for found in splits_of(op, given["usage"], known, sum(names.values(), ()))
                 for n in found):  # fmt: skip
        images.append(read_idx(base / f"{name}-images-idx3-ubyte")[part, :, :, None])
        raw = (base / f"{name}-labels-idx2-int").read_bytes()
        labels.append(np.frombuffer(raw, ">i4", offset=12).reshape(-1, 8)[part].astype(np.uint32))
    every = np.concatenate(labels)
    return _arrays(np.concatenate(images), every[:, 0] if given["compat"] else every)


@loader("dataset_dir! usage num_samples num_parallel_workers=1 shuffle sampler num_shards shard_id")
def SVHNDataset(op: str, given: Attrs) -> Listing:
    """House numbers of ``train_32x32.mat`` and the like: image uint8 (32, 32, 3), label uint32."""
    base, images, labels = folder_of(op, given), [], []
    for name in splits_of(op, given["usage"], {n: n for n in ("train", "test", "extra")}):
        content = read_matlab(op, base / f"{name}_32x32.mat")
        images.append(np.moveaxis(content["X"], 3, 0))
        labels.append(content["y"].ravel() % 10)  # a ten stands for the digit 0
    return _arrays(np.concatenate(images), np.concatenate(labels))


@loader(f"dataset_dir! target_type {_GENERATED}")
def Caltech101Dataset(op: str, given: Attrs) -> Listing:
    """Images of ``101_ObjectCategories``: image, and category int64 or annotation (the outline)."""
    base, wanted, rows = folder_of(op, given), given["target_type"] or "category", []
    both = ("category", "annotation")
    columns = splits_of(op, wanted, {k: (k,) for k in both}, both)[0]
    places = {"Faces": "Faces_2", "Faces_easy": "Faces_3", "Motorbikes": "Motorbikes_16",
              "airplanes": "Airplanes_Side_2"}  # fmt: skip
    kinds = [d for d in folders(base / "101_ObjectCategories") if d.name != "BACKGROUND_Google"]
    for label, kind in enumerate(kinds):
        outlines = base / "Annotations" / places.get(kind.name, kind.name)
        for file in pictures(kind):
            path = outlines / f"{file.stem.replace('image', 'annotation')}.mat"
            entries = {"category": label, "annotation": partial(_variable, op, path, "obj_contour")}
            rows.append((file, *(entries[c] for c in columns)))
    types = {"category": "int64", "annotation": None}
    names = {kind.name: label for label, kind in enumerate(kinds)}
    return Listing({"image": None} | {c: types[c] for c in columns}, rows, names)


def _variable(op: str, path: Path, name: str) -> np.ndarray:
    return read_matlab(op, path)[name]


@loader(f"dataset_dir! task='Classification' usage='all' {_GENERATED}")
def Flowers102Dataset(op: str, given: Attrs) -> Listing:
    """Flowers of ``jpg`` and ``segmim``: image, segmentation (of that task), label uint32."""
    base, tasks = folder_of(op, given), ("Classification", "Segmentation")
    if given["task"] not in tasks:
        reject(ArgumentError, op, f"task cannot be {given['task']!r}",
               fix=f"use {' or '.join(tasks)}")  # fmt: skip
    labels = np.ravel(_variable(op, base / "imagelabels.mat", "labels"))
    parts, rows = read_matlab(op, base / "setid.mat"), []
    places = [("jpg", "image")] + [("segmim", "segmim")] * (given["task"] == "Segmentation")
    for part in splits_of(op, given["usage"], {"train": "trnid", "test": "tstid",
                                               "valid": "valid"}):  # fmt: skip
        for i in parts[part].ravel().tolist():
            files = (base / folder / f"{name}_{i:05d}.jpg" for folder, name in places)
            rows.append((*files, int(labels[i - 1]) - 1))
    columns = ["image", "segmentation"][: len(places)]
    return Listing(dict.fromkeys(columns) | {"label": "uint32"}, rows)


@loader(f"dataset_dir! task usage image_set {DECODED}")
def LFWDataset(op: str, given: Attrs) -> Listing:
    """Faces of ``lfw_funneled`` and the like: image and label, or image1, image2 and whether both
    show the same person.
    """
    base, task, files = folder_of(op, given), given["task"] or "people", given["image_set"]
    if task not in ("people", "pairs"):
        reject(ArgumentError, op, f"task cannot be {task!r}", fix="use 'people' or 'pairs'")
    sets = {"original": "lfw", "funneled": "lfw_funneled", "deepfunneled": "lfw-deepfunneled"}
    folder = base / splits_of(op, files or "funneled", sets)[0]
    names = [line.split()[0] for line in lines_of(op, base / "lfw-names.txt")]
    splits = {"10fold": "", "train": "DevTrain", "test": "DevTest"}
    usage = given["usage"]
    parts = ["DevTrain", "DevTest"] if usage in (None, "all") else splits_of(op, usage, splits)
    listed = [
        line.split() for part in parts for line in lines_of(op, base / f"{task}{part}.txt")[1:]
    ]

    def file(name: str, number: object) -> Path:
        return folder / name / f"{name}_{int(str(number)):04d}.jpg"

    if task == "people":  # lines of one word count those that follow
        rows = [
            (file(name, i + 1), names.index(name))
            for name, *count in listed for i in range(int(count[0]) if count else 0)
        ]  # fmt: skip
        return Listing(_LABELED, rows)
    pairs = [(w[0], w[1], w[-2] if len(w) == 4 else w[0], w[-1]) for w in listed]
    rows = [(file(a, i), file(b, j), int(a == b)) for a, i, b, j in pairs]
    return Listing({"image1": None, "image2": None, "label": "uint32"}, rows)


@loader(
    "dataset_dir! usage small=True decode=False num_samples "
    "num_parallel_workers shuffle sampler num_shards shard_id cache"
)
def Places365Dataset(op: str, given: Attrs) -> Listing:
    """Scenes that ``places365_train_standard.txt`` and the like list: image, label uint32."""
    base, size = folder_of(op, given), "256" if given["small"] else "large"
    splits = {
        "train-standard": ("train_standard", f"data_{size}_standard"),
        "train-challenge": ("train_challenge", f"data_{size}_challenge"),
        "val": ("val", f"val_{size}"),
    }
    ((part, folder),) = splits_of(op, given["usage"] or "train-standard", splits)
    lines = (line.split() for line in lines_of(op, base / f"places365_{part}.txt"))
    return Listing(_LABELED, [(base / folder / f.lstrip("/"), int(label)) for f, label in lines])


@loader(f"dataset_dir! name! usage {SAMPLED}")
def PhotoTourDataset(op: str, given: Attrs) -> Listing:
    """Patches of ``liberty/patches0000.bmp`` and the like: image uint8 (64, 64, 1), or pairs:
    image1, image2 and whether they match.
    """
    base = folder_of(op, given) / str(given["name"])
    count = len(lines_of(op, base / "info.txt"))
    train = splits_of(op, given["usage"] or "train", {"train": True, "test": False})[0]
    patches = [partial(_patch, base, i) for i in range(count)]
    if train:
        return Listing({"image": "uint8"}, [(p,) for p in patches])
    pairs = [w.split() for w in lines_of(op, base / "m50_100000_100000_0.txt")]
    columns = {"image1": "uint8", "image2": "uint8", "matches": "uint32"}
    return Listing(
        columns, [(patches[int(w[0])], patches[int(w[3])], int(w[1] == w[4])) for w in pairs]
    )


@lru_cache(maxsize=4)
def _sheet(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("L"))


def _patch(base: Path, i: int, size: int = 64) -> np.ndarray:
    """Returns a patch of a sheet of 16 x 16."""
    sheet = _sheet(base / f"patches{i // 256:04d}.bmp")
    y, x = (size * n for n in divmod(i % 256, 16))
    return sheet[y : y + size, x : x + size, None]


@loader(
    "total_rows schema columns_list num_samples num_parallel_workers cache "
    "shuffle num_shards shard_id"
)
def RandomDataset(op: str, given: Attrs) -> Listing:
    """Noise in the columns that a schema describes."""
    schema = given["schema"]
    if schema is None:
        reject(ArgumentError, op, "schema says which columns there are",
               fix="give a Schema or its file")  # fmt: skip
    schema = schema if isinstance(schema, Schema) else Schema(str(schema))
    rows = given["total_rows"] or given["num_samples"] or schema.num_rows or 100
    names = given["columns_list"] or list(schema.columns)
    found = [(schema.columns[n][0].numpy, tuple(schema.columns[n][1] or ())) for n in names]
    seed = get_seed()
    entries = [
        tuple(partial(_noise, (seed, i, j), 128, *kind) for j, kind in enumerate(found))
        for i in range(rows)
    ]
    return Listing({n: dtype for n, (dtype, _) in zip(names, found)}, entries)
