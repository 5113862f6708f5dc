"""The builder handed to the ``lower`` column of a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import ir, relax, te, tirx, topi
from tvm.s_tir import SBlock

from tvmgraph import dtypes
from tvmgraph.backend.loop_ir.half_rounding import rounded
from tvmgraph.backend.loop_ir.types import NAMED
from tvmgraph.backend.named import named_function
from tvmgraph.core.columns import Expr
from tvmgraph.core.op import Op
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import Dim, Shape, TensorType, tensor_type
from tvmgraph.errors import GraphError
from tvmgraph.graph.ir import Graph, Node
from tvmgraph.runtime import callback, native

#: TVM's operator pattern of what must not be fused.
_OPAQUE = 8


class RelaxBuilder:
    """What a row may use to lower itself; rows never import TVM.

    Attributes:
        op: The ``relax.op`` namespace.
        nn: The ``relax.op.nn`` namespace.
        te: Tensor expressions, for rows that Relax has no operator for.
        tir: TIR expressions and intrinsics.
        topi: TVM's operator inventory, to be called through :meth:`emit_te`.
        block: The underlying ``relax.BlockBuilder``.
        outline: Lowers a region to a private function and returns it.
        functions: What the nodes with regions defined before the function that holds them.
        hint: Names what is emitted; that of a node's result is its name in the graph.
        marks_casts: Whether kernels may leave out roundings to half precision that are not casts.
    """

    def __init__(self, block: relax.BlockBuilder) -> None:
        self.block = block
        self.op = relax.op
        self.nn = relax.op.nn
        self.te = te
        self.tir = tirx
        self.topi = topi
        self._dims: dict[str, object] = {}
        self._count = 0
        self.outline: Callable[[Graph], Any] = _not_ready
        self.functions: dict[Node, object] = {}
        self.hint = "value"
        self.marks_casts = False

    def emit(self, expr: relax.Expr) -> relax.Expr:
        """Binds an expression to a variable, so that its type is known.

        Args:
            expr: The expression; its operands are variables or constants.
        """
        return self.block.emit(expr, name_hint=self.hint)

    def emit_te(
        self,
        function: Callable[..., object],
        *args: object,
        written_as: tuple[str, object] | None = None,
        declared: Sequence[int] = (),
        **kwargs: object,
    ) -> relax.Expr:
        """Emits a kernel written as a tensor expression: ``function(*te_tensors, **kwargs)``.

        Args:
            function: Builds the expression.
            *args: Its operands.
            written_as: Name and settings of a kernel that the schedule knows how to write for the
                same result, where loops derived from the expression would be slow. Such a kernel
                is not fused with others.
            declared: Positions of operands that ``function`` does not read but a kernel for its
                sums may: a transformed weight. The block of the sums declares to read them.
            **kwargs: Further arguments of ``function`` or of ``call_te``.
        """
        if written_as is not None:
            kwargs["primfunc_attrs"] = {"op_pattern": _OPAQUE, NAMED: written_as}
        call = self.block.call_te(function, *args, **kwargs)
        if declared:
            assert isinstance(call, relax.Call)
            name = call.args[0]
            self.block.update_func(name, _declare_reads(self.block.get()[name], declared))
        return self.emit(call)

    def cast(self, x: relax.Expr, dtype: str) -> relax.Expr:
        """Returns an expression that converts a tensor, and rounds whatever kernel it becomes.

        Args:
            x: A tensor.
            dtype: The type that its elements get.
        """
        source = self.type(x).dtype
        if not self.marks_casts or not (source.is_float and source.itemsize > 2):
            return relax.op.astype(x, dtype)
        if dtype not in ("float16", "bfloat16"):
            return relax.op.astype(x, dtype)

        def converted(t: Expr) -> Any:
            return te.compute(t.shape, lambda *i: rounded(tirx.Cast(dtype, t(*i))), name="cast")

        return self.emit_te(converted, x)

    def host_call(
        self, function: Callable[..., object], key: str, args: Sequence[relax.Expr]
    ) -> relax.Expr:
        """Returns a call of a Python function, which gives its first argument back.

        Args:
            function: Takes one array per argument.
            key: Identifies it; functions of one key do the same.
            args: What it is called with.
        """
        callback.register(key, function)
        return relax.op.call_pure_packed(
            callback.NAME, tvm.ir.StringImm(key), *args, ty_args=[args[0].ty]
        )

    def numpy_column(
        self,
        name: str,
        attrs: Mapping[str, object],
        args: Sequence[object],
        types: Sequence[TensorType],
    ) -> relax.Expr:
        """Returns a call of a row's NumPy column, for what no kernel can do.

        Args:
            name: The row.
            attrs: Its attributes: numbers, strings and tuples of them.
            args: Its operands.
            types: Types of its results.
        """
        kinds = [self.relax_type(t) for t in types]
        asked = relax.ShapeExpr(callback.encoded(name, attrs, len(args)))
        given = relax.Tuple([*args, asked])
        return relax.op.call_dps_packed(
            callback.COLUMN, given, kinds if len(kinds) > 1 else kinds[0]
        )

    def at_least(
        self, x: relax.Expr, size: Dim, least: int, likes: Sequence[relax.Expr] = ()
    ) -> relax.Expr:
        """Returns a copy of a tensor if a size is large enough; the code raises if it is not.

        The call gives a constant back, and no memory that is planned to be free after it.

        Args:
            x: The tensor.
            size: A symbolic size, which is known at run time.
            least: The smallest value that is allowed.
            likes: What has the size, where nothing else needs it.
        """
        given = relax.ShapeExpr([self.dim(size), tirx.IntImm("int64", least)])
        one = self.emit(self.const(np.ones((1, 1, 1)), "uint8"))
        call = relax.op.call_pure_packed(native.AT_LEAST, one, given, *likes, ty_args=[one.ty])

        def copied(x: Expr, checked: Expr) -> Any:
            def element(*i: Expr) -> relax.Expr:
                zero = tirx.const(0, x.dtype)
                return tirx.if_then_else(checked(0, 0, 0) != tirx.const(0, "uint8"), x(*i), zero)

            return te.compute(x.shape, element, name="checked")

        return self.emit_te(copied, x, self.emit(call))

    def const(self, value: relax.Expr, dtype: str) -> relax.Expr:
        """Returns a constant of a number or array.

        Args:
            value: A number or an array.
            dtype: The type that it gets.
        """
        return constant(np.asarray(value), dtype)

    def empty(self, t: TensorType) -> relax.Expr:
        """Returns a tensor without elements.

        It is shaped at run time: TVM cannot load a constant of shape ``(3, 0)`` that it saved.

        Args:
            t: Its type, one of whose extents is 0.
        """
        kind = self.relax_type(t)
        flat = self.emit(relax.op.full((0,), relax.const(0, str(kind.dtype)), str(kind.dtype)))
        return relax.op.call_pure_packed(
            "vm.builtin.reshape", flat, relax.ShapeExpr(list(kind.shape)), ty_args=[kind]
        )

    def type(self, expr: relax.Expr) -> TensorType:
        """Returns the tensor type of a bound expression.

        Args:
            expr: A variable or constant that holds one tensor.
        """
        ty = expr.ty
        return tensor_type([_dim_of(d) for d in ty.shape], str(ty.dtype))

    def unfolded(self, lower: Callable[..., relax.Expr], *args: object) -> relax.Expr:
        """Emits ``lower(R, *args)`` of floats so that TVM folds no literal zero.

        It folds products with 0 to 0, which loses NaN and infinities, and sums to the other
        operand, which loses the sign of a zero. A zero is passed as a tensor of one element.

        Args:
            lower: The ``lower`` column of an elementwise operator.
            *args: Its operands.
        """
        shown = [_shown(x) if self.type(x).dtype.is_float else x for x in args]
        if all(x is y for x, y in zip(shown, args)):
            return lower(self, *args)
        result = self.emit(lower(self, *shown))
        has_axes = any(self.type(x).ndim for x in args)
        return result if has_axes else self.op.reshape(result, ())

    def shape(self, shape: Shape) -> list[Any]:
        """Converts a shape to Relax dimensions; symbolic dims become TIR variables.

        Args:
            shape: Ints and symbolic dims, outermost axis first.
        """
        return [self.dim(d) if isinstance(d, Dim) else tirx.IntImm("int64", d) for d in shape]

    def dim(self, dim: Dim) -> Any:
        """Returns the TIR expression of a symbolic dimension.

        Args:
            dim: The dimension; its roots are axes of parameters or sizes that :meth:`bind` made.
        """
        for root in dim.roots:
            self._dims.setdefault(root, tirx.Var(root, "int64"))
        return self.size(dim, self._dims)

    def extent(self, size: object) -> object:
        """Returns a size as an int or a TIR expression, to be passed to :meth:`emit_te`.

        Args:
            size: An int or a symbolic dim.
        """
        return self.dim(size) if isinstance(size, Dim) else int(size)

    def int64(self, size: object) -> Any:
        """Returns an extent that :meth:`extent` gave as a TIR expression.

        Args:
            size: An int or a TIR expression.
        """
        return tirx.IntImm("int64", size) if isinstance(size, int) else size

    def size(self, dim: Dim, extents: Mapping[str, object]) -> Any:
        """Returns a symbolic size as an expression of the extents of its roots.

        Args:
            dim: A symbolic dimension.
            extents: Name of a root -> its extent, an int or a TIR expression.
        """
        return dim.evaluate(extents)

    def relax_type(self, t: TensorType) -> relax.TensorType:
        """Converts a tensor type; complex elements are pairs of reals along a last axis.

        Args:
            t: The type of a value of the graph.
        """
        if t.dtype in dtypes.COMPLEX:
            return relax.TensorType([*self.shape(t.shape), 2], f"float{t.dtype.itemsize * 4}")
        return relax.TensorType(self.shape(t.shape), t.dtype.name)

    def apply(self, op: Op, args: Sequence[object], attrs: Mapping[str, object]) -> Any:
        """Returns what the ``lower`` column of a row gives.

        Args:
            op: The row.
            args: Its operands as Relax expressions.
            attrs: The attributes of the node.
        """
        if not isinstance(op.lower, str):
            return op.lower(self, *args, **attrs)
        found: Any = self.op
        for part in op.lower.split("."):
            found = getattr(found, part)
        return found(*args, **attrs)

    def inline(
        self, function: Callable[..., Any], args: Sequence[Any], attrs: Mapping[str, object]
    ) -> Any:
        """Lowers a row as a composition of others: what a function does with operators.

        Args:
            function: The composition: a function of tensors.
            args: Its operands as Relax expressions.
            attrs: Its keyword arguments.

        Returns:
            The expression of its result, or a list of several.
        """
        interpreter = _Inline(self)
        with state.interpreting(interpreter):
            result = function(*[_Lowered(a, self.type(a)) for a in args], **attrs)
        if isinstance(result, Tensor):
            return interpreter.expr(result)
        return [interpreter.expr(t) for t in result]

    def bind(self, size: str, value: relax.Expr) -> tvm.ir.Expr:
        """Makes the value of a 0-d int64 tensor a size, and returns it as a TIR variable.

        Args:
            size: The name of the size, such as ``u0``.
            value: The tensor, on the CPU.
        """
        shape = self.emit(relax.op.tensor_to_shape(self.emit(relax.op.reshape(value, (1,)))))
        variable = self.dim(Dim(size))
        self.block.match_cast(shape, relax.ShapeType([variable]))
        return variable

    # ---- functions and control flow ---------------------------------------------------------

    def fresh(self, name: str) -> str:
        """Returns a function name that is used once in the module.

        Args:
            name: What the name begins with.
        """
        self._count += 1
        return f"{name}{self._count}"

    def define(
        self, name: str, types: Sequence[TensorType], body: Callable[..., relax.Expr]
    ) -> tvm.ir.GlobalVar:
        """Defines a private function: ``body(*vars)`` returns its result.

        Args:
            name: What its name begins with.
            types: Types of its parameters.
            body: Gets a variable per parameter, and emits what computes the result.
        """
        self.start_function()
        params = [relax.Var(f"p{i}", self.relax_type(t)) for i, t in enumerate(types)]
        with self.block.function(self.fresh(name), params, private=True):
            function = self.block.emit_func_output(self.emit(body(*params)))
        return function

    def define_recursive(
        self, name: str, types: Sequence[TensorType], stub: Callable[..., object],
        make: Callable[[tvm.ir.GlobalVar], Callable[..., relax.Expr]],
    ) -> tvm.ir.GlobalVar:  # fmt: skip
        """Defines a private function that calls itself.

        Args:
            name: What it is called.
            types: Types of its parameters.
            stub: Any body with a result of the right type.
            make: Returns the body, given the function itself.
        """
        function = self.define(name, types, stub)
        real = self.define(name, types, make(function))
        again = relax.utils.copy_with_new_vars(self.block.get()[real])
        self.block.update_func(function, again)
        return function

    def invoke(self, function: object, args: Sequence[object]) -> relax.Call:
        """Calls a function of the module.

        Args:
            function: What :meth:`define` returned.
            args: Expressions of the types of its parameters.
        """
        return relax.Call(function, list(args))

    def branch(self, condition: object, then: relax.Expr, orelse: relax.Expr) -> relax.If:
        """Chooses between two expressions, of which only one is evaluated.

        Args:
            condition: A 0-d bool tensor.
            then: The result where it is true.
            orelse: The result where it is false, of the same type.
        """
        return relax.If(condition, then, orelse)

    def pack(self, values: Sequence[object]) -> Any:
        """Makes the result of a function: a bare value, or a tuple of several.

        Args:
            values: The results, at least one.
        """
        return values[0] if len(values) == 1 else relax.Tuple(list(values))

    def unpack(self, value: relax.Expr, count: int) -> list[relax.Expr]:
        """Takes the result of a function apart.

        Args:
            value: What :meth:`pack` made, emitted.
            count: How many values it holds.
        """
        if count == 1:
            return [value]
        return [self.emit(relax.TupleGetItem(value, i)) for i in range(count)]

    def write(
        self, name: str, settings: str, inputs: Sequence[object], types: Sequence[TensorType],
        symbolic: bool = False,
    ) -> relax.Expr:  # fmt: skip
        """Emits a kernel that only the schedule knows how to write.

        Args:
            name: Name of the kernel.
            settings: What it takes besides its operands.
            inputs: Its operands.
            types: Types of its results.
            symbolic: Whether it can do with extents that only the shapes of its inputs tell.
        """
        kinds = [*(self.type(x) for x in inputs), *types]
        sizes: dict[Dim, object] = {}  # a function has variables of its own

        def extent(d: int | Dim) -> object:
            if isinstance(d, int):
                return d
            return sizes.setdefault(d, tirx.Var(f"n{len(sizes)}", "int64"))

        shapes = [
            ([extent(d) for d in (t.shape if symbolic else t.static_shape)], t.dtype.name)
            for t in kinds
        ]
        function = named_function(name, settings, shapes)
        found = self.block.add_func(function, name)
        out = [self.relax_type(t) for t in types]
        return self.emit(relax.call_tir(found, list(inputs), out if len(out) > 1 else out[0]))

    def call_kernel(
        self,
        function: tirx.PrimFunc,
        inputs: Sequence[object],
        types: Sequence[TensorType],
        name: str,
    ) -> relax.Expr:
        """Emits a call of a finished TIR function whose last parameters are the outputs.

        Args:
            function: Buffers of the inputs, then of the outputs, are its parameters.
            inputs: The tensors it reads.
            types: Types of its outputs.
            name: Its name in the module; another one if that is taken.
        """
        found = self.block.add_func(function.with_attr("global_symbol", name), name)
        out = [self.relax_type(t) for t in types]
        return self.emit(relax.call_tir(found, list(inputs), out if len(out) > 1 else out[0]))

    def parts(self, value: relax.Expr) -> list[relax.Expr]:
        """Takes an emitted value apart, however many tensors it holds.

        Args:
            value: A variable that holds a tensor or a tuple of them.
        """
        kind = value.ty
        return self.unpack(value, len(kind.fields) if isinstance(kind, relax.TupleType) else 1)

    def start_function(self) -> None:
        """Forgets the symbolic dims of the previous function."""
        self._dims = {}


def is_empty(t: TensorType) -> bool:
    """Whether a tensor is known to hold no element.

    Args:
        t: A type; a symbolic size counts as not zero.
    """
    return any(d.__class__ is int and d == 0 for d in t.shape)


def _not_ready(graph: Graph) -> tvm.ir.GlobalVar:
    raise GraphError("outline is set by the lowering", op=graph.name)


def _dim_of(d: object) -> int | Dim:
    if isinstance(d, tirx.IntImm):
        return int(d)
    return Dim.parse(str(d).replace("T.int64", ""))


def _shown(arg: object) -> Any:
    """A literal zero as a tensor of one element."""
    if not isinstance(arg, tvm.ir.GenericConst) or len(arg.ty.shape):
        return arg
    array = np.asarray(arg.value.numpy())
    return arg if array.item() else constant(array.reshape(1), str(arg.ty.dtype))


def constant(array: np.ndarray, dtype: str) -> relax.Expr:
    """Returns a Relax constant with an explicit dtype.

    Args:
        array: Its elements; complex ones become pairs of reals along a last axis.
        dtype: Name of its dtype in TVM.
    """
    if array.dtype.kind == "c":
        array = np.stack((np.real(array), np.imag(array)), -1)
        dtype = str(array.dtype)
    host = np.ascontiguousarray(array, dtypes.dtype_of(dtype).numpy)
    return relax.const(tvm.runtime.tensor(host.reshape(array.shape)), dtype)  # it lifts 0-d to 1-d


def unpack(result: object, count: int) -> Sequence[object]:
    """Splits what a row's ``lower`` column returned into ``count`` expressions.

    Args:
        result: An expression, a tuple of Relax, or a list or tuple of expressions.
        count: Number of results of the row.
    """
    if isinstance(result, (list, tuple)):
        return list(result)
    if count == 1 and not isinstance(getattr(result, "ty", None), relax.TupleType):
        return [result]
    return [relax.TupleGetItem(result, i) for i in range(count)]


def _declare_reads(func: tirx.PrimFunc, operands: Sequence[int]) -> tirx.PrimFunc:
    """Adds whole operands to the regions that the reductions of a function read."""
    whole = [
        tirx.BufferRegion(buffer, [ir.Range(0, extent) for extent in buffer.shape])
        for buffer in (func.params[position] for position in operands)
    ]

    def visit(block: SBlock) -> SBlock:
        if block.init is None:
            return block
        return SBlock(
            block.iter_vars, [*block.reads, *whole], block.writes, block.name_hint, block.body,
            block.init, block.alloc_buffers, block.match_buffers, block.annotations,
        )  # fmt: skip

    return func.with_body(tvm_ffi.structural_map(func.body, (SBlock, visit)))


# ---- lowering a row as a composition of other rows -----------------------------------------------


class _Lowered(Tensor):
    """A tensor that stands for a Relax expression."""

    __slots__ = ("expr",)

    def __init__(self, expr: Any, type: TensorType) -> None:
        self.expr, self.aval, self._ffi = expr, type, None

    @property
    def shape(self) -> tuple[Any, ...]:
        """Size of every axis."""
        return self.aval.shape

    @property
    def size(self) -> Any:
        """Number of elements."""
        return math.prod(self.aval.shape)


class _Inline:
    """The interpreter that lowers every operator as it is applied."""

    symbols = None  # sizes are compared as they are written
    sizes: Mapping[str, object] = {}  # and not computed with

    def __init__(self, R: RelaxBuilder) -> None:
        self.R = R

    def run(
        self, op: Op, args: tuple[Tensor, ...], attrs: Mapping[str, object],
        types: tuple[TensorType, ...],
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Lowers one operator."""
        exprs = [self.expr(a) for a in args]
        if all(map(is_empty, types)):
            results = [self.R.empty(t) for t in types]
        else:
            results = unpack(self.R.apply(op, exprs, attrs), len(types))
        return tuple([_Lowered(self.R.emit(e), t) for e, t in zip(results, types)])

    def created(self, tensor: Tensor) -> None:
        """Host data become constants."""

    def snapshot(self, tensor: Tensor) -> Tensor:
        """Returns the tensor, which nothing changes."""
        return tensor

    def expr(self, tensor: Tensor) -> Any:
        """Returns the expression that a tensor stands for, or a constant."""
        if isinstance(tensor, _Lowered):
            return tensor.expr
        return self.R.const(tensor.array, tensor.aval.dtype.name)
