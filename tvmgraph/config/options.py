"""CompileOptions: everything that decides what a graph is compiled to, beside the graph."""

from __future__ import annotations

from dataclasses import dataclass, field

from tvmgraph.config.graph_kernel import GraphKernel, at_level
from tvmgraph.machine.targets import backend_name
from tvmgraph.passes.table import LEVELS, Level

#: Workers that deterministic kernels are shaped for: partial sums are as many, whoever adds them.
_DETERMINISTIC_THREADS = 8


@dataclass(frozen=True)
class CompileOptions:
    """How a graph is compiled; part of the key of its executable.

    Attributes:
        level: ``"O0"`` to ``"O3"``, see :data:`tvmgraph.passes.table.LEVELS`.
        target: A name from ``configs/targets.toml`` or ``"host"``.
        native: Whether host code is machine code (``True``), bytecode (``False``) or whatever
            suits the number of kernels (``None``).
        kernels: Graph-kernel settings, ``None`` for those of the level.
        trials: Kernels that the search of ``O3`` may build and time per kernel; with 0 it uses what
            was found before.
        fast_math: Whether a GPU's arithmetic may be inexact (``--use_fast_math``).
        device_id: Which GPU runs the code; the code does not depend on it.
        tf32: Whether a GPU's products of float32 may round their factors to tf32.
        replay: Whether a GPU replays the calls as a CUDA graph; the code does not depend on it.
        library: Whether a GPU's products go to cuBLASLt where that was measured to be faster.
        deterministic: Whether a processor's kernels are the same for any number of threads, and
            none is chosen by its time.
    """

    level: str = "O2"
    target: str = "host"
    native: bool | None = None
    kernels: GraphKernel | None = None
    trials: int = 0
    fast_math: bool = False
    device_id: int = field(default=0, repr=False)
    tf32: bool = False
    replay: bool = field(default=False, repr=False)
    library: bool = False
    deterministic: bool = False

    @property
    def backend(self) -> str:
        """Which rows of the pass table count, ``"cpu"`` or ``"cuda"``."""
        return backend_name(self.target)

    @property
    def settings(self) -> GraphKernel:
        """The graph-kernel settings in force."""
        return self.kernels or at_level(int(self.level[1]))

    @property
    def meaning(self) -> Level:
        """What the level means beside its passes."""
        return LEVELS[self.level]

    @property
    def search(self) -> bool:
        """Whether kernels are chosen by timing them."""
        return self.meaning.search and not self.deterministic

    @property
    def planned_threads(self) -> int | None:
        """Workers that kernels are shaped for where that is not the number of this process."""
        return _DETERMINISTIC_THREADS if self.deterministic else None

    @property
    def facts(self) -> frozenset[str]:
        """What rows of the pass table ask about, see :attr:`.table.Pass.when`."""
        facts = {
            "library": self.library,
            "timed": self.search and self.backend == "cpu",
            "fast_rounding": self.settings.fast_rounding,
        }
        return frozenset(name for name, holds in facts.items() if holds)
