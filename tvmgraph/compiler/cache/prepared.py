"""Prepared weights on disk: a second process maps them into memory instead of computing them.

What a frozen graph computes from its weights follows from the graph, the processor whose kernels
read it and the elements of the weights, so a digest of all names the file that keeps the results.
Taking the digest reads the
weights once; computing the results reads them, too, and writes as many bytes or more into memory
that the system has to provide first, which takes ten times as long.

Files are verified when they are mapped. The digest (XXH3, 128 bits) finds every accident, and is as
fast as memory; it is no protection against somebody who may write to the folder, as that person
could change the executables in it, too.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import xxhash

from tvmgraph.compiler.cache import disk
from tvmgraph.core.types import TensorType
from tvmgraph.machine.processor import CpuModel
from tvmgraph.passes.freeze import Frozen
from tvmgraph.runtime.store import WEIGHTS, Store
from tvmgraph.runtime.tensors import ALIGNMENT, mapped_bytes

#: Results of fewer bytes are computed sooner than looked up.
_LEAST = 4 << 20
#: Results that would take more than this share of the cache are not kept.
_SHARE = 2


def prepare(frozen: Frozen, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns what a frozen graph prepares, from the disk if it is there.

    Args:
        frozen: The graph in two halves.
        arrays: Its sources, as :meth:`Frozen.prepare` takes them.

    Returns:
        Arrays that compiled code may read.
    """
    types = [v.type for v in frozen.prepared]
    size = _offsets(types)[-1]
    if size < _LEAST or disk.why_not() is not None or size * _SHARE > disk.limit():
        return frozen.prepare(arrays)
    store = Store(disk.folder(), disk.limit(), WEIGHTS)
    key = _key(frozen, arrays)
    found = _load(store, key, types)
    if found is None:
        found = frozen.prepare(arrays)
        threading.Thread(target=_save, args=(store, key, found, types)).start()
    return found


def _key(frozen: Frozen, arrays: Sequence[np.ndarray]) -> str:
    kind = f"prepared weights for {_text(frozen.model)}"
    digest = xxhash.xxh3_128(disk.key_of(frozen.origin, kind).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    return digest.hexdigest()


def _text(model: CpuModel | None) -> str:
    """A processor's numbers, in the same words in every process; None is a GPU."""
    if model is None:
        return "a GPU"
    values = ((f.name, getattr(model, f.name)) for f in fields(model))
    return str([(name, sorted(v) if isinstance(v, frozenset) else v) for name, v in values])


def _offsets(types: Sequence[TensorType]) -> list[int]:
    """Where every array begins in the file, and where the digest does."""
    offsets = [0]
    for t in types:
        size = math.prod(t.static_shape) * t.dtype.numpy.itemsize
        offsets.append(offsets[-1] + -(-size // ALIGNMENT) * ALIGNMENT)
    return offsets


def _load(store: Store, key: str, types: Sequence[TensorType]) -> list[np.ndarray] | None:
    path = store.find(key)
    if path is None:
        return None
    offsets = _offsets(types)
    try:
        raw = mapped_bytes(path)
    except (OSError, ValueError):
        store.discard(key)
        return None
    end = offsets[-1]
    if raw[end:].tobytes() != disk.digest_of(raw[:end], key):
        store.discard(key)
        return None
    return [_view(raw[start:], t) for start, t in zip(offsets, types)]


def _view(raw: np.ndarray, t: TensorType) -> np.ndarray:
    kind = t.dtype.numpy
    return raw[: math.prod(t.static_shape) * kind.itemsize].view(kind).reshape(t.static_shape)


def _save(
    store: Store, key: str, arrays: Sequence[np.ndarray], types: Sequence[TensorType]
) -> None:
    """Writes the arrays; a disk that is full or read-only is no reason to complain."""
    with contextlib.suppress(OSError), store.workspace() as folder:
        path = Path(folder) / "weights"
        with path.open("wb") as file:
            for array, end in zip(arrays, _offsets(types)[1:]):
                file.write(memoryview(array.reshape(-1).view(np.uint8)))
                file.write(bytes(end - file.tell()))
        digest = disk.digest_of(mapped_bytes(path), key)
        with path.open("ab") as file:
            file.write(digest)
        store.put(key, path)
