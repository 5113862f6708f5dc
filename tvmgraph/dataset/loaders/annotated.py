"""Sources of images with boxes, masks, captions or other images."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph.core.arguments import Attrs
from tvmgraph.dataset.files import splits_of
from tvmgraph.dataset.loaders.matlab import read_matlab
from tvmgraph.dataset.loaders.table import DECODED, Listing, folder_of, lines_of, loader, pictures
from tvmgraph.errors import ArgumentError, reject

_DECODED = DECODED.replace("=False", "")
_OPTIONS = (
    "num_samples num_parallel_workers shuffle decode=False sampler num_shards shard_id cache "
    "extra_metadata=False decrypt"
)


@loader(f"dataset_dir! annotation_file! task='Detection' {_OPTIONS}")
def CocoDataset(op: str, given: Attrs) -> Listing:
    """COCO's images: image and, by task, bbox, category_id, iscrowd (Detection); segmentation,
    iscrowd (Stuff); keypoints, num_keypoints (Keypoint); bbox, category_id, iscrowd, area
    (Panoptic); captions (Captioning). Rows are objects.
    """
    columns = {
        "Detection": {"bbox": "float32", "category_id": "uint32", "iscrowd": "uint32"},
        "Stuff": {"segmentation": "float32", "iscrowd": "uint32"},
        "Keypoint": {"keypoints": "float32", "num_keypoints": "uint32"},
        "Panoptic": {"bbox": "float32", "category_id": "uint32", "iscrowd": "uint32",
                     "area": "uint32"},
        "Captioning": {"captions": None},
    }  # fmt: skip
    kinds = splits_of(op, given["task"], columns, {})[0]
    if not kinds:
        reject(ArgumentError, op, f"task cannot be {given['task']!r}",
               fix=f"use {', '.join(columns)}")  # fmt: skip
    content = json.loads("\n".join(lines_of(op, Path(given["annotation_file"]))))
    names = {image["id"]: image["file_name"] for image in content["images"]}
    base, notes = folder_of(op, given), defaultdict(list)
    for note in content["annotations"]:
        notes[note["image_id"]] += note.get("segments_info", [note])
    rows = [
        (base / names[i], *(_coco_entry(key, notes[i]) for key in kinds),
         *_name(given, Path(names[i]).stem))
        for i in names if notes[i]
    ]  # fmt: skip
    classes = {  # by number; in panoptic files also whether they can be counted
        c["name"]: [c[key] for key in ("id", "isthing") if key in c]
        for c in content.get("categories", ())
    }
    return Listing({"image": None} | kinds | _meta(given), rows, classes)


def _meta(given: Attrs) -> dict[str, None]:
    return {"_meta-filename": None} if given["extra_metadata"] else {}


def _name(given: Attrs, name: str) -> tuple[str, ...]:
    return (name,) if given["extra_metadata"] else ()


def _coco_entry(key: str, notes: Sequence[dict[str, object]]) -> Any:
    """Returns a row per object; polygons are filled with -1 to the longest."""
    if key == "captions":
        return [[n["caption"]] for n in notes]
    if key == "segmentation":
        parts = [p for n in notes for p in _polygons(n["segmentation"])]
        most = max(map(len, parts))
        return [p + [-1] * (most - len(p)) for p in parts]
    return [n[key] if isinstance(n[key], list) else [n[key]] for n in notes]


def _polygons(segmentation: Any) -> list[list[float]]:
    return [segmentation["counts"]] if isinstance(segmentation, dict) else segmentation


@loader(
    "dataset_dir! task='Segmentation' usage='train' class_indexing num_samples "
    "num_parallel_workers shuffle decode=False sampler num_shards shard_id cache "
    "extra_metadata=False decrypt"
)
def VOCDataset(op: str, given: Attrs) -> Listing:
    """Pascal VOC's images: image and target (Segmentation), or image, bbox, label, difficult and
    truncate (Detection).
    """
    base, task = folder_of(op, given), given["task"]
    if task not in ("Segmentation", "Detection"):
        reject(ArgumentError, op, f"task cannot be {task!r}", fix="use Segmentation or Detection")
    folder = "Main" if task == "Detection" else "Segmentation"
    names = [
        n.split()[0] for n in lines_of(op, base / "ImageSets" / folder / f"{given['usage']}.txt")
    ]
    if task == "Segmentation":
        rows = [
            (base / "JPEGImages" / f"{n}.jpg", base / "SegmentationClass" / f"{n}.png",
             *_name(given, n)) for n in names
        ]  # fmt: skip
        return Listing({"image": None, "target": None} | _meta(given), rows)
    marks = {n: _voc_objects(base / "Annotations" / f"{n}.xml") for n in names}
    classes = sorted({o[0] for objects in marks.values() for o in objects})
    numbers = given["class_indexing"] or {name: i for i, name in enumerate(classes)}
    rows = []
    for n, objects in marks.items():
        kept = [o for o in objects if o[0] in numbers]
        if kept:
            rows.append((
                base / "JPEGImages" / f"{n}.jpg", [o[1] for o in kept],
                [[numbers[o[0]]] for o in kept], [[o[2]] for o in kept], [[o[3]] for o in kept],
                *_name(given, n),
            ))  # fmt: skip
    kinds = {"image": None, "bbox": "float32", "label": "uint32", "difficult": "uint32"}
    return Listing(kinds | {"truncate": "uint32"} | _meta(given), rows, numbers)


def _voc_objects(path: Path) -> list[tuple[str, list[float], int, int]]:
    """Returns name, box (x, y, width, height), difficult and truncated of every object."""
    found = []
    for thing in ElementTree.parse(path).iterfind("object"):
        x0, y0, x1, y1 = (
            float(thing.findtext(f"bndbox/{k}", "0")) for k in ("xmin", "ymin", "xmax", "ymax")
        )
        flags = (int(thing.findtext(k) or 0) for k in ("difficult", "truncated"))
        found.append((thing.findtext("name", ""), [x0, y0, x1 - x0, y1 - y0], *flags))
    return found


@loader(f"dataset_dir! annotation_file! {_DECODED}")
def FlickrDataset(op: str, given: Attrs) -> Listing:
    """Photographs with captions: image, annotation."""
    base, texts = folder_of(op, given), defaultdict(list)
    for line in lines_of(op, Path(given["annotation_file"])):
        name, text = line.split("\t", 1)
        texts[name.rsplit("#", 1)[0]].append(text)
    kinds = {"image": None, "annotation": None}
    return Listing(kinds, [(base / name, texts[name]) for name in sorted(texts)])


@loader(f"dataset_dir! usage='train' downgrade='bicubic' scale=2 {_DECODED}")
def DIV2KDataset(op: str, given: Attrs) -> Listing:
    """Images of high and low resolution: hr_image, lr_image."""
    base, scale, kind = folder_of(op, given), given["scale"], given["downgrade"]
    rows = []
    for part in splits_of(op, given["usage"], {"train": "train", "valid": "valid"}):
        low = base / f"DIV2K_{part}_LR_{kind}"
        low = low / f"X{scale}" if kind in ("bicubic", "unknown") else low
        mark = {"mild": "m", "wild": "w", "difficult": "d"}.get(kind, "")
        for file in pictures(base / f"DIV2K_{part}_HR"):
            rows.append((file, low / f"{file.stem}x{scale}{mark}{file.suffix}"))
    return Listing({"hr_image": None, "lr_image": None}, rows)


@loader(f"dataset_dir! usage='train' quality_mode='fine' task='instance' {_DECODED}")
def CityscapesDataset(op: str, given: Attrs) -> Listing:
    """Streets: image, task (an image, or JSON for polygons)."""
    base = folder_of(op, given)
    quality = "gtFine" if given["quality_mode"] == "fine" else "gtCoarse"
    kind = {"instance": "instanceIds.png", "semantic": "labelIds.png", "color": "color.png",
            "polygon": "polygons.json"}[given["task"]]  # fmt: skip
    splits = ("train", "val", "test" if quality == "gtFine" else "train_extra")
    rows = []
    for split in splits_of(op, given["usage"], {p: p for p in splits}):
        for image in pictures(base / "leftImg8bit" / split):
            name = image.name.replace("leftImg8bit.png", f"{quality}_{kind}")
            note = base / quality / split / image.parent.name / name
            rows.append((image, note if note.suffix == ".png" else note.read_text("utf-8")))
    return Listing({"image": None, "task": None}, rows)


@loader(f"dataset_dir! usage {DECODED}")
def KITTIDataset(op: str, given: Attrs) -> Listing:
    """Streets with boxes: image, label, truncated, occluded, alpha, bbox, dimensions, location,
    rotation_y; only image for the usage ``test``.
    """
    base = folder_of(op, given)
    if given["usage"] == "test":
        images = pictures(base / "data_object_image_2" / "testing" / "image_2")
        return Listing({"image": None}, [(f,) for f in images])
    files = pictures(base / "data_object_image_2" / "training" / "image_2")
    notes = [
        [line.split() for line in lines_of(
            op, base / "data_object_label_2" / "training" / "label_2" / f"{f.stem}.txt")]
        for f in files
    ]  # fmt: skip
    classes = sorted({words[0] for lines in notes for words in lines})
    spans = {"truncated": (1, 2, "float32"), "occluded": (2, 3, "uint32"),
             "alpha": (3, 4, "float32"), "bbox": (4, 8, "float32"),
             "dimensions": (8, 11, "float32"), "location": (11, 14, "float32"),
             "rotation_y": (14, 15, "float32")}  # fmt: skip
    rows = [
        (file, [[classes.index(w[0])] for w in lines],
         *([[float(v) for v in w[a:b]] for w in lines] for a, b, _ in spans.values()))
        for file, lines in zip(files, notes)
    ]  # fmt: skip
    kinds = {"image": None, "label": "uint32"} | {k: v[2] for k, v in spans.items()}
    return Listing(kinds, rows)


@loader(f"dataset_dir! usage {DECODED}")
def WIDERFaceDataset(op: str, given: Attrs) -> Listing:
    """Faces: image, bbox, blur, expression, illumination, occlusion, pose, invalid."""
    base, rows = folder_of(op, given), []
    names = ("blur", "expression", "illumination", "occlusion", "pose", "invalid")
    if given["usage"] == "test":
        files = lines_of(op, base / "wider_face_split" / "wider_face_test_filelist.txt")
        return Listing({"image": None}, [(base / "WIDER_test/images" / f,) for f in files])
    for part in splits_of(op, given["usage"], {"train": "train", "valid": "val"}):
        lines = lines_of(op, base / "wider_face_split" / f"wider_face_{part}_bbx_gt.txt")
        at = 0
        while at < len(lines):
            count = max(int(lines[at + 1]), 1)
            table = [[int(v) for v in w.split()] for w in lines[at + 2 : at + 2 + count]]
            flags = ([t[4 + k] for t in table] for k in (0, 1, 2, 4, 5, 3))
            file = base / f"WIDER_{part}" / "images" / lines[at].strip()
            rows.append((file, [t[:4] for t in table], *flags))
            at += 2 + count
    kinds = {"image": None} | dict.fromkeys(("bbox", *names), "int32")
    return Listing(kinds, rows)


@loader(f"dataset_dir! {DECODED}")
def SBUDataset(op: str, given: Attrs) -> Listing:
    """Photographs: image, caption."""
    base = folder_of(op, given)
    addresses = lines_of(op, base / "SBU_captioned_photo_dataset_urls.txt")
    texts = lines_of(op, base / "SBU_captioned_photo_dataset_captions.txt")
    rows = []
    for address, text in zip(addresses, texts):
        address = address.strip()  # a file is called as MindSpore wants it, or as other loaders do
        names = (address[23:].replace("/", "_"), "_".join(address.split("/")[-2:]))
        file = next((f for n in names if (f := base / "sbu_images" / n).is_file()), None)
        if file is not None:
            rows.append((file, text.strip()))
    return Listing({"image": None, "caption": None}, rows)


@loader(
    "dataset_dir! task='Boundaries' usage='all' num_samples num_parallel_workers=1 "
    "shuffle decode sampler num_shards shard_id"
)
def SBDataset(op: str, given: Attrs) -> Listing:
    """Images of ``img`` with the outlines of 20 classes, or the class of every pixel, of ``cls``:
    image, task uint8.
    """
    base, task = folder_of(op, given), given["task"]
    if task not in ("Boundaries", "Segmentation"):
        reject(ArgumentError, op, f"task cannot be {task!r}", fix="use Boundaries or Segmentation")
    splits = {name: [name] for name in ("train", "val", "train_noval")}
    (parts,) = splits_of(op, given["usage"], splits, ["train", "val"])
    names = [n.strip() for part in parts for n in lines_of(op, base / f"{part}.txt")]
    rows = [
        (base / "img" / f"{n}.jpg", partial(_outlines, op, base / "cls" / f"{n}.mat", task))
        for n in names
    ]
    return Listing({"image": None, "task": "uint8"}, rows)


def _outlines(op: str, path: Path, task: str) -> np.ndarray:
    """Returns classes by pixel, or the outlines of every class."""
    found = read_matlab(op, path)["GTcls"][task][0, 0]
    return found if task == "Segmentation" else np.stack([each.toarray() for each in found.flat])
