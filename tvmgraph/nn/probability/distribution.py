"""The distributions: their parameters here, their formulas in :mod:`.formulas`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.compat.paths import as_package
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import float32, int32
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either, reject
from tvmgraph.nn.probability.base import Distribution, as_parameter
from tvmgraph.nn.probability.bijector import Bijector
from tvmgraph.nn.probability.formulas import ROWS, Row

# ---- distributions whose formulas are a row of the table -----------------------------------------

_OF_ELEMENTS = ("log_prob", "cdf", "log_cdf", "log_survival")
#: What parameters are called in representations, where that is not their name.
_WORDS = {
    "Normal": {"sd": "standard deviation"},
    "Cauchy": {"loc": "location"},
    "Logistic": {"loc": "location"},
}
_OF_PARAMETERS = ("mean", "var", "mode", "entropy")


class Tabled(Distribution):
    """A distribution whose formulas are a row of the table."""

    _row: Row

    def __init_subclass__(
        cls, required: bool = False, seed: int | None = None, dtype: dtypes.DType = float32
    ) -> None:
        """Fills a class from its row.

        Args:
            required: Whether the constructor needs the parameters; calls may give them otherwise.
            seed: Default of the constructor.
            dtype: Default of the constructor.
        """
        cls._row = row = ROWS[cls.__name__]
        cls.__init__ = _constructor(cls.__name__, row.parameters.split(), required, seed, dtype)
        cls._arity, cls._counts = len(row.parameters.split()), row.counts
        for what in (*_OF_ELEMENTS, *_OF_PARAMETERS):
            if getattr(row, what) is not None:
                setattr(cls, f"_{what}", _function(what, what in _OF_ELEMENTS))
        for name in row.parameters.split():
            if not hasattr(Distribution, name):
                setattr(cls, name, property(lambda self, name=name: self._given[name]))

    def __init__(self, *parameters: object, **settings: object) -> None:
        """Every class has its own, see :func:`_constructor`."""
        raise NotImplementedError

    def _begin(self, seed: int | None, dtype: DTypeLike, name: str, **given: object) -> None:
        super().__init__(seed, dtype, name, given)
        floats = self.dtype if self.dtype.is_float else float32
        for key, value in given.items():
            if value is not None and isinstance(value, Tensor):
                setattr(self, f"_{key}_given", value)  # so that a Parameter is one of the Cell
        self._given = {k: None if v is None else as_parameter(v, floats) for k, v in given.items()}
        if None not in self._given.values() and state.interpreter is None:
            self._require_valid([p.asnumpy() for p in self._given.values() if p is not None])

    def _require_valid(self, arrays: list[np.ndarray]) -> None:
        holds, rule = self._row.valid
        got = ", ".join(f"{k}={self._described[k]!r:.60}" for k in self._given)
        try:
            valid = np.all(holds(*np.broadcast_arrays(*arrays)))
        except ValueError:
            raise ShapeError("the shapes of the parameters do not agree", op=self.name,
                             got=got) from None  # fmt: skip
        if not valid:
            raise ArgumentError(rule, op=self.name, got=got)

    def _parameters(
        self, args: tuple[object, ...], kwargs: dict[str, object], suffix: str = ""
    ) -> tuple[Tensor, ...]:
        """Returns the parameters of a call: those given, else the constructor's."""
        names = self._row.parameters.split()
        if len(args) > len(names):
            raise DTypeError(f"there are {len(names)} parameters, not {len(args)}", op=self.name)
        given = dict(zip(names, args))
        found = []
        for name in names:
            value = given.get(name, kwargs.get(name + suffix))
            if value is None and not suffix:
                value = self._given[name]
            if value is None:
                rule = f"{name}{suffix} is given neither in the call nor to the constructor"
                reject(DTypeError, self.name, rule)
            found.append(as_parameter(value, float32))
        return tuple(found)

    def _kl_loss(self, dist: str, *args: object, **kwargs: object) -> Tensor:
        if self._row.kl_loss is None:
            raise either(DTypeError, NotImplementedError)("kl_loss has no formula", op=self.name)
        if dist != type(self).__name__:
            raise ArgumentError(f"dist must be {type(self).__name__!r}, not {dist!r}", op=self.name)
        others = self._arity - sum(k.endswith("_b") for k in kwargs)
        b = self._parameters(args[:others], kwargs, "_b")
        return self._row.kl_loss(*self._parameters(args[others:], kwargs), *b)

    def _sample(self, shape: tuple[int, ...] = (), *args: object, **kwargs: object) -> Tensor:
        if not isinstance(shape, (tuple, list)):
            raise DTypeError(f"shape must be a tuple, not {type(shape).__name__}", op=self.name)
        parameters = self._parameters(args, kwargs)
        return F.cast(self._row.draw(tuple(shape), self._seed or None, *parameters), self.dtype)

    def _get_dist_args(self, *args: object, **kwargs: object) -> tuple[Tensor, ...]:
        return self._parameters(args, kwargs)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the parameters."""
        return np.broadcast_shapes(*(p.shape for p in self._given.values() if p is not None))

    @property
    def broadcast_shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.batch_shape[:-1] if self._row.categories else self.batch_shape

    @property
    def is_scalar_batch(self) -> bool:
        """Whether one sample is a number."""
        return self.broadcast_shape == ()

    def extend_repr(self) -> str:
        """Returns the parameters of one distribution, or the shape of several, as text."""
        if not self.is_scalar_batch:
            return f"batch_shape = {self.broadcast_shape}"
        words = _WORDS.get(type(self).__name__, {})
        return ", ".join(f"{words.get(k, k)} = {v}" for k, v in self._given.items())


def _constructor(
    name: str, parameters: list[str], required: bool, seed: int | None, dtype: dtypes.DType
) -> Callable[..., None]:
    """Returns the ``__init__`` of a class, whose signature names the parameters of its row."""
    unknown = "" if required else " = None"
    source = (
        f"def __init__(self, {', '.join(f'{p}: object{unknown}' for p in parameters)}, "
        f"seed: int | None = {seed}, dtype: DTypeLike = default, name: str = {name!r}) -> None:\n"
        f"    self._begin(seed, dtype, name, {', '.join(f'{p}={p}' for p in parameters)})\n"
    )
    space: dict[str, Any] = {"__name__": __name__, "default": dtype}
    exec(compile(source, __file__, "exec"), space)  # of this file: errors name the user's line
    space["__init__"].__qualname__ = f"{name}.__init__"
    return space["__init__"]


def _function(what: str, of_elements: bool) -> Any:
    """Returns the method that computes a column of the row."""

    def of_parameters(self: Tabled, *args: object, **kwargs: object) -> Tensor:
        return getattr(self._row, what)(*self._parameters(args, kwargs))

    def at_elements(self: Tabled, value: object, *args: object, **kwargs: object) -> Tensor:
        x = as_parameter(value, float32)
        return getattr(self._row, what)(x, *self._parameters(args, kwargs))

    return at_elements if of_elements else of_parameters


class Normal(Tabled):
    r"""Normal distribution: density :math:`e^{-(x - m)^2 / 2 s^2} / s\sqrt{2\pi}`.

    Args:
        mean: Mean :math:`m`.
        sd: Standard deviation :math:`s`.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.

    Example:
        >>> normal = nn.probability.distribution.Normal(0.0, 1.0)
        >>> round(float(normal.cdf(Tensor(1.0))), 4)
        0.8413
    """


class HalfNormal(Tabled):
    r"""Half of a normal distribution: :math:`m + s|z|` of a standard normal :math:`z`.

    Args:
        mean: The least element :math:`m`.
        sd: Scale :math:`s`.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class LogNormal(Tabled, seed=0):
    r"""Distribution of :math:`e^z` of a normal :math:`z`.

    Args:
        loc: Mean of :math:`z`.
        scale: Standard deviation of :math:`z`.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class Laplace(Tabled):
    r"""Laplace distribution: density :math:`e^{-|x - m| / s} / 2s`.

    Args:
        mean: Mean :math:`m`.
        sd: Scale :math:`s`; the standard deviation is :math:`s\sqrt 2`.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class Logistic(Tabled):
    r"""Logistic distribution: :math:`P(x \le v) = 1 / (1 + e^{-(v - m) / s})`.

    Args:
        loc: Mean :math:`m`.
        scale: Scale :math:`s`.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class Cauchy(Tabled):
    r"""Cauchy distribution: density :math:`1 / \pi s (1 + ((x - m) / s)^2)`; it has no mean.

    Args:
        loc: Median :math:`m`.
        scale: Scale :math:`s`.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class Gumbel(Tabled, required=True, seed=0):
    r"""Gumbel distribution: :math:`P(x \le v) = e^{-e^{-(v - m) / s}}`.

    Args:
        loc: Mode :math:`m`.
        scale: Scale :math:`s`.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class StudentT(Tabled):
    r"""Student's t-distribution of :math:`(x - m) / s`.

    Args:
        df: Degrees of freedom.
        mean: Median :math:`m`.
        sd: Scale :math:`s`.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class Uniform(Tabled):
    r"""Uniform distribution.

    Args:
        low: Lower end.
        high: Upper end.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class Exponential(Tabled):
    r"""Exponential distribution: density :math:`r e^{-r x}`.

    Args:
        rate: Rate :math:`r`, one over the mean.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class Gamma(Tabled):
    r"""Gamma distribution: density :math:`r^a x^{a - 1} e^{-r x} / \Gamma(a)`.

    Args:
        concentration: Shape :math:`a`.
        rate: Rate :math:`r`.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class Beta(Tabled):
    r"""Beta distribution: density :math:`x^{a - 1} (1 - x)^{b - 1} / B(a, b)`.

    Args:
        concentration1: :math:`a`.
        concentration0: :math:`b`.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class Bernoulli(Tabled, dtype=int32):
    r"""Truths: 1 with a probability, else 0.

    Args:
        probs: Probability of 1.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class Geometric(Tabled, dtype=int32):
    r"""Number of failures before the first success: :math:`P(k) = (1 - p)^k p`.

    Args:
        probs: Probability :math:`p` of a success.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class Poisson(Tabled):
    r"""Poisson distribution: :math:`P(k) = r^k e^{-r} / k!`.

    Args:
        rate: Mean :math:`r`.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class Categorical(Tabled, dtype=int32):
    r"""Numbers 0, 1, ... of given probabilities.

    Args:
        probs: Probabilities; the last axis counts the categories and sums to 1.
        seed: See :class:`Distribution`.
        dtype: Type of samples.
        name: The name.
    """


class TransformedDistribution(Distribution):
    """The distribution of ``bijector.forward(x)``.

    Args:
        bijector: An increasing map.
        distribution: The distribution of ``x``.
        seed: Kept for MindSpore programs; samples begin where those of ``distribution`` do.
        name: The name.

    Example:
        >>> d, b = nn.probability.distribution, nn.probability.bijector
        >>> y = d.TransformedDistribution(b.Exp(), d.Normal(0.0, 1.0))
        >>> float(y.cdf(Tensor(1.0)))
        0.5
    """

    def __init__(
        self,
        bijector: Bijector,
        distribution: Distribution,
        seed: int | None = None,
        name: str = "transformed_distribution",
    ) -> None:
        for key, value, kind in (
            ("bijector", bijector, Bijector), ("distribution", distribution, Distribution)
        ):  # fmt: skip
            if not isinstance(value, kind):
                reject(DTypeError, name,
                       f"{key} must be a {kind.__name__}, not {type(value).__name__}")  # fmt: skip
        given = {"bijector": bijector, "distribution": distribution}
        super().__init__(seed, distribution.dtype, name, given)
        self.bijector, self.distribution = bijector, distribution

    @property
    def is_linear_transformation(self) -> bool:
        """Whether the map is linear."""
        return self.bijector.is_constant_jacobian

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the parameters."""
        return np.broadcast_shapes(self.bijector.batch_shape, self.distribution.broadcast_shape)

    def _log_prob(self, value: object, *args: object, **kwargs: object) -> Tensor:
        x = self.bijector.inverse(value)
        inner = self.distribution.log_prob(x, *args, **kwargs)
        return inner + self.bijector.inverse_log_jacobian(value)

    def _cdf(self, value: object, *args: object, **kwargs: object) -> Tensor:
        return self.distribution.cdf(self.bijector.inverse(value), *args, **kwargs)

    def _mean(self, *args: object, **kwargs: object) -> Tensor:
        if not self.is_linear_transformation:
            raise ArgumentError("the mean has a formula for linear maps only", op=self.name)
        return self.bijector.forward(self.distribution.mean(*args, **kwargs))

    def _sample(self, *args: object, **kwargs: object) -> Tensor:
        return self.bijector.forward(self.distribution.sample(*args, **kwargs))


__path__, __getattr__ = as_package(__name__)  # a package in MindSpore

__all__ = [
    "Bernoulli", "Beta", "Categorical", "Cauchy", "Distribution", "Exponential", "Gamma",
    "Geometric", "Gumbel", "HalfNormal", "Laplace", "LogNormal", "Logistic", "Normal", "Poisson",
    "StudentT", "TransformedDistribution", "Uniform",
]  # fmt: skip


def __dir__() -> list[str]:
    return list(__all__)
