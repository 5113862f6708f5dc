"""Sources of text: tables, lines, reviews, questions, translations."""

from __future__ import annotations

import csv
import json
import re
from functools import partial
from pathlib import Path

from tvmgraph.core.arguments import Attrs
from tvmgraph.dataset.files import files_of, joined, splits_of
from tvmgraph.dataset.loaders.table import (
    LINES,
    LINES_LAST,
    SAMPLED,
    Listing,
    existing,
    folder_of,
    lines_of,
    loader,
)
from tvmgraph.errors import ArgumentError, reject

# Several files of lines are read in the order of their names, as in MindSpore.


def _table(op: str, given: Attrs, columns: str, is_sorted: bool = True) -> Listing:
    """Reads ``test.csv`` and ``train.csv``, of ``train.csv`` first unless sorted."""
    names = columns.split()
    splits = splits_of(op, given["usage"], {"train": "train", "test": "test"})
    folder = folder_of(op, given)
    rows, counts = joined(
        [tuple(row[: len(names)]) for row in csv.reader(lines_of(op, folder / f"{split}.csv"))]
        for split in (sorted(splits) if is_sorted else splits)
    )
    return Listing(dict.fromkeys(names), rows, counts=counts)


def _lines(op: str, given: Attrs, splits: dict[str, str]) -> Listing:
    """Reads the lines of files, one for each usage."""
    folder = folder_of(op, given)
    names = sorted(splits_of(op, given.get("usage"), splits))
    lines, counts = joined(lines_of(op, folder / name) for name in names)
    return Listing({"text": None}, [(line,) for line in lines], counts=counts)


def _tagged(
    op: str, given: Attrs, columns: str, splits: dict[str, str], separator: str | None
) -> Listing:
    """Reads sentences: lines of a word and its tags, empty lines between them."""

    def sentences(path: Path) -> list[tuple[list[str], ...]]:
        blocks = existing(op, path).read_text("utf-8").replace("\r", "").strip().split("\n\n")
        tagged = ([w.split(separator) for w in b.split("\n") if w.strip()] for b in blocks)
        return [tuple(list(c) for c in zip(*words)) for words in tagged]

    names, folder = sorted(splits_of(op, given["usage"], splits)), folder_of(op, given)
    rows, counts = joined(sentences(folder / name) for name in names)
    return Listing(dict.fromkeys(columns.split()), rows, counts=counts)


@loader(f"dataset_dir! usage {SAMPLED}")
def IMDBDataset(op: str, given: Attrs) -> Listing:
    """Reviews in ``train/pos/*.txt`` and the like: text, and label int32, 1 for positive ones."""
    rows = []
    for split in splits_of(op, given["usage"], {"train": "train", "test": "test"}):
        for label, name in enumerate(("pos", "neg")):
            folder = folder_of(op, given) / split / name
            files = sorted(folder.glob("*.txt"))
            rows += [(partial(f.read_text, "utf-8"), 1 - label) for f in files]
    return Listing({"text": None, "label": "int32"}, rows)


@loader(f"dataset_dir! usage {LINES}")
def SST2Dataset(op: str, given: Attrs) -> Listing:
    """Sentences of ``train.tsv``, ``dev.tsv`` (sentence and label) or ``test.tsv`` (sentence)."""
    splits = {"train": "train.tsv", "test": "test.tsv", "dev": "dev.tsv"}
    (name,) = splits_of(op, given["usage"], splits, "train.tsv")
    rows = [tuple(x.split("\t")) for x in lines_of(op, folder_of(op, given) / name)[1:]]
    if name == "test.tsv":
        return Listing({"sentence": None}, [(r[-1],) for r in rows])
    return Listing({"sentence": None, "label": None}, rows)


@loader(f"dataset_dir! usage {LINES}")
def SQuADDataset(op: str, given: Attrs) -> Listing:
    """Questions of ``train-v1.1.json`` and ``dev-v1.1.json`` (or 2.0): context, question, text and
    answer_start uint32, one for each answer.
    """
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


@loader(
    "dataset_dir! usage language_pair num_samples num_parallel_workers shuffle num_shards "
    "shard_id cache"
)
def Multi30kDataset(op: str, given: Attrs) -> Listing:
    """Sentences of ``training/train.en`` and the like: text and translation."""
    splits = {"train": "training/train", "valid": "validation/val", "test": "mmt16_task1_test/test"}
    pair = list(given["language_pair"] or ("en", "de"))
    if sorted(pair) != ["de", "en"]:
        reject(ArgumentError, op, f"language_pair must be of 'en' and 'de', not {pair}")
    rows = []
    for split in sorted(splits_of(op, given["usage"], splits)):
        sides = [lines_of(op, folder_of(op, given) / f"{split}.{word}") for word in pair]
        rows += list(zip(*sides))
    return Listing({"text": None, "translation": None}, rows)


@loader("dataset_dir! num_samples num_parallel_workers shuffle=True num_shards shard_id cache")
def EnWik9Dataset(op: str, given: Attrs) -> Listing:
    """Lines of the file ``enwik9``, empty ones too: text."""
    text = existing(op, folder_of(op, given) / "enwik9").read_text("utf-8")
    return Listing({"text": None}, [(line,) for line in text.splitlines()])


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


@loader(
    "dataset_files! task='AFQMC' usage='train' num_samples num_parallel_workers "
    "shuffle='global' num_shards shard_id cache"
)
def CLUEDataset(op: str, given: Attrs) -> Listing:
    """Tasks of the Chinese language in files of JSON lines: their entries, as strings or uint32."""
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


def _iwslt(op: str, given: Attrs, year: int) -> Listing:
    """Reads translated talks."""
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


def _sentences(op: str, path: Path) -> list[str]:
    """Returns the sentences of a file, which have marks of their own in XML, and none elsewhere."""
    lines = [line.strip("\ufeff \t\r") for line in lines_of(op, path)]
    if path.suffix == ".xml":
        found = (re.match(r"<seg[^>]*>(.*)</seg>", line) for line in lines)
        return [m[1].strip() for m in found if m]
    return [line for line in lines if line and not line.startswith("<")]


@loader(f"dataset_dir! usage {LINES}")
def AGNewsDataset(op: str, given: Attrs) -> Listing:
    """News in ``train.csv`` and ``test.csv``: index, title and description, all strings."""
    return _table(op, given, "index title description")


@loader(f"dataset_dir! usage {LINES}")
def AmazonReviewDataset(op: str, given: Attrs) -> Listing:
    """Reviews in ``train.csv`` and ``test.csv``: label, title and content, all strings."""
    return _table(op, given, "label title content")


@loader(f"dataset_dir! usage {LINES}")
def DBpediaDataset(op: str, given: Attrs) -> Listing:
    """Articles in ``train.csv`` and ``test.csv``: class, title and content, all strings."""
    return _table(op, given, "class title content")


@loader(f"dataset_dir! usage {LINES_LAST}")
def SogouNewsDataset(op: str, given: Attrs) -> Listing:
    """News in ``train.csv`` and ``test.csv``: index, title and content, all strings."""
    return _table(op, given, "index title content", False)


@loader(f"dataset_dir! usage {LINES}")
def YahooAnswersDataset(op: str, given: Attrs) -> Listing:
    """Questions in ``train.csv`` and ``test.csv``: class, title, content and answer, all
    strings.
    """
    return _table(op, given, "class title content answer")


@loader(f"dataset_dir! usage {LINES_LAST}")
def YelpReviewDataset(op: str, given: Attrs) -> Listing:
    """Reviews in ``train.csv`` and ``test.csv``: label and text, all strings."""
    return _table(op, given, "label text", False)


@loader(f"dataset_dir! usage {LINES}")
def PennTreebankDataset(op: str, given: Attrs) -> Listing:
    """Lines of ``ptb.train.txt``, ``ptb.test.txt`` and ``ptb.valid.txt``: text."""
    return _lines(
        op, given, {"train": "ptb.train.txt", "test": "ptb.test.txt", "valid": "ptb.valid.txt"}
    )


@loader(f"dataset_dir! usage {LINES}")
def WikiTextDataset(op: str, given: Attrs) -> Listing:
    """Lines of ``wiki.train.tokens``, ``wiki.test.tokens`` and ``wiki.valid.tokens``: text."""
    return _lines(
        op,
        given,
        {"train": "wiki.train.tokens", "test": "wiki.test.tokens", "valid": "wiki.valid.tokens"},
    )


@loader(f"dataset_dir! usage {LINES_LAST}")
def CoNLL2000Dataset(op: str, given: Attrs) -> Listing:
    """Sentences of ``train.txt`` and ``test.txt``: word, pos_tag and chunk_tag, lists of
    strings.
    """
    return _tagged(
        op, given, "word pos_tag chunk_tag", {"train": "train.txt", "test": "test.txt"}, " "
    )


@loader(f"dataset_dir! usage {LINES_LAST}")
def UDPOSDataset(op: str, given: Attrs) -> Listing:
    """Sentences of ``en-ud-tag.v2.*.txt``: word, universal and stanford, lists of strings."""
    return _tagged(
        op,
        given,
        "word universal stanford",
        {
            "train": "en-ud-tag.v2.train.txt",
            "test": "en-ud-tag.v2.test.txt",
            "valid": "en-ud-tag.v2.dev.txt",
        },
        "\t",
    )


@loader(f"dataset_dir! usage language_pair valid_set test_set {LINES_LAST}")
def IWSLT2016Dataset(op: str, given: Attrs) -> Listing:
    """Talks of ``texts/de/en/de-en`` and the like: text and translation."""
    return _iwslt(op, given, 2016)


@loader(f"dataset_dir! usage language_pair {LINES_LAST}")
def IWSLT2017Dataset(op: str, given: Attrs) -> Listing:
    """Talks of ``texts/DeEnItNlRo/DeEnItNlRo/DeEnItNlRo-DeEnItNlRo``: text and translation."""
    return _iwslt(op, given, 2017)
