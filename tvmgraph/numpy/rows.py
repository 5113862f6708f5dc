"""Functions that are one expression over operators, each a row: name, parameters, expression.

Parameters called like arrays (:data:`ARRAYS`) take whatever :func:`.helpers.array_of` does. A
parameter ``dtype`` that the expression leaves out is the dtype of the result.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tvmgraph.core.guard import guard
from tvmgraph.core.op import F
from tvmgraph.numpy import helpers

ARRAYS = frozenset(
    ("a", "a1", "a2", "ar1", "ar2", "arr", "array", "b", "element", "input", "m", "prototype", "v",
     "x", "x1", "x2")
)  # fmt: skip

# function -> operator; called f(x, dtype=None)
UNARY = """
abs=abs absolute=abs bitwise_not=invert deg2rad=deg2rad exp=exp expm1=expm1 fabs=abs
floor=floor invert=invert isfinite=isfinite isinf=isinf isnan=isnan log=log log10=log10
log1p=log1p log2=log2 rad2deg=rad2deg radians=deg2rad rint=round
sqrt=sqrt square=square
"""
# the same, of integers in the smallest float that holds them
ANGLES = """
arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan=atan arctanh=atanh cos=cos cosh=cosh
sin=sin sinh=sinh tan=tan tanh=tanh
"""
# function -> operator; called f(x1, x2, dtype=None)
BINARY = """
add=add bitwise_and=bitwise_and bitwise_or=bitwise_or bitwise_xor=bitwise_xor
equal=equal floor_divide=floor_div greater=greater greater_equal=greater_equal
heaviside=heaviside hypot=hypot less=less less_equal=less_equal logaddexp=logaddexp
logaddexp2=logaddexp2 logical_and=logical_and logical_or=logical_or logical_xor=logical_xor
matmul=matmul mod=floor_mod multiply=mul not_equal=not_equal
power=pow remainder=floor_mod subtract=sub
"""

# functions that take arrays in another way than `T`: ints of Python as int64, or no plain number
TAKES = {
    "L": "around cumprod round",
    "A": "array_split dsplit fliplr hsplit rot90 split swapaxes vsplit",
}

ROWS = Path(__file__).with_name("functions.rows").read_text("utf-8")

# parameters of a function of one array that is not called x
_CALLED = {"arccos": "input"}


def rows() -> Iterator[tuple[str, str, str]]:
    """Yields the rows of all tables."""
    for item in UNARY.split():
        name, op = item.split("=")
        x = _CALLED.get(name, "x")
        yield name, f"{x}, dtype=None", f"F.{op}({x})"
    for item in ANGLES.split():
        name, op = item.split("=")
        x = _CALLED.get(name, "x")
        yield name, f"{x}, dtype=None", f"F.{op}(H.angles({x}))"
    for item in BINARY.split():
        name, op = item.split("=")
        yield name, "x1, x2, dtype=None", f"F.{op}(x1, x2)"
    for line in ROWS.splitlines():
        if line and not line.startswith("#"):
            name, parameters, expression = line.split(" | ", 2)
            yield name, parameters, expression


def build(
    name: str, parameters: str, expression: str, scope: dict[str, object]
) -> Callable[..., object]:
    """Builds the function of a row; ``scope`` has the names that expressions use besides ``F``.

    Args:
        name: Name of the function.
        parameters: Its parameters, as in a ``def``.
        expression: What it returns.
        scope: Names of the expression, and what they stand for.
    """
    scope = {
        "__name__": "tvmgraph.numpy",
        "F": F,
        "T": helpers.array_of,
        "L": helpers.array_of_long,
        "A": helpers.array_with_axes,
        "D": helpers.as_dtype,
        **scope,
    }
    names = re.findall(r"(\w+)(?:=[^,(]*(?:\([^)]*\))?)?(?:, |$)", parameters)
    take = next((take for take, names in TAKES.items() if name in names.split()), "T")
    arrays = "".join(f"    {n} = {take}({n})\n" for n in names if n in ARRAYS)
    cast = "dtype" in names and "dtype" not in expression
    result = f"D({expression}, dtype)" if cast else expression
    # code of this file, so that errors name the user's line
    source = f"def {name}({parameters}):\n{arrays}    return {result}\n"
    exec(compile(source, __file__, "exec"), scope)
    made = scope[name]
    shown = re.sub(r"\bF\.", "ops.", expression).replace("H.", "")
    made.__doc__ = f"MindSpore's ``numpy.{name}``: computes ``{shown}``."
    assert inspect.isfunction(made)
    guard(made, f"numpy.{name}")
    return made
