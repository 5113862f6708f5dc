"""Functions that are one expression over operators, each a row: name, parameters, expression.

Parameters called like arrays (:data:`ARRAYS`) take whatever :func:`.helpers.array_of` does. A
parameter ``dtype`` that the expression leaves out is the dtype of the result.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator

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
matmul=matmul maximum=maximum minimum=minimum mod=floor_mod multiply=mul not_equal=not_equal
power=pow remainder=floor_mod subtract=sub
"""

ROWS = r"""
amax | a, axis=None, keepdims=False, initial=None, where=True | H.extreme(F.amax, a, axis, keepdims, initial, where)
amin | a, axis=None, keepdims=False, initial=None, where=True | H.extreme(F.amin, a, axis, keepdims, initial, where)
arctan2 | x1, x2, dtype=None | F.atan2(H.angles(x1), H.angles(x2))
argmax | a, axis=None | F.argmax(F.cast(a, H.int32) if a.dtype.kind == "b" else a, axis)
argmin | a, axis=None | F.argmin(F.cast(a, H.int32) if a.dtype.kind == "b" else a, axis)
argwhere | a | F.argwhere(a)
around | a, decimals=0 | F.round(a, decimals=decimals)
array_equiv | a1, a2 | H.array_equiv(a1, a2)
array_split | x, indices_or_sections, axis=0 | F.tensor_split(x, H.cuts(indices_or_sections), axis)
asfarray | a, dtype=float32 | F.cast(a, H.dtype_of(dtype) if H.dtype_of(dtype).kind == "f" else H.float32)
broadcast_to | array, shape | F.broadcast_to(array, shape)
cbrt | x, dtype=None | F.mul(F.sign(x), F.pow(F.abs(H.floats(x)), 1 / 3))
ceil | x, dtype=None | F.ceil(F.cast(x, H.float32))
copy | a | F.identity(a)
copysign | x1, x2, dtype=None | F.cast(F.copysign(x1, x2), H.dtype_of(dtype or x1.dtype))
clip | x, xmin, xmax, dtype=None | H.clip(x, xmin, xmax)
count_nonzero | x, axis=None, keepdims=False | F.count_nonzero(x, () if axis is None else axis, keepdims)
cross | a, b, axisa=-1, axisb=-1, axisc=-1, axis=None | H.cross(a, b, axisa, axisb, axisc, axis)
cumprod | a, axis=None, dtype=None | H.scan(F.cumprod, a, axis, dtype)
cumsum | a, axis=None, dtype=None | H.scan(F.cumsum, a, axis, dtype)
diag | v, k=0 | F.diagonal(v, k) if v.ndim > 1 else H.diagflat(v, k)
diagflat | v, k=0 | H.diagflat(F.ravel(v), k)
diagonal | a, offset=0, axis1=0, axis2=1 | F.diagonal(a, offset, axis1, axis2)
divide | x1, x2, dtype=None | H.quotient(x1, x2)
divmod | x1, x2, dtype=None | (F.floor_div(x1, x2), F.floor_mod(x1, x2))
dsplit | x, indices_or_sections | H.split(x, indices_or_sections, 2)
empty_like | prototype, dtype=None, shape=None | F.zeros(prototype.shape if shape is None else shape, H.dtype_of(dtype or prototype.dtype))
exp2 | x, dtype=None | F.pow(2, x)
expand_dims | a, axis | H.expand_dims(a, axis)
fix | x | F.trunc(H.single(x))
flip | m, axis=None | F.flip(m, H.axes_of(axis, m.ndim))
fliplr | m | F.flip(m, (1,))
flipud | m | F.flip(m, (0,))
float_power | x1, x2, dtype=None | F.pow(*[x if x.dtype.kind == "c" else F.cast(x, H.float32) for x in (x1, x2)])
fmod | x1, x2, dtype=None | F.fmod(*H.promoted(x1, x2))
full_like | a, fill_value, dtype=None, shape=None | H.full(a.shape if shape is None else shape, fill_value, dtype or a.dtype)
gcd | x1, x2, dtype=None | H.divisors(F.gcd, x1, x2)
hsplit | x, indices_or_sections | H.split(x, indices_or_sections, 1 if x.ndim > 1 else 0)
in1d | ar1, ar2, invert=False | H.contains(F.ravel(ar1), ar2, invert)
inner | a, b | F.mul(a, b) if a.ndim == 0 or b.ndim == 0 else F.tensordot(a, b, ((-1,), (-1,)))
isclose | a, b, rtol=1e-05, atol=1e-08, equal_nan=False | F.isclose(a, b, rtol, atol, equal_nan)
isin | element, test_elements, invert=False | H.contains(element, test_elements, invert)
isneginf | x | F.equal(x, float("-inf"))
isposinf | x | F.equal(x, float("inf"))
kron | a, b | F.kron(a, b)
lcm | x1, x2, dtype=None | H.divisors(F.lcm, x1, x2)
logical_not | a, dtype=None | F.logical_not(a)
matrix_power | a, n | F.matrix_power(a, n)
max | a, axis=None, keepdims=False, initial=None, where=True | H.extreme(F.amax, a, axis, keepdims, initial, where)
mean | a, axis=None, keepdims=False, dtype=None | F.mean(F.cast(H.floats(a), H.dtype_of(dtype)) if dtype else H.floats(a), axis, keepdims)
min | a, axis=None, keepdims=False, initial=None, where=True | H.extreme(F.amin, a, axis, keepdims, initial, where)
moveaxis | a, source, destination | F.moveaxis(a, source, destination)
nancumsum | a, axis=None, dtype=None | H.scan(F.cumsum, H.filled(a, 0), axis, dtype)
nanmax | a, axis=None, dtype=None, keepdims=False | F.amax(H.filled(a, -H.MOST), axis, keepdims)
nanmean | a, axis=None, dtype=None, keepdims=False | F.nanmean(F.cast(a, H.dtype_of(dtype or H.wide(a))), axis, keepdims)
nanmin | a, axis=None, dtype=None, keepdims=False | F.amin(H.filled(a, H.MOST), axis, keepdims)
nanstd | a, axis=None, dtype=None, ddof=0, keepdims=False | F.cast(F.sqrt(H.nanvar(a, axis, ddof, keepdims)), H.dtype_of(dtype or H.float32))
nansum | a, axis=None, dtype=None, keepdims=False | H.sum(H.filled(a, 0), axis, dtype or a.dtype, keepdims)
nanvar | a, axis=None, dtype=None, ddof=0, keepdims=False | F.cast(H.nanvar(a, axis, ddof, keepdims), H.dtype_of(dtype or H.float32))
negative | a, dtype=None | F.neg(a)
ones_like | a, dtype=None, shape=None | H.full(a.shape if shape is None else shape, 1, dtype or a.dtype)
outer | a, b | F.mul(F.reshape(a, (-1, 1)), F.reshape(b, (1, -1)))
positive | a, dtype=None | F.positive(a)
ptp | x, axis=None, keepdims=False | F.sub(F.amax(x, axis, keepdims), F.amin(x, axis, keepdims))
ravel | x | F.reshape(x, (-1,))
reciprocal | x, dtype=None | F.reciprocal(x) if H.is_float(x) else F.cast(F.reciprocal(x), x.dtype)
repeat | a, repeats, axis=None | F.repeat_interleave(a, repeats, axis)
reshape | x, new_shape | F.reshape(x, new_shape)
roll | a, shift, axis=None | H.roll(a, shift, axis)
rollaxis | x, axis, start=0 | H.rollaxis(x, axis, start)
rot90 | a, k=1, axes=(0, 1) | F.rot90(a, k, axes)
searchsorted | a, v, side="left", sorter=None | F.cast(F.searchsorted(*H.alike(a, v), side=side, sorter=sorter), H.int32)
sign | x, dtype=None | F.sign(H.floats(x))
signbit | x, dtype=None | F.less(x, 0)
size | a, axis=None | a.size if axis is None else a.shape[H.axis_of(axis, a.ndim)]
sometrue | a, axis=None, keepdims=False | F.any(F.not_equal(a, 0), axis, bool(keepdims))
split | x, indices_or_sections, axis=0 | H.split(x, indices_or_sections, axis)
squeeze | a, axis=None | F.squeeze(a, axis)
std | x, axis=None, ddof=0, keepdims=False | F.std(H.floats(x), axis, ddof, keepdims)
swapaxes | x, axis1, axis2 | F.swapaxes(x, axis1, axis2)
take_along_axis | arr, indices, axis | H.take_along_axis(arr, indices, axis)
tensordot | a, b, axes=2 | F.tensordot(a, b, axes)
tile | a, reps | F.tile(a, (reps,) if isinstance(reps, int) else tuple(reps))
trace | a, offset=0, axis1=0, axis2=1, dtype=None | F.sum(F.diagonal(a, offset, axis1, axis2), -1, dtype=H.dtype_of(dtype) if dtype else None)
transpose | a, axes=None | F.transpose(a, tuple(range(a.ndim))[::-1] if axes is None else axes)
true_divide | x1, x2, dtype=None | H.quotient(x1, x2)
trunc | x, dtype=None | F.trunc(H.single(x))
tril | m, k=0 | F.tril(H.rows_alike(m), k)
triu | m, k=0 | F.triu(H.rows_alike(m), k)
var | x, axis=None, ddof=0, keepdims=False | F.var(H.floats(x), axis, ddof, keepdims)
vsplit | x, indices_or_sections | H.split(x, indices_or_sections, 0)
zeros_like | a, dtype=None, shape=None | H.full(a.shape if shape is None else shape, 0, dtype or a.dtype)
"""  # noqa: E501  (a row is a line)

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
    for line in ROWS.strip().splitlines():
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
        "D": helpers.as_dtype,
        **scope,
    }
    names = re.findall(r"(\w+)(?:=[^,(]*(?:\([^)]*\))?)?(?:, |$)", parameters)
    arrays = "".join(f"    {n} = T({n})\n" for n in names if n in ARRAYS)
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
