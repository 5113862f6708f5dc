"""Attributes that a class offers and a subclass or program may replace by assignment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class offered:
    """A property that an assignment to the instance hides.

    Args:
        compute: The method that computes the attribute.
    """

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else self.compute(instance)

    def setter(self, function: Callable[[object, object], None]) -> property:
        """Returns the property of a subclass that says what an assignment does.

        Args:
            function: Takes the object and the value that is assigned.
        """
        return property(self.compute, function)
