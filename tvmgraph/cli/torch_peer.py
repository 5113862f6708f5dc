"""An ONNX model run by PyTorch's functions, to compare times with.

What depends on weights only is computed once. Operators are those of the networks that this package
exports most; another one is an error that names it.
"""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tvmgraph.errors import ArgumentError, ExportError

if TYPE_CHECKING:
    from torch import Tensor  # pyright: ignore[reportMissingModuleSource]

_SAME = {
    "Abs": "abs", "Add": "add", "And": "logical_and", "Cos": "cos", "Div": "div", "Equal": "eq",
    "Erf": "erf", "Exp": "exp", "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt",
    "LessOrEqual": "le", "Log": "log", "MatMul": "matmul", "Max": "maximum", "Min": "minimum",
    "Mul": "mul", "Neg": "neg", "Not": "logical_not", "Or": "logical_or", "Pow": "pow",
    "Reciprocal": "reciprocal", "Relu": "relu", "Sigmoid": "sigmoid", "Sin": "sin", "Sqrt": "sqrt",
    "Sub": "sub", "Tanh": "tanh", "Where": "where",
}  # fmt: skip


_Result: TypeAlias = "Tensor | Sequence[Tensor]"
_Function: TypeAlias = Callable[..., _Result]
_Env: TypeAlias = "dict[str, Tensor]"
_Ints: TypeAlias = Sequence[int]


def torch_call(model: onnx.ModelProto, threads: int | None) -> Callable[..., list[np.ndarray]]:
    """Returns a function of NumPy arrays that runs a model in PyTorch.

    Args:
        model: The model.
        threads: Workers, ``None`` for PyTorch's own choice.

    Raises:
        ArgumentError: if PyTorch is not installed.
        ExportError: if the model has operators that are not known here.
    """
    torch = _torch()
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


def _torch() -> ModuleType:
    try:
        return pkgutil.resolve_name("torch")
    except ImportError:
        raise ArgumentError("torch is not installed", op="tvmgraph bench",
                            fix="pip install torch, or leave it out of --vs") from None  # fmt: skip


def _tensor(torch: ModuleType, array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(array))


def _ints(x: Tensor) -> list[int]:
    return x.reshape(-1).tolist()


class _Functions:
    """PyTorch's functions for ONNX nodes; methods have the names of the operators."""

    def __init__(self, torch: ModuleType) -> None:
        self.torch = torch
        self.nn = torch.nn.functional

    def has(self, op_type: str) -> bool:
        """Whether an operator is known."""
        return op_type in _SAME or hasattr(self, f"_{op_type.lower()}")

    def prepare(self, node: onnx.NodeProto) -> _Function:
        """Returns the function of a node, its attributes bound."""
        if node.op_type in _SAME:
            return getattr(self.torch, _SAME[node.op_type])
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        return getattr(self, f"_{node.op_type.lower()}")(**attrs)

    def run(self, node: onnx.NodeProto, env: _Env) -> None:
        """Runs a node at once."""
        self.store(node, self.prepare(node)(*(env[i] if i else None for i in node.input)), env)

    @staticmethod
    def store(node: onnx.NodeProto, result: _Result, env: _Env) -> None:
        """Names the results of a node."""
        results = result if isinstance(result, Sequence) else (result,)
        env.update(zip(node.output, results))

    def _identity(self) -> _Function:
        return lambda x: x

    def _cast(self, to: int) -> _Function:
        kind = self.torch.from_numpy(np.zeros(1, helper.tensor_dtype_to_np_dtype(to))).dtype
        return lambda x: x.to(kind)

    def _reshape(self, allowzero: int = 0) -> _Function:
        def reshape(x: Tensor, shape: Tensor) -> Tensor:
            sizes = _ints(shape)
            return x.reshape(sizes if allowzero else [d or x.shape[i] for i, d in enumerate(sizes)])

        return reshape

    def _transpose(self, perm: _Ints) -> _Function:
        return lambda x: x.permute(*perm)

    def _gather(self, axis: int = 0) -> _Function:
        def gather(x: Tensor, i: Tensor) -> Tensor:
            found = x.index_select(axis, i.reshape(-1))
            return found.reshape(*x.shape[:axis], *i.shape, *x.shape[axis + 1 :])

        return gather

    def _concat(self, axis: int) -> _Function:
        return lambda *xs: self.torch.cat(xs, axis)

    def _split(self, axis: int = 0, num_outputs: int = 0) -> _Function:
        def split(x: Tensor, sizes: Tensor | None = None) -> Sequence[Tensor]:
            if sizes is None:
                return self.torch.split(x, -(-x.shape[axis] // num_outputs), axis)
            return self.torch.split(x, _ints(sizes), axis)

        return split

    def _slice(self) -> _Function:
        def cut(
            x: Tensor, starts: Tensor, ends: Tensor, axes: Tensor, steps: Tensor | None = None
        ) -> Tensor:
            index = [slice(None)] * x.ndim
            numbers = _ints(axes)
            strides = _ints(steps) if steps is not None else [1] * len(numbers)
            for s, e, a, k in zip(_ints(starts), _ints(ends), numbers, strides):
                index[a] = slice(s, e, k)
            return x[tuple(index)]

        return cut

    def _squeeze(self) -> _Function:
        return lambda x, axes: x.squeeze(tuple(_ints(axes)))

    def _unsqueeze(self) -> _Function:
        def unsqueeze(x: Tensor, axes: Tensor) -> Tensor:
            for a in sorted(_ints(axes)):
                x = x.unsqueeze(a)
            return x

        return unsqueeze

    def _expand(self) -> _Function:
        return lambda x, shape: x.expand(np.broadcast_shapes(tuple(x.shape), tuple(_ints(shape))))

    def _reducemean(self, keepdims: int = 1, **_: object) -> _Function:
        return lambda x, axes: x.mean(_ints(axes), bool(keepdims))

    def _reducesum(self, keepdims: int = 1, **_: object) -> _Function:
        return lambda x, axes: x.sum(_ints(axes), bool(keepdims))

    def _softmax(self, axis: int = -1) -> _Function:
        return lambda x: self.torch.softmax(x, axis)

    def _gelu(self, approximate: bytes = b"none") -> _Function:
        return lambda x: self.nn.gelu(x, approximate=approximate.decode())

    def _layernormalization(self, axis: int = -1, epsilon: float = 1e-5) -> _Function:
        def normalize(x: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
            return self.nn.layer_norm(x, x.shape[axis % x.ndim :], scale, bias, epsilon)

        return normalize

    def _conv(
        self,
        dilations: _Ints | None = None,
        group: int = 1,
        pads: _Ints | None = None,
        strides: _Ints | None = None,
        **_: object,
    ) -> _Function:
        def convolve(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
            rank = x.ndim - 2
            both = pads or [0] * (2 * rank)
            padding = both[:rank]
            if padding != both[rank:]:  # PyTorch pads both sides equally
                x, padding = self._padded(x, both, 0.0), [0] * rank
            function = (self.nn.conv1d, self.nn.conv2d, self.nn.conv3d)[rank - 1]
            return function(x, w, b, strides or 1, padding, dilations or 1, group)

        return convolve

    def _padded(self, x: Tensor, pads: _Ints, value: float) -> Tensor:
        rank = len(pads) // 2
        flat = [p for i in reversed(range(rank)) for p in (pads[i], pads[rank + i])]
        return self.nn.pad(x, flat, value=value)

    def _maxpool(
        self,
        kernel_shape: _Ints,
        dilations: int | _Ints = 1,
        pads: _Ints | None = None,
        strides: int | _Ints = 1,
        **_: object,
    ) -> _Function:
        def pool(x: Tensor) -> Tensor:
            rank = len(kernel_shape)
            x = self._padded(x, pads or [0] * (2 * rank), -math.inf)
            function = (self.nn.max_pool1d, self.nn.max_pool2d, self.nn.max_pool3d)[rank - 1]
            return function(x, kernel_shape, strides, 0, dilations)

        return pool
