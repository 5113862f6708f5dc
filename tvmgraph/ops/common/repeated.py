"""Lowering of integer functions that repeat a step until every element is done."""

from __future__ import annotations

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.types import TensorType


def lower_repeated(R: Builder, name: str, a: Expr, b: Expr) -> Expr:
    """Emits a function of two integer tensors that broadcast.

    Args:
        R: The builder.
        name: Which function the schedule is asked for: ``"power"`` or ``"divisor"``.
        a: The first operand.
        b: The second operand, of the same dtype.
    """
    result: TensorType = rules.elementwise(dtypes.INTEGERS)(R.type(a), R.type(b))
    if 0 in result.shape:
        return R.op.broadcast_to(R.const(0, result.dtype.name), R.shape(result.shape))
    wide = _wide(result.dtype)

    def operand(x: Expr) -> Expr:
        t = R.type(x)
        if t.dtype is not wide:
            x = R.emit(R.op.astype(x, wide.name))
        if t.shape == result.shape or (t.is_static and t.size == 1):
            return x
        return R.emit(R.op.broadcast_to(x, R.shape(result.shape)))

    kind = result.with_dtype(wide)
    y = R.write("repeated", name, [operand(a), operand(b)], [kind], symbolic=True)
    return y if wide is result.dtype else R.op.astype(y, result.dtype.name)


def _wide(dtype: dtypes.DType) -> dtypes.DType:
    """Integers that processors multiply in vectors: what they overflow by does not matter."""
    if dtype.itemsize < 4:
        return dtypes.int32
    return dtypes.int64 if dtype is dtypes.uint32 else dtype
