"""A graph that is answered by eager operators until its compiled code is there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tvmgraph.backend.base import backend_of
from tvmgraph.capture.replay import replay
from tvmgraph.config import JitConfig
from tvmgraph.config.flag_registry import active
from tvmgraph.core.costly import unasked
from tvmgraph.core.tensor import Tensor
from tvmgraph.graph import Graph, Role
from tvmgraph.jit.compiled import CompiledGraph


def compiled_or_tiered(
    graph: Graph, config: JitConfig, held: Sequence[Tensor | None]
) -> CompiledGraph | TieredGraph:
    """Compiles a graph in the background, as the option ``tiered`` wants it.

    Args:
        graph: The graph.
        config: How to compile and run it; what is for a GPU is compiled at once.
        held: The tensors that are its parameters, where they are known before a call.
    """
    if not backend_of(config.target).runs_numpy:
        return CompiledGraph(graph, config, held)
    return TieredGraph(graph, config, held)


class TieredGraph:
    """Compiles a graph in a thread; until then every operator runs at once.

    Args:
        graph: The graph.
        config: How to compile it.
        held: The tensors that are its parameters, where they are known before a call.

    Attributes:
        graph: As given.
        steps: Nothing, but not ``None``: no call of it is written ahead.
        path: How calls run.
        calls: How many were answered by eager operators.
    """

    path = "eager operators, until the compiled code is there (tiered)"
    steps = ()

    def __init__(self, graph: Graph, config: JitConfig, held: Sequence[Tensor | None]) -> None:
        self.graph = graph
        self.calls = 0
        self._done: CompiledGraph | None = None
        self._error: BaseException | None = None
        self._then: list[Callable[[CompiledGraph], None]] = []
        inputs = [i for i, p in enumerate(graph.params) if p.role is Role.INPUT]
        self._order = [*inputs, *(i for i in range(len(graph.params)) if i not in inputs)]
        self._inputs = len(inputs)
        self._held: list[Tensor | None] = list(held)
        self._config = config
        self._thread = self._started()

    def _started(self) -> threading.Thread:
        thread = threading.Thread(target=self._compile, name="tvmgraph-tier", daemon=True)
        thread.start()
        return thread

    def _compile(self) -> None:
        try:
            self._done = CompiledGraph(self.graph, self._config, self._held)
        except BaseException as e:  # for the next call, which is the user's
            self._error = e

    def then(self, tell: Callable[[CompiledGraph], None]) -> None:
        """Lets somebody know once the code is taken into use.

        Args:
            tell: Gets the compiled graph.
        """
        self._then.append(tell)

    def ready(self, wait: bool = False) -> CompiledGraph | None:
        """Returns the compiled graph, ``None`` while there is none.

        Args:
            wait: Whether to wait for it.

        Raises:
            CompileError: if compiling failed.
        """
        if not self._thread.is_alive() and self._done is None and self._error is None:
            self._thread = self._started()  # this process was forked meanwhile
        if wait:
            self._thread.join()
        if self._error is not None:
            raise self._error
        if self._done is not None:
            while self._then:
                self._then.pop()(self._done)
        return self._done

    def __call__(
        self, args: Sequence[Tensor], consume: bool = False, kept: list[object] | None = None
    ) -> list[Tensor]:
        """Runs the graph; arguments as :meth:`CompiledGraph.__call__`."""
        found = self.ready(wait=active.watched)
        if found is not None:
            return found(args, consume, kept)
        self.calls += 1
        ordered = [args[i] for i in self._order]
        with unasked():
            outputs = replay(self.graph, ordered[: self._inputs], ordered[self._inputs :])
        if kept is not None:
            kept.append(outputs)
        return outputs

    def results(self, kept: object) -> list[Tensor]:
        """Returns the outputs of a call that was interrupted when it had ended.

        Args:
            kept: What its call put into the list ``kept``.
        """
        return kept if isinstance(kept, list) else self.ready(wait=True).results(kept)  # pyright: ignore
