"""Custom: a user's own kernel as an operator.

The kernel is a tensor expression or a TVMScript function; it takes part in everything the table's
operators do: inference, eager calls, graphs, fusion, scheduling and derivatives. Functions of NumPy
arrays and compiled C functions take part in all but fusion: a graph with one runs node by node.

A program may describe its operator with ``CustomRegOp``: dtypes, formats, attributes, processor.
``ops.Custom`` takes the description and does not need it: dtypes are what ``out_dtype`` says.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from tvmgraph import dtypes, hooks
from tvmgraph.core.arguments import Attributes
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.dispatch import apply
from tvmgraph.core.op import CUSTOM, Op, Reason
from tvmgraph.core.storage import aligned_copy, aligned_empty
from tvmgraph.core.symbols import scope
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.errors import (
    ArgumentError,
    CompileError,
    DTypeError,
    NoGradientError,
    ShapeError,
    TvmgraphError,
    either,
    reject,
    user_source,
    warn_user,
)
from tvmgraph.graph import GraphBuilder

__all__ = ["Custom", "CustomRegOp", "DataType"]

_HOST_ONLY = Reason("it is a function of the host, which no kernel can call")
_TRAITS = Traits(Pattern.OPAQUE, Reason("nobody knows what a user's kernel reads"))
_count = itertools.count()


class Custom:
    """An operator of your own.

    Args:
        func: The kernel, see ``func_type``.
        out_shape: Shape of the output, or a function of the input shapes that returns it; a list
            of shapes for several outputs, and for a tuple of one.
        out_dtype: dtype of the output, or a function of the input dtypes; a list for several.
        func_type: What ``func`` is; by default ``"aot"`` for a str, ``"tvmscript"`` for a TVMScript
            function, else ``"te"``.

            * ``"te"``: a function of TVM tensor expressions that returns one, or a tuple.
            * ``"tvmscript"``: a TVMScript function whose last parameters are the outputs, or a
              function of the input types that returns one.
            * ``"pyfunc"``: a function of NumPy arrays; graphs with it run node by node.
            * ``"aot"``: ``"library.so:function"``, a C function with MindSpore's signature; graphs
              with it run node by node.
        bprop: ``bprop(*inputs, out, dout)`` returns one cotangent per input; without it the
            operator has no derivative.
        reg_info: MindSpore's description of dtypes and formats; has no effect.
        infer: ``infer(*types)`` returns the output type(s), instead of out_shape and out_dtype;
            a ShapeError or DTypeError it raises is shown as for built-in operators.
        reference: A function of NumPy arrays for eager code; without it eager calls compile the
            kernel.
        attrs: Attributes with their defaults. Calls may give others by keyword, and every function
            above gets them as keywords.
        onnx: The ONNX form: an op_type such as ``"com.example.Cube"``'s, or a function
            ``(O, *values, **attrs)``; without it the operator cannot be exported to ONNX.
        name: Name in graphs and messages; that of ``func`` by default.

    Raises:
        ArgumentError: if the description is incomplete or contradictory.

    Example:
        >>> import tvm.te
        >>> double = ops.Custom(
        ...     lambda x: tvm.te.compute(x.shape, lambda *i: x(*i) * 2),
        ...     out_shape=lambda s: s, out_dtype=lambda d: d)
        >>> double(Tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  4.00000000e+00])
    """

    def __init__(
        self,
        func: Any,
        out_shape: object = None,
        out_dtype: object = None,
        func_type: str = "",
        bprop: Callable[..., Any] | None = None,
        reg_info: object = None,
        *,
        infer: Callable[..., Any] | None = None,
        reference: Callable[..., Any] | None = None,
        attrs: Attributes | None = None,
        onnx: Any = None,
        name: str = "",
    ) -> None:
        self.func = func
        own = func.rpartition(":")[2] if isinstance(func, str) else getattr(func, "__name__", "")
        self.name = _identifier(name or own or "custom")
        self.attrs = dict(attrs or {})
        self._out_shape, self._out_dtype, self._infer = out_shape, out_dtype, infer
        self._several = False  # whether out_shape is one of shapes, as was last seen
        try:
            self.kind = kind_of(func, func_type)
            self._check(bprop, reference)
            self.op = self._row(bprop, reference, onnx)
        except TvmgraphError as e:
            raise e.locate(f"ops.Custom({self.name})", "", user_source()) from None
        if reg_info is not None:
            warn_user("ops.Custom: reg_info has no effect; out_dtype and infer say what fits")
        CUSTOM[self.op.name] = self.op  # graphs name their operators

    def __call__(self, *inputs: object, **attrs: object) -> Any:
        """Applies the operator to tensors.

        Args:
            inputs: The tensors.
            attrs: Attributes that differ from their defaults.

        Raises:
            ArgumentError: for an attribute that was not declared.
        """
        for name in attrs:
            if name not in self.attrs:
                raise ArgumentError(
                    f"there is no attribute {name!r}", op=f"ops.{self.name}",
                    fix=f"it has {', '.join(self.attrs) or 'none; declare them with attrs={...}'}",
                )  # fmt: skip
        outputs = apply(self.op, inputs, self.attrs | attrs)
        return outputs if len(outputs) > 1 or self._several else outputs[0]

    def __repr__(self) -> str:
        return f"Custom({self.name})"

    def _check(self, bprop: object, reference: object) -> None:
        shape, dtype, infer = self._out_shape, self._out_dtype, self._infer
        for what, value in (("bprop", bprop), ("reference", reference), ("infer", infer)):
            if value is not None and not callable(value):
                raise ArgumentError(f"{what} must be callable, not {type(value).__name__}")
        if infer is None and (shape is None or dtype is None):
            raise either(ArgumentError, TypeError)(
                "the type of the output is not known", fix="pass out_shape and out_dtype, or infer"
            )
        if infer is not None and (shape is not None or dtype is not None):
            raise ArgumentError("the type of the output is given twice", fix="pass infer alone")

    # ---- the row ----------------------------------------------------------------------------

    def _row(self, bprop: Any, reference: Any, onnx: Any) -> Op:
        module = getattr(self.func, "__module__", None) or "__main__"
        lower: Callable[..., Sequence[Expr]] | Reason = _HOST_ONLY
        eager = reference or self._run_compiled
        if self.kind == "aot":
            eager = load_function(self.func, self.infer)
        elif self.kind == "pyfunc":
            eager = self.func
        else:
            emit = self._lower_te if self.kind == "te" else self._lower_script

            def lower_kernel(R: Builder, *inputs: Expr, **attrs: object) -> Sequence[Expr]:
                return emit(R, inputs, attrs)

            lower_kernel.__module__ = f"users.{module}"  # not this package's: never kept on disk
            lower = lower_kernel
        op = Op(
            _unique(self.name, self.func, self.kind), self.infer,
            lambda *xs, **attrs: self._arrays(eager, xs, attrs), lower,
            self._vjp(bprop) if bprop else Reason("it was made without bprop"),
            onnx or Reason("it was made without an ONNX form (onnx=...)"), (), _TRAITS, None,
            ("inputs",), tuple(self.attrs), True, module, f"The custom operator {self.name}.", True,
        )  # fmt: skip
        op.fn = self
        return op

    def infer(self, *types: TensorType, **attrs: object) -> tuple[TensorType, ...]:
        """Returns the output types.

        Args:
            *types: Types of the operands.
            **attrs: Attributes of the call.

        Raises:
            ShapeError: if a shape is symbolic: kernels are made for given sizes.
            DTypeError: if the description gives something else than types.
        """
        for t in types:
            if not t.is_static and scope() is None:
                raise ShapeError(
                    f"a custom kernel needs fixed shapes, {t} has a symbolic dimension",
                    fix="export or compile for given sizes",
                )
            _ = t.static_shape  # while a function is captured: once more, for these sizes
        if self._infer is not None:
            found = self._infer(*types, **attrs)
        else:
            found = self._described(types, attrs)
        found = found if isinstance(found, tuple) else (found,)
        if not found or not all(isinstance(t, TensorType) for t in found):
            raise DTypeError(f"infer returned {found!r}, no tensor types")
        return found

    def _described(
        self, types: tuple[TensorType, ...], attrs: Attributes
    ) -> tuple[TensorType, ...]:
        shape: Any = self._out_shape
        dtype: Any = self._out_dtype
        if callable(shape):
            shape = shape(*[t.shape for t in types], **attrs)
        if callable(dtype) and not isinstance(dtype, (type, dtypes.DType)):
            dtype = dtype(*[t.dtype for t in types], **attrs)
        self._several = bool(shape) and all(isinstance(s, (list, tuple)) for s in shape)
        if not self._several:
            return (tensor_type(tuple(shape), dtypes.dtype_of(dtype)),)
        kinds = dtype if isinstance(dtype, (list, tuple)) else [dtype] * len(shape)
        if len(kinds) != len(shape):
            raise DTypeError(f"{len(shape)} shapes but {len(kinds)} dtypes are described")
        return tuple(tensor_type(tuple(s), dtypes.dtype_of(d)) for s, d in zip(shape, kinds))

    def _arrays(
        self, function: Callable[..., object], arrays: tuple[np.ndarray, ...], attrs: Attributes
    ) -> Any:
        types = self.infer(*[tensor_type(a.shape, a.dtype) for a in arrays], **attrs)
        result = function(*arrays, **attrs)
        parts = result if isinstance(result, (tuple, list)) else (result,)
        results = tuple(np.asarray(r) for r in parts)
        self._same([tensor_type(r.shape, r.dtype) for r in results], types)
        return results

    def _same(self, found: list[TensorType], promised: tuple[TensorType, ...]) -> None:
        if tuple(found) != promised:
            raise ShapeError(
                f"the kernel gives {', '.join(map(str, found))}, "
                f"its description says {', '.join(map(str, promised))}",
                fix="make out_shape, out_dtype or infer agree with the kernel",
            )

    def _vjp(self, bprop: Callable[..., object]) -> Callable[..., tuple[object, ...]]:
        def pull_back(
            g: Sequence[Any], y: Sequence[Any], *inputs: Tensor, **attrs: object
        ) -> tuple[object, ...]:
            g, y = (g, y) if len(g) > 1 or self._several else (g[0], y[0])
            found = bprop(*inputs, y, g, **attrs)
            found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
            if len(found) != len(inputs):
                reject(NoGradientError, f"ops.{self.name}",
                       f"bprop returned {len(found)} cotangents for {len(inputs)} inputs",
                       fix="return one per input, in order; None where there is none")  # fmt: skip
            return found

        return pull_back

    # ---- the kernel -------------------------------------------------------------------------

    def _run_compiled(self, *arrays: np.ndarray, **attrs: object) -> tuple[np.ndarray, ...]:
        builder = GraphBuilder(self.name)
        types = [tensor_type(a.shape, a.dtype) for a in arrays]
        inputs = [builder.param(t) for t in types]
        outputs = self.infer(*types, **attrs)
        graph = builder.build(builder.node(self.op, inputs, attrs, outputs, user_source()))
        executable, _ = hooks.compile_graph(graph)
        found = executable.run([Tensor(a) for a in arrays], outputs)
        return tuple(t.array.copy() for t in found)

    def _lower_te(self, R: Builder, inputs: tuple[Expr, ...], attrs: Attributes) -> list[Expr]:
        try:
            result = R.emit_te(self.func, *inputs, **attrs)
        except TvmgraphError:
            raise
        except Exception as e:
            fix = "return te.compute(...); for a function of NumPy arrays use func_type='pyfunc'"
            if "intrinsic" in str(e):
                fix = "call an intrinsic that this TVM's LLVM has, by its full name"
            message = f"the kernel cannot be made: {type(e).__name__}: {e}"
            raise CompileError(message, fix=fix) from e
        return self._checked(R, result, inputs, attrs)

    def _lower_script(self, R: Builder, inputs: tuple[Expr, ...], attrs: Attributes) -> list[Expr]:
        given = [R.type(x) for x in inputs]
        types = self.infer(*given, **attrs)
        func = self.func if is_script(self.func) else self.func(*given, **attrs)
        if not is_script(func):
            raise ArgumentError(
                f"a TVMScript function is needed, not {type(func).__name__}",
                fix="decorate it with @T.prim_func, or use func_type='te'",
            )
        wanted = parameter_types(func)
        if wanted is not None and wanted != (*given, *types):
            raise ShapeError(
                f"the kernel is made for {', '.join(map(str, wanted))}, "
                f"inputs and outputs are {', '.join(map(str, (*given, *types)))}",
                fix="call it with these types, or pass a function of the types that makes a kernel",
            )
        return self._checked(R, R.call_kernel(func, inputs, types, self.name), inputs, attrs)

    def _checked(
        self, R: Builder, result: Expr, inputs: tuple[Expr, ...], attrs: Attributes
    ) -> list[Expr]:
        promised = self.infer(*[R.type(x) for x in inputs], **attrs)
        parts = R.parts(result)
        self._same([R.type(p) for p in parts], promised)
        return parts


def _identifier(name: str) -> str:
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return name if name[:1].isalpha() else f"custom{name}"


def _unique(name: str, func: Any, kind: str) -> str:
    """A name that no other kernel has: compiled code is found by the names in its graph.

    A TVMScript function counts by its text; for other functions nobody can tell whether two are
    the same.
    """
    if kind == "tvmscript" and is_script(func):
        return f"{name}_{hashlib.sha256(func.script().encode()).hexdigest()[:12]}"
    return f"{name}_{next(_count)}"


# ---- what kinds of kernels :class:`tvmgraph.ops.Custom` takes, and how C functions are called ----
# MindSpore's convention for C functions is::
#
#     int f(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
#           void *stream, void *extra)
#
# with the inputs first and the outputs after them; 0 means success.

#: Every kind, and what it means.
KINDS = {
    "te": "a function of TVM tensor expressions",
    "tvmscript": "a TVMScript function, or a function of the input types that returns one",
    "pyfunc": "a function of NumPy arrays",
    "aot": "'library.so:function' with MindSpore's C signature",
}
#: MindSpore's kinds for other devices and for its own kernel languages.
_ELSEWHERE = {
    "akg": "write the kernel as a tensor expression (func_type='te')",
    "tbe": "write the kernel as a tensor expression (func_type='te')",
    "hybrid": "write the kernel in TVMScript (func_type='tvmscript')",
    "aicpu": "use func_type='aot' with a C function for the CPU",
    "julia": "use func_type='aot' with a C function, or 'pyfunc'",
}


def kind_of(func: object, given: str) -> str:
    """Returns the kind of a kernel.

    Args:
        func: The kernel.
        given: What the user said; empty to go by ``func``.

    Raises:
        ArgumentError: if there is no such kind, or ``func`` is not of that kind.
    """
    given = "pyfunc" if given == "numpy" else given
    if given and given not in KINDS:
        known = "; ".join(f"{name!r}: {meaning}" for name, meaning in KINDS.items())
        first = f"{_ELSEWHERE[given]}. " if given in _ELSEWHERE else ""
        raise ArgumentError(f"func_type cannot be {given!r}", fix=f"{first}use one of {known}")
    kind = given or ("aot" if isinstance(func, str) else "tvmscript" if is_script(func) else "te")
    if kind == "aot" and not isinstance(func, str):
        raise ArgumentError(f"'aot' needs 'library.so:function', not {type(func).__name__}")
    if kind != "aot" and not (callable(func) or is_script(func)):
        raise either(ArgumentError, TypeError)(
            f"func must be callable, not {type(func).__name__}", fix="pass a function"
        )
    return kind


def is_script(func: object) -> bool:
    """Whether a kernel is a TVMScript function.

    Args:
        func: What a user gave as a kernel.
    """
    return all(hasattr(func, name) for name in ("script", "params", "body"))


def parameter_types(func: Any) -> tuple[TensorType, ...] | None:
    """Returns the types that a TVMScript function is made for; None if its sizes vary.

    Args:
        func: A TVMScript function.
    """
    try:
        return tuple(tensor_type([int(d) for d in p.shape], str(p.dtype)) for p in func.params)
    except (TypeError, ValueError, AttributeError, RuntimeError):
        return None


def load_function(text: str, infer: Callable[..., tuple[TensorType, ...]]) -> Callable[..., object]:
    """Returns a function of NumPy arrays that calls a C function.

    Args:
        text: ``"library.so:function"``.
        infer: Output types of input types.

    Raises:
        ArgumentError: if the library cannot be loaded or lacks the function.
    """
    path, _, name = text.rpartition(":")
    if not path or not name:
        raise ArgumentError(f"{text!r} is not 'library.so:function'")
    try:
        function = getattr(ctypes.CDLL(os.path.abspath(path)), name)
    except OSError as e:
        raise ArgumentError(
            f"{path} cannot be loaded: {e}",
            fix="compile it with: g++ --shared -fPIC -O3 -o library.so source.cc",
        ) from None
    except AttributeError:
        raise ArgumentError(
            f"{path} has no function {name!r}", fix='declare it extern "C"'
        ) from None
    function.restype = ctypes.c_int

    def call(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        types = infer(*[tensor_type(a.shape, a.dtype) for a in arrays])
        given = [aligned_copy(a) for a in arrays]
        results = [aligned_empty(t.static_shape, t.dtype.numpy) for t in types]
        status = function(*_c_arguments([*given, *results]))
        if status != 0:
            raise CompileError(f"the C function returned {status}", fix="0 means success")
        return tuple(results)

    return call


def _c_arguments(arrays: Sequence[np.ndarray]) -> tuple[object, ...]:
    count = len(arrays)
    shapes = [(ctypes.c_int64 * max(1, a.ndim))(*a.shape) for a in arrays]
    pointers = [ctypes.cast(s, ctypes.POINTER(ctypes.c_int64)) for s in shapes]
    return (
        ctypes.c_int(count),
        (ctypes.c_void_p * count)(*[a.ctypes.data for a in arrays]),
        (ctypes.c_int * count)(*[a.ndim for a in arrays]),
        (ctypes.POINTER(ctypes.c_int64) * count)(*pointers),
        (ctypes.c_char_p * count)(*[str(a.dtype).encode() for a in arrays]),
        None,
        None,
    )


# ---- registration -------------------------------------------------------------------------------


_KINDS = {
    "None": "", "BOOL": "bool", "C64": "complex64", "C128": "complex128", "BF16": "bfloat16",
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"{s}{b}": f"{k}int{b}" for s, k in (("I", ""), ("U", "u")) for b in (8, 16, 32, 64)},
}  # fmt: skip
#: Formats that are called otherwise in the names.
_FORMATS = {
    "None": "", "Default": "DefaultFormat", "5HD": "NC1HWC0", "FracZ": "FRACTAL_Z",
    "FracNZ": "FRACTAL_NZ", "FracZNLSTM": "FRACTAL_ZN_LSTM", "FracZNRNN": "FRACTAL_ZN_RNN",
    "ND_RNNBIAS": "ND_RNN_BIAS",
}  # fmt: skip
_PLAIN = "C1HWNCoC0 ChannelLast DHWCN FRACTAL_Z_3D HWCN NC1HWC0 NCDHW NCHW NDC1HWC0 NDHWC NHWC"


class _Formats(type):
    """Reads names of formats when they are asked for; there are some hundreds."""

    def __getattr__(cls, name: str) -> tuple[str, ...]:
        kind, _, layout = name.partition("_")
        layout, _, many = layout.partition("Default_") if "Default_" in layout else (layout, "", "")
        format = "DefaultFormat" if many else _FORMATS.get(layout, layout)
        known = format in _FORMATS.values() or format in _PLAIN.split()
        if kind not in _KINDS or not known or many not in ("", "Tuple", "List"):
            raise AttributeError(f"DataType has no format {name!r}")
        return (_KINDS[kind], format, *([many.lower()] if many else ()))


class DataType(metaclass=_Formats):
    """Pairs of a dtype and a format: ``DataType.F16_Default`` is ``("float16", "DefaultFormat")``.

    Example:
        >>> ops.DataType.I8_NHWC
        ('int8', 'NHWC')
    """


class CustomRegOp:
    """Collects what an operator takes and gives, for ``ops.Custom(reg_info=...)``.

    Args:
        op_name: Its name.

    Raises:
        ArgumentError: if the name is no text or blank.

    Example:
        >>> info = ops.CustomRegOp("twice").input(0, "x").output(0, "y").target("CPU")
        >>> info.dtype_format(("float32", "NCHW"), ("float32", "NCHW")).get_op_info()["outputs"]
        [{'index': 0, 'name': 'y', 'paramType': 'required'}]
    """

    def __init__(self, op_name: str = "Custom") -> None:
        if not isinstance(op_name, str) or not op_name.strip():
            reject(ArgumentError, "CustomRegOp", f"op_name cannot be {op_name!r}")
        self._info: dict[str, object] = {"op_name": op_name}
        self._inputs: list[dict[str, object]] = []
        self._outputs: list[dict[str, object]] = []
        self._attrs: list[dict[str, object]] = []
        self._formats: list[tuple[tuple[str, ...], ...]] = []
        self._target: str | None = "UnKnown"

    def input(
        self, index: int | None = None, name: str | None = None,
        param_type: str | None = "required", **kwargs: object,
    ) -> Self:  # fmt: skip
        """Says what an input is.

        Args:
            index: Which.
            name: Its name.
            param_type: ``"required"``, ``"optional"``, or ``"dynamic"`` for several tensors.
            kwargs: Whatever else is to be kept of it.
        """
        self._inputs.append(_described(index, name, paramType=param_type) | kwargs)
        return self

    def output(
        self, index: int | None = None, name: str | None = None,
        param_type: str | None = "required", **kwargs: object,
    ) -> Self:  # fmt: skip
        """Says what an output is.

        Args:
            index: Which.
            name: Its name.
            param_type: ``"required"``, ``"optional"``, or ``"dynamic"`` for several tensors.
            kwargs: Whatever else is to be kept of it.
        """
        self._outputs.append(_described(index, name, paramType=param_type) | kwargs)
        return self

    def attr(
        self, name: str | None = None, param_type: str | None = None,
        value_type: str | None = None, default_value: str | None = None, **kwargs: object,
    ) -> Self:  # fmt: skip
        """Says what an attribute is.

        Args:
            name: Its name.
            param_type: ``"required"`` or ``"optional"``.
            value_type: Such as ``"int"`` or ``"listFloat"``.
            default_value: What it is where none is given, as text.
            kwargs: Whatever else is to be kept of it.
        """
        words = {"paramType": param_type, "type": value_type, "defaultValue": default_value}
        self._attrs.append(_described(None, name, **words) | kwargs)
        return self

    def dtype_format(self, *args: tuple[str, ...]) -> Self:
        """Adds one combination of dtypes and formats.

        Args:
            args: A pair for every input and output, as :class:`DataType` has them.

        Raises:
            ArgumentError: if there are more or fewer pairs, or one is no pair.
        """
        count = len(self._inputs) + len(self._outputs)
        if len(args) != count:
            reject(ArgumentError, "CustomRegOp.dtype_format",
                   f"{count} inputs and outputs have {len(args)} formats")  # fmt: skip
        for pair in args:
            if not isinstance(pair, tuple) or len(pair) not in (2, 3):
                reject(ArgumentError, "CustomRegOp.dtype_format",
                       f"{pair!r} is no pair of dtype and format")  # fmt: skip
        self._formats.append(args)
        return self

    def target(self, target: str | None = None) -> Self:
        """Says for which processor the description holds.

        Args:
            target: ``"CPU"``, ``"GPU"`` or ``"Ascend"``; None for the current one.
        """
        self._target = target
        return self

    def get_op_info(self) -> dict[str, object]:
        """Returns what was said as a dict with the keys of MindSpore's."""
        return self._info | {
            "inputs": self._inputs, "outputs": self._outputs, "attr": self._attrs,
            "fusion_type": "", "dtype_format": self._formats, "target": self._target,
        }  # fmt: skip


def _described(index: int | None, name: str | None, **words: str | None) -> dict[str, object]:
    """The words that were given; None leaves one out."""
    return {k: v for k, v in {"index": index, "name": name, **words}.items() if v is not None}
