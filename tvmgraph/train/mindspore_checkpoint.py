"""MindSpore's ``.ckpt`` files: a protobuf message with the name, type, shape and bytes of tensors.

The format, as MindSpore 1.x and 2.x write it::

    message Checkpoint {
      message Value {
        required string tag = 1;            // the parameter's name
        oneof value { TensorProto tensor = 2; MapTensorProto maptensor = 3; }
      }
      repeated Value value = 1;
    }
    message TensorProto {
      repeated int64 dims = 1;              // older files: [0] for a number; [0] for a text
      required string tensor_type = 2;      // "Float32", "Int64", "BFloat16", "Bool", "str", ...
      required bytes tensor_content = 3;    // row-major, little-endian; a text as UTF-32
    }

A tensor larger than half a gigabyte is several values of one name, one after the other. With
``crc_check=True`` a checksum follows the message: ``crc_num`` and CRC-32 in ten bytes. Files of
this package have it always, and say so in a field that MindSpore passes over, so that one which
breaks off between two values is not taken for a whole one.
"""

from __future__ import annotations

import functools
import itertools
import math
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.protobuf import message_classes

#: Bytes of one value; protobuf allows 2 GB for a whole message field.
_SLICE = 512 << 20
_CHECKSUM = b"crc_num"
_CRC_BYTES = 10
_TAIL = len(_CHECKSUM) + _CRC_BYTES
#: Number of the field that promises a checksum.
_SEALED = 1000
#: Number 1, of a length in front of bytes; and the most bytes that such a length takes.
_KEY, _VARINT_BYTES = 0x0A, 10
_TEXT, _TEXT_CODING = "str", "utf-32-le"


class DamagedError(ValueError):
    """The bytes are no checkpoint of MindSpore."""


#: The values, whose ``maptensor`` is left out.
_DECLARATION = f"""
message TensorProto {{
  repeated int64 dims = 1;
  required string tensor_type = 2;
  required bytes tensor_content = 3;
}}
message Value {{
  required string tag = 1;
  TensorProto tensor = 2;
  bool sealed = {_SEALED};
}}
"""


def _value() -> Any:
    """The class of the message ``Checkpoint.Value``."""
    return message_classes(_DECLARATION)["Value"]


@functools.cache
def _types() -> Mapping[str, np.dtype[Any]]:
    """NumPy's dtypes by MindSpore's names."""
    names = (
        "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
        "float16", "float32", "float64", "bfloat16", "complex64", "complex128",
    )  # fmt: skip
    found = {type_name(name): dtypes.dtype_of(name).numpy for name in names}
    return {**found, "bool_": np.dtype(np.bool_)}


def type_name(dtype: str) -> str:
    """MindSpore's name of a dtype: ``UInt8`` for ``uint8``, ``BFloat16`` for ``bfloat16``.

    Args:
        dtype: NumPy's name of it.
    """
    special = {"u": "UInt" + dtype[4:], "b": "B" + dtype[1:].capitalize()}
    return "Bool" if dtype == "bool" else special.get(dtype[0], dtype.capitalize())


def read(content: bytes) -> dict[str, np.ndarray | str]:
    """Decodes a file.

    Args:
        content: All of it.

    Returns:
        Arrays and texts by name, in the order of the file.

    Raises:
        DamagedError: naming the parameter, where one is to blame.
    """
    found: dict[str, Any] = {}
    body, unsealed = _checked(content), True
    for tag, parts in itertools.groupby(_values(body), lambda value: value.tag):
        first, *others = parts
        unsealed = unsealed and not first.sealed
        data = b"".join(value.tensor.tensor_content for value in (first, *others))
        found[tag] = _decode(tag, first.tensor, data)
    if not found:
        raise DamagedError("it holds no parameters")
    if not unsealed and len(body) == len(content):
        raise DamagedError("it breaks off: its end and its checksum are missing")
    return found


def _checked(content: bytes) -> memoryview:
    """Returns the message without its checksum, if it has one.

    Raises:
        DamagedError: if the checksum is another.
    """
    body, tail = memoryview(content)[:-_TAIL], content[-_TAIL:]
    if not tail.startswith(_CHECKSUM):
        return memoryview(content)
    if tail != checksum(body):
        raise DamagedError("its checksum is another")
    return body


def checksum(body: bytes | memoryview) -> bytes:
    """What follows a message so that a reader can tell whether it is whole.

    Args:
        body: The message.
    """
    return _CHECKSUM + zlib.crc32(body).to_bytes(_CRC_BYTES, "big")


def _values(body: memoryview) -> Iterator[Any]:
    """Decodes the values one by one, because protobuf takes no message beyond 2 GB."""
    from google.protobuf.message import DecodeError

    at = 0
    while at < len(body):
        if body[at] != _KEY:
            raise DamagedError("it is neither a safetensors file nor a checkpoint of MindSpore")
        size, start = _varint(body, at + 1)
        if start + size > len(body):
            raise DamagedError(f"it ends inside parameter {_tag(body, start)!r}")
        at = start + size
        try:
            yield _value().FromString(body[start:at])
        except DecodeError as e:
            raise DamagedError(f"the value before byte {at} cannot be decoded") from e


def _tag(body: memoryview, at: int) -> str:
    """Reads the name at the beginning of a value of which the end is missing."""
    size, start = _varint(body, at + 1)
    return bytes(body[start : start + size]).decode("utf-8", "replace")


def _varint(body: memoryview, at: int) -> tuple[int, int]:
    """Reads protobuf's form of an integer; returns it and where it ends."""
    result = 0
    for count, byte in enumerate(body[at : at + _VARINT_BYTES]):
        result |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return result, at + count + 1
    raise DamagedError("it breaks off")


def _decode(tag: str, proto: Any, data: bytes) -> np.ndarray | str:
    if proto.tensor_type == _TEXT:
        return data.decode(_TEXT_CODING, "replace")
    dtype = _types().get(proto.tensor_type)
    if dtype is None:
        raise DamagedError(f"parameter {tag!r} has the unknown type {proto.tensor_type!r}")
    shape = () if list(proto.dims) == [0] and len(data) == dtype.itemsize else tuple(proto.dims)
    if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != len(data):
        raise DamagedError(f"parameter {tag!r} has {len(data)} bytes for shape {list(shape)}")
    return np.frombuffer(data, dtype).reshape(shape)


def write(entries: Mapping[str, np.ndarray | str], file: BinaryIO) -> None:
    """Encodes arrays and texts by name, as MindSpore reads them.

    Args:
        entries: What to write.
        file: Where to; a checksum ends it.
    """
    crc, sealed = 0, True
    for tag, value in entries.items():
        for part in _encode(tag, value, sealed):
            sealed = False
            crc = zlib.crc32(part, crc)
            file.write(part)
    file.write(_CHECKSUM + crc.to_bytes(_CRC_BYTES, "big"))


def _encode(tag: str, value: np.ndarray | str, sealed: bool) -> Iterator[bytes]:
    text = isinstance(value, str)
    data = value.encode(_TEXT_CODING) if text else np.ascontiguousarray(value).tobytes()
    message = _value()(tag=tag, **({"sealed": True} if sealed else {}))
    message.tensor.tensor_type = _TEXT if text else type_name(value.dtype.name)
    message.tensor.dims.extend([0] if text else value.shape)
    for start in range(0, max(1, len(data)), _SLICE):
        message.tensor.tensor_content = data[start : start + _SLICE]
        body = message.SerializeToString()
        message.ClearField("sealed")
        yield bytes((_KEY, *_varint_bytes(len(body)))) + body


def _varint_bytes(number: int) -> list[int]:
    groups = [number >> shift & 0x7F for shift in range(0, max(1, number.bit_length()), 7)]
    return [group | 0x80 for group in groups[:-1]] + groups[-1:]
