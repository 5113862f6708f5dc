"""Prepares the check on a GPU: ``python -m benchmarks.gpu_bundle bundle.tar``.

Everything is compiled here, without a GPU. The bundle holds the modules, recipes of their inputs,
expected outputs, and the small runtime for the Python of the machine with the GPU, which needs
neither a network nor TVM; ``benchmarks/gpu.sh`` runs it there.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.gpu_cases import ROWS, Item, item_of, operator_items
from benchmarks.gpu_inputs import some, to_storable
from tvmgraph.config import JitConfig
from tvmgraph.errors import TvmgraphError
from tvmgraph.export.bundle import write_bundle
from tvmgraph.export.module import save_module
from tvmgraph.runtime import cuda, host
from tvmgraph.testing.samples import Case, all_cases

_HERE = Path(__file__).parent
_RUN_SIDE = ("gpu_run.py", "gpu_item.py", "gpu_peers.py", "gpu_training.py", "gpu_inputs.py")
_LIMIT = 60 << 20


def write_item(item: Item, folder: Path, target: str) -> dict[str, Any]:
    """Compiles an item into a folder; returns its entry in the list of items."""
    config = JitConfig(exec_mode="sink" if item.timed else "auto")
    path = folder / f"{item.name}.tvm"
    save_module(path, item.program, (), target=target, jit_config=config)
    kept = [(i, r) for i, r in enumerate(item.inputs) if r.kind == "values"]
    arrays = {f"in{i}": to_storable(r.make()) for i, r in kept}
    for i, array in enumerate(item.expected or ()):
        arrays[f"out{i}"] = to_storable(some(array))
    np.savez_compressed(folder / f"{item.name}.npz", **arrays)  # pyright: ignore[reportArgumentType]
    return {
        "name": item.name, "inputs": [r.as_json() for r in item.inputs],
        "labels": list(item.labels),
        "outputs": list(item.outputs), "rtol": list(item.rtol), "timed": item.timed,
        "expected": [a.dtype.name for a in item.expected or ()],
        "flops": item.flops, "bytes": item.bytes,
    }  # fmt: skip


def write_operators(
    folder: Path, target: str, samples: int, size: int
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Compiles the operator table; returns the entries, and the operators that do not compile."""
    entries: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    cases = {c.name: c for c in all_cases()}
    waiting = list(operator_items(samples, size))
    while waiting:
        item = waiting.pop(0)
        try:
            entries.append(write_item(item, folder, target))
            print(f"{item.name}: {len(item.outputs)} outputs", flush=True)
        except TvmgraphError as e:
            names = list(dict.fromkeys(n.rsplit(".", 1)[0] for n in item.outputs))
            if len(names) == 1:
                failed[names[0]] = str(e)
                print(f"{names[0]}: {str(e).splitlines()[0]}", flush=True)
            else:
                waiting += _halves(item.name, [cases[n] for n in names])
    return entries, failed


def _halves(name: str, cases: list[Case]) -> list[Item]:
    middle = len(cases) // 2
    return [item_of(f"{name}a", cases[:middle]), item_of(f"{name}b", cases[middle:])]


def add_runtime(folder: Path, python: str) -> None:
    """Puts the small runtime there, with the extension modules of another Python.

    Args:
        folder: Where to.
        python: Version of the other machine's Python, such as ``"3.12"``.
    """
    write_bundle(folder)
    shutil.copytree(Path(host.__file__).parents[1] / "configs", folder / "tvmgraph" / "configs")
    for place in cuda.runtime_folders():  # where no CUDA is installed, the driver alone will do
        if (place / cuda.RUNTIME).exists():
            shutil.copy(place / cuda.RUNTIME, folder / "tvmgraph" / "runtime" / "lib")
            break
    if python == f"{sys.version_info.major}.{sys.version_info.minor}":
        return
    for package in ("apache-tvm-ffi", "ml-dtypes", "safetensors"):
        wanted = f"{package}=={importlib.metadata.version(package)}"
        with tempfile.TemporaryDirectory() as wheels:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", wheels]
            only = ["--python-version", python, "--only-binary=:all:", wanted]
            subprocess.run([*command, *only], check=True)
            _unpack(next(Path(wheels).glob("*.whl")), folder)


def _unpack(wheel: Path, folder: Path) -> None:
    """Replaces the compiled extensions of a package by those of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".so") and "/" in name:
                for old in (folder / name).parent.glob(f"{Path(name).name.split('.')[0]}.*.so"):
                    old.unlink()
                archive.extract(name, folder)


def main(
    path: Annotated[Path, typer.Argument(help="The tar file to write.")],
    target: Annotated[str, typer.Option(help="A GPU of configs/targets.toml.")] = "sm_90a",
    samples: Annotated[int, typer.Option(help="Samples of each operator.")] = 2,
    size: Annotated[int, typer.Option(help="Operators of one module.")] = 24,
    python: Annotated[str, typer.Option(help="The other machine's Python.")] = "3.12",
    only: Annotated[str, typer.Option(help="Rows to take, by name; 'none' for none.")] = "",
) -> None:
    """Writes the bundle."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        items = root / "items"
        items.mkdir()
        entries, failed = write_operators(items, target, samples, size) if samples else ([], {})
        chosen = [n for n in ROWS.makers if not only or n in only.split(",")]
        for row in chosen:
            try:
                entries.append(write_item(ROWS.makers[row](), items, target))
                print(f"{row}: compiled", flush=True)
            except TvmgraphError as e:
                failed[row] = str(e)
                print(f"{row}: {e}", flush=True)
        found = {"items": entries, "failed": failed, "python": python}
        (root / "items.json").write_text(json.dumps(found))
        add_runtime(root / "runtime", python)
        for file in _RUN_SIDE:
            shutil.copy(_HERE / file, root / file)
        _pack(root, path)
    print(f"{path}: {path.stat().st_size / 2**20:.1f} MiB, {len(failed)} not compiled")
    if path.stat().st_size > _LIMIT:
        raise typer.Exit(1)


def _pack(root: Path, path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=5) as archive:
        archive.add(root, arcname="gpu-check")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(buffer.getvalue())
    part.replace(path)


if __name__ == "__main__":
    typer.run(main)
