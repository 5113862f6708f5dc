"""What MindSpore's optimizer module offers to subclasses, beside the base class."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

#: Arguments that are parameters; all others are settings.
_PARAMETERS = ("params", "parameters")


def opt_init_args_register(fn: Callable[..., None]) -> Callable[..., None]:
    """Makes an optimizer's ``__init__`` remember its arguments.

    Args:
        fn: The method ``__init__``.

    Returns:
        A method that sets ``self.init_params`` (``{"params": ...}``), ``self.init_learning_rate``
        (``None`` for a Cell) and ``self.init_args`` (all other arguments by name, defaults
        included), then calls ``fn``. Its signature is ``(*args, **kwargs)``, as MindSpore's is:
        zoos choose by it what they pass on.
    """
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def remembered(self: object, *args: object, **kwargs: object) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        _self, *names = bound.arguments
        given = {name: bound.arguments[name] for name in names}
        # attributes of a Cell may be set before Cell.__init__ has run
        params = next((given.pop(name) for name in _PARAMETERS if name in given), None)
        object.__setattr__(self, "init_params", {"params": params})
        if "learning_rate" in given:
            rate = given.pop("learning_rate")
            rate = rate.asnumpy().tolist() if hasattr(rate, "asnumpy") else rate
            schedule = hasattr(rate, "construct")
            object.__setattr__(self, "init_learning_rate", None if schedule else rate)
        object.__setattr__(self, "init_args", given)
        fn(self, *args, **kwargs)

    del remembered.__wrapped__
    return remembered


__all__ = ["opt_init_args_register"]
