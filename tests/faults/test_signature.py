"""Changed module files and checkpoints are refused; signatures tell who wrote a module."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519

import tvmgraph as ms
from tvmgraph import Tensor, nn
from tvmgraph.errors import ArgumentError, LoadError, TvmgraphError
from tvmgraph.runtime.archive import MANIFEST
from tvmgraph.train.serialization import CheckpointError

X = np.ones((2, 4), np.float32)


def keys(folder: Path, name: str, kind: Any = ed25519.Ed25519PrivateKey) -> tuple[Path, Path]:
    """Writes a new pair of keys: the private and the public file."""
    key = kind.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ))  # fmt: skip
    public.write_bytes(key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ))  # fmt: skip
    return private, public


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, np.ndarray]:
    """A signed module, its public key, and what it computes."""
    folder = tmp_path_factory.mktemp("signed")
    private, public = keys(folder, "author")
    net = nn.SequentialCell(nn.Dense(4, 4), nn.Dense(4, 4))
    path = folder / "net.tvm"
    ms.export(net, Tensor(X), file_name=path, file_format="TVM", sign=private)
    return path, public, net(Tensor(X)).asnumpy()


def changed(path: Path, target: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Copies a module file with another manifest."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == MANIFEST:
                facts = json.loads(data)
                change(facts)
                data = json.dumps(facts).encode()
            new.writestr(name, data)
    return target


def swap(facts: dict[str, Any]) -> None:
    a, b = [e for e in facts["parameters"] if e["shape"] == [4, 4]]
    a["name"], b["name"] = b["name"], a["name"]


def test_a_signed_module_loads_with_its_key(signed: tuple[Path, Path, np.ndarray]) -> None:
    path, public, result = signed
    for module in (ms.load(path), ms.load(path, public_key=public)):
        assert np.allclose(module(X), result, atol=1e-5)


def test_swapped_weights_are_refused(signed: tuple[Path, Path, np.ndarray], tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="manifest was changed"):
        ms.load(changed(signed[0], tmp_path / "net.tvm", swap))


def forge(facts: dict[str, Any]) -> None:
    """Changes a manifest and its digest, too."""
    from tvmgraph.runtime.archive import _content, digest

    swap(facts)
    facts["digest"] = digest(_content(facts))


@pytest.mark.parametrize("change, why", [
    (forge, "not of this file"), (lambda f: f.pop("signature"), "not signed"),
    (lambda f: f.update(signature=5), "not signed"),
    (lambda f: f.update(signature="!"), "not of this file"),
])  # fmt: skip
def test_forged_files_are_refused(
    signed: tuple[Path, Path, np.ndarray], tmp_path: Path, change: Any, why: str
) -> None:
    path = changed(signed[0], tmp_path / "net.tvm", change)
    with pytest.raises(LoadError, match=why):
        ms.load(path, public_key=signed[1])


def test_wrong_keys(signed: tuple[Path, Path, np.ndarray], tmp_path: Path) -> None:
    _, other = keys(tmp_path, "other")
    exchange = keys(tmp_path, "exchange", x25519.X25519PrivateKey)
    with pytest.raises(LoadError, match="not of this file"):
        ms.load(signed[0], public_key=other)
    for key in (tmp_path / "none.pub", signed[0], exchange[1]):
        with pytest.raises(ArgumentError, match="key cannot be used"):
            ms.load(signed[0], public_key=key)
    for key in (other, exchange[0]):
        with pytest.raises(ArgumentError, match="key cannot be used"):
            ms.export(nn.ReLU(), Tensor(X), file_name=tmp_path / "x.tvm", file_format="TVM",
                      sign=key)  # fmt: skip
    with pytest.raises(ArgumentError, match="only compiled modules"):
        ms.load(tmp_path / "net.graph", public_key=other)


def test_mutated_checkpoints_are_refused(tmp_path: Path) -> None:
    """A file that loads has what was saved."""
    net, rng = nn.SequentialCell(nn.Dense(4, 4), nn.Dense(4, 4)), random.Random(11)
    good, bad = tmp_path / "good.ckpt", tmp_path / "bad.ckpt"
    ms.save_checkpoint(net, good, append_dict={"epoch": 3, "note": "first"})
    content = good.read_bytes()
    wanted = ms.load_checkpoint(good)
    for _ in range(300):
        mutant = bytearray(content)
        for _ in range(rng.randint(1, 3)):
            mutant[rng.randrange(len(mutant))] = rng.randrange(256)
        bad.write_bytes(mutant)
        try:
            found = ms.load_checkpoint(bad)
        except CheckpointError:
            continue
        assert list(found) == list(wanted)
        for name, value in wanted.items():
            same = (
                found[name] == value
                if isinstance(value, str)
                else (np.array_equal(found[name].asnumpy(), value.asnumpy()))
            )
            assert same, name


def test_mutated_modules_give_errors_of_the_project(
    signed: tuple[Path, Path, np.ndarray], tmp_path: Path
) -> None:
    path, public, _ = signed
    content, rng = path.read_bytes(), random.Random(12)
    end = content.index(b"PK\x03\x04", 4)  # the manifest is in front
    for i in range(150):
        mutant = bytearray(content)
        mutant[rng.randrange(end)] = rng.randrange(256)
        bad = tmp_path / f"bad{i}.tvm"
        bad.write_bytes(mutant)
        if mutant == content:
            continue
        try:
            ms.load(bad, public_key=public)
        except TvmgraphError:
            continue
