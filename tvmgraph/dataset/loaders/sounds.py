"""Sources of speech and music in WAV files of 16 bits: waveforms are float32 in [-1, 1]."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tvmgraph.dataset.loaders.table import (
    SAMPLED,
    Listing,
    folder_of,
    folders,
    lines_of,
    loader,
    sound,
)

_WAVE = {"waveform": "float32", "sample_rate": "uint32"}


def _cmu(op: str, given: Mapping[str, object]) -> Listing:
    base = folder_of(op, given) / f"cmu_us_{given['name'] or 'aew'}_arctic"
    rows = []
    for line in lines_of(op, base / "etc" / "txt.done.data"):
        number, text = line.split('"')[0].split()[1], line.split('"')[1]
        found = sound(base / "wav" / f"{number}.wav")
        rows.append((*found, text, number.removeprefix("arctic_")))
    return Listing(_WAVE | {"transcript": None, "utterance_id": None}, rows)


def _gtzan(op: str, given: dict[str, object]) -> Listing:
    rows = [
        (*sound(file), folder.name)
        for folder in folders(folder_of(op, given)) for file in sorted(folder.glob("*.wav"))
    ]  # fmt: skip
    return Listing(_WAVE | {"label": None}, rows)


def _ljspeech(op: str, given: Mapping[str, object]) -> Listing:
    folder, rows = folder_of(op, given), []
    for line in lines_of(op, folder / "metadata.csv"):
        name, text, normalized = line.split("|")
        rows.append((*sound(folder / "wavs" / f"{name}.wav"), text, normalized))
    kinds = {"waveform": "float32", "sample_rate": "int32"}
    return Listing(kinds | {"transcription": None, "normalized_transcription": None}, rows)


def _speech_commands(op: str, given: Mapping[str, object]) -> Listing:
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


def _yes_no(op: str, given: dict[str, object]) -> Listing:
    files = sorted(folder_of(op, given).glob("*.wav"))
    rows = [(*sound(f), [int(n) for n in f.stem.split("_")]) for f in files]
    return Listing({"waveform": "float32", "sample_rate": "int32", "label": "int32"}, rows)


CMUArcticDataset = loader(
    "CMUArcticDataset", f"dataset_dir! name {SAMPLED}", _cmu,
    "Speech in ``cmu_us_<name>_arctic/wav``: waveform, sample_rate, transcript, utterance_id.",
)  # fmt: skip
GTZANDataset = loader(
    "GTZANDataset", f"dataset_dir! usage {SAMPLED}", _gtzan,
    "Music in one folder per genre: waveform, sample_rate, label.",
)  # fmt: skip
LJSpeechDataset = loader(
    "LJSpeechDataset", f"dataset_dir! {SAMPLED}", _ljspeech,
    "Speech in ``wavs``: waveform, sample_rate, transcription, normalized_transcription.",
)  # fmt: skip
SpeechCommandsDataset = loader(
    "SpeechCommandsDataset", f"dataset_dir! usage {SAMPLED}", _speech_commands,
    "Words in one folder each: waveform, sample_rate, label, speaker_id, utterance_number.",
)  # fmt: skip
YesNoDataset = loader(
    "YesNoDataset", f"dataset_dir! {SAMPLED}", _yes_no,
    "Files such as ``1_0_0_1_1_0_1_0.wav``: waveform, sample_rate, label (int32, eight).",
)  # fmt: skip

__all__ = [
    "CMUArcticDataset", "GTZANDataset", "LJSpeechDataset", "SpeechCommandsDataset", "YesNoDataset",
]  # fmt: skip
