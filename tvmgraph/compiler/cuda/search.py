"""The search of ``O3`` on a GPU: tiles and divisions of the work are built and timed there.

Like :mod:`tvmgraph.compiler.tuning.search`, with kernels that NVIDIA's compiler makes, and arrays
that lie on the device. A run of a trial launches its kernel several times before it waits, so that
neither the launch nor the waiting counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm import tirx

from tvmgraph.backend.cuda import codegen as device_code
from tvmgraph.backend.cuda import nvcc
from tvmgraph.backend.cuda.schedule import schedule_for_cuda
from tvmgraph.backend.loop_ir.choice import Decision, deciding
from tvmgraph.backend.target import GpuModel
from tvmgraph.compiler.tuning.search import Choices, KernelSearch, arguments_of, search_kernels
from tvmgraph.errors import DeviceError
from tvmgraph.runtime import cuda
from tvmgraph.runtime.device_image import add_images


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
