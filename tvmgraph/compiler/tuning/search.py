"""Search, the top level: the decisions behind every kernel are tried on the machine itself.

Kernels are shaped by a model of the processor; here a handful of other register tiles, block sizes
and ways to divide the work are built and timed, one decision after the other. A kernel that is not
measurably faster than the model's is not used, so ``O3`` is never slower than ``O2``. What was
found is kept, see :mod:`tvmgraph.compiler.tuning.database`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tvm import ir, tirx

from tvmgraph.backend.cpu.codegen.pipeline import generate
from tvmgraph.backend.cpu.schedule import schedule_cpu
from tvmgraph.backend.loop_ir.choice import Decision, deciding
from tvmgraph.compiler.tuning import database as tuning
from tvmgraph.compiler.tuning.database import Record
from tvmgraph.debug.announce import announced, kernels_of
from tvmgraph.machine.processor import CpuModel

#: A kernel must take less than this share of the model's time to be preferred to it.
_GAIN = 0.96
#: Kernels that take fewer seconds are not worth a search: the call costs as much.
_SHORTEST = 5e-6
#: Seconds of one sample, samples per trial, and interleaved samples of the final comparison.
_SAMPLE, _SAMPLES, _ROUNDS = 1e-3, 3, 9
#: Kernels with more bytes of arguments than this are not measured.
_MOST_BYTES = 2 << 30

Choices = Mapping[str, object]


def schedule_by_search(
    mod: tvm.IRModule, model: CpuModel, level: int, target: tvm.target.Target, trials: int
) -> tvm.IRModule:
    """Schedules a module as :func:`schedule_cpu` does, with the best decisions known.

    Args:
        mod: A fused module.
        model: The processor.
        level: The level of :func:`schedule_cpu`.
        target: The TVM target; it must be this machine for a search.
        trials: Kernels to build and time per kernel; 0 uses what is known and tries nothing.
    """
    return search_kernels(mod, lambda v, f: KernelSearch(v, f, model, level, target), trials)


def search_kernels(
    mod: tvm.IRModule, make: Callable[[ir.GlobalVar, tirx.PrimFunc], KernelSearch], trials: int
) -> tvm.IRModule:
    """Schedules a module with the best decisions known; ``make`` begins the search for a kernel.

    Args:
        mod: A module of loop nests that are not scheduled.
        make: Begins the search for a kernel, given its name and loops.
        trials: How many kernels may be built and timed for each; 0 takes what the database has.
    """
    functions = dict(mod.functions.items())
    loops = {v: f for v, f in functions.items() if isinstance(f, tirx.PrimFunc)}
    searches = [make(v, f) for v, f in loops.items()]
    unknown = [s for s in searches if s.record is None] if trials > 0 else []
    for search in _watched(unknown):
        search.run(trials)
    for search in searches:
        chosen = {} if search.record is None else search.record.decisions
        functions[search.var] = search.schedule(chosen)[0]
    return tvm.IRModule(functions, attrs=mod.attrs)


def _watched(searches: list[KernelSearch]) -> Iterator[KernelSearch]:
    """The searches, with a progress bar on the terminal."""
    if not searches:
        return
    columns = (
        TextColumn("search"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=len(searches))
        for search in searches:
            progress.update(bar, description=search.var.name_hint[:40])
            yield search
            progress.advance(bar)


class KernelSearch:
    """The search for one kernel."""

    #: Calls of the kernel that one run of a trial makes.
    calls = 1

    def __init__(
        self, var: ir.GlobalVar, func: tirx.PrimFunc, model: Any, level: int,
        target: tvm.target.Target,
    ) -> None:  # fmt: skip
        self.var = var
        self.func = func
        self.model = model
        self.level = level
        self.target = target
        loops = func.without_attr("global_symbol") if "global_symbol" in func.attrs else func
        number = tvm_ffi.structural_hash(loops)
        self.key = tuning.key_of(int(number), self.machine, self.workers)
        self.record = tuning.find(self.key)
        self.trials = 0

    @property
    def machine(self) -> str:
        """What records are valid for: the target, with what else decides about kernels."""
        return str(self.target)

    @property
    def workers(self) -> int:
        """What the machine divides a kernel among."""
        return self.model.threads

    def schedule(self, given: Choices) -> tuple[tirx.PrimFunc, dict[str, Decision]]:
        """Returns the kernel under some decisions, and all decisions behind it.

        Args:
            given: Decisions that are made already; the others are made as usual.
        """
        with deciding(given) as decisions:
            kernel = schedule_cpu(tvm.IRModule({self.var: self.func}), self.model, self.level)
        return kernel[self.var], decisions.found

    def run(self, trials: int) -> None:
        """Tries other decisions, and keeps what was found.

        Args:
            trials: How many schedules are built and timed at the most.
        """
        arguments = self._arguments()
        kernel, decisions = self.schedule({})
        if arguments is None or not any(len(d.options) > 1 for d in decisions.values()):
            return
        default = self._build(kernel, arguments)
        shortest = _seconds(default)
        if shortest < _SHORTEST * self.calls:
            self._keep({}, shortest, shortest)
            return
        best, chosen = self._descend(decisions, shortest, arguments, trials)
        if chosen:
            again = self._build(self.schedule(chosen)[0], arguments)
            shortest, best = _compare(default, again)
            if best > shortest * _GAIN:
                chosen, best = {}, shortest
        self._keep(chosen, shortest, best)

    def _descend(
        self, decisions: dict[str, Decision], best: float, arguments: Sequence[object], trials: int
    ) -> tuple[float, dict[str, object]]:
        """Changes one decision after the other, and stays with what is faster."""
        chosen: dict[str, object] = {}
        for name, decision in decisions.items():
            for option in decision.options:
                if option == decision.taken or self.trials >= trials:
                    continue
                given = {**chosen, name: option}
                seconds = _seconds(self._build(self.schedule(given)[0], arguments), best)
                if seconds < best * _GAIN:
                    best, chosen = seconds, given
        return best, chosen

    def _arguments(self) -> list[Any] | None:
        return arguments_of(self.func, tvm.cpu())

    def _build(self, kernel: tirx.PrimFunc, arguments: Sequence[object]) -> Callable[[], object]:
        self.trials += 1
        named = kernel.with_attr("global_symbol", "kernel")
        with announced(kernels_of([self.var.name_hint])):
            run = generate(tvm.IRModule({"kernel": named}), self.target)["kernel"]
        return lambda: run(*arguments)

    def _keep(self, chosen: Choices, default: float, best: float) -> None:
        name, scale = self.var.name_hint, 1e6 / self.calls
        self.record = Record(name, self.workers, chosen, default * scale, best * scale, self.trials)
        tuning.keep(self.key, self.record)


def arguments_of(func: tirx.PrimFunc, device: object) -> list[Any] | None:
    """Arrays of random numbers for a kernel, or None when it cannot be called alone.

    Args:
        func: A scheduled kernel.
        device: TVM's device.
    """
    random = np.random.default_rng(0)
    found, total = [], 0
    for param in func.params:
        shape = getattr(param, "shape", None)
        if shape is None or not all(isinstance(extent, tirx.IntImm) for extent in shape):
            return None
        extents, dtype = [int(extent) for extent in shape], str(param.dtype)
        tensor = tvm.runtime.empty(extents, dtype, device)
        total += tensor.numpy().nbytes
        if total > _MOST_BYTES:
            return None
        if dtype.startswith("float"):  # numbers far from overflow; indices stay 0
            tensor.copyfrom(random.uniform(0.5, 1, extents).astype(dtype))
        else:
            tensor.copyfrom(np.zeros(extents, tensor.numpy().dtype))
        found.append(tensor)
    return found


def _seconds(run: Callable[[], object], limit: float = float("inf")) -> float:
    """Seconds of a call, the best of a few samples; one when it is far above ``limit``."""
    run()
    once = _sample(run, 1)
    if once > 3 * limit:
        return once
    calls = max(1, int(_SAMPLE / max(once, 1e-7)))
    return min(_sample(run, calls) for _ in range(_SAMPLES))


def _sample(run: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def _compare(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """Median seconds of two kernels, timed in turns."""
    calls = max(1, int(_SAMPLE / max(_seconds(first), 1e-7)))
    pairs = [(_sample(first, calls), _sample(second, calls)) for _ in range(_ROUNDS)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)
