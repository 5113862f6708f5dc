"""Types of what a row's columns are handed: arrays, expressions, and the builders that make them.

Rows import neither TVM nor ONNX, so what they may do with either is written down here; the builders
are :class:`tvmgraph.lowering.builder.RelaxBuilder` and :class:`tvmgraph.export.onnx.OnnxBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from tvmgraph.core.arguments import DTypeLike
    from tvmgraph.core.sizes import Dim
    from tvmgraph.core.tensor import Tensor
    from tvmgraph.core.types import Shape, TensorType
    from tvmgraph.dtypes import DType


#: A number, or a tensor of one element: what changes from step to step, such as a learning rate.
NumberLike: TypeAlias = "int | float | Tensor"
#: A shape, or the one size of a tensor with one axis.
ShapeLike: TypeAlias = "int | Dim | Sequence[int | Dim] | Tensor"


class Expr(Protocol):
    """A value of a formula: an expression of TVM (Relax, a TE tensor or an element) or an array.

    Comparisons give such values, too, and no bool.
    """

    @property
    def shape(self) -> Sequence[Any]:
        """Its extents."""
        ...

    @property
    def dtype(self) -> Any:
        """TVM's or NumPy's name of its element type."""
        ...

    @property
    def ty(self) -> Any:
        """TVM's type of it."""
        ...

    def astype(self, dtype: object, /) -> Expr:
        """Converts it to another element type.

        Args:
            dtype: TVM's or NumPy's name of the type.
        """
        ...

    def __call__(self, *index: object) -> Expr: ...
    def __getitem__(self, index: object, /) -> Expr: ...
    def __neg__(self) -> Expr: ...
    def __invert__(self) -> Expr: ...
    def __add__(self, other: object, /) -> Expr: ...
    def __radd__(self, other: object, /) -> Expr: ...
    def __sub__(self, other: object, /) -> Expr: ...
    def __rsub__(self, other: object, /) -> Expr: ...
    def __mul__(self, other: object, /) -> Expr: ...
    def __rmul__(self, other: object, /) -> Expr: ...
    def __truediv__(self, other: object, /) -> Expr: ...
    def __rtruediv__(self, other: object, /) -> Expr: ...
    def __floordiv__(self, other: object, /) -> Expr: ...
    def __mod__(self, other: object, /) -> Expr: ...
    def __and__(self, other: object, /) -> Expr: ...
    def __or__(self, other: object, /) -> Expr: ...
    def __xor__(self, other: object, /) -> Expr: ...
    def __lshift__(self, other: object, /) -> Expr: ...
    def __rshift__(self, other: object, /) -> Expr: ...
    def __lt__(self, other: object, /) -> Expr: ...
    def __le__(self, other: object, /) -> Expr: ...
    def __gt__(self, other: object, /) -> Expr: ...
    def __ge__(self, other: object, /) -> Expr: ...
    def __eq__(self, other: object, /) -> Expr: ...  # pyright: ignore[reportIncompatibleMethodOverride]
    def __ne__(self, other: object, /) -> Expr: ...  # pyright: ignore[reportIncompatibleMethodOverride]


class Formulas(Protocol):
    """The functions that a formula may call, by NumPy's names, on arrays or elements of TVM.

    Attributes:
        dtype: Name of the dtype that is computed in.
    """

    dtype: str

    def const(self, value: float) -> Expr:
        """Returns a constant of the dtype that the formula computes in.

        Args:
            value: The number.
        """
        ...

    def let(self, value: Expr, body: Callable[[Expr], Expr]) -> Expr:
        """Computes ``body(value)`` with the value bound once, however often it is used.

        Args:
            value: What is computed once.
            body: Makes the rest of the formula of it.
        """
        ...

    def __getattr__(self, name: str) -> Callable[..., Expr]: ...


class Builder(Protocol):
    """What the ``lower`` column of a row may use; see ``RelaxBuilder`` for what it does."""

    marks_casts: bool

    @property
    def op(self) -> ModuleType:
        """The ``relax.op`` namespace."""
        ...

    @property
    def nn(self) -> ModuleType:
        """The ``relax.op.nn`` namespace."""
        ...

    @property
    def te(self) -> ModuleType:
        """Tensor expressions."""
        ...

    @property
    def tir(self) -> ModuleType:
        """TIR expressions and intrinsics."""
        ...

    @property
    def topi(self) -> ModuleType:
        """TVM's operator inventory."""
        ...

    outline: Callable[..., Expr]

    def emit(self, expr: Expr) -> Expr:
        """Binds an expression to a variable, so that its type is known.

        Args:
            expr: The expression; its operands are variables or constants.
        """
        ...

    def emit_te(self, function: Callable[..., object], *args: object, **kwargs: object) -> Expr:
        """Emits a kernel written as a tensor expression: ``function(*te_tensors, **kwargs)``.

        Args:
            function: Builds the expression.
            *args: Its operands.
            **kwargs: Keyword arguments of ``function``; or ``written_as`` and ``declared``, see
                ``RelaxBuilder``.
        """
        ...

    def cast(self, x: Expr, dtype: str) -> Expr:
        """Returns an expression that converts a tensor, and rounds whatever kernel it becomes.

        Args:
            x: A tensor.
            dtype: The type that its elements get.
        """
        ...

    def host_call(self, function: Callable[..., object], key: str, args: Sequence[Expr]) -> Expr:
        """Returns a call of a Python function, which gives its first argument back.

        Args:
            function: Takes one array per argument.
            key: Identifies it; functions of one key do the same.
            args: What it is called with.
        """
        ...

    def numpy_column(
        self,
        name: str,
        attrs: Mapping[str, object],
        args: Sequence[Expr],
        types: Sequence[TensorType],
    ) -> Expr:
        """Returns a call of a row's NumPy column, for what no kernel can do.

        Args:
            name: The row.
            attrs: Its attributes: numbers, strings and tuples of them.
            args: Its operands.
            types: Types of its results.
        """
        ...

    def at_least(self, x: Expr, size: Dim, least: int, likes: Sequence[Expr] = ()) -> Expr:
        """Returns a copy of a tensor if a size is large enough; the code raises if it is not.

        Args:
            x: The tensor.
            size: A symbolic size, which is known at run time.
            least: The smallest value that is allowed.
        """
        ...

    def const(self, value: object, dtype: str) -> Expr:
        """Returns a constant of a number or array.

        Args:
            value: A number or an array.
            dtype: The type that it gets.
        """
        ...

    def empty(self, t: TensorType) -> Expr:
        """Returns a tensor without elements.

        Args:
            t: Its type, one of whose extents is 0.
        """
        ...

    def type(self, expr: Expr) -> TensorType:
        """Returns the tensor type of a bound expression.

        Args:
            expr: A variable or constant that holds one tensor.
        """
        ...

    def unfolded(self, lower: LowerColumn, *args: Expr) -> Expr:
        """Emits ``lower(R, *args)`` of floats so that TVM folds no literal zero.

        Args:
            lower: The ``lower`` column of an elementwise operator.
            *args: Its operands.
        """
        ...

    def shape(self, shape: Shape) -> list[Expr]:
        """Converts a shape to Relax dimensions; symbolic dims become TIR variables.

        Args:
            shape: Ints and symbolic dims, outermost axis first.
        """
        ...

    def dim(self, dim: Dim) -> Expr:
        """Returns the TIR expression of a symbolic dimension.

        Args:
            dim: The dimension; its roots are axes of parameters or sizes that :meth:`bind` made.
        """
        ...

    def extent(self, size: int | Dim) -> Any:
        """Returns a size as an int or a TIR expression, to be passed to :meth:`emit_te`.

        Args:
            size: An int or a symbolic dim.
        """
        ...

    def int64(self, size: int | Expr) -> Expr:
        """Returns an extent that :meth:`extent` gave as a TIR expression.

        Args:
            size: An int or a TIR expression.
        """
        ...

    def size(self, dim: Dim, extents: Mapping[str, object]) -> Expr:
        """Returns a symbolic size as an expression of the extents of its roots.

        Args:
            dim: A symbolic dimension.
            extents: Name of a root -> its extent, an int or a TIR expression.
        """
        ...

    def relax_type(self, t: TensorType) -> Any:
        """Converts a tensor type; complex elements are pairs of reals along a last axis.

        Args:
            t: The type of a value of the graph.
        """
        ...

    def inline(
        self, function: Callable[..., object], args: Sequence[Expr], attrs: Mapping[str, object]
    ) -> Expr:
        """Lowers a row as a composition of others: what a function does with operators.

        Args:
            function: The composition: a function of tensors.
            args: Its operands as Relax expressions.
            attrs: Its keyword arguments.
        """
        ...

    def bind(self, size: str, value: Expr) -> Expr:
        """Makes the value of a 0-d int64 tensor a size, and returns it as a TIR variable.

        Args:
            size: The name of the size, such as ``u0``.
            value: The tensor, on the CPU.
        """
        ...

    def fresh(self, name: str) -> str:
        """Returns a function name that is used once in the module.

        Args:
            name: What the name begins with.
        """
        ...

    def define(self, name: str, types: Sequence[TensorType], body: Callable[..., Expr]) -> Expr:
        """Defines a private function: ``body(*vars)`` returns its result.

        Args:
            name: What its name begins with.
            types: Types of its parameters.
            body: Gets a variable per parameter, and emits what computes the result.
        """
        ...

    def define_recursive(
        self,
        name: str,
        types: Sequence[TensorType],
        stub: Callable[..., Expr],
        make: Callable[[Expr], Callable[..., Expr]],
    ) -> Expr:
        """Defines a private function that calls itself.

        Args:
            name: What it is called.
            types: Types of its parameters.
            stub: Any body with a result of the right type.
            make: Returns the body, given the function itself.
        """
        ...

    def invoke(self, function: Expr, args: Sequence[Expr]) -> Expr:
        """Calls a function of the module.

        Args:
            function: What :meth:`define` returned.
            args: Expressions of the types of its parameters.
        """
        ...

    def branch(self, condition: Expr, then: Expr, orelse: Expr) -> Expr:
        """Chooses between two expressions, of which only one is evaluated.

        Args:
            condition: A 0-d bool tensor.
            then: The result where it is true.
            orelse: The result where it is false, of the same type.
        """
        ...

    def pack(self, values: Sequence[Expr]) -> Expr:
        """Makes the result of a function: a bare value, or a tuple of several.

        Args:
            values: The results, at least one.
        """
        ...

    def unpack(self, value: Expr, count: int) -> list[Expr]:
        """Takes the result of a function apart.

        Args:
            value: What :meth:`pack` made, emitted.
            count: How many values it holds.
        """
        ...

    def write(
        self,
        name: str,
        settings: str,
        inputs: Sequence[Expr],
        types: Sequence[TensorType],
        symbolic: bool = False,
    ) -> Expr:
        """Emits a kernel that only the schedule knows how to write.

        Args:
            name: Name of the kernel.
            settings: What it takes besides its operands.
            inputs: Its operands.
            types: Types of its results.
            symbolic: Whether it can do with extents that only the shapes of its inputs tell.
        """
        ...

    def call_kernel(
        self, function: object, inputs: Sequence[Expr], types: Sequence[TensorType], name: str
    ) -> Expr:
        """Emits a call of a finished TIR function whose last parameters are the outputs.

        Args:
            function: Buffers of the inputs, then of the outputs, are its parameters.
            inputs: The tensors it reads.
            types: Types of its outputs.
            name: Its name in the module; another one if that is taken.
        """
        ...

    def parts(self, value: Expr) -> list[Expr]:
        """Takes an emitted value apart, however many tensors it holds.

        Args:
            value: A variable that holds a tensor or a tuple of them.
        """
        ...


class OnnxNamed(Protocol):
    """A value of an ONNX graph: its name, and its type where the graph declares it."""

    name: str
    type: Any  # TensorType | None: operands of a row have one


class OnnxOps(Protocol):
    """What the ``onnx`` column of a row may use: every operator of ONNX by name, and helpers."""

    opset: int

    def dtype(self, d: DType) -> int:
        """Returns ONNX's number of a dtype.

        Args:
            d: A dtype of this package.
        """
        ...

    def const(self, value: object, dtype: DTypeLike | None = None) -> OnnxNamed:
        """Stores an array (int64 for Python integers) and returns its value.

        Args:
            value: A number, sequence or array.
            dtype: dtype of the elements; by default NumPy's for ``value``.
        """
        ...

    def size(self, size: int | Dim) -> OnnxNamed:
        """Returns a size as a 0-d int64 value: a constant, or computed from the shapes it is of.

        Args:
            size: A number, or a symbolic size whose roots are sizes of noted values.
        """
        ...

    def shape(self, sizes: Sequence[int | Dim]) -> OnnxNamed:
        """Returns sizes as a 1-d int64 value.

        Args:
            sizes: Numbers and symbolic sizes.
        """
        ...

    def full(self, sizes: Sequence[int | Dim], value: object, dtype: DTypeLike) -> OnnxNamed:
        """Returns a tensor of one number: a constant where its sizes are known.

        Args:
            sizes: Numbers and symbolic sizes.
            value: The number.
            dtype: Element type.
        """
        ...

    def positions(self, count: int | Dim) -> OnnxNamed:
        """Returns ``0, 1, ..., count - 1`` as int64 values.

        Args:
            count: How many there are.
        """
        ...

    def add(
        self, op_type: str, inputs: Sequence[object], outputs: int, attrs: Mapping[str, object]
    ) -> Any:
        """Adds one operator and returns its output, or a tuple when ``outputs`` is not 1.

        Args:
            op_type: Name of the operator in the newest opset this package writes.
            inputs: Values, arrays and numbers, which become constants, or ``None`` for what is
                omitted.
            outputs: How many outputs it has.
            attrs: Attributes; those that are ``None`` are left out.
        """
        ...

    def constant_of(self, x: OnnxNamed) -> np.ndarray | None:
        """Returns the elements of an operand when they are known.

        Args:
            x: A value, an array or number, or ``None``.

        Returns:
            Its elements; ``None`` for what is computed when the model runs.
        """
        ...

    def inline(self, graph: object, args: Sequence[OnnxNamed]) -> list[OnnxNamed]:
        """Adds the nodes of a closed graph and returns its outputs.

        Args:
            graph: A graph without weights: a region of control flow.
            args: What its parameters stand for.
        """
        ...

    def subgraph(
        self, name: str, inputs: Sequence[TensorType], body: Callable[..., Sequence[OnnxNamed]]
    ) -> object:
        """Builds the value of a graph attribute; it may read every value outside of it.

        Args:
            name: Its name.
            inputs: Types of its inputs.
            body: Adds its nodes; takes the inputs, returns the outputs with their types.
        """
        ...

    def like(self, number: float, x: OnnxNamed) -> OnnxNamed:
        """Returns a number in the element type of ``x``.

        Args:
            number: The number.
            x: The value whose element type it gets.
        """
        ...

    def __getattr__(self, op_type: str) -> Callable[..., Any]: ...


# ---- columns -----------------------------------------------------------------------------------
# Spelled by the number of operands, so that type checkers know the parameters of lambdas; of rows
# with attributes, which are keywords, they know nothing.

#: A column of a row with attributes.
_Keyworded: TypeAlias = Callable[..., Any]
#: Cotangents of the operands, ``None`` where there is none.
Cotangents: TypeAlias = "tuple[Tensor | None, ...]"
#: A formula, see :mod:`tvmgraph.ops.common.pointwise`.
Formula: TypeAlias = (
    Callable[[Formulas, Expr], Expr]
    | Callable[[Formulas, Expr, Expr], Expr]
    | Callable[[Formulas, Expr, Expr, Expr], Expr]
    | _Keyworded
)
#: What ``infer`` returns.
Inferred: TypeAlias = "TensorType | tuple[TensorType, ...]"
#: ``infer``.
InferColumn: TypeAlias = (
    Callable[["TensorType"], "Inferred"]
    | Callable[["TensorType", "TensorType"], "Inferred"]
    | _Keyworded
)
#: ``eager``.
EagerColumn: TypeAlias = (
    Callable[[np.ndarray], np.ndarray]
    | Callable[[np.ndarray, np.ndarray], np.ndarray]
    | Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    | _Keyworded
)
#: ``lower``, where it is a function.
LowerColumn: TypeAlias = (
    Callable[[Builder, Expr], Expr]
    | Callable[[Builder, Expr, Expr], Expr]
    | Callable[[Builder, Expr, Expr, Expr], Expr]
    | _Keyworded
)
#: ``vjp``, where it is a function.
VjpColumn: TypeAlias = (
    Callable[["Tensor", "Tensor", "Tensor"], "Cotangents"]
    | Callable[["Tensor", "Tensor", "Tensor", "Tensor"], "Cotangents"]
    | Callable[["Tensor", "Tensor", "Tensor", "Tensor", "Tensor"], "Cotangents"]
    | _Keyworded
)
#: ``onnx``, where it is a function.
OnnxColumn: TypeAlias = (
    Callable[[OnnxOps, OnnxNamed], OnnxNamed]
    | Callable[[OnnxOps, OnnxNamed, OnnxNamed], OnnxNamed]
    | Callable[[OnnxOps, OnnxNamed, OnnxNamed, OnnxNamed], OnnxNamed]
    | _Keyworded
)
