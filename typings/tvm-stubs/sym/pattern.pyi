"""Patterns of expressions, as a type checker should see them."""

from collections.abc import Sequence

from tvm.ir import Expr, Var

def detect_linear_equation(expr: Expr, var_list: Sequence[Var]) -> Sequence[Expr]: ...
def detect_clip_bound(expr: Expr, var_list: Sequence[Var]) -> Sequence[Expr]: ...
