"""Names for TVM's types.

What TVM adds to its objects at run time, their fields and the operators of expressions, is declared
for type checkers in ``typings/tvm-stubs``.
"""

from __future__ import annotations

from tvm import ir, tirx

Expr = ir.Expr
Buffer = tirx.Buffer
Load = ir.TensorLoad
Var = tirx.Var
Func = tirx.PrimFunc
Module = ir.IRModule

#: Arithmetic of two operands ``a`` and ``b``; ``type(node)(a, b)`` makes it of others.
Binary = tirx.Add | tirx.Sub | tirx.Mul | tirx.Div | tirx.FloorDiv | tirx.FloorMod
#: Comparisons, likewise.
Comparison = tirx.EQ | tirx.NE | tirx.LT | tirx.LE | tirx.GT | tirx.GE

#: A function that carries this attribute is a finished kernel and is left alone.
SCHEDULED = "tirx.is_scheduled"
#: Attribute of a function that asks for a kernel by name: the name and its settings. Such a
#: function is not fused with others.
NAMED = "tvmgraph.named_kernel"
#: Attribute of an elementwise function: positions of operands and of the results that overwrite
#: them. The kernel has one parameter for both.
IN_PLACE = "tvmgraph.in_place"
#: Attribute of a kernel for a GPU whose loops and buffers are final.
FINAL = "tvmgraph.final_loops"

#: An index: an expression or a number.
Index = Expr | int


def dtype_of(value: Expr) -> str:
    """TVM's name of an expression's type, such as ``float32`` or ``int64x8``.

    Args:
        value: An expression with a type.
    """
    return str(value.ty.dtype)


def as_dtype(value: Expr, dtype: str) -> Expr:
    """An expression of a type, converted unless it is of that anyway.

    Args:
        value: An expression with a type.
        dtype: TVM's name of the type.
    """
    return value if dtype_of(value) == dtype else tirx.Cast(dtype, value)


def scalar_of(value: Expr) -> str:
    """TVM's name of the type of one lane of an expression; of an address, which has none, "".

    Args:
        value: An expression, also one of a pointer.
    """
    return str(getattr(value.ty, "dtype", "")).partition("x")[0]
