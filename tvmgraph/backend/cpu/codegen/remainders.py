"""Writes quotients and remainders of indices that run backwards so that TVM keeps their values.

TVM takes the indices of a loop apart into pieces of its variable (``iter_map_simplify``), and for
``(4 - v) % 3`` loses the 4: a tensor that is repeated and then reversed would be read from the
wrong end. Of variables that are added it loses nothing: ``(4 - v) % 3`` is ``2 - (v - 2) % 3``.
"""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import tirx

from tvmgraph.backend.loop_ir.types import Expr


@tirx.transform.prim_func_pass(opt_level=0, name="tvmgraph.KeepRemainders")
def keep_remainders(
    func: tirx.PrimFunc, _mod: tvm.IRModule, _context: tvm.transform.PassContext
) -> tirx.PrimFunc:
    """Divides what falls with a variable by way of what rises with it.

    Args:
        func: A function of loops.
    """
    callbacks = [(tirx.FloorMod, _mirrored), (tirx.FloorDiv, _mirrored)]
    return func.with_body(tvm_ffi.structural_map(func.body, callbacks))


def _mirrored(node: tirx.FloorDiv | tirx.FloorMod) -> Expr:
    kind, a, b = type(node), node.a, node.b
    if not isinstance(b, tirx.IntImm) or not int(b) or (isinstance(a, tirx.Var) and int(b) > 0):
        return node
    if int(b) < 0:  # what the simplifier makes of -v % 3
        other = _mirrored(kind(_negated(a, 0), tirx.IntImm(b.ty.dtype, -int(b))))
        return 0 - other if kind is tirx.FloorMod else other
    if not _falls(a):
        return node
    other = kind(_negated(a, int(b) - 1), b)
    return (b - 1) - other if kind is tirx.FloorMod else 0 - other


def _negated(index: Expr, plus: int) -> Expr:
    """``plus - index``, with the signs of its terms changed."""
    if isinstance(index, tirx.IntImm):
        return tirx.IntImm(index.ty.dtype, plus - int(index))
    if isinstance(index, tirx.Add):
        return _negated(index.a, plus) + _negated(index.b, 0)
    if isinstance(index, tirx.Sub):
        return _negated(index.a, plus) + index.b
    if isinstance(index, tirx.Mul) and isinstance(index.b, tirx.IntImm):
        return index.a * -int(index.b) + plus  # pyright: ignore[reportOperatorIssue]
    return plus - index


def _falls(index: object) -> bool:
    """Whether something that varies is subtracted in an index."""
    found: list[bool] = []

    def product(node: tirx.Mul) -> None:
        found.extend(isinstance(x, tirx.IntImm) and int(x) < 0 for x in (node.a, node.b))

    def difference(node: tirx.Sub) -> None:
        found.append(not isinstance(node.b, tirx.IntImm))

    tvm_ffi.structural_walk(index, [(tirx.Mul, product), (tirx.Sub, difference)])
    return any(found)
