"""Machine code for CUDA devices, which need not be in this machine, and host code around it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import tvm
from tvm import relax

from tvmgraph.backend.cpu.codegen import parallel
from tvmgraph.backend.cuda import codegen as device_code
from tvmgraph.backend.cuda import nvcc
from tvmgraph.backend.cuda.schedule import schedule_for_cuda
from tvmgraph.backend.target import gpu_model, make_target
from tvmgraph.config.options import CompileOptions
from tvmgraph.debug import Phases
from tvmgraph.runtime.device_image import DeviceImage

if TYPE_CHECKING:
    from tvmgraph.compiler.pipeline import Request


class CudaBuilder:
    """Makes kernels and machine code for CUDA devices; a :class:`.pipeline.Builder`.

    Args:
        options: How.
        threads: Workers of the compiler.
        request: What is wanted.
    """

    def __init__(self, options: CompileOptions, threads: int, request: Request) -> None:
        first, *self._others = options.target.split(",")
        self.target = make_target(first, 1, request.host)
        self._model = replace(gpu_model(first), tf32=options.tf32)
        self._options, self._threads, self._request = options, threads, request

    def schedule(self, mod: tvm.IRModule) -> tvm.IRModule:
        """Makes kernels of loop nests.

        Args:
            mod: The module after fusion, with loop nests for kernels.
        """
        if not self._options.search:
            return schedule_for_cuda(mod, self._model, self.target)
        from tvmgraph.compiler.cuda.search import schedule_by_search_on_gpu

        return schedule_by_search_on_gpu(mod, self._model, self.target, self._options.trials)

    def translate(
        self, program: parallel.Program, phases: Phases
    ) -> tuple[relax.VMExecutable, tuple[DeviceImage, ...]]:
        """Makes machine code: kernels by NVIDIA's compiler, what launches them by LLVM.

        Args:
            program: The module in codegen units.
            phases: Times the steps.
        """
        with phases.time("codegen"):
            launchers, device = device_code.split(program.kernels, self.target)
            sources = self._sources(device)
        phases.text(3, "CUDA", "cu", lambda: "\n".join(s.text for s in sources))
        with phases.time("nvcc"):
            devices = (self._model.arch, *self._others)
            images = nvcc.compile_all(sources, devices, self._threads, self._options.fast_math)
        with phases.time("host code"):
            return self._linked(program, launchers), images

    def _sources(self, device: tvm.IRModule) -> list[device_code.DeviceSource]:
        """Writes the kernels as about as many translation units as compilers run at once."""
        if not device.functions:
            return []
        units = parallel.deal(device, self._threads)
        return [device_code.generate_source(unit, self.target) for unit in units]

    def _linked(self, program: parallel.Program, host: tvm.runtime.Module) -> relax.VMExecutable:
        libraries = [device_code.generate_host(host, self.target)] if host.functions else []
        executable = parallel.join(program, self.target, libraries)
        folder = self._request.objects
        if folder is not None and program.portable:
            for number, library in enumerate(libraries):
                parallel.write_object(library, folder / f"part{number}.o")
            parallel.write_program(executable, self.target.host, folder)
        return executable
