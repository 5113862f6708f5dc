"""What is known of a size that varies: MindSpore's ``Symbol`` in the shape of a placeholder.

The limits are part of the name of the size, so that a placeholder with them is copied, pickled and
compared as any other.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from tvmgraph.errors import ArgumentError, DTypeError

_NAME = re.compile(r"(.*)__(\d+)_to_(\d+)_by_(\d+)_and_(\d+)")
_numbers = itertools.count()


@dataclass(frozen=True)
class Limits:
    """Sizes that an axis may have: those that are ``divisor * n + remainder``, within bounds.

    Attributes:
        least: The smallest.
        most: The largest, or 0 where there is none.
        divisor: The distance of two.
        remainder: The remainder of all.
    """

    least: int
    most: int
    divisor: int
    remainder: int

    def conditions(self, size: str) -> list[str]:
        """Returns Python expressions that are true of the sizes.

        Args:
            size: The size, as an expression.
        """
        found = [f"{size} >= {self.least}"]
        found += [f"{size} <= {self.most}"] if self.most else []
        found += [f"{size} % {self.divisor} == {self.remainder}"] if self.divisor > 1 else []
        return found

    def __str__(self) -> str:
        rest = f"+{self.remainder}" if self.remainder else ""
        said = [f"{self.divisor}*n{rest}"] if self.divisor > 1 else []
        said += [f">={self.least}"] if self.least > self.divisor + self.remainder else []
        return " ".join([*said, f"<={self.most}"] if self.most else said)

    def hold(self, size: int) -> bool:
        """Whether a size is one of them.

        Args:
            size: The size.
        """
        within = self.least <= size and (not self.most or size <= self.most)
        return within and size % self.divisor == self.remainder


class Symbol:
    """What is known of an axis whose size varies: an entry of the shape of a placeholder, as in
    ``Tensor(shape=[None, Symbol(divisor=8)], dtype=ms.float32)`` (see :meth:`Cell.set_inputs`).

    Args:
        max: The largest size, if it is greater than ``min``.
        min: The smallest size.
        divisor: Sizes are ``divisor * n + remainder`` with ``n >= 1``.
        remainder: See there.
        unique: Whether axes with this symbol have one size; otherwise they share the limits only.
        kwargs: Kept for MindSpore programs.

    Raises:
        DTypeError: if a number is no int, or ``unique`` no bool.
        ArgumentError: if ``min`` or ``divisor`` is below 1, or ``remainder`` outside
            ``[0, divisor)``.

    Example:
        >>> net = nn.Dense(16, 4)
        >>> net.set_inputs(Tensor(shape=[Symbol(max=64, divisor=8), 16], dtype=ms.float32))
    """

    def __init__(
        self, max: int = 0, min: int = 1, divisor: int = 1, remainder: int = 0,
        unique: bool = False, **kwargs: object,
    ) -> None:  # fmt: skip
        numbers = {"max": max, "min": min, "divisor": divisor, "remainder": remainder}
        given: dict[str, object] = {**numbers, "unique": unique}
        for name, value in given.items():
            kind = bool if name == "unique" else int
            if not isinstance(value, kind):
                rule = f"{name} must be {kind.__name__}, not {type(value).__name__}"
                raise DTypeError(rule, op="Symbol")
        for name in ("min", "divisor"):
            if numbers[name] < 1:
                raise ArgumentError(f"{name} must be positive, not {numbers[name]}", op="Symbol")
        if not 0 <= remainder < divisor:
            raise ArgumentError(f"remainder must be in [0, {divisor}), not {remainder}",
                                op="Symbol")  # fmt: skip
        self.max, self.min, self.divisor, self.remainder = max, min, divisor, remainder
        self.unique = unique
        self.id = next(_numbers)

    def name_at(self, axis: int) -> str:
        """Returns the name of the size of an axis, which says the limits, too.

        Args:
            axis: Number of the axis.
        """
        name = f"symbol{self.id}" if self.unique else f"any_{axis}"
        least = max(self.min, self.divisor + self.remainder)
        most = self.max if self.max > self.min else 0
        if (least, most, self.divisor) == (1, 0, 1):
            return name
        return f"{name}__{least}_to_{most}_by_{self.divisor}_and_{self.remainder}"

    def to_dict(self) -> dict[str, int]:
        """Returns what is known, by the names of the arguments."""
        known = {
            "max": (self.max, self.max > self.min),
            "min": (self.min, self.min > self.divisor + self.remainder),
            "divisor": (self.divisor, self.divisor != 1),
            "remainder": (self.remainder, self.remainder != 0),
            "id": (self.id, self.unique),
        }
        return {name: value for name, (value, said) in known.items() if said}

    def __str__(self) -> str:
        return str(self.to_dict())


def limits_of(name: str) -> Limits | None:
    """Returns the limits of a size, if it has any.

    Args:
        name: Name of the size.
    """
    found = _NAME.fullmatch(name)
    return found and Limits(*map(int, found.groups()[1:]))


def spoken(name: str) -> str:
    """Returns the name of a size for messages and what is known of it, or ``?``.

    Args:
        name: Name of the size.
    """
    found, limits = _NAME.fullmatch(name), limits_of(name)
    name = found[1] if found else name
    shown = [] if name.startswith("any_") else [name]
    return " ".join([*shown, *([] if limits is None else [str(limits)])]) or "?"
