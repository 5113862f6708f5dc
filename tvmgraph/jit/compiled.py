"""CompiledGraph: a graph with its executable, callable on tensors and differentiable."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tvmgraph.autodiff.reverse import reverse
from tvmgraph.autodiff.tape import Cotangents, PullBack, paused, snapshot
from tvmgraph.backend.base import backend_of
from tvmgraph.capture.replay import replay
from tvmgraph.config import JitConfig
from tvmgraph.config.flag_registry import active
from tvmgraph.config.options import CompileOptions
from tvmgraph.core import rules
from tvmgraph.core.op import Reason
from tvmgraph.core.state import has_cotangent, state
from tvmgraph.core.symbols import Specialise
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.core.types import TensorType
from tvmgraph.errors import CompileError, TvmgraphError, Unserved
from tvmgraph.graph import Graph, Node, Role, Value
from tvmgraph.graph.simplify import pulled_back_to, read_by
from tvmgraph.graph.sizes import is_symbolic, sizes_of, with_sizes
from tvmgraph.jit import instrumentation
from tvmgraph.jit.execution import choose_path
from tvmgraph.jit.frozen import FrozenExecutable, prepare_early

if TYPE_CHECKING:
    from tvmgraph.backend.table import Choice
    from tvmgraph.compiler.compile import CompileStats
    from tvmgraph.runtime import Executable

_MAX_DERIVATIVES = 64  # of a graph with symbolic sizes whose derivative needs their values

Watch = Callable[[Node, list[Tensor], list[Tensor]], None]


class CompiledGraph:
    """Runs a graph as compiled code.

    Args:
        graph: The graph.
        config: How to compile and run it.
        held: The tensors that are its parameters, where they are known before a call.

    Attributes:
        stats: What compiling it did.
        path: How it runs, see :mod:`tvmgraph.jit.execution`.
        constants: Outputs that depend on no parameter, or that are one.
        overwritten: Parameters that compiled code may write to, because the graph replaces them.
    """

    def __init__(self, graph: Graph, config: JitConfig, held: Sequence[Tensor | None] = ()) -> None:
        from tvmgraph.compiler import compile_graph
        from tvmgraph.passes.freeze import freeze, prepares

        if any(node.op.traits.stops for node in graph.walk()):
            graph = replace(graph, writes=())  # a call that stops half-way has written nothing
        self.graph = graph
        self.config = config
        self.path = choose_path(graph, config)
        self._types = tuple(v.type for v in graph.outputs)
        # by what has a cotangent and the symbolic sizes, None where it serves all sizes
        self._pull_back: dict[tuple[object, tuple[int, ...] | None], CompiledGraph] = {}
        backend = backend_of(config.target)
        self.overwritten = _overwritten(graph) if config.jit_level != "O0" else ()
        self.steps = _Steps(graph, config) if self.path.mode == "no_sink" else None
        self._arranged = False
        if self.steps is None:
            self._options = compile_options(config, self.path.native, self.path.replay)
            options = self._options
            plain = not prepares(graph, options)
            self._arranged = not plain and backend.layout_model(options) is not None
            frozen = None if plain or state.tapes else freeze(graph, options)
            self._main = None if frozen is None else frozen.main
            if frozen is None:
                self.executable, self.stats = compile_graph(self.unfrozen, options=options)
            else:
                early = prepare_early(frozen, held)
                inner, self.stats = compile_graph(frozen.main, options=options)
                self.executable = FrozenExecutable(
                    frozen, inner, lambda: compile_graph(self.unfrozen, options=options)[0], early
                )
            # elements on a GPU cannot be written to from outside
            shared = self.overwritten or backend.shares_memory
            self.constants = _constant_outputs(graph) if shared else []
        else:
            self._options = compile_options(config, native=False)
            self.stats = self.steps.compile(self._options)

    def kernel_choices(self) -> list[Choice]:
        """For every kernel: its name in the table, what those before it said, and its plan."""
        from tvmgraph.compiler import explain_kernels
        from tvmgraph.compiler.build import isolate

        if self.steps is not None:
            graphs = [isolate(node) for node in self.graph.nodes]
        else:
            graphs = [self._main or self.unfrozen]
        found = (explain_kernels(graph, self._options) for graph in graphs)
        return [choice for choices in found for choice in choices]

    @functools.cached_property
    def unfrozen(self) -> Graph:
        """The graph that is compiled where nothing is prepared ahead of calls."""
        from tvmgraph.passes.freeze import arrange

        if not self._arranged:
            return self.graph
        return arrange(self.graph, self._options)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels that a call runs, in the order they were generated."""
        return self.executable.kernels if self.steps is None else self.steps.kernels

    def __call__(
        self, args: Sequence[Tensor], consume: bool = False, kept: list[object] | None = None
    ) -> list[Tensor]:
        """Runs the graph on one tensor per parameter; recorded on active tapes as one entry.

        Args:
            args: The tensors.
            consume: Whether the caller drops the values of the parameters that the graph replaces.
            kept: Gets first of all what :meth:`results` makes the outputs of.
        """
        if active.watched:
            outputs = instrumentation.call(self, args)
            if kept is not None:
                kept.append(outputs)
        else:
            outputs = self.run(args, consume and not state.tapes, kept)
        if state.tapes:
            for tape in state.tapes:
                tape.record_call(  # pyright: ignore[reportAttributeAccessIssue]
                    self.graph.name, tuple(args), tuple(outputs), self._differentiate(args), True
                )
        return outputs

    def run(
        self, args: Sequence[Tensor], consume: bool = False, kept: list[object] | None = None
    ) -> list[Tensor]:
        """Runs the graph the quick way, whoever watches; see :meth:`__call__`.

        Args:
            args: One tensor per parameter of the graph.
            consume: Whether parameters that the graph writes may be overwritten in place.
            kept: Gets what the code returned, so that an interrupted call can be completed.
        """
        if self.steps is not None:
            outputs = self.steps.run(args)
            if kept is not None:
                kept.append(outputs)
            return outputs
        if self.overwritten:
            args = self.executable.for_writing(args, self.overwritten, consume)  # pyright: ignore
        outputs = self.executable.run(args, self._types, kept=kept)
        self.own_constants(outputs)
        return outputs

    def results(self, kept: object) -> list[Tensor]:
        """Returns the outputs of a call that was interrupted when its code had ended.

        Args:
            kept: What :meth:`run` put into its list of that name.
        """
        if isinstance(kept, list):
            return kept
        outputs = self.executable.results(kept, self._types)
        self.own_constants(outputs)
        return outputs

    def own_constants(self, outputs: list[Tensor]) -> None:
        """Copies outputs that are the executable's own constants.

        Args:
            outputs: The results of a call; changed in place.
        """
        for i in self.constants:
            outputs[i] = _owned(outputs[i])

    def _differentiate(self, args: Sequence[Tensor]) -> PullBack:
        kept = [snapshot(a) for a in args]

        def pull_back(cotangents: tuple[Tensor | None, ...]) -> Cotangents:
            given = {i: g for i, g in enumerate(cotangents) if g is not None}
            result: list[Tensor | None] = [None] * len(kept)
            wanted = self._wanted(tuple(given), state.cotangents)
            if not wanted:
                return result
            operands = [*kept, *given.values()]
            if state.interpreter is None:
                found = self._backward(kept, wanted, list(given))(operands)
            else:  # traced, as by vmap over the rows of a Jacobian
                with paused():
                    graph = reverse(self._sized(self._sizes(kept)), wanted, list(given))
                found = replay(graph, operands)
            for i, g in zip(wanted, found):
                result[i] = g
            return result

        return pull_back

    @functools.cached_property
    def _wanted_by(self) -> dict[tuple[tuple[int, ...], str], list[int]]:
        """What :meth:`_wanted` returned."""
        return {}

    def _wanted(self, given: tuple[int, ...], kinds: str) -> list[int]:
        """Returns the numbers of the parameters that cotangents of some outputs reach.

        Zeros for the others would go on to what computed them, which may have no derivative.
        """
        found = self._wanted_by.get((given, kinds))
        if found is None:
            values = _reached(self.graph, given)
            found = [
                i for i, p in enumerate(self.graph.params)
                if p.value in values and has_cotangent(p.value.type.dtype)
            ]  # fmt: skip
            self._wanted_by[given, kinds] = found
        return found

    def _backward(
        self, args: Sequence[Tensor], wanted: Sequence[int], given: Sequence[int]
    ) -> CompiledGraph:
        """Returns the compiled derivative: one for all sizes, or one for those of this call."""
        kind = (state.cotangents, tuple(given))
        found = self._pull_back.get((kind, None))
        if found is not None:
            return found
        sizes = self._sizes(args)
        key = (kind, tuple(sizes.values()))
        found = self._pull_back.get(key)
        if found is None:
            with paused():
                if sizes and not any(k[0] == kind for k in self._pull_back):
                    found = self._symbolic_backward(wanted, given, sizes)
                    if found is not None:
                        self._pull_back[kind, None] = found
                        return found
                found = CompiledGraph(reverse(self._sized(sizes), wanted, given), self.config)
            while len(self._pull_back) >= _MAX_DERIVATIVES:
                del self._pull_back[next(iter(self._pull_back))]
            self._pull_back[key] = found
        return found

    def _sizes(self, args: Sequence[Tensor]) -> dict[str, int]:
        """Returns the symbolic sizes in a call; none where the graph has none."""
        if not is_symbolic(self.graph):
            return {}
        return sizes_of([p.value for p in self.graph.params], [a.shape for a in args])

    def _sized(self, sizes: dict[str, int]) -> Graph:
        return with_sizes(self.graph, sizes) if sizes else self.graph

    def _symbolic_backward(
        self, wanted: Sequence[int], given: Sequence[int], sizes: dict[str, int]
    ) -> CompiledGraph | None:
        try:
            return CompiledGraph(reverse(self.graph, wanted, given, sizes), self.config)
        except (Specialise, TvmgraphError):  # it needs the sizes: one derivative for each
            return None


def _owned(tensor: Tensor) -> Tensor:
    if not tensor.on_gpu:
        return tensor_from_numpy(tensor.array.copy())
    from tvmgraph.runtime.device_tensor import copy_on

    return copy_on(tensor, tensor._device.index)


def _reached(graph: Graph, given: Sequence[int]) -> set[Value]:
    """Returns the values that the given outputs depend on, but by steps, which are flat.

    A derivative of the user's own reaches all that it is of, whether its result depends on that or
    by steps only.
    """
    found = {graph.outputs[i] for i in given}
    outermost_first = sorted(graph.customs, key=lambda c: (-c.end, c.start))
    calls = iter([*outermost_first, None])
    call = next(calls)
    for i, node in reversed(list(enumerate(graph.nodes))):
        while call is not None and call.end > i:
            if not found.isdisjoint(call.outputs):
                found.update(call.inputs)
            call = next(calls)
        truths = all(v.type.dtype.kind in "biu" for v in node.outputs)
        flat = node.op.vjp is rules.flat or (isinstance(node.op.vjp, Reason) and truths)
        if not flat and not found.isdisjoint(node.outputs):
            found.update(pulled_back_to(node))
    return found


def _constant_outputs(graph: Graph) -> list[int]:
    """Returns the outputs that depend on no parameter, and those that are views of one.

    TVM folds the former, and returning one must not hand out the executable's own constant. The
    latter must not change when the parameter is written to in place.
    """
    views = {p.value for p in graph.params if p.role is not Role.INPUT}
    for node in graph.nodes:
        read = read_by(node)
        if len(read) == 1 and read[0] in views and node.op.traits.alias:
            views.update(node.outputs)
    varying = {p.value for p in graph.params}
    for node in graph.nodes:
        if node.regions or any(v in varying for v in read_by(node)):
            varying.update(node.outputs)
    return [i for i, v in enumerate(graph.outputs) if v not in varying or v in views]


def _overwritten(graph: Graph) -> tuple[int, ...]:
    """Returns the numbers of the parameters that the graph replaces."""
    written = set(graph.writes)
    return tuple(
        i for i, p in enumerate(graph.params) if p.role is not Role.INPUT and p.label in written
    )


def compile_options(config: JitConfig, native: bool, replay: bool = False) -> CompileOptions:
    """Returns what the compiler is told under ``config``.

    Args:
        config: The settings of the function.
        native: Whether the function that calls the kernels becomes machine code.
        replay: Whether calls are recorded as a CUDA graph and replayed.
    """
    return CompileOptions(
        config.jit_level, config.target, native, config.graph_kernel, config.search_trials,
        config.options.get("fast_math", False), config.options.get("device_id", 0),
        config.options.get("tf32", False), replay, config.options.get("library_dispatch", False),
        config.options.get("deterministic", False),
    )  # fmt: skip


class _Steps:
    """Runs a graph one operator at a time, every operator compiled on its own.

    An operator that fails is named with the user's line, and a debugger can stop between two.
    What cannot be compiled runs in NumPy.
    """

    def __init__(self, graph: Graph, config: JitConfig) -> None:
        self.graph = graph
        self.config = config
        self.executables: list[Executable | None] = []
        self.kernels: tuple[str, ...] = ()

    def compile(self, options: CompileOptions) -> CompileStats:
        """Compiles every node that can be."""
        from tvmgraph.compiler import compile_graph
        from tvmgraph.compiler.build import isolate
        from tvmgraph.compiler.compile import CompileStats

        seconds, names, cached = 0.0, [], True
        for node in self.graph.nodes:
            if isinstance(node.op.lower, Reason) and self.config.jit_syntax_level == "LAX":
                self.executables.append(None)
                continue
            try:
                executable, stats = compile_graph(isolate(node), options=options)
            except TvmgraphError as e:
                raise e.locate("", "", node.source) from e.__cause__
            self.executables.append(executable)
            seconds, cached = seconds + stats.seconds, cached and stats.cached
            names += executable.kernels
        self.kernels = tuple(names)
        return CompileStats(seconds, cached, len(self.graph.nodes), len(names))

    def run(self, args: Sequence[Tensor], watch: Watch | None = None) -> list[Tensor]:
        """Runs every node in order; ``watch(node, inputs, outputs)`` sees each."""
        known: dict[Value, Tensor] = {p.value: a for p, a in zip(self.graph.params, args)}
        known.update((v, tensor_from_numpy(a)) for v, a in self.graph.consts.items())
        for node, executable in zip(self.graph.nodes, self.executables):
            inputs = [known[v] for v in node.inputs]
            outputs = self.step(node, executable, inputs)
            if watch is not None:
                watch(node, inputs, outputs)
            known.update(zip(node.outputs, outputs))
        return [known[v] for v in self.graph.outputs]

    def step(self, node: Node, executable: Executable | None, inputs: list[Tensor]) -> list[Tensor]:
        """Runs one node."""
        types: list[TensorType] = [v.type for v in node.outputs]
        try:
            if executable is None:
                result = node.op.eager(*[t.array for t in inputs], **node.attrs)
                return [tensor_from_numpy(r) for r in (result if node.op.multi else (result,))]
            return executable.run(inputs, types)
        except Unserved:
            raise
        except Exception as e:
            got = ", ".join(str(t.aval) for t in inputs)
            raise CompileError(
                f"running it failed: {e}", op=f"ops.{node.op.name}", got=got, at=node.source
            ) from e
