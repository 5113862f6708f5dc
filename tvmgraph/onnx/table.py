"""The table from ONNX operators to functions of this package, and what these are given."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.core.arguments import Attrs
from tvmgraph.core.onnx_library import helper, numpy_helper, onnx
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.core.types import Dim, Shape
from tvmgraph.errors import CaptureError, LoadError
from tvmgraph.onnx.low_precision import LowPrecision, is_low_precision, wide_dtype
from tvmgraph.onnx.shape_values import Sizes

Converter = Callable[..., Any]
CONVERTERS: dict[str, Converter] = {}


def converter(*names: str) -> Callable[[Converter], Converter]:
    """Adds a function to the table under the names of ONNX operators, domain first if need be.

    It is called with a :class:`NodeCall`, then the inputs as tensors (``None`` where omitted), and
    returns a value or a tuple of them.

    Args:
        *names: Names of ONNX operators.
    """

    def add(function: Converter) -> Converter:
        for name in names:
            CONVERTERS[name] = function
        return function

    return add


def find_converter(domain: str, op_type: str) -> Converter | None:
    """Returns how an operator is converted; ``domain`` is empty for the standard one.

    Args:
        domain: Domain of the operator, empty for the standard one.
        op_type: Its name.
    """
    return CONVERTERS.get(f"{domain}.{op_type}" if domain else op_type)


def known(value: object) -> np.ndarray | None:
    """Returns the elements of a value where they are known now, else ``None``.

    Args:
        value: An array, a low-precision array, a tensor, or anything else, which is not known.
    """
    value = value.wide if isinstance(value, LowPrecision) else value
    if isinstance(value, (np.ndarray, Sizes)):
        return value.array if isinstance(value, Sizes) else value
    if isinstance(value, TracedTensor) or not isinstance(value, Tensor):
        return None
    return value.array if state.interpreter is None else None


def to_tensor(value: object) -> Any:
    """Returns an array as a tensor, a constant of the graph while one is captured.

    Args:
        value: An array, low-precision array or sizes; anything else is returned as it is.
    """
    if isinstance(value, Sizes):
        return value.as_tensor()
    value = value.wide if isinstance(value, LowPrecision) else value
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    tensor = tensor_from_numpy(np.asarray(value))
    if state.interpreter is not None:
        state.interpreter.created(tensor)
    return tensor


def dtype_of(number: int, where: str) -> dtypes.DType:
    """Returns the dtype of an ONNX element type; of a low-precision one the dtype that holds it.

    Args:
        number: ONNX' number of the type.
        where: What the error names as its place.

    Raises:
        LoadError: if this package has no such type.
    """
    if is_low_precision(number):
        return wide_dtype(number)
    name = onnx.TensorProto.DataType.Name(number).lower()
    try:
        return dtypes.dtype_of(np.dtype(helper.tensor_dtype_to_np_dtype(number)))
    except Exception:
        raise LoadError(f"element type {name} is not supported", op=where) from None


def constant_of(proto: onnx.TensorProto) -> Any:
    """Returns the elements of a constant, of low precision as :class:`LowPrecision`.

    Args:
        proto: The constant.
    """
    array = numpy_helper.to_array(proto)
    if is_low_precision(proto.data_type):
        return LowPrecision(array.astype(wide_dtype(proto.data_type).numpy), proto.data_type)
    return array


_ELEMENT_BYTES = 8  # of the widest element types


@functools.cache
def _memory_bytes() -> int:
    if not hasattr(os, "sysconf"):
        return 1 << 40  # Windows does not tell; NumPy fails beyond what there is
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


class NodeCall:
    """One execution of one ONNX node.

    Attributes:
        node: The node.
        opset: Version of its operator set.
        values: Inputs as they are: tensors, known arrays, lists (sequences) or ``None``.
        attrs: Attributes, with the defaults of the operator's schema.
        run_graph: Runs a subgraph attribute: ``(GraphProto, values) -> outputs``.
        decided: Whether the values of a tensor decided about shapes, as they cannot in a graph.
    """

    def __init__(
        self, node: onnx.NodeProto, opset: int, values: Sequence[object], attrs: Attrs,
        run_graph: Callable[..., list[object]],
    ) -> None:  # fmt: skip
        self.node = node
        self.opset = opset
        self.values = values
        self.attrs = attrs
        self.run_graph = run_graph
        self.decided = False

    @property
    def where(self) -> str:
        """The operator with the node's name, for messages."""
        name = f" {self.node.name!r}" if self.node.name else ""
        return f"onnx.{self.node.op_type}{name}"

    def get(self, name: str, default: object = None) -> Any:
        """Returns an attribute, strings as text and lists as tuples.

        Args:
            name: Name of the attribute.
            default: What is returned where the node has no such attribute.
        """
        value = self.attrs.get(name, default)
        if isinstance(value, bytes):
            return value.decode()
        return tuple(value) if isinstance(value, list) else value

    def has(self, i: int) -> bool:
        """Whether an optional input is given.

        Args:
            i: Number of the input.
        """
        return i < len(self.values) and self.values[i] is not None

    def known(self, i: int, default: object = None) -> Any:
        """Returns the elements of an input that decides about shapes.

        Args:
            i: Number of the input.
            default: What is returned where the input is omitted.

        Raises:
            CaptureError: if they are computed from the model's inputs while it is compiled.
        """
        if not self.has(i):
            return default
        found = known(self.values[i])
        if found is None:
            raise self.unknown(
                f"input {i} decides about shapes and is not known before the model runs",
                "run it eagerly, or give that input as a number or tuple, which is a constant",
            )
        self.decided |= isinstance(self.values[i], Tensor)
        return found

    def ints(self, i: int, default: object = None) -> Any:
        """Returns :meth:`known` as a tuple of integers and symbolic sizes.

        Args:
            i: Number of the input.
            default: What is returned where the input is omitted.
        """
        found = self.known(i)
        if found is None:
            return default
        return tuple(v if isinstance(v, Dim) else int(v) for v in found.reshape(-1).tolist())

    def number(self, i: int, default: object = None) -> Any:
        """Returns :meth:`known` as one Python number or symbolic size.

        Args:
            i: Number of the input.
            default: What is returned where the input is omitted.
        """
        found = self.known(i)
        return default if found is None else found.reshape(-1).tolist()[0]

    def require_memory(self, shape: Shape) -> None:
        """Checks that a result this node would make fits into memory, before it is made.

        Args:
            shape: Shape of the result; symbolic sizes count as 1.

        Raises:
            LoadError: if it does not.
        """
        elements = math.prod(d for d in shape if not isinstance(d, Dim))
        if elements * _ELEMENT_BYTES > _memory_bytes():
            raise self.fail(f"its result of {elements:.1e} elements does not fit into memory",
                            "check the values that decide about its shape")  # fmt: skip

    def low_precision_kind(self, i: int) -> int | None:
        """Returns the low-precision element type of an input, ``None`` if it has another one.

        Args:
            i: Number of the input.
        """
        value = self.values[i] if self.has(i) else None
        return value.kind if isinstance(value, LowPrecision) else None

    def dtype(self, name: str, default: object = None) -> Any:
        """Returns an attribute that is an element type.

        Args:
            name: Name of the attribute.
            default: What is returned where the node has no such attribute, or 0.
        """
        number = self.get(name)
        return default if not number else dtype_of(number, self.where)

    def fail(self, why: str, fix: str = "") -> LoadError:
        """Returns an error about this node.

        Args:
            why: What is wrong.
            fix: What the user may do.
        """
        return LoadError(why, op=self.where, fix=fix or None)

    def unknown(self, why: str, fix: str = "run it eagerly") -> CaptureError:
        """Returns an error about a value that is not known while the model is captured.

        Args:
            why: What is not known.
            fix: What the user may do.
        """
        return CaptureError(why, op=self.where, fix=fix)

    @property
    def count(self) -> int:
        """How many outputs are asked for."""
        return len(self.node.output)

    def wants(self, i: int) -> bool:
        """Whether an optional output is asked for.

        Args:
            i: Number of the output.
        """
        return i < len(self.node.output) and bool(self.node.output[i])
