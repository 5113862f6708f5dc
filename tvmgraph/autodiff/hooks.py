"""Operators that leave a value alone and look at, or change, its gradient."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tvmgraph.autodiff.custom import call_with_bprop, require_pure
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.state import bump_epoch, call_user, hooked, state
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, LeavesGraph, either, reject


def _checked(name: str, function: object) -> Callable[..., Any]:
    if not callable(function):
        raise DTypeError(f"{name} needs a function, not {type(function).__name__}", op=name)
    return function


Hook = Callable[[Tensor], "Tensor | None"]


class Handle:
    """What registering a hook returns: ``remove()`` takes the hook off again."""

    def __init__(self, owner: Tensor, hook: Hook) -> None:
        self.owner = owner
        self.hook: Hook | None = hook

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        self.hook = None
        if isinstance(self.owner, Parameter):
            self.owner.gradient_hooks = tuple(h for h in self.owner.gradient_hooks if h is not self)
        elif self.owner._hooks:
            self.owner._hooks = tuple(h for h in self.owner._hooks if h is not self)
            hooked.discard(self)


def register_hook(self: Tensor, hook: Hook) -> Handle:
    """Calls ``hook(gradient)`` when the gradient of this tensor is computed.

    On a Parameter, and on a tensor while nothing is being differentiated, the hook stays for every
    later gradient by that tensor. Within a differentiated function it belongs to the place where
    the tensor was computed.

    Args:
        hook: Returns None, or the gradient to use instead.

    Returns:
        A handle; ``handle.remove()`` takes the hook off.

    Raises:
        DTypeError: if ``hook`` is not callable.
        ArgumentError: for a Parameter without ``requires_grad``.
    """
    handle = Handle(self, _checked("Tensor.register_hook", hook))
    if isinstance(self, Parameter):
        if not self.requires_grad:
            reject(either(ArgumentError, RuntimeError), "Tensor.register_hook",
                   f"{self.name} has requires_grad=False, so no gradient reaches a hook",
                   fix="set requires_grad first")  # fmt: skip
        self.gradient_hooks += (handle,)
        return handle
    if not state.tapes and state.interpreter is None:
        self._hooks = (*(self._hooks or ()), handle)
        hooked.add(handle)
        bump_epoch()
        return handle
    require_pure("Tensor.register_hook", hook, (self,))
    self.rebind(
        call_with_bprop(
            "hook", F.identity, (self,), lambda x, out, dout: (run_hooks((handle,), dout),)
        )
    )
    return handle


def gradient_hooks(tensor: Tensor) -> tuple[Handle, ...]:
    """Returns the hooks that were registered on a tensor outside of differentiation.

    Args:
        tensor: A tensor that gets a gradient.

    Raises:
        LeavesGraph: for an argument of a compiled function, whose hooks are those of one call.
    """
    if isinstance(tensor, Parameter):
        return tensor.gradient_hooks
    if tensor._hooks and state.interpreter is not None:
        raise LeavesGraph(
            "an argument has hooks of its gradient, which run as plain Python",
            op="Tensor.register_hook", got=str(tensor.aval),
            fix="register them inside the function that is differentiated, which compiles them",
        )  # fmt: skip
    return tensor._hooks or ()


def run_hooks(hooks: Sequence[Handle], gradient: Tensor) -> Tensor:
    """Returns a gradient after all hooks have seen, and possibly replaced, it.

    Args:
        hooks: The hooks, in the order in which they were registered.
        gradient: The gradient before them.
    """
    for handle in hooks:
        if handle.hook is None:
            continue
        native = inspect.isbuiltin(handle.hook)
        changed = handle.hook(gradient) if native else call_user(handle.hook, (gradient,))
        gradient = gradient if changed is None else changed
    return gradient


def hooks(self: Tensor) -> list[Hook | None]:
    """Returns the functions that gradients of this tensor are given to, in their order.

    Args:
        self: The tensor.
    """
    return [handle.hook for handle in gradient_hooks(self)]


# methods of Tensor that need this room, which lies above the one of Tensor
for _method in (register_hook, hooks):
    setattr(Tensor, _method.__name__, _method)


def _register_hook(self: Parameter, hook_fn: Hook) -> Handle:
    """Calls ``hook_fn(gradient)`` when the gradient by this parameter is computed.

    Args:
        hook_fn: Returns None, or the gradient to use instead.
    """
    return register_hook(self, hook_fn)


setattr(Parameter, register_hook.__name__, _register_hook)


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
        require_pure("InsertGradientOf", self.f, (x,))
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

    def __init__(self, hook_fn: Callable[[tuple[Tensor, ...]], object], cell_id: str = "") -> None:
        self.hook_fn = _checked("HookBackward", hook_fn)
        self.cell_id = cell_id

    def __call__(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        several = len(inputs) > 1
        require_pure("HookBackward", self.hook_fn, (inputs,))

        def forward(*values: Tensor) -> Tensor | tuple[Tensor, ...]:
            copies = tuple(F.identity(v) for v in values)
            return copies if several else copies[0]

        def bprop(*given: Any) -> tuple[Tensor, ...]:
            gradients = tuple(given[-1]) if several else (given[-1],)
            found = self.hook_fn(gradients)
            if found is None:
                return gradients
            return tuple(found) if isinstance(found, (tuple, list)) else (found,)

        return call_with_bprop("HookBackward", forward, inputs, bprop)
