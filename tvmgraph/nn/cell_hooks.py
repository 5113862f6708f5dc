"""Hooks of a Cell: user functions called around ``construct`` and its derivative."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tvmgraph.autodiff.custom import call_with_bprop, require_pure
from tvmgraph.core.state import bump_epoch, state
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, CaptureError, DTypeError, either, reject

if TYPE_CHECKING:
    from tvmgraph.nn.cell import Cell

Hook = Callable[..., Any]


class Entry(NamedTuple):
    """A registered hook."""

    kind: str
    hook: Hook
    with_kwargs: bool
    number: int
    always: bool = False  # also when the call raises


_numbers = itertools.count()


class Handle:
    """What registering a hook returns: ``remove()`` takes the hook off again."""

    def __init__(self, cell: Any, number: int) -> None:
        self._cell = cell
        self._number = number

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        _store(self._cell, tuple(e for e in self._cell._hooks if e.number != self._number))


def entries(cell: Cell, kind: str) -> tuple[Entry, ...]:
    """Returns the hooks of one kind, in the order in which they are called.

    Args:
        cell: The Cell.
        kind: ``"forward"``, ``"backward"``, ``"state_dict_pre"`` or another kind.
    """
    return tuple(e for e in cell._hooks if e.kind == kind)


def _store(cell: object, entries: tuple[Entry, ...]) -> None:
    """Replaces the hooks by a new tuple: what guards compare with the old one.

    Raises:
        CaptureError: in a graph, which has no place for it: Python does it between segments.
    """
    if state.interpreter is not None:
        reject(CaptureError, "hook", "hooks of a Cell are registered and removed outside of graphs",
               fix="do it before the compiled function")  # fmt: skip
    object.__setattr__(cell, "_hooks", entries)
    bump_epoch()


class HookedCall:
    """One call of a cell with all hooks around it."""

    def __init__(self, cell: Any) -> None:
        self.cell = cell
        self.grad_output: object = None  # of this call, once the reverse pass reaches the cell

    def run(self, construct: Hook, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """Calls ``construct(args, kwargs)`` between the hooks.

        Args:
            construct: Computes the Cell's value of its arguments.
            args: Positional arguments of the call.
            kwargs: Keyword arguments of the call.
        """
        cell, called = self.cell, set[int]()
        value: object = None
        try:
            args, kwargs = self.__before(args, kwargs)
            differentiates = entries(cell, "backward") or entries(cell, "backward_pre")
            if differentiates:
                args = self.__watch_inputs(args)
            value = construct(args, kwargs)
            for entry in entries(cell, "forward"):
                called.add(entry.number)
                changed = _call_forward(entry, cell, args, kwargs, value)
                value = value if changed is None else changed
            if differentiates:  # the cell's output is what its forward hooks made of it
                self.__check_graph(args, value)
                value = self.__watch_outputs(value)
        except Exception:
            for entry in entries(cell, "forward"):
                if entry.always and entry.number not in called:
                    _call_forward(entry, cell, args, kwargs, value)
            raise
        return value

    def __before(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        for _, hook, with_kwargs, *_ in entries(self.cell, "forward_pre"):
            if not with_kwargs:
                changed = _call(hook, self.cell, args)
                if changed is not None:
                    args = _as_tuple(changed)
                continue
            changed = _call(hook, self.cell, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                reject(ArgumentError, "register_forward_pre_hook",
                       "a forward pre-hook with keywords returns None or (args, kwargs)",
                       type(changed).__name__)  # fmt: skip
            args, kwargs = changed
        return args, kwargs

    def __watch_inputs(self, args: tuple[object, ...]) -> tuple[object, ...]:
        """Hands the gradients of the inputs to the backward hooks, as they leave the cell."""
        positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        if not positions:
            return args
        tensors = tuple(args[i] for i in positions)
        wrapped = call_with_bprop(f"{self.cell.cls_name} backward hook", _same, tensors, self.leave)
        result = list(args)
        for i, t in zip(positions, wrapped):
            result[i] = t
        return tuple(result)

    def __check_graph(self, args: tuple[object, ...], value: object) -> None:
        """Leaves the graph that is captured if a hook of the derivative does more than compute."""
        hooks, cell = self.cell._hooks, self.cell
        given = tuple(a for a in args if isinstance(a, Tensor))
        outputs = _as_tuple(value)
        likes = {"backward": (cell, given, outputs), "backward_pre": (cell, outputs)}
        for kind, hook, *_ in hooks:
            if kind in likes:
                name = f"{cell.cls_name}.register_{kind}_hook"
                require_pure(name, hook, likes[kind], lambda: cell._hooks is hooks)

    def leave(self, *values: object) -> tuple[object, ...]:
        """Returns the gradients of the inputs; the last of ``values`` is what they are so far.

        Args:
            *values: What the derivative is handed; the last one holds the gradients.

        Raises:
            ArgumentError: if a hook returns more or fewer gradients; it is a TypeError, too.
            DTypeError: if it returns something else than gradients.
        """
        gradients = _as_tuple(values[-1])
        for _, hook, *_ in entries(self.cell, "backward"):
            changed = hook(self.cell, gradients, self.grad_output)
            if changed is not None:
                gradients = _gradients(changed, len(gradients), "backward", "input")
        return gradients

    def __watch_outputs(self, value: object) -> object:
        """Hands the gradients of the outputs to the pre-hooks, and notes them for the others."""
        outputs = _as_tuple(value)
        if not all(isinstance(v, Tensor) for v in outputs):
            reject(DTypeError, self.cell.cls_name,
                   "a cell with backward hooks returns a tensor or a tuple of tensors",
                   type(value).__name__, "put the hook on a cell inside this one")  # fmt: skip
        name = f"{self.cell.cls_name} backward hook"
        wrapped = call_with_bprop(name, _same, outputs, self.enter)
        return wrapped if isinstance(value, tuple) else wrapped[0]

    def enter(self, *values: object) -> tuple[object, ...]:
        """Returns the gradients of the outputs; the last of ``values`` is what they are so far.

        Args:
            *values: What the derivative is handed; the last one holds the gradients.

        Raises:
            ArgumentError: if a hook returns more or fewer gradients; it is a TypeError, too.
            DTypeError: if it returns something else than gradients.
        """
        gradients = _as_tuple(values[-1])
        for _, hook, *_ in entries(self.cell, "backward_pre"):
            changed = hook(self.cell, gradients)
            if changed is not None:
                gradients = _gradients(changed, len(gradients), "backward_pre", "output")
        self.grad_output = gradients
        return gradients


def _as_tuple(value: object) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _gradients(value: object, count: int, kind: str, place: str) -> tuple[object, ...]:
    """Returns what a hook returned as one gradient for each tensor."""
    found, op = _as_tuple(value), f"register_{kind}_hook"
    fix = f"return None, or one gradient for each {place} that is a tensor"
    if len(found) != count:
        rule = f"the hook returned {len(found)} gradients for {count} {place}s"
        reject(either(ArgumentError, TypeError), op, rule, fix=fix)
    for v in found:
        if v is not None and not isinstance(v, Tensor):
            reject(DTypeError, op, f"the hook returned {type(v).__name__} for a gradient", fix=fix)
    return found


def _same(*values: object) -> tuple[object, ...]:
    return values


def _call(hook: Hook, *args: object) -> object:
    """Calls a user's hook, interpreted while a graph is captured."""
    if state.interpreter is not None and not inspect.isbuiltin(hook):
        return state.interpreter.call(hook, args, {})
    return hook(*args)


def _call_forward(
    entry: Entry, cell: Cell, args: tuple[object, ...], kwargs: dict[str, object], value: object
) -> object:
    """Calls a forward hook with what it asked for; returns the output to use instead, or None."""
    given = (args, kwargs, value) if entry.with_kwargs else (args, value)
    return _call(entry.hook, cell, *given)


class HookMethods:
    """The part of Cell that registers hooks."""

    _hooks: tuple[Entry, ...]

    def __register(
        self, kind: str, hook: Hook, prepend: bool = False, with_kwargs: bool = False,
        always: bool = False,
    ) -> Handle:  # fmt: skip
        if not callable(hook):
            raise DTypeError(f"a hook is a function, not {type(hook).__name__}",
                             op=f"register_{kind}_hook")  # fmt: skip
        entry = (Entry(kind, hook, with_kwargs, next(_numbers), always),)
        _store(self, entry + self._hooks if prepend else self._hooks + entry)
        return Handle(self, entry[0].number)

    def register_forward_pre_hook(
        self, hook_fn: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Calls ``hook_fn(cell, args)`` before ``construct``.

        Args:
            hook_fn: Returns None, or the arguments to use instead (a tuple, or the only one).
            prepend: Whether it comes before the hooks registered so far.
            with_kwargs: Whether it is called as ``hook_fn(cell, args, kwargs)`` and returns None
                or ``(args, kwargs)``.

        Returns:
            A handle; ``handle.remove()`` takes the hook off.

        Raises:
            DTypeError: if ``hook_fn`` is not callable.
        """
        return self.__register("forward_pre", hook_fn, prepend, with_kwargs)

    def register_forward_hook(
        self, hook_fn: Hook, *, prepend: bool = False, with_kwargs: bool = False,
        always_call: bool = False,
    ) -> Handle:  # fmt: skip
        """Calls ``hook_fn(cell, args, output)`` after ``construct``.

        Args:
            hook_fn: Returns None, or the output to use instead.
            prepend: Whether it comes before the hooks registered so far.
            with_kwargs: Whether it is called as ``hook_fn(cell, args, kwargs, output)``.
            always_call: Whether it is called, too, if ``construct`` or a hook before it raises,
                with the output so far, or None.

        Returns:
            A handle; ``handle.remove()`` takes the hook off.

        Raises:
            DTypeError: if ``hook_fn`` is not callable.
        """
        return self.__register("forward", hook_fn, prepend, with_kwargs, always_call)

    def register_backward_pre_hook(self, hook_fn: Hook) -> Handle:
        """Calls ``hook_fn(cell, grad_output)`` in the reverse pass, before the cell's derivative.

        ``grad_output`` is a tuple with the gradient of every output; the hook returns None or the
        gradients to use instead. Returns a handle.

        Args:
            hook_fn: The function.

        Raises:
            DTypeError: if ``hook_fn`` is not callable.
        """
        return self.__register("backward_pre", hook_fn)

    def register_backward_hook(self, hook_fn: Hook) -> Handle:
        """Calls ``hook_fn(cell, grad_input, grad_output)`` after the cell's derivative.

        ``grad_input`` has the gradient of every tensor argument, ``grad_output`` of every output.
        The hook returns None or the gradients of the arguments to use instead. Returns a handle.

        Args:
            hook_fn: The function.

        Raises:
            DTypeError: if ``hook_fn`` is not callable.
        """
        return self.__register("backward", hook_fn)

    def register_state_dict_pre_hook(self, hook: Hook) -> Handle:
        """Calls ``hook(cell, prefix, keep_vars)`` before ``state_dict``; returns a handle.

        Args:
            hook: The function.

        Raises:
            DTypeError: if ``hook`` is not callable.
        """
        return self.__register("state_dict_pre", hook)

    def register_state_dict_post_hook(self, hook: Hook) -> Handle:
        """Calls ``hook(cell, state_dict, prefix, local_metadata)`` after ``state_dict``.

        The hook changes the dict, or returns the one to use instead. Returns a handle.

        Args:
            hook: The function.

        Raises:
            DTypeError: if ``hook`` is not callable.
        """
        return self.__register("state_dict_post", hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> Handle:
        """Calls a hook before ``load_state_dict``; returns a handle.

        Args:
            hook: Called as ``hook(cell, state_dict, prefix, local_metadata, strict, missing_keys,
                unexpected_keys, error_msgs)``; changes a copy of the dict, and adds to the errors.

        Raises:
            DTypeError: if ``hook`` is not callable.
        """
        return self.__register("load_state_dict_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> Handle:
        """Calls ``hook(cell, incompatible_keys)`` after ``load_state_dict``; returns a handle.

        Args:
            hook: The function.

        Raises:
            DTypeError: if ``hook`` is not callable.
        """
        return self.__register("load_state_dict_post", hook)
