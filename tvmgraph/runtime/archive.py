"""The file of a compiled module: a zip archive with a manifest that is data and nothing else.

| member | content |
|---|---|
| ``manifest.json`` | names, shapes and dtypes; target; versions; size and digest of the others |
| ``model.so`` | the shared library (``model.tar``, objects to link, when cross-compiled) |
| ``parameters.safetensors`` | the weights |
| ``device.fatbin`` | machine code for a GPU, if the module is for one |

Members are stored uncompressed, so that nothing can expand beyond the size of the file, and begin
at aligned places, so that the file is mapped into memory instead of being read: weights are used
where they lie, and processes share them. Do not write into a file that is in use; writing a new one
in its place, as export does, is safe.

A digest is the SHA-256 of the SHA-256s of all chunks of :data:`CHUNK` bytes, which are taken side
by side. It does not tell who made a file: whoever changes one on purpose can change it, too.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import string
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph import partial
from tvmgraph.errors import ArgumentError, LoadError, NotFoundError
from tvmgraph.runtime import trust
from tvmgraph.runtime.tensors import ALIGNMENT, aligned_bytes, mapped_bytes
from tvmgraph.runtime.trust import Key

FORMAT = "tvmgraph-module"
VERSION = 4
MANIFEST = "manifest.json"
LIBRARY = "model.so"
OBJECTS = "model.tar"
PARAMETERS = "parameters.safetensors"
DEVICE_CODE = "device.fatbin"
CHUNK = 4 << 20
_MANIFEST_BYTES = 16 << 20
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # ..., lengths of the name and of the extra field
_LOCAL_SIGNATURE = b"PK\x03\x04"
_EXTRA_HEADER = struct.Struct("<HH")  # kind and length of an extra field
_PADDING = 0xD935  # the kind that says "for alignment"
_SIZE_LENGTH = 200
_SIZE_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_ +-*/%()")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # equal contents give equal files


@dataclass(frozen=True)
class Entry:
    """One tensor at the border of a module.

    Attributes:
        name: Its name.
        shape: Its sizes; a name, or an expression of names, where a size varies.
        dtype: Name of the element type.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Manifest:
    """What a compiled module says about itself.

    Attributes:
        name: Name of the network.
        inputs: Tensors of a call, in order.
        parameters: Weights, in the order in which the code takes them after the inputs.
        outputs: Results, in order.
        order: For every argument of the code ``"input"`` or ``"parameter"``.
        written: For every result of the code after the outputs, the number of the parameter that
            has this value in the next call.
        copied: Numbers of the results that must be copied before they are handed out or kept.
        target: ``arch``, ``system``, ``features`` and ``name`` of the processor compiled for; for
            a GPU also ``device``, with its architecture and what its code holds.
        versions: Versions of the packages that made the file.
        options: How it was compiled.
        files: Size and digest of the other members.
    """

    name: str
    inputs: tuple[Entry, ...]
    parameters: tuple[Entry, ...]
    outputs: tuple[Entry, ...]
    order: tuple[str, ...]
    written: tuple[int, ...]
    copied: tuple[int, ...]
    target: dict[str, Any]
    versions: dict[str, str]
    options: dict[str, Any]
    files: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def least(self) -> dict[str, int]:
        """The smallest size of an axis that the code takes, by name, where that is not 1."""
        return self.options.get("least", {})

    @property
    def most(self) -> dict[str, int]:
        """The largest size of an axis that the code takes, by name, where there is one."""
        return self.options.get("most", {})

    def beyond(self, sizes: Mapping[str, int]) -> str:
        """Returns what a size breaks, as ``"n must be at least 2, not 1"``, or nothing.

        Args:
            sizes: Sizes of axes by name.
        """
        for name, size in sizes.items():
            if size < self.least.get(name, size):
                return f"{name} must be at least {self.least[name]}, not {size}"
            if size > self.most.get(name, size):
                return f"{name} must be at most {self.most[name]}, not {size}"
        return ""


def write(
    path: Path, manifest: Manifest, members: Mapping[str, bytes], sign: Key | None = None
) -> None:
    """Writes a module file; an interrupted write leaves the old file, or none.

    Args:
        path: Where.
        manifest: What it says about itself.
        members: The content of the other members by name.
        sign: A private key that signs all of it.
    """
    described = {
        name: {"size": len(data), "digest": digest(data)} for name, data in members.items()
    }
    facts = {"format": FORMAT, "version": VERSION, **asdict(manifest), "files": described}
    content = _content(facts)
    facts["digest"] = digest(content)
    if sign is not None:
        facts["signature"] = trust.sign(content, sign)
    text = json.dumps(facts, indent=1, sort_keys=True).encode()
    with (
        partial.replacing(path) as part,
        open(part, "wb") as stream,
        zipfile.ZipFile(stream, "w") as archive,
    ):
        for name, data in {MANIFEST: text, **members}.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            header = zipfile.sizeFileHeader  # pyright: ignore[reportAttributeAccessIssue] - typeshed has it not
            info.extra = _padding(stream.tell() + header + len(name))
            archive.writestr(info, data)


def _content(facts: dict[str, Any]) -> bytes:
    """What the digest and the signature of a manifest are of; the members by their digests."""
    plain = {k: v for k, v in facts.items() if k not in ("digest", "signature")}
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def digest(data: bytes | np.ndarray) -> str:
    """Returns the digest of the content of a member.

    Args:
        data: Bytes, or ``uint8[size]``.
    """
    view = memoryview(data)
    chunks = [view[i : i + CHUNK] for i in range(0, len(view), CHUNK)]
    if len(chunks) < 2:
        found = [hashlib.sha256(chunk).digest() for chunk in chunks]
    else:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(os.cpu_count()) as pool:  # hashing lets go of Python's lock
            found = list(pool.map(lambda chunk: hashlib.sha256(chunk).digest(), chunks))
    return hashlib.sha256(b"".join(found)).hexdigest()


def _padding(start: int) -> bytes:
    """An extra field, after which the content of a member begins at an aligned place."""
    length = -(start + _EXTRA_HEADER.size) % ALIGNMENT
    return _EXTRA_HEADER.pack(_PADDING, length) + bytes(length)


class Archive:
    """An open module file whose manifest was checked.

    Args:
        path: The file.
        public_key: The key that must have signed it; ``None`` not to ask.

    Raises:
        LoadError: if it is no module file, is damaged, was made by a newer version, or is not
            signed as wanted.
    """

    def __init__(self, path: str | os.PathLike[str], public_key: Key | None = None) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise self.fail("there is no such file", "check the path")
        try:
            self._zip = zipfile.ZipFile(self.path)
            text = self._zip.read(self._info(MANIFEST, _MANIFEST_BYTES))
            self.manifest = _parse(text, public_key)
        except (ArgumentError, NotFoundError):  # of the key
            raise
        except LoadError as e:
            raise self.fail(e.message, e.fix or "export the network again") from None
        except Exception as e:  # zipfile raises many kinds for damaged archives
            why = "it is no compiled module, or it is truncated"
            raise self.fail(f"{why} ({e})", "export the network again") from None

    def fail(self, why: str, fix: str) -> LoadError:
        """Returns an error about this file.

        Args:
            why: What is wrong with it.
            fix: What to do about it.
        """
        return LoadError(why, op="runtime.load", got=str(self.path), fix=fix)

    def member(self, name: str) -> np.ndarray:
        """Returns the content of a member, ``uint8[size]``, after checking its size and digest.

        It is memory of the file, aligned for vector code, so that weights in it need no copy.

        Args:
            name: The member's name.

        Raises:
            LoadError: if it is missing or was changed.
        """
        facts = self.manifest.files.get(name)
        if facts is None:
            raise self.fail(f"it has no {name}", "export the network again")
        try:
            data = self._load(name, facts["size"])
        except Exception as e:  # zipfile raises many kinds
            raise self.fail(f"{name} cannot be read ({e})", "export the network again") from None
        if data.size != facts["size"] or digest(data) != facts["digest"]:
            raise self.fail(f"{name} was changed since it was written", "export the network again")
        return data

    def _info(self, name: str, limit: int) -> zipfile.ZipInfo:
        info = self._zip.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size > limit:
            raise LoadError(f"{name} is larger than it may be")
        if info.file_size > self.path.stat().st_size:
            raise LoadError(f"{name} is longer than the file")
        return info

    def _load(self, name: str, limit: int) -> np.ndarray:
        """Finds a member in the file without the copies and the checksum of ``zipfile``."""
        start = self._info(name, limit).header_offset
        header = self._bytes[start : start + _LOCAL_HEADER.size].tobytes()
        signature, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
        if signature != _LOCAL_SIGNATURE:
            raise LoadError("its directory is damaged")
        start += _LOCAL_HEADER.size + name_bytes + extra_bytes
        data = self._bytes[start : start + limit]
        if not start % ALIGNMENT:
            return data
        moved = aligned_bytes(data.size)  # repacked by another program
        moved[:] = data
        return moved

    @functools.cached_property
    def _bytes(self) -> np.ndarray:
        return mapped_bytes(self.path)

    def close(self) -> None:
        """Closes the file."""
        self._zip.close()


def _parse(data: bytes, public_key: Key | None) -> Manifest:
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        raise LoadError("its manifest is no JSON") from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise LoadError("it is no compiled module")
    if facts.get("version") != VERSION:
        raise LoadError(
            f"its format is version {facts.get('version')!r}, this runtime reads {VERSION}",
            fix="export it again with this version of tvmgraph, or install the newer one",
        )
    content = _content(facts)
    if facts.get("digest") != digest(content):
        raise LoadError("its manifest was changed since it was written")
    if public_key is not None:
        trust.verify(content, facts.get("signature"), public_key)
    try:
        return _checked({f.name: facts[f.name] for f in fields(Manifest)})
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise LoadError(f"its manifest is incomplete: {e}") from None


def _checked(facts: dict[str, Any]) -> Manifest:
    """Builds a manifest from JSON values, looking at the type of every one."""
    for key in ("inputs", "parameters", "outputs"):
        facts[key] = tuple(_entry(e) for e in _typed(facts[key], list))
    facts["order"] = tuple(_typed(o, str) for o in _typed(facts["order"], list))
    for key in ("written", "copied"):
        facts[key] = tuple(_natural(i) for i in _typed(facts[key], list))
    if any(i >= len(facts["parameters"]) for i in facts["written"]):
        raise ValueError("a parameter that is written does not exist")
    expected = {"input": len(facts["inputs"]), "parameter": len(facts["parameters"])}
    if any(facts["order"].count(k) != n for k, n in expected.items()):
        raise ValueError("order does not fit inputs and parameters")
    _typed(facts["name"], str)
    for key in ("target", "versions", "options", "files"):
        _typed(facts[key], dict)
    for key in ("arch", "system"):
        _typed(facts["target"][key], str)
    for feature in _typed(facts["target"]["features"], list):
        _typed(feature, str)
    for key in ("least", "most"):
        for size in _typed(facts["options"].get(key, {}), dict).values():
            _natural(size)
    for described in facts["files"].values():
        _natural(_typed(described, dict)["size"])
        _typed(described["digest"], str)
    return Manifest(**facts)


def _entry(value: Any) -> Entry:
    shape = tuple(_size(d) for d in _typed(value["shape"], list))
    return Entry(_typed(value["name"], str), shape, _typed(value["dtype"], str))


def _typed(value: object, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{kind.__name__} expected, not {str(value)[:40]!r}")
    return value


def _size(value: Any) -> int | str:
    if type(value) is not str:
        return _natural(value)
    if not value or len(value) > _SIZE_LENGTH or not set(value) <= _SIZE_CHARACTERS:
        raise ValueError(f"{value[:40]!r} is no size")
    return value


def _natural(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{str(value)[:40]!r} is no size")
    return value
