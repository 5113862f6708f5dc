"""Classes of protobuf messages from their declaration, without generated code."""

from __future__ import annotations

import functools
import re
from typing import Any

_PART = re.compile(
    r"message (\w+) \{|oneof (\w+) \{|(\})|"
    r"(?:(repeated|required) )?(\w+|map<string, \w+>) (\w+) = (\d+);"
)


@functools.cache
def message_classes(declaration: str) -> dict[str, Any]:
    """Builds the classes of messages.

    Args:
        declaration: Messages in protobuf's language, none inside another; fields are optional
            unless they say otherwise, enumerations are ``int32``.

    Returns:
        The classes by name.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    assert not _PART.sub("", declaration).strip(), declaration
    file = descriptor_pb2.FileDescriptorProto(name="declared.proto", syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    message: Any = None
    choice = False
    for opened, oneof, closed, label, kind, name, number in _PART.findall(declaration):
        if opened:
            message = file.message_type.add(name=opened)
        elif oneof:
            message.oneof_decl.add(name=oneof)
        choice = bool(oneof) or (choice and not closed)
        if not kind:
            continue
        if kind.startswith("map<"):
            label, kind = "repeated", _entry(message, name, kind[:-1].split(", ")[1])
        field = message.field.add(name=name, number=int(number))
        field.label = getattr(kinds, f"LABEL_{(label or 'optional').upper()}")
        if hasattr(kinds, f"TYPE_{kind.upper()}"):
            field.type = getattr(kinds, f"TYPE_{kind.upper()}")
        else:
            field.type, field.type_name = kinds.TYPE_MESSAGE, f".{kind}"
        if choice:
            field.oneof_index = len(message.oneof_decl) - 1
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = (m.name for m in file.message_type)
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName(n)) for n in names}


def _entry(message: Any, field: str, kind: str) -> str:
    """Declares the entry of a map from strings; returns the name of its message."""
    name = "".join(part.capitalize() for part in field.split("_")) + "Entry"
    entry = message.nested_type.add(name=name)
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=9, label=1)
    value = entry.field.add(name="value", number=2, label=1)
    if kind == "string":
        value.type = 9
    else:
        value.type, value.type_name = 11, f".{kind}"
    return f"{message.name}.{name}"
