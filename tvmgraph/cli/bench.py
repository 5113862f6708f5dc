"""``tvmgraph bench``: a model compiled, beside other runtimes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tvmgraph import Tensor, dtypes, jit
from tvmgraph.capture import tree
from tvmgraph.cli.guard import users_code
from tvmgraph.cli.model_argument import example_inputs, find_config, find_model, parse_input
from tvmgraph.cli.options import print_json
from tvmgraph.cli.torch_peer import torch_call
from tvmgraph.errors import ArgumentError
from tvmgraph.machine.threads import configure_threads
from tvmgraph.nn import Cell
from tvmgraph.runtime import Module, load

Call = Callable[..., Sequence[np.ndarray]]
_BLOCK = 10  # calls of one contender in a row; a pause lets the workers of the last one sleep
_PAUSE = 0.02  # seconds


def bench_model(
    model: str,
    inputs: list[str],
    vs: str,
    config: str,
    repeat: int,
    threads: int | None,
    onnx_file: str,
    as_json: bool = False,
) -> None:
    """Times a model and prints a table.

    Args:
        model: A compiled module, or a model.
        inputs: Inputs as on the command line; a compiled module knows those of fixed size.
        vs: Other runtimes, separated by commas.
        config: Settings of the compiler; not for a compiled module.
        repeat: How many calls of each.
        threads: Workers, ``None`` for all cores.
        onnx_file: The model of a compiled module.
        as_json: Print JSON.

    Raises:
        ArgumentError: for an unknown runtime, or if something is missing.
    """
    others = [name.strip() for name in vs.split(",") if name.strip()]
    unknown = [name for name in others if name not in _PEERS]
    if unknown:
        raise _wrong(f"unknown runtime {unknown[0]!r}", f"--vs takes {', '.join(_PEERS)}")
    if model.endswith(".tvm"):
        if config:
            raise _wrong("a compiled module has settings of its own", "leave out --config")
        call, args, source = _module(model, inputs, threads, onnx_file, bool(others))
    else:
        call, args, source = _model(model, inputs, config, threads, bool(others))
    calls: list[tuple[str, Call]] = [("tvmgraph", call)]
    if source is not None:
        calls += [(name, _PEERS[name](source, threads)) for name in others]
    rows = _rows(calls, args, _times(calls, args, repeat))
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        _print(rows)


def _wrong(message: str, fix: str) -> ArgumentError:
    return ArgumentError(message, op="tvmgraph bench", fix=fix)


def _module(
    path: str, inputs: list[str], threads: int | None, onnx_file: str, compare: bool
) -> tuple[Call, list[np.ndarray], onnx.ModelProto | None]:
    module = load(path, threads)
    if compare and not onnx_file:
        raise _wrong("a compiled module does not hold its model",
                     "add --onnx model.onnx, or bench the model itself")  # fmt: skip
    args = _module_inputs(module, inputs)

    def call(*xs: np.ndarray) -> Sequence[np.ndarray]:
        found = module(*xs)
        return found if isinstance(found, tuple) else (found,)

    return call, args, _read(onnx_file) if compare else None


def _module_inputs(module: Module, texts: list[str]) -> list[np.ndarray]:
    """Returns random inputs: of the sizes on the command line, or of the manifest's."""
    if texts:
        return [_random(t.shape, t.dtype.numpy) for _, t in map(parse_input, texts)]
    entries = module.manifest.inputs
    if any(isinstance(d, str) for e in entries for d in e.shape):
        listed = ", ".join(f"{e.name}: {e}" for e in entries)
        raise _wrong(f"the module has inputs of variable size ({listed})",
                     "add --input name:1x3x224x224 for every input")  # fmt: skip
    return [_random(tuple(map(int, e.shape)), dtypes.dtype_of(e.dtype).numpy) for e in entries]


def _read(file: str) -> onnx.ModelProto:
    if not Path(file).is_file():
        raise _wrong(f"there is no file {file}", "check the path")
    try:
        return onnx.load(file)
    except Exception as e:  # protobuf raises many kinds
        raise _wrong(f"{file} is no ONNX model ({e})", "give the model it was made of") from None


def _model(
    text: str, inputs: list[str], config: str, threads: int | None, compare: bool
) -> tuple[Call, list[np.ndarray], onnx.ModelProto | None]:
    from tvmgraph.export.onnx_file import onnx_model

    configure_threads(threads)
    net, known, _ = find_model(text)
    if isinstance(net, Cell):
        net.set_train(False)
    given = example_inputs(net, inputs, known)
    tensors = [t for t in given if isinstance(t, Tensor)]
    if len(tensors) < len(given):
        raise _wrong("an argument of the model is no tensor", "name a function of tensors only")
    if not all(t.aval.is_static for t in tensors):
        raise _wrong("a size of an input is not a number", "give every input its sizes")
    args = [_random(t.shape, t.dtype.numpy) for t in tensors]
    compiled = jit(net, jit_config=find_config(config))

    def call(*xs: np.ndarray) -> Sequence[np.ndarray]:
        found = compiled(*[Tensor(x) for x in xs])
        return [t.asnumpy() for t in tree.tensors(found)]

    with Console(stderr=True).status("compiling"), users_code(text.rpartition(":")[0]):
        call(*args)
        return call, args, onnx_model(net, tuple(tensors)) if compare else None


def _random(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Returns normal numbers; zeros for integers, which may be indices."""
    if dtype.kind in "biu":
        return np.zeros(shape, dtype)
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def _onnxruntime(model: onnx.ModelProto, threads: int | None) -> Call:
    try:
        import onnxruntime
    except ImportError:
        raise _wrong("onnxruntime is not installed",
                     "pip install onnxruntime, or leave it out of --vs") from None  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [i.name for i in session.get_inputs()]
    return lambda *args: [np.asarray(y) for y in session.run(None, dict(zip(names, args)))]


_PEERS: dict[str, Callable[[onnx.ModelProto, int | None], Call]] = {
    "onnxruntime": _onnxruntime,
    "torch": torch_call,
}


def _times(
    calls: list[tuple[str, Call]], args: list[np.ndarray], repeat: int
) -> dict[str, list[float]]:
    """Returns milliseconds of every call; contenders take turns."""
    times: dict[str, list[float]] = {name: [] for name, _ in calls}
    for _, call in calls:
        call(*args)
    blocks = range(0, repeat, _BLOCK)
    for first in track(blocks, "timing", console=Console(stderr=True), transient=True):
        for name, call in calls:
            time.sleep(_PAUSE if len(calls) > 1 else 0)
            for _ in range(min(_BLOCK, repeat - first)):
                start = time.perf_counter()
                call(*args)
                times[name].append((time.perf_counter() - start) * 1e3)
    return times


@dataclass(frozen=True)
class _Row:
    """What was measured of one contender; times are milliseconds of a call."""

    name: str
    median_ms: float
    best_ms: float
    worst_ms: float
    calls: int
    ratio_to_tvmgraph: float
    largest_difference: float | None  # None for tvmgraph itself


def _rows(
    calls: list[tuple[str, Call]], args: list[np.ndarray], times: dict[str, list[float]]
) -> list[_Row]:
    """Milliseconds of every contender, and how far its results are from ours."""
    own = calls[0][1](*args)
    base = float(np.median(times["tvmgraph"]))
    rows = []
    for name, call in calls:
        median = float(np.median(times[name]))
        off = None if name == "tvmgraph" else _difference(own, call(*args))
        taken = times[name]
        rows.append(_Row(name, median, min(taken), max(taken), len(taken), median / base, off))
    return rows


def _print(rows: list[_Row]) -> None:
    table = Table("", "median", "best", "worst", "x tvmgraph", "largest difference")
    for row in rows:
        times = (f"{t:.3f} ms" for t in (row.median_ms, row.best_ms, row.worst_ms))
        off = row.largest_difference
        table.add_row(row.name, *times, f"{row.ratio_to_tvmgraph:.2f}",
                      "" if off is None else f"{off:.1e}")  # fmt: skip
    Console().print(table)


def _difference(own: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> float:
    """Returns the largest difference of any output, relative to its largest element."""
    worst = 0.0
    for a, b in zip(own, other):
        if a.size:
            a, b = a.astype(np.float64), np.asarray(b).astype(np.float64)
            worst = max(worst, float(np.max(np.abs(a - b)) / max(np.max(np.abs(a)), 1e-30)))
    return worst
