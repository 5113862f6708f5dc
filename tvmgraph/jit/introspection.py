"""Looking inside a jitted function: profile, picture, and which kernel computes what."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from tvmgraph.capture import record as recorded
from tvmgraph.core.notebook import fragment, heading, table
from tvmgraph.debug.profile import Memory, Profile
from tvmgraph.errors import ArgumentError, CaptureError, CompileError, user_source
from tvmgraph.graph import Graph
from tvmgraph.jit import graph_breaks, instrumentation
from tvmgraph.jit.measure import kernels_of, measure
from tvmgraph.jit.recompiles import explain_record
from tvmgraph.jit.regions.report import (
    Break,
    breaks,
    describe,
    described_cache,
    picture,
    used_segments,
)
from tvmgraph.view import Drawing, Kernel, Viewer, draw_pair, model_of

if TYPE_CHECKING:
    from tvmgraph.backend.table import Choice
    from tvmgraph.capture.checks import MortalKeys
    from tvmgraph.jit.churn import Churn
    from tvmgraph.jit.compiled import CompiledGraph
    from tvmgraph.jit.entry import Entry
    from tvmgraph.jit.function import CompileRecord
    from tvmgraph.jit.regions.segment import Region

_MOST_REPEATS = 10**6


class Explanation(str):
    """The text of :meth:`Inspectable.explain`; notebooks show the compiles as a table above it.

    Attributes:
        history: The compiles.
    """

    history: tuple[CompileRecord, ...]

    def __new__(cls, text: str, history: tuple[CompileRecord, ...] = ()) -> Explanation:
        found = super().__new__(cls, text)
        found.history = history
        return found

    def __reduce__(self) -> tuple[object, ...]:
        return (Explanation, (str(self), self.history))

    def _repr_html_(self) -> str:
        rows = [
            (i, r.why, r.signature, r.capture_seconds * 1e3, r.compile_seconds * 1e3, r.operators,
             r.kernels, "an equal graph was there" if r.cached else r.disk)
            for i, r in enumerate(self.history, 1)
        ]  # fmt: skip
        heads = ("", "why", "arguments", "capture ms", "compile ms", "operators", "kernels", "disk")
        first, _, rest = self.partition("\n")
        shown = table(heads, rows) if rows else ""
        more = f"<details><summary>all of it</summary><pre>{html.escape(rest)}</pre></details>"
        return fragment(heading("", first) + shown + more)


class Inspectable:
    """What :class:`~tvmgraph.jit.JitFunction` offers to people who look at it."""

    fn: Any  # a function, a bound method or a CellCall
    entries: MortalKeys[list[Entry]]
    history: list[CompileRecord]
    refused: dict[object, CaptureError]
    raising: dict[object, CaptureError]
    churn: Churn
    region: Region | None
    evicted: int

    def compile(self, *args: object, **kwargs: object) -> Inspectable:
        """Compiles for these arguments without running.

        Args:
            *args: Positional arguments of a call.
            **kwargs: Keyword arguments of a call.
        """
        raise NotImplementedError

    def graph(self, *args: object, **kwargs: object) -> Graph:
        """Returns the graph of a call.

        Args:
            *args: Positional arguments of a call.
            **kwargs: Keyword arguments of a call.
        """
        raise NotImplementedError

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Runs the function."""
        raise NotImplementedError

    def profile(self, *args: object, repeat: int = 10, **kwargs: object) -> Profile:
        """Times every kernel of a call with these arguments.

        The function is called once for real, so a training step takes effect once; its compiled
        graph is then repeated on the same values.

        Args:
            *args: Arguments of the function.
            repeat: How often the graph is repeated; the shortest time counts.
            **kwargs: Keyword arguments of the function.

        Returns:
            Per kernel time, share, GFLOP/s and GB/s against the machine's measured peaks; memory;
            overhead of the host. Print it, ``save("p.html")`` or ``save("p.json")``.

        Raises:
            ArgumentError: if ``repeat`` is not positive, or too large.
            CompileError: if the function computes nothing.
        """
        if not isinstance(repeat, int) or not 0 < repeat <= _MOST_REPEATS:
            raise ArgumentError(
                f"repeat must be an int from 1 to {_MOST_REPEATS:,}, not {repeat!r}",
                op="profile", at=user_source(),
            )  # fmt: skip
        with instrumentation.asked() as seen:
            self(*args, **kwargs)
        if not seen:
            raise CompileError(
                "the function computes nothing with tensors", op="profile", at=user_source(),
                fix="profile a function whose result depends on its tensors",
            )  # fmt: skip
        compiled, given = seen[-1]
        again = (lambda: self(*args, **kwargs)) if self._is_pure(compiled) else None
        return measure(compiled, given, repeat, again)

    def memory(self, *args: object, **kwargs: object) -> Memory:
        """Measures the memory of a call, which takes effect once.

        Args:
            *args: Arguments of the function.
            **kwargs: Keyword arguments of the function.

        Returns:
            Bytes of the arguments (inputs, parameters, optimizer states) and of what the memory
            plan asks for beside them; their sum is ``peak``. A parameter that the call replaces
            takes no second storage where its kernel can write in place.

        Example:
            >>> bool(ms.jit(lambda x: x + 1).memory(ops.ones((2, 3))).peak >= 48)
            True
        """
        return self.profile(*args, repeat=1, **kwargs).memory

    def _is_pure(self, compiled: CompiledGraph) -> bool:
        """Whether calling the function again changes nothing."""
        entries = (e for kept in self.entries.values() for e in kept if e.compiled is compiled)
        entry = next(entries, None)
        if entry is None:
            return False
        captured = entry.captured
        return not (
            captured.written or captured.attributes or captured.effects or captured.random_blocks
        )

    def fused_graph(self, profile: Profile | None = None) -> tuple[Graph, list[Kernel]]:
        """Returns the newest compiled graph after its passes, and the nodes of every kernel.

        Args:
            profile: Gives the kernels their times.
        """
        for entries in reversed(self.entries.values()):
            compiled = entries[0].optimized()
            if compiled is not None:
                return kernels_of(compiled, profile)
        return self.graph(), []

    def kernels(self) -> tuple[str, ...]:
        """Returns the kernel names of the newest compiled call."""
        for entries in reversed(self.entries.values()):
            compiled = entries[0].optimized()
            return compiled.kernels if compiled is not None else ()
        return ()

    @property
    def compile_count(self) -> int:
        """How often the function was captured so far."""
        return len(self.history)

    def explain(self, kernels: bool = False) -> Explanation:
        """Returns for every capture why it happened, its time by phase, and what came out.

        Then what the newest one depends on besides the types of its arguments, and how many were
        forgotten to make room. Of a function that runs with graph breaks: its compiled segments,
        what Python runs, why, and what to change, and the Cells that are compiled on their own.

        Args:
            kernels: Also say of every kernel of the newest compiled call which entry of the
                backend's table took it, what the entries before that said, and its plan.
        """
        name = getattr(self.fn, "__qualname__", "function")
        lines = [f"{name}: compiled {len(self.history)} time(s)"]
        for i, record in enumerate(self.history, 1):
            lines += explain_record(i, record)
        refused = {**self.refused, **self.raising}
        lines += graph_breaks.describe_breaks(refused, self.churn.waited)
        for program in graph_breaks.programs(self):  # pyright: ignore[reportArgumentType]
            lines += describe(program)
        lines += graph_breaks.describe_inside(self)  # pyright: ignore[reportArgumentType]
        lines += described_cache(self)
        lines += [choice.text() for choice in (self.kernel_choices() if kernels else ())]
        return Explanation("\n".join(lines), tuple(self.history))

    def breaks(self) -> list[Break]:
        """Returns what Python runs between compiled segments, and why; nothing of one graph."""
        found = graph_breaks.programs(self)  # pyright: ignore[reportArgumentType]
        return [b for program in found for b in breaks(program)]

    def kernel_choices(self) -> list[Choice]:
        """Returns which entry of the backend's table took each kernel of the newest call.

        What :meth:`explain` says with ``kernels=True``, as data.
        """
        programs = graph_breaks.programs(self)  # pyright: ignore[reportArgumentType]
        segments = [s for program in programs for s in used_segments(program)]
        found = [choice for s in segments for choice in s.kernel_choices()]
        newest = next(reversed(self.entries.values()), None)
        compiled = None if newest is None else newest[0].optimized()
        if compiled is not None:
            found += compiled.kernel_choices()
        return found

    def viewer(self, *args: object, compile_it: bool = True) -> Viewer:
        """Makes the viewer of a call: what `tvmgraph show` writes, for a notebook or a file.

        Args:
            *args: Arguments of the function.
            compile_it: Whether to compile and time it too, to show the kernels.

        Example:
            >>> double = ms.jit(lambda x: x * 2.0)
            >>> double.viewer(Tensor([1.0])).save("double.html")  # doctest: +SKIP
        """
        name = getattr(self.fn, "__qualname__", "function")
        if not compile_it:
            graph = self.graph(*args) if args else recorded(self.fn)
            return Viewer([model_of(graph, title="Cell scope")], name)
        profile, graph = self.profile(*args), self.graph()
        after, kernels = self.fused_graph(profile)
        models = [model_of(graph, title="Cell scope")]
        if kernels:
            choices = {choice.function: choice.text() for choice in self.kernel_choices()}
            models.append(model_of(after, kernels, "kernel", choices))
        return Viewer(models, name)

    def draw(self, *args: object, **kwargs: object) -> Drawing:
        """Draws the captured graph beside the kernels it became, for a notebook.

        A function that runs with graph breaks is drawn as its source, with the segments in colours.

        Args:
            *args: Arguments to compile for; without any the newest compiled call is drawn.
            **kwargs: Keyword arguments of the function.
        """
        programs = graph_breaks.programs(self)  # pyright: ignore[reportArgumentType]
        if not programs and (args or kwargs):
            self.compile(*args, **kwargs)
        if programs and not self.entries:
            return Drawing([("segments", picture(program)) for program in programs])
        after, kernels = self.fused_graph()
        return draw_pair(self.graph(), after, kernels)
