"""Graphs as files: their text, and their weights and constants as safetensors.

| member of the zip archive | content |
|---|---|
| ``format.json`` | name and version of the format |
| ``graph.txt`` | the graph's text; large constants stand among the parameters |
| ``tensors.safetensors`` | weights and large constants by label |

The text names operators of the table, so a file can be read as long as its operators exist. Loading
parses text and copies numbers; it runs nothing.
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import numpy as np

from tvmgraph import partial
from tvmgraph.core.sizes import Dim
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import LoadError, TvmgraphError
from tvmgraph.export.capture import Program
from tvmgraph.export.variable import given_inputs, variable_program
from tvmgraph.graph import Graph, Param, Role, check, parse
from tvmgraph.graph.sizes import with_sizes
from tvmgraph.nn import GraphCell
from tvmgraph.runtime.tensors import from_bytes, to_bytes

FORMAT = "tvmgraph-graph"
VERSION = 1
_MEMBERS = ("format.json", "graph.txt", "tensors.safetensors")
_CONSTANT = "constant:"  # labels of constants that are stored beside the text
_INLINE_ELEMENTS = 8  # the text writes out constants up to this size
_EPOCH = (1980, 1, 1, 0, 0, 0)


def save_graph(
    path: Path, net: object, args: tuple[object, ...] = (), *, training: bool = False
) -> None:
    """Writes a graph with its weights to one file.

    Args:
        path: Where to write.
        net: A network to capture, or a :class:`Program`.
        args: Example arguments.
        training: Whether to capture in training mode.

    Raises:
        ExportError: if the network cannot stand alone.
    """
    program, names = net, dict[str, str]()
    if not isinstance(program, Program):
        program, names = variable_program(net, given_inputs(net, args), None, training)
    graph = program.graph
    limits = program.limits(names)
    if names:
        graph = with_sizes(graph, {symbol: Dim(name) for symbol, name in names.items()})
    graph, constants = _without_constants(graph)
    members = (
        json.dumps({"format": FORMAT, "version": VERSION} | limits).encode(),
        graph.text(full=True).encode(),
        to_bytes({**program.parameters, **constants}),
    )
    with partial.replacing(path) as part, zipfile.ZipFile(part, "w") as archive:
        for name, data in zip(_MEMBERS, members):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)


def _without_constants(graph: Graph) -> tuple[Graph, dict[str, np.ndarray]]:
    """Turns large constants into parameters."""
    large = {v: a for v, a in graph.consts.items() if a.size > _INLINE_ELEMENTS}
    small = {v: a for v, a in graph.consts.items() if v not in large}
    moved = [Param(v, Role.PARAMETER, f"{_CONSTANT}{v.name}") for v in large]
    params = (*graph.params, *moved)
    plain = Graph(graph.name, params, small, graph.nodes, graph.outputs, graph.writes)
    return plain, {f"{_CONSTANT}{v.name}": a for v, a in large.items()}


def load_graph(path: str | os.PathLike[str]) -> GraphCell:
    """Reads a graph file.

    Args:
        path: The file.

    Returns:
        A :class:`GraphCell`: it runs eagerly, compiles, differentiates and exports.

    Raises:
        LoadError: if the file is damaged, or written by a newer version.
    """
    try:
        graph, arrays, limits = _read(Path(path))
        check(graph)
        for p in graph.parameters:
            array = arrays[p.label]
            if array.shape != p.value.type.shape or array.dtype != p.value.type.dtype.numpy:
                raise LoadError(f"the weight {p.label} does not fit the graph")
        weights = {p.label: Tensor(arrays[p.label]) for p in graph.parameters}
        return GraphCell(graph, weights, *limits)
    except TvmgraphError as e:
        raise LoadError(e.message, op="load_graph", got=str(path), fix=e.fix) from e
    except Exception as e:  # zipfile, the parser of Python literals and NumPy raise many kinds
        why = f"it is no graph file, or it is damaged ({type(e).__name__}: {e})"
        raise LoadError(why, op="load_graph", got=str(path), fix="save the graph again") from e


def _read(path: Path) -> tuple[Graph, dict[str, np.ndarray], list[dict[str, int]]]:
    if not path.is_file():
        raise LoadError("there is no such file", fix="check the path")
    with zipfile.ZipFile(path) as archive:
        if any(i.compress_type != zipfile.ZIP_STORED for i in archive.infolist()):
            raise LoadError("its members are compressed, which this format does not allow")
        facts = json.loads(archive.read(_MEMBERS[0]))
        if facts.get("format") != FORMAT:
            raise LoadError("it is no graph file")
        if facts.get("version") != VERSION:
            raise LoadError(
                f"its format is version {facts.get('version')!r}, this package reads {VERSION}",
                fix="install the newer version of tvmgraph",
            )
        graph = parse(archive.read(_MEMBERS[1]).decode())
        arrays = from_bytes(archive.read(_MEMBERS[2]))
    constants = [p for p in graph.params if p.label.startswith(_CONSTANT)]
    consts = {**graph.consts, **{p.value: arrays[p.label] for p in constants}}
    params = tuple(p for p in graph.params if not p.label.startswith(_CONSTANT))
    limits = [
        {str(name): int(size) for name, size in facts.get(key, {}).items()}
        for key in ("least", "most")
    ]
    return (
        Graph(graph.name, params, consts, graph.nodes, graph.outputs, graph.writes),
        arrays,
        limits,
    )
