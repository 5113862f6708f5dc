"""Running a frozen graph: prepared values are made again when a parameter has changed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tvmgraph import forking
from tvmgraph.core import storage
from tvmgraph.core.lending import may_change
from tvmgraph.core.state import turn
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType

if TYPE_CHECKING:
    from tvmgraph.graph import Graph
    from tvmgraph.passes.freeze import Frozen
    from tvmgraph.runtime import Executable

#: Preparing costs more than it saves when parameters change more often than once in this many
#: calls; after this many times the plain graph is compiled instead.
_CALLS_PER_VERSION, _PATIENCE = 4, 4


class Preparation:
    """Prepared values that another thread computes while the graph is compiled.

    Args:
        frozen: The graph in two halves.
        sources: The parameters that the values depend on.
    """

    def __init__(self, frozen: Frozen, sources: Sequence[Tensor]) -> None:
        self._state = _state_of(sources)
        self._arrays: list[np.ndarray] | None = None
        arrays = [t.array for t in sources]
        self._thread = threading.Thread(target=self._compute, args=(frozen, arrays))
        self._thread.start()

    def _compute(self, frozen: Frozen, arrays: Sequence[np.ndarray]) -> None:
        from tvmgraph.compiler.cache.prepared import prepare

        with contextlib.suppress(Exception):  # the first call meets it again
            self._arrays = prepare(frozen, arrays)

    def take(self, sources: Sequence[Tensor]) -> list[np.ndarray] | None:
        """Waits for the values; None if the parameters have changed since.

        Args:
            sources: The parameters as they are now.
        """
        self._thread.join()
        arrays, self._arrays = self._arrays, None
        return arrays if self._state == _state_of(sources) else None


def prepare_early(frozen: Frozen, held: Sequence[Tensor | None]) -> Preparation | None:
    """Begins to compute what a frozen graph prepares; ``held`` are its parameters where known.

    Args:
        frozen: The graph, and what is prepared for it.
        held: Its parameters; None for one that is not known before the call.
    """
    sources = [held[i] if i < len(held) else None for i in frozen.sources]
    known = [t for t in sources if t is not None and not t.on_gpu and not _may_change(t)]
    return Preparation(frozen, known) if known and len(known) == len(sources) else None


def _state_of(sources: Sequence[Tensor]) -> tuple[object, ...]:
    """What is another one when the elements may have changed."""
    return (storage.lendings, *[t.token for t in sources])


class FrozenExecutable:
    """An executable of a frozen graph that takes the arguments of the original graph.

    A write to a parameter gives it a new token, which is compared in every call. Arrays that were
    lent to NumPy code (``asnumpy``) can change without that; graphs that read such parameters run
    as they are.

    Args:
        frozen: The graph in two halves.
        executable: That of ``frozen.main``.
        compile_plain: Compiles the original graph.
        early: Prepared values that are being computed already.

    Attributes:
        calls: How often it was called.
    """

    def __init__(
        self,
        frozen: Frozen,
        executable: Executable,
        compile_plain: Callable[[], Executable],
        early: Preparation | None = None,
    ) -> None:
        self._early = early
        self._frozen = frozen
        self._executable = executable
        self._compile_plain = compile_plain
        self._plain: Executable | None = None
        self._lock = forking.lock()
        self._tokens: tuple[tuple[int, object], ...] = ()
        self._prepared: list[Tensor] | None = None
        self._lent = -1
        self.calls = self._versions = 0

    @property
    def on_host(self) -> bool:
        """Whether it runs on the CPU."""
        return self._executable.on_host

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels."""
        return (self._plain or self._executable).kernels

    @property
    def graph(self) -> Graph | None:
        """The frozen graph, or ``None`` while the original one runs."""
        return None if self._plain is not None else self._frozen.main

    @property
    def versions(self) -> int:
        """How often the prepared values were computed."""
        return self._versions

    def function(self, name: str = "main") -> Callable[..., object]:
        """Returns this thread's entry point; it takes the arguments of the frozen graph.

        Args:
            name: A function of the module.
        """
        return (self._plain or self._executable).function(name)

    def handle(self, tensor: Tensor) -> object:
        """Returns what the compiled code gets of a tensor.

        Args:
            tensor: An argument, where the code runs.
        """
        return self._executable.handle(tensor)

    def wrapped(self, output: object, type: TensorType) -> Tensor:
        """Returns what the compiled code returned as a tensor.

        Args:
            output: A tensor of TVM's.
            type: Its type in the graph.
        """
        return self._executable.wrapped(output, type)

    def run(
        self,
        args: Sequence[Tensor],
        types: Sequence[TensorType],
        name: str = "main",
        kept: list[object] | None = None,
    ) -> list[Tensor]:
        """Calls the function with the arguments of the original graph; see :class:`Executable`.

        Args:
            args: One tensor per parameter of the original graph.
            types: Types of the outputs.
            name: A function of the module.
            kept: Gets what the code returned, so that an interrupted call can be completed.
        """
        with turn:
            executable, args = self.resolve(args)
            handles = executable.handles(args)
        return executable.results(executable.call(handles, name, kept), types)

    def results(self, outputs: object, types: Sequence[TensorType]) -> list[Tensor]:
        """Returns what the code returned as tensors.

        Args:
            outputs: What the code returned.
            types: Types of the outputs.
        """
        return self._executable.results(outputs, types)

    def keeps(self, count: int) -> bool:
        """Whether the first ``count`` arguments come first in the frozen graph, too.

        Args:
            count: How many arguments: the ones that are no parameters.
        """
        return tuple(self._frozen.kept[:count]) == tuple(range(count))

    def resolve(self, args: Sequence[Tensor]) -> tuple[Executable, Sequence[Tensor]]:
        """Returns what to run, and its arguments.

        Args:
            args: One tensor per parameter of the original graph.
        """
        if self._plain is not None:
            return self._plain, args
        self.calls += 1
        prepared = self._prepared
        current = prepared is not None and self._lent == storage.lendings
        if current:
            for position, token in self._tokens:
                if args[position]._token is not token:
                    current = False
                    break
        if prepared is None or not current:
            prepared = self._prepare(args)
        if prepared is None:
            assert self._plain is not None
            return self._plain, args
        return self._executable, [*[args[i] for i in self._frozen.kept], *prepared]

    def _prepare(self, args: Sequence[Tensor]) -> list[Tensor] | None:
        with self._lock:
            frozen = self._frozen
            sources = [args[i] for i in frozen.sources]
            lent = storage.lendings
            often = self._versions * _CALLS_PER_VERSION > self.calls
            if (often and self._versions >= _PATIENCE) or any(map(_may_change, sources)):
                self._plain = self._compile_plain()
                self._prepared = None
                return None
            tokens = tuple((i, args[i].token) for i in frozen.sources)
            if self._prepared is None or tokens != self._tokens:
                arrays = self._compute(sources)
                self._versions += 1
                self._prepared = [self._executable.to_device(a) for a in arrays]
            self._tokens, self._lent = tokens, lent
            return self._prepared

    def _compute(self, sources: Sequence[Tensor]) -> Sequence[np.ndarray]:
        """Computes the prepared values; the first ones may have been kept by another process."""
        from tvmgraph.compiler.cache.prepared import prepare

        early, self._early = self._early, None
        found = None if early is None else early.take(sources)
        if found is not None:
            return found
        arrays = [t.array for t in sources]
        return self._frozen.prepare(arrays) if self._versions else prepare(self._frozen, arrays)


def _may_change(tensor: Tensor) -> bool:
    """Whether the elements may change without a new token."""
    return tensor.__class__ is Tensor or may_change(tensor)
