"""Distributions and bijectors: every function against sums and integrals of the density."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.nn.probability import bijector, distribution
from tvmgraph.nn.probability.formulas import ROWS

# name -> parameters, other parameters, where the elements are
CONTINUOUS: dict[str, tuple[tuple[float, ...], tuple[float, ...], tuple[float, float]]] = {
    "Normal": ((0.5, 1.5), (1.0, 2.0), (-14, 15)),
    "HalfNormal": ((0.5, 1.5), (0.5, 2.0), (0.5, 15)),
    "LogNormal": ((0.2, 0.6), (0.4, 0.9), (1e-6, 60)),
    "Laplace": ((0.5, 1.5), (1.0, 2.0), (-30, 31)),
    "Logistic": ((0.5, 1.5), (1.0, 2.0), (-30, 31)),
    "Cauchy": ((0.5, 1.5), (1.0, 2.0), (-2e4, 2e4)),
    "Gumbel": ((0.5, 1.5), (1.0, 2.0), (-8, 40)),
    "StudentT": ((7.0, 0.5, 1.5), (4.0, 0.5, 1.5), (-200, 200)),
    "Uniform": ((0.5, 2.0), (0.2, 3.0), (0.5, 2.0)),
    "Exponential": ((0.7,), (1.2,), (0, 40)),
    "Gamma": ((2.5, 1.5), (1.5, 2.5), (0, 30)),
    "Beta": ((2.0, 3.0), (1.5, 2.5), (0, 1)),
}
DISCRETE: dict[str, tuple[tuple[Any, ...], tuple[Any, ...], int]] = {
    "Bernoulli": ((0.3,), (0.6,), 2),
    "Geometric": ((0.3,), (0.6,), 60),
    "Poisson": ((1.7,), (2.7,), 30),
    "Categorical": (([0.2, 0.3, 0.5],), ([0.5, 0.2, 0.3],), 3),
}
ALL = {**CONTINUOUS, **DISCRETE}


def made(name: str) -> Any:
    """Returns a distribution with the parameters of the table and samples of floats."""
    parameters = [Tensor(p, ms.float32) for p in ALL[name][0]]
    return getattr(distribution, name)(*parameters, dtype=ms.float32)


def support(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns elements and the weight of each in a sum over all of them."""
    if name in DISCRETE:
        places = np.arange(DISCRETE[name][2], dtype=np.float64)
        return places, np.ones_like(places)
    low, high = CONTINUOUS[name][2]
    if name == "Cauchy":  # its tails are long
        grid = np.tan(np.linspace(-math.pi / 2 + 5e-5, math.pi / 2 - 5e-5, 200001)) * 1.5 + 0.5
    else:
        grid = np.linspace(low, high, 200001)
    steps = np.diff(grid)
    return grid, np.concatenate([steps[:1], steps[:-1] + steps[1:], steps[-1:]]) / 2


def summed(name: str, parameters: tuple[Any, ...], what: Any) -> np.ndarray:
    """Returns the expectation of a function of the elements and their log-density."""
    x, weight = support(name)
    given = [Tensor(p, ms.float32) for p in parameters]
    log = made(name).log_prob(Tensor(x, ms.float32), *given).asnumpy().astype(np.float64)
    values = np.where(np.isneginf(log), 0.0, np.exp(log) * what(x, np.maximum(log, -1e9)))
    return (values * weight).sum()


@pytest.mark.parametrize("name", ALL)
def test_moments_are_sums(name: str) -> None:
    d, parameters = made(name), ALL[name][0]
    row = ROWS[name]
    np.testing.assert_allclose(summed(name, parameters, lambda x, _: 1), 1, atol=2e-4)
    if row.mean is not None:
        mean = summed(name, parameters, lambda x, _: x)
        np.testing.assert_allclose(d.mean().asnumpy().item(), mean, rtol=1e-3)
        var = summed(name, parameters, lambda x, _: (x - mean) ** 2)
        np.testing.assert_allclose(d.var().asnumpy().item(), var, rtol=5e-3)
        np.testing.assert_allclose(d.sd().asnumpy().item(), math.sqrt(var), rtol=5e-3)
    if row.entropy is not None:
        entropy = summed(name, parameters, lambda _, log: -log)
        np.testing.assert_allclose(d.entropy().asnumpy().item(), entropy, rtol=2e-3)
    if row.mode is not None:
        x = support(name)[0]
        densities = d.prob(Tensor(x, ms.float32)).asnumpy()
        at_mode = d.prob(d.mode()).asnumpy().item()
        np.testing.assert_allclose(at_mode, densities.max(), rtol=1e-3)


@pytest.mark.parametrize("name", ALL)
def test_distribution_functions_are_sums(name: str) -> None:
    d = made(name)
    x, weight = support(name)
    total = np.cumsum(d.prob(Tensor(x, ms.float32)).asnumpy().astype(np.float64) * weight)
    some = np.flatnonzero((total > 0.05) & (total < 0.95))[:: max(len(x) // 40, 1)]
    value, expected = Tensor(x[some], ms.float32), total[some]
    assert len(expected) > 0
    np.testing.assert_allclose(d.cdf(value).asnumpy(), expected, rtol=0, atol=1e-3)
    np.testing.assert_allclose(d.log_cdf(value).asnumpy(), np.log(expected), rtol=0, atol=1e-2)
    survival = d.survival_function(value).asnumpy()
    np.testing.assert_allclose(survival, 1 - expected, rtol=0, atol=1e-3)
    log_survival = d.log_survival(value).asnumpy()
    np.testing.assert_allclose(log_survival, np.log1p(-expected), rtol=0, atol=1e-2)
    np.testing.assert_allclose(d("cdf", value).asnumpy(), expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", [n for n in ALL if ROWS[n].kl_loss is not None])
def test_divergence_is_a_sum(name: str) -> None:
    mine, other = ALL[name][:2]
    x, _ = support(name)
    of_other = [Tensor(p, ms.float32) for p in other]
    d = made(name)
    log = d.log_prob(Tensor(x, ms.float32), *of_other).asnumpy().astype(np.float64).clip(-1e9)
    cross = summed(name, mine, lambda _, __: -log)
    divergence = cross - summed(name, mine, lambda _, log: -log)
    np.testing.assert_allclose(d.kl_loss(name, *of_other).asnumpy().item(), divergence, atol=2e-3)
    by_name = dict(zip((f"{k}_b" for k in ROWS[name].parameters.split()), of_other))
    swapped = getattr(distribution, name)(dtype=ms.float32) if name != "Gumbel" else d
    own = [Tensor(p, ms.float32) for p in mine]
    np.testing.assert_allclose(
        swapped.kl_loss(name, *of_other, *own).asnumpy(), d.kl_loss(name, **by_name).asnumpy()
    )
    if ROWS[name].entropy is not None:
        np.testing.assert_allclose(
            d.cross_entropy(name, **by_name).asnumpy().item(), cross, atol=2e-3
        )


@pytest.mark.parametrize("name", ALL)
def test_samples_follow_the_distribution(name: str) -> None:
    ms.set_seed(7)
    d = made(name)
    drawn = d.sample((50, 200))
    assert drawn.shape == (50, 200) and drawn.dtype is ms.float32
    x = np.sort(drawn.asnumpy().ravel())
    share = np.searchsorted(x, x, side="right") / x.size
    # the distance of Kolmogorov and Smirnov: 1.95 / sqrt(n) is exceeded once in a thousand times
    assert np.abs(d.cdf(Tensor(x)).asnumpy() - share).max() < 1.95 / math.sqrt(x.size)
    assert (d.sample((50, 200)).asnumpy() != drawn.asnumpy()).any()


@pytest.mark.parametrize("name", ALL)
def test_compiled_code_and_gradients(name: str) -> None:
    d = made(name)
    x = Tensor([0.0, 1.0] if name in DISCRETE else [0.6, 0.9], ms.float32)
    parameters = [Tensor(p, ms.float32) for p in ALL[name][1]]

    def f(x: Tensor, *parameters: Tensor) -> Tensor:
        return d.log_prob(x, *parameters).sum()

    np.testing.assert_allclose(ms.jit(f)(x, *parameters).item(), f(x, *parameters).item(), 1e-5)
    by_all = ms.GradOperation(get_all=True)(f)
    for i, (g, h) in enumerate(zip(by_all(x, *parameters)[1:], ms.jit(by_all)(x, *parameters)[1:])):
        np.testing.assert_allclose(h.asnumpy(), g.asnumpy(), rtol=1e-4, atol=1e-6)
        if name in ("HalfNormal", "Categorical"):
            continue  # the first moves the support, the second leaves the simplex
        step = 1e-3
        sums = []
        for sign in (1, -1):
            moved = [p + sign * step if i == j else p for j, p in enumerate(parameters)]
            sums.append(d.log_prob(x, *moved).asnumpy().astype(np.float64).sum())
        np.testing.assert_allclose(g.asnumpy(), (sums[0] - sums[1]) / 2e-3, rtol=2e-2, atol=2e-3)


def test_parameters_of_calls_and_constructors() -> None:
    normal = distribution.Normal([0.0, 1.0], 2.0, name="n")
    assert normal.batch_shape == normal.broadcast_shape == (2,) and not normal.is_scalar_batch
    assert normal.parameters["sd"] == 2.0 and normal.name == "n" and normal.seed == 0
    assert (
        normal.sample((3,)).shape == (3, 2) and distribution.Normal(0.0, 1.0).sample().shape == ()
    )
    assert [a.shape for a in normal.get_dist_args()] == [(2,), ()]
    assert normal.get_dist_type() == "Normal" and repr(normal) == "Normal(batch_shape = (2,))"
    assert normal.mean(Tensor(3.0), Tensor(1.0)).item() == 3.0
    np.testing.assert_allclose(normal.sd(sd=Tensor(4.0)).asnumpy(), [4.0, 4.0])
    mean = ms.Parameter(Tensor([0.5]), name="m")
    assert distribution.Normal(mean, 1.0).trainable_params() == [mean]
    uniform = distribution.Uniform(0.0, [1.0, 2.0])
    assert uniform.high.asnumpy().tolist() == [1.0, 2.0]
    assert distribution.Categorical([[0.5, 0.5]]).sample((4,)).shape == (4, 1)
    assert distribution.Bernoulli(0.5).sample((4,)).dtype is ms.int32
    seeded = [distribution.Normal(0.0, 1.0, seed=s).sample((4,)).asnumpy() for s in (1, 1, 2)]
    assert (seeded[0] == seeded[1]).all() and (seeded[0] != seeded[2]).any()


def test_a_distribution_of_one_s_own() -> None:
    class Dice(distribution.Distribution):
        def __init__(self) -> None:
            super().__init__(None, ms.int32, "Dice", {})

        def _prob(self, value: Tensor) -> Tensor:
            return ms.ops.full_like(value, 1 / 6)

        def _cdf(self, value: Tensor) -> Tensor:
            return value / 6

        def _var(self) -> Tensor:
            return Tensor(35 / 12)

    dice = Dice()
    x = Tensor([1.0, 3.0])
    np.testing.assert_allclose(dice.log_prob(x).asnumpy(), np.log([1 / 6] * 2), rtol=1e-6)
    np.testing.assert_allclose(dice.log_survival(x).asnumpy(), np.log([5 / 6, 1 / 2]), rtol=1e-6)
    np.testing.assert_allclose(dice.sd().item(), math.sqrt(35 / 12), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="mean has no formula"):
        dice.mean()


MAPS = [
    (bijector.Exp, (), np.exp),
    (bijector.PowerTransform, (0.5,), lambda x: (1 + 0.5 * x) ** 2),
    (bijector.ScalarAffine, (-2.0, 1.0), lambda x: 1 - 2 * x),
    (bijector.Softplus, (2.0,), lambda x: np.log1p(np.exp(2 * x)) / 2),
    (bijector.GumbelCDF, (0.5, 1.5), lambda x: np.exp(-np.exp(-(x - 0.5) / 1.5))),
]


@pytest.mark.parametrize(
    ("kind", "args", "expected"), MAPS, ids=lambda m: getattr(m, "__name__", "")
)
def test_maps(kind: Any, args: tuple[float, ...], expected: Any) -> None:
    b, x = kind(*args), np.array([0.3, 1.0, 2.5])
    y = expected(x)
    given = Tensor(x, ms.float32)
    np.testing.assert_allclose(b.forward(given).asnumpy(), y, rtol=1e-5)
    np.testing.assert_allclose(b.inverse(Tensor(y, ms.float32)).asnumpy(), x, rtol=1e-4)
    slope = (expected(x + 1e-6) - expected(x - 1e-6)) / 2e-6
    log = np.broadcast_to(b.forward_log_jacobian(given).asnumpy(), x.shape)
    np.testing.assert_allclose(log, np.log(np.abs(slope)), rtol=1e-4, atol=1e-5)
    of_inverse = b.inverse_log_jacobian(Tensor(y, ms.float32)).asnumpy()
    np.testing.assert_allclose(np.broadcast_to(of_inverse, x.shape), -log, rtol=1e-4, atol=1e-4)
    back = bijector.Invert(b)
    assert back.name == f"Invert{kind.__name__}"
    np.testing.assert_allclose(back("inverse", given).asnumpy(), y, rtol=1e-5)
    np.testing.assert_allclose(back.inverse_log_jacobian(given).asnumpy(),
                               b.forward_log_jacobian(given).asnumpy())  # fmt: skip
    assert b.is_constant_jacobian == (kind is bijector.ScalarAffine) and b.is_injective
    assert b.is_scalar_batch and b.parameters["name"] == kind.__name__


def test_transformed_distributions() -> None:
    normal = distribution.Normal(0.2, 0.6)
    logs = distribution.TransformedDistribution(bijector.Exp(), normal)
    same, x = distribution.LogNormal(0.2, 0.6), Tensor([0.3, 1.0, 2.5])
    for function in ("prob", "log_prob", "cdf", "survival_function"):
        np.testing.assert_allclose(
            getattr(logs, function)(x).asnumpy(), getattr(same, function)(x).asnumpy(), rtol=1e-5
        )
    with pytest.raises(ArgumentError, match="linear"):
        logs.mean()
    moved = distribution.TransformedDistribution(bijector.ScalarAffine([2.0, 3.0], 1.0), normal)
    np.testing.assert_allclose(moved.mean().asnumpy(), [1.4, 1.6], rtol=1e-6)
    assert moved.is_linear_transformation and moved.batch_shape == (2,)
    assert logs.sample((2, 3)).shape == (2, 3) and (logs.sample((9,)).asnumpy() > 0).all()


def test_what_distributions_refuse() -> None:
    for make, rule in (
        (lambda: distribution.Normal(0.0, -1.0), "sd must be positive"),
        (lambda: distribution.Bernoulli(1.0), "probs must be between 0 and 1"),
        (lambda: distribution.Categorical([0.0, 1.0]), "probs must be between 0 and 1"),
        (lambda: bijector.GumbelCDF(scale=0.0), "scale must be positive"),
        (lambda: distribution.Categorical([0.5, 0.6]), "sum to 1"),
        (lambda: distribution.Uniform(2.0, 1.0), "low must be less than high"),
        (lambda: distribution.Normal(0.0, 1.0, seed=-1), "seed must be"),
        (lambda: distribution.Normal(0.0, 1.0).kl_loss("Gamma", 1.0, 1.0), "dist must be 'Normal'"),
        (lambda: bijector.PowerTransform(-1.0), "power must be"),
    ):
        with pytest.raises(ArgumentError, match=rule):
            make()
    for make, rule in (
        (lambda: distribution.Normal(0.0, 1.0, name=1.0), "name must be a text, not float"),
        (lambda: distribution.Gamma([1.0], [1.0], seed="seed"), "seed must be an int"),
        (lambda: distribution.Normal(0.0, 1.0, dtype=ms.int32), "samples are floats, not int32"),
        (lambda: distribution.Poisson(1.0, dtype=ms.bool_), "samples are numbers, not bool"),
        (lambda: bijector.Invert(bijector.Exp(), name=0.1), "name must be a text"),
        (lambda: bijector.ScalarAffine(scale="scale"), "made of numbers, not 'scale'"),
        (lambda: bijector.PowerTransform("power"), "power must be a number"),
    ):
        with pytest.raises(DTypeError, match=rule):
            make()
    with pytest.raises(ShapeError, match="shapes of the parameters do not agree"):
        distribution.Normal([[2.0], [1.0]], [[2.0], [3.0], [4.0]])
    assert distribution.Poisson(1.0, dtype=ms.int32).sample((2,)).dtype == ms.int32
    with pytest.raises(DTypeError, match="mean is given neither"):
        distribution.Normal().prob(Tensor(1.0))
    with pytest.raises(DTypeError, match="shape must be a tuple"):
        distribution.Normal(0.0, 1.0).sample(3)
    with pytest.raises(NotImplementedError, match="there is no function 'foo'"):
        distribution.Normal(0.0, 1.0)("foo")
    with pytest.raises(DTypeError, match="2 parameters, not 3"):
        distribution.Normal(0.0, 1.0).mean(1.0, 1.0, 1.0)
    assert nn.probability.distribution is distribution
