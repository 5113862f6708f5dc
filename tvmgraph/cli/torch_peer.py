"""An ONNX model run by PyTorch's functions, to compare times with.

What depends on weights only is computed once. Operators are those of the networks that this package
exports most; another one is an error that names it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tvmgraph.errors import ArgumentError, ExportError

_SAME = {
    "Abs": "abs", "Add": "add", "And": "logical_and", "Cos": "cos", "Div": "div", "Equal": "eq",
    "Erf": "erf", "Exp": "exp", "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt",
    "LessOrEqual": "le", "Log": "log", "MatMul": "matmul", "Max": "maximum", "Min": "minimum",
    "Mul": "mul", "Neg": "neg", "Not": "logical_not", "Or": "logical_or", "Pow": "pow",
    "Reciprocal": "reciprocal", "Relu": "relu", "Sigmoid": "sigmoid", "Sin": "sin", "Sqrt": "sqrt",
    "Sub": "sub", "Tanh": "tanh", "Where": "where",
}  # fmt: skip


def torch_call(model: onnx.ModelProto, threads: int | None) -> Callable[..., list[np.ndarray]]:
    """Returns a function of NumPy arrays that runs a model in PyTorch.

    Args:
        model: The model.
        threads: Workers, ``None`` for PyTorch's own choice.

    Raises:
        ArgumentError: if PyTorch is not installed.
        ExportError: if the model has operators that are not known here.
    """
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ArgumentError("torch is not installed", op="tvmgraph bench",
                            fix="pip install torch, or leave it out of --vs") from None  # fmt: skip
    if threads:
        torch.set_num_threads(threads)
    functions = _Functions(torch)
    known = {t.name: _tensor(torch, numpy_helper.to_array(t)) for t in model.graph.initializer}
    unknown = sorted({n.op_type for n in model.graph.node if not functions.has(n.op_type)})
    if unknown:
        raise ExportError(f"{', '.join(unknown)} cannot be run by PyTorch here",
                          op="tvmgraph bench", fix="leave torch out of --vs")  # fmt: skip
    rest = []
    for node in model.graph.node:
        if all(i in known for i in node.input if i):
            functions.run(node, known)
        else:
            rest.append((node, functions.prepare(node)))
    names = [i.name for i in model.graph.input]

    def call(*arrays: np.ndarray) -> list[np.ndarray]:
        with torch.inference_mode():
            env = dict(known)
            env.update((n, _tensor(torch, a)) for n, a in zip(names, arrays))
            for node, function in rest:
                functions.store(node, function(*(env[i] if i else None for i in node.input)), env)
            return [env[o.name].numpy() for o in model.graph.output]

    return call


def _tensor(torch: Any, array: np.ndarray) -> Any:
    return torch.from_numpy(np.array(array))


def _ints(x: Any) -> list[int]:
    return [int(v) for v in x.reshape(-1)]


class _Functions:
    """PyTorch's functions for ONNX nodes; methods have the names of the operators."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.nn = torch.nn.functional

    def has(self, op_type: str) -> bool:
        """Whether an operator is known."""
        return op_type in _SAME or hasattr(self, f"_{op_type.lower()}")

    def prepare(self, node: onnx.NodeProto) -> Callable[..., Any]:
        """Returns the function of a node, its attributes bound."""
        if node.op_type in _SAME:
            return getattr(self.torch, _SAME[node.op_type])
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        return getattr(self, f"_{node.op_type.lower()}")(**attrs)

    def run(self, node: onnx.NodeProto, env: dict[str, Any]) -> None:
        """Runs a node at once."""
        self.store(node, self.prepare(node)(*(env[i] if i else None for i in node.input)), env)

    @staticmethod
    def store(node: onnx.NodeProto, result: Any, env: dict[str, Any]) -> None:
        """Names the results of a node."""
        env.update(zip(node.output, result if isinstance(result, (tuple, list)) else (result,)))

    def _identity(self) -> Any:
        return lambda x: x

    def _cast(self, to: int) -> Any:
        kind = self.torch.from_numpy(np.zeros(1, helper.tensor_dtype_to_np_dtype(to))).dtype
        return lambda x: x.to(kind)

    def _reshape(self, allowzero: int = 0) -> Any:
        def reshape(x: Any, shape: Any) -> Any:
            sizes = _ints(shape)
            return x.reshape(sizes if allowzero else [d or x.shape[i] for i, d in enumerate(sizes)])

        return reshape

    def _transpose(self, perm: Sequence[int]) -> Any:
        return lambda x: x.permute(*perm)

    def _gather(self, axis: int = 0) -> Any:
        def gather(x: Any, i: Any) -> Any:
            found = x.index_select(axis, i.reshape(-1))
            return found.reshape(*x.shape[:axis], *i.shape, *x.shape[axis + 1 :])

        return gather

    def _concat(self, axis: int) -> Any:
        return lambda *xs: self.torch.cat(xs, axis)

    def _split(self, axis: int = 0, num_outputs: int = 0) -> Any:
        def split(x: Any, sizes: Any = None) -> Any:
            if sizes is None:
                return self.torch.split(x, -(-x.shape[axis] // num_outputs), axis)
            return self.torch.split(x, _ints(sizes), axis)

        return split

    def _slice(self) -> Any:
        def cut(x: Any, starts: Any, ends: Any, axes: Any, steps: Any = None) -> Any:
            index = [slice(None)] * x.ndim
            strides = _ints(steps) if steps is not None else [1] * len(axes)
            for s, e, a, k in zip(_ints(starts), _ints(ends), _ints(axes), strides):
                index[a] = slice(s, e, k)
            return x[tuple(index)]

        return cut

    def _squeeze(self) -> Any:
        return lambda x, axes: x.squeeze(tuple(_ints(axes)))

    def _unsqueeze(self) -> Any:
        def unsqueeze(x: Any, axes: Any) -> Any:
            for a in sorted(_ints(axes)):
                x = x.unsqueeze(a)
            return x

        return unsqueeze

    def _expand(self) -> Any:
        return lambda x, shape: x.expand(np.broadcast_shapes(tuple(x.shape), tuple(_ints(shape))))

    def _reducemean(self, keepdims: int = 1, **_: Any) -> Any:
        return lambda x, axes: x.mean(_ints(axes), bool(keepdims))

    def _reducesum(self, keepdims: int = 1, **_: Any) -> Any:
        return lambda x, axes: x.sum(_ints(axes), bool(keepdims))

    def _softmax(self, axis: int = -1) -> Any:
        return lambda x: self.torch.softmax(x, axis)

    def _gelu(self, approximate: bytes = b"none") -> Any:
        return lambda x: self.nn.gelu(x, approximate=approximate.decode())

    def _layernormalization(self, axis: int = -1, epsilon: float = 1e-5) -> Any:
        def normalize(x: Any, scale: Any, bias: Any = None) -> Any:
            return self.nn.layer_norm(x, x.shape[axis % x.ndim :], scale, bias, epsilon)

        return normalize

    def _conv(
        self, dilations: Any = None, group: int = 1, pads: Any = None, strides: Any = None, **_: Any
    ) -> Any:
        def convolve(x: Any, w: Any, b: Any = None) -> Any:
            rank = x.ndim - 2
            both = pads or [0] * (2 * rank)
            padding = both[:rank]
            if padding != both[rank:]:  # PyTorch pads both sides equally
                x, padding = self._padded(x, both, 0.0), [0] * rank
            function = (self.nn.conv1d, self.nn.conv2d, self.nn.conv3d)[rank - 1]
            return function(x, w, b, strides or 1, padding, dilations or 1, group)

        return convolve

    def _padded(self, x: Any, pads: Sequence[int], value: float) -> Any:
        rank = len(pads) // 2
        flat = [p for i in reversed(range(rank)) for p in (pads[i], pads[rank + i])]
        return self.nn.pad(x, flat, value=value)

    def _maxpool(
        self, kernel_shape: Any, dilations: Any = 1, pads: Any = None, strides: Any = 1, **_: Any
    ) -> Any:
        def pool(x: Any) -> Any:
            rank = len(kernel_shape)
            x = self._padded(x, pads or [0] * (2 * rank), -math.inf)
            function = (self.nn.max_pool1d, self.nn.max_pool2d, self.nn.max_pool3d)[rank - 1]
            return function(x, kernel_shape, strides, 0, dilations)

        return pool
