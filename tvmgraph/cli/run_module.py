"""``tvmgraph run`` and ``tvmgraph bench``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tvmgraph.errors import ArgumentError
from tvmgraph.runtime import Module, load


def run_module(path: str, inputs: list[str], output: str, threads: int | None) -> None:
    """Runs a module on ``.npy`` files; prints the results, or writes them to an ``.npz`` file."""
    module = load(path, threads)
    given, named = [], {}
    for text in inputs:
        name, _, file = text.rpartition("=")
        array = _array(file)
        if name:
            named[name] = array
        else:
            given.append(array)
    found = module(*given, **named)
    results = found if isinstance(found, tuple) else (found,)
    entries = module.manifest.outputs
    if output:
        np.savez(output, **{e.name: r for e, r in zip(entries, results)})  # pyright: ignore
        return
    for entry, result in zip(entries, results):
        print(f"{entry.name}: {entry}\n{result}")


def _array(file: str) -> np.ndarray:
    try:
        return np.load(file, allow_pickle=False)
    except (OSError, ValueError) as e:
        raise ArgumentError(
            f"{file} cannot be read: {e}", op="tvmgraph run", fix="give a file that np.save wrote"
        ) from None


def random_inputs(module: Module) -> list[np.ndarray]:
    """Returns inputs for a module: normal numbers, zeros for integers."""
    rng = np.random.default_rng(0)
    return [
        rng.standard_normal(e.shape).astype(e.dtype)
        if "float" in e.dtype
        else np.zeros(e.shape, e.dtype)
        for e in module.manifest.inputs
    ]


def bench_module(path: str, repeat: int, threads: int | None, onnx_file: str) -> None:
    """Times a module and prints a table; with an ONNX file, ONNX Runtime beside it."""
    console = Console()
    module = load(path, threads)
    args = random_inputs(module)
    table = Table("", "median", "best", "worst")
    calls: list[tuple[str, Any]] = [("tvmgraph", lambda: module(*args))]
    if onnx_file:
        calls.append(("onnxruntime", _onnxruntime(onnx_file, args, threads)))
    for name, call in calls:
        call()
        times = []
        for _ in track(range(repeat), name, console=console, transient=True):
            start = time.perf_counter()
            call()
            times.append((time.perf_counter() - start) * 1e3)
        row = (float(np.median(times)), min(times), max(times))
        table.add_row(name, *(f"{t:.3f} ms" for t in row))
    console.print(table)


def _onnxruntime(file: str, args: list[np.ndarray], threads: int | None) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise ArgumentError("onnxruntime is not installed", op="tvmgraph bench",
                            fix="pip install onnxruntime") from None  # fmt: skip
    if not Path(file).is_file():
        raise ArgumentError(f"there is no file {file}", op="tvmgraph bench", fix="check the path")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    feeds = {i.name: a for i, a in zip(session.get_inputs(), args)}
    return lambda: session.run(None, feeds)
