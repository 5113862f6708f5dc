"""Which calls have complex operands, and what NumPy computes of them at once."""

from __future__ import annotations

from collections.abc import Mapping

from tvmgraph import dtypes
from tvmgraph.core import kinds
from tvmgraph.core.memory import require_memory
from tvmgraph.core.op import OfComplex, Op
from tvmgraph.core.types import TensorType
from tvmgraph.errors import TvmgraphError


def is_complex(types: list[TensorType], attrs: Mapping[str, object]) -> bool:
    """Whether an operator gets or makes complex elements.

    Args:
        types: Types of its operands.
        attrs: Its attributes.
    """
    given = [t.dtype for t in types]
    return any(d in dtypes.COMPLEX for d in (*given, attrs.get("dtype")))


def numpy_column(op: Op, types: list[TensorType], attrs: Mapping[str, object]) -> OfComplex | None:
    """Returns what NumPy computes of complex operands; ``None`` where the form has to say it.

    It computes in one complex dtype. Numbers and parts of that dtype join in where the row
    promotes its operands. What is wrong with others, the operators of the form say.

    Args:
        op: The operator.
        types: Types of its operands, of which some are complex.
        attrs: Its attributes.
    """
    given = [t.dtype for i, t in enumerate(types) if i not in op.indices]
    wide = attrs.get("dtype", next((d for d in given if d in dtypes.COMPLEX), None))
    part = dtypes.float64 if wide is dtypes.complex128 else dtypes.float32
    mixes = op.promote is not None or "dtype" in attrs
    if op.of_complex is None or not isinstance(wide, dtypes.DType):
        return None
    if not all(d is wide or (mixes and d is part) for d in given):
        return None
    try:
        for name, words in op.kinds.items():
            kinds.require(name, attrs[name], words)
        real = [t.with_dtype(part) if t.dtype is wide else t for t in types]
        result = op.infer(*real, **attrs)
        results = result if isinstance(result, tuple) else (result,)
        require_memory([t.with_dtype(wide) for t in results])
    except TvmgraphError:
        return None
    return op.of_complex
