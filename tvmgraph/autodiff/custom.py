"""Functions with a derivative of their own, and recomputation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tvmgraph.autodiff.tape import Cotangents, GradTape, backward, paused, recording, snapshot
from tvmgraph.capture import tree
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.random import default_generator
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError, ShapeError, user_source
from tvmgraph.graph.ir import CustomCall

Bprop = Callable[..., Any]


def call_with_bprop(
    name: str, forward: Callable[..., Any], args: tuple[Any, ...], bprop: Bprop
) -> Any:
    """Calls ``forward`` so that its derivative is ``bprop(*args, out, dout)``.

    It works eagerly, on a tape, and inside a compiled function, whose graph remembers it.

    Args:
        name: Name for error messages.
        forward: The function.
        args: Its positional arguments.
        bprop: Returns one cotangent per argument.

    Returns:
        What ``forward`` returns.
    """
    inputs = tree.tensors(args)
    builder: Any = getattr(state.interpreter, "builder", None)
    if builder is None and not state.tapes:
        return forward(*args)
    before = [snapshot(t) for t in inputs]
    start = len(builder.nodes) if builder is not None else 0
    with paused():
        value = _own(forward(*args), inputs)
    outputs = tree.tensors(value)

    def pull_back(ins: Any, outs: Any, cotangents: Any) -> Cotangents:
        given = tree.replace(args, iter(ins))
        out, dout = tree.replace(value, iter(outs)), tree.replace(value, iter(cotangents))
        return _cotangents(name, given, bprop(*given, out, dout))

    if builder is not None:
        value_of = state.interpreter.value_of  # pyright: ignore
        builder.customs.append(
            CustomCall(
                name, start, len(builder.nodes), tuple(value_of(t) for t in before),
                tuple(value_of(t) for t in outputs), pull_back,
            )
        )  # fmt: skip
    after = [snapshot(t) for t in outputs]
    for tape in state.tapes:
        tape.record_call(  # pyright: ignore[reportAttributeAccessIssue]
            name, tuple(before), tuple(outputs), lambda g: pull_back(before, after, g)
        )
    return value


def _own(value: Any, inputs: list[Tensor]) -> Any:
    """Gives results that are arguments an identity of their own."""
    taken = {id(t.token) for t in inputs}

    def fresh(t: Tensor) -> Tensor:
        return F.identity(t) if id(t.token) in taken or isinstance(t, Parameter) else t

    return tree.replace(value, iter([fresh(t) for t in tree.tensors(value)]))


def _cotangents(name: str, args: tuple[Any, ...], found: Any) -> list[Tensor | None]:
    """Checks what a bprop returned and lists one cotangent per tensor of the arguments."""
    if isinstance(found, Tensor) or found is None:
        found = (found,)
    if not isinstance(found, (tuple, list)) or len(found) != len(args):
        count = len(found) if isinstance(found, (tuple, list)) else type(found).__name__
        raise DTypeError(
            f"bprop must return one gradient per input ({len(args)}), not {count}", op=name,
            at=user_source(), fix="return a tuple; use None for inputs without a gradient",
        )  # fmt: skip
    result: list[Tensor | None] = []
    for i, (a, g) in enumerate(zip(args, found)):
        pairs: list[tuple[Tensor, Any]] = []
        _pair(a, g, pairs)
        for x, one in pairs:
            if isinstance(one, Tensor) and one.shape != x.shape:
                raise ShapeError(
                    f"bprop returned a gradient of another shape for input {i}", op=name,
                    got=f"input={x.type}, gradient={one.type}", at=user_source(),
                )  # fmt: skip
            result.append(one if isinstance(one, Tensor) else None)
    return result


def _pair(value: Any, gradient: Any, pairs: list[tuple[Tensor, Any]]) -> None:
    """Lists the tensors of an argument, each with its part of the gradient's structure."""
    if isinstance(value, Tensor):
        pairs.append((value, gradient))
    elif isinstance(value, (tuple, list)):
        fits = isinstance(gradient, (tuple, list)) and len(gradient) == len(value)
        for v, g in zip(value, gradient if fits else [None] * len(value)):
            _pair(v, g, pairs)
    elif isinstance(value, dict):
        parts = gradient if isinstance(gradient, dict) else {}
        for k, v in value.items():
            _pair(v, parts.get(k), pairs)


def custom_vjp(bprop: Bprop) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gives a function a derivative of its own: a decorator.

    Args:
        bprop: ``bprop(*inputs, out, dout)`` returns one gradient per input.

    Returns:
        A decorator of functions of positional arguments.

    Raises:
        DTypeError: when differentiated, if ``bprop`` returns another number of gradients.
        ShapeError: when differentiated, if a gradient has not the input's shape.

    Example:
        >>> @ms.custom_vjp(lambda x, out, dout: (dout * 10,))
        ... def double(x):
        ...     return x * 2
        >>> ms.grad(double)(Tensor(3.0)).item()
        10.0
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any) -> Any:
            return call_with_bprop(function.__name__, function, args, bprop)

        return call

    return decorate


def recompute(name: str, forward: Callable[..., Any], args: tuple[Any, ...], weights: Any) -> Any:
    """Calls ``forward`` without keeping what happens inside; the reverse pass runs it again.

    Args:
        name: Name for error messages.
        forward: The function.
        args: Its positional arguments.
        weights: Parameters it reads that gradients flow to.

    Returns:
        What ``forward`` returns.

    Note:
        It saves memory in eager code. Compiled code is left alone: there the compiler would merge
        the second computation with the first.
    """
    if not state.tapes or state.interpreter is not None:
        return forward(*args)
    inputs = [*tree.tensors(args), *weights]
    before = [snapshot(t) for t in inputs]
    random_state = default_generator.get_state()
    with paused():
        value = _own(forward(*args), inputs)
    outputs = tree.tensors(value)

    def pull_back(cotangents: tuple[Tensor, ...]) -> Cotangents:
        tape, now = GradTape(), default_generator.get_state()
        default_generator.set_state(random_state)
        held = [w.snapshot() for w in weights]
        try:
            for w, old in zip(weights, before[len(inputs) - len(weights) :]):
                w.rebind(old)
            with recording(tape):
                again = forward(*tree.replace(args, iter(before)))
        finally:
            default_generator.set_state(now)
            for w, new in zip(weights, held):
                w.rebind(new)
        results = [snapshot(t) for t in tree.tensors(again)]
        found = backward(tape, results, cotangents)
        return [found.get(id(t.token)) for t in before]

    for tape in state.tapes:
        tape.record_call(name, tuple(before), tuple(outputs), pull_back)  # pyright: ignore
    return value


__all__ = ["call_with_bprop", "custom_vjp", "recompute"]
