"""Machine code for a processor: kernels from its model, then LLVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tvm
from tvm import relax

from tvmgraph.backend.cpu.backend import model_of
from tvmgraph.backend.cpu.codegen import parallel
from tvmgraph.backend.cpu.codegen.sources import show_code
from tvmgraph.backend.cpu.schedule import schedule_cpu
from tvmgraph.backend.target import make_target
from tvmgraph.compiler.cache.objects import KernelObjects
from tvmgraph.config.options import CompileOptions
from tvmgraph.debug import Phases

if TYPE_CHECKING:
    from tvmgraph.compiler.pipeline import Request


class CpuBuilder:
    """Makes kernels and machine code for a processor; a :class:`.pipeline.Builder`.

    Args:
        options: How.
        threads: Workers, of the compiler and of the kernels.
        request: What is wanted.
    """

    def __init__(self, options: CompileOptions, threads: int, request: Request) -> None:
        self.target = make_target(options.target, options.meaning.llvm_opt)
        self._options, self._threads, self._request = options, threads, request
        self._model = model_of(options)

    def schedule(self, mod: tvm.IRModule) -> tvm.IRModule:
        """Makes kernels of loop nests.

        Args:
            mod: The module after fusion, with loop nests for kernels.
        """
        options, schedule = self._options, self._options.meaning.schedule
        if not options.search:
            return schedule_cpu(mod, self._model, schedule)
        from tvmgraph.compiler.tuning.search import schedule_by_search

        return schedule_by_search(mod, self._model, schedule, self.target, options.trials)

    def translate(
        self, program: parallel.Program, phases: Phases
    ) -> tuple[relax.VMExecutable, tuple[()]]:
        """Makes machine code, in object files or in memory.

        Args:
            program: The module in codegen units.
            phases: Times the steps.
        """
        request = self._request
        with phases.time("codegen"):
            if request.objects is not None and (program.portable or not request.portable):
                cache = KernelObjects(str(self.target)) if request.portable else None
                made = parallel.write_objects(
                    program, self.target, self._threads, request.objects, request.singly, cache
                )
                phases.reused = cache.taken if cache is not None else 0
            else:
                made = parallel.translate(program, self.target, self._threads, request.checked)
        show_code(made, phases)
        return made, ()
