"""``grad``, ``value_and_grad`` and ``GradOperation`` with MindSpore's signatures."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tvmgraph.autodiff.tape import GradTape, backward, recording, snapshot
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, user_source


class _Run:
    """One recorded call of a function, ready to be differentiated."""

    def __init__(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        positions: Sequence[int],
        weights: Sequence[Parameter],
    ) -> None:
        self.tape = GradTape()
        args = _distinct(args, positions)
        self.inputs = [snapshot(args[i]) for i in positions]
        self.weights = [snapshot(w) for w in weights]
        self.trained = [w.requires_grad for w in weights]
        # an integer argument has an integer gradient; other integers (indices, labels) have none
        self.kinds = "fciu" if any(x.dtype.kind in "iu" for x in self.inputs) else "fc"
        with recording(self.tape):
            if state.interpreter is not None:
                self.value = state.interpreter.call(fn, args, kwargs)
            else:
                self.value = fn(*args, **kwargs)

    def differentiate(
        self, outputs: Sequence[Tensor], sens: Sequence[Tensor] | None
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Returns the gradients of the inputs and of the weights."""
        results = [snapshot(o) for o in outputs]
        if sens is None:
            sens = [F.ones_like(r) for r in results]
        found = backward(self.tape, results, sens, self.kinds)

        def pick(x: Tensor, wanted: bool = True) -> Tensor:
            g = found.get(id(x.token)) if wanted else None
            return F.zeros_like(x) if g is None else g

        return (
            [pick(x) for x in self.inputs],
            [pick(w, trained) for w, trained in zip(self.weights, self.trained)],
        )


def _distinct(args: tuple[Any, ...], positions: Sequence[int]) -> tuple[Any, ...]:
    """Gives a tensor that is passed twice one identity per position."""
    result = list(args)
    for i in positions:
        if sum(a is result[i] for a in result) > 1:
            result[i] = F.identity(result[i])
    return tuple(result)


def _check_positions(
    positions: int | Sequence[int] | None, args: tuple[Any, ...], name: str
) -> tuple[int, ...]:
    if positions is None:
        return ()
    items = (positions,) if isinstance(positions, int) else positions
    if not isinstance(items, tuple) or not all(type(i) is int for i in items):
        raise DTypeError(
            f"grad_position must be an int or a tuple of ints, not {positions!r}",
            op=name, at=user_source(),
        )  # fmt: skip
    if not items or len(set(items)) < len(items):
        raise ArgumentError(
            "grad_position must name every argument at most once, and at least one",
            op=name, got=f"grad_position={positions!r}", at=user_source(),
        )  # fmt: skip
    for i in items:
        if not 0 <= i < len(args):
            raise ArgumentError(
                f"grad_position {i} is outside the {len(args)} positional arguments",
                op=name, at=user_source(),
            )  # fmt: skip
        if not isinstance(args[i], Tensor):
            raise DTypeError(
                f"argument {i} is a {type(args[i]).__name__}, which has no gradient",
                op=name, at=user_source(), fix="pass a Tensor, or leave it out of grad_position",
            )  # fmt: skip
    return items


def _weights(weights: Any) -> tuple[Parameter, ...]:
    if weights is None:
        return ()
    items = (weights,) if isinstance(weights, Parameter) else tuple(weights)
    for w in items:
        if not isinstance(w, Parameter):
            raise DTypeError(
                f"weights must be Parameters, not {type(w).__name__}",
                op="grad", at=user_source(), fix="pass net.trainable_params()",
            )  # fmt: skip
    return items


def tensors_in(value: Any) -> list[Tensor]:
    """Returns the tensors of nested tuples, lists and dicts, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors_in(v)]
    return []


def value_and_grad(
    fn: Callable[..., Any],
    grad_position: int | Sequence[int] | None = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable[..., Any]:
    """Returns a function that computes ``fn`` and its gradient.

    The gradient of a non-scalar (or of several outputs) is that of the sum of all elements.

    Args:
        fn: Function or Cell.
        grad_position: Positional arguments to differentiate by; a single one, as an int or a
            tuple, gives a bare gradient, several give a tuple.
        weights: Parameters to differentiate by.
        has_aux: Whether only the first output is differentiated and the rest passed through.
        return_ids: Whether every gradient comes as ``(position or name, gradient)``.

    Returns:
        A function returning ``(value, gradients)``, where gradients is ``dx``, ``dw`` or
        ``(dx, dw)``.

    Raises:
        ArgumentError: if both ``grad_position`` and ``weights`` are None.

    Example:
        >>> ms.value_and_grad(lambda x: x * x)(Tensor(3.0))
    """
    if grad_position is None and weights is None:
        raise ArgumentError(
            "grad_position and weights cannot both be None", op="value_and_grad", at=user_source()
        )
    params = _weights(weights)

    @functools.wraps(fn, updated=())
    def run(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        positions = _check_positions(grad_position, args, "value_and_grad")
        r = _Run(fn, args, kwargs, positions, params)
        if has_aux and (not isinstance(r.value, (tuple, list)) or len(r.value) < 2):
            raise ArgumentError(
                "with has_aux the function must return the value and something beside it",
                op="value_and_grad", at=user_source(),
                fix="return (loss, other), or leave has_aux out",
            )  # fmt: skip
        first = r.value[0] if has_aux else r.value
        dx, dw = r.differentiate(_differentiable(first), None)
        inputs: Any = tuple(zip(positions, dx)) if return_ids else tuple(dx)
        names: Any = tuple((w.name, g) for w, g in zip(params, dw)) if return_ids else tuple(dw)
        if len(positions) == 1:
            inputs = inputs[0]
        if isinstance(weights, Parameter):
            names = names[0]
        if weights is None:
            return r.value, inputs
        return r.value, names if grad_position is None else (inputs, names)

    return run


def _differentiable(value: Any) -> list[Tensor]:
    outputs = tensors_in(value)
    if not outputs:
        raise DTypeError(
            f"the function returned {type(value).__name__}, which holds no Tensor",
            op="grad", at=user_source(), fix="return the loss as a Tensor",
        )  # fmt: skip
    return [o for o in outputs if o.dtype.kind in "fc"] or outputs


def grad(
    fn: Callable[..., Any],
    grad_position: int | Sequence[int] | None = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable[..., Any]:
    """Returns a function that computes the gradient of ``fn``.

    Args:
        fn: Function or Cell.
        grad_position: Positional arguments to differentiate by.
        weights: Parameters to differentiate by.
        has_aux: Whether only the first output is differentiated; the others are returned as
            ``(gradients, (aux, ...))``.
        return_ids: Whether every gradient comes as ``(position or name, gradient)``.

    Example:
        >>> ms.grad(lambda x: x * x)(Tensor(3.0))
    """
    both = value_and_grad(fn, grad_position, weights, has_aux, return_ids)

    @functools.wraps(fn, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, tuple(value[1:])) if has_aux else gradients

    return run


class GradOperation:
    """Builds gradient functions, MindSpore's older interface.

    Args:
        get_all: Differentiate by all tensor inputs instead of the first.
        get_by_list: Differentiate by the parameters given in the call.
        sens_param: The last positional argument is the cotangent of the output.

    Example:
        >>> GradOperation(get_all=True)(net)(x, y)
    """

    def __init__(
        self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False
    ) -> None:
        for name, flag in (
            ("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)
        ):  # fmt: skip
            if not isinstance(flag, bool):
                raise DTypeError(f"{name} must be a bool, not {type(flag).__name__}",
                                 op="GradOperation", at=user_source())  # fmt: skip
        self.get_all = get_all
        self.get_by_list = get_by_list
        self.sens_param = sens_param

    def __call__(self, fn: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
        """Returns the gradient function of ``fn``."""
        if self.get_by_list and weights is None:
            weights = ParameterTuple(fn.trainable_params())  # pyright: ignore
        params = _weights(weights) if self.get_by_list else ()

        def run(*args: Any, **kwargs: Any) -> Any:
            args, sens = (args[:-1], tensors_in(args[-1])) if self.sens_param else (args, None)
            positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
            if not self.get_all:
                positions = [] if self.get_by_list else positions[:1]
            r = _Run(fn, args, kwargs, positions, params)
            outputs = _differentiable(r.value)
            _check_sens(outputs, sens)
            dx, dw = r.differentiate(outputs, sens)
            inputs: Any = tuple(dx) if self.get_all else (dx[0] if dx else ())
            if not self.get_by_list:
                return inputs
            return (inputs, tuple(dw)) if self.get_all else tuple(dw)

        return run


def get_grad(gradients: Any, identifier: int | Parameter) -> Tensor:
    """Finds a gradient in what :func:`grad` gives with ``return_ids``.

    Args:
        gradients: The gradients with their positions and names.
        identifier: The position of an argument, or the Parameter.

    Raises:
        DTypeError: if ``identifier`` is something else.
        ArgumentError: if there is no such gradient.

    Example:
        >>> found = ms.grad(lambda x, y: x * y, (0, 1), return_ids=True)(Tensor(2.0), Tensor(3.0))
        >>> float(ms.get_grad(found, 1))
        2.0
    """
    key = identifier.name if isinstance(identifier, Parameter) else identifier
    if isinstance(key, bool) or not isinstance(key, (int, str)):
        raise DTypeError(
            f"identifier must be an int or a Parameter, not {type(identifier).__name__}",
            op="get_grad", at=user_source(),
        )  # fmt: skip
    todo = [gradients]
    while todo:
        item = todo.pop()
        if not isinstance(item, (tuple, list)):
            continue
        if len(item) == 2 and type(item[0]) is type(key) and isinstance(item[1], Tensor):
            if item[0] == key:
                return item[1]
        else:
            todo.extend(item)
    raise ArgumentError(
        f"there is no gradient for {key!r}", op="get_grad", at=user_source(),
        fix="differentiate by it, with return_ids=True",
    )  # fmt: skip


def _check_sens(outputs: list[Tensor], sens: list[Tensor] | None) -> None:
    if sens is None:
        return
    if [s.shape for s in sens] != [o.shape for o in outputs]:
        raise ShapeError(
            "the sensitivity must have the shape of the output", op="GradOperation",
            got=f"sens={[s.shape for s in sens]}, outputs={[o.shape for o in outputs]}",
            at=user_source(),
        )  # fmt: skip
