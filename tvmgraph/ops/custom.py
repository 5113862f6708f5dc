"""Custom: a user's own kernel as an operator.

The kernel is a tensor expression or a TVMScript function; it takes part in everything the table's
operators do: inference, eager calls, graphs, fusion, scheduling and derivatives.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.dispatch import apply
from tvmgraph.core.op import CUSTOM, Op, Reason
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, user_source

__all__ = ["Custom"]

_KINDS = ("te", "tvmscript", "numpy")
_count = itertools.count()


class Custom:
    """An operator of your own.

    Args:
        func: The kernel. ``"te"``: a function of TVM tensor expressions that returns one, or a
            tuple. ``"tvmscript"``: a TVMScript function whose last parameters are the outputs.
            ``"numpy"``: a function of arrays; it runs in eager code and node by node only.
        out_shape: Shape of the output, or a function of the input shapes that returns it (a list
            of shapes for several outputs).
        out_dtype: dtype of the output, or a function of the input dtypes (a list for several).
        func_type: ``"te"``, ``"tvmscript"`` or ``"numpy"``.
        bprop: ``bprop(*inputs, out, dout)`` returns one cotangent per input; without it the
            operator has no derivative.
        infer: ``infer(*types)`` returns the output type(s), instead of out_shape and out_dtype;
            a ShapeError or DTypeError it raises is shown as for built-in operators.
        reference: A function of NumPy arrays for eager code; without it eager calls compile the
            kernel.
        name: Name in graphs and messages; that of ``func`` by default.

    Raises:
        ArgumentError: if the description is incomplete or contradictory.

    Example:
        >>> double = ops.Custom(
        ...     lambda x: tvm.te.compute(x.shape, lambda *i: x(*i) * 2),
        ...     out_shape=lambda s: s, out_dtype=lambda d: d)
        >>> double(Tensor([1.0, 2.0]))
    """

    def __init__(
        self,
        func: Any,
        out_shape: Any = None,
        out_dtype: Any = None,
        func_type: str = "te",
        bprop: Callable[..., Any] | None = None,
        *,
        infer: Callable[..., Any] | None = None,
        reference: Callable[..., Any] | None = None,
        name: str = "",
    ) -> None:
        self.func = func
        self.name = _identifier(name or getattr(func, "__name__", "") or "custom")
        self._check(func, out_shape, out_dtype, func_type, infer)
        self._out_shape, self._out_dtype, self._infer = out_shape, out_dtype, infer
        self.op = self._row(func_type, bprop, reference)
        CUSTOM[self.op.name] = self.op  # graphs name their operators

    def __call__(self, *inputs: Any) -> Any:
        """Applies the operator to tensors."""
        outputs = apply(self.op, inputs, {})
        return outputs[0] if self.op.multi and len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        return f"Custom({self.name})"

    def _check(self, func: Any, shape: Any, dtype: Any, kind: str, infer: Any) -> None:
        def fail(message: str, fix: str) -> ArgumentError:
            return ArgumentError(
                message, op=f"ops.Custom({self.name})", at=user_source(), fix=fix
            )  # fmt: skip

        if kind not in _KINDS:
            raise fail(f"func_type cannot be {kind!r}", f"use one of {', '.join(_KINDS)}")
        if kind == "tvmscript" and not hasattr(func, "script"):
            raise fail(f"a TVMScript function is needed, not {type(func).__name__}",
                       "decorate it with @T.prim_func, or use func_type='te'")  # fmt: skip
        if kind != "tvmscript" and not callable(func):
            raise fail(f"func must be callable, not {type(func).__name__}", "pass a function")
        if infer is None and (shape is None or dtype is None):
            raise fail(
                "the type of the output is not known", "pass out_shape and out_dtype, or infer"
            )
        if infer is not None and (shape is not None or dtype is not None):
            raise fail("the type of the output is given twice", "pass infer alone")

    # ---- the row ----------------------------------------------------------------------------

    def _row(self, kind: str, bprop: Any, reference: Any) -> Op:
        module = getattr(self.func, "__module__", None) or "__main__"
        lower: Any = Reason("it is a NumPy function")
        if kind != "numpy":
            emit = self._lower_te if kind == "te" else self._lower_script

            def lower_kernel(R: Any, *inputs: Any) -> Any:
                return emit(R, *inputs)

            lower_kernel.__module__ = module  # tells the disk cache that the kernel may change
            lower = lower_kernel
        eager = reference or (self.func if kind == "numpy" else self._run_compiled)
        op = Op(
            _unique(self.name, self.func, kind), self.infer, lambda *xs: self._arrays(eager, xs),
            lower, _vjp(bprop) if bprop else Reason("it was made without bprop"),
            Reason("a custom kernel has no ONNX form"), (), None, ("inputs",), (), True,
            module, f"The custom operator {self.name}.", True,
        )  # fmt: skip
        op.fn = self
        return op

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        """Returns the output types.

        Raises:
            DTypeError: if the description gives something else than types.
        """
        if self._infer is not None:
            found = self._infer(*types)
        else:
            shapes, kinds = [t.shape for t in types], [t.dtype for t in types]
            shape: Any = self._out_shape(*shapes) if callable(self._out_shape) else self._out_shape
            dtype: Any = self._out_dtype(*kinds) if _is_rule(self._out_dtype) else self._out_dtype
            several = isinstance(shape, list) and all(isinstance(s, (list, tuple)) for s in shape)
            pairs = zip(shape, dtype) if several else [(shape, dtype)]
            found = tuple(tensor_type(s, dtypes.dtype_of(d)) for s, d in pairs)
        found = found if isinstance(found, tuple) else (found,)
        if not found or not all(isinstance(t, TensorType) for t in found):
            raise DTypeError(f"infer returned {found!r}, no tensor types")
        return found

    def _arrays(self, function: Callable[..., Any], arrays: tuple[np.ndarray, ...]) -> Any:
        types = self.infer(*[tensor_type(a.shape, a.dtype) for a in arrays])
        result = function(*arrays)
        results = tuple(np.asarray(r) for r in (result if isinstance(result, tuple) else (result,)))
        self._same([tensor_type(r.shape, r.dtype) for r in results], types)
        return results

    def _same(self, found: list[TensorType], promised: tuple[TensorType, ...]) -> None:
        if tuple(found) != promised:
            raise ShapeError(
                f"the kernel gives {', '.join(map(str, found))}, "
                f"its description says {', '.join(map(str, promised))}",
                fix="make out_shape, out_dtype or infer agree with the kernel",
            )

    def _run_compiled(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        from tvmgraph.compiler import compile_graph
        from tvmgraph.graph import GraphBuilder

        builder = GraphBuilder(self.name)
        types = [tensor_type(a.shape, a.dtype) for a in arrays]
        inputs = [builder.param(t) for t in types]
        outputs = self.infer(*types)
        graph = builder.build(builder.node(self.op, inputs, {}, outputs, user_source()))
        executable, _ = compile_graph(graph)
        found = executable.run([Tensor(a) for a in arrays], outputs)
        return tuple(t.array.copy() for t in found)

    def _lower_te(self, R: Any, *inputs: Any) -> Any:
        result = R.emit_te(self.func, *inputs)
        return self._checked(R, result, inputs)

    def _lower_script(self, R: Any, *inputs: Any) -> Any:
        types = self.infer(*[R.type(x) for x in inputs])
        return self._checked(R, R.call_kernel(self.func, inputs, types, self.name), inputs)

    def _checked(self, R: Any, result: Any, inputs: tuple[Any, ...]) -> list[Any]:
        promised = self.infer(*[R.type(x) for x in inputs])
        parts = R.parts(result)
        self._same([R.type(p) for p in parts], promised)
        return parts


def _vjp(bprop: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    def pull_back(g: Any, y: Any, *inputs: Tensor) -> tuple[Any, ...]:
        g, y = (g[0], y[0]) if len(g) == 1 else (g, y)
        found = bprop(*inputs, y, g)
        return found if isinstance(found, tuple) else (found,)

    return pull_back


def _is_rule(value: Any) -> bool:
    return callable(value) and not isinstance(value, (type, dtypes.DType))


def _identifier(name: str) -> str:
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return name if name[:1].isalpha() else f"custom{name}"


def _unique(name: str, func: Any, kind: str) -> str:
    """A name that no other kernel has: compiled code is found by the names in its graph.

    A TVMScript function counts by its text; for other functions nobody can tell whether two are
    the same.
    """
    if kind == "tvmscript":
        return f"{name}_{hashlib.sha256(func.script().encode()).hexdigest()[:12]}"
    return f"{name}_{next(_count)}"
