"""A composition of operators in eager code: one compiled function once that pays."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from tvmgraph.autodiff.derivative import replaying
from tvmgraph.autodiff.reverse import reverse
from tvmgraph.autodiff.tape import Cotangents, PullBack, snapshot
from tvmgraph.capture.recorder import Recorder
from tvmgraph.core.costly import LARGE, Costly
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern
from tvmgraph.graph import Graph
from tvmgraph.graph.ir import Value
from tvmgraph.graph.simplify import dce

Composition = Callable[..., Tensor | tuple[Tensor, ...]]


class EagerFusion:
    """A composition for arguments of some types: called in NumPy, or compiled once that pays.

    Args:
        function: The composition.
        args: Its arguments, of which tensors may have other elements in a call.
    """

    def __init__(self, function: Composition, args: tuple[object, ...]) -> None:
        self._function = function
        self._name = function.__name__.strip("_")
        self._tensor_indices = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        self._others = [None if isinstance(a, Tensor) else a for a in args]
        tensors = [a for a in args if isinstance(a, Tensor)]
        self._types = [t.aval for t in tensors]
        self._multi = False
        self._graph: Graph | None = None
        self._backward: dict[object, EagerFusion] = {}
        on_host = not any(t.on_gpu for t in tensors)
        small = sum([t.size for t in tensors]) < LARGE
        fits = on_host and tensors and all(t.size for t in tensors)
        self._costly = Costly(self.graph, small=small) if fits else None

    def is_chain(self) -> bool:
        """Whether an operator computes on the result of another, which fusing keeps in cache."""
        computed: set[Value] = set()
        for node in self.graph().nodes:
            is_view = node.op.traits.pattern is Pattern.VIEW
            follows = not computed.isdisjoint(node.inputs)
            if follows and not is_view:
                return True
            if follows or not is_view:
                computed.update(node.outputs)
        return False

    def graph(self) -> Graph:
        """The composition as a graph of its tensors."""
        if self._graph is not None:
            return self._graph
        recorder = Recorder(self._name)
        args = list(self._others)
        for i, type in zip(self._tensor_indices, self._types):
            args[i] = recorder.argument(type, f"x{i}")  # pyright: ignore[reportArgumentType]
        with state.interpreting(recorder):
            result = self._function(*args)
        self._multi = isinstance(result, tuple)
        outputs = result if isinstance(result, tuple) else (result,)
        self._graph = recorder.builder.build([recorder.value_of(r) for r in outputs])
        if self._graph.writes or recorder.captured:
            raise AssertionError(f"{self._name} reads or writes more than its arguments")
        return self._graph

    def __call__(self, args: tuple[Any, ...]) -> Tensor | tuple[Tensor, ...]:
        """Computes it."""
        costly = self._costly
        if costly is None:
            return self._function(*args)
        tensors = tuple([args[i] for i in self._tensor_indices])
        outputs = costly.run(tensors)
        if outputs is not None:
            if state.tapes:
                for tape in state.tapes:
                    tape.record_call(  # pyright: ignore[reportAttributeAccessIssue]
                        self._name, tensors, outputs, self._pull_back(tensors), True, True
                    )
            return outputs if self._multi else outputs[0]
        start = perf_counter()
        result = self._function(*args)
        if not costly.took(tensors, perf_counter() - start):
            self._costly = None
        return result

    def _pull_back(self, args: tuple[Tensor, ...]) -> PullBack:
        kept = [snapshot(a) for a in args]

        def pull_back(
            cotangents: tuple[Tensor | None, ...], needed: tuple[bool, ...]
        ) -> Cotangents:
            given = {i: g for i, g in enumerate(cotangents) if g is not None}
            wanted = tuple([i for i, p in enumerate(needed) if p])
            operands = (*kept, *given.values())
            fusion = self._reversed(wanted, tuple(given), operands)
            found = fusion(operands) if state.interpreter is None else fusion._function(*operands)
            assert isinstance(found, tuple)
            result: list[Tensor | None] = [None] * len(kept)
            for i, g in zip(wanted, found):
                result[i] = g
            return result

        return pull_back

    def _reversed(
        self, wanted: tuple[int, ...], given: tuple[int, ...], operands: tuple[Tensor, ...]
    ) -> EagerFusion:
        key = wanted, given, state.cotangents
        found = self._backward.get(key)
        if found is None:
            graph = dce(reverse(self.graph(), wanted, given))
            found = self._backward[key] = EagerFusion(replaying(graph), operands)
            if not found.is_chain():
                found._costly = None
        return found
