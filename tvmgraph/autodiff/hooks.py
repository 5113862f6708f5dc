"""Operators that leave a value alone and look at, or change, its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvmgraph.autodiff.custom import call_with_bprop
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError, user_source


def _checked(name: str, function: Any) -> Callable[..., Any]:
    if not callable(function):
        raise DTypeError(
            f"{name} needs a function, not {type(function).__name__}", op=name, at=user_source()
        )
    return function


class InsertGradientOf:
    """Passes its input on and applies a function to the gradient.

    Args:
        f: Maps the gradient to what takes its place.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor, ``x``.

    Raises:
        DTypeError: if ``f`` cannot be called.

    Example:
        >>> scale = ops.InsertGradientOf(lambda g: g * 2)
        >>> float(ms.grad(lambda x: scale(x) * 3)(Tensor(1.0)))
        6.0
    """

    def __init__(self, f: Callable[[Tensor], Tensor]) -> None:
        self.f = _checked("InsertGradientOf", f)

    def __call__(self, x: Tensor) -> Tensor:
        return call_with_bprop(
            "InsertGradientOf", F.identity, (x,), lambda x, out, dout: (self.f(dout),)
        )


class HookBackward:
    """Passes its inputs on and shows their gradients to a function when they are computed.

    Args:
        hook_fn: Called with a tuple of gradients. What it returns takes their place, unless it is
            None: one gradient, or a tuple of as many as there are inputs.
        cell_id: Kept for MindSpore programs.

    Inputs:
        - **inputs** (Tensor) - Any shapes.

    Outputs:
        Tensor, or a tuple of tensors if there are several inputs.

    Raises:
        DTypeError: if ``hook_fn`` cannot be called.

    Example:
        >>> seen = []
        >>> hook = ops.HookBackward(seen.append)
        >>> float(ms.grad(lambda x: hook(x) * 3)(Tensor(1.0))), float(seen[0][0])
        (3.0, 3.0)
    """

    def __init__(self, hook_fn: Callable[[tuple[Tensor, ...]], Any], cell_id: str = "") -> None:
        self.hook_fn = _checked("HookBackward", hook_fn)
        self.cell_id = cell_id

    def __call__(self, *inputs: Tensor) -> Any:
        several = len(inputs) > 1

        def forward(*values: Tensor) -> Any:
            copies = tuple(F.identity(v) for v in values)
            return copies if several else copies[0]

        def bprop(*given: Any) -> tuple[Tensor, ...]:
            gradients = tuple(given[-1]) if several else (given[-1],)
            found = self.hook_fn(gradients)
            if found is None:
                return gradients
            return tuple(found) if isinstance(found, (tuple, list)) else (found,)

        return call_with_bprop("HookBackward", forward, inputs, bprop)
