"""Distributions whose formulas are a row of the table."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import float32
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either
from tvmgraph.nn.probability.base import Distribution, as_parameter
from tvmgraph.nn.probability.formulas import ROWS, Row

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

    def __init_subclass__(cls) -> None:
        cls._row = row = ROWS[cls.__name__]
        cls._arity, cls._counts = len(row.parameters.split()), row.counts
        for what in (*_OF_ELEMENTS, *_OF_PARAMETERS):
            if getattr(row, what) is not None:
                setattr(cls, f"_{what}", _function(what, what in _OF_ELEMENTS))
        for name in row.parameters.split():
            if not hasattr(Distribution, name):
                setattr(cls, name, property(lambda self, name=name: self._given[name]))

    def __init__(self, seed: int | None, dtype: DTypeLike, name: str, **given: object) -> None:
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
                raise DTypeError(
                    f"{name}{suffix} is given neither in the call nor to the constructor",
                    op=self.name,
                )
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


def _function(what: str, of_elements: bool) -> Any:
    """Returns the method that computes a column of the row."""

    def of_parameters(self: Tabled, *args: object, **kwargs: object) -> Tensor:
        return getattr(self._row, what)(*self._parameters(args, kwargs))

    def at_elements(self: Tabled, value: object, *args: object, **kwargs: object) -> Tensor:
        x = as_parameter(value, float32)
        return getattr(self._row, what)(x, *self._parameters(args, kwargs))

    return at_elements if of_elements else of_parameters
