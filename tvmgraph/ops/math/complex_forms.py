"""What operators are of complex operands: formulas of real and imaginary parts.

A form is given the operands and attributes of its row and calls other operators, so that compiled
code, gradients and ``vmap`` know complex numbers without knowing them. A gradient's real and
imaginary part are the derivatives by real and imaginary part. Eager code that nobody follows asks
NumPy instead where that is the same (:mod:`.complex`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from tvmgraph import dtypes
from tvmgraph.core.op import OPS, F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError
from tvmgraph.ops.common.arguments import bad
from tvmgraph.ops.math.complex_columns import columns

Pair = tuple[Tensor, Tensor]


def _pair(x: Tensor) -> Pair:
    return F.real(x), F.imag(x)


def _join(re: Tensor, im: Tensor) -> Tensor:
    return F.complex(re, im)


def _times(a: Pair, b: Pair) -> Pair:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _mul(a: Tensor, b: Tensor) -> Tensor:
    return _join(*_times(_pair(a), _pair(b)))


def _div(a: Tensor, b: Tensor) -> Tensor:
    """a conj(b) / |b|^2, with b scaled so that the square neither overflows nor vanishes."""
    (x, y), (c, d) = _pair(a), _pair(b)
    size = F.maximum(F.abs(c), F.abs(d))
    size = F.where(F.logical_or(F.equal(size, 0), F.isinf(size)), F.ones_like(size), size)
    c, d = c / size, d / size
    square = (c * c + d * d) * size
    return _join((x * c + y * d) / square, (y * c - x * d) / square)


def _unit(x: Tensor) -> Tensor:
    re, im = _pair(x)
    size = F.hypot(re, im)
    size = F.where(F.equal(size, 0), F.ones_like(size), size)
    return _join(re / size, im / size)


def _exp(x: Tensor) -> Tensor:
    re, im = _pair(x)
    size = F.exp(re)
    return _join(size * F.cos(im), size * F.sin(im))


def _log(x: Tensor) -> Tensor:
    """log|z| is half of log1p(|z|^2 - 1) where |z| is near 1."""
    re, im = _pair(x)
    size = F.hypot(re, im)
    near = F.logical_and(F.greater(size, 0.7), F.less(size, 1.4))
    little = F.where(near, (re - 1) * (re + 1) + im * im, F.zeros_like(re))
    real = F.where(near, 0.5 * F.log1p(little), F.log(size))
    return _join(real, F.atan2(im, re))


def _log1p(x: Tensor) -> Tensor:
    """log|1 + z| is half of log1p(2 re + |z|^2) where z is small, without losing z."""
    re, im = _pair(x)
    near = F.less(F.hypot(re, im), 0.5)
    small = 0.5 * F.log1p(F.where(near, re * (2 + re) + im * im, F.zeros_like(re)))
    return _join(F.where(near, small, F.log(F.hypot(re + 1, im))), F.atan2(im, re + 1))


def _expm1(x: Tensor) -> Tensor:
    re, im = _pair(x)
    half = F.sin(im * 0.5)
    return _join(F.expm1(re) * F.cos(im) - 2 * half * half, F.exp(re) * F.sin(im))


def _side(x: Tensor) -> Tensor:
    """Returns 1 or -1 as the sign bit says: its product with x is |x|, with a derivative at 0."""
    return F.copysign(F.ones_like(x), x)


def _sqrt(x: Tensor) -> Tensor:
    """The larger part is sqrt((|z| + |re|) / 2), the other one follows without cancellation."""
    re, im = _pair(x)
    right, side = F.greater_equal(re, 0), _side(im)
    large = F.sqrt((F.hypot(re, im) + F.where(right, re, F.neg(re))) * 0.5)
    other = im / F.where(F.equal(large, 0), 1.0, large * 2)
    return _join(F.where(right, large, side * other), F.where(right, other, side * large))


def _sinh(x: Tensor) -> Tensor:
    re, im = _pair(x)
    return _join(F.sinh(re) * F.cos(im), F.cosh(re) * F.sin(im))


def _cosh(x: Tensor) -> Tensor:
    re, im = _pair(x)
    return _join(F.cosh(re) * F.cos(im), F.sinh(re) * F.sin(im))


def _tanh(x: Tensor) -> Tensor:
    """(t (1 + w^2) + i w (1 - t^2)) / (1 + t^2 w^2), t = tanh(re), w = tan(im), by cosines."""
    re, im = _pair(x)
    t, c, s = F.tanh(re), F.cos(im), F.sin(im)
    below = c * c + t * t * s * s
    return _join(t / below, s * c * (1 - t * t) / below)


def _turned(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """f(z) = -i g(i z): sin of sinh, tan of tanh, asin of asinh, atan of atanh."""

    def form(x: Tensor) -> Tensor:
        re, im = _pair(x)
        u, v = _pair(function(_join(F.neg(im), re)))
        return _join(v, F.neg(u))

    return form


def _cos(x: Tensor) -> Tensor:
    re, im = _pair(x)
    return _cosh(_join(F.neg(im), re))


def _asinh(x: Tensor) -> Tensor:
    """By Hull, Fairgrieve and Tang's parts: roots of 1 + iz and 1 - iz."""
    re, im = _pair(x)
    a, b = _pair(_sqrt(_join(1 - im, re))), _pair(_sqrt(_join(1 + im, F.neg(re))))
    return _join(F.asinh(a[0] * -b[1] + a[1] * b[0]), F.atan2(im, a[0] * b[0] - a[1] * b[1]))


def _roots(x: Tensor) -> tuple[Pair, Pair]:
    """Returns the square roots of 1 - z and 1 + z."""
    re, im = _pair(x)
    return _pair(_sqrt(_join(1 - re, F.neg(im)))), _pair(_sqrt(_join(1 + re, im)))


def _acos(x: Tensor) -> Tensor:
    a, b = _roots(x)
    return _join(2 * F.atan2(a[0], b[0]), F.asinh(b[0] * a[1] - b[1] * a[0]))


def _acosh(x: Tensor) -> Tensor:
    """By the roots of z - 1 and z + 1."""
    re, im = _pair(x)
    a, b = _pair(_sqrt(_join(re - 1, im))), _pair(_sqrt(_join(re + 1, im)))
    return _join(F.asinh(a[0] * b[0] + a[1] * b[1]), 2 * F.atan2(a[1], b[0]))


def _atanh(x: Tensor) -> Tensor:
    """(log(1 + z) - log(1 - z)) / 2, the real part by one logarithm."""
    re, im = _pair(x)
    side = _side(re)
    right = side * re
    real = side * 0.25 * F.log1p(4 * right / ((1 - right) * (1 - right) + im * im))
    return _join(real, 0.5 * F.atan2(2 * im, (1 - re) * (1 + re) - im * im))


def _power(a: Tensor, b: Tensor) -> Tensor:
    """exp(b log a); 0 to a power is 0, and 1 to none."""
    result = _exp(_mul(b, _log(_nonzero(a))))
    zero = F.where(_is_zero(b), F.ones_like(F.real(a)), F.zeros_like(F.real(a)))
    return F.where(_is_zero(a), _join(zero, F.zeros_like(zero)), result)


def _power_scalar(x: Tensor, exponent: float) -> Tensor:
    if isinstance(exponent, int) or (float(exponent).is_integer() and abs(exponent) <= 64):
        power = int(exponent)
        result: Tensor | None = None
        factor = x
        for bit in reversed(f"{abs(power):b}"):
            if bit == "1":
                result = factor if result is None else _mul(result, factor)
            factor = _mul(factor, factor)
        if power == 0 or result is None:
            return F.ones_like(x)
        return result if power > 0 else _div(F.ones_like(x), result)
    return _power(x, F.full_like(x, exponent))


def _is_zero(x: Tensor) -> Tensor:
    re, im = _pair(x)
    return F.logical_and(F.equal(re, 0), F.equal(im, 0))


def _nonzero(x: Tensor) -> Tensor:
    """Returns 1 for zeros, so that their logarithms disturb no gradient."""
    re, im = _pair(x)
    return _join(F.where(_is_zero(x), F.ones_like(re), re), im)


def _scaled(function: Callable[[Tensor], Tensor], factor: float) -> Callable[[Tensor], Tensor]:
    def form(x: Tensor) -> Tensor:
        re, im = _pair(function(x))
        return _join(re * factor, im * factor)

    return form


def _reduce_prod(x: Tensor, axis: tuple[int, ...], keep_dims: bool) -> Tensor:
    """Products of pairs, halving the axis until one element is left."""
    for a in sorted(axis, reverse=True):
        re, im = _pair(F.moveaxis(x, a, 0))
        size = re.shape[0]
        if not size:
            re, im = F.ones((1, *re.shape[1:]), re.dtype), F.zeros((1, *re.shape[1:]), re.dtype)
        while size > 1:
            half = size // 2
            done = _times((re[:half], im[:half]), (re[half : 2 * half], im[half : 2 * half]))
            rest = (re[2 * half :], im[2 * half :])
            re, im = (F.concat(p, 0) if size % 2 else p[0] for p in zip(done, rest))
            size = half + size % 2
        x = F.moveaxis(_join(re, im), 0, a)
        x = x if keep_dims else F.squeeze(x, a)
    return x


def _running_product(x: Tensor, axis: int) -> Tensor:
    """Every element times that one, two, four ... places before it."""
    re, im = _pair(F.moveaxis(x, axis, -1))
    step, size = 1, re.shape[-1]
    while step < size:
        done = _times((re[..., step:], im[..., step:]), (re[..., :-step], im[..., :-step]))
        re, im = (F.concat((p[..., :step], q), -1) for p, q in zip((re, im), done))
        step *= 2
    return F.moveaxis(_join(re, im), -1, axis)


def _bilinear(name: str, *xs: Tensor, **attrs: object) -> Tensor:
    """Contractions: four real ones."""
    (a, b), (c, d) = _pair(xs[0]), _pair(xs[1])
    call = functools.partial(OPS[name].fn, **attrs)
    return _join(call(a, c) - call(b, d), call(a, d) + call(b, c))


def _embedded(x: Tensor) -> Tensor:
    """Returns the real matrix [[re, -im], [im, re]], which multiplies as the complex one does."""
    re, im = _pair(x)
    return F.concat((F.concat((re, F.neg(im)), -1), F.concat((im, re), -1)), -2)


def _extracted(x: Tensor) -> Tensor:
    rows, columns = x.shape[-2] // 2, x.shape[-1] // 2
    return _join(x[..., :rows, :columns], x[..., rows:, :columns])


def _solve(a: Tensor, b: Tensor) -> Tensor:
    if b.ndim < 2 or b.ndim == a.ndim - 1:
        return F.squeeze(_solve(a, F.expand_dims(b, -1)), -1)
    return _extracted(F.solve(_embedded(a), _embedded(b)))


def _cast(x: Tensor, dtype: dtypes.DType) -> Tensor:
    if x.dtype not in dtypes.COMPLEX:  # a real tensor becomes complex
        part = dtypes.float64 if dtype is dtypes.complex128 else dtypes.float32
        re = F.cast(x, part)
        return _join(re, F.zeros_like(re))
    re, im = _pair(x)
    if dtype in dtypes.COMPLEX:
        part = dtypes.float64 if dtype is dtypes.complex128 else dtypes.float32
        return _join(F.cast(re, part), F.cast(im, part))
    return F.logical_not(_is_zero(x)) if dtype is dtypes.bool_ else F.cast(re, dtype)


def _full(size: object, fill_value: complex, dtype: dtypes.DType) -> Tensor:
    part = dtypes.float64 if dtype is dtypes.complex128 else dtypes.float32
    value = complex(fill_value)
    return _join(OPS["full"].fn(size, value.real, part), OPS["full"].fn(size, value.imag, part))


def _either(name: str, join: str) -> Callable[..., Tensor]:
    """A question about elements that is answered by the answers of both parts."""

    def form(*xs: Tensor, **attrs: object) -> Tensor:
        op = OPS[name].fn
        parts = [_pair(x) for x in xs]
        return getattr(F, join)(*(op(*[p[k] for p in parts], **attrs) for k in (0, 1)))

    return form


def _xlogy(x: Tensor, y: Tensor) -> Tensor:
    return F.where(_is_zero(x), x, _mul(x, _log(y)))


def _truth(name: str) -> Callable[..., Tensor]:
    def form(x: Tensor, **attrs: object) -> Tensor:
        return OPS[name].fn(F.cast(x, dtypes.bool_), **attrs)

    return form


def _sinc(x: Tensor) -> Tensor:
    zero = _is_zero(x)
    turned = F.where(zero, F.ones_like(x), x) * math.pi
    return F.where(zero, F.ones_like(x), F.sin(turned) / turned)


def _by_parts(name: str, data: tuple[int, ...] | None = None) -> Callable[..., object]:
    """A linear row, or one that moves elements: once of real and once of imaginary parts.

    Args:
        name: The row.
        data: Which operands have parts; by default all. Others are indices and conditions.
    """

    def form(*xs: Tensor, **attrs: object) -> Any:
        op = OPS[name]
        if attrs.get("mode") in ("mul", "max", "min"):
            raise bad(DTypeError, f"mode {attrs['mode']!r} is not for complex elements", name,
                      ", ".join(str(x.aval) for x in xs))  # fmt: skip
        done: list[Any] = []
        if data is not None:  # a condition holds where it is not 0
            xs = tuple(x if i in data or x.dtype.kind != "c" else F.not_equal(x, 0)
                       for i, x in enumerate(xs))  # fmt: skip
            if all(x.dtype.kind != "c" for x in xs):
                return op.fn(*xs, **attrs)
        for part in ("real", "imag"):
            take = getattr(F, part)
            given = [take(x) if data is None or i in data else x for i, x in enumerate(xs)]
            more = {k: getattr(v, part) if k == "value" else v for k, v in attrs.items()}
            done.append(op.fn(*given, **more))
        return tuple(map(_join, *done)) if op.multi else _join(*done)

    return form


def _on_embedded(name: str) -> Callable[..., Tensor]:
    def form(x: Tensor) -> Tensor:
        return _extracted(OPS[name].fn(_embedded(x)))

    return form


#: Rows whose operands all have parts, and those of which some are indices or conditions.
_LINEAR = (
    "add", "sub", "neg", "identity", "gradient_barrier", "expand_dims", "reshape", "squeeze",
    "transpose", "broadcast_to", "basic_index", "basic_update", "concat", "diagonal", "flip",
    "interleave", "pad_constant", "pad_index", "place_diagonal", "roll", "split_at", "tile",
    "leaf_value",
    "tril", "triu", "reduce_sum", "reduce_mean", "running_sum",
)  # fmt: skip
_INDEXED = {"where": (1, 2), "index_get": (0,), "index_update": (0, 1), "gather_along": (0,),
            "scatter_along": (0, 2), "computed_after": (0,)}  # fmt: skip

_OF_ONE: dict[str, Callable[[Tensor], object]] = {
    "square": lambda x: _mul(x, x), "reciprocal": lambda x: _div(F.ones_like(x), x),
    "abs": lambda x: F.hypot(*_pair(x)), "exp2": lambda x: _exp(x * math.log(2)),
    "rsqrt": lambda x: _div(F.ones_like(x), _sqrt(x)),
    "sigmoid": lambda x: F.reciprocal(1 + _exp(F.neg(x))),
    "silu": lambda x: x * F.sigmoid(x), "logsigmoid": lambda x: F.neg(_log1p(_exp(F.neg(x)))),
}  # fmt: skip

FORMS: dict[str, Callable[..., object]] = {
    **_OF_ONE,
    "cast": _cast, "full": _full, "mul": _mul, "real_div": _div, "sign": _unit,
    "exp": _exp, "log": _log, "log1p": _log1p,
    "log2": _scaled(_log, 1 / math.log(2)), "log10": _scaled(_log, 1 / math.log(10)),
    "expm1": _expm1, "sqrt": _sqrt, "sinh": _sinh, "cosh": _cosh,
    "tanh": _tanh, "sin": _turned(_sinh), "cos": _cos, "tan": _turned(_tanh), "asinh": _asinh,
    "asin": _turned(_asinh), "acos": _acos, "acosh": _acosh, "atanh": _atanh,
    "atan": _turned(_atanh), "power": _power, "power_scalar": _power_scalar,
    "reduce_prod": _reduce_prod, "running_product": _running_product,
    "matmul": functools.partial(_bilinear, "matmul"),
    "convolution": functools.partial(_bilinear, "convolution"),
    "conv_transpose": functools.partial(_bilinear, "conv_transpose"),
    "sinc": _sinc, "xlogy": _xlogy,
    "reduce_all": _truth("reduce_all"), "reduce_any": _truth("reduce_any"),
    "solve": _solve, "inverse": _on_embedded("inverse"), "matrix_exp": _on_embedded("matrix_exp"),
    "equal": _either("equal", "logical_and"), "not_equal": _either("not_equal", "logical_or"),
    "isfinite": _either("isfinite", "logical_and"), "isnan": _either("isnan", "logical_or"),
    "isinf": _either("isinf", "logical_or"),
    **{n: _by_parts(n) for n in _LINEAR}, **{n: _by_parts(n, k) for n, k in _INDEXED.items()},
}  # fmt: skip


def attach() -> None:
    """Gives the rows their forms."""
    for name, form in FORMS.items():
        OPS[name].form = form
    for name, column in columns().items():
        OPS[name].of_complex = column
    for name, data in _INDEXED.items():
        OPS[name].indices = tuple([i for i in range(3) if i not in data])
