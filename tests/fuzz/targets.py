"""What a fuzzer calls: functions of bytes that may only raise this package's own errors."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import tvmgraph as ms
from tvmgraph import Tensor, nn
from tvmgraph.cli.model_argument import example_inputs
from tvmgraph.cli.ship import axes_of
from tvmgraph.errors import TvmgraphError
from tvmgraph.export.graph_file import load_graph
from tvmgraph.graph import check, parse
from tvmgraph.runtime import load
from tvmgraph.runtime.tensors import BadTensors, views

_MOST_ELEMENTS = 1000  # of an input that a loaded model is called with


def onnx_model(data: bytes) -> None:
    """Imports a model, and calls it if its inputs are small, also compiled."""
    try:
        model = onnx.load_model_from_string(data)
    except Exception:  # protobuf's business
        return
    try:
        net = ms.onnx.load(model)
        args = [_input(model, name) for name in net.input_names]
        if all(a is not None for a in args):
            net(*args)
            ms.jit(net)(*args)
    except TvmgraphError:
        pass


def _input(model: onnx.ModelProto, name: str) -> Tensor | None:
    kind = next(v.type.tensor_type for v in model.graph.input if v.name == name)
    shape = [d.dim_value for d in kind.shape.dim]
    if kind.elem_type != onnx.TensorProto.FLOAT or not 0 < np.prod(shape) <= _MOST_ELEMENTS:
        return None
    return Tensor(np.ones(shape, np.float32))


@contextlib.contextmanager
def _file(data: bytes, suffix: str) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile(suffix=suffix) as stream:
        stream.write(data)
        stream.flush()
        yield Path(stream.name)


def module(data: bytes) -> None:
    """Loads a compiled module."""
    with _file(data, ".tvm") as path, contextlib.suppress(TvmgraphError):
        load(path)


def graph_file(data: bytes) -> None:
    """Loads a graph file."""
    with _file(data, ".graph") as path, contextlib.suppress(TvmgraphError):
        load_graph(path)


def graph_text(data: bytes) -> None:
    """Parses a graph; what parses and is correct is printed and parsed again."""
    try:
        graph = parse(data.decode(errors="replace"))
        check(graph)
    except TvmgraphError:
        return
    text = graph.text(full=True)
    assert parse(text).text(full=True) == text


def tensors(data: bytes) -> None:
    """Reads safetensors."""
    with contextlib.suppress(BadTensors):
        for array in views(np.frombuffer(data, np.uint8)).values():
            array.tobytes()


def command_line(data: bytes) -> None:
    """Reads inputs and axes as they are written on the command line."""
    text = data.decode(errors="replace")
    if re.search(r"\d{4}", text):  # as much memory as was asked for
        return
    with contextlib.suppress(TvmgraphError):
        example_inputs(None, [text])
    with contextlib.suppress(TvmgraphError):
        axes_of([text])


def _onnx_seeds() -> list[bytes]:
    from tests.export.onnx_node_tests import cases

    return [c.model.SerializeToString() for c in cases()[::25]]


def _exported(file_format: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        x = Tensor(np.ones((2, 3), np.float32))
        net = nn.SequentialCell(nn.Dense(3, 2), nn.ReLU())
        path = ms.export(net, x, file_name=Path(folder) / "net", file_format=file_format)
        return path.read_bytes()


def _texts() -> list[bytes]:
    from tvmgraph.testing.samples import all_cases

    return [c.graph().text(full=True).encode() for c in list(all_cases())[::100]]


def _tensor_seeds() -> list[bytes]:
    from tvmgraph.runtime.tensors import to_bytes

    return [to_bytes({"a": np.ones((2, 3), np.float32), "b": np.zeros(0, np.int8)})]


#: Targets by name, with what their fuzzing starts from.
TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], list[bytes]]]] = {
    "onnx": (onnx_model, _onnx_seeds),
    "module": (module, lambda: [_exported("TVM")]),
    "graph-file": (graph_file, lambda: [_exported("GRAPH")]),
    "graph-text": (graph_text, _texts),
    "tensors": (tensors, _tensor_seeds),
    "command-line": (command_line, lambda: [b"x:1x3x224x224", b"x:8:int32", b"x:0=batch"]),
}


def target(name: str) -> Any:
    """Returns the function of a target."""
    return TARGETS[name][0]
