"""Sources of speech and music in WAV and SPH files of 16 bits: waveforms are float32."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from tvmgraph.core.arguments import Attrs
from tvmgraph.dataset.files import splits_of
from tvmgraph.dataset.loaders.table import (
    SAMPLED,
    Listing,
    existing,
    folder_of,
    folders,
    lines_of,
    loader,
    sound,
)
from tvmgraph.errors import ArgumentError, either, reject

_WAVE = {"waveform": "float32", "sample_rate": "uint32"}


@loader(f"dataset_dir! name {SAMPLED}")
def CMUArcticDataset(op: str, given: Attrs) -> Listing:
    """Speech in ``cmu_us_<name>_arctic/wav``: waveform, sample_rate, transcript, utterance_id."""
    base = folder_of(op, given) / f"cmu_us_{given['name'] or 'aew'}_arctic"
    rows = []
    for line in lines_of(op, base / "etc" / "txt.done.data"):
        number, text = line.split('"')[0].split()[1], line.split('"')[1]
        found = sound(base / "wav" / f"{number}.wav")
        rows.append((*found, text, number.removeprefix("arctic_")))
    return Listing(_WAVE | {"transcript": None, "utterance_id": None}, rows)


@loader(f"dataset_dir! usage {SAMPLED}")
def GTZANDataset(op: str, given: Attrs) -> Listing:
    """Music in one folder per genre: waveform, sample_rate, label."""
    splits_of(op, given["usage"], dict.fromkeys(("train", "valid", "test")))  # one set for all
    rows = [
        (*sound(file), folder.name)
        for folder in folders(folder_of(op, given)) for file in sorted(folder.glob("*.wav"))
    ]  # fmt: skip
    return Listing(_WAVE | {"label": None}, rows)


@loader(f"dataset_dir! {SAMPLED}")
def LJSpeechDataset(op: str, given: Attrs) -> Listing:
    """Speech in ``wavs``: waveform, sample_rate, transcription, normalized_transcription."""
    folder, rows = folder_of(op, given), []
    for line in lines_of(op, folder / "metadata.csv"):
        name, text, normalized = line.split("|")
        rows.append((*sound(folder / "wavs" / f"{name}.wav"), text, normalized))
    kinds = {"waveform": "float32", "sample_rate": "int32"}
    return Listing(kinds | {"transcription": None, "normalized_transcription": None}, rows)


@loader(f"dataset_dir! usage {SAMPLED}")
def SpeechCommandsDataset(op: str, given: Attrs) -> Listing:
    """Words in one folder each: waveform, sample_rate, label, speaker_id, utterance_number."""
    folder = folder_of(op, given)
    lists = {
        "valid": set(_list(folder, "validation_list.txt")),
        "test": set(_list(folder, "testing_list.txt")),
    }
    rows = []
    for file in sorted(f for d in folders(folder) for f in d.glob("*_nohash_*.wav")):
        name = file.relative_to(folder).as_posix()
        part = next((p for p, names in lists.items() if name in names), "train")
        if given["usage"] in (None, "all", part):
            speaker, number = file.stem.split("_nohash_")
            rows.append((*sound(file), file.parent.name, speaker, int(number)))
    kinds = {"waveform": "float32", "sample_rate": "int32", "label": None, "speaker_id": None}
    return Listing(kinds | {"utterance_number": "int32"}, rows)


def _list(folder: Path, name: str) -> list[str]:
    path = folder / name
    return path.read_text("utf-8").split() if path.is_file() else []


@loader(f"dataset_dir! {SAMPLED}")
def YesNoDataset(op: str, given: Attrs) -> Listing:
    """Files such as ``1_0_0_1_1_0_1_0.wav``: waveform, sample_rate, label (int32, eight)."""
    files = sorted(folder_of(op, given).glob("*.wav"))
    rows = [(*sound(f), [int(n) for n in f.stem.split("_")]) for f in files]
    return Listing({"waveform": "float32", "sample_rate": "int32", "label": "int32"}, rows)


@loader(f"dataset_dir! usage {SAMPLED}")
def LibriTTSDataset(op: str, given: Attrs) -> Listing:
    """Books in ``train-clean-100`` and the like: waveform, sample_rate, original_text,
    normalized_text, speaker_id, chapter_id, utterance_id.
    """
    base, rows = folder_of(op, given), []
    sets = ("dev-clean", "dev-other", "test-clean", "test-other", "train-clean-100",
            "train-clean-360", "train-other-500")  # fmt: skip
    for part in splits_of(op, given["usage"], {name: name for name in sets}):
        for path in sorted((base / part).glob("*/*/*.trans.tsv")):
            for name, *texts in (line.split("\t") for line in lines_of(op, path)):
                speaker, chapter = (int(n) for n in name.split("_")[:2])
                rows.append((*sound(path.parent / f"{name}.wav"), *texts, speaker, chapter, name))
    kinds = {"original_text": None, "normalized_text": None, "speaker_id": "uint32"}
    return Listing(_WAVE | kinds | {"chapter_id": "uint32", "utterance_id": None}, rows)


@loader(f"dataset_dir! release! usage extensions {SAMPLED}")
def TedliumDataset(op: str, given: Attrs) -> Listing:
    """Talks in ``train/sph`` and the like: waveform, sample_rate, transcript, talk_id, speaker_id,
    identifier.
    """
    base, rows = folder_of(op, given), []
    if given["extensions"] not in (None, ".sph"):
        reject(either(ArgumentError, RuntimeError), op,
               f"files end in '.sph', not in {given['extensions']!r}")  # fmt: skip
    older = {part: part for part in ("train", "test", "dev")}
    splits = older if given["release"] in ("release1", "release2") else {"all": "data"}
    for part in splits_of(op, given["usage"], splits):
        for path in sorted((base / part / "stm").glob("*.stm")):
            rows += [_talk(op, base / part / "sph", line) for line in lines_of(op, path)]
    kinds = {"waveform": "float32", "sample_rate": "int32", "transcript": None, "talk_id": None}
    return Listing(kinds | {"speaker_id": None, "identifier": None}, rows)


def _talk(op: str, folder: Path, line: str) -> tuple[object, ...]:
    """Returns a row: talk, channel, speaker, start, end, label and words are in a line."""
    talk, _, speaker, start, end, label, words = line.split(None, 6)
    path = folder / f"{talk}.sph"
    rate = int(_sphere(op, path)["sample_rate"])
    span = slice(int(float(start) * rate), int(float(end) * rate))
    return partial(_speech, op, path, span), rate, words.strip(), talk, speaker, label


def _sphere(op: str, path: Path) -> dict[str, str]:
    """Returns the header of a file of NIST's format SPHERE, with its length as ``header``."""
    with existing(op, path).open("rb") as file:
        size = int(file.read(16).split()[1])
        lines = file.read(size - 16).decode("ascii", "replace").split("end_head")[0].splitlines()
    fields = (line.split(None, 2) for line in lines if len(line.split()) > 2)
    return {name: value for name, _, value in fields} | {"header": str(size)}


def _speech(op: str, path: Path, span: slice) -> np.ndarray:
    header = _sphere(op, path)
    if header.get("sample_coding", "pcm") != "pcm" or header["sample_n_bytes"] != "2":
        reject(ArgumentError, op, f"{path} is not of plain samples of 16 bits",
               fix="convert it with sph2pipe -p")  # fmt: skip
    order = ">i2" if header.get("sample_byte_format") == "10" else "<i2"
    samples = np.fromfile(path, order, offset=int(header["header"]))
    channels = int(header.get("channel_count", 1))
    return samples.reshape(-1, channels).T[:, span] / np.float32(32768)
