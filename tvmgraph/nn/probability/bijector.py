"""Invertible maps with the logarithms of their derivatives."""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import float32
from tvmgraph.errors import ArgumentError, DTypeError, either, reject
from tvmgraph.nn.probability.base import NamedFunctions, as_parameter, require_name


class Bijector(NamedFunctions):
    """Base of the maps.

    A map of one's own has methods ``_forward``, ``_inverse``, ``_forward_log_jacobian`` and
    ``_inverse_log_jacobian``, each a function of the elements.

    Args:
        is_constant_jacobian: Whether the derivative is the same everywhere.
        is_injective: Whether no two elements have the same image.
        name: The name; that of the class by default.
        dtype: Kept for MindSpore programs.
        param: The parameters, numbers or tensors by name; each becomes an attribute.

    Raises:
        DTypeError: if ``name`` is no text.
    """

    def __init__(
        self, is_constant_jacobian: bool = False, is_injective: bool = True,
        name: str | None = None, dtype: DTypeLike | None = None,
        param: dict[str, object] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if name is not None:
            require_name(name, type(self).__name__)
        self._constant, self._injective = is_constant_jacobian, is_injective
        self._name = name or type(self).__name__
        self._dtype = None if dtype is None else dtypes.dtype_of(dtype)
        self._described = dict(param or {})

    def _add(self, key: str, value: object) -> Tensor:
        """Keeps a parameter, and returns it as a Tensor."""
        self._described[key] = value
        return as_parameter(value, float32)

    @property
    def dtype(self) -> dtypes.DType | None:
        """The type given to the constructor."""
        return self._dtype

    @property
    def parameters(self) -> dict[str, object]:
        """The arguments of the constructor."""
        return {**self._described, "name": self._name}

    @property
    def is_constant_jacobian(self) -> bool:
        """Whether the derivative is the same everywhere."""
        return self._constant

    @property
    def is_injective(self) -> bool:
        """Whether no two elements have the same image."""
        return self._injective

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the parameters."""
        tensors = [as_parameter(v, float32) for v in self._described.values() if v is not None]
        return np.broadcast_shapes(*(t.shape for t in tensors))

    def _found(
        self, what: str, value: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Tensor:
        own = getattr(type(self), f"_{what}", None)
        if own is None:
            reject(either(DTypeError, NotImplementedError), self._name,
                   f"{what} has no formula for {type(self).__name__}")  # fmt: skip
        return own(self, as_parameter(value, float32), *args, **kwargs)

    def forward(self, value: object, *args: object, **kwargs: object) -> Tensor:
        """Returns the images of elements.

        Args:
            value: The elements.
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("forward", value, args, kwargs)

    def inverse(self, value: object, *args: object, **kwargs: object) -> Tensor:
        """Returns the elements that have given images.

        Args:
            value: The images.
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("inverse", value, args, kwargs)

    def forward_log_jacobian(self, value: object, *args: object, **kwargs: object) -> Tensor:
        """Returns the logarithm of the derivative's absolute value.

        Args:
            value: The elements.
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("forward_log_jacobian", value, args, kwargs)

    def inverse_log_jacobian(self, value: object, *args: object, **kwargs: object) -> Tensor:
        """Returns the logarithm of the absolute value of the inverse map's derivative.

        Args:
            value: The images.
            *args: Parameters that replace those of the constructor, in their order.
            **kwargs: The same by name.
        """
        return self._found("inverse_log_jacobian", value, args, kwargs)

    def extend_repr(self) -> str:
        """Returns the parameters for the representation."""
        return ", ".join(f"{k}={v!r:.40}" for k, v in self._described.items())


class PowerTransform(Bijector):
    r"""The map :math:`(1 + c x)^{1/c}`, which is :math:`e^x` for :math:`c = 0`.

    Args:
        power: :math:`c`, not negative.
        name: The name.

    Raises:
        ArgumentError: if ``power`` is negative.
        DTypeError: if it is no number.
    """

    def __init__(self, power: float = 0.0, name: str = "PowerTransform") -> None:
        number = isinstance(power, (int, float)) and not isinstance(power, bool)
        if not number or power < 0:
            raise (ArgumentError if number else DTypeError)(
                f"power must be a number from 0 on, not {power!r}", op="PowerTransform"
            )
        super().__init__(name=name, param={"power": power})
        self.power = power

    def _forward(self, x: Tensor) -> Tensor:
        return F.exp(x) if self.power == 0 else F.pow(1 + self.power * x, 1 / self.power)

    def _inverse(self, y: Tensor) -> Tensor:
        return F.log(y) if self.power == 0 else (F.pow(y, self.power) - 1) / self.power

    def _forward_log_jacobian(self, x: Tensor) -> Tensor:
        return x if self.power == 0 else (1 / self.power - 1) * F.log1p(self.power * x)

    def _inverse_log_jacobian(self, y: Tensor) -> Tensor:
        return (self.power - 1) * F.log(y)


class Exp(PowerTransform):
    """The map :math:`e^x`.

    Args:
        name: The name.

    Example:
        >>> float(nn.probability.bijector.Exp().inverse(Tensor(1.0)))
        0.0
    """

    def __init__(self, name: str = "Exp") -> None:
        super().__init__(0.0, name)


class ScalarAffine(Bijector):
    """The map :math:`a x + b`.

    Args:
        scale: :math:`a`.
        shift: :math:`b`.
        name: The name.
    """

    def __init__(
        self, scale: object = 1.0, shift: object = 0.0, name: str = "ScalarAffine"
    ) -> None:
        super().__init__(True, name=name)
        self.scale, self.shift = self._add("scale", scale), self._add("shift", shift)

    def _forward(self, x: Tensor) -> Tensor:
        return self.scale * x + self.shift

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.shift) / self.scale

    def _forward_log_jacobian(self, x: Tensor) -> Tensor:
        return F.log(F.abs(self.scale))

    def _inverse_log_jacobian(self, y: Tensor) -> Tensor:
        return -F.log(F.abs(self.scale))


class Softplus(Bijector):
    r"""The map :math:`\log(1 + e^{s x}) / s`.

    Args:
        sharpness: :math:`s`.
        name: The name.
    """

    def __init__(self, sharpness: object = 1.0, name: str = "Softplus") -> None:
        super().__init__(name=name)
        self.sharpness = self._add("sharpness", sharpness)

    def _forward(self, x: Tensor) -> Tensor:
        return F.softplus(self.sharpness * x) / self.sharpness

    def _inverse(self, y: Tensor) -> Tensor:
        return y + F.log(-F.expm1(-self.sharpness * y)) / self.sharpness

    def _forward_log_jacobian(self, x: Tensor) -> Tensor:
        return F.logsigmoid(self.sharpness * x)

    def _inverse_log_jacobian(self, y: Tensor) -> Tensor:
        return -F.log(-F.expm1(-self.sharpness * y))


class GumbelCDF(Bijector):
    r"""The map :math:`e^{-e^{-(x - m) / s}}`.

    Args:
        loc: :math:`m`.
        scale: :math:`s`, positive.
        name: The name.

    Raises:
        ArgumentError: if a scale is not positive.
    """

    def __init__(self, loc: object = 0.0, scale: object = 1.0, name: str = "GumbelCDF") -> None:
        super().__init__(name=name)
        self.loc, self.scale = self._add("loc", loc), self._add("scale", scale)
        if state.interpreter is None and (self.scale.asnumpy() <= 0).any():
            raise ArgumentError(f"scale must be positive, not {scale!r:.60}", op=self._name)

    def _forward(self, x: Tensor) -> Tensor:
        return F.exp(-F.exp((self.loc - x) / self.scale))

    def _inverse(self, y: Tensor) -> Tensor:
        return self.loc - self.scale * F.log(-F.log(y))

    def _forward_log_jacobian(self, x: Tensor) -> Tensor:
        z = (x - self.loc) / self.scale
        return -z - F.exp(-z) - F.log(self.scale)

    def _inverse_log_jacobian(self, y: Tensor) -> Tensor:
        return F.log(self.scale / (-F.log(y) * y))


class Invert(Bijector):
    """The inverse of a map.

    Args:
        bijector: The map.
        name: The name; by default that of the map after ``Invert``.
    """

    def __init__(self, bijector: Bijector, name: str = "") -> None:
        if not isinstance(bijector, Bijector):
            raise DTypeError(f"bijector must be a Bijector, not {type(bijector).__name__}",
                             op="Invert")  # fmt: skip
        super().__init__(bijector.is_constant_jacobian, bijector.is_injective,
                         f"Invert{bijector.name}" if name == "" else name)  # fmt: skip
        self.bijector = bijector

    @property
    def parameters(self) -> dict[str, object]:
        """The arguments of the constructor."""
        return {"bijector": self.bijector, "name": self._name}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the map's parameters."""
        return self.bijector.batch_shape

    def _forward(self, x: Tensor) -> Tensor:
        return self.bijector.inverse(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.bijector.forward(y)

    def _forward_log_jacobian(self, x: Tensor) -> Tensor:
        return self.bijector.inverse_log_jacobian(x)

    def _inverse_log_jacobian(self, y: Tensor) -> Tensor:
        return self.bijector.forward_log_jacobian(y)


__all__ = [
    "Bijector", "Exp", "GumbelCDF", "Invert", "PowerTransform", "ScalarAffine", "Softplus",
]  # fmt: skip


def __dir__() -> list[str]:
    return list(__all__)
