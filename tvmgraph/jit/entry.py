"""Entry: one capture of a jitted function with its compiled graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tvmgraph import hooks
from tvmgraph.capture import tree
from tvmgraph.capture.checks import is_mortal
from tvmgraph.capture.containers import items_in
from tvmgraph.capture.promotion import Operand
from tvmgraph.capture.record import AttributeRef, Captured, Drawn
from tvmgraph.capture.settings import Settings
from tvmgraph.capture.sources import reference
from tvmgraph.config import JitConfig
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.random import default_generator
from tvmgraph.core.state import note_act, turn
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import Unserved
from tvmgraph.graph import Graph
from tvmgraph.interruption import held_back
from tvmgraph.jit.compiled import CompiledGraph
from tvmgraph.jit.tiered import TieredGraph, compiled_or_tiered

if TYPE_CHECKING:
    from tvmgraph.core.types import TensorType
    from tvmgraph.jit.fast import FastCall


_MAX_ELEMENTS = 4  # captures of one kind of arguments for other elements, if Python can do it
_NOTHING = nullcontext()


class Entry:
    """A capture with its compiled graph, bound to the tensors it reads by reference.

    Attributes:
        acts: Whether a call changes anything outside.
        alone: What a call holds from looking at the guards to the last write: what it writes to
            attributes and containers is computed of what the guards and symbols have read.
    """

    __slots__ = (
        "__weakref__", "acts", "aliases", "alive", "alone", "captured", "compiled", "config",
        "draws", "fast", "held", "order", "random", "refs", "resolve", "settings", "told",
    )  # fmt: skip

    def __init__(
        self, captured: Captured, config: JitConfig, alive: object, settings: Settings | None = None
    ) -> None:
        self.captured = captured
        self.config = config
        self.settings = settings or Settings()
        self.acts = bool(captured.written or captured.attributes or captured.effects)
        self.alone: AbstractContextManager[object] = turn if self.acts else _NOTHING
        self.fast: dict[object, FastCall] = {}  # by kind of arguments
        self.aliases: object = None  # which arguments were one tensor
        self.told = False  # whether a change that this entry does not see was named
        # objects whose id is part of the key; the user's weakly, the key goes with them
        self.alive = _map(alive, _mortal)
        empty = not captured.graph.outputs
        held = [_held(h) for h in captured.holders]
        self.compiled: CompiledGraph | TieredGraph | None = (
            None if empty else _compiled(captured.graph, config, held)
        )
        self.order = captured.holders
        # sizes alone are compared once per key, numbers and elements from outside at every call
        varies = captured.promotion.slots or captured.computes or captured.deciding
        self.resolve = captured.resolve if varies else None
        self.random = self.order.index(None) if None in self.order else None
        self.draws = any(isinstance(h, Drawn) for h in self.order)
        pairs = list(zip(captured.holders, captured.graph.params))
        self.held = tuple((h, p.value.type) for h, p in pairs if isinstance(h, Tensor))
        self.refs = tuple((h, p.value.type) for h, p in pairs if isinstance(h, AttributeRef))

    def optimized(self) -> CompiledGraph | None:
        """Returns the compiled graph, if there is anything to compute; waits for it."""
        if isinstance(self.compiled, TieredGraph):
            self.compiled = self.compiled.ready(wait=True)
        return self.compiled

    def given(self) -> tuple[tuple[object, ...], dict[str, object]]:
        """Returns the arguments and keyword arguments of the call that was captured.

        In place of a tensor that is gone comes one of its type, in place of an object ``None``.
        """
        return _map(self.alive, lambda v: v.read() if isinstance(v, _Mortal) else v)

    def failure(self, config: JitConfig) -> str | None:
        """Returns why this entry cannot serve a call now, or ``None``.

        Args:
            config: The settings of now.
        """
        guards = self.captured.guards
        if not self.settings.attr_guard:
            return self._argument_failure(config) or guards.flag_failure()
        return self._argument_failure(config) or guards.failure()

    def misfit(self) -> str:
        """Returns why it does not fit a call if its guards hold."""
        if self.captured.deciding is None:
            return "a number decides differently"
        numbers = ", ".join(map(str, sorted(self.captured.deciding.taken)))
        return f"tensor argument {numbers} has other elements, which the code needs"

    def aliasing(self, given: object) -> str | None:
        """Says whether a container that a call changes comes twice, or is read elsewhere, too.

        Args:
            given: ``(args, kwargs)`` of the call.
        """
        if self.captured.containers_read is None:
            return None
        passed = [id(c) for c in _containers(given)]
        once = len(set(passed)) == len(passed)
        if once and not any(id(a) in passed for a in self.captured.containers_read):
            return None
        return "a container comes in several ways"

    def unseen(self) -> str | None:
        """Returns once what changed that this entry was told not to look at."""
        if self.told or self.settings.attr_guard:
            return None
        found = self.captured.guards.failure()
        self.told = found is not None
        return found

    def _argument_failure(self, config: JitConfig) -> str | None:
        for tensor, kind in self.held:
            if tensor.aval is not kind:
                name = getattr(tensor, "name", "a tensor")
                return f"{name} changed from {kind} to {tensor.aval}"
        for ref, kind in self.refs:
            now = ref.read()
            if not isinstance(now, Tensor) or now.aval is not kind:
                return f"{ref.label} changed its type"
        if config is not self.config:
            return f"the JitConfig changed to {config.jit_config_dict}"
        return None

    def run(self, leaves: Sequence[Operand], given: object) -> Any:
        """Runs the graph on the tensors of ``given = (args, kwargs)``; returns the result.

        What it changes outside is changed as one: such calls take turns, and one that is
        interrupted when its code has ended still changes everything.

        Args:
            leaves: The tensors and numbers among the arguments, in order.
            given: ``(args, kwargs)`` of the call.
        """
        if not self.acts:
            return self._run(leaves, given, None)
        kept: list[object] = []
        with turn:
            start = default_generator.offset
            try:
                return self._run(leaves, given, kept)
            except BaseException:
                if not kept and self.random is not None:
                    default_generator.take_back(start, self._blocks(leaves))
                while kept:  # Ctrl-C may come again before it is held back
                    try:
                        self.complete(kept, leaves, given)
                        break
                    except KeyboardInterrupt:
                        continue
                raise

    def complete(self, kept: list[object], leaves: Sequence[Operand], given: object) -> None:
        """Changes what a call was to change that was interrupted when its code had ended.

        Args:
            kept: What the code returned; then whether the effects were begun.
            leaves: The tensors among the arguments.
            given: ``(args, kwargs)``.
        """
        with held_back():
            outputs = self.compiled.results(kept[0]) if self.compiled is not None else []
            made: dict[int, object] = {}
            self._store(leaves, given, outputs, made)
            if len(kept) == 1:
                kept.append(True)
                self._act(leaves, given, outputs, made)

    def _require_different(self, leaves: Sequence[Operand]) -> None:
        """Leaves a call to Python in which an attribute that is replaced holds an operand.

        What is written to the one is then read of the other.

        Raises:
            Unserved: if one does, or two attributes hold one tensor.
        """
        found = [ref.read() for ref, _ in self.refs]
        known = {id(t) for t in (*leaves, *(t for t, _ in self.held))}
        if len({*map(id, found)}) < len(found) or any(id(t) in known for t in found):
            raise Unserved("one tensor comes as an attribute and in another way")

    def _run(self, leaves: Sequence[Operand], given: object, kept: list[object] | None) -> object:
        outputs: list[Tensor] = []
        if self.captured.aliasing_matters and self.refs:
            self._require_different(leaves)
        if self.compiled is not None:
            order: Any = self.order
            args: list[Any] = [leaves[h] if h.__class__ is int else h for h in order]
            if self.refs:
                args = [a.read() if a.__class__ is AttributeRef else a for a in args]
            if self.random is not None:
                args[self.random] = position = default_generator.advance(self._blocks(leaves))
                if self.draws:
                    args = [a.draw(position) if a.__class__ is Drawn else a for a in args]
            if isinstance(self.compiled, TieredGraph):
                self.compiled = self.compiled.ready() or self.compiled
            try:
                outputs = self.compiled(args, True, kept)
            except Unserved:  # plain Python draws now
                if kept is None and self.random is not None:
                    at = int(args[self.random].array[1])
                    default_generator.take_back(at, self._blocks(leaves))
                raise
        elif kept is not None:
            kept.append(outputs)
        return self.finish(leaves, given, outputs, kept)

    def _blocks(self, leaves: Sequence[Any]) -> int:
        """Returns how many random counter blocks a call draws."""
        leaf, blocks = self.captured.random_leaf, self.captured.random_blocks
        if leaf is not None:
            return leaves[leaf]
        assert isinstance(blocks, int)
        return blocks

    def finish(
        self,
        leaves: Sequence[Operand],
        given: object,
        outputs: list[Tensor],
        kept: list[object] | None,
    ) -> object:
        """Stores what the graph computed where it belongs; returns the function's result.

        Args:
            leaves: The tensors among the arguments.
            given: ``(args, kwargs)``.
            outputs: What the graph computed.
            kept: As :meth:`complete` takes it, if anything is changed.
        """
        captured, made = self.captured, {}
        self._store(leaves, given, outputs, made)
        if captured.effects:
            with held_back():
                if kept is not None:
                    kept.append(True)
                self._act(leaves, given, outputs, made)
        if captured.result.__class__ is tree.Leaf and captured.result.kind == "output":  # pyright: ignore
            return outputs[captured.result.value]  # pyright: ignore
        return tree.rebuild(captured.result, outputs, list(leaves), given, made)

    def _act(
        self, leaves: Sequence[Operand], given: object, outputs: list[Tensor],
        made: dict[int, object],
    ) -> None:  # fmt: skip
        for effect in self.captured.effects:
            effect.apply(given, outputs, list(leaves), made)

    def _store(
        self, leaves: Sequence[Any], given: object, outputs: list[Tensor], made: dict[int, object]
    ) -> None:
        """Stores new values; doing it again does no harm."""
        captured = self.captured
        if captured.attributes or captured.effects:
            note_act()
        if captured.random_output is not None:
            default_generator.seek(int(outputs[captured.random_output].array[1]))
        if captured.written:
            new = outputs[len(outputs) - len(captured.written) :]
            for target, value in zip(captured.written, new):
                if isinstance(target, int):
                    leaves[target].rebind(value)
                    continue
                target.rebind(value)
                if target.__class__ is Parameter:
                    target._exclusive = target._ffi or (target._device and target._device.handle)
        for owner, name, structure in captured.attributes:
            target = owner()
            if target is not None:  # an object that the function made, and nobody has any more
                value = tree.rebuild(structure, outputs, list(leaves), given, made)
                setattr(target, name, value)


def _compiled(
    graph: Graph, config: JitConfig, held: Sequence[Tensor | None]
) -> CompiledGraph | TieredGraph:
    """A graph for this process alone, or its part of one that several processes share."""
    if any(node.op.traits.places for node in graph.walk()):
        return hooks.shard_graph(graph, config, held)
    if config.options.get("tiered", False):
        return compiled_or_tiered(graph, config, held)
    return CompiledGraph(graph, config, held)


def entries_decide(known: Sequence[Entry], lax: bool) -> str:
    """Returns who may need the elements of tensor arguments; see ``Settings.decide``.

    Args:
        known: The captures of calls like the one that is captured.
        lax: Whether Python can do what the graph cannot.
    """
    if not lax:
        return "all"
    often = sum(e.captured.deciding is not None for e in known) >= _MAX_ELEMENTS
    return "" if often else "operators"


def _containers(value: object) -> Iterator[object]:
    """Yields the lists and dicts in nested arguments."""
    if isinstance(value, (list, dict)):
        yield value
    if isinstance(value, (list, tuple, dict)):
        for v in value.values() if isinstance(value, dict) else value:
            yield from _containers(v)


def _map(value: object, change: Callable[[object], object]) -> Any:
    """Returns nested arguments with every leaf changed."""
    if isinstance(value, dict):
        return {k: _map(v, change) for k, v in value.items()}
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        kind = tuple if isinstance(value, tuple) else list  # runs no code of a class
        return kind([_map(v, change) for v in items_in(value)])
    return change(value)


class _Mortal(NamedTuple):
    """An argument that a capture must not keep alive.

    Attributes:
        ref: Returns it, ``None`` if it is gone.
        type: Its type if it is a tensor.
    """

    ref: Callable[[], object]
    type: TensorType | None

    def read(self) -> object:
        """Returns it, or a tensor of its type."""
        value = self.ref()
        if value is None and self.type is not None:
            return Tensor(np.zeros(self.type.static_shape, self.type.dtype.numpy))
        return value


def _mortal(value: Any) -> object:
    """Returns what stands for an argument in a capture."""
    if isinstance(value, BaseException):  # it holds the frames that it came through
        return _Mortal(reference(value, kept=False), None)
    if not isinstance(value, Tensor) and not is_mortal(value):
        return value
    return _Mortal(reference(value), value.aval if isinstance(value, Tensor) else None)


def _held(holder: object) -> Tensor | None:
    """The tensor that a parameter of the graph is, unless it is one of the call's own."""
    value = holder.read() if isinstance(holder, AttributeRef) else holder
    return value if isinstance(value, Tensor) else None
