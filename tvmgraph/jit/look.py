"""Looking inside a jitted function: profile, picture, and which kernel computes what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvmgraph.capture import tree
from tvmgraph.graph import Graph
from tvmgraph.jit import observe
from tvmgraph.jit.observe import Profile
from tvmgraph.view import Drawing, Kernel, draw_pair

if TYPE_CHECKING:
    from tvmgraph.jit.compiled import CompiledGraph


class Inspectable:
    """What :class:`~tvmgraph.jit.JitFunction` offers to people who look at it."""

    entries: dict[Any, list[Any]]

    def compile(self, *args: Any, **kwargs: Any) -> Any:
        """Compiles for these arguments without running."""
        raise NotImplementedError

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """Returns the graph of a call."""
        raise NotImplementedError

    def profile(self, *args: Any, repeat: int = 10, **kwargs: Any) -> Profile:
        """Times every kernel of a call with these arguments.

        Args:
            *args: Arguments of the function.
            repeat: How often the call is repeated; the shortest time counts.
            **kwargs: Keyword arguments of the function.
        """
        self.compile(*args, **kwargs)
        entry = next(iter(reversed(self.entries.values())))[0]
        with observe.collecting(repeat) as found:
            entry.run(list(tree.tensors((args, kwargs))), (args, kwargs))
        return found[-1]

    def fused_graph(self, profile: Profile | None = None) -> tuple[Graph, list[Kernel]]:
        """Returns the newest compiled graph after its passes, and the nodes of every kernel.

        Args:
            profile: Gives the kernels their times.
        """
        for entries in reversed(self.entries.values()):
            compiled: CompiledGraph | None = entries[0].compiled
            if compiled is not None:
                return observe.kernels_of(compiled, profile)
        return self.graph(), []

    def draw(self, *args: Any, **kwargs: Any) -> Drawing:
        """Draws the captured graph beside the kernels it became, for a notebook.

        Args:
            *args: Arguments to compile for; without any the newest compiled call is drawn.
            **kwargs: Keyword arguments of the function.
        """
        if args or kwargs:
            self.compile(*args, **kwargs)
        after, kernels = self.fused_graph()
        return draw_pair(self.graph(), after, kernels)
