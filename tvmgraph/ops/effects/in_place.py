"""Functions that change their first argument; each is the method of that name."""

from __future__ import annotations

from tvmgraph.core.tensor import Tensor


def bernoulli_(input: Tensor, p: object = 0.5, *, generator: object = None) -> Tensor:
    """Fills with ones of probability ``p`` and zeros."""
    return input.bernoulli_(p, generator=generator)


def clamp_(input: Tensor, min: object = None, max: object = None) -> Tensor:
    """Draws elements into [min, max]."""
    return input.clamp_(min, max)


def erfinv_(input: Tensor) -> Tensor:
    """Replaces elements by their inverse error function."""
    return input.erfinv_()


def exponential_(input: Tensor, lambd: float = 1, *, generator: object = None) -> Tensor:
    """Fills with numbers of an exponential distribution of rate ``lambd``."""
    return input.exponential_(lambd, generator=generator)


def normal_(input: Tensor, mean: float = 0, std: float = 1, *, generator: object = None) -> Tensor:
    """Fills with normal numbers."""
    return input.normal_(mean, std, generator=generator)


def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Writes (or adds) ``source`` at places of the flattened tensor."""
    return input.put_(index, source, accumulate)


def random_(
    input: Tensor, from_: int = 0, to: int | None = None, *, generator: object = None
) -> Tensor:
    """Fills with whole numbers of ``[from_, to)``."""
    return input.random_(from_, to, generator=generator)


def tanh_(input: Tensor) -> Tensor:
    """Replaces elements by their hyperbolic tangent."""
    return input.tanh_()


def uniform_(input: Tensor, from_: float = 0, to: float = 1, *, generator: object = None) -> Tensor:
    """Fills with numbers of ``[from_, to)``."""
    return input.uniform_(from_, to, generator=generator)


def zero_(input: Tensor) -> Tensor:
    """Fills the tensor with zeros, in place."""
    return input.zero_()


__all__ = [
    "bernoulli_", "clamp_", "erfinv_", "exponential_", "normal_", "put_", "random_", "tanh_",
    "uniform_", "zero_",
]  # fmt: skip
