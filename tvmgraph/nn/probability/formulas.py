"""The formulas of distributions, each a row of :data:`ROWS`.

Functions of a row take what they are of (elements ``x``, the shape of a sample) and then the
parameters in the row's order; of a divergence: those of the distribution, then those of the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.ops.math.incomplete_beta import betainc

EULER = 0.5772156649015329
_LOG_2PI = math.log(2 * math.pi)
_TINY = float(np.finfo(np.float32).tiny)


class Row(NamedTuple):
    """A distribution.

    Attributes:
        parameters: Their names.
        log_prob: Logarithm of the density, or of the probability.
        draw: Sample of a shape: ``draw(shape, seed, *parameters)``.
        valid: Whether (arrays of) parameters are allowed, and the rule as text.
        cdf: Cumulative distribution function.
        log_cdf: Its logarithm, where there is a better formula than ``log(cdf)``.
        log_survival: Logarithm of ``1 - cdf``, likewise.
        mean: Mean, None if undefined or without a formula.
        var: Variance.
        mode: The likeliest element.
        entropy: Entropy in nats.
        kl_loss: Kullback-Leibler divergence from another of the kind.
        categories: Whether the last axis of the parameter counts categories.
        counts: Whether the elements are integers.
    """

    parameters: str
    log_prob: Callable[..., Tensor]
    draw: Callable[..., Tensor]
    valid: tuple[Callable[..., Any], str]
    cdf: Callable[..., Tensor] | None = None
    log_cdf: Callable[..., Tensor] | None = None
    log_survival: Callable[..., Tensor] | None = None
    mean: Callable[..., Tensor] | None = None
    var: Callable[..., Tensor] | None = None
    mode: Callable[..., Tensor] | None = None
    entropy: Callable[..., Tensor] | None = None
    kl_loss: Callable[..., Tensor] | None = None
    categories: bool = False
    counts: bool = False


def _within(inside: Tensor, value: Tensor, outside: float = -math.inf) -> Tensor:
    """Returns ``value`` where something holds and ``outside`` elsewhere."""
    return F.where(F.broadcast_to(inside, value.shape), value, F.full_like(value, outside))


def _uniform(shape: tuple[int, ...], seed: int | None) -> Tensor:
    """Returns random numbers above 0 and below 1."""
    return F.clamp(F.uniform(shape, 0.0, 1.0, seed), _TINY, 1 - 2**-24)


def _shape(shape: tuple[int, ...], *parameters: Tensor) -> tuple[int, ...]:
    return (*shape, *np.broadcast_shapes(*(p.shape for p in parameters)))


def _below(k: Tensor, p: Tensor, compare: Callable[..., Tensor]) -> Tensor:
    """Sums the probabilities of the categories that compare with those in ``k``."""
    numbers = tensor_from_numpy(np.arange(p.shape[-1], dtype=np.float32))
    hit = compare(numbers, F.trunc(F.cast(k, numbers.dtype)).expand_dims(-1))
    return F.sum(F.mul(F.cast(hit, p.dtype), p), -1)


def _numbers(p: Tensor) -> Tensor:
    return tensor_from_numpy(np.arange(p.shape[-1], dtype=p.dtype.numpy))


def _category_mean(p: Tensor) -> Tensor:
    return F.sum(p * _numbers(p), -1, keepdim=True)


def _log_beta(a: Tensor, b: Tensor) -> Tensor:
    return F.lgamma(a) + F.lgamma(b) - F.lgamma(a + b)


def _phi(z: Tensor) -> Tensor:
    """The cumulative distribution function of the standard normal distribution."""
    return 0.5 * F.erfc(z * -math.sqrt(0.5))


def _normal(x: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
    z = (x - mean) / sd
    return -0.5 * (z * z + _LOG_2PI) - F.log(sd)


def _normal_divergence(a: Tensor, s: Tensor, b: Tensor, t: Tensor) -> Tensor:
    return F.log(t / s) + 0.5 * (F.square(s / t) + F.square((a - b) / t) - 1)


def _logistic(x: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    z = (x - loc) / scale
    return -z - 2 * F.softplus(-z) - F.log(scale)


def _student(x: Tensor, df: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
    z = (x - mean) / sd
    scale = F.log(sd) + 0.5 * F.log(df) + _log_beta(0.5 * df, F.full_like(df, 0.5))
    return -0.5 * (df + 1) * F.log1p(z * z / df) - scale


def _student_cdf(x: Tensor, df: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
    z = (x - mean) / sd
    half = F.full_like(z, 0.5)
    tail = 0.5 * betainc(0.5 * df + 0 * z, half, df / (df + z * z))
    return F.where(z > 0, 1 - tail, tail)


def _student_entropy(df: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
    more = F.digamma(0.5 * (df + 1)) - F.digamma(0.5 * df)
    scale = 0.5 * F.log(df) + _log_beta(0.5 * df, F.full_like(df, 0.5)) + F.log(sd)
    return 0.5 * (df + 1) * more + scale + 0 * mean


def _laplace_draw(shape: tuple[int, ...], seed: int | None, mean: Tensor, sd: Tensor) -> Tensor:
    u = _uniform(_shape(shape, mean, sd), seed) - 0.5
    return mean - sd * F.sign(u) * F.log1p(F.clamp(-2 * F.abs(u), -1 + 2**-24, 0.0))


def _gumbel_divergence(a: Tensor, s: Tensor, b: Tensor, t: Tensor) -> Tensor:
    more = F.exp((b - a) / t + F.lgamma(s / t + 1))
    return F.log(t / s) + EULER * (s / t - 1) + more - 1 + (a - b) / t


def _gamma_divergence(a: Tensor, r: Tensor, b: Tensor, s: Tensor) -> Tensor:
    more = F.lgamma(b) - F.lgamma(a) + (a - b) * F.digamma(a)
    return more + b * F.log(r / s) + a * (s / r - 1)


def _beta_entropy(a: Tensor, b: Tensor) -> Tensor:
    more = (a + b - 2) * F.digamma(a + b)
    return _log_beta(a, b) - (a - 1) * F.digamma(a) - (b - 1) * F.digamma(b) + more


def _beta_divergence(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    more = (a - c) * F.digamma(a) + (b - d) * F.digamma(b)
    return _log_beta(c, d) - _log_beta(a, b) + more + (c - a + d - b) * F.digamma(a + b)


def _beta_draw(shape: tuple[int, ...], seed: int | None, a: Tensor, b: Tensor) -> Tensor:
    one = F.full_like(a + b, 1.0)
    second = None if seed is None else seed + 1  # another stream
    x, y = F.gamma(shape, a * one, one, seed), F.gamma(shape, b * one, one, second)
    return x / (x + y)


def _student_draw(
    shape: tuple[int, ...], seed: int | None, df: Tensor, mean: Tensor, sd: Tensor
) -> Tensor:
    one = F.full_like(df + mean + sd, 1.0)
    normal = F.standard_normal((*shape, *one.shape), seed)
    squares = F.gamma(shape, 0.5 * df * one, 0.5 * one, None if seed is None else seed + 1)
    return mean + sd * normal * F.sqrt(df / squares)


def _entropy_of(p: Tensor) -> Tensor:
    """Entropy of a truth of probability ``p``."""
    return -F.xlogy(p, p) - F.xlogy(1 - p, 1 - p)


def _bernoulli_divergence(p: Tensor, q: Tensor) -> Tensor:
    return F.xlogy(p, p / q) + F.xlogy(1 - p, (1 - p) / (1 - q))


def _uniform_divergence(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    value = F.log((d - c) / (b - a))
    return _within(F.logical_and(c <= a, b <= d), value, math.inf)


def _cauchy_divergence(a: Tensor, s: Tensor, b: Tensor, t: Tensor) -> Tensor:
    return F.log((F.square(s + t) + F.square(a - b)) / (4 * s * t))


def _laplace_divergence(a: Tensor, s: Tensor, b: Tensor, t: Tensor) -> Tensor:
    far = F.abs(a - b)
    return F.log(t / s) + (s * F.exp(-far / s) + far) / t - 1


def _first(a: Tensor, b: Tensor) -> Tensor:
    """Returns ``a`` in the shape of both."""
    return a + 0 * b


_SD = (lambda m, s: s > 0, "sd must be positive")
_SCALE = (lambda m, s: s > 0, "scale must be positive")
_RATE = (lambda r: r > 0, "rate must be positive")
_PROBS = (lambda p: (p > 0) & (p < 1), "probs must be between 0 and 1, and neither")
_SHAPES = (lambda a, b: (a > 0) & (b > 0), "parameters must be positive")

ROWS: dict[str, Row] = {
    "Normal": Row(
        "mean sd", _normal, valid=_SD,
        draw=lambda n, seed, m, s: m + s * F.standard_normal(_shape(n, m, s), seed),
        cdf=lambda x, m, s: _phi((x - m) / s), mean=_first, mode=_first,
        var=lambda m, s: _first(F.square(s), m),
        entropy=lambda m, s: _first(0.5 * (_LOG_2PI + 1) + F.log(s), m),
        kl_loss=_normal_divergence,
    ),
    "HalfNormal": Row(
        "mean sd", lambda x, m, s: _within(x >= 0, _normal(x, m, s) + math.log(2)), valid=_SD,
        draw=lambda n, seed, m, s: m + s * F.abs(F.standard_normal(_shape(n, m, s), seed)),
        cdf=lambda x, m, s: F.erf(F.relu(x - m) / (s * math.sqrt(2))),
        mean=lambda m, s: m + s * math.sqrt(2 / math.pi), mode=_first,
        var=lambda m, s: _first(F.square(s) * (1 - 2 / math.pi), m),
        entropy=lambda m, s: _first(0.5 * (math.log(math.pi / 2) + 1) + F.log(s), m),
    ),
    "LogNormal": Row(
        "loc scale", lambda x, m, s: _within(x > 0, _normal(F.log(x), m, s) - F.log(x)),
        valid=_SCALE,
        draw=lambda n, seed, m, s: F.exp(m + s * F.standard_normal(_shape(n, m, s), seed)),
        cdf=lambda x, m, s: _phi((F.log(F.relu(x)) - m) / s),
        mean=lambda m, s: F.exp(m + 0.5 * s * s), mode=lambda m, s: F.exp(m - s * s),
        var=lambda m, s: F.expm1(s * s) * F.exp(2 * m + s * s),
        entropy=lambda m, s: m + 0.5 * (_LOG_2PI + 1) + F.log(s), kl_loss=_normal_divergence,
    ),
    "Laplace": Row(
        "mean sd", lambda x, m, s: -F.abs(x - m) / s - F.log(2 * s), valid=_SD,
        draw=_laplace_draw, mean=_first, mode=_first,
        cdf=lambda x, m, s: 0.5 - 0.5 * F.sign(x - m) * F.expm1(-F.abs(x - m) / s),
        var=lambda m, s: _first(2 * F.square(s), m),
        entropy=lambda m, s: _first(1 + F.log(2 * s), m), kl_loss=_laplace_divergence,
    ),
    "Logistic": Row(
        "loc scale", _logistic, valid=_SCALE,
        draw=lambda n, seed, m, s: m + s * F.logit(_uniform(_shape(n, m, s), seed)),
        cdf=lambda x, m, s: F.sigmoid((x - m) / s),
        log_cdf=lambda x, m, s: -F.softplus((m - x) / s),
        log_survival=lambda x, m, s: -F.softplus((x - m) / s), mean=_first, mode=_first,
        var=lambda m, s: _first(F.square(s) * (math.pi**2 / 3), m),
        entropy=lambda m, s: _first(2 + F.log(s), m),
    ),
    "Cauchy": Row(
        "loc scale", lambda x, m, s: -F.log1p(F.square((x - m) / s)) - F.log(math.pi * s),
        valid=_SCALE,
        draw=lambda n, seed, m, s: (
            m + s * F.tan(math.pi * (_uniform(_shape(n, m, s), seed) - 0.5))
        ),
        cdf=lambda x, m, s: 0.5 + F.atan((x - m) / s) / math.pi, mode=_first,
        entropy=lambda m, s: _first(F.log(4 * math.pi * s), m), kl_loss=_cauchy_divergence,
    ),
    "Gumbel": Row(
        "loc scale", lambda x, m, s: (m - x) / s - F.exp((m - x) / s) - F.log(s), valid=_SCALE,
        draw=lambda n, seed, m, s: m - s * F.log(-F.log(_uniform(_shape(n, m, s), seed))),
        cdf=lambda x, m, s: F.exp(-F.exp((m - x) / s)), log_cdf=lambda x, m, s: -F.exp((m - x) / s),
        log_survival=lambda x, m, s: F.log(-F.expm1(-F.exp((m - x) / s))),
        mean=lambda m, s: m + EULER * s, mode=_first,
        var=lambda m, s: _first(F.square(s) * (math.pi**2 / 6), m),
        entropy=lambda m, s: _first(1 + EULER + F.log(s), m), kl_loss=_gumbel_divergence,
    ),
    "StudentT": Row(
        "df mean sd", _student, _student_draw,
        (lambda df, m, s: (df > 0) & (s > 0), "df and sd must be positive"), cdf=_student_cdf,
        mode=lambda df, m, s: m + 0 * (df + s),
        mean=lambda df, m, s: _within(df > 1, m + 0 * (df + s), math.nan),
        var=lambda df, m, s: _within(df > 2, F.square(s) * df / (df - 2) + 0 * m, math.inf),
        entropy=_student_entropy,
    ),
    "Uniform": Row(
        "low high",
        lambda x, a, b: _within(F.logical_and(x >= a, x <= b), -F.log(b - a) + 0 * x),
        valid=(lambda a, b: a < b, "low must be less than high"),
        draw=lambda n, seed, a, b: a + (b - a) * F.uniform(_shape(n, a, b), 0.0, 1.0, seed),
        cdf=lambda x, a, b: F.clamp((x - a) / (b - a), 0.0, 1.0), mean=lambda a, b: 0.5 * (a + b),
        var=lambda a, b: F.square(b - a) / 12, entropy=lambda a, b: F.log(b - a),
        kl_loss=_uniform_divergence,
    ),
    "Exponential": Row(
        "rate", lambda x, r: _within(x >= 0, F.log(r) - r * x), valid=_RATE,
        draw=lambda n, seed, r: -F.log(_uniform(_shape(n, r), seed)) / r,
        cdf=lambda x, r: -F.expm1(-r * F.relu(x)), log_survival=lambda x, r: -r * F.relu(x),
        mean=lambda r: 1 / r, var=lambda r: 1 / (r * r), mode=F.zeros_like,
        entropy=lambda r: 1 - F.log(r), kl_loss=lambda r, s: F.log(r / s) + s / r - 1,
    ),
    "Gamma": Row(
        "concentration rate",
        lambda x, a, r: _within(
            x >= 0, a * F.log(r) + F.xlogy(a - 1, F.relu(x)) - r * x - F.lgamma(a)
        ),
        valid=_SHAPES, draw=lambda n, seed, a, r: F.gamma(n, a + 0 * r, r + 0 * a, seed),
        cdf=lambda x, a, r: F.igamma(a + 0 * (x * r), r * F.relu(x) + 0 * a),
        mean=lambda a, r: a / r, var=lambda a, r: a / (r * r),
        mode=lambda a, r: _within(a >= 1, (a - 1) / r, math.nan),
        entropy=lambda a, r: a - F.log(r) + F.lgamma(a) + (1 - a) * F.digamma(a),
        kl_loss=_gamma_divergence,
    ),
    "Beta": Row(
        "concentration1 concentration0",
        lambda x, a, b: _within(
            F.logical_and(x >= 0, x <= 1),
            F.xlogy(a - 1, F.relu(x)) + F.xlogy(b - 1, F.relu(1 - x)) - _log_beta(a, b),
        ),
        valid=_SHAPES, draw=_beta_draw,
        cdf=lambda x, a, b: betainc(
            a + 0 * (b + x), b + 0 * (a + x), F.clamp(x + 0 * (a + b), 0.0, 1.0)
        ),
        mean=lambda a, b: a / (a + b),
        var=lambda a, b: a * b / (F.square(a + b) * (a + b + 1)),
        mode=lambda a, b: _within(F.logical_and(a > 1, b > 1), (a - 1) / (a + b - 2), math.nan),
        entropy=_beta_entropy, kl_loss=_beta_divergence,
    ),
    "Bernoulli": Row(
        "probs", lambda x, p: F.xlogy(x, p) + F.xlogy(1 - x, 1 - p), valid=_PROBS,
        draw=lambda n, seed, p: F.cast(F.uniform(_shape(n, p), 0.0, 1.0, seed) < p, p.dtype),
        cdf=lambda x, p: F.where(x < 0, 0 * p, F.where(x < 1, 1 - p, 1 + 0 * p)),
        mean=lambda p: p + 0.0, var=lambda p: p * (1 - p),
        mode=lambda p: F.cast(p > 0.5, p.dtype), entropy=_entropy_of,
        kl_loss=_bernoulli_divergence, counts=True,
    ),
    "Geometric": Row(
        "probs",
        lambda x, p: _within(x >= 0, F.log(p) + F.xlogy(F.floor(F.relu(x)), 1 - p)), valid=_PROBS,
        draw=lambda n, seed, p: F.floor(F.log(_uniform(_shape(n, p), seed)) / F.log1p(-p)),
        cdf=lambda x, p: _within(x >= 0, 1 - F.pow(1 - p, F.floor(x) + 1), 0.0),
        mean=lambda p: (1 - p) / p, var=lambda p: (1 - p) / (p * p), mode=F.zeros_like,
        entropy=lambda p: _entropy_of(p) / p,
        kl_loss=lambda p, q: _bernoulli_divergence(p, q) / p, counts=True,
    ),
    "Poisson": Row(
        "rate",
        lambda x, r: _within(x >= 0, F.xlogy(x, r) - r - F.lgamma(F.relu(x) + 1)), valid=_RATE,
        draw=lambda n, seed, r: F.random_poisson(n, r, seed),
        cdf=lambda x, r: _within(
            x >= 0, F.igammac(F.relu(x) + 1 + 0 * r, r + 0 * x), 0.0
        ),
        mean=lambda r: r + 0.0, var=lambda r: r + 0.0, mode=F.floor,
        kl_loss=lambda r, s: F.xlogy(r, r / s) + s - r, counts=True,
    ),
    "Categorical": Row(
        "probs", lambda k, p: F.log(_below(k, p, F.equal)),
        draw=lambda n, seed, p: F.cast(
            F.argmax(F.log(p) - F.log(-F.log(_uniform(_shape(n, p), seed))), -1), p.dtype
        ),
        valid=(lambda p: (p > 0) & (p < 1) & (abs(p.sum(-1, keepdims=True) - 1) < 1e-4),
               "probs must be between 0 and 1, and sum to 1"),
        cdf=lambda k, p: _below(k, p, F.less_equal), mean=_category_mean,
        var=lambda p: F.sum(p * F.square(_numbers(p) - _category_mean(p)), -1, keepdim=True),
        mode=lambda p: F.cast(F.argmax(p, -1), dtypes.int32),
        entropy=lambda p: F.squeeze(-F.sum(F.xlogy(p, p), -1)),
        kl_loss=lambda p, q: F.sum(F.xlogy(p, p / q), -1), categories=True, counts=True,
    ),
}  # fmt: skip
