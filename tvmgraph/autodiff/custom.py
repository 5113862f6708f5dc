"""Functions with a derivative of their own, and recomputation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeAlias, TypeVar

from tvmgraph.autodiff.tape import Cotangents, GradTape, backward, paused, recording, snapshot
from tvmgraph.capture import tree
from tvmgraph.capture.region import Region
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.core.op import F, Op
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.random import default_generator
from tvmgraph.core.state import call_user, state
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError, LeavesGraph, ShapeError, reject
from tvmgraph.graph.ir import CustomCall, Value
from tvmgraph.ops.common.rows import sum_to

Bprop = Callable[..., object]
#: Where the random stream stands: of this process, or in a region of a capture.
Position: TypeAlias = tuple[Region, Value | None, int] | Tensor
P = ParamSpec("P")
R = TypeVar("R")


def call_with_bprop(
    name: str, forward: Callable[..., R], args: tuple[object, ...], bprop: Bprop,
    exact: bool = False, user: bool = False, partial: bool = False,
) -> R:  # fmt: skip
    """Calls ``forward`` so that its derivative is ``bprop(*args, out, dout)``.

    It works eagerly, on a tape, and inside a compiled function, whose graph remembers it.

    Args:
        name: Name for error messages.
        forward: The function.
        args: Its positional arguments.
        bprop: Returns one cotangent per argument.
        exact: Whether one that broadcasts from its argument's shape is an error; otherwise it is
            summed to that shape.
        user: Whether ``bprop`` is code of the user's, which a graph must not call just once if it
            does more than compute.
        partial: Whether ``bprop`` takes None for a result that has no cotangent, else zeros.

    Returns:
        What ``forward`` returns.
    """
    inputs = tree.tensors(args)
    builder: Any = getattr(state.interpreter, "builder", None)
    if builder is None and not state.tapes:
        return _own(forward(*args), inputs)
    before = [snapshot(t) for t in inputs]
    start = len(builder.nodes) if builder is not None else 0
    with paused():
        value = _own(forward(*args), inputs)
    if user:
        require_pure(f"{name}.bprop", bprop, (*args, value, value))
    outputs = tree.tensors(value)

    def pull_back(
        ins: Iterable[Tensor], outs: Iterable[Tensor], cotangents: Iterable[Tensor]
    ) -> Cotangents:
        given = tree.replace(args, iter(ins))
        out, dout = tree.replace(value, iter(outs)), tree.replace(value, iter(cotangents))
        return _cotangents(name, given, bprop(*given, out, dout), exact)

    if builder is not None:
        value_of = state.interpreter.value_of  # pyright: ignore
        builder.customs.append(
            CustomCall(
                name, start, len(builder.nodes), tuple(value_of(t) for t in before),
                tuple(value_of(t) for t in outputs), pull_back, partial,
            )
        )  # fmt: skip
    after = [snapshot(t) for t in outputs]
    for tape in state.tapes:
        tape.record_call(  # pyright: ignore[reportAttributeAccessIssue]
            name, tuple(before), tuple(outputs), lambda g: pull_back(before, after, g), partial
        )
    return value


def require_pure(
    op: str,
    hook: Callable[..., object],
    likes: tuple[object, ...],
    holds: Callable[[], bool] = lambda: True,
) -> None:
    """Leaves the graph that is captured, if a hook of gradients does more than compute.

    A graph would call it once, with tensors that have no elements.

    Args:
        op: What registered the hook.
        hook: The user's function.
        likes: What it is called with, with values in place of their gradients.
        holds: Whether the hook is still there.

    Raises:
        LeavesGraph: if it does.
    """
    if state.interpreter is None:
        return
    interpreter = state.interpreter

    def run() -> object:
        gradients = [F.zeros_like(t) for t in tree.tensors(likes)]
        return interpreter.call(hook, tree.replace(likes, iter(gradients)), {})

    if not inspect.isbuiltin(hook) and interpreter.is_pure(run):
        return
    error = LeavesGraph(
        "code that makes gradients does more than compute, so what it belongs to is no part of a "
        "graph",
        op=op, got=str(getattr(hook, "__qualname__", type(hook).__name__)),
        fix="let it only return gradients, or leave it: it runs at every call",
    )  # fmt: skip
    error.holds = holds
    raise error


def _own(value: R, inputs: list[Tensor]) -> R:
    """Gives results that are arguments an identity of their own."""
    taken = {id(t.token) for t in inputs}

    def fresh(t: Tensor) -> Tensor:
        return F.identity(t) if id(t.token) in taken or isinstance(t, Parameter) else t

    return tree.replace(value, iter([fresh(t) for t in tree.tensors(value)]))


def _cotangents(
    name: str, args: tuple[object, ...], found: object, exact: bool
) -> list[Tensor | None]:
    """Checks what a bprop returned and lists one cotangent per tensor of the arguments."""
    if isinstance(found, Tensor) or found is None:
        found = (found,)
    if not exact and isinstance(found, (tuple, list)):
        found = found[: len(args)]  # as MindSpore passes over what is too many
    if not isinstance(found, (tuple, list)) or len(found) != len(args):
        count = len(found) if isinstance(found, (tuple, list)) else type(found).__name__
        reject(DTypeError, name,
               f"bprop must return one gradient per input ({len(args)}), not {count}",
               fix="return a tuple; use None for inputs without a gradient")  # fmt: skip
    result: list[Tensor | None] = []
    for i, (a, g) in enumerate(zip(args, found)):
        pairs: list[tuple[Tensor, object]] = []
        _pair(a, g, pairs)
        for x, one in pairs:
            result.append(_fitting(name, i, x, one, exact) if isinstance(one, Tensor) else None)
    return result


def _fitting(name: str, i: int, x: Tensor, gradient: Tensor, exact: bool) -> Tensor:
    """Returns a gradient in the shape and dtype of its input, summed where that broadcasts."""
    if gradient.shape != x.shape:
        lead = gradient.ndim - x.ndim
        if (
            exact
            or lead < 0
            or any(d not in (1, g) for d, g in zip(x.shape, gradient.shape[lead:]))
        ):
            reject(ShapeError, name,
                   f"bprop returned a gradient of another shape for input {i}",
                   f"input={x.aval}, gradient={gradient.aval}")  # fmt: skip
        gradient = sum_to(gradient, x)
    wanted = x.dtype.is_float and gradient.dtype is not x.dtype
    return F.cast(gradient, x.dtype) if wanted else gradient


def _pair(value: object, gradient: object, pairs: list[tuple[Tensor, object]]) -> None:
    """Lists the tensors of an argument, each with its part of the gradient's structure."""
    if isinstance(value, Tensor):
        pairs.append((value, gradient))
    elif isinstance(value, (tuple, list)):
        parts = gradient if isinstance(gradient, (tuple, list)) else ()
        for v, g in zip(value, parts if len(parts) == len(value) else [None] * len(value)):
            _pair(v, g, pairs)
    elif isinstance(value, dict):
        named = gradient if isinstance(gradient, dict) else {}
        for k, v in value.items():
            _pair(v, named.get(k), pairs)


def custom_vjp(bprop: Bprop) -> Callable[[Callable[..., R]], Callable[..., R]]:
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
    if not callable(bprop):
        reject(DTypeError, "custom_vjp", f"bprop must be a function, not {type(bprop).__name__}",
               f"bprop={bprop!r}"[:80])  # fmt: skip

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(function)
        def call(*args: object) -> R:
            return call_with_bprop(function.__name__, function, args, bprop, exact=True)

        return call

    return decorate


class _Reads(GradTape):
    """Notes the tensors that a function reads beside its arguments, with what they denoted.

    Args:
        given: Snapshots of the arguments.
    """

    def __init__(self, given: Sequence[Tensor]) -> None:
        super().__init__()
        self.read: list[tuple[Tensor, Tensor]] = []
        self._known = {id(t.token): t.token for t in given}  # kept, so that ids stay unique

    def record(
        self,
        op: Op,
        args: tuple[Tensor, ...],
        attrs: dict[str, object],
        outputs: tuple[Tensor, ...],
    ) -> None:
        """Notes the operands and results of an operator."""
        self.record_call(op.name, args, outputs)

    def record_call(
        self, name: str, args: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
        pull_back: object = None, partial: bool = False, pure: bool = False,
    ) -> None:  # fmt: skip
        """Notes the operands and results of a call."""
        for a in args:
            now = snapshot(a)
            if id(now.token) not in self._known:
                self.read.append((a, now))
                self._known[id(now.token)] = now.token
        for o in map(snapshot, outputs):
            self._known[id(o.token)] = o.token


def recomputed(
    name: str, forward: Callable[..., R], args: tuple[object, ...], params: Sequence[Parameter]
) -> R:
    """Calls ``forward`` without keeping what happens inside; the reverse pass runs it again.

    Args:
        name: Name for error messages.
        forward: The function.
        args: Its positional arguments.
        params: Parameters that it may write. The second run sees what the first one saw, of these
            and of all tensors that it reads, and what it writes is dropped.

    Returns:
        What ``forward`` returns.

    Note:
        In a compiled function, the second run is part of the graph, after the cotangents that it
        is needed for. Around a compiled function nothing is kept in the first place: its backward
        graph starts from the arguments.
    """
    if not state.tapes:
        return forward(*args)
    inputs, written = tree.tensors(args), [(p, snapshot(p)) for p in params]
    before, position = [snapshot(t) for t in inputs], _random_position()
    precision = state.precision
    reads = _Reads([*before, *[old for _, old in written]])
    with paused(), recording(reads):
        value = forward(*args)
    outside, olds = zip(*written, *reads.read) if written or reads.read else ((), ())
    with paused():
        value = _own(value, [*inputs, *outside])
    outputs = tree.tensors(value)

    def pull_back(cotangents: tuple[Tensor, ...]) -> Cotangents:
        tape, starts = GradTape(), before
        if state.interpreter is not None:
            starts = [F.computed_after(t, cotangents[0]) for t in starts]
        before_now = _as_before(outside, olds, position, cotangents[0])
        with before_now as read, recording(tape), state.computing_in(precision):
            again = forward(*tree.replace(args, iter(starts)))
        results = [snapshot(t) for t in tree.tensors(again)]
        found = backward(tape, results, cotangents)
        direct = [None if t is s else found.get(id(t.token)) for t, s in zip(before, starts)]
        passed = [found.get(id(t.token)) for t in (*starts, *read)]
        return [*map(_sum, passed, direct), *passed[len(starts) :]]

    for tape in state.tapes:
        tape.record_call(name, (*before, *olds), tuple(outputs), pull_back)  # pyright: ignore
    return value


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """Adds the cotangents of an argument as passed, and as also known from outside."""
    return a if b is None else b if a is None else F.add(a, b)


def recompute(block: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls a Cell or function; the reverse pass runs it again instead of keeping what it computed.

    Args:
        block: The Cell or function.
        args: Its positional arguments.
        kwargs: Its keyword arguments.

    Returns:
        What ``block`` returns.

    Example:
        >>> ms.grad(lambda x: ms.recompute(lambda y: ops.sin(y) * y, x))(Tensor(0.0)).item()
        0.0
    """
    if not callable(block):
        raise DTypeError(f"block must be a Cell or a function, not {type(block).__name__}",
                         op="recompute")  # fmt: skip
    params = getattr(block, "get_parameters", list)()

    def forward(*given: Any) -> R:
        return call_user(block, given, kwargs)

    return recomputed(getattr(block, "__name__", "recompute"), forward, args, list(params))


@contextmanager
def _as_before(
    tensors: Sequence[Tensor], olds: Sequence[Tensor], position: Position, after: Tensor
) -> Iterator[list[Tensor]]:
    """Takes tensors and the random stream back for a while; gives what the tensors are then."""
    now, held = _random_position(), [snapshot(t) for t in tensors]
    _seek(position)
    if isinstance(now, tuple) and now[1] is not None:  # the same numbers are drawn, but later
        recorder: Any = state.interpreter
        start = F.computed_after(TracedTensor(recorder, recorder.position()), after)
        recorder.set_position(recorder.value_of(start))
    _restore(tensors, olds)
    try:
        yield [snapshot(t) for t in tensors]
    finally:
        _seek(now)
        _restore(tensors, held)


def _random_position() -> Position:
    """Returns where the random stream stands: of this process, or of the graph being captured."""
    region = getattr(state.interpreter, "region", None)
    if region is None:
        return default_generator.get_state()
    return region, region.random, region.blocks


def _seek(position: Position) -> None:
    if isinstance(position, tuple):
        region, random, blocks = position
        region.random, region.blocks = random, blocks
    else:
        default_generator.set_state(position)


def _restore(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    for t, value in zip(tensors, values):
        if snapshot(t).token is not value.token:
            t.rebind(value)
