"""ONNX operators that are defined by other operators: the standard's own, and a model's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph.core.onnx_library import helper, onnx
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import LoadError, reject
from tvmgraph.onnx.low_precision import LowPrecision


class Functions:
    """Finds the definition of a node, and the defaults of its attributes.

    Args:
        model: The model, with functions of its own.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._own = {(f.domain, f.name): f for f in model.functions}
        self._bodies: dict[object, onnx.FunctionProto] = {}
        self._attributes: dict[int, tuple[onnx.NodeProto, dict[str, object]]] = {}

    def has(self, node: onnx.NodeProto, opset: int) -> bool:
        """Whether a node has a definition.

        Args:
            node: A node of the model.
            opset: Opset of the model for the node's domain.
        """
        if (node.domain, node.op_type) in self._own:
            return True
        schema = _schema(node, opset)
        return schema is not None and (schema.has_function or schema.has_context_dependent_function)

    def body(
        self, node: onnx.NodeProto, opset: int, values: Sequence[object]
    ) -> onnx.FunctionProto:
        """Returns the definition of a node for these inputs.

        Args:
            node: A node of the model.
            opset: Opset of the model for the node's domain.
            values: Its inputs, whose types the definition may depend on.

        Raises:
            LoadError: if the standard defines none for them.
        """
        own = self._own.get((node.domain, node.op_type))
        if own is not None:
            return own
        kinds = [_type_bytes(v) for v in values]
        key = (id(node), opset, tuple(kinds))
        found = self._bodies.get(key)
        if found is None:
            found = self._bodies[key] = self._build(node, opset, kinds)
        return found

    def _build(
        self, node: onnx.NodeProto, opset: int, kinds: Sequence[object]
    ) -> onnx.FunctionProto:
        schema = _schema(node, opset)
        if schema is not None and schema.has_function:
            versions = [v for v in schema.function_opset_versions if v <= opset]
            if versions:
                data = schema.get_function_with_opset_version(max(versions))
                return onnx.FunctionProto.FromString(data)
        # the standard's builders crash on nodes that break the schema, and on sequences
        count = len(node.input)
        fits = schema is not None and schema.min_input <= count <= schema.max_input
        if fits and schema.has_context_dependent_function and None not in kinds:  # pyright: ignore[reportOptionalMemberAccess]
            versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]  # pyright: ignore[reportOptionalMemberAccess]
            if versions:
                data = schema.get_context_dependent_function_with_opset_version(  # pyright: ignore[reportOptionalMemberAccess]
                    max(versions), node.SerializeToString(), [k or b"" for k in kinds]
                )
                body = onnx.FunctionProto.FromString(data)
                if body.node:
                    return body
        reject(LoadError, f"onnx.{node.op_type}", "this operator is not supported for these inputs")

    def attributes(self, node: onnx.NodeProto, opset: int) -> dict[str, object]:
        """Returns the attributes of a node with the defaults of its schema.

        Args:
            node: A node of the model.
            opset: Opset of the model for the node's domain.
        """
        found = self._attributes.get(id(node))
        if found is None:
            values = {}
            schema = _schema(node, opset)
            for name, a in (schema.attributes if schema is not None else {}).items():
                if a.default_value.type:
                    values[name] = helper.get_attribute_value(a.default_value)
            for a in node.attribute:
                values[a.name] = helper.get_attribute_value(a)
            # the node is kept, so that its id stays its own
            found = self._attributes[id(node)] = (node, values)
        return found[1]

    def bound(
        self, inner: onnx.NodeProto, outer: onnx.NodeProto, body: onnx.FunctionProto
    ) -> onnx.NodeProto:
        """Returns a node of a definition with the attributes that refer to the outer node.

        Args:
            inner: A node of the definition.
            outer: The node that the definition stands for.
            body: The definition, which may have defaults.

        Returns:
            ``inner`` itself if none of its attributes refers to another.
        """
        if not any(a.ref_attr_name for a in inner.attribute):
            return inner
        key = (id(inner), id(outer))
        if key in self._bodies:
            return self._bodies[key]  # pyright: ignore[reportReturnType]
        given = {a.name: a for a in [*body.attribute_proto, *outer.attribute]}
        schema = _schema(outer, 10**6)
        node = onnx.NodeProto()
        node.CopyFrom(inner)
        del node.attribute[:]
        for a in inner.attribute:
            if not a.ref_attr_name:
                node.attribute.append(a)
                continue
            value = given.get(a.ref_attr_name)
            if value is None and schema is not None and a.ref_attr_name in schema.attributes:
                default = schema.attributes[a.ref_attr_name].default_value
                value = default if default.type else None
            if value is not None:
                copy = node.attribute.add()
                copy.CopyFrom(value)
                copy.name = a.name
        self._bodies[key] = node  # pyright: ignore[reportArgumentType]
        return node


def _schema(node: onnx.NodeProto, opset: int) -> Any:
    domain = "" if node.domain == "ai.onnx" else node.domain
    opset = min(opset, 10**4)
    if not onnx.defs.has(node.op_type, domain=domain, max_inclusive_version=opset):
        return None
    return onnx.defs.get_schema(node.op_type, opset, domain)


def _type_bytes(value: object) -> bytes | None:
    """Returns the serialized ONNX type of a value; empty when omitted, ``None`` for a sequence."""
    if isinstance(value, LowPrecision):
        shape = value.wide.shape
        return helper.make_tensor_type_proto(value.kind, shape).SerializeToString()
    if isinstance(value, Tensor):
        kind, shape = value.dtype.numpy, value.shape
    elif isinstance(value, np.ndarray):
        kind, shape = value.dtype, value.shape
    else:
        return b"" if value is None else None
    number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    return helper.make_tensor_type_proto(number, shape).SerializeToString()
