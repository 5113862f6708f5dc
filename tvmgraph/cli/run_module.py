"""``tvmgraph run``."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from tvmgraph import partial
from tvmgraph.cli.options import print_json
from tvmgraph.errors import ArgumentError
from tvmgraph.runtime import load


def run_module(
    path: str, inputs: list[str], output: str, threads: int | None, as_json: bool = False
) -> None:
    """Runs a module on ``.npy`` files; prints the results, or writes them to an ``.npz`` file.

    Args:
        path: The module.
        inputs: ``x.npy`` in order, or ``name:x.npy`` (``name=x.npy``).
        output: The file to write; empty to print.
        threads: Workers, ``None`` for all cores.
        as_json: Print the results as JSON.

    Raises:
        ArgumentError: if a file cannot be read, or an input is missing.
    """
    module = load(path, threads)
    names = [e.name for e in module.manifest.inputs]
    given, named = [], {}
    for text in inputs:
        name = next((n for n in names if text.startswith((f"{n}:", f"{n}="))), "")
        array = _array(text[len(name) + 1 :] if name else text, names)
        if not name:
            given.append(array)
        elif name in named:
            raise ArgumentError(f"input {name!r} is given twice", op="tvmgraph run",
                                fix="give every input once")  # fmt: skip
        else:
            named[name] = array
    found = module(*given, **named)
    results = found if isinstance(found, tuple) else (found,)
    entries = module.manifest.outputs
    if output:
        _save(Path(output), {e.name: r for e, r in zip(entries, results)})
        return
    if as_json:
        print_json(
            {e.name: {"type": str(e), "value": _values(r)} for e, r in zip(entries, results)}
        )
        return
    for entry, result in zip(entries, results):
        print(f"{entry.name}: {entry}\n{result}")


def _values(array: np.ndarray) -> object:
    """Elements as nested lists; what JSON has no number for is ``None``."""
    if array.dtype.kind in "biu":
        return array.tolist()
    if array.dtype.kind == "c":
        return [_values(np.real(array)), _values(np.imag(array))]
    wide = array.astype(np.float64)
    found = np.array(wide, dtype=object)
    found[~np.isfinite(wide)] = None
    return found.tolist()


def _array(file: str, names: list[str]) -> np.ndarray:
    try:
        found = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as e:
        raise ArgumentError(
            f"{file} cannot be read: {e}", op="tvmgraph run",
            fix=f"give a file that np.save wrote; the inputs are {', '.join(names)}",
        ) from None  # fmt: skip
    if not isinstance(found, np.ndarray):
        arrays = ", ".join(found.files)
        found.close()
        raise ArgumentError(f"{file} holds several arrays ({arrays})", op="tvmgraph run",
                            fix="give one .npy file per input")  # fmt: skip
    return found


def _save(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Writes an ``.npz`` file; an interrupted write leaves the old one, or none."""
    with partial.replacing(path) as part, open(part, "wb") as stream:
        np.savez(stream, **arrays)  # pyright: ignore[reportArgumentType]
