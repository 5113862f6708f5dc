"""Every public name of MindSpore works with MindSpore's parameters, or is absent with a reason."""

from __future__ import annotations

import importlib

import pytest

from tests.compat.names import DOCUMENT, differences, markdown, recorded, room_of, works
from tvmgraph.compat.absent import reason
from tvmgraph.errors import NotFoundError

#: Calls that differ on purpose, each with the reason.
DIFFERENT = {
    "load": "formats are those of export; public_key verifies them",
    "load_checkpoint_async": "see load_checkpoint",
    "ImageFolderDataset": "nothing is encrypted",
    "RandomSampler": "shuffle is the word global, of one meaning",
    "not_random": "one function in both modules",
    "GraphCell": "nothing is obfuscated",
    "Custom": "func_type is told by what func is",
    "DynamicShape": "dtype is a dtype", "ReduceStd": "axis has no mutable default",
    "reduce_max": "the name of amax", "reduce_min": "the name of amin",
    "reduce_mean": "the name of mean", "reduce_sum": "the operator that all sums are made of",
    "shape_": "the name of shape", "shape_mul": "the operator's own", "tensor_slice": "slice's own",
}  # fmt: skip
#: Names that are still to be made to fit, by namespace; it may only become shorter.
OPEN = {
    "ops": "isnan_ext", "Tensor": "expand register_hook resize sum_to_size",
}  # fmt: skip

NAMES = [n for n in recorded() if not works(n)]


def test_every_name_works_or_has_a_reason() -> None:
    missing = [f"{n.room}.{n.name}" for n in NAMES if not reason(n.name, n.room)]
    assert missing == [], "write the name, or a reason into tvmgraph/compat/absent.py"


def test_an_absent_name_says_why() -> None:
    for name in NAMES:
        room = room_of(name.room)
        if room is None or isinstance(room, type):
            continue
        with pytest.raises(NotFoundError) as caught:
            getattr(room, name.name)
        why = reason(name.name, name.room)
        assert why is not None and why in str(caught.value), f"{name.room}.{name.name}"


def test_parameters_are_those_of_mindspore() -> None:
    wrong = {}
    for name in recorded():
        known = name.name in DIFFERENT
        if known or name.name in OPEN.get(name.room, "").split() or not works(name):
            continue
        difference = differences(name)
        if difference:
            wrong[f"{name.room}.{name.name}"] = difference
    assert wrong == {}


def test_differences_are_seen() -> None:
    from tests.compat.names import _misfit

    assert _misfit("x, axis=0", "x, axis=0, more=1") is None
    assert _misfit("x, axis=0", "x, *args") is None
    assert _misfit("x, axis=0", "x, dim=0") is not None
    assert _misfit("x, axis=0", "x, axis=1") is not None
    assert _misfit("x, axis=0", "x") is not None
    assert _misfit("x", "x, more") is not None
    assert _misfit("x, a=(1, 2)", "x, a=(1, 2)") is None


def test_the_document_is_in_step() -> None:
    assert DOCUMENT.read_text() == markdown(), "run: python -m tests.compat.names"


def test_the_package_lists_what_is_public() -> None:
    package = importlib.import_module("tvmgraph")
    names = dir(package)
    assert not [n for n in names if n.startswith("_") and n != "__version__"]
    assert {"Tensor", "nn", "ops", "Model", "numpy", "experimental"} <= set(names)
    assert not {"sys", "importlib", "Any", "paths", "ModuleType"} & set(names)
    for name in names:
        getattr(package, name)
