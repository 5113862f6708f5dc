"""From a lowered module to an executable, for every backend: the stages of the pass table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import tvm
from tvm import relax

from tvmgraph.backend.base import backend_of
from tvmgraph.backend.cpu.codegen import parallel
from tvmgraph.backend.passes import run_passes, sequence
from tvmgraph.backend.table import Choice, recording_choices
from tvmgraph.config import context
from tvmgraph.config.options import CompileOptions
from tvmgraph.debug import Phases
from tvmgraph.machine.threads import configure_threads
from tvmgraph.passes.table import Stage, chosen, chosen_for, function_of
from tvmgraph.runtime.device_image import DeviceImage

#: Interpreting the bytecode of a call costs about as much as two kernels' launch per ten kernels;
#: graphs with more kernels than this are worth the longer compile of native host code.
NATIVE_FROM = 8


@dataclass(frozen=True)
class Request:
    """What is wanted of a build beside its options.

    Attributes:
        objects: A folder for object files, which are written instead of machine code in memory.
        checked: Whether the compiled functions check their arguments at every call, for callers
            that do not.
        singly: Whether one kernel after the other is translated, see
            :func:`.parallel.write_objects`.
        portable: Whether object files are wanted only if they are of use in any process; then
            kernels are taken from what other graphs left on disk.
        host: The row of the processor beside a GPU, by default this machine's.
    """

    objects: Path | None = None
    checked: bool = False
    singly: bool = False
    portable: bool = True
    host: str = ""


@dataclass(frozen=True)
class Build:
    """What the compiler made.

    Attributes:
        executable: TVM's executable: the program and the host's code.
        kernels: Names of the functions that the program calls.
        native: Whether the program is machine code.
        images: A GPU's code.
    """

    executable: relax.VMExecutable
    kernels: tuple[str, ...]
    native: bool
    images: tuple[DeviceImage, ...] = ()


class Builder(Protocol):
    """What a backend does with fused loop nests.

    Attributes:
        target: TVM's target.
    """

    target: tvm.target.Target

    def schedule(self, mod: tvm.IRModule) -> tvm.IRModule:
        """Makes kernels of loop nests, with the best decisions known where the level searches.

        Args:
            mod: The module after fusion, with loop nests for kernels.
        """
        ...

    def translate(
        self, program: parallel.Program, phases: Phases
    ) -> tuple[relax.VMExecutable, tuple[DeviceImage, ...]]:
        """Makes machine code: TVM's executable, and code for a device.

        Args:
            program: The module in codegen units.
            phases: Times the steps.
        """
        ...


def build(
    mod: tvm.IRModule,
    options: CompileOptions,
    phases: Phases | None = None,
    request: Request = Request(),
) -> Build:
    """Compiles a module.

    Args:
        mod: The module, as lowered.
        options: How. Several CUDA targets may be named with commas between them: kernels are
            scheduled for the first one, and machine code is made for all.
        phases: Who watches.
        request: What is wanted.
    """
    phases = phases or Phases("module", quiet=True)
    threads = configure_threads(context.thread_num or None)
    builder = _builder(options, threads, request)
    phases.text(2, "Relax", "py", mod.script)
    with _context(builder, options):
        mod, names = _scheduled(mod, options, builder, phases)
        mod = run_passes(mod, chosen(Stage.LOOPS, options), options)
        phases.text(3, "TIR scheduled", "py", mod.script)
        native = len(names) > NATIVE_FROM if options.native is None else options.native
        with phases.time("codegen"):
            calls = sequence(chosen_for(Stage.CALLS, options.backend, _facts(request)))
            program = parallel.prepare(mod, builder.target, calls, native)
        executable, images = builder.translate(program, phases)
    return Build(executable, names, native, images)


def choices(mod: tvm.IRModule, options: CompileOptions) -> list[Choice]:
    """Which kernel takes each loop nest of a module, without making machine code.

    Args:
        mod: The module, as lowered.
        options: How it would be compiled; what a search found is used, nothing is searched.
    """
    options = replace(options, trials=0)
    builder = _builder(options, configure_threads(context.thread_num or None), Request())
    with _context(builder, options), recording_choices() as found:
        _scheduled(mod, options, builder, Phases("module", quiet=True))
    return found


@contextlib.contextmanager
def _context(builder: Builder, options: CompileOptions) -> Iterator[None]:
    level = 0 if options.level == "O0" else 3
    with builder.target, tvm.transform.PassContext(opt_level=level):
        yield


def _scheduled(
    mod: tvm.IRModule, options: CompileOptions, builder: Builder, phases: Phases
) -> tuple[tvm.IRModule, tuple[str, ...]]:
    """Fuses operators and makes kernels of them; the module, and the names of its kernels."""
    with phases.time("fuse"):
        mod = run_passes(mod, chosen(Stage.RELAX, options), options)
    names = count_kernels(mod)
    phases.text(2, "Relax fused", "py", mod.script)
    recorded = recording_choices() if phases.wanted else contextlib.nullcontext(())
    with phases.time("search" if options.search else "schedule"), recorded as found:
        mod = builder.schedule(mod)
    phases.text(3, "kernels chosen", "txt", lambda: "\n".join(c.text() for c in found))
    return mod, names


def _builder(options: CompileOptions, threads: int, request: Request) -> Builder:
    """A backend's; what a processor's does not need is not imported for one."""
    return function_of(backend_of(options.target).builder)(options, threads, request)


def _facts(request: Request) -> tuple[str, ...]:
    return ("checked",) if request.checked else ()


def count_kernels(mod: tvm.IRModule) -> tuple[str, ...]:
    """Returns the names of the kernels a module holds.

    Args:
        mod: A module.
    """
    return tuple(
        gv.name_hint for gv, f in mod.functions.items() if isinstance(f, tvm.tirx.PrimFunc)
    )
