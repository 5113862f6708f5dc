"""Derivatives as functions: ``vjp``, ``jvp``, ``jacrev``, ``jacfwd``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tvmgraph.autodiff.grad import (
    Weights,
    _check_positions,
    _differentiable,
    _distinct,
    _numeric,
    _Run,
    _weights,
    require_function,
    require_positions,
    tensors_in,
)
from tvmgraph.autodiff.tape import GradTape, backward, recording, snapshot
from tvmgraph.autodiff.vmap import vmap
from tvmgraph.capture import tree
from tvmgraph.core.explained import explained
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.state import call_user
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, ShapeError, either, reject


def _check_like(op: str, given: Sequence[Tensor], wanted: Sequence[Tensor]) -> None:
    if [g.shape for g in given] != [w.shape for w in wanted]:
        reject(either(ShapeError, TypeError), op, "v must have the shapes it is multiplied with",
               f"v={[g.shape for g in given]}, wanted={[w.shape for w in wanted]}")  # fmt: skip


def _first(value: object, has_aux: bool, op: str) -> tuple[Any, Any]:
    """Returns the output, and what comes beside it: one value as it is, several as a tuple."""
    if not has_aux:
        return value, ()
    if not isinstance(value, (tuple, list)) or len(value) < 2:
        reject(ArgumentError, op,
               "with has_aux the function must return its output and something more",
               fix="return (output, aux)")  # fmt: skip
    return value[0], value[1] if len(value) == 2 else tuple(value[1:])


def _tensor_positions(args: Sequence[object]) -> list[int]:
    return [i for i, a in enumerate(args) if isinstance(a, Tensor)]


def vjp(
    fn: Callable[..., object], *inputs: object, weights: Weights = None, has_aux: bool = False
) -> tuple[Any, ...]:
    r"""Returns :math:`f(x)` and the function :math:`v \mapsto v^T J`.

    Args:
        fn: Function or Cell.
        inputs: Its arguments; the tensors among them are differentiated by.
        weights: Parameters to differentiate by as well.
        has_aux: Whether only the first output is differentiated; the others come last.

    Returns:
        ``(output, vjp_fn)`` or ``(output, vjp_fn, aux)``. ``vjp_fn(*v)`` takes one tensor per
        output and returns a tuple with one gradient per input; with weights a pair of tuples.

    Raises:
        ShapeError: in ``vjp_fn``, if the shapes of ``v`` are not those of the outputs.

    Example:
        >>> y, pull = ms.vjp(lambda x: x * x, Tensor([3.0]))
        >>> pull(Tensor([1.0]))[0].asnumpy()
        array([6.], dtype=float32)
    """
    require_function(fn, "vjp")
    params = _weights(weights)
    run = _Run(fn, inputs, {}, _tensor_positions(inputs), params)
    first, aux = _first(run.value, has_aux, "vjp")
    outputs = [snapshot(o) for o in _numeric(first, fn)]

    def vjp_fn(*v: object) -> tuple[object, ...]:
        try:
            sens = tensors_in(v)
        except RecursionError as e:
            raise explained(e, "vjp", {"v": v})  # noqa: B904
        _check_like("vjp", sens, outputs)
        dx, dw = run.differentiate(outputs, sens)
        if weights is None:
            return tuple(dx)
        return tuple(dx), dw[0] if isinstance(weights, Parameter) else tuple(dw)

    return (first, vjp_fn, *((aux,) if has_aux else ()))


def jvp(
    fn: Callable[..., object], inputs: object, v: object, has_aux: bool = False
) -> tuple[Any, ...]:
    r"""Returns :math:`f(x)` and :math:`J v`, the derivative in the direction ``v``.

    It differentiates the reverse pass, which is linear in its cotangent.

    Args:
        fn: Function or Cell.
        inputs: A Tensor, or a tuple with the arguments.
        v: A Tensor, or a tuple with one tensor per tensor argument, of its shape.
        has_aux: Whether only the first output is differentiated; the others come last.

    Returns:
        ``(output, jvp)`` or ``(output, jvp, aux)``; ``jvp`` has the structure of the output.

    Raises:
        ShapeError: if the shapes of ``v`` are not those of the inputs.

    Example:
        >>> ms.jvp(lambda x: x * x, Tensor([3.0]), Tensor([1.0]))[1].asnumpy()
        array([6.], dtype=float32)
    """
    require_function(fn, "jvp")
    args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    positions = _tensor_positions(args)
    directions = tensors_in(v)
    _check_like("jvp", directions, [a for a in args if isinstance(a, Tensor)])
    outer = GradTape()
    with recording(outer):
        run = _Run(fn, args, {}, positions, ())
        first, aux = _first(run.value, has_aux, "jvp")
        kinds = run.kinds  # integers have derivatives where an argument is one, as in grad
        outputs = [o for o in tensors_in(first) if o.dtype.kind in kinds] or _differentiable(first)
        cotangents = [F.zeros_like(o) for o in outputs]
        seeds = [snapshot(c) for c in cotangents]
        dx, _ = run.differentiate(outputs, cotangents)
    found = backward(outer, [snapshot(d) for d in dx], directions, kinds)
    pushed = [found.get(id(s.token)) for s in seeds]
    given = iter([F.zeros_like(s) if p is None else p for s, p in zip(seeds, pushed)])
    everything = tensors_in(first)
    tangents = [next(given) if o.dtype.kind in kinds else F.zeros_like(o) for o in everything]
    result = tree.replace(first, iter(tangents))
    return (first, result, *((aux,) if has_aux else ()))


def _basis(like: Tensor) -> Tensor:
    """Returns the unit tensors of a shape, stacked on a new first axis."""
    n = math.prod(like.shape)
    return F.reshape(F.eye(n, n, like.dtype), (n, *like.shape))


def jacrev(
    fn: Callable[..., object], grad_position: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    r"""Returns a function that computes the Jacobian by reverse passes, one per output element.

    Args:
        fn: Function or Cell.
        grad_position: Positional arguments to differentiate by; one alone, as an int or a tuple,
            gives a bare Jacobian.
        has_aux: Whether only the first output is differentiated; the others come last.

    Returns:
        A function; its result has shape ``output.shape + input.shape`` per output and input.

    Raises:
        ArgumentError: if a position is outside the arguments.

    Example:
        >>> ms.jacrev(lambda x: x * x)(Tensor([1.0, 2.0])).shape
        (2, 2)
    """

    require_function(fn, "jacrev")
    require_positions(grad_position, "jacrev")

    @functools.wraps(fn, updated=())
    def run(*args: object, **kwargs: object) -> object:
        positions = _check_positions(grad_position, args, "jacrev", fn)
        r = _Run(fn, args, kwargs, positions, ())
        first, aux = _first(r.value, has_aux, "jacrev")
        outputs = [snapshot(o) for o in _differentiable(first)]

        def jacobian(k: int) -> Tensor | tuple[Tensor, ...]:
            def pull(v: Tensor) -> tuple[Tensor, ...]:
                return tuple(r.differentiate([outputs[k]], [v])[0])

            o = outputs[k]
            rows = vmap(pull)(_basis(o))
            shaped = tuple(F.reshape(d, (*o.shape, *d.shape[1:])) for d in rows)
            return shaped[0] if len(positions) == 1 else shaped

        found = [jacobian(k) for k in range(len(outputs))]
        result = found[0] if isinstance(first, Tensor) else tuple(found)
        return (result, aux) if has_aux else result

    return run


def jacfwd(
    fn: Callable[..., object], grad_position: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    r"""Returns a function that computes the Jacobian by directional derivatives, one per input
    element.

    Args:
        fn: Function or Cell.
        grad_position: Positional arguments to differentiate by; one alone, as an int or a tuple,
            gives a bare Jacobian.
        has_aux: Whether only the first output is differentiated; the others come last.

    Returns:
        A function; its result has shape ``output.shape + input.shape`` per output and input.

    Raises:
        ArgumentError: if a position is outside the arguments.

    Example:
        >>> ms.jacfwd(lambda x: x * x)(Tensor([1.0, 2.0])).shape
        (2, 2)
    """

    require_function(fn, "jacfwd")
    require_positions(grad_position, "jacfwd")

    @functools.wraps(fn, updated=())
    def run(*args: object, **kwargs: object) -> object:
        positions = _check_positions(grad_position, args, "jacfwd", fn)
        value = call_user(fn, args, kwargs)
        first, aux = _first(value, has_aux, "jacfwd")
        args = _distinct(args, positions)

        def by(i: int) -> list[Tensor]:
            x = args[i]
            assert isinstance(x, Tensor)

            def push(v: Tensor) -> tuple[Tensor, ...]:
                def alone(x: Tensor) -> object:
                    result = call_user(fn, (*args[:i], x, *args[i + 1 :]), kwargs)
                    return _first(result, has_aux, "jacfwd")[0]

                return tuple(tensors_in(jvp(alone, x, v)[1]))

            columns = vmap(push, out_axes=-1)(_basis(x))
            return [F.reshape(c, (*c.shape[:-1], *x.shape)) for c in columns]

        rows = zip(*[by(i) for i in positions])
        single = len(positions) == 1
        per_output = [row[0] if single else row for row in rows]
        result = per_output[0] if isinstance(first, Tensor) else tuple(per_output)
        return (result, aux) if has_aux else result

    return run
