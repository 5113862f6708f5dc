"""MindSpore's MINDIR files as plain functions, nodes and arrays.

A file is one protobuf message. Its graph and its functions are lists of nodes in an order in which
they can run; a node calls an operator (``REF::`` and the number of a primitive of the file), a
function, or a value that is a function. Side effects are ordered by values of no content
(``UMONAD``), which calls give and take. A constant is a node of the operator ``Constant``.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph import dtypes, partial
from tvmgraph.core.arguments import PathLike
from tvmgraph.core.protobuf import message_classes
from tvmgraph.errors import DTypeError, LoadError, either, reject

_DECLARATION = Path(__file__).with_name("mindir.proto").read_text()
_DTYPES = (
    "", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "", "bool", "float16",
    "float64", "uint32", "uint64", "complex64", "complex128", "bfloat16", "float64",
)  # fmt: skip
_STRING, _BOOL, _TENSOR, _TENSORS, _TUPLE, _LIST, _DICT = 8, 9, 17, 19, 20, 21, 22
_MONADS, _NOTHING = (23, 24), (25, 36)


class Monad:
    """The value without content that orders side effects."""


@dataclasses.dataclass(frozen=True)
class Node:
    """One call: an operator's name and attributes, or the name of a function."""

    op: str
    attrs: tuple[tuple[str, object], ...]
    inputs: tuple[str, ...]
    output: str
    scope: str


@dataclasses.dataclass(frozen=True)
class Function:
    """Nodes in the order of their calls."""

    inputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    is_loop: bool


@dataclasses.dataclass(frozen=True)
class Program:
    """What a file holds: functions by name, constants and weights by the names nodes use."""

    main: str
    functions: dict[str, Function]
    constants: dict[str, object]
    weights: dict[str, tuple[str, np.ndarray]]  # name -> the parameter's name and its value
    examples: tuple[object, ...]


def load_mindir(file_name: PathLike) -> Any:
    """Reads a MINDIR file as MindSpore's message ``ModelProto``.

    Args:
        file_name: The file.

    Returns:
        The message; ``ms.load`` makes a Cell of the file.

    Raises:
        LoadError: if there is no such file, it is encrypted, or it is damaged.
    """
    path = Path(file_name)
    if not path.is_file():
        reject(either(LoadError, ValueError), "load_mindir", "there is no such file", str(path),
               "check the path")  # fmt: skip
    try:
        model = message_classes(_DECLARATION)["ModelProto"].FromString(path.read_bytes())
    except Exception as e:  # protobuf's own class of errors
        model, why = None, e
    else:
        why = "it holds no graph"
    if model is None or not model.HasField("graph"):
        reject(LoadError, "load_mindir",
               f"it is no MINDIR file, or it is encrypted or damaged ({why})", str(path),
               "export it again; without enc_key, as encrypted files are not read")  # fmt: skip
    return model


def save_mindir(model: Any, file_name: PathLike) -> None:
    """Writes what :func:`load_mindir` read.

    Args:
        model: The message.
        file_name: Where to; ``.mindir`` is added if it is missing.

    Raises:
        DTypeError: if ``model`` is no such message.
    """
    if not isinstance(model, message_classes(_DECLARATION)["ModelProto"]):
        raise DTypeError(f"model must be what load_mindir returns, not {type(model).__name__}",
                         op="save_mindir")  # fmt: skip
    path = Path(file_name)
    path = path if path.suffix == ".mindir" else path.with_name(path.name + ".mindir")
    with partial.replacing(path) as part:
        part.write_bytes(model.SerializeToString())


def read(path: Path) -> Program:
    """Reads a file, and the folder with its weights if there is one.

    Args:
        path: The ``.mindir`` file.

    Raises:
        LoadError: see :func:`load_mindir`; or if weights are missing.
    """
    model = load_mindir(path)
    if not model.little_endian and model.HasField("little_endian"):
        raise LoadError("it was written by a big-endian machine", op="load", got=str(path))
    primitives = {
        p.name: (p.op_type or p.name, tuple((a.name, value_of(a)) for a in p.attribute))
        for p in model.primitives
    }
    functions, constants = {}, {}
    for graph in (model.graph, *model.functions):
        functions[graph.name] = _function(graph, primitives, constants)
    weights = {}
    for proto in model.graph.parameter:
        label = proto.ref_key or proto.name.partition(":")[2] or proto.name
        weights[proto.name] = label, _weight(proto, label, path.parent)
    examples = tuple(_example(v) for v in model.graph.input)
    return Program(model.graph.name, functions, constants, weights, examples)


def _function(graph: Any, primitives: dict[str, Any], constants: dict[str, object]) -> Function:
    nodes = []
    for node in graph.node:
        attrs = {a.name: a for a in node.attribute}
        if node.op_type == "Constant":
            constants[node.output[0]] = value_of(attrs["value"])
            continue
        name = node.op_type.removeprefix("REF::")
        own = tuple((k, value_of(a)) for k, a in attrs.items() if k not in ("shape", "output"))
        op, given = primitives.get(name, (name, own))
        nodes.append(Node(op, given, tuple(node.input), node.output[0], node.domain))
    return Function(
        tuple(v.name for v in graph.input), tuple(nodes), tuple(v.name for v in graph.output),
        any(a.name == "is_while_header" and a.i for a in graph.attribute),
    )  # fmt: skip


def value_of(a: Any) -> Any:
    """Returns the value of an attribute: numbers, texts, arrays, dtypes, containers of them.

    Args:
        a: The attribute.

    Returns:
        ``Monad()`` for what only orders effects, ``None`` for nothing.
    """
    if a.type in _MONADS:
        return Monad()
    if a.type in _NOTHING:
        return None
    if a.type in (_TUPLE, _LIST):
        items = map(value_of, a.values)
        return list(items) if a.type == _LIST else tuple(items)
    if a.type == _DICT:
        return {v.name: value_of(v) for v in a.values}
    if a.type in (_TENSOR, _TENSORS):
        arrays = [array_of(t) for t in (a.tensors or [a.t])]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)
    many = [*a.ints, *a.floats, *a.doubles, *(s.decode() for s in a.strings)]
    for field in ("i", "f", "d", "s"):
        if a.HasField(field):
            many = [getattr(a, field)]
    if not many:
        return dtypes.dtype_of(_DTYPES[a.type]) if 0 < a.type < len(_DTYPES) else None
    kind = {_BOOL: bool, _STRING: lambda s: s if isinstance(s, str) else s.decode()}.get(a.type)
    many = many if kind is None else [kind(v) for v in many]
    return many[0] if len(many) == 1 else tuple(many)


def array_of(proto: Any) -> np.ndarray:
    """Returns the elements of a tensor.

    Args:
        proto: The tensor.

    Raises:
        LoadError: if its type is none that this package has, or bytes are missing.
    """
    known = 0 < proto.data_type < len(_DTYPES) and _DTYPES[proto.data_type]
    if not known or proto.compression_type:
        raise LoadError(f"tensor {proto.name!r} has an unknown type, or is compressed", op="load")
    dtype, shape = dtypes.dtype_of(known).numpy, tuple(proto.dims)
    listed = proto.float_data or proto.double_data or proto.int64_data or proto.int32_data
    if listed and not proto.raw_data:
        return np.asarray(listed).astype(dtype).reshape(shape)
    if len(proto.raw_data) != math.prod(shape) * dtype.itemsize:
        reject(LoadError, "load",
               f"tensor {proto.name!r} has {len(proto.raw_data)} bytes for shape {list(shape)}",
               fix="the file is damaged: export it again")  # fmt: skip
    return np.frombuffer(proto.raw_data, dtype).reshape(shape).copy()


def _weight(proto: Any, label: str, folder: Path) -> np.ndarray:
    """Returns the value of a weight, from the folder beside the file if it is there."""
    if proto.HasField("external_data"):
        place = proto.external_data
        path = (folder / place.location).resolve()
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            reject(LoadError, "load",
                   f"the weight {label!r} is missing: there is no {place.location}",
                   fix="keep the folder with the weights beside the file")  # fmt: skip
        with path.open("rb") as file:
            file.seek(place.offset)
            proto.raw_data = file.read(place.length)
    return array_of(proto)


def _example(info: Any) -> np.ndarray | None:
    """Returns zeros of an input's type; None if a size is open."""
    if len(info.tensor) != 1 or any(d < 0 for d in info.tensor[0].dims):
        return None
    dtype = dtypes.dtype_of(_DTYPES[info.tensor[0].data_type]).numpy
    return np.zeros(tuple(info.tensor[0].dims), dtype)
