"""Functions that change their first argument; each is the method of that name."""

from __future__ import annotations

from tvmgraph.core.random import Generator
from tvmgraph.core.tensor import Tensor


def bernoulli_(input: Tensor, p: object = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fills with ones of probability ``p`` and zeros.

    Args:
        input: Tensor of any shape.
        p: Probability in :math:`[0, 1]`, a number or a tensor that broadcasts.
        generator: Where the numbers come from; by default the global stream.

    Returns:
        ``input``.
    """
    return input.bernoulli_(p, generator=generator)


def clamp_(input: Tensor, min: object = None, max: object = None) -> Tensor:
    """Draws elements into :math:`[min, max]`.

    Args:
        input: Tensor of any shape.
        min: Lower limit, a number or tensor; ``None`` for none.
        max: Upper limit, a number or tensor; ``None`` for none.

    Returns:
        ``input``.
    """
    return input.clamp_(min, max)


def erfinv_(input: Tensor) -> Tensor:
    """Replaces elements by their inverse error function.

    Args:
        input: Tensor of any shape with elements in :math:`[-1, 1]`.

    Returns:
        ``input``.
    """
    return input.erfinv_()


def exponential_(input: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fills with numbers of an exponential distribution of rate ``lambd``.

    Args:
        input: Tensor of any shape.
        lambd: The rate.
        generator: Where the numbers come from; by default the global stream.

    Returns:
        ``input``.
    """
    return input.exponential_(lambd, generator=generator)


def normal_(
    input: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None
) -> Tensor:
    """Fills with normal numbers.

    Args:
        input: Tensor of any shape.
        mean: The mean.
        std: The standard deviation.
        generator: Where the numbers come from; by default the global stream.

    Returns:
        ``input``.
    """
    return input.normal_(mean, std, generator=generator)


def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Writes (or adds) ``source`` at places of the flattened tensor.

    Args:
        input: Tensor of any shape.
        index: Positions, integers of any shape; negative ones count from the end.
        source: As many elements as ``index`` has.
        accumulate: Whether to add.

    Returns:
        ``input``.
    """
    return input.put_(index, source, accumulate)


def random_(
    input: Tensor, from_: int = 0, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Fills with whole numbers of ``[from_, to)``.

    Args:
        input: Tensor of any shape.
        from_: The lower end.
        to: The upper end, excluded; by default the largest number up to which the dtype holds every
            integer.
        generator: Where the numbers come from; by default the global stream.

    Returns:
        ``input``.
    """
    return input.random_(from_, to, generator=generator)


def tanh_(input: Tensor) -> Tensor:
    """Replaces elements by their hyperbolic tangent.

    Args:
        input: Tensor of any shape.

    Returns:
        ``input``.
    """
    return input.tanh_()


def uniform_(
    input: Tensor, from_: float = 0, to: float = 1, *, generator: Generator | None = None
) -> Tensor:
    """Fills with numbers of ``[from_, to)``.

    Args:
        input: Tensor of any shape.
        from_: The lower end.
        to: The upper end, excluded.
        generator: Where the numbers come from; by default the global stream.

    Returns:
        ``input``.
    """
    return input.uniform_(from_, to, generator=generator)


def zero_(input: Tensor) -> Tensor:
    """Fills the tensor with zeros, in place.

    Args:
        input: Tensor of any shape.

    Returns:
        ``input``.
    """
    return input.zero_()


__all__ = [
    "bernoulli_", "clamp_", "erfinv_", "exponential_", "normal_", "put_", "random_", "tanh_",
    "uniform_", "zero_",
]  # fmt: skip
