"""What distributions have in common: which function follows from which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, NotFoundError, either, reject, user_source
from tvmgraph.nn.cell import Cell

# function -> from which others it follows, and how
_WAYS: Mapping[str, tuple[tuple[str, Callable[[Tensor], Tensor]], ...]] = {
    "prob": (("log_prob", lambda v: F.exp(v)),),
    "log_prob": (("prob", lambda v: F.log(v)),),
    "cdf": (
        ("log_cdf", lambda v: F.exp(v)),
        ("survival_function", lambda v: 1 - v),
        ("log_survival", lambda v: -F.expm1(v)),
    ),
    "log_cdf": (("cdf", lambda v: F.log(v)),),
    "survival_function": (("log_survival", lambda v: F.exp(v)), ("cdf", lambda v: 1 - v)),
    "log_survival": (("survival_function", lambda v: F.log(v)),),
    "sd": (("var", lambda v: F.sqrt(v)),),
    "var": (("sd", lambda v: F.square(v)),),
}


def as_parameter(value: object, dtype: dtypes.DType) -> Tensor:
    """Returns a parameter (a number, an array, nested lists or a Tensor) as a Tensor of floats.

    Args:
        value: The parameter.
        dtype: dtype of the Tensor, unless it is one of floats.
    """
    if isinstance(value, Tensor):
        return value if value.dtype.is_float else F.cast(value, dtype)
    found = np.asarray(value)
    if found.dtype.kind not in "biuf":
        raise DTypeError(f"a parameter is made of numbers, not {value!r:.60}", at=user_source())
    return Tensor(found, dtype)


def require_name(name: object, kind: str) -> None:
    """Checks what is to be the name of a distribution or map.

    Args:
        name: The name.
        kind: Name of its class, for the error.

    Raises:
        DTypeError: if the name is no text.
    """
    if not isinstance(name, str):
        raise DTypeError(f"name must be a text, not {type(name).__name__}", op=kind)


class NamedFunctions(Cell):
    """Base of the distributions and the maps: a call names one of their functions."""

    _name: str

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the parameters."""
        return ()

    @property
    def is_scalar_batch(self) -> bool:
        """Whether the parameters are numbers."""
        return self.batch_shape == ()

    def construct(self, name: str, *args: object, **kwargs: object) -> Tensor:
        """Calls a function by its name, such as ``"log_prob"`` or ``"forward"``.

        Args:
            name: Name of the function.
            *args: Its arguments.
            **kwargs: The same by name.

        Raises:
            DTypeError: if there is no such function.
        """
        function = getattr(type(self), name, None)
        if function is None or name.startswith("_"):
            reject(either(DTypeError, NotImplementedError), self._name,
                   f"there is no function {name!r}")  # fmt: skip
        return function(self, *args, **kwargs)


class Distribution(NamedFunctions):
    """Base of the distributions.

    A distribution of one's own has methods ``_prob`` or ``_log_prob``, ``_cdf``, ``_mean``,
    ``_sd`` or ``_var``, ``_mode``, ``_entropy``, ``_kl_loss`` and ``_sample``; what it lacks
    follows from the others where it can.

    Args:
        seed: Where random numbers begin; None or 0 continues the package's.
        dtype: Type of samples.
        name: The name.
        param: The arguments of the constructor, as a dict.

    Raises:
        ArgumentError: if ``seed`` is negative.
        DTypeError: if ``seed`` is no int, ``name`` no text, or samples cannot be of ``dtype``.
    """

    _arity = 0  # how many parameters it has
    _counts = True  # whether samples may be integers

    def __init__(
        self, seed: int | None, dtype: DTypeLike, name: str, param: Mapping[str, object]
    ) -> None:
        super().__init__()
        require_name(name, type(self).__name__)
        if seed is not None and (type(seed) is not int or seed < 0):
            raise (ArgumentError if type(seed) is int else DTypeError)(
                f"seed must be an int that is not negative, not {seed!r}", op=name
            )
        self._name, self._seed, self._dtype = name, seed, dtypes.dtype_of(dtype)
        if not (self._dtype.is_float or (self._counts and self._dtype.is_integer)):
            kinds = "numbers" if self._counts else "floats"
            raise DTypeError(f"samples are {kinds}, not {self._dtype.name}", op=name)
        given = {k: v for k, v in param.items() if k not in ("self", "__class__")}
        self._described = {"name": name, "seed": seed, "dtype": self._dtype} | given

    @property
    def dtype(self) -> dtypes.DType:
        """Type of samples."""
        return self._dtype

    @property
    def seed(self) -> int:
        """Where random numbers begin; 0 continues the package's."""
        return self._seed or 0

    @property
    def parameters(self) -> dict[str, object]:
        """The arguments of the constructor."""
        return dict(self._described)

    @property
    def broadcast_shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.batch_shape

    def _found(self, what: str, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        found = self._derived(what, args, kwargs, ())
        if found is None:
            reject(either(NotFoundError, NotImplementedError), self._name,
                   f"{what} has no formula for {type(self).__name__}")  # fmt: skip
        return found

    def _derived(
        self,
        what: str,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        without: tuple[str, ...],
    ) -> Any:
        own = getattr(type(self), f"_{what}", None)
        if own is not None:
            return own(self, *args, **kwargs)
        for source, convert in _WAYS.get(what, ()):
            if source not in without:
                found = self._derived(source, args, kwargs, (*without, what))
                if found is not None:
                    return convert(found)
        return None

    def prob(self, value: object, *args: object, **kwargs: object) -> Tensor:
        """Returns the density (or probability) at elements; see :meth:`log_prob`.

        Args:
            value: The elements.
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("prob", (value, *args), kwargs)

    def log_prob(self, value: object, *args: object, **kwargs: object) -> Tensor:
        """Returns the logarithm of the density (or of the probability).

        Args:
            value: The elements.
            args: Parameters that replace those of the constructor, in their order.
            kwargs: The same by name.
        """
        return self._found("log_prob", (value, *args), kwargs)

    def cdf(self, value: object, *args: object, **kwargs: object) -> Tensor:
        """Returns the probability of elements up to ``value``; see :meth:`log_prob`.

        Args:
            value: The elements.
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("cdf", (value, *args), kwargs)

    def log_cdf(self, value: object, *args: object, **kwargs: object) -> Tensor:
        """Returns the logarithm of :meth:`cdf`.

        Args:
            value: The elements.
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("log_cdf", (value, *args), kwargs)

    def survival_function(self, value: object, *args: object, **kwargs: object) -> Tensor:
        """Returns the probability of elements above ``value``; see :meth:`log_prob`.

        Args:
            value: The elements.
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("survival_function", (value, *args), kwargs)

    def log_survival(self, value: object, *args: object, **kwargs: object) -> Tensor:
        """Returns the logarithm of :meth:`survival_function`.

        Args:
            value: The elements.
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("log_survival", (value, *args), kwargs)

    def mean(self, *args: object, **kwargs: object) -> Tensor:
        """Returns the mean.

        Args:
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("mean", args, kwargs)

    def sd(self, *args: object, **kwargs: object) -> Tensor:
        """Returns the standard deviation.

        Args:
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("sd", args, kwargs)

    def var(self, *args: object, **kwargs: object) -> Tensor:
        """Returns the variance.

        Args:
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("var", args, kwargs)

    def mode(self, *args: object, **kwargs: object) -> Tensor:
        """Returns the likeliest element.

        Args:
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("mode", args, kwargs)

    def entropy(self, *args: object, **kwargs: object) -> Tensor:
        """Returns the entropy in nats.

        Args:
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("entropy", args, kwargs)

    def kl_loss(self, dist: str, *args: object, **kwargs: object) -> Tensor:
        """Returns the Kullback-Leibler divergence from another distribution.

        Args:
            dist: Its kind, which must be the same.
            args: Its parameters, then those that replace the constructor's.
            kwargs: The same by name; those of the other one end in ``_b``.
        """
        return self._found("kl_loss", (dist, *args), kwargs)

    def cross_entropy(self, dist: str, *args: object, **kwargs: object) -> Tensor:
        """Returns the entropy plus the divergence; see :meth:`kl_loss`.

        Args:
            dist: The other distribution's kind, which must be the same.
            *args: Its parameters, then those that replace the constructor's.
            **kwargs: The same by name; those of the other one end in ``_b``.
        """
        own = getattr(type(self), "_cross_entropy", None)
        if own is not None:
            return own(self, dist, *args, **kwargs)
        divergence = self.kl_loss(dist, *args, **kwargs)
        mine = {k: v for k, v in kwargs.items() if not k.endswith("_b")}
        others = self._arity - (len(kwargs) - len(mine))
        return divergence + self.entropy(*args[others:], **mine)

    def sample(self, *args: object, **kwargs: object) -> Tensor:
        """Returns random elements.

        Args:
            args: The shape, to which that of the parameters is appended, then parameters that
                replace the constructor's.
            kwargs: The same by name.
        """
        return self._found("sample", args, kwargs)

    def get_dist_args(self, *args: object, **kwargs: object) -> tuple[Tensor, ...]:
        """Returns the parameters: those given, else the constructor's.

        Args:
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("get_dist_args", args, kwargs)

    def get_dist_type(self) -> str:
        """Returns the kind that :meth:`kl_loss` asks for."""
        return type(self).__name__
