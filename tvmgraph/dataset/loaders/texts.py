"""Sources of text: tables, lines, reviews, questions, translations."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tvmgraph.core.arguments import Attrs
from tvmgraph.dataset.files import files_of, joined
from tvmgraph.dataset.loaders.table import (
    LINES,
    LINES_LAST,
    SAMPLED,
    Listing,
    folder_of,
    lines_of,
    loader,
    splits_of,
)
from tvmgraph.errors import ArgumentError, reject

Read = Callable[[str, Attrs], Listing]

# Several files of lines are read in the order of their names, as in MindSpore.


def _table(columns: str, is_sorted: bool = True) -> Read:
    """Returns a reader of ``test.csv`` and ``train.csv``, of ``train.csv`` first unless sorted."""

    def read(op: str, given: Mapping[str, object]) -> Listing:
        names = columns.split()
        splits = splits_of(op, given["usage"], {"train": "train", "test": "test"})
        folder = folder_of(op, given)
        rows, counts = joined(
            [tuple(row[: len(names)]) for row in csv.reader(lines_of(op, folder / f"{split}.csv"))]
            for split in (sorted(splits) if is_sorted else splits)
        )
        return Listing(dict.fromkeys(names), rows, counts=counts)

    return read


def _lines(splits: dict[str, str]) -> Read:
    """Returns a reader of the lines of files, one for each usage."""

    def read(op: str, given: Mapping[str, object]) -> Listing:
        folder = folder_of(op, given)
        names = sorted(splits_of(op, given.get("usage"), splits))
        lines, counts = joined(lines_of(op, folder / name) for name in names)
        return Listing({"text": None}, [(line,) for line in lines], counts=counts)

    return read


def _tagged(columns: str, splits: dict[str, str], separator: str | None) -> Read:
    """Returns a reader of sentences: lines of a word and its tags, empty lines between them."""

    def read(op: str, given: Mapping[str, object]) -> Listing:
        def sentences(path: Path) -> list[tuple[list[str], ...]]:
            lines_of(op, path)
            blocks = path.read_text("utf-8").replace("\r", "").strip().split("\n\n")
            tagged = ([w.split(separator) for w in b.split("\n") if w.strip()] for b in blocks)
            return [tuple(list(c) for c in zip(*words)) for words in tagged]

        names, folder = sorted(splits_of(op, given["usage"], splits)), folder_of(op, given)
        rows, counts = joined(sentences(folder / name) for name in names)
        return Listing(dict.fromkeys(columns.split()), rows, counts=counts)

    return read


def _imdb(op: str, given: Mapping[str, object]) -> Listing:
    rows = []
    for split in splits_of(op, given["usage"], {"train": "train", "test": "test"}):
        for label, name in enumerate(("pos", "neg")):
            folder = folder_of(op, given) / split / name
            files = sorted(folder.glob("*.txt"))
            rows += [(partial(f.read_text, "utf-8"), 1 - label) for f in files]
    return Listing({"text": None, "label": "int32"}, rows)


def _sst2(op: str, given: Attrs) -> Listing:
    splits = {"train": "train.tsv", "test": "test.tsv", "dev": "dev.tsv"}
    (name,) = splits_of(op, given["usage"], splits, "train.tsv")
    rows = [tuple(x.split("\t")) for x in lines_of(op, folder_of(op, given) / name)[1:]]
    if name == "test.tsv":
        return Listing({"sentence": None}, [(r[-1],) for r in rows])
    return Listing({"sentence": None, "label": None}, rows)


def _squad(op: str, given: Mapping[str, object]) -> Listing:
    rows = []
    splits = {"train": "train-v1.1.json", "dev": "dev-v1.1.json"}
    for name in splits_of(op, given["usage"], splits):
        folder = folder_of(op, given)
        path = folder / name if (folder / name).is_file() else folder / name.replace("1.1", "2.0")
        content = json.loads("\n".join(lines_of(op, path)))
        for paragraph in (p for page in content["data"] for p in page["paragraphs"]):
            for asked in paragraph["qas"]:
                answers = asked["answers"] or [{"text": "", "answer_start": -1}]
                rows.append((
                    paragraph["context"], asked["question"], [a["text"] for a in answers],
                    [a["answer_start"] for a in answers],
                ))  # fmt: skip
    kinds = {"context": None, "question": None, "text": None, "answer_start": "uint32"}
    return Listing(kinds, rows)


def _multi30k(op: str, given: Attrs) -> Listing:
    splits = {"train": "training/train", "valid": "validation/val", "test": "mmt16_task1_test/test"}
    pair = list(given["language_pair"] or ("en", "de"))
    if sorted(pair) != ["de", "en"]:
        reject(ArgumentError, op, f"language_pair must be of 'en' and 'de', not {pair}")
    rows = []
    for split in sorted(splits_of(op, given["usage"], splits)):
        sides = [lines_of(op, folder_of(op, given) / f"{split}.{word}") for word in pair]
        rows += list(zip(*sides))
    return Listing({"text": None, "translation": None}, rows)


def _enwik9(op: str, given: Mapping[str, object]) -> Listing:
    path = folder_of(op, given) / "enwik9"
    lines_of(op, path)
    return Listing({"text": None}, [(line,) for line in path.read_text("utf-8").splitlines()])


#: Columns of the tasks of CLUE in MindSpore's order; those before the bar in its test files only,
#: those behind the second bar in its other files only. Numbers have a ``#``.
_CLUE = {
    "AFQMC": "#id|sentence1 sentence2|label",
    "CMNLI": "#id|sentence1 sentence2|label",
    "CSL": "|abst #id keyword|label",
    "IFLYTEK": "#id|sentence|label label_des",
    "TNEWS": "#id|keywords sentence|label label_desc",
    "WSC": "|#idx #span1_index span1_text #span2_index span2_text text|label",
}


def _clue(op: str, given: Attrs) -> Listing:
    if given["task"] not in _CLUE:
        reject(ArgumentError, op, f"task cannot be {given['task']!r}",
               fix=f"use {', '.join(_CLUE)}")  # fmt: skip
    splits = {"train": False, "test": True, "eval": False}
    if given["usage"] not in splits:
        reject(ArgumentError, op, f"usage cannot be {given['usage']!r}",
               fix=f"use {', '.join(splits)}")  # fmt: skip
    tests, both, others = (words.split() for words in _CLUE[given["task"]].split("|"))
    names = sorted(both + (tests if splits[given["usage"]] else others), key=_plain)
    rows = []
    for path in files_of(op, given["dataset_files"]):
        for content in (json.loads(line) for line in lines_of(op, path)):
            entries = content.pop("target", {}) | content
            rows.append(tuple(_clue_entry(entries[_plain(n)]) for n in names))
    return Listing({_plain(n): "uint32" if n[0] == "#" else None for n in names}, rows)


def _plain(name: str) -> str:
    return name.lstrip("#")


def _clue_entry(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _iwslt(year: int) -> Read:
    """Returns a reader of translated talks."""

    def read(op: str, given: Attrs) -> Listing:
        pair = list(given["language_pair"] or ("de", "en"))
        base = folder_of(op, given) / "texts"
        base /= "/".join(pair) if year == 2016 else "DeEnItNlRo/DeEnItNlRo"
        base /= "-".join(pair) if year == 2016 else "DeEnItNlRo-DeEnItNlRo"
        sets = {
            "valid": given.get("valid_set") or ("tst2013" if year == 2016 else "dev2010"),
            "test": given.get("test_set") or ("tst2014" if year == 2016 else "tst2010"),
        }
        both, rows = "-".join(pair), []
        for part in splits_of(op, given["usage"], {n: n for n in ("train", "valid", "test")}):
            name = f"IWSLT{year % 100}.TED.{sets[part]}.{both}" if part in sets else None
            files = [base / (f"{name}.{word}.xml" if name else f"train.tags.{both}.{word}")
                     for word in pair]  # fmt: skip
            rows += list(zip(*(_sentences(op, file) for file in files)))
        return Listing({"text": None, "translation": None}, rows)

    return read


def _sentences(op: str, path: Path) -> list[str]:
    """Returns the sentences of a file, which have marks of their own in XML, and none elsewhere."""
    lines = [line.strip("\ufeff \t\r") for line in lines_of(op, path)]
    if path.suffix == ".xml":
        found = (re.match(r"<seg[^>]*>(.*)</seg>", line) for line in lines)
        return [m[1].strip() for m in found if m]
    return [line for line in lines if line and not line.startswith("<")]


AGNewsDataset = loader(
    "AGNewsDataset", f"dataset_dir! usage {LINES}", _table("index title description"),
    "News in ``train.csv`` and ``test.csv``: index, title and description, all strings.",
)  # fmt: skip
AmazonReviewDataset = loader(
    "AmazonReviewDataset", f"dataset_dir! usage {LINES}", _table("label title content"),
    "Reviews in ``train.csv`` and ``test.csv``: label, title and content, all strings.",
)  # fmt: skip
DBpediaDataset = loader(
    "DBpediaDataset", f"dataset_dir! usage {LINES}", _table("class title content"),
    "Articles in ``train.csv`` and ``test.csv``: class, title and content, all strings.",
)  # fmt: skip
SogouNewsDataset = loader(
    "SogouNewsDataset", f"dataset_dir! usage {LINES_LAST}", _table("index title content", False),
    "News in ``train.csv`` and ``test.csv``: index, title and content, all strings.",
)  # fmt: skip
YahooAnswersDataset = loader(
    "YahooAnswersDataset", f"dataset_dir! usage {LINES}",
    _table("class title content answer"),
    "Questions in ``train.csv`` and ``test.csv``: class, title, content and answer, all strings.",
)  # fmt: skip
YelpReviewDataset = loader(
    "YelpReviewDataset", f"dataset_dir! usage {LINES_LAST}", _table("label text", False),
    "Reviews in ``train.csv`` and ``test.csv``: label and text, all strings.",
)  # fmt: skip
EnWik9Dataset = loader(
    "EnWik9Dataset",
    "dataset_dir! num_samples num_parallel_workers shuffle=True num_shards shard_id cache",
    _enwik9, "Lines of the file ``enwik9``, empty ones too: text.",
)  # fmt: skip
PennTreebankDataset = loader(
    "PennTreebankDataset", f"dataset_dir! usage {LINES}",
    _lines({"train": "ptb.train.txt", "test": "ptb.test.txt", "valid": "ptb.valid.txt"}),
    "Lines of ``ptb.train.txt``, ``ptb.test.txt`` and ``ptb.valid.txt``: text.",
)  # fmt: skip
WikiTextDataset = loader(
    "WikiTextDataset", f"dataset_dir! usage {LINES}",
    _lines({"train": "wiki.train.tokens", "test": "wiki.test.tokens",
            "valid": "wiki.valid.tokens"}),
    "Lines of ``wiki.train.tokens``, ``wiki.test.tokens`` and ``wiki.valid.tokens``: text.",
)  # fmt: skip
CoNLL2000Dataset = loader(
    "CoNLL2000Dataset", f"dataset_dir! usage {LINES_LAST}",
    _tagged("word pos_tag chunk_tag", {"train": "train.txt", "test": "test.txt"}, " "),
    "Sentences of ``train.txt`` and ``test.txt``: word, pos_tag and chunk_tag, lists of strings.",
)  # fmt: skip
UDPOSDataset = loader(
    "UDPOSDataset", f"dataset_dir! usage {LINES_LAST}",
    _tagged("word universal stanford", {
        "train": "en-ud-tag.v2.train.txt", "test": "en-ud-tag.v2.test.txt",
        "valid": "en-ud-tag.v2.dev.txt"}, "\t"),
    "Sentences of ``en-ud-tag.v2.*.txt``: word, universal and stanford, lists of strings.",
)  # fmt: skip
IMDBDataset = loader(
    "IMDBDataset", f"dataset_dir! usage {SAMPLED}", _imdb,
    "Reviews in ``train/pos/*.txt`` and the like: text, and label int32, 1 for positive ones.",
)  # fmt: skip
SST2Dataset = loader(
    "SST2Dataset", f"dataset_dir! usage {LINES}", _sst2,
    "Sentences of ``train.tsv``, ``dev.tsv`` (sentence and label) or ``test.tsv`` (sentence).",
)  # fmt: skip
SQuADDataset = loader(
    "SQuADDataset", f"dataset_dir! usage {LINES}", _squad,
    "Questions of ``train-v1.1.json`` and ``dev-v1.1.json`` (or 2.0): context, question, text and"
    " answer_start uint32, one for each answer.",
)  # fmt: skip
Multi30kDataset = loader(
    "Multi30kDataset",
    "dataset_dir! usage language_pair num_samples num_parallel_workers shuffle num_shards "
    "shard_id cache", _multi30k,
    "Sentences of ``training/train.en`` and the like: text and translation.",
)  # fmt: skip
CLUEDataset = loader(
    "CLUEDataset", "dataset_files! task='AFQMC' usage='train' num_samples num_parallel_workers "
    "shuffle='global' num_shards shard_id cache", _clue,
    "Tasks of the Chinese language in files of JSON lines: their entries, as strings or uint32.",
)  # fmt: skip
IWSLT2016Dataset = loader(
    "IWSLT2016Dataset", f"dataset_dir! usage language_pair valid_set test_set {LINES_LAST}",
    _iwslt(2016), "Talks of ``texts/de/en/de-en`` and the like: text and translation.",
)  # fmt: skip
IWSLT2017Dataset = loader(
    "IWSLT2017Dataset", f"dataset_dir! usage language_pair {LINES_LAST}", _iwslt(2017),
    "Talks of ``texts/DeEnItNlRo/DeEnItNlRo/DeEnItNlRo-DeEnItNlRo``: text and translation.",
)  # fmt: skip
