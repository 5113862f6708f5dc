"""Machine code for CUDA devices, which need not be in this machine, and host code around it.

The search of ``O3`` on a GPU: tiles and divisions of the work are built and timed there.

Like :mod:`tvmgraph.compiler.tuning.search`, with kernels that NVIDIA's compiler makes, and arrays
that lie on the device. A run of a trial launches its kernel several times before it waits, so that
neither the launch nor the waiting counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import tvm
from tvm import relax, tirx

from tvmgraph.backend.cpu.codegen import parallel
from tvmgraph.backend.cuda import codegen as device_code
from tvmgraph.backend.cuda import nvcc
from tvmgraph.backend.cuda.schedule import schedule_for_cuda
from tvmgraph.backend.loop_ir.choice import Decision, deciding
from tvmgraph.backend.target import GpuModel, gpu_model, make_target
from tvmgraph.compiler.tuning.search import Choices, KernelSearch, arguments_of, search_kernels
from tvmgraph.config.options import CompileOptions
from tvmgraph.debug import Phases
from tvmgraph.errors import DeviceError
from tvmgraph.runtime import cuda
from tvmgraph.runtime.device_image import DeviceImage, add_images

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
        from tvmgraph.compiler.cuda.build import schedule_by_search_on_gpu

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


# ---- searching ----------------------------------------------------------------------------------


def schedule_by_search_on_gpu(
    mod: tvm.IRModule, model: GpuModel, target: tvm.target.Target, trials: int
) -> tvm.IRModule:
    """Schedules a module as :func:`schedule_for_cuda` does, with the best decisions known.

    Args:
        mod: A fused module.
        model: The device.
        target: TVM's target.
        trials: Kernels to build and time per kernel. Nothing is tried where no such device is.
    """
    if trials and not _is_here(model):
        trials = 0
    return search_kernels(mod, lambda v, f: _DeviceSearch(v, f, model, 0, target), trials)


def _is_here(model: GpuModel) -> bool:
    try:
        cuda.check_arch(model.arch, cuda.device(0))
    except DeviceError:
        return False
    return True


class _DeviceSearch(KernelSearch):
    """The search for one kernel of a GPU."""

    calls = 20

    @property
    def machine(self) -> str:
        """The target; products of rounded factors are other kernels."""
        return f"{self.target} tf32" if self.model.tf32 else str(self.target)

    @property
    def workers(self) -> int:
        """Multiprocessors."""
        return self.model.sms

    def schedule(self, given: Choices) -> tuple[tirx.PrimFunc, dict[str, Decision]]:
        """Returns the kernel under some decisions, and all decisions behind it."""
        with deciding(given) as decisions:
            alone = tvm.IRModule({self.var: self.func})
            kernel = schedule_for_cuda(alone, self.model, self.target)
        return kernel[self.var], decisions.found

    def _arguments(self) -> list[Any] | None:
        return arguments_of(self.func, tvm.cuda(0))

    def _build(self, kernel: tirx.PrimFunc, arguments: Sequence[object]) -> Callable[..., None]:
        self.trials += 1
        named = tvm.IRModule({"kernel": kernel.with_attr("global_symbol", "kernel")})
        launchers, device = device_code.split(named, self.target)
        source = device_code.generate_source(device, self.target)
        library = device_code.generate_host(launchers, self.target)
        add_images(library, nvcc.compile_all([source], (self.model.arch,), 1))
        launch, gpu = library["kernel"], tvm.cuda(0)

        def run() -> None:
            for _ in range(self.calls):
                launch(*arguments)
            gpu.sync()

        return run
