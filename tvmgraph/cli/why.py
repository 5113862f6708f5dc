"""``tvmgraph why``: what a function's time goes to, and what to change, in order of gain."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from tvmgraph.backend.table import Choice
from tvmgraph.cli.explain import called
from tvmgraph.cli.guard import users_code
from tvmgraph.cli.model_argument import find_config
from tvmgraph.debug import recorder
from tvmgraph.debug.profile import KernelTime, Peaks
from tvmgraph.debug.recorder import Recorder
from tvmgraph.debug.report import rates, shortened
from tvmgraph.jit import JitFunction
from tvmgraph.jit.function import CompileRecord
from tvmgraph.jit.regions.report import Break
from tvmgraph.profiler.summary import Summary

_REPEAT = 20
_WORTH = 0.05  # of a call: less is not advised about
_FALLBACK = "loops"  # the entry of the table that takes what no other recognised
_PARTS = ("rows_of_unknown_extent", "unfused_prologue", "unfused_epilogue", "unfused_stages")


class Measured(NamedTuple):
    """One call of a compiled function.

    Attributes:
        seconds: Its wall time.
        kernels: Its kernels.
        peaks: What the machine can do; ``None`` where nothing was compiled.
    """

    seconds: float
    kernels: tuple[KernelTime, ...]
    peaks: Peaks | None

    @property
    def outside(self) -> float:
        """Seconds that no kernel runs."""
        return max(0.0, self.seconds - sum(k.seconds for k in self.kernels))


@dataclass(frozen=True)
class Advice:
    """Something to change.

    Attributes:
        gain_ms: What it gains at most, in milliseconds.
        do: What to change.
        because: Why.
        per: What gains that: ``"call"`` or ``"process"``.
    """

    gain_ms: float
    do: str
    because: str
    per: str


@dataclass(frozen=True)
class KernelShare:
    """What one kernel takes of a call.

    Attributes:
        name: Its name.
        us: Its time in one call, in microseconds.
        share: Of the time of the call.
        calls: How often it runs in one.
        gflops: Rate of its arithmetic; ``None`` where that is not known.
        gbps: Gigabytes that it reads and writes in a second.
        of_peak: Its rate beside what the machine can do.
        of_memory: Its traffic beside what memory can do.
        taken_by: The entry of the table of kernels that made it.
        why: Why that one.
        plan: Its tiles.
        computes: The operators and lines that it computes.
    """

    name: str
    us: float
    share: float
    calls: int
    gflops: float | None
    gbps: float
    of_peak: str
    of_memory: str
    taken_by: str
    why: str
    plan: str
    computes: str


@dataclass(frozen=True)
class CallTime:
    """Microseconds of one call, in all and outside of kernels, and what the machine can do."""

    us: float
    outside_kernels_us: float
    machine: str


@dataclass(frozen=True)
class Findings:
    """What a function's time goes to.

    Attributes:
        function: Its name.
        compiles: Every compile, and why it was needed.
        breaks: What Python runs between compiled segments.
        call: The time of a call.
        kernels: Where it goes.
        calls: How many calls of a process the advice is for.
        advice: What to change, the largest gain first.
    """

    function: str
    compiles: tuple[CompileRecord, ...]
    breaks: tuple[Break, ...]
    call: CallTime
    kernels: tuple[KernelShare, ...]
    calls: int
    advice: tuple[Advice, ...]


def examine(target: str, inputs: list[str], config: str, calls: int) -> Findings:
    """Calls a function, times it, and says what would make it faster.

    Args:
        target: ``file.py:name``; the name is a function or a Cell.
        inputs: As for :func:`tvmgraph.cli.explain.called`.
        config: A preset, or ``file.toml:preset``.
        calls: What happens once is compared with what every call gains over this many calls.

    Raises:
        NotFoundError: if the file, or the name in it, does not exist.
        ArgumentError: if the target or an input cannot be read.
        CompileError: if the function computes nothing.
    """
    function, args = called(target, inputs, find_config(config) if config else None)
    with users_code(target.rpartition(":")[0]):
        found = _with_breaks(function, args) if function.breaks() else _of_one_graph(function, args)
    choices = {c.function: c for c in function.kernel_choices()}
    per_call = [
        *_of_breaks(function, found), *_of_kernels(found, choices), *_of_the_host(function, found),
    ]  # fmt: skip
    advice = [replace(item, gain_ms=item.gain_ms * calls) for item in per_call]
    advice += _of_compiles(function)
    return Findings(
        function=target.rpartition(":")[2],
        compiles=tuple(function.history),
        breaks=tuple(function.breaks()),
        call=CallTime(found.seconds * 1e6, found.outside * 1e6, str(found.peaks)),
        kernels=tuple(_kernel(k, found, choices.get(k.name)) for k in found.kernels),
        calls=calls,
        advice=tuple(sorted(_merged(advice), key=lambda item: -item.gain_ms)),
    )


def _of_one_graph(function: JitFunction, args: Sequence[object]) -> Measured:
    profile = function.profile(*args, repeat=_REPEAT)
    return Measured(profile.seconds, profile.kernels, profile.peaks)


def _with_breaks(function: JitFunction, args: Sequence[object]) -> Measured:
    """Kernels of all compiled segments, by a profiler that listens; the time without it."""
    times = []
    for _ in range(_REPEAT):
        start = time.perf_counter()
        function(*args)
        times.append(time.perf_counter() - start)
    heard = Recorder()
    recorder.switch_on(heard)
    try:
        function(*args)
    finally:
        recorder.switch_off(heard)
    summary = Summary(heard)
    return Measured(min(times), summary.kernels, summary.peaks)


# ---- advice: a gain in milliseconds per call (once, for compiles), what to do, and why ----------


def _advice(seconds: float, do: str, because: str, per: str) -> Advice:
    return Advice(seconds * 1e3, do, because, per)


def _merged(advice: Sequence[Advice]) -> list[Advice]:
    """Adds up what one change would gain in several places."""
    found: dict[tuple[str, str], Advice] = {}
    for item in advice:
        known = found.get((item.do, item.per))
        if known is not None:
            because = f"{known.because}; {item.because}"
            item = replace(known, gain_ms=known.gain_ms + item.gain_ms, because=because)
        found[item.do, item.per] = item
    return list(found.values())


def _of_breaks(function: JitFunction, found: Measured) -> list[Advice]:
    """What Python runs; how it shares the time outside of kernels is not known."""
    left = function.breaks()
    if not left or found.outside < _WORTH * found.seconds:
        return []
    lines = ", ".join(dict.fromkeys(b.where for b in left))
    do = "; ".join(dict.fromkeys(b.change for b in left if b.change)) or "see the reasons above"
    because = f"Python runs {len(left)} statement(s) between compiled segments ({lines})"
    return [_advice(found.outside, do, because, per="call")]


def _of_kernels(found: Measured, choices: Mapping[str, Choice]) -> list[Advice]:
    advice = []
    for k in found.kernels:
        if found.peaks is None or k.seconds < _WORTH * found.seconds:
            continue
        half = k.dtype in ("float64", "complex128")
        if half:
            advice.append(_advice(
                k.seconds / 2, f"compute {k.where} in float32",
                f"{k.name} computes in {k.dtype}: twice the bytes, half the lanes", per="call",
            ))  # fmt: skip
        gain = k.seconds - _least(k, found.peaks)
        if half or gain < _WORTH * found.seconds:
            continue
        choice = choices.get(k.name)
        taken = _entry(choice)
        named = f"{k.name} ({taken})" if taken else k.name
        if taken == _FALLBACK and choice is not None:
            do = "write it with operators that a kernel recognises, or as ops.Custom"
            because = f"{k.name} runs as plain loops: no kernel of the table recognised it"
        else:
            do = 'let jit_level="O3" search other tiles for it; more rows per call fill them better'
            because = f"{named}: {gain * 1e6:.1f} us above what the machine's peaks allow"
        advice.append(_advice(gain, do, because, per="call"))
    return advice


def _least(k: KernelTime, peaks: Peaks) -> float:
    """Seconds at the machine's peaks: arithmetic or memory, whichever takes longer."""
    arithmetic = (k.flops or 0.0) / max(peaks.flops(k.dtype) * 1e9, 1.0)
    return max(arithmetic, k.bytes / max(peaks.bandwidth * 1e9, 1.0))


def _of_the_host(function: JitFunction, found: Measured) -> list[Advice]:
    if function.breaks() or found.outside < _WORTH * found.seconds:
        return []
    do = "do more per call: larger batches, or jit the function that calls it in a loop"
    part = found.outside / found.seconds
    because = f"{part:.0%} of a call is around the kernels: arguments, guards, allocation"
    return [_advice(found.outside, do, because, per="call")]


def _of_compiles(function: JitFunction) -> list[Advice]:
    advice = []
    for i, r in enumerate(function.history):
        spent = r.capture_seconds + r.compile_seconds
        if i > 0:
            do = "keep it fixed, or name it as varying at once: jit(dynamic=1), mutable, "
            do += 'Tensor(shape=["batch", ...])'
            because = f"compiled again, because {r.why}"
            advice.append(_advice(spent, do, because, per="process"))
        elif "not kept" in r.disk:
            advice.append(_advice(
                r.compile_seconds, "let executables be kept on disk: `tvmgraph doctor`",
                f"every process compiles it anew ({r.disk})", per="process",
            ))  # fmt: skip
    return advice


# ---- kernels, and the report --------------------------------------------------------------------


def _entry(choice: Choice | None) -> str:
    """The entry that computes: where one only prepares, that of what it hands back."""
    while choice is not None and choice.kernel in _PARTS and choice.nested:
        choice = choice.nested[0]
    return choice.kernel if choice is not None else ""


def _kernel(k: KernelTime, found: Measured, choice: Choice | None) -> KernelShare:
    peak, memory = rates(k, found.peaks)[1::2]
    return KernelShare(
        name=k.name, us=k.seconds * 1e6, share=k.seconds / max(found.seconds, 1e-12),
        calls=k.calls, gflops=k.gflops, gbps=k.gbps, of_peak=peak, of_memory=memory,
        taken_by=_entry(choice), why=choice.why if choice is not None else "",
        plan=choice.plan if choice is not None else "", computes=k.where,
    )  # fmt: skip


def print_findings(found: Findings) -> None:
    """Prints what :func:`examine` found.

    Args:
        found: The findings.
    """
    console = Console(highlight=False, soft_wrap=True)
    call = found.call
    console.print(f"[bold]{found.function}[/]: {call.us:,.1f} us per call, "
                  f"{call.outside_kernels_us:,.1f} of them outside of kernels")  # fmt: skip
    console.print("\n[bold]Compiles[/]")
    for i, r in enumerate(found.compiles, 1):
        spent = (r.capture_seconds + r.compile_seconds) * 1e3
        kept = "an equal graph was there" if r.cached else r.disk
        console.print(f"  {i}. {r.why}: {spent:.0f} ms, {r.operators} operators -> "
                      f"{r.kernels} kernels ({kept})", markup=False)  # fmt: skip
    if found.breaks:
        console.print("\n[bold]In Python, between compiled segments[/]")
        for b in found.breaks:
            console.print(f"  {b.where}  {b.statement}  because {b.because}", markup=False)
    _print_kernels(found.kernels, console)
    console.print(f"\n[bold]What to change[/], the most first (at most, over {found.calls:,} "
                  "calls in one process)")  # fmt: skip
    for i, item in enumerate(found.advice, 1):
        console.print(f"  {i}. {item.gain_ms:,.1f} ms: {item.do}", markup=False)
        console.print(f"     {item.because}", style="dim", markup=False)
    if not found.advice:
        console.print("  nothing that is worth 5 % of a call")


def _print_kernels(kernels: Sequence[KernelShare], console: Console) -> None:
    if not kernels:
        return
    table = Table(title="Kernels", title_justify="left", title_style="bold", box=None,
                  pad_edge=False)  # fmt: skip
    for name in ("kernel", "us", "share", "of peak", "of memory", "taken by", "computes"):
        right = name in ("us", "share", "of peak", "of memory")
        table.add_column(name, justify="right" if right else "left",
                         overflow="fold" if name == "computes" else "ellipsis",
                         no_wrap=name == "taken by")  # fmt: skip
    for k in kernels:
        table.add_row(shortened(k.name), f"{k.us:,.1f}", f"{k.share:.0%}", k.of_peak,
                      k.of_memory, k.taken_by, k.computes)  # fmt: skip
    console.print()
    console.print(table)
