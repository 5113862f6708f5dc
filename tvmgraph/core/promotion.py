"""How mixed dtypes are unified before an operator sees its arguments.

A row names one of these policies in its ``promote`` column; the dispatch point asks for the dtype
of every argument and inserts explicit ``cast`` operators, so graphs never hold mixed arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeAlias

from tvmgraph import dtypes
from tvmgraph.core.types import TensorType
from tvmgraph.dtypes import DType

#: A tensor's dtype, or a number of Python or NumPy.
Operand: TypeAlias = object


def common(operands: Sequence[Operand]) -> DType:
    """Returns the dtype that all operands share after promotion.

    Args:
        operands: dtypes of tensors, and Python numbers; at least one.
    """
    tensors = [d for d in operands if isinstance(d, DType)]
    numbers = [n for n in operands if not isinstance(n, DType)]
    if tensors:
        return reduce(dtypes.promote_scalar, numbers, reduce(dtypes.promote, tensors))
    return reduce(dtypes.promote, map(dtypes.scalar_dtype, numbers))


def _to_float(d: DType) -> DType:
    return d if d.kind in "fc" else dtypes.float32


def _all_common(operands: Sequence[Operand]) -> list[DType]:
    return [common(operands)] * len(operands)


def _common_float(operands: Sequence[Operand]) -> list[DType]:
    return [_to_float(common(operands))] * len(operands)


def _no_bool(operands: Sequence[Operand]) -> list[DType]:
    d = common(operands)
    return [dtypes.int64 if d is dtypes.bool_ else d] * len(operands)


def _like_first(operands: Sequence[Operand]) -> list[DType]:
    first = common(operands[:1])
    return [first, *(common([o]) if isinstance(o, DType) else first for o in operands[1:])]


def _first_float(operands: Sequence[Operand]) -> list[DType]:
    is_tensor = isinstance(operands[0], DType)
    return [_to_float(common(operands[:1] if is_tensor else operands))] * len(operands)


POLICIES: dict[str, Callable[[Sequence[Operand]], list[DType]]] = {
    "common": _all_common,  # add, maximum, equal
    "common_float": _common_float,  # atan2: integers become float32
    "first_float": _first_float,  # copysign: the first tensor decides
    "scaled": _all_common,  # mul: as "common", but see `scaled`
    "scaled_float": _common_float,  # div
    "scaled_no_bool": _no_bool,  # fmod
    # exp, sqrt, matmul on integers: each operand on its own
    "float": lambda operands: [_to_float(common([o])) for o in operands],
    # cast, identity: operands stay as they are; one may be a number
    "each": lambda operands: [common([o]) for o in operands],
    "no_bool": _no_bool,  # sub, neg: bool becomes int64
    "bool": lambda operands: [dtypes.bool_] * len(operands),  # logical_and: of anything
    # where(condition, x, y): the first keeps its dtype
    "after_first": lambda operands: [common(operands[:1]), *_all_common(operands[1:])],
    "like_first": _like_first,  # numbers take the dtype of the first tensor
}


def scaled(policy: str | None, types: Sequence[TensorType]) -> list[DType]:
    """Returns the dtypes that a policy is to unify.

    A factor without axes does not widen what it scales, as in MindSpore (and PyTorch): float16
    times a float32 number in a tensor is float16, int8 times an int64 one int8.

    Args:
        policy: A key of :data:`POLICIES`, or ``None``.
        types: Types of the two operands.
    """
    found = [t.dtype for t in types]
    if policy is not None and policy.startswith("scaled") and found[0] is not found[1]:
        whole = [d for d, t in zip(found, types) if t.shape]
        alike = all(d.is_float for d in found) or all(d.is_integer for d in found)
        if alike and len(whole) == 1:
            return whole * 2
    return found


def targets(policy: str | None, operands: Sequence[Operand]) -> list[DType]:
    """Returns the dtype every operand must be cast to under ``policy``.

    Args:
        policy: A key of :data:`POLICIES`; ``None`` leaves tensors as they are.
        operands: dtypes of tensors, and Python numbers.
    """
    if policy is None:
        tensors = [d for d in operands if isinstance(d, DType)]
        like = tensors[0] if tensors else None
        return [
            d if isinstance(d, DType)
            else dtypes.promote_scalar(like, d) if like is not None
            else dtypes.scalar_dtype(d)
            for d in operands
        ]  # fmt: skip
    return POLICIES[policy](operands)
